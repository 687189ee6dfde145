"""Where the page's controls start: bounds that a mechanism is known to meet, so that nobody begins with the impossible.

Some mechanisms are known without a design. One gives the same output always. Others are the exponential mechanism and
the usual noise, each output replaced by the cheapest one given it, which keeps ε. And the first may be given with a
probability λ, one of the others otherwise: this keeps ε, too, costs the weighted average, and has at least λ of the
largest possible error.
"""

from math import log
from typing import Any

import numpy as np

from privacygames import baselines
from privacygames.arrays import FloatArray, loss_matmul
from privacygames.errors import InvalidProblem
from privacygames.points import PointProblem
from privacygames.problem import Problem, distinguishability_scale
from privacygames.spaces import Grid

View = dict[str, Any]

ERROR_SHARE = 0.5
"""Share of the largest error that is asked for at first: half as much as if nothing was told."""

COST_SHARE = 0.5
"""Share of the cost of telling nothing that is allowed at first, where usefulness comes first."""

START_LOG_RATIO, START_LABELS_LOG_RATIO, START_POINTS_LOG_RATIO = 4.0, 3.0, 2.2
"""Log-ratio at first: between secrets a middle distance apart; where all are equally far apart (a factor of 20); and
between points, where a larger one needs a finer mesh and more time."""

ODDS_SETTLED, NEAR_ODDS_SETTLED = log(1e6), log(100)
"""Log-ratios from which an output settles which of two secrets it is: the farthest two, and the nearest two."""

MOST_CELLS = 150
"""Largest grid for which planar Laplace noise is computed: a tenth of a second."""

BELOW_RED = 0.95
"""Share of the smallest ε that is called too large, above which no control starts."""

KNOWN_EPSILONS, KNOWN_EPSILONS_OF_POINTS = 8, 3
"""Values of ε at which the cost of a known mechanism is told, from one end of the control to the other."""


def epsilon_gone(epsilon: View) -> float:
    """The ε from which privacy counts as gone: between the farthest two secrets, or even between the nearest two."""
    near = NEAR_ODDS_SETTLED / float(epsilon["near"])
    return near if not epsilon["farthest"] else min(near, ODDS_SETTLED / float(epsilon["farthest"]))


def start_view(problem: Problem, epsilon: View, *, most_distortion: float) -> View:
    """Where the controls start, and costs that are known to be possible.

    Args:
        problem: the problem.
        epsilon: the range of ε, with the distances it is explained at.
        most_distortion: the largest error there is.
    """
    prior, cost = problem.prior.probabilities, problem.cost
    alike = epsilon["near"] == epsilon["farthest"]
    first = _first_epsilon(epsilon, START_LABELS_LOG_RATIO if alike else START_LOG_RATIO)
    named = bool(distinguishability_scale(problem).name)  # those obey the triangle inequality
    known = []
    if named and problem.observables == problem.space and np.isfinite(cost).all():
        apart = (1.0 if alike else 0.5) * problem.distinguishability
        known = [_known(cost, prior, apart, value) for value in _epsilons(epsilon, first, KNOWN_EPSILONS)]
        known += [_remapped(cost, prior, noise, first) for noise in _noise(problem, first)]
    return _view(cost, prior, known, first, most_distortion)


def point_start_view(problem: PointProblem, epsilon: View) -> View:
    """The same for a problem about points, whose costs are those of the places of its prior."""
    prior, cost = problem.prior.probabilities, problem.costs.T
    offsets = problem.outputs[:, None, :] - problem.prior.xy[None, :, :]
    apart = 0.5 * np.sqrt((offsets**2).sum(axis=2))
    first = _first_epsilon(epsilon, START_POINTS_LOG_RATIO)
    known = [_known(cost, prior, apart, value) for value in _epsilons(epsilon, first, KNOWN_EPSILONS_OF_POINTS)]
    return _view(cost, prior, known, first, problem.max_distortion())


def _first_epsilon(epsilon: View, log_ratio: float) -> float:
    first = min(log_ratio / epsilon["far"], BELOW_RED * epsilon_gone(epsilon))
    return float(np.clip(first, epsilon["low"], epsilon["high"]))


def _epsilons(epsilon: View, first: float, count: int) -> list[float]:
    """The values of ε at which a known mechanism is told, the one where the control starts among them."""
    return sorted([first, *np.geomspace(epsilon["low"], epsilon["high"], count).tolist()])


def _view(cost: FloatArray, prior: FloatArray, known: list[View], first: float, most: float) -> View:
    averages = loss_matmul(cost, prior)
    blind = int(averages.argmin())
    blind_cost = float(averages[blind])
    least = min([blind_cost, *(each["cost"] for each in known if each["epsilon"] <= first)])
    return {
        "start": {"error": ERROR_SHARE * most, "epsilon": first, "cost": max(COST_SHARE * blind_cost, least)},
        "blind_worst_cost": float(cost[blind, prior > 0].max()),
        "known": known,
    }


def _known(cost: FloatArray, prior: FloatArray, apart: FloatArray, epsilon: float) -> View:
    """Average and largest cost of the exponential mechanism with its outputs replaced by the cheapest ones.

    Args:
        cost: (outputs, secrets).
        prior: the probability of each secret.
        apart: half of the distinguishability of outputs and secrets; all of it where any two secrets are equally far
            apart, because the normaliser is then the same for each secret.
        epsilon: the ε that it keeps.
    """
    weights = np.exp(-epsilon * (apart - apart.min(axis=0)))
    return _remapped(cost, prior, weights / weights.sum(axis=0), epsilon)


def _noise(problem: Problem, epsilon: float) -> list[FloatArray]:
    """Probabilities of outputs (rows) under the noise that is usual for the space, which often costs less."""
    if isinstance(problem.space, Grid) and len(problem.space) > MOST_CELLS:
        return []
    make = baselines.planar_laplace if isinstance(problem.space, Grid) else baselines.geometric
    try:
        return [make(problem, epsilon).probabilities.T]
    except InvalidProblem:  # made for other secrets
        return []


def _remapped(cost: FloatArray, prior: FloatArray, probabilities: FloatArray, epsilon: float) -> View:
    """Average and largest cost of a mechanism whose outputs are replaced by the cheapest ones."""
    expected = cost @ (prior * probabilities).T  # of each output (rows) in place of each (columns)
    costs = (probabilities * cost[expected.argmin(axis=0)]).sum(axis=0)
    return {"epsilon": epsilon, "cost": float(costs @ prior), "worst_cost": float(costs[prior > 0].max())}
