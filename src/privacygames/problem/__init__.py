"""The problem and what is asked of a mechanism; the document (TOML) that describes both."""

from privacygames.problem.adversary import Adversary, AdversaryArrays, hulls, max_distortion
from privacygames.problem.adversary_document import adversaries_from
from privacygames.problem.bounds import MOST_ADVERSARIES, PLAIN, Bounds, Distortion, DistortionGuarantee
from privacygames.problem.document import problem_from, read_adversaries, read_prior, read_problem
from privacygames.problem.measures import Measure, distance_matrix, finite
from privacygames.problem.problem import Problem, cheapest_constant, rounding
from privacygames.problem.units import (
    ANY_PAIR,
    UNTRUE,
    WRONG,
    Scale,
    cost_scale,
    distance_scale,
    distinguishability_scale,
    scale_of,
    told_epsilon,
)

__all__ = [
    "ANY_PAIR",
    "MOST_ADVERSARIES",
    "PLAIN",
    "UNTRUE",
    "WRONG",
    "Adversary",
    "AdversaryArrays",
    "Bounds",
    "Distortion",
    "DistortionGuarantee",
    "Measure",
    "Problem",
    "Scale",
    "adversaries_from",
    "cheapest_constant",
    "cost_scale",
    "distance_matrix",
    "distance_scale",
    "distinguishability_scale",
    "finite",
    "hulls",
    "max_distortion",
    "problem_from",
    "read_adversaries",
    "read_prior",
    "read_problem",
    "rounding",
    "scale_of",
    "told_epsilon",
]
