"""An independent check in exact rational arithmetic, with a proved enclosure of exp."""

from fractions import Fraction

from privacygames.certificates.statement import Statement


def exp_enclosure(x: Fraction, digits: int = 45) -> tuple[Fraction, Fraction]:
    """Rationals around exp(x) for x ≥ 0, a relative 10^-40 apart.

    exp(x) = exp(x/2^k)^(2^k) with x/2^k ≤ 1/2. The Taylor sum T of N terms satisfies T ≤ exp(y) ≤ T + 2·(next
    term), since the terms after it shrink by at least 1/2 each. Rounding to a fixed number of decimals, outward,
    keeps the fractions short.
    """
    assert x >= 0
    halvings = 0
    while x > Fraction(1, 2):
        x, halvings = x / 2, halvings + 1
    scale = 10 ** (digits + halvings)
    term, total, count = Fraction(1), Fraction(0), 0
    while term > Fraction(1, scale):
        total += term
        count += 1
        term = term * x / count
    low, high = total, total + 2 * term
    for _ in range(halvings):
        low = Fraction(low * low * scale // 1, scale)
        high = Fraction(-(-high * high * scale // 1), scale)
    return low, high


def holds_exactly(statement: Statement) -> bool:
    """Whether every promise about the weights is true, decided without rounding."""
    weights = [[int(w) for w in row] for row in statement.weights]
    total = 2**statement.bits
    bounds = statement.bounds
    if any(sum(row) != total or min(row) < 0 for row in weights):
        return False
    prior = [Fraction(float(p)) for p in statement.prior]
    n, m = statement.weights.shape
    if bounds.problem_distortion is not None:
        d = [[Fraction(float(v)) for v in row] for row in statement.distance]
        privacy = sum(
            min(sum(prior[s] * weights[s][o] * d[guess][s] for s in range(n)) for guess in range(n)) for o in range(m)
        )
        if privacy < Fraction(bounds.problem_distortion) * total:
            return False
    if bounds.cost_at_most is not None:
        costs = [sum(Fraction(float(statement.cost[o, s])) * weights[s][o] for o in range(m)) for s in range(n)]
        cost = max(costs) if bounds.worst_case else sum(p * c for p, c in zip(prior, costs, strict=True))
        if cost > Fraction(bounds.cost_at_most) * total:
            return False
    return bounds.epsilon is None or all(
        _ratio_holds(weights[s], weights[t], bounds.epsilon, float(statement.distinguishability[s, t]), bounds.within)
        for s in range(n)
        for t in range(n)
        if s != t
    )


def _ratio_holds(row: list[int], other: list[int], epsilon: float, separation: float, within: float | None) -> bool:
    if separation == float("inf") or (within is not None and separation > within):
        return True
    exponent = Fraction(epsilon) * (Fraction(separation) if within is None else 1)
    low, high = exp_enclosure(min(exponent, Fraction(60)))  # e^60 > 2^86: between weights it only says "not zero"
    for a, b in zip(row, other, strict=True):
        if a > high * b:
            return False
        assert a <= low * b, "the enclosure is too wide to decide"
    return True
