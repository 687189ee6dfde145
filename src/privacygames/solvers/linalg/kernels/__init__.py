"""Loops compiled by Numba: they run without the interpreter's lock, one call a batch.

Everything here is done by NumPy elsewhere, in many more and much shorter steps, between which threads wait for each
other. Only where Numba is installed: ``host.compiled_loops`` asks.
"""

from privacygames.solvers.linalg.kernels.block_loops import ROUTINES, factorise, solve
from privacygames.solvers.linalg.kernels.pair_loops import (
    bounds_between,
    less_opposites,
    near_pairs,
    pair_slacks,
    pair_totals,
    taken_over,
)
from privacygames.solvers.linalg.kernels.step_loops import (
    central,
    dual_change,
    least_growth,
    outlying,
    product_total,
    speeds,
)

__all__ = [
    "ROUTINES",
    "bounds_between",
    "central",
    "dual_change",
    "factorise",
    "least_growth",
    "less_opposites",
    "near_pairs",
    "outlying",
    "pair_slacks",
    "pair_totals",
    "product_total",
    "solve",
    "speeds",
    "taken_over",
]
