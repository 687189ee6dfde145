"""What a file for a device says about the data that its mechanism was designed from."""

import numpy as np

from privacygames.beliefs import PointPrior
from privacygames.mechanism import Disclosure, Mechanism, PublicMechanism
from privacygames.points import PointMechanism, PublicPointMechanism
from privacygames.problem import cost_scale, distance_scale, distinguishability_scale
from privacygames.spaces import Area, Box, Grid, Region, Space
from privacygames.traces import is_public_box

Exportable = Mechanism | PublicMechanism | PointMechanism | PublicPointMechanism
"""The mechanisms that a file for a device can hold."""


def disclosure_of(mechanism: Exportable) -> Disclosure:
    """Whether a mechanism was computed from a prior, or is the same for everybody with these settings.

    The probabilities of outputs show which secrets are frequent, so a file is private unless the prior is uniform, all
    measures are named ones, no adversary has a prior of their own, and the box, if there is one, is on the public
    lattice. Of a file without its prior nothing of that is known.

    >>> ages = pg.Numbers(range(18, 22))
    >>> even = pg.design(pg.Problem(pg.Prior.uniform(ages)), epsilon=0.5)
    >>> uneven = pg.design(pg.Problem(pg.Prior.from_counts(ages, [4, 1, 1, 1])), epsilon=0.5)
    >>> pg.device.disclosure_of(even).is_private, pg.device.disclosure_of(uneven).is_private
    (False, True)
    """
    if isinstance(mechanism, Mechanism):
        same_for_all = _is_public_design(mechanism)
    else:
        same_for_all = isinstance(mechanism, PointMechanism) and _is_public_point_design(mechanism)
    return Disclosure.SHAREABLE if same_for_all else Disclosure.COMPUTED


def _is_public_design(mechanism: Mechanism) -> bool:
    problem = mechanism.problem
    scales = cost_scale(problem), distance_scale(problem), distinguishability_scale(problem)
    return (
        float(np.ptp(problem.prior.probabilities)) == 0.0
        and all(scale.name for scale in scales)
        and not mechanism.bounds.named_adversaries
        and mechanism.observables == mechanism.secrets
        and _has_public_box(mechanism.secrets)
    )


def _is_public_point_design(mechanism: PointMechanism) -> bool:
    problem = mechanism.problem
    return (
        problem.prior == PointPrior.uniform(problem.region, points=len(problem.prior))
        and problem.cost.is_convex
        and not mechanism.bounds.named_adversaries
        and isinstance(mechanism.observables, Grid)
        and mechanism.observables.box == _box(problem.region)
        and _has_public_box(problem.region)
    )


def _has_public_box(secrets: Space | Region) -> bool:
    box = _box(secrets)
    return box is None or is_public_box(box)


def _box(secrets: Space | Region) -> Box | None:
    return secrets.box if isinstance(secrets, Grid | Area) else None
