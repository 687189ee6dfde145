"""Loops over the pairs of secrets in a batch of blocks.

Pairs are given by ``starts`` (those of block b are starts[b] to starts[b + 1]), ``i``, ``j`` and √γ, their ``root``.
"""

import numpy as np
from numba import njit

_compiled = njit(nogil=True, cache=True, error_model="numpy")


@_compiled
def pair_slacks(u, starts, i, j, root):
    """√γ v(j) − v(i)/√γ of every pair."""
    slack = np.empty(len(i))
    for block in range(len(starts) - 1):
        row = u[block]
        for at in range(starts[block], starts[block + 1]):
            slack[at] = root[at] * row[j[at]] - row[i[at]] / root[at]
    return slack


@_compiled
def pair_totals(values, starts, i, j, factor, sign, size):
    """Values put back at the secrets of their pairs, times a factor at j, and over it and with a sign at i.

    (blocks, size). With √γ and −1 the transpose of the slacks, A; with γ and 1 the diagonals of Aᵀ diag(values) A.
    """
    total = np.zeros((len(starts) - 1, size))
    for block in range(len(starts) - 1):
        row = total[block]
        for at in range(starts[block], starts[block + 1]):
            row[j[at]] += factor[at] * values[at]
            row[i[at]] += sign * values[at] / factor[at]
    return total


@_compiled
def _with_room(array, needed):
    """The array, or a copy with room for twice as much where it is too short."""
    if needed <= len(array):
        return array
    longer = np.empty(2 * needed, array.dtype)
    longer[: len(array)] = array
    return longer


@_compiled
def near_pairs(logs, enter, leave, limits, always, keys, settle, tolerance):
    """The pairs that are broken, and those that are near to it, to be kept, or always there: sorted keys of both."""
    blocks, size = logs.shape
    broken, broken_count = np.empty(16, np.int64), 0
    found, count = np.empty(len(keys) + len(keys) // 4 + size, np.int64), 0
    coarse = logs.astype(np.float32)
    wanted = np.zeros(-(-size // 8) * 8, np.uint8)
    eights = wanted.view(np.uint64)  # most are empty: they are looked at together
    old = 0
    for block in range(blocks):
        row = coarse[block]
        for i in range(size):
            first, here = (block * size + i) * size, row[i]
            above, there = enter[i], always[i]
            for j in range(size):
                wanted[j] = (here - row[j] > above[j]) | there[j]
            while old < len(keys) and keys[old] < first + size:
                j = keys[old] - first
                wanted[j] |= settle or here - row[j] > leave[i, j]
                old += 1
            found = _with_room(found, count + size)
            for eight in range(len(eights)):
                if eights[eight] == 0:
                    continue
                for j in range(8 * eight, min(8 * eight + 8, size)):
                    found[count] = first + j
                    count += wanted[j]
    for at in range(count):
        place, j = found[at] // size, found[at] % size
        block, i = place // size, place % size
        if logs[block, i] - logs[block, j] - limits[i, j] > tolerance:
            broken = _with_room(broken, broken_count + 1)
            broken[broken_count] = found[at]
            broken_count += 1
    return broken[:broken_count], found[:count].copy()


@_compiled
def taken_over(keys, old, values, otherwise):
    """The positive values that sorted keys had among older ones, and other values for the rest."""
    found, at = otherwise.copy(), 0
    for each in range(len(keys)):
        while at < len(old) and old[at] < keys[each]:
            at += 1
        if at < len(old) and old[at] == keys[each] and values[at] > 0:
            found[each] = values[at]
    return found


@_compiled
def less_opposites(values, starts, i, j, size):
    """Values of pairs (i, j) less those of (j, i), but not below zero."""
    found, table = np.empty_like(values), np.zeros((size, size))
    for block in range(len(starts) - 1):
        mine = range(starts[block], starts[block + 1])
        for at in mine:
            table[i[at], j[at]] = values[at]
        for at in mine:
            found[at] = max(values[at] - table[j[at], i[at]], 0.0)
        for at in mine:
            table[i[at], j[at]] = 0.0
    return found


@_compiled
def bounds_between(logs, to, back, unbounded):
    """The sums of the least and of the most that others' entries may be, (others, 2), given logarithms of columns."""
    sums = np.zeros((len(to), 2))
    for other in range(len(to)):
        there, here = to[other], back[other]
        for row in logs:
            least, most = -unbounded, unbounded
            for each in range(len(row)):
                least, most = max(least, row[each] - there[each]), min(most, row[each] + here[each])
            sums[other, 0] += np.exp(least)
            sums[other, 1] += np.exp(most)
    return sums
