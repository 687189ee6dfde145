"""Slacks, dual values and their changes along a step, entry by entry: each array is read once."""

import numpy as np
from numba import prange

from privacygames.solvers.linalg.kernels.parallel import accumulate, compiled, in_threads, parts


@in_threads
def ratio(first, second):
    """first/second."""
    found = np.empty(len(first))
    for at in prange(len(first)):
        found[at] = first[at] / second[at]
    return found


@in_threads
def used_up(value, change):
    """−change/value."""
    found = np.empty(len(value))
    for at in prange(len(value)):
        found[at] = -change[at] / value[at]
    return found


@in_threads
def undone(slack, dual):
    """−slack·dual."""
    found = np.empty(len(slack))
    for at in prange(len(slack)):
        found[at] = -slack[at] * dual[at]
    return found


@in_threads
def moved(value, step, change):
    """Value + step·change."""
    found = np.empty(len(value))
    for at in prange(len(value)):
        found[at] = value[at] + step * change[at]
    return found


@in_threads
def answered(base, dual, change, slack):
    """Base − dual·change/slack."""
    found = np.empty(len(slack))
    for at in prange(len(slack)):
        found[at] = base[at] - dual[at] * change[at] / slack[at]
    return found


@in_threads
def dual_change(wanted, dual, change, slack):
    """(wanted − dual·change)/slack."""
    found = np.empty(len(slack))
    for at in prange(len(slack)):
        found[at] = (wanted[at] - dual[at] * change[at]) / slack[at]
    return found


@in_threads
def least_growth(value, change):
    """The least of change/value: ∞ of none, and not a number where any is not."""
    found, lost = np.inf, 0
    for at in prange(len(value)):
        growth = change[at] / value[at]
        lost += np.isnan(growth)
        found = min(found, growth)
    return np.nan if lost else found


@in_threads
def speeds(slack, change, dual, dual_change):
    """The larger of the shares of slack and dual value that their changes use up."""
    found = np.empty(len(slack))
    for at in prange(len(slack)):
        found[at] = max(-change[at] / slack[at], -dual_change[at] / dual[at])
    return found


@in_threads
def product_total(slack, change, dual, dual_change, primal_step, dual_step):
    """Σ slack·dual after steps of these lengths along their changes."""
    total = 0.0
    for at in prange(len(slack)):
        total += (slack[at] + primal_step * change[at]) * (dual[at] + dual_step * dual_change[at])
    return total


@in_threads
def central(slack, change, dual, dual_change, target, most):
    """What makes products the target, to second order along changes: by that, no more than the most."""
    found = np.empty(len(slack))
    for at in prange(len(slack)):
        second = change[at] * dual_change[at]
        found[at] = target - slack[at] * dual[at] - min(max(second, -most), most)
    return found


@in_threads
def outlying(slack, change, dual, dual_change, primal_step, dual_step, low, high):
    """What brings products back between two bounds after steps along changes, but none by more than the upper one."""
    found = np.empty(len(slack))
    for at in prange(len(slack)):
        product = (slack[at] + primal_step * change[at]) * (dual[at] + dual_step * dual_change[at])
        found[at] = max(min(max(product, low), high) - product, -high)
    return found


@in_threads
def flatnonzero_above(values, level, threads):
    """Where values are above a level, in ascending order."""
    edges = parts(len(values), threads)
    starts = np.zeros(len(edges), np.int64)
    for part in prange(len(edges) - 1):
        count = 0
        for at in range(edges[part], edges[part + 1]):
            count += values[at] > level
        starts[part + 1] = count
    accumulate(starts)
    found = np.empty(starts[-1], np.int64)
    for part in prange(len(edges) - 1):
        into = starts[part]
        if into < starts[part + 1]:
            for at in range(edges[part], edges[part + 1]):
                if values[at] > level:
                    found[into] = at
                    into += 1
    return found


@compiled
def _multiply(first, second, found):
    np.dot(first, second, found)


@in_threads
def matmul(first, second, threads):
    """The product of two matrices, some rows at a time."""
    edges = parts(len(first), threads)
    found = np.empty((first.shape[0], second.shape[1]))
    for part in prange(len(edges) - 1):
        _multiply(first[edges[part] : edges[part + 1]], second, found[edges[part] : edges[part + 1]])
    return found
