"""Realised epsilon: the smallest ε a given mechanism actually keeps, and its largest log-ratio."""

from math import inf, log

import numpy as np

from privacygames.arrays import FloatArray, IntArray

ROUNDING = 1e-9
"""Relative room for rounding in logarithms: numbers claimed are rounded up by it."""

_ZERO = -1e300  # stands for log 0: differences of two are 0, of one with anything else are enormous


def log_ratios(weights: FloatArray | IntArray) -> FloatArray:
    """max_o ln p(o|s)/p(o|s') for every ordered pair of secrets; ∞ where some ratio is unbounded."""
    with np.errstate(divide="ignore"):
        logs = np.where(weights > 0, np.log(weights), _ZERO)
    largest = np.stack([(row - logs).max(axis=1) for row in logs])
    largest[largest > -_ZERO / 2] = np.inf
    return largest


def realised_epsilon(
    weights: FloatArray | IntArray, distinguishability: FloatArray, within: float | None = None
) -> float:
    """The smallest ε kept, in the metric form or, with ``within``, in the threshold form; ∞ if none is.

    Metric form: max over s ≠ s' and o of ln(p(o|s)/p(o|s')) / d^ε(s,s'). Pairs at distance 0 must have equal
    rows; pairs at distance ∞ are not compared.
    """
    largest = log_ratios(weights)
    np.fill_diagonal(largest, 0.0)
    if within is not None:
        return float(largest[distinguishability <= within].max(initial=0.0))
    same = distinguishability == 0
    if (largest[same] > 0).any():
        return float("inf")
    compared = ~same & np.isfinite(distinguishability)
    return float((largest[compared] / distinguishability[compared]).max(initial=0.0))


def largest_log_ratio(weights: IntArray) -> float:
    """Max ln p(o|s)/p(o|s') over all secrets and observables, rounded up: plain local ε; ∞ where one is unbounded."""
    highest, lowest = weights.max(axis=0), weights.min(axis=0)
    if ((lowest == 0) & (highest > 0)).any():
        return inf
    used = highest > 0
    pairs = zip(highest[used].tolist(), lowest[used].tolist(), strict=True)
    return max(log(high) - log(low) for high, low in pairs) * (1 + ROUNDING)
