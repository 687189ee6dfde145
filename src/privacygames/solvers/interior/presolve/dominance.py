"""Dominated observables: an output that costs no less than another for every secret can be merged into it."""

import numpy as np

from privacygames.arrays import FloatArray, IntArray


def dominating_observables(cost: FloatArray) -> IntArray:
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
