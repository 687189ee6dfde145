"""Compiled loops, loaded (and compiled, where they never were) before anything is timed."""

from collections.abc import Iterator
from contextlib import contextmanager

from privacygames.solvers import effort


@contextmanager
def at_once() -> Iterator[None]:
    """Designs in here use compiled loops, where Numba is installed, however long it takes to compile them."""
    before = effort.WORTH_LOADING, effort.WORTH_COMPILING
    effort.WORTH_LOADING = effort.WORTH_COMPILING = 0
    try:
        yield
    finally:
        effort.WORTH_LOADING, effort.WORTH_COMPILING = before
