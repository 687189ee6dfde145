"""The verifier: does a mechanism keep its promises, and how far from the best possible is it?

This page is meant to be read by a sceptic. It uses nothing of the solvers: it takes a :class:`Statement`
(integers, matrices, promises, and multipliers somebody claims prove optimality) and checks, rounding every
doubtful digit against the mechanism:

1. every row of weights sums to exactly 2^bits (integers);
2. weights[s,o] ≤ γ(s,s')·weights[s',o] for **every** bounded pair and every observable, γ rounded down;
3. distortion privacy against the best attack there is, rounded down, is at least what is promised;
4. the cost, rounded up, is at most what is promised (if a limit is);
5. a bound on what *any* mechanism with these promises could achieve, by weak duality (``optimality.py``).

How rounding is bounded: for non-negative numbers, a floating-point sum of products of N terms, in any order,
is within a relative N·2^-52 of the exact one (Higham, Accuracy and Stability, §3.1, with room to spare), as
long as nothing under- or overflows. ``check_form`` sees to that: every number is 0 or within 10^±60. Comparisons
are written so that anything that is not a number fails them.
"""

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import inf, nextafter

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.certificates.optimality import ULP, optimum
from privacygames.certificates.statement import Statement, check_form
from privacygames.errors import BrokenPromise

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

    def cost(self, *, worst_case: bool) -> float:
        """The cost that counts: the worst secret's, or the average."""
        return self.worst_cost if worst_case else self.expected_cost


def check(statement: Statement) -> Findings:
    """Check every promise; raise :class:`BrokenPromise` at the first that does not hold."""
    check_form(statement)
    _check_sums(statement)
    bounds = statement.bounds
    cost = _check_cost(statement)
    distortion = distortion_below(statement)
    if bounds.distortion is not None and not distortion >= bounds.distortion:
        raise BrokenPromise(
            f"distortion privacy is only shown to be {distortion!r}, below the {bounds.distortion!r} promised"
        )
    below, above = ratio_bounds(statement)
    largest = _check_ratios(statement, below)
    best = None if statement.multipliers is None else optimum(statement, statement.multipliers, above)
    if best is not None and not (best >= distortion if bounds.reverse else best <= cost):
        raise BrokenPromise("the multipliers claim more than this very mechanism allows")
    return Findings(
        largest_ratio=largest,
        distortion=distortion,
        expected_cost=cost_above(statement, worst_case=False) if bounds.worst_case else cost,
        worst_cost=cost if bounds.worst_case else cost_above(statement, worst_case=True),
        optimum=best,
    )


def _check_sums(statement: Statement) -> None:
    weights, bits = statement.weights, statement.bits
    if not 52 <= bits <= 62:
        raise BrokenPromise(f"weights must sum to a power of two between 2^52 and 2^62, not 2^{bits}")
    if (weights < 0).any() or (weights > 2**bits).any():
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
    if not exact_cost(statement) <= Fraction(bounds.cost_at_most):
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


def _check_ratios(statement: Statement, below: FloatArray) -> float:
    """The largest ratio as a share of what is allowed."""
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
    if not largest <= 1:
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
        enclosures = np.array([_exp_enclosure(bounds.epsilon, value) for value in values.tolist()])
        below, above = (enclosures[where.reshape(separation.shape), side].copy() for side in (0, 1))
    else:
        near = separation <= bounds.within
        below, above = (np.where(near, edge, inf) for edge in _exp_enclosure(bounds.epsilon, 1.0))
    np.fill_diagonal(below, inf)
    np.fill_diagonal(above, inf)
    return below, above


@lru_cache(maxsize=1 << 17)
def _exp_enclosure(epsilon: float, separation: float) -> tuple[float, float]:
    """Floats (below, above) around exp(epsilon·separation)."""
    if separation == inf:
        return inf, inf
    lower = _decimals(40, ROUND_FLOOR).multiply(Decimal(epsilon), Decimal(separation))
    upper = _decimals(40, ROUND_CEILING).multiply(Decimal(epsilon), Decimal(separation))
    precise = _decimals(25, ROUND_HALF_EVEN)  # in which exp is correctly rounded
    if upper > 700:
        return float(precise.exp(Decimal(INTEGER_EXPONENT))), inf
    lower = min(lower, Decimal(INTEGER_EXPONENT))  # smaller is stricter; between integers no stricter
    below = nextafter(float(precise.exp(lower)), 0.0)
    return max(below, 1.0), nextafter(float(precise.exp(upper)), inf)


def _decimals(digits: int, rounding: str) -> Context:
    """A decimal context that depends on no global setting."""
    return Context(prec=digits, rounding=rounding, Emin=-999999, Emax=999999, capitals=1, clamp=0, flags=[], traps=[])


def distortion_below(statement: Statement) -> float:
    """Distortion privacy against the optimal attack (eq:lp:adversary:bayesian), rounded down.

    The optimal attack guesses, for each observable, the estimate with the least expected error
    (eq:proof:q), so privacy is Σ_o min_ŝ Σ_s π(s) p(o|s) d(ŝ,s).
    """
    secrets, observables = statement.weights.shape
    errors = (statement.distance * statement.prior) @ probabilities(statement)
    total = float(errors.min(axis=0).sum())
    return total * (1.0 - float((secrets + observables + 16) * ULP))


def cost_above(statement: Statement, *, worst_case: bool) -> float:
    """The cost Σ_s π(s) Σ_o p(o|s) c(o,s), or its largest term over secrets, rounded up."""
    secrets, observables = statement.weights.shape
    per_secret = (probabilities(statement) * statement.cost.T).sum(axis=1)
    total = float(per_secret.max() if worst_case else statement.prior @ per_secret)
    return total * (1.0 + float((secrets + observables + 16) * ULP))


def probabilities(statement: Statement) -> FloatArray:
    """p(o|s) as floats, each within a relative 2^-53 of the exact weight / 2^bits."""
    return np.ldexp(statement.weights.astype(np.float64), -statement.bits)
