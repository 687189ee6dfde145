"""The min-max attack over pairs of secret and estimate, by blocks, certified."""

from privacygames.solvers.minmax_pairs.attack import least_largest_error

__all__ = ["least_largest_error"]
