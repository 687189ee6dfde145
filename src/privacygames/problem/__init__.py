"""The problem and what is asked of a mechanism; the document (TOML) that describes both."""

from typing import TYPE_CHECKING

from privacygames.lazy_names import lazy_names
from privacygames.problem.adversary import Adversary, AdversaryArrays, max_distortion, mixture_groups
from privacygames.problem.bounds import (
    MAX_ADVERSARIES,
    PROBLEM_ADVERSARY,
    Bounds,
    BoundsArguments,
    Distortion,
    DistortionGuarantee,
    require_epsilon,
)
from privacygames.problem.measures import Measure, distance_matrix, require_finite
from privacygames.problem.problem import Problem, cheapest_constant, distortion_rounding
from privacygames.problem.units import (
    ANY_PAIR,
    BETWEEN_COORDINATES,
    HAMMING_COST,
    HAMMING_DISTANCE,
    Scale,
    cost_scale,
    distance_scale,
    distinguishability_scale,
    format_epsilon,
    measure_scale,
)

if TYPE_CHECKING:
    from privacygames.problem.adversary_document import (
        DocumentAdversary,
        distortion_bounds,
        document_adversary,
        parse_adversaries,
        read_adversaries,
    )
    from privacygames.problem.document import ProblemFile, parse_problem
    from privacygames.problem.prior_document import prior_from
    from privacygames.problem.visit_csv import CountTable, csv_path
else:  # a problem that is not read from a document needs none of these
    __getattr__ = lazy_names(
        __name__,
        {
            "adversary_document": [
                "DocumentAdversary",
                "distortion_bounds",
                "document_adversary",
                "parse_adversaries",
                "read_adversaries",
            ],
            "document": ["ProblemFile", "parse_problem"],
            "prior_document": ["prior_from"],
            "visit_csv": ["CountTable", "csv_path"],
        },
    )

__all__ = [
    "ANY_PAIR",
    "BETWEEN_COORDINATES",
    "HAMMING_COST",
    "HAMMING_DISTANCE",
    "MAX_ADVERSARIES",
    "PROBLEM_ADVERSARY",
    "Adversary",
    "AdversaryArrays",
    "Bounds",
    "BoundsArguments",
    "CountTable",
    "Distortion",
    "DistortionGuarantee",
    "DocumentAdversary",
    "Measure",
    "Problem",
    "ProblemFile",
    "Scale",
    "cheapest_constant",
    "cost_scale",
    "csv_path",
    "distance_matrix",
    "distance_scale",
    "distinguishability_scale",
    "distortion_bounds",
    "distortion_rounding",
    "document_adversary",
    "format_epsilon",
    "max_distortion",
    "measure_scale",
    "mixture_groups",
    "parse_adversaries",
    "parse_problem",
    "prior_from",
    "read_adversaries",
    "require_epsilon",
    "require_finite",
]
