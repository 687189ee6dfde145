"""Numba's options for the loops, and the division of their work among threads."""

import numpy as np
from numba import njit

compiled = njit(nogil=True, cache=True, error_model="numpy")
"""Decorator of single-threaded loops: no interpreter lock, cached on disk."""

_others = ("comprehension", "reduction", "inplace_binop", "setitem", "numpy", "stencil", "fusion")
in_threads = njit(
    nogil=True, cache=True, error_model="numpy", parallel={"prange": True, **dict.fromkeys(_others, False)}
)
"""Decorator of loops whose ``prange`` is divided among Numba's threads; other parallelism takes long to compile."""


@compiled
def parts(count, threads):
    """The edges of even ranges of 0 to ``count``, one for each thread."""
    ranges = max(1, min(threads, count))
    edges = np.empty(ranges + 1, np.int64)
    for part in range(ranges + 1):
        edges[part] = count * part // ranges
    return edges


@compiled
def accumulate(counts):
    """Replace each number by the sum of it and those before it, in place."""
    for at in range(1, len(counts)):
        counts[at] += counts[at - 1]
