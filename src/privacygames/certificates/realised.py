"""Realised epsilon: the smallest ε that a mechanism satisfies, and its largest log-ratio."""

from math import inf, log

import numpy as np

from privacygames.arrays import FloatArray, IntArray

ROUNDING = 1e-9
"""Relative margin for the rounding of logarithms, by which stated values are rounded up."""

_LOG_ZERO = -1e300  # in place of log 0: the difference of two is 0, and of one with any other logarithm enormous


def log_ratios(weights: FloatArray | IntArray) -> FloatArray:
    """max_o ln p(o|s)/p(o|s') for every ordered pair of secrets; ∞ where some ratio is unbounded."""
    with np.errstate(divide="ignore"):
        logs = np.where(weights > 0, np.log(weights), _LOG_ZERO)
    largest = np.stack([(row - logs).max(axis=1) for row in logs])
    largest[largest > -_LOG_ZERO / 2] = np.inf
    return largest


def realised_epsilon(
    weights: FloatArray | IntArray, distinguishability: FloatArray, within: float | None = None
) -> float:
    """The smallest ε satisfied, in the metric form or, with ``within``, in the threshold form; ∞ if none is.

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
    """Max ln p(o|s)/p(o|s') over all secrets and outputs, rounded up: the ε of local differential privacy, or ∞."""
    highest, lowest = weights.max(axis=0), weights.min(axis=0)
    if ((lowest == 0) & (highest > 0)).any():
        return inf
    used = highest > 0
    pairs = zip(highest[used].tolist(), lowest[used].tolist(), strict=True)
    return max(log(high) - log(low) for high, low in pairs) * (1 + ROUNDING)
