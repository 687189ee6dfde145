"""The parts of a direction inside the blocks, each in one loop: solutions with a block and what is done to its pairs.

Pairs are given as in ``pair_loops.py``.
"""

import numpy as np
from numba import prange

from privacygames.solvers.linalg.kernels.block_loops import add_solution
from privacygames.solvers.linalg.kernels.parallel import in_threads


@in_threads
def begun(packed, starts, i, j, root, slack, dual, wanted, right):  # noqa: ARG001
    """H⁻¹ right, to which is added, in place, what pairs contribute when their products are to change by ``wanted``."""
    found = np.zeros(right.shape)
    for block in prange(len(right)):
        row = right[block]
        for at in range(starts[block], starts[block + 1]):
            value = wanted[at] / slack[at]
            row[j[at]] += root[at] * value
            row[i[at]] -= value / root[at]
        add_solution(packed[block], row, found[block])
    return found


@in_threads
def refined(packed, starts, i, j, root, slack, dual, right, du):
    """Add H⁻¹ (right − Aᵀ W A du) to du, with A and W of the pairs."""
    for block in prange(len(right)):
        row, change = right[block], du[block]
        for at in range(starts[block], starts[block + 1]):
            value = (root[at] * change[j[at]] - change[i[at]] / root[at]) * dual[at] / slack[at]
            row[j[at]] -= root[at] * value
            row[i[at]] += value / root[at]
        add_solution(packed[block], row, change)


@in_threads
def finished(
    packed,
    starts,
    i,
    j,
    root,
    slack,
    dual,
    wanted,
    base_slack,
    base_dual,
    force_starts,
    forced,
    force,
    right,
    du,
    slack_change,
    dual_change,
):
    """Add H⁻¹ right to du, in place; how slacks and dual values of pairs change, and the least growths of both.

    Products are to change by ``wanted``, or not where that is empty; forces add to the dual values of the pairs
    ``forced``, those of block b from ``force_starts[b]`` on; and a base direction's changes are added, if not empty.
    """
    least = np.empty((len(right), 2))
    for block in prange(len(right)):
        change = du[block]
        add_solution(packed[block], right[block], change)
        for at in range(starts[block], starts[block + 1]):
            here = root[at] * change[j[at]] - change[i[at]] / root[at]
            asked = wanted[at] if len(wanted) else 0.0
            slack_change[at], dual_change[at] = here, (asked - dual[at] * here) / slack[at]
        for each in range(force_starts[block], force_starts[block + 1]):
            dual_change[forced[each]] += force[each]
        slack_growth, dual_growth, lost = np.inf, np.inf, False
        for at in range(starts[block], starts[block + 1]):
            if len(base_slack):
                slack_change[at] += base_slack[at]
                dual_change[at] += base_dual[at]
            first, second = slack_change[at] / slack[at], dual_change[at] / dual[at]
            slack_growth, dual_growth = min(slack_growth, first), min(dual_growth, second)
            lost |= np.isnan(first + second)
        least[block, 0], least[block, 1] = (np.nan, np.nan) if lost else (slack_growth, dual_growth)
    return least


@in_threads
def finished_others(first, slack, dual, wanted, base_slack, base_dual, forced, force, slack_change, dual_change):
    """The same for inequalities from the first on that are no pairs, the changes of whose slacks are there already."""
    for at in prange(first, len(slack)):
        asked = wanted[at] if len(wanted) else 0.0
        dual_change[at] = (asked - dual[at] * slack_change[at]) / slack[at]
    for each in range(len(forced)):
        dual_change[forced[each]] += force[each]
    slack_growth, dual_growth, lost = np.inf, np.inf, 0
    for at in prange(first, len(slack)):
        if len(base_slack):
            slack_change[at] += base_slack[at]
            dual_change[at] += base_dual[at]
        here, there = slack_change[at] / slack[at], dual_change[at] / dual[at]
        slack_growth, dual_growth = min(slack_growth, here), min(dual_growth, there)
        lost += np.isnan(here + there)
    least = np.empty((1, 2))
    least[0, 0], least[0, 1] = (np.nan, np.nan) if lost else (slack_growth, dual_growth)
    return least
