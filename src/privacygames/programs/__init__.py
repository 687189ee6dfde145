"""The mathematics as linear programs: one builder per program of the paper, one function per family of rows."""

from privacygames.programs.attack_programs import least_favourable_program, minmax_pairs_attack_program
from privacygames.programs.constraint_rows import LARGEST_EXPONENT, numbered, ratio_pairs
from privacygames.programs.design_programs import design_program, tie_break
from privacygames.programs.leakage_programs import (
    best_prior_program,
    post_processing_program,
    prior_capacity_program,
)
from privacygames.programs.linear_program import LinearProgram, thinned
from privacygames.programs.tie_breaking_programs import (
    equal_cost_program,
    largest_entropy_program,
    least_worst_cost_program,
)

__all__ = [
    "LARGEST_EXPONENT",
    "LinearProgram",
    "best_prior_program",
    "design_program",
    "equal_cost_program",
    "largest_entropy_program",
    "least_favourable_program",
    "least_worst_cost_program",
    "minmax_pairs_attack_program",
    "numbered",
    "post_processing_program",
    "prior_capacity_program",
    "ratio_pairs",
    "thinned",
    "tie_break",
]
