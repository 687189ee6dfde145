"""The block interior-point method: exact reductions, then one dense block per observable."""

from privacygames.solvers.interior.presolve import dominating_observables, implied_pairs
from privacygames.solvers.interior.solver import Interior

__all__ = ["Interior", "dominating_observables", "implied_pairs"]
