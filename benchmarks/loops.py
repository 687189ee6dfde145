"""Compiled loops, loaded (and compiled, where they never were) before anything is timed."""

from collections.abc import Iterator
from contextlib import contextmanager

from privacygames.solvers import solve_estimate


@contextmanager
def at_once() -> Iterator[None]:
    """Designs in here use compiled loops, where Numba is installed, however long it takes to compile them."""
    before = solve_estimate.LOADING_ENTRIES, solve_estimate.COMPILING_ENTRIES
    solve_estimate.LOADING_ENTRIES = solve_estimate.COMPILING_ENTRIES = 0
    try:
        yield
    finally:
        solve_estimate.LOADING_ENTRIES, solve_estimate.COMPILING_ENTRIES = before
