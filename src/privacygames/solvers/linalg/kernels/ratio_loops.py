"""Loops over the ratio bounds √γ v(j) − v(i)/√γ ≥ 0 of a batch of blocks.

The pairs are given by ``starts`` (those of block b are starts[b] to starts[b + 1]), ``i``, ``j`` and √γ, their
``root``, in ascending order of i and j.
"""

import numpy as np
from numba import prange

from privacygames.solvers.linalg.kernels.parallel import accumulate, compiled, in_threads


@in_threads
def ratio_slacks(u, starts, i, j, root):
    """√γ v(j) − v(i)/√γ of every pair."""
    slack = np.empty(len(i))
    for block in prange(len(starts) - 1):
        row = u[block]
        for at in range(starts[block], starts[block + 1]):
            slack[at] = root[at] * row[j[at]] - row[i[at]] / root[at]
    return slack


@in_threads
def ratio_adjoint(values, starts, i, j, root, size):
    """The transpose of the slacks: values scattered to j times √γ, and to i times −1/√γ."""
    total = np.zeros((len(starts) - 1, size))
    for block in prange(len(starts) - 1):
        row = total[block]
        for at in range(starts[block], starts[block + 1]):
            row[j[at]] += root[at] * values[at]
            row[i[at]] -= values[at] / root[at]
    return total


@in_threads
def ratio_hessian(weights, starts, i, j, root, size):
    """The diagonals and the off-diagonal entries of Aᵀ diag(weights) A, with A the map from u to the slacks."""
    diagonal, off_diagonal = np.zeros((len(starts) - 1, size)), np.empty(len(weights))
    for block in prange(len(starts) - 1):
        row = diagonal[block]
        for at in range(starts[block], starts[block + 1]):
            square = root[at] * root[at]
            row[j[at]] += square * weights[at]
            row[i[at]] += weights[at] / square
            off_diagonal[at] = -weights[at]
    return diagonal, off_diagonal


@compiled
def _mark(column, join, leave, always, i, j, keep_all, logs, marks):
    """Mark the pairs of a block that join, stay or are always in the set; returns how many there are."""
    logs[:] = np.log(column)
    row, size, count, old = logs.astype(np.float32), len(logs), 0, 0
    for first in range(size):
        log, thresholds, fixed, marked = row[first], join[first], always[first], marks[first]
        for second in range(size):
            marked[second] = (log - row[second] > thresholds[second]) | fixed[second]
        marked[size:] = 0
        while old < len(i) and i[old] == first:
            second = j[old]
            marked[second] |= keep_all or log - row[second] > leave[first, second]
            old += 1
        for second in range(size):
            count += marked[second]
    return count


@compiled
def _list(marks, block, keys, i, j, root, roots):
    """List the marked pairs of a block."""
    size, at = len(roots), 0
    for first in range(size):
        marked = marks[first]
        words = marked.view(np.uint64)  # most pairs are not marked: eight are skipped at a time
        for word in range(len(words)):
            if words[word] == 0:
                continue
            for second in range(8 * word, 8 * word + 8):
                if marked[second]:
                    keys[at] = (block * size + first) * size + second
                    i[at], j[at], root[at] = first, second, roots[first, second]
                    at += 1


@compiled
def _max_step(before, after, logs, exponents, i, j, root, tolerance):
    """The largest fraction of a step at which the pairs that are violated at its end still hold; ∞ without any."""
    step = np.inf
    for at in range(len(i)):
        first, second = i[at], j[at]
        if logs[first] - logs[second] - exponents[first, second] > tolerance:
            start = root[at] * before[second] - before[first] / root[at]
            end = root[at] * after[second] - after[first] / root[at]
            step = min(step, 1.0, start / max(start - end, 1e-300))
    return step


@in_threads
def check_ratios(before, after, join, leave, exponents, always, roots, starts, i, j, keep_all, tolerance):
    """The fraction of a step that all ratio bounds allow, and the working set at its end.

    Args:
        before: columns before the step, (blocks, n).
        after: columns after it, positive.
        join: log-ratios from which a pair joins the set, (n, n), in single precision.
        leave: log-ratios below which it leaves.
        exponents: the bounds on log-ratios.
        always: the pairs that are always in the set.
        roots: √γ of every pair.
        starts: the pairs of the set before the step; see the module.
        i: their first secrets.
        j: their second secrets.
        keep_all: whether none of them leaves.
        tolerance: the excess of a log-ratio from which its bound counts as violated.

    Returns:
        The fraction for every block (∞ for the whole step); then keys, starts, i, j and roots of the new set.
    """
    blocks, size = after.shape
    marks = np.empty((blocks, size, -(-size // 8) * 8), np.uint8)
    logs, ends = np.empty((blocks, size)), np.zeros(blocks + 1, np.int64)
    for block in prange(blocks):
        old = slice(starts[block], starts[block + 1])
        tables = join, leave, always
        ends[block + 1] = _mark(after[block], *tables, i[old], j[old], keep_all, logs[block], marks[block])
    accumulate(ends)
    count = ends[-1]
    keys, first, second = np.empty(count, np.int64), np.empty(count, np.int32), np.empty(count, np.int32)
    root, allowed = np.empty(count), np.empty(blocks)
    for block in prange(blocks):
        new = slice(ends[block], ends[block + 1])
        _list(marks[block], block, keys[new], first[new], second[new], root[new], roots)
        pairs = first[new], second[new], root[new]
        allowed[block] = _max_step(before[block], after[block], logs[block], exponents, *pairs, tolerance)
    return allowed, keys, ends, first, second, root
