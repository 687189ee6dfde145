"""The problem and what is asked of a mechanism; the document (TOML) that describes both."""

from privacygames.problem.adversary import Adversary, AdversaryArrays, max_distortion, mixture_groups
from privacygames.problem.adversary_document import parse_adversaries
from privacygames.problem.bounds import (
    MAX_ADVERSARIES,
    PROBLEM_ADVERSARY,
    Bounds,
    BoundsArguments,
    Distortion,
    DistortionGuarantee,
)
from privacygames.problem.document import ProblemFile, parse_problem, read_problem
from privacygames.problem.measures import Measure, distance_matrix, require_finite
from privacygames.problem.problem import Problem, cheapest_constant, distortion_rounding
from privacygames.problem.units import (
    ANY_PAIR,
    HAMMING_COST,
    HAMMING_DISTANCE,
    Scale,
    cost_scale,
    distance_scale,
    distinguishability_scale,
    format_epsilon,
    measure_scale,
)

__all__ = [
    "ANY_PAIR",
    "HAMMING_COST",
    "HAMMING_DISTANCE",
    "MAX_ADVERSARIES",
    "PROBLEM_ADVERSARY",
    "Adversary",
    "AdversaryArrays",
    "Bounds",
    "BoundsArguments",
    "Distortion",
    "DistortionGuarantee",
    "Measure",
    "Problem",
    "ProblemFile",
    "Scale",
    "cheapest_constant",
    "cost_scale",
    "distance_matrix",
    "distance_scale",
    "distinguishability_scale",
    "distortion_rounding",
    "format_epsilon",
    "max_distortion",
    "measure_scale",
    "mixture_groups",
    "parse_adversaries",
    "parse_problem",
    "read_problem",
    "require_finite",
]
