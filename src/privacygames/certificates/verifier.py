"""The verifier: does a mechanism have the properties it guarantees, and how far from the best possible is it?

This file is meant to be read by a sceptic. It uses nothing of the solvers: it takes a :class:`Statement`
(integers, matrices, guarantees, and dual values somebody claims prove optimality) and checks, rounding every
doubtful digit against the mechanism:

1. every row of weights sums to exactly 2^bits (integers);
2. weights[s,o] ≤ γ(s,s')·weights[s',o] for **every** bounded pair and every observable, γ rounded down
   (``exponentials.py``);
3. distortion privacy, rounded down, is at least what is guaranteed: against every adversary something is guaranteed
   against, each with their own prior and errors, for the best attack there is;
4. no output is given to a secret for which its cost is infinite; and the cost, rounded up, is at most its limit, if
   there is one: on average, or for every secret;
5. a bound on what *any* mechanism with these guarantees could achieve, by weak duality (``optimality.py``).

How rounding is bounded: for non-negative numbers, a floating-point sum of products of N terms, in any order,
is within a relative N·2^-52 of the exact one (Higham, Accuracy and Stability, §3.1, with room to spare), as
long as nothing under- or overflows. ``check_form`` sees to that: every number is 0 or within 10^±60. Comparisons
are written so that anything that is not a number fails them.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import inf

import numpy as np

from privacygames.arrays import FloatArray, IntArray, loss_per_secret
from privacygames.certificates.exponentials import ROUGH_ERROR, exact_enclosure, rough_enclosure
from privacygames.certificates.optimality import ULP, optimum
from privacygames.certificates.statement import RatioStatement, Statement, check_form, check_ratio_form
from privacygames.errors import GuaranteeViolated
from privacygames.problem import AdversaryArrays
from privacygames.threads import map_in_threads

CLOSED_GAP = 1e-8
"""Relative gap below which the bound on the optimum is not sharpened any further."""

WORTHWHILE_GAIN = 0.01
"""Share of the gap that exact exponentials must be able to close, or they are not computed."""

ENTRIES_TOGETHER = 1 << 17
"""Quotients of weights that a thread computes before it looks for the largest: 1 MiB, which fit a processor's cache."""

MAX_EXACT_RATIOS = 200_000
"""Number of ratios that are checked with exact exponentials at most: some ten seconds."""


@dataclass(frozen=True)
class Verification:
    """What was verified, each number rounded to the safe side.

    Attributes:
        largest_ratio: the largest weights[s,o] / (γ·weights[s',o]); at most 1 (0 where no ratio is bounded).
        distortion: distortion privacy against the problem's own adversary, at least this; guaranteed or not.
        expected_cost: the average cost, at most this.
        worst_cost: the cost of the worst secret, at most this.
        optimum: no mechanism with these guarantees costs less than this (or, when the cost is what is limited,
            has more distortion privacy than this); None without dual values.
        adversary_distortions: distortion privacy against each adversary of the bounds, at least, in their order.
    """

    largest_ratio: float
    distortion: float
    expected_cost: float
    worst_cost: float
    optimum: float | None
    adversary_distortions: tuple[float, ...] = ()

    def cost(self, *, worst_case: bool) -> float:
        """The cost that counts: the worst secret's, or the average."""
        return self.worst_cost if worst_case else self.expected_cost


def check(statement: Statement) -> Verification:
    """Check every guarantee; raise :class:`GuaranteeViolated` at the first that does not hold."""
    check_form(statement)
    _check_sums(statement)
    if (statement.weights[~statement.allowed] != 0).any():
        raise GuaranteeViolated("an output is given to a secret that it is never allowed for (its cost is infinite)")
    bounds = statement.bounds
    average, worst = (_check_cost(statement, worst_case=each) for each in (False, True))
    cost = worst if bounds.worst_case else average
    distortion = distortion_below(statement)
    distortions = tuple(_check_distortion(statement, adversary) for adversary in statement.adversaries)
    below, above = ratio_bounds(statement)
    largest = _largest_ratio(statement, below)
    achieved = distortions[0] if bounds.maximises_distortion else cost
    best = None if statement.dual_solution is None else _bound_on_optimum(statement, above, achieved)
    if best is not None and not (best >= achieved if bounds.maximises_distortion else best <= achieved):
        raise GuaranteeViolated("the dual values claim more than this very mechanism allows")
    return Verification(
        largest_ratio=largest,
        distortion=distortion,
        expected_cost=average,
        worst_cost=worst,
        optimum=best,
        adversary_distortions=distortions,
    )


def check_ratios(statement: RatioStatement) -> float:
    """Check the sums of weights and their ratios alone (points 1 and 2), for a mechanism without prior and cost.

    Returns:
        The largest ratio as a share of what is allowed.
    """
    check_ratio_form(statement)
    _check_sums(statement)
    below, _ = ratio_bounds(statement)
    return _largest_ratio(statement, below)


def proved_bound(statement: Statement) -> float:
    """What the dual values of a statement prove about every mechanism with its guarantees; its weights do not matter.

    >>> from privacygames.certificates import proved_bound
    >>> mechanism = pg.design(pg.Problem(pg.Prior.uniform(pg.Numbers(range(3)))), epsilon=1.0)
    >>> proved_bound(mechanism.statement) <= mechanism.certificate.cost
    True
    """
    check_form(statement)
    if statement.dual_solution is None:
        raise GuaranteeViolated("there are no dual values to prove anything with")
    return optimum(statement, statement.dual_solution, ratio_bounds(statement)[1]).value


def _check_distortion(statement: Statement, adversary: AdversaryArrays) -> float:
    """Distortion privacy against an adversary, rounded down, if it is as large as guaranteed."""
    distortion = error_below(statement, adversary)
    if adversary.distortion is not None and not distortion >= adversary.distortion:
        whom = f" against {adversary.name!r}" if statement.bounds.named_adversaries else ""
        raise GuaranteeViolated(
            f"distortion privacy{whom} is only shown to be {distortion!r}, "
            f"below the {adversary.distortion!r} guaranteed"
        )
    return distortion


def _bound_on_optimum(statement: Statement, above: FloatArray, achieved: float) -> float:
    """The bound on the optimum; where large dual values cancel, with γ as exact as floats can be."""
    duals = statement.dual_solution
    if duals is None:
        raise GuaranteeViolated("there are no dual values to prove anything with")
    rough, charged = optimum(statement, duals, above)
    if abs(achieved - rough) <= CLOSED_GAP * achieved or statement.bounds.within:
        return rough
    if 3 * ROUGH_ERROR * charged <= WORTHWHILE_GAIN * abs(achieved - rough):
        return rough
    charging = duals.ratios.take(np.flatnonzero(duals.ratios.value > 0))
    used = np.zeros(above.shape, dtype=bool)
    used[charging.secret, charging.other] = True
    used &= np.isfinite(above)
    if not 0 < np.count_nonzero(used) <= MAX_EXACT_RATIOS:
        return rough
    sharper = above.copy()
    separations, position = np.unique(statement.distinguishability[used], return_inverse=True)
    exact = [exact_enclosure(statement.bounds.epsilon or inf, separation)[1] for separation in separations.tolist()]
    sharper[used] = np.array(exact)[position]
    sharp = optimum(statement, duals, sharper).value
    return min(rough, sharp) if statement.bounds.maximises_distortion else max(rough, sharp)


def _check_sums(statement: RatioStatement) -> None:
    weights, bits = statement.weights, statement.bits
    if not 52 <= bits <= 62:
        raise GuaranteeViolated(f"weights must sum to a power of two between 2^52 and 2^62, not 2^{bits}")
    if (weights < 0).any() or (weights > 2**bits).any():
        raise GuaranteeViolated("weights must lie between 0 and the power of two they sum to")
    # Two halves of 31 bits each cannot overflow 64 bits in any sum of fewer than 2^32 terms.
    high = (weights >> 31).sum(axis=1, dtype=np.int64)
    low = (weights & (2**31 - 1)).sum(axis=1, dtype=np.int64)
    if any((int(h) << 31) + int(lo) != 2**bits for h, lo in zip(high, low, strict=True)):
        raise GuaranteeViolated(f"a row of weights does not sum to 2^{bits}")


def _check_cost(statement: Statement, *, worst_case: bool) -> float:
    """The cost, rounded up but not above its limits: where rounding leaves that open, exact fractions decide."""
    above = cost_above(statement, worst_case=worst_case)
    limit = min((limit for worst, limit in statement.bounds.cost_limits if worst == worst_case), default=inf)
    if above <= limit:
        return above
    if not exact_cost(statement, worst_case=worst_case) <= Fraction(limit):
        whose = "the cost of the worst secret" if worst_case else "the cost"
        raise GuaranteeViolated(f"{whose} may be {above!r}, above the {limit!r} guaranteed")
    return limit


def exact_cost(statement: Statement, *, worst_case: bool) -> Fraction:
    """The cost as an exact fraction: of the worst secret, or the average."""
    costs = [
        sum((Fraction(cost) * int(weight) for cost, weight in zip(column, row, strict=True) if weight), Fraction(0))
        for column, row in zip(statement.cost.T.tolist(), statement.weights, strict=True)
    ]
    shares = (Fraction(share) for share in statement.prior.tolist())
    average = sum((share * cost for share, cost in zip(shares, costs, strict=True)), Fraction(0))
    cost: Fraction = max(costs) if worst_case else average
    return cost / (1 << statement.bits)


def _largest_ratio(statement: RatioStatement, below: FloatArray) -> float:
    """The largest ratio as a share of what is allowed.

    The largest weights[s,o]/weights[s',o] over o is computed in floating point for all pairs and compared with a number
    surely below γ. Pairs that are nearer to their bound than that number can tell are checked once more, with the float
    next to γ and the exact integers.
    """
    weights = statement.weights
    used = weights.any(axis=0)  # an output that is never given has no ratio to check
    approximate = weights[:, used].astype(np.float64)  # within a relative 2^-53
    with np.errstate(divide="ignore"):
        inverse = 1 / approximate  # ∞ for a weight of 0

    together, step = max(1, ENTRIES_TOGETHER // approximate.size), max(1, ENTRIES_TOGETHER // approximate.shape[1])

    def largest_of(part: int) -> FloatArray:
        secrets = slice(part * together, (part + 1) * together)
        with np.errstate(invalid="ignore"):  # 0·∞: neither secret gives this output
            largest = [
                np.fmax.reduce(approximate[secrets, None] * inverse[start : start + step], axis=2)
                for start in range(0, len(inverse), step)
            ]
        return np.concatenate(largest, axis=1)

    parts = map_in_threads(largest_of, -(-len(weights) // together), 2 * approximate.size * len(weights))
    ratios = np.concatenate(parts)
    bounded = np.isfinite(below)
    shares = np.divide(np.fmax(ratios, 0.0), below, where=bounded, out=np.zeros(below.shape))
    shares *= 1 + 6 * ULP  # two conversions, two quotients, a product and this one
    equal = bounded & (statement.distinguishability == 0) & (statement.bounds.within is None)
    for secret in np.flatnonzero(equal.any(axis=1)):
        same = np.flatnonzero(equal[secret])  # no more than the other, to the last unit
        shares[secret, same] = np.where((weights[secret] <= weights[same]).all(axis=1), 1.0, inf)
    near = np.argwhere(shares > 1)
    exact = {pair: _exact_share(statement, *pair) for pair in _exactly_checked(near)}
    settled = np.where(shares > 1, 0.0, shares)
    largest = max(float(settled.max(initial=0.0)), *exact.values(), 0.0)
    if not largest <= 1:
        raise GuaranteeViolated(f"a ratio between two secrets exceeds what is allowed by a factor of {largest!r}")
    return largest


def _exactly_checked(near: IntArray) -> list[tuple[int, int]]:
    """Pairs for exact arithmetic, refused where they are so many that a stranger's file would take hours."""
    if len(near) > MAX_EXACT_RATIOS:
        raise GuaranteeViolated(
            f"over {MAX_EXACT_RATIOS} ratios are so near their bounds that only exact arithmetic can tell"
        )
    return [(int(secret), int(other)) for secret, other in near]


def _exact_share(statement: RatioStatement, secret: int, other: int) -> float:
    """The largest ratio of one pair as a share of what is allowed, with the float just below γ."""
    bounds, weights = statement.bounds, statement.weights
    separation = float(statement.distinguishability[secret, other]) if bounds.within is None else 1.0
    below, _ = exact_enclosure(bounds.epsilon or inf, separation)
    more = weights[secret] > weights[other]  # elsewhere the ratio is at most 1, and γ is at least 1
    larger, smaller = (weights[row][more].astype(np.float64) for row in (secret, other))
    with np.errstate(divide="ignore"):
        share = larger / (below * smaller)
    return float(share.max(initial=0.0)) * (1 + 4 * ULP)  # two conversions, a product, a division and this one


def ratio_bounds(statement: RatioStatement) -> tuple[FloatArray, FloatArray]:
    """Floats surely below and above γ(s,s') for every ordered pair; ∞ where no ratio is bounded."""
    bounds, separation = statement.bounds, statement.distinguishability
    if bounds.epsilon is None:
        unbounded = np.full(separation.shape, inf)
        return unbounded, unbounded
    if bounds.within is None:
        below, above = rough_enclosure(bounds.epsilon, separation)
    else:
        near = separation <= bounds.within
        below, above = (np.where(near, edge, inf) for edge in exact_enclosure(bounds.epsilon, 1.0))
    np.fill_diagonal(below, inf)
    np.fill_diagonal(above, inf)
    return below, above


def distortion_below(statement: Statement) -> float:
    """Distortion privacy against the optimal attack (eq:lp:adversary:bayesian), rounded down.

    The optimal attack guesses, for each observable, the estimate with the least expected error
    (eq:proof:q), so privacy is Σ_o min_ŝ Σ_s π(s) p(o|s) d(ŝ,s).
    """
    return error_below(statement, AdversaryArrays("", statement.prior, statement.distance))


def error_below(statement: Statement, adversary: AdversaryArrays) -> float:
    """Privacy against any adversary, Σ_o min_g Σ_s π_k(s) p(o|s) E_k(g,s), rounded down."""
    secrets, observables = statement.weights.shape
    used = statement.weights.any(axis=0)  # an output that is never given adds nothing
    table = probabilities(statement)
    errors = adversary.joint_errors @ (table if used.all() else table[:, used])
    total = float(errors.min(axis=0).sum())
    return total * (1.0 - float((secrets + observables + 16) * ULP))


def cost_above(statement: Statement, *, worst_case: bool) -> float:
    """The cost Σ_s π(s) Σ_o p(o|s) c(o,s), or its largest term over secrets, rounded up."""
    secrets, observables = statement.weights.shape
    per_secret = loss_per_secret(probabilities(statement), statement.cost)
    total = float(per_secret.max() if worst_case else statement.prior @ per_secret)
    return total * (1.0 + float((secrets + observables + 16) * ULP))


def probabilities(statement: Statement) -> FloatArray:
    """p(o|s) as floats, each within a relative 2^-53 of the exact weight / 2^bits."""
    return statement.weights.astype(np.float64) * 2.0**-statement.bits
