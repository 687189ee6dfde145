"""Guarantees for points: mechanisms whose secrets are coordinates, private between any two points."""

from privacygames.points.attacks import PointAttack, optimal_attack
from privacygames.points.baselines import (
    PointBaseline,
    SnappedGrid,
    constant,
    exponential,
    laplace_cost,
    planar_laplace,
    remap,
    snapped,
    uniform,
)
from privacygames.points.certificate import PointCertificate
from privacygames.points.content import decode_mesh, encode_mesh
from privacygames.points.design import PointDesign, design
from privacygames.points.finite import finite_problem
from privacygames.points.guesses import BestGuesses, best_guesses
from privacygames.points.lattice_noise import LatticeNoise
from privacygames.points.measurements import (
    MeasuredRatios,
    cost_per_point,
    joint_probabilities,
    measure_ratios,
    point_pairs,
)
from privacygames.points.mechanism import (
    PointMechanism,
    PointSampleable,
    Position,
    PublicPointCertificate,
    PublicPointMechanism,
    certify_points,
)
from privacygames.points.mesh import Mesh
from privacygames.points.plateau_mechanism import PlateauMechanism
from privacygames.points.problem import PointCost, PointProblem
from privacygames.points.verification import PointVerification
from privacygames.points.weight_table import PointTable
from privacygames.points.worst_cost import LargestCost, largest_cost

__all__ = [
    "BestGuesses",
    "LargestCost",
    "LatticeNoise",
    "MeasuredRatios",
    "Mesh",
    "PlateauMechanism",
    "PointAttack",
    "PointBaseline",
    "PointCertificate",
    "PointCost",
    "PointDesign",
    "PointMechanism",
    "PointProblem",
    "PointSampleable",
    "PointTable",
    "PointVerification",
    "Position",
    "PublicPointCertificate",
    "PublicPointMechanism",
    "SnappedGrid",
    "best_guesses",
    "certify_points",
    "constant",
    "cost_per_point",
    "decode_mesh",
    "design",
    "encode_mesh",
    "exponential",
    "finite_problem",
    "joint_probabilities",
    "laplace_cost",
    "largest_cost",
    "measure_ratios",
    "optimal_attack",
    "planar_laplace",
    "point_pairs",
    "remap",
    "snapped",
    "uniform",
]


def __dir__() -> list[str]:
    return __all__
