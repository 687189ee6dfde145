"""Block algebra by threads and LAPACK, on this machine's processor."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from threadpoolctl import threadpool_limits

from privacygames.arrays import FloatArray
from privacygames.processors import processors
from privacygames.solvers.linalg.backend import HOST, HostBackend
from privacygames.solvers.linalg.blocks import BlockFactors, Item, Links, Result, SymmetricBlocks, even_ranges
from privacygames.solvers.linalg.compiled_factors import CompiledFactors
from privacygames.solvers.linalg.host_factors import HostFactors, Spare
from privacygames.solvers.linalg.schur import Schur

BATCH_ENTRIES = 2_000_000
"""A batch is small enough for its matrices to have no more entries than this, together (or is one block)."""


@contextmanager
def host_algebra(threads: int | None = None, *, compiled: bool = False) -> Iterator["HostAlgebra"]:
    """Block algebra by so many threads, by default one a processor; each does its linear algebra alone.

    With ``compiled`` loops where Numba is installed: they take a second to load, and some to compile the first time.
    """
    count = threads or processors()
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(count) as pool:
        yield HostAlgebra(pool, count, compiled_loops() if compiled else None)


@cache
def compiled_loops() -> Any:
    """The compiled loops; None where Numba is not installed, or has nowhere to keep what it compiled."""
    try:
        return import_module("privacygames.solvers.linalg.kernels")
    except (ImportError, RuntimeError):
        return None


def loops_loaded() -> bool:
    """Whether compiled loops are there without a wait."""
    return compiled_loops.cache_info().currsize > 0


class HostAlgebra:
    """Block algebra by the threads of a pool."""

    spares_host = False

    def __init__(self, pool: Executor, threads: int, kernels: Any = None) -> None:
        self._pool, self._threads = pool, threads
        self.backend = HOST if kernels is None else HostBackend(kernels)
        self._spare = Spare()

    def batches(self, count: int, *, width: int = 1) -> list[slice]:
        """Ranges of about equal length: one a thread, or as many as keep the matrices of each small."""
        if self.backend.kernels is not None:
            return even_ranges(count, self._threads)
        most = max(1, BATCH_ENTRIES // max(width, 1) ** 2)
        return even_ranges(count, max(self._threads, -(-count // most)))

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """What ``work`` gives for every item, in their order."""
        if self._threads == 1 or len(items) == 1:
            return [work(item) for item in items]
        return list(self._pool.map(work, items))

    def factorise(self, blocks: SymmetricBlocks, links: Links) -> tuple[BlockFactors, FloatArray]:
        """The factors, and the Schur complement of the links."""
        if self.backend.kernels is not None:
            compiled = CompiledFactors(blocks, self._spare, self.backend.kernels)
            return compiled, compiled.factorise(links)
        factors = HostFactors(blocks, self._spare)
        return factors, factors.factorise(links)

    def schur(self, matrix: FloatArray) -> Schur:
        """The Schur complement, ready to solve with."""
        return Schur(matrix)
