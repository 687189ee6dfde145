"""Exact reductions: they change the size of a program and nothing else (proofs: docs/theory/solver.md)."""

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.linalg import HOST, Backend

CHAIN_TOLERANCE = 1e-12


def dominated_observables(cost: FloatArray) -> IntArray:
    """For each observable, one that costs no more for any secret (itself, if there is no other).

    Merging an observable into one that dominates it is post-processing: every promise is kept and the cost does
    not rise. Of observables that cost the same throughout, the first stays.

    Args:
        cost: (observables, secrets), restricted to the secrets whose cost counts.
    """
    like = np.arange(len(cost))
    order = np.lexsort((like, cost.sum(axis=1)))  # a dominating observable comes before those it dominates
    cost = cost[order]
    kept = np.ones(len(cost), dtype=bool)
    # Few cost as little as an observable where that costs least, so few are compared throughout, and mostly none.
    least, easiest = cost.min(axis=0), cost.argmin(axis=1)
    alone = ((cost == least).sum(axis=0) == 1)[easiest] & (cost[np.arange(len(cost)), easiest] == least[easiest])
    for place in np.flatnonzero(~alone):
        before = slice(place)
        rivals = np.flatnonzero(kept[before] & (cost[before, easiest[place]] <= cost[place, easiest[place]]))
        better = rivals[(cost[rivals] <= cost[place]).all(axis=1)]
        if len(better):
            like[order[place]], kept[place] = order[better[0]], False
    return like


def chained_pairs(exponents: FloatArray, backend: Backend = HOST) -> NDArray[np.bool_]:
    """Which ordered pairs (i, j) follow from (i, k) and (k, j) for some k: their exponents add up to (i, j)'s.

    A pair counts as chained when e(i,k) + e(k,j) ≤ e(i,j)·(1 + 10⁻¹²); what rounding may lose by that, the
    repair restores. Chains never run in circles, because every exponent on the way is smaller and positive:
    pairs with exponent 0 are never used or removed.

    Args:
        exponents: the logarithms of the ratios' bounds, ∞ where there is none.
        backend: where to compare: n³ sums.
    """
    finite = np.isfinite(exponents) & (exponents > 0)
    steps = backend.to_device(np.where(finite, exponents, np.inf))
    limit = backend.to_device(np.where(finite, exponents * (1 + CHAIN_TOLERANCE), -np.inf))
    chained = backend.mask_to_device(np.zeros(exponents.shape, dtype=bool))
    several = max(1, backend.chunk_entries // max(exponents.size, 1))
    for start in range(0, len(exponents), several):
        middle = slice(start, start + several)
        chained |= (steps[:, middle, None] + steps[None, middle, :] <= limit[:, None, :]).any(axis=1)
    return backend.mask_to_numpy(chained)
