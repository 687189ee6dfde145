"""Guarantees for points: mechanisms whose secrets are coordinates, private between any two points of the plane."""

from privacygames.points.bernstein import Axis, Mesh
from privacygames.points.design import design, lower_bound
from privacygames.points.mechanism import PointCertificate, PointMechanism
from privacygames.points.prior import PointPrior

__all__ = ["Axis", "Mesh", "PointCertificate", "PointMechanism", "PointPrior", "design", "lower_bound"]


def __dir__() -> list[str]:
    return __all__
