"""The problem and what is asked of a mechanism; the document (TOML) that describes both."""

from privacygames.problem.adversary import Adversary, Opponent, hulls, max_distortion
from privacygames.problem.adversary_tables import adversaries_from
from privacygames.problem.bounds import MOST_ADVERSARIES, PLAIN, Bounds, Distortion, Promise
from privacygames.problem.document import problem_from, read_adversaries, read_prior, read_problem
from privacygames.problem.measures import Measure, distance_matrix, finite
from privacygames.problem.problem import Problem, cheapest_constant, rounding

__all__ = [
    "MOST_ADVERSARIES",
    "PLAIN",
    "Adversary",
    "Bounds",
    "Distortion",
    "Measure",
    "Opponent",
    "Problem",
    "Promise",
    "adversaries_from",
    "cheapest_constant",
    "distance_matrix",
    "finite",
    "hulls",
    "max_distortion",
    "problem_from",
    "read_adversaries",
    "read_prior",
    "read_problem",
    "rounding",
]
