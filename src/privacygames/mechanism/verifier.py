"""The verifier: does a mechanism keep its promises, and how far from the best possible is it?

This page is meant to be read by a sceptic. It uses nothing of the solvers: it takes a :class:`Statement`
(integers, matrices, promises, and multipliers somebody claims prove optimality) and checks, rounding every
doubtful digit against the mechanism:

1. every row of weights sums to exactly 2^bits (integers);
2. weights[s,o] ≤ γ(s,s')·weights[s',o] for **every** bounded pair and every observable, γ rounded down;
3. distortion privacy against the best attack there is, rounded down, is at least what is promised;
4. the cost, rounded up, is at most what is promised (if a limit is);
5. a bound on what *any* mechanism with these promises could achieve, by weak duality, rounded safely.

How rounding is bounded: for non-negative numbers, a floating-point sum of products of N terms, in any order,
is within a relative N·2^-52 of the exact one (Higham, Accuracy and Stability, §3.1, with room to spare).
"""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import inf, nextafter

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.errors import BrokenPromise
from privacygames.mechanism.statement import Statement
from privacygames.multipliers import Multipliers

ULP: float = 2.0**-52
TINY: float = 1e-290  # covers underflow: far below anything that matters, far above what denormals lose
INTEGER_EXPONENT = 50.0  # e^50 > 2^64: between 64-bit weights such a ratio only says "not zero"


@dataclass(frozen=True)
class Findings:
    """What was verified, each number rounded to the safe side.

    Attributes:
        largest_ratio: the largest weights[s,o] / (γ·weights[s',o]); at most 1 (0 where no ratio is promised).
        distortion: distortion privacy against the optimal attack, at least this.
        expected_cost: the average cost, at most this.
        worst_cost: the cost of the worst secret, at most this.
        optimum: no mechanism with these promises costs less than this (or, when the cost is what is limited,
            has more distortion privacy than this); None without multipliers.
    """

    largest_ratio: float
    distortion: float
    expected_cost: float
    worst_cost: float
    optimum: float | None


def check(statement: Statement) -> Findings:
    """Check every promise; raise :class:`BrokenPromise` at the first that does not hold."""
    _check_sums(statement)
    bounds = statement.bounds
    cost = _check_cost(statement)
    distortion = distortion_below(statement)
    if bounds.distortion is not None and distortion < bounds.distortion:
        raise BrokenPromise(
            f"distortion privacy is only shown to be {distortion!r}, below the {bounds.distortion!r} promised"
        )
    return Findings(
        largest_ratio=_check_ratios(statement),
        distortion=distortion,
        expected_cost=cost_above(statement, worst_case=False) if bounds.worst_case else cost,
        worst_cost=cost if bounds.worst_case else cost_above(statement, worst_case=True),
        optimum=None if statement.multipliers is None else _optimum(statement, statement.multipliers),
    )


def _check_sums(statement: Statement) -> None:
    weights, bits = statement.weights, statement.bits
    if not 52 <= bits <= 62:
        raise BrokenPromise(f"weights must sum to a power of two between 2^52 and 2^62, not 2^{bits}")
    if weights.size == 0 or (weights < 0).any() or (weights > 2**bits).any():
        raise BrokenPromise("weights must lie between 0 and the power of two they sum to")
    # Two halves of 31 bits each cannot overflow 64 bits in any sum of fewer than 2^32 terms.
    high = (weights >> 31).sum(axis=1, dtype=np.int64)
    low = (weights & (2**31 - 1)).sum(axis=1, dtype=np.int64)
    if any((int(h) << 31) + int(lo) != 2**bits for h, lo in zip(high, low, strict=True)):
        raise BrokenPromise(f"a row of weights does not sum to 2^{bits}")


def _check_cost(statement: Statement) -> float:
    """The cost, rounded up but not above its limit: where rounding leaves that open, exact fractions decide."""
    bounds = statement.bounds
    above = cost_above(statement, worst_case=bounds.worst_case)
    if bounds.cost_at_most is None or above <= bounds.cost_at_most:
        return above
    if exact_cost(statement) > Fraction(bounds.cost_at_most):
        raise BrokenPromise(f"the cost may be {above!r}, above the {bounds.cost_at_most!r} promised")
    return bounds.cost_at_most


def exact_cost(statement: Statement) -> Fraction:
    """The cost as an exact fraction: of the worst secret if that is what is promised, else the average."""
    costs = [
        sum((Fraction(cost) * int(weight) for cost, weight in zip(column, row, strict=True) if weight), Fraction(0))
        for column, row in zip(statement.cost.T.tolist(), statement.weights, strict=True)
    ]
    shares = (Fraction(share) for share in statement.prior.tolist())
    average = sum((share * cost for share, cost in zip(shares, costs, strict=True)), Fraction(0))
    cost: Fraction = max(costs) if statement.bounds.worst_case else average
    return cost / (1 << statement.bits)


def _check_ratios(statement: Statement) -> float:
    """The largest ratio as a share of what is allowed."""
    below, _ = ratio_bounds(statement)
    weights = statement.weights
    approximate = weights.astype(np.float64)  # within a relative 2^-53
    largest = 0.0
    for secret in range(len(weights)):
        others = np.flatnonzero(np.isfinite(below[secret]))
        more = weights[secret] > weights[others]  # elsewhere the ratio is at most 1, and γ is at least 1
        with np.errstate(divide="ignore", invalid="ignore"):
            share = approximate[secret] / (below[secret, others, None] * approximate[others])
        largest = max(largest, float(share[more].max(initial=0.0)))
    largest *= 1 + 4 * ULP  # two conversions, a product, a division and this one
    if largest > 1:
        raise BrokenPromise(f"a ratio between two secrets exceeds what is allowed by a factor of {largest!r}")
    return largest


def ratio_bounds(statement: Statement) -> tuple[FloatArray, FloatArray]:
    """Floats just below and just above γ(s,s') for every ordered pair; ∞ where nothing is promised.

    The exponent is the exact product of two floats, and ``decimal`` rounds its exponential correctly, so the
    neighbouring floats enclose the true value.
    """
    bounds, separation = statement.bounds, statement.distinguishability
    if bounds.epsilon is None:
        nothing = np.full(separation.shape, inf)
        return nothing, nothing
    if bounds.within is None:
        values, where = np.unique(separation, return_inverse=True)
        enclosures = np.array([_exp_enclosure(bounds.epsilon, value) for value in values])
        below, above = (enclosures[where.reshape(separation.shape), side].copy() for side in (0, 1))
    else:
        near = separation <= bounds.within
        below, above = (np.where(near, edge, inf) for edge in _exp_enclosure(bounds.epsilon, 1.0))
    np.fill_diagonal(below, inf)
    np.fill_diagonal(above, inf)
    return below, above


def _exp_enclosure(epsilon: float, separation: float) -> tuple[float, float]:
    """Floats (below, above) around exp(epsilon·separation)."""
    if separation == inf:
        return inf, inf
    exact_epsilon, exact_separation = Decimal(epsilon), Decimal(float(separation))
    lower = Context(prec=40, rounding=ROUND_FLOOR).multiply(exact_epsilon, exact_separation)
    upper = Context(prec=40, rounding=ROUND_CEILING).multiply(exact_epsilon, exact_separation)
    precise = Context(prec=25)  # exp is correctly rounded, whatever the rounding mode
    if upper > 700:
        return float(precise.exp(Decimal(INTEGER_EXPONENT))), inf
    lower = min(lower, Decimal(INTEGER_EXPONENT))  # smaller is stricter; between integers no stricter
    below = nextafter(float(precise.exp(lower)), 0.0)
    return max(below, 1.0), nextafter(float(precise.exp(upper)), inf)


def distortion_below(statement: Statement) -> float:
    """Distortion privacy against the optimal attack (eq:lp:adversary:bayesian), rounded down.

    The optimal attack guesses, for each observable, the estimate with the least expected error
    (eq:proof:q), so privacy is Σ_o min_ŝ Σ_s π(s) p(o|s) d(ŝ,s).
    """
    secrets, observables = statement.weights.shape
    errors = (statement.distance * statement.prior) @ probabilities(statement)
    total = float(errors.min(axis=0).sum())
    return float(max(total * (1 - (secrets + observables + 16) * ULP) - TINY, 0.0))


def cost_above(statement: Statement, *, worst_case: bool) -> float:
    """The cost Σ_s π(s) Σ_o p(o|s) c(o,s), or its largest term over secrets, rounded up."""
    secrets, observables = statement.weights.shape
    per_secret = (probabilities(statement) * statement.cost.T).sum(axis=1)
    total = float(per_secret.max() if worst_case else statement.prior @ per_secret)
    return float(total * (1 + (secrets + observables + 16) * ULP) + (TINY if total else 0.0))


def probabilities(statement: Statement) -> FloatArray:
    """p(o|s) as floats, each within a relative 2^-53 of the exact weight / 2^bits."""
    return np.ldexp(statement.weights.astype(np.float64), -statement.bits)


def _optimum(statement: Statement, evidence: Multipliers) -> float:
    """What weak duality proves about every mechanism with these promises.

    Write v_o for p(o|·), K for the mechanisms with the promised ratios, x_o for the error of the best guess.
    For prices κ, α, z ≥ 0, weights λ on secrets and any guesses q(·|o) that sum to one, every mechanism in K has

        κ·cost − α·Σ_o x_o ≥ Σ_o ⟨κ λ∘c_o − α π∘Σ_ŝ q(ŝ|o) d(ŝ,·) + Σ z (e_s − γ e_s'), v_o⟩ ≥ Σ_s min_o r_o(s)

    because its cost is at least the λ-average, x_o at most the q-average, z·(v_o(s) − γ v_o(s')) at most 0, and
    Σ_o v_o = 1. Nothing depends on where the prices come from; negative ones are refused.
    """
    bounds = statement.bounds
    secrets, observables = statement.weights.shape
    if not (evidence.cost_price >= 0 and evidence.distortion_price >= 0 and (evidence.attack >= 0).all()):
        raise BrokenPromise("multipliers must be 0 or more")
    if not (evidence.ratios.value >= 0).all():
        raise BrokenPromise("multipliers must be 0 or more")
    cost_price = evidence.cost_price if bounds.reverse else 1.0
    promised = 1.0 if bounds.reverse else bounds.distortion
    distortion_price = 1.0 if bounds.reverse else evidence.distortion_price if promised is not None else 0.0

    weights = statement.prior
    if bounds.worst_case:
        weights = _distributions(evidence.secret_weights, "secret weights")
    gain = cost_price * statement.cost * weights
    attack = _distributions(evidence.attack, "attack")
    loss = distortion_price * (attack @ statement.distance) * statement.prior
    up, down = _ratio_terms(statement, evidence)
    plus, minus = gain + up[evidence.like], (loss + down)[evidence.like]
    doubt = (2 * secrets + observables + 32) * ULP
    residual = plus - minus - doubt * (plus + minus) - TINY
    least = residual.min(axis=0)
    total = float(least.sum() - doubt * np.abs(least).sum())
    if bounds.cost_at_most is not None:
        proved = cost_price * bounds.cost_at_most - total
        blind = float((statement.distance @ statement.prior).min())  # nothing beats revealing nothing
        return float(min(proved + 8 * ULP * (abs(total) + abs(proved)), blind * (1 + doubt)) + TINY)
    proved = total + (distortion_price * bounds.distortion if bounds.distortion is not None else 0.0)
    return float(max(proved - 8 * ULP * (abs(total) + abs(proved)) - TINY, 0.0))


def _distributions(values: FloatArray | None, what: str) -> FloatArray:
    """Rows scaled to sum to one."""
    if values is None or not (values >= 0).all():
        raise BrokenPromise(f"the {what} of the multipliers must be given and be 0 or more")
    sums = values.sum(axis=-1, keepdims=True)
    if not ((sums > 0) & (sums < inf)).all():
        raise BrokenPromise(f"the {what} of the multipliers must have a positive sum")
    return np.asarray(values / sums)


def _ratio_terms(statement: Statement, evidence: Multipliers) -> tuple[FloatArray, FloatArray]:
    """Σ z e_s and Σ z γ e_s' for each observable, γ rounded up."""
    shape = (len(evidence.attack), len(statement.weights))
    up, down = np.zeros(shape), np.zeros(shape)
    ratios = evidence.ratios
    if len(ratios):
        _, above = ratio_bounds(statement)
        factor = above[ratios.secret, ratios.other]
        promised = np.isfinite(factor)  # a price on a ratio nobody promised proves nothing: it is left out
        at, secret, other = (each[promised] for each in (ratios.observable, ratios.secret, ratios.other))
        np.add.at(up, (at, secret), ratios.value[promised])
        np.add.at(down, (at, other), ratios.value[promised] * factor[promised])
    return up, down
