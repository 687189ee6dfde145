"""Loops over the pairs of secrets in a batch of blocks.

Pairs are given by ``starts`` (those of block b are starts[b] to starts[b + 1]), ``i``, ``j`` and √γ, their ``root``,
in ascending order of i and j.
"""

import numpy as np
from numba import prange

from privacygames.solvers.linalg.kernels.parallel import accumulate, compiled, in_threads, parts


@in_threads
def pair_slacks(u, starts, i, j, root):
    """√γ v(j) − v(i)/√γ of every pair."""
    slack = np.empty(len(i))
    for block in prange(len(starts) - 1):
        row = u[block]
        for at in range(starts[block], starts[block + 1]):
            slack[at] = root[at] * row[j[at]] - row[i[at]] / root[at]
    return slack


@in_threads
def pair_totals(values, starts, i, j, root, size):
    """Values put back at the secrets of their pairs, times √γ at j and −1/√γ at i: the transpose of the slacks."""
    total = np.zeros((len(starts) - 1, size))
    for block in prange(len(starts) - 1):
        row = total[block]
        for at in range(starts[block], starts[block + 1]):
            row[j[at]] += root[at] * values[at]
            row[i[at]] -= values[at] / root[at]
    return total


@in_threads
def pair_squares(weights, starts, i, j, root, size):
    """The diagonals of Aᵀ diag(weights) A, with A the slacks, and the entries beside them: minus the weights."""
    total, beside = np.zeros((len(starts) - 1, size)), np.empty(len(weights))
    for block in prange(len(starts) - 1):
        row = total[block]
        for at in range(starts[block], starts[block + 1]):
            square = root[at] * root[at]
            row[j[at]] += square * weights[at]
            row[i[at]] += weights[at] / square
            beside[at] = -weights[at]
    return total, beside


@compiled
def _mark(column, enter, leave, always, i, j, settle, logs, wanted):
    """Mark the pairs of a block that are near to binding, to be kept, or always there; how many."""
    logs[:] = np.log(column)
    row, size, count, old = logs.astype(np.float32), len(logs), 0, 0
    for first in range(size):
        here, above, there, marks = row[first], enter[first], always[first], wanted[first]
        for second in range(size):
            marks[second] = (here - row[second] > above[second]) | there[second]
        marks[size:] = 0
        while old < len(i) and i[old] == first:
            second = j[old]
            marks[second] |= settle or here - row[second] > leave[first, second]
            old += 1
        for second in range(size):
            count += marks[second]
    return count


@compiled
def _list(wanted, block, keys, i, j, root, roots):
    """List the marked pairs of a block."""
    size, at = len(roots), 0
    for first in range(size):
        marks = wanted[first]
        eights = marks.view(np.uint64)  # most are empty: they are looked at together
        for eight in range(len(eights)):
            if eights[eight] == 0:
                continue
            for second in range(8 * eight, 8 * eight + 8):
                if marks[second]:
                    keys[at] = (block * size + first) * size + second
                    i[at], j[at], root[at] = first, second, roots[first, second]
                    at += 1


@compiled
def _largest_step(before, after, logs, limits, i, j, root, tolerance):
    """The largest share of the way at which pairs that are broken at its end still hold; ∞ where none is."""
    found = np.inf
    for at in range(len(i)):
        first, second = i[at], j[at]
        if logs[first] - logs[second] - limits[first, second] > tolerance:
            start = root[at] * before[second] - before[first] / root[at]
            end = root[at] * after[second] - after[first] / root[at]
            found = min(found, 1.0, start / max(start - end, 1e-300))
    return found


@in_threads
def near_pairs(before, after, enter, leave, limits, always, roots, starts, i, j, settle, tolerance):
    """How much of the way from some columns to others all pairs allow, by block, and the pairs to see at its end.

    ∞ where all hold at the end. The pairs are those near to binding, to be kept, or always there: keys, starts, i, j
    and roots.
    """
    blocks, size = after.shape
    wanted = np.empty((blocks, size, -(-size // 8) * 8), np.uint8)
    logs, ends = np.empty((blocks, size)), np.zeros(blocks + 1, np.int64)
    for block in prange(blocks):
        mine = slice(starts[block], starts[block + 1])
        tables = enter, leave, always
        ends[block + 1] = _mark(after[block], *tables, i[mine], j[mine], settle, logs[block], wanted[block])
    accumulate(ends)
    count = ends[-1]
    keys, first, second = np.empty(count, np.int64), np.empty(count, np.int32), np.empty(count, np.int32)
    root, allowed = np.empty(count), np.empty(blocks)
    for block in prange(blocks):
        mine = slice(ends[block], ends[block + 1])
        _list(wanted[block], block, keys[mine], first[mine], second[mine], root[mine], roots)
        pairs = first[mine], second[mine], root[mine]
        allowed[block] = _largest_step(before[block], after[block], logs[block], limits, *pairs, tolerance)
    return allowed, keys, ends, first, second, root


@compiled
def _take_over(i, j, old_i, old_j, values, slack, target, found):
    """The positive values that the pairs of a block had among older ones, and target/slack for the rest."""
    at = 0
    for each in range(len(i)):
        found[each] = target / slack[each]
        while at < len(old_i) and (old_i[at] < i[each] or (old_i[at] == i[each] and old_j[at] < j[each])):
            at += 1
        if at < len(old_i) and old_i[at] == i[each] and old_j[at] == j[each] and values[at] > 0:
            found[each] = values[at]


@in_threads
def taken_over(starts, i, j, old_starts, old_i, old_j, values, slack, target):
    """The positive values that pairs had among older ones, and target/slack for the rest."""
    found = np.empty(len(i))
    for block in prange(len(starts) - 1):
        new, old = slice(starts[block], starts[block + 1]), slice(old_starts[block], old_starts[block + 1])
        _take_over(i[new], j[new], old_i[old], old_j[old], values[old], slack[new], target, found[new])
    return found


@in_threads
def less_opposites(values, starts, i, j, root, size, threads):
    """Values of pairs (i, j) less those of (j, i), both divided by √γ, but not below zero; times √γ again."""
    found, edges = np.empty_like(values), parts(len(starts) - 1, threads)
    for part in prange(len(edges) - 1):
        table = np.zeros((size, size))
        for block in range(edges[part], edges[part + 1]):
            for at in range(starts[block], starts[block + 1]):
                table[i[at], j[at]] = values[at] / root[at]
            for at in range(starts[block], starts[block + 1]):
                found[at] = max(table[i[at], j[at]] - table[j[at], i[at]], 0.0) * root[at]
            for at in range(starts[block], starts[block + 1]):
                table[i[at], j[at]] = 0.0
    return found


@in_threads
def bounds_between(logs, to, back, unbounded):
    """The sums of the least and of the most that others' entries may be, (others, 2), given logarithms of columns."""
    sums = np.zeros((len(to), 2))
    for other in prange(len(to)):
        there, here, low, high = to[other], back[other], 0.0, 0.0
        for block in range(len(logs)):
            row, least, most = logs[block], -unbounded, unbounded
            for each in range(len(row)):
                least, most = max(least, row[each] - there[each]), min(most, row[each] + here[each])
            low += np.exp(least)
            high += np.exp(most)
        sums[other, 0], sums[other, 1] = low, high
    return sums
