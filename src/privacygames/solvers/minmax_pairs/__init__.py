"""The min-max attack over pairs of secret and estimate, with a proof of its error."""

from privacygames.solvers.minmax_pairs.attack import minmax_pairs_attack

__all__ = ["minmax_pairs_attack"]
