"""Block algebra on this machine's processors: by threads that call LAPACK, or by compiled loops."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from privacygames.arrays import FloatArray
from privacygames.solvers.linalg.backend import HOST, HostBackend
from privacygames.solvers.linalg.block_algebra import (
    BlockAlgebra,
    BlockFactors,
    CouplingRows,
    Item,
    Result,
    SymmetricBlocks,
    even_ranges,
)
from privacygames.solvers.linalg.cholesky import BufferPool, CompiledFactors, LapackFactors
from privacygames.solvers.linalg.schur import Schur
from privacygames.threads import available_processors, single_threaded_blas

BATCH_ENTRIES = 2_000_000
"""Most matrix entries of the blocks of one batch, unless it is a single block: 16 MB."""


@contextmanager
def host_algebra(threads: int | None = None, *, compiled: bool = False) -> Iterator[BlockAlgebra]:
    """Block algebra by this many threads, by default one per processor, each with single-threaded BLAS.

    Args:
        threads: the number of threads.
        compiled: use compiled loops if Numba is installed; they take a second to load, and half a minute to compile
            the first time on a machine.
    """
    count = threads or available_processors()
    kernels = compiled_loops() if compiled else None
    with single_threaded_blas():
        if kernels is not None:
            with kernels.threads(count):
                yield CompiledAlgebra(kernels)
        else:
            with ThreadPoolExecutor(count) as pool:
                yield HostAlgebra(pool, count)


def compiled_loops() -> Any:
    """The module of compiled loops; None without Numba, without a folder for its cache, or in a forked process."""
    kernels = imported_loops()
    return kernels if kernels is not None and kernels.usable() else None


@cache
def imported_loops() -> Any:
    """The module of compiled loops, also in a forked process; None where it cannot be imported."""
    try:
        return import_module("privacygames.solvers.linalg.kernels")
    except (ImportError, RuntimeError):
        return None


def compiled_loops_loaded() -> bool:
    """Whether compiled loops can be called without loading or compiling them first."""
    return imported_loops.cache_info().currsize > 0 and compiled_loops() is not None and bool(compiled_loops().loaded())


def compiled_loops_cached() -> bool:
    """Whether compiled loops are in Numba's cache on disk, so that they only have to be loaded."""
    return compiled_loops() is not None and bool(compiled_loops().cached())


class HostAlgebra:
    """Block algebra by the threads of a pool, each on one batch of blocks."""

    prefer_fused_operations = False
    backend = HOST

    def __init__(self, pool: Executor, threads: int) -> None:
        self._pool, self._threads = pool, threads
        self._buffers = BufferPool()

    def batch_slices(self, count: int, *, width: int = 1) -> list[slice]:
        """Ranges of about equal length: one per thread, or more where ``BATCH_ENTRIES`` asks for it."""
        largest = max(1, BATCH_ENTRIES // max(width, 1) ** 2)
        return even_ranges(count, max(self._threads, -(-count // largest)))

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """``work(item)`` for every item, in their order, by the threads of the pool."""
        if self._threads == 1 or len(items) == 1:
            return [work(item) for item in items]
        return list(self._pool.map(work, items))

    def factorise(self, blocks: SymmetricBlocks, coupling: CouplingRows) -> tuple[BlockFactors, FloatArray]:
        """The factors, and the Schur complement of the coupling rows."""
        factors = LapackFactors(blocks, self._buffers)
        return factors, factors.factorise(coupling)

    def schur(self, matrix: FloatArray) -> Schur:
        """The Schur complement, factorised."""
        return Schur(matrix, self.backend)


class CompiledAlgebra:
    """Block algebra by compiled loops: all blocks are one batch, and each loop is divided among threads."""

    prefer_fused_operations = False

    def __init__(self, kernels: Any) -> None:
        self.backend = HostBackend(kernels)
        self._buffers = BufferPool()

    def batch_slices(self, count: int, *, width: int = 1) -> list[slice]:  # noqa: ARG002
        """One range with all blocks."""
        return even_ranges(count, 1)

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """``work(item)`` for every item, in their order."""
        return [work(item) for item in items]

    def factorise(self, blocks: SymmetricBlocks, coupling: CouplingRows) -> tuple[BlockFactors, FloatArray]:
        """The factors, and the Schur complement of the coupling rows."""
        factors = CompiledFactors(blocks, self._buffers, self.backend)
        return factors, factors.factorise(coupling)

    def schur(self, matrix: FloatArray) -> Schur:
        """The Schur complement, factorised."""
        return Schur(matrix, self.backend)
