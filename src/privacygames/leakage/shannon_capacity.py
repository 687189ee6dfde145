"""Shannon capacity by the algorithm of Blahut and Arimoto, with bounds that hold at every step."""

from math import inf, log2

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.beliefs import Prior
from privacygames.errors import InvalidProblem
from privacygames.leakage.capacities import Capacity
from privacygames.leakage.channel import Channel, Disclosing
from privacygames.validation import is_integer, is_number

ROUNDING = 1e-12
"""Bits by which both bounds are moved apart: a hundred times the rounding of their sums."""

MAX_STEP = 64.0
"""Largest exponent of a step: longer ones are rarely an improvement."""


def shannon_capacity(mechanism: Disclosing, *, tolerance: float = 1e-7, iterations: int = 100_000) -> Capacity:
    r"""Bounds on the largest Shannon leakage over all priors, in bits: the capacity of the channel.

    For every prior :math:`π` with outputs' distribution :math:`p`,
    :math:`I(π) \le \text{capacity} \le \max_s D(p(\cdot|s) \,\|\, p)`, so both bounds hold whenever the algorithm ends.

    Args:
        mechanism: a mechanism or a channel.
        tolerance: the algorithm ends where the bounds are this close, in bits.
        iterations: and after this many steps at the latest.

    >>> coin = pg.Mechanism.from_probabilities(
    ...     pg.Problem(pg.Prior.from_counts(pg.Categories(["yes", "no"]), [9, 1])), [[0.75, 0.25], [0.25, 0.75]]
    ... )
    >>> capacity = pg.leakage.shannon_capacity(coin)
    >>> round(capacity.lower, 6), round(capacity.upper, 6)
    (0.188722, 0.188722)
    """
    if not (is_number(tolerance) and 0 < tolerance < inf) or not is_integer(iterations):
        raise InvalidProblem("tolerance must be a positive number, and iterations an integer, 1 or more")
    channel = Channel.of(mechanism)
    table = channel.probabilities
    prior = np.full(len(table), 1.0 / len(table))
    best, lower, upper = prior, 0.0, log2(len(table))
    step = 1.0
    divergences, leakage = _divergences(table, prior)
    for _ in range(iterations):
        upper = min(upper, float(divergences.max()))
        if leakage > lower:
            best, lower = prior, leakage
        if upper - lower <= tolerance:
            break
        following = _tilt(prior, step * divergences)
        next_divergences, next_leakage = _divergences(table, following)
        if next_leakage < leakage and step > 1.0:  # too long a step; of length 1 it is Blahut's, and never worse
            step = 1.0
            following = _tilt(prior, divergences)
            next_divergences, next_leakage = _divergences(table, following)
        else:
            step = min(step * 1.5, MAX_STEP)
        prior, divergences, leakage = following, next_divergences, next_leakage
    return Capacity(max(lower - ROUNDING, 0.0), upper + ROUNDING, Prior(channel.secrets, best / best.sum()))


def _tilt(prior: FloatArray, exponents: FloatArray) -> FloatArray:
    """The prior times 2^exponents, normalised."""
    weights = prior * np.exp2(exponents - exponents.max())
    weights = np.where(weights > 1e-50, weights, 0.0)
    return np.asarray(weights / weights.sum())


def _divergences(table: FloatArray, prior: FloatArray) -> tuple[FloatArray, float]:
    """Each secret's divergence D(p(·|s) ‖ p) in bits, and its mean over the prior: mutual information."""
    outputs = prior @ table
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(table > 0, np.log2(table / outputs), 0.0)
    divergences = np.where(table > 0, table * logs, 0.0).sum(axis=1)
    possible = prior > 0
    return divergences, float(prior[possible] @ divergences[possible])
