"""The problem and what is asked of a mechanism; the document (TOML) that describes both."""

from privacygames.problem.bounds import Bounds
from privacygames.problem.document import read_prior, read_problem
from privacygames.problem.measures import Measure, distance_matrix, finite
from privacygames.problem.problem import Problem, max_distortion, rounding

__all__ = [
    "Bounds",
    "Measure",
    "Problem",
    "distance_matrix",
    "finite",
    "max_distortion",
    "read_prior",
    "read_problem",
    "rounding",
]
