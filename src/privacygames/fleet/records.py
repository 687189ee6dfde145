"""Records of both kinds: the functions for cells or for points, by what the people of a fleet share."""

import numpy as np

from privacygames.arrays import FloatArray, content_hash
from privacygames.beliefs import PointPrior
from privacygames.canonical import digest_of
from privacygames.certificates import check
from privacygames.errors import InvalidFile
from privacygames.fleet.person_record import prior_of, statement_of
from privacygames.fleet.point_record import certified_point_mechanism, point_prior_of
from privacygames.fleet.shared_problem import AnyShared, SharedPoints, SharedProblem

AnyPrior = FloatArray | PointPrior
"""A person's prior: probabilities of cells or labels, or weighted points."""


def verify_record(record: bytes, shared: AnyShared) -> None:
    """Check everything that a fleet guarantees about the mechanism in a record.

    Raises:
        InvalidFile: the record is damaged, or of another fleet.
        GuaranteeViolated: its mechanism does not keep the guarantees.
    """
    if isinstance(shared, SharedPoints):
        certified_point_mechanism(record, shared)
    else:
        check(statement_of(record, require_cells(shared)))


def prior_in(record: bytes, shared: AnyShared) -> AnyPrior:
    """The prior that a record's mechanism was designed for."""
    if isinstance(shared, SharedPoints):
        return point_prior_of(record, shared)
    return prior_of(record, require_cells(shared))


def prior_digest(prior: AnyPrior) -> str:
    """SHA-256 of a prior, whose space all people share."""
    if isinstance(prior, PointPrior):
        return digest_of("point prior", content_hash(prior.xy), content_hash(prior.probabilities))
    return content_hash(prior)


def same_prior(one: AnyPrior, other: AnyPrior) -> bool:
    """Whether two priors are equal, to the last bit."""
    if isinstance(one, PointPrior) or isinstance(other, PointPrior):
        return one == other
    return np.array_equal(one, other)


def require_cells(shared: AnyShared) -> SharedProblem:
    """What people share whose secrets are cells or labels."""
    if not isinstance(shared, SharedProblem):
        raise InvalidFile("the secrets of this fleet are points: open it with fleet.PointFleet or fleet.open_fleet")
    return shared


def require_points(shared: AnyShared) -> SharedPoints:
    """What people share whose secrets are points."""
    if not isinstance(shared, SharedPoints):
        raise InvalidFile("the secrets of this fleet are cells or labels: open it with fleet.Fleet or fleet.open_fleet")
    return shared
