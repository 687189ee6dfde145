"""Guarantees for points: mechanisms whose secrets are coordinates, private between any two points."""

from privacygames.points.certificate import PointCertificate
from privacygames.points.design import PointDesign, design
from privacygames.points.finite import finite_problem
from privacygames.points.guesses import BestGuesses, best_guesses
from privacygames.points.mechanism import (
    PointMechanism,
    PointSampleable,
    Position,
    PublicPointCertificate,
    PublicPointMechanism,
    certify_points,
)
from privacygames.points.mesh import Mesh
from privacygames.points.problem import PointCost, PointProblem
from privacygames.points.verification import PointVerification
from privacygames.points.worst_cost import LargestCost, largest_cost

__all__ = [
    "BestGuesses",
    "LargestCost",
    "Mesh",
    "PointCertificate",
    "PointCost",
    "PointDesign",
    "PointMechanism",
    "PointProblem",
    "PointSampleable",
    "PointVerification",
    "Position",
    "PublicPointCertificate",
    "PublicPointMechanism",
    "best_guesses",
    "certify_points",
    "design",
    "finite_problem",
    "largest_cost",
]


def __dir__() -> list[str]:
    return __all__
