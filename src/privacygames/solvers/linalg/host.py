"""Block algebra on this machine's processors: by threads that call LAPACK, or by compiled loops."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from privacygames.arrays import FloatArray, keep_freed_memory
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
from privacygames.solvers.linalg.kernels import Kernels, load_extension
from privacygames.solvers.linalg.schur import Schur
from privacygames.threads import available_processors, single_threaded_blas

if TYPE_CHECKING:
    from concurrent.futures import Executor

BATCH_ENTRIES = 2_000_000
"""Most matrix entries of the blocks of one batch, unless it is a single block: 16 MB."""


@contextmanager
def host_algebra(threads: int | None = None, *, compiled: bool = True) -> Iterator[BlockAlgebra]:
    """Block algebra by this many threads, by default one per processor, each with single-threaded BLAS.

    Args:
        threads: the number of threads.
        compiled: use compiled loops, if they were built.
    """
    count = threads or available_processors()
    extension = compiled_extension() if compiled else None
    with single_threaded_blas():
        if extension is not None:
            keep_freed_memory()
            yield CompiledAlgebra(Kernels(extension, count))
        else:
            from concurrent.futures import ThreadPoolExecutor  # a long import

            with ThreadPoolExecutor(count) as pool:
                yield HostAlgebra(pool, count)


@cache
def compiled_extension() -> Any:
    """The extension module of compiled loops; None where it was not built."""
    return load_extension()


class HostAlgebra:
    """Block algebra by the threads of a pool, each on one batch of blocks."""

    prefer_fused_operations = False
    backend = HOST

    def __init__(self, pool: "Executor", threads: int) -> None:
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

    def __init__(self, kernels: Kernels) -> None:
        self.backend, self._kernels = HostBackend(kernels), kernels
        self._buffers = BufferPool()

    def batch_slices(self, count: int, *, width: int = 1) -> list[slice]:  # noqa: ARG002
        """One range with all blocks."""
        return even_ranges(count, 1)

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """``work(item)`` for every item, in their order."""
        return [work(item) for item in items]

    def factorise(self, blocks: SymmetricBlocks, coupling: CouplingRows) -> tuple[BlockFactors, FloatArray]:
        """The factors, and the Schur complement of the coupling rows."""
        factors = CompiledFactors(blocks, self._buffers, self._kernels)
        return factors, factors.factorise(coupling)

    def schur(self, matrix: FloatArray) -> Schur:
        """The Schur complement, factorised."""
        return Schur(matrix, self.backend)
