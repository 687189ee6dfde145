"""Presolve: exact reductions of a problem to a smaller program, and the way back for mechanism and dual values."""

from privacygames.solvers.interior.presolve.dominance import dominating_observables
from privacygames.solvers.interior.presolve.implied_ratios import implied_pairs
from privacygames.solvers.interior.presolve.merge_secrets import SecretClasses
from privacygames.solvers.interior.presolve.presolve import Presolve
from privacygames.solvers.interior.presolve.reduced_adversary import ReducedAdversary, reduced_adversaries
from privacygames.solvers.interior.presolve.reduced_problem import ReducedProblem
from privacygames.solvers.interior.presolve.zero_prior import (
    Filled,
    exponents_between,
    fill_in,
    margins,
    margins_within,
    may_be_left_out,
    widest_margins,
)

__all__ = [
    "Filled",
    "Presolve",
    "ReducedAdversary",
    "ReducedProblem",
    "SecretClasses",
    "dominating_observables",
    "exponents_between",
    "fill_in",
    "implied_pairs",
    "margins",
    "margins_within",
    "may_be_left_out",
    "reduced_adversaries",
    "widest_margins",
]
