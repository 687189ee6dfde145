"""Dominated observables: one that costs no less than another for every secret can be merged into that one."""

import numpy as np

from privacygames.arrays import FloatArray, IntArray, distinct_indices


def dominating_observables(cost: FloatArray) -> IntArray:
    """For each observable, the index of one that dominates it (its own index where none does).

    An observable dominates another if it costs no more for any secret. Merging an observable into one that dominates it
    is post-processing: every guarantee still holds and the cost does not rise. Of observables with equal costs, the
    first stays.

    Args:
        cost: (observables, secrets), restricted to the secrets whose cost counts.

    >>> from privacygames.solvers import dominating_observables
    >>> dominating_observables(np.array([[1.0, 2.0], [1.0, 1.0], [0.0, 3.0]]))
    array([1, 1, 2])
    """
    rows: dict[bytes, int] = {}
    first = np.array([rows.setdefault(row.tobytes(), index) for index, row in enumerate(cost)], dtype=np.int64)
    if len(rows) < len(cost):  # without equal rows, few have to be compared
        distinct = distinct_indices(first, len(cost))
        dominating = distinct[dominating_observables(cost[distinct])]
        return np.asarray(dominating[np.searchsorted(distinct, first)])
    dominating = np.arange(len(cost))
    order = np.lexsort((dominating, cost.sum(axis=1)))  # an observable comes after those that dominate it
    cost = cost[order]
    kept = np.ones(len(cost), dtype=bool)
    # Few observables cost as little as one where that costs least, so few have to be compared throughout.
    least, cheapest = cost.min(axis=0), cost.argmin(axis=1)
    unrivalled = ((cost == least).sum(axis=0) == 1)[cheapest] & (
        cost[np.arange(len(cost)), cheapest] == least[cheapest]
    )
    for index in np.flatnonzero(~unrivalled):
        before = slice(index)
        rivals = np.flatnonzero(kept[before] & (cost[before, cheapest[index]] <= cost[index, cheapest[index]]))
        better = rivals[(cost[rivals] <= cost[index]).all(axis=1)]
        if len(better):
            dominating[order[index]], kept[index] = order[better[0]], False
    return dominating
