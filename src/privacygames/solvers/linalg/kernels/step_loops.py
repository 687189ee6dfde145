"""Slacks, dual values and their changes along a step, entry by entry: each array is read once."""

import numpy as np
from numba import njit

_compiled = njit(nogil=True, cache=True, error_model="numpy")


@_compiled
def dual_change(wanted, dual, change, slack):
    """(wanted − dual·change)/slack."""
    found = np.empty(len(slack))
    for at in range(len(slack)):
        found[at] = (wanted[at] - dual[at] * change[at]) / slack[at]
    return found


@_compiled
def least_growth(value, change):
    """The least of change/value: ∞ of none, and not a number where any is not."""
    found = np.inf
    for at in range(len(value)):
        growth = change[at] / value[at]
        if np.isnan(growth):
            return growth
        found = min(found, growth)
    return found


@_compiled
def speeds(slack, change, dual, dual_change):
    """The larger of the shares of slack and dual value that their changes use up."""
    found = np.empty(len(slack))
    for at in range(len(slack)):
        found[at] = max(-change[at] / slack[at], -dual_change[at] / dual[at])
    return found


@_compiled
def product_total(slack, change, dual, dual_change, primal_step, dual_step):
    """Σ slack·dual after steps of these lengths along their changes."""
    total = 0.0
    for at in range(len(slack)):
        total += (slack[at] + primal_step * change[at]) * (dual[at] + dual_step * dual_change[at])
    return total


@_compiled
def central(slack, change, dual, dual_change, target, most):
    """What makes products the target, to second order along changes: by that, no more than the most."""
    found = np.empty(len(slack))
    for at in range(len(slack)):
        second = change[at] * dual_change[at]
        found[at] = target - slack[at] * dual[at] - min(max(second, -most), most)
    return found


@_compiled
def outlying(slack, change, dual, dual_change, steps, bounds):
    """What brings products back between two bounds after steps along changes, but none by more than the upper one."""
    found, (low, high) = np.empty(len(slack)), bounds
    for at in range(len(slack)):
        product = (slack[at] + steps[0] * change[at]) * (dual[at] + steps[1] * dual_change[at])
        found[at] = max(min(max(product, low), high) - product, -high)
    return found
