"""The block interior-point method: exact reductions, then one dense block per observable."""

from privacygames.solvers.interior.reductions import chained_pairs, dominated_observables
from privacygames.solvers.interior.solver import Interior

__all__ = ["Interior", "chained_pairs", "dominated_observables"]
