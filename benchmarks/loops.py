"""Loading and compilation of compiled loops before anything is timed."""

from collections.abc import Iterator
from contextlib import contextmanager

from privacygames.solvers import solve_estimate


@contextmanager
def compile_immediately() -> Iterator[None]:
    """Make designs in this context use compiled loops where Numba is installed, however long compilation takes."""
    thresholds = solve_estimate.LOADING_ENTRIES, solve_estimate.COMPILING_ENTRIES
    solve_estimate.LOADING_ENTRIES = solve_estimate.COMPILING_ENTRIES = 0
    try:
        yield
    finally:
        solve_estimate.LOADING_ENTRIES, solve_estimate.COMPILING_ENTRIES = thresholds
