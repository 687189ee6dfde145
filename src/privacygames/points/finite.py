"""Finite problems from problems for points: the secrets are the points of the prior."""

import numpy as np

from privacygames.beliefs import Prior
from privacygames.errors import TooLarge
from privacygames.points.problem import PointProblem, norms
from privacygames.problem import Problem
from privacygames.spaces import Area, Numbers, Places, Space

MOST_SECRETS = 3000
"""Largest number of points of a prior that are compared pair by pair."""


def finite_problem(problem: PointProblem) -> Problem:
    """The problem whose secrets are the points of the prior, with the same outputs, costs and distances.

    Differential privacy between these points alone is weaker than between all points.

    >>> town = pg.Area(2.0, 2.0)
    >>> problem = pg.PointProblem(pg.PointPrior(town, [(0.5, 0.5), (1.5, 1.2)]), [(0.5, 0.5)])
    >>> pg.points.finite_problem(problem)
    Problem(2 secrets, 1 observables, prior of 1 bits)
    """
    prior, region = problem.prior, problem.region
    if len(prior) > MOST_SECRETS:
        raise TooLarge(f"the prior has {len(prior)} points, and at most {MOST_SECRETS} are compared: aggregate them")
    space: Space
    if isinstance(region, Area):
        names = [f"point {number}" for number in range(1, len(prior) + 1)]
        space = Places(prior.points, labels=names, degrees=region.box is not None)
    else:
        space = Numbers(prior.points[:, 0].tolist(), unit=region.unit)
    return Problem(
        Prior(space, np.asarray(prior.probabilities)),
        cost=problem.costs.T,
        distance=problem.distances(prior.xy, prior.xy),
        distinguishability=norms(prior.xy, prior.xy),
        observables=problem.observables,
    )
