"""Presolve: exact reductions of a problem to a smaller program, and postsolve of mechanism and dual values.

``reduced_problem`` collects what can be merged or left out: dominated observables and guesses (``dominance``), secrets
that must have equal rows (``merge_secrets``). ``implied_ratios`` finds ratio bounds that follow from others, and
``zero_prior`` extends a mechanism to secrets that the program left out. ``presolve`` builds the program and expands its
solution.
"""

from privacygames.solvers.interior.presolve.dominance import dominating_observables
from privacygames.solvers.interior.presolve.implied_ratios import implied_pairs
from privacygames.solvers.interior.presolve.merge_secrets import SecretClasses
from privacygames.solvers.interior.presolve.presolve import Presolve
from privacygames.solvers.interior.presolve.reduced_adversary import ReducedAdversary, reduced_adversaries
from privacygames.solvers.interior.presolve.reduced_problem import ReducedProblem
from privacygames.solvers.interior.presolve.zero_prior import (
    Extension,
    can_be_deferred,
    constant_margins,
    exponents_between,
    extend_mechanism,
    margins,
    margins_from,
)

__all__ = [
    "Extension",
    "Presolve",
    "ReducedAdversary",
    "ReducedProblem",
    "SecretClasses",
    "can_be_deferred",
    "constant_margins",
    "dominating_observables",
    "exponents_between",
    "extend_mechanism",
    "implied_pairs",
    "margins",
    "margins_from",
    "reduced_adversaries",
]
