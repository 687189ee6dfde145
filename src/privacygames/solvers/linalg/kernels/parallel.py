"""How loops are compiled: without the interpreter's lock, kept on disk; and how their work is divided among threads."""

import numpy as np
from numba import njit

compiled = njit(nogil=True, cache=True, error_model="numpy")
"""A loop of one thread."""

_others = ("comprehension", "reduction", "inplace_binop", "setitem", "numpy", "stencil", "fusion")
in_threads = njit(
    nogil=True, cache=True, error_model="numpy", parallel={"prange": True, **dict.fromkeys(_others, False)}
)
"""A loop whose ``prange``, and nothing else, is divided among Numba's threads: the rest would take long to compile."""


@compiled
def parts(count, threads):
    """The edges of as many even ranges of 0 to ``count`` as there are threads, where each needs memory of its own."""
    ranges = max(1, min(threads, count))
    edges = np.empty(ranges + 1, np.int64)
    for each in range(ranges + 1):
        edges[each] = count * each // ranges
    return edges


@compiled
def accumulate(counts):
    """Add to each number those before it, in place."""
    for at in range(1, len(counts)):
        counts[at] += counts[at - 1]
