"""From a solver's floating-point probabilities to integer weights with every guarantee exactly.

The means is a small share of a constant mechanism u: p' = (1−η)p + ηu. In the columns it uses, a constant mechanism
satisfies every ratio with a positive exponent strictly, and it has the largest distortion privacy there is (d_m^max);
the ratios form a convex cone and distortion privacy is concave, so some η restores these guarantees, at a cost of at
most η·cost(u). Ratios with exponent 0 hold with equality only: such secrets get the same row before anything is mixed.
"""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray, freeze
from privacygames.certificates.statement import BITS, Statement
from privacygames.certificates.verifier import Verification, check, exact_cost
from privacygames.errors import GuaranteeViolated, SolveFailed
from privacygames.threads import map_in_threads

DROWNED = 1e40
"""What is added in the end: nothing else is seen beside it."""

SMALLEST_MIX = 1e-15
LEAST_COLUMN = 1e-13  # columns nobody uses more often than this are dropped: they hold only rounding noise
ROUNDED = 1e-14  # how far below a limit on the cost to aim, relatively: mixing itself rounds
FAR = 36.0  # exponents from which on a ratio is a matter of whether a weight is 0
EQUAL = 1e-13  # secrets whose ratio is bounded by e^this get the same row


def repair(
    draft: Statement, probabilities: FloatArray, cheapest: FloatArray | None = None
) -> tuple[Statement, Verification]:
    """Weights near ``probabilities`` that have every guarantee of ``draft``, verified.

    Args:
        draft: everything but the weights.
        probabilities: (secrets, observables), possibly off by any solver's error.
        cheapest: a mechanism that keeps every ratio and costs less than the limits; needed if there are limits.

    Raises:
        SolveFailed: if the probabilities are not numbers.
        GuaranteeViolated: if not even constant mechanisms have the guarantees.
    """
    exponents = draft.bounds.log_ratio_bounds(draft.distinguishability)
    allowed = draft.allowed
    clean = _merge_equals(exponents, _cleaned(probabilities, allowed, drop=draft.bounds.epsilon is not None))
    failure: GuaranteeViolated | None = None
    used = clean.max(axis=0) > 0
    if cheapest is not None:
        used |= cheapest.max(axis=0) > 0  # a trace of it may be mixed in, and its ratios have no room for rounding
    for added in _additions(exponents, clean, used):
        if allowed[:, used].all():
            mixed = (clean + added) / (1 + added.sum())
        else:
            mixed = clean + added * allowed
            mixed /= mixed.sum(axis=1, keepdims=True)
        if cheapest is not None:
            mixed = _within_cost(draft, mixed, cheapest)
        statement = replace(draft, weights=to_weights(mixed, draft.bits))
        try:
            return statement, check(statement)
        except GuaranteeViolated as error:
            failure = error
    raise failure or GuaranteeViolated("no mechanism was tried")


def least_mixture(exponents: FloatArray, probabilities: FloatArray) -> FloatArray:
    """The mixture (1−λ)p + λw with the least λ, over all constant mechanisms w, that keeps every ratio.

    ``exponents`` are the logarithms of the ratios' bounds, ∞ where there is none.

    Column o keeps its ratios once e(o) = max (p(o|s) − γp(o|s')) / (γ−1) is added to all of it, and not before; so
    w ∝ e, and the mixture is (p + e) / (1 + Σe). Off by rounding only: :func:`repair` does the rest.
    """
    clean = _merge_equals(exponents, _cleaned(probabilities, np.ones(probabilities.shape, dtype=bool), drop=False))
    added = _excess(exponents, clean)
    return np.asarray((clean + added) / (1 + added.sum()))


def to_weights(probabilities: FloatArray, bits: int) -> IntArray:
    """Integers that sum to exactly 2^bits in every row, as near as can be; zero stays zero, equal stays equal."""
    total = 2**bits
    weights = np.floor(probabilities * float(total)).astype(np.int64)
    for _ in range(2):  # the float rows may miss one by 10^-16: first scale, then settle the last few units
        missing = total - weights.sum(axis=1)
        weights += (missing[:, None] * probabilities).astype(np.int64)
    weights[np.arange(len(weights)), weights.argmax(axis=1)] += total - weights.sum(axis=1)
    return freeze(weights)


def _cleaned(probabilities: FloatArray, allowed: NDArray[np.bool_], *, drop: bool) -> FloatArray:
    if not np.isfinite(probabilities).all():
        raise SolveFailed("the solver returned numbers that are not finite")
    clean = np.maximum(probabilities, 0.0)
    if not allowed.all():  # a secret that nobody has may have been given only outputs that it may never give
        clean = np.where(allowed, clean, 0.0)
        lost = clean.sum(axis=1) < 0.5
        clean[lost] = allowed[lost] / np.maximum(allowed[lost].sum(axis=1, keepdims=True), 1)
    if drop:
        clean[:, clean.max(axis=0) < LEAST_COLUMN] = 0.0
    sums = clean.sum(axis=1, keepdims=True)
    if not (sums > 0.5).all():
        raise SolveFailed("the solver returned rows that do not sum to one")
    return np.asarray(clean / sums)


def _merge_equals(exponents: FloatArray, clean: FloatArray) -> FloatArray:
    """Give secrets that must not be told apart at all the same row: their mean."""
    if not (exponents <= EQUAL).any():
        return clean
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    count, group = connected_components(csr_array(exponents <= EQUAL), directed=False)
    means = np.zeros((count, clean.shape[1]))
    np.add.at(means, group, clean)
    return np.asarray((means / np.bincount(group)[:, None])[group])


def _excess(exponents: FloatArray, clean: FloatArray) -> FloatArray:
    """What must be added to all of a column so that its ratios hold: max over pairs of (p − γp') / (γ−1), or 0."""
    used = np.flatnonzero(clean.any(axis=0))  # a column of zeros keeps them all
    columns = clean[:, used]
    bounded = (exponents > EQUAL) & np.isfinite(exponents)

    def excess_of(secret: int) -> FloatArray:
        factor = np.exp(np.minimum(exponents[secret], 100.0))
        counts = np.divide(1.0, factor - 1, where=bounded[secret], out=np.zeros(len(columns)))
        excess = factor[:, None] * columns
        np.subtract(columns[secret], excess, out=excess)
        excess *= counts[:, None]
        return np.asarray(excess.max(axis=0, initial=0.0))

    excesses = map_in_threads(excess_of, len(columns), 3 * columns.size * len(columns))
    needed = np.zeros(clean.shape[1])
    needed[used] = np.max(excesses, axis=0, initial=0.0)
    return needed


def _additions(exponents: FloatArray, clean: FloatArray, used: NDArray[np.bool_]) -> Iterator[FloatArray]:
    """What to add to whole columns, ever more: first nothing, at last so much that the rest drowns.

    Adding the same to all of a column is mixing with a constant mechanism. Each column that needs it gets what restores
    its ratios, and a trace more for rounding.
    """
    yield np.zeros(len(used))  # mostly enough, and seen at once: what is needed is looked for where it is not
    needed = _excess(exponents, clean)
    far = (exponents > FAR) & np.isfinite(exponents)
    if needed.sum() < SMALLEST_MIX and far.any():  # perhaps only weights of 0 are in the way: two units are enough
        yield 1.01 * needed + np.ldexp(2.0, -BITS) * used
    trace = SMALLEST_MIX * used / used.sum()
    factor = 1.01
    while factor * (needed.sum() + SMALLEST_MIX) < 1:
        yield factor * (needed + trace)
        factor *= 8
    yield DROWNED * used / used.sum()


def _within_cost(draft: Statement, mixed: FloatArray, cheapest: FloatArray) -> FloatArray:
    """Mix in as much of the cheapest mechanism as brings every cost that is limited under its limit."""
    share = 0.0
    for worst_case, limit in draft.bounds.cost_limits:

        def excess_of(values: FloatArray, *, worst_case: bool = worst_case, limit: float = limit) -> float:
            statement = replace(draft, weights=to_weights(values, draft.bits))
            return float(exact_cost(statement, worst_case=worst_case) - Fraction(limit))

        excess = excess_of(mixed)
        if excess > 0:
            room = -excess_of(cheapest)
            wanted = 1.01 * excess + ROUNDED * limit
            share = max(share, 1.0 if room <= 0 else min(1.0, wanted / (excess + room)))
    return (1 - share) * mixed + share * cheapest if share else mixed
