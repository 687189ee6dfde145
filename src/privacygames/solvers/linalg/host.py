"""Block algebra by threads and LAPACK, on this machine's processor."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from privacygames.arrays import FloatArray
from privacygames.solvers.linalg.backend import HOST, HostBackend
from privacygames.solvers.linalg.blocks import (
    BlockAlgebra,
    BlockFactors,
    CouplingRows,
    Item,
    Result,
    SymmetricBlocks,
    even_ranges,
)
from privacygames.solvers.linalg.compiled_factors import CompiledFactors
from privacygames.solvers.linalg.host_factors import HostFactors, Spare
from privacygames.solvers.linalg.schur import Schur
from privacygames.threads import available_processors, single_threaded_blas

BATCH_ENTRIES = 2_000_000
"""A batch is small enough for its matrices to have no more entries than this, together (or is one block)."""


@contextmanager
def host_algebra(threads: int | None = None, *, compiled: bool = False) -> Iterator[BlockAlgebra]:
    """Block algebra by so many threads, by default one a processor; each does its linear algebra alone.

    With ``compiled`` loops where Numba is installed: they take a second to load, and some to compile the first time.
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
    """The compiled loops; None where Numba is not installed, has nowhere to keep what it compiled, or after a fork."""
    kernels = imported_loops()
    return kernels if kernels is not None and kernels.usable() else None


@cache
def imported_loops() -> Any:
    """The compiled loops, usable or not; None where there are none."""
    try:
        return import_module("privacygames.solvers.linalg.kernels")
    except (ImportError, RuntimeError):
        return None


def loops_loaded() -> bool:
    """Whether compiled loops are there without a wait."""
    return imported_loops.cache_info().currsize > 0 and compiled_loops() is not None and bool(compiled_loops().ready())


def loops_kept() -> bool:
    """Whether compiled loops only have to be loaded."""
    return compiled_loops() is not None and bool(compiled_loops().kept())


class HostAlgebra:
    """Block algebra by the threads of a pool."""

    prefer_fused_operations = False
    backend = HOST

    def __init__(self, pool: Executor, threads: int) -> None:
        self._pool, self._threads = pool, threads
        self._spare = Spare()

    def batches(self, count: int, *, width: int = 1) -> list[slice]:
        """Ranges of about equal length: one a thread, or as many as keep the matrices of each small."""
        most = max(1, BATCH_ENTRIES // max(width, 1) ** 2)
        return even_ranges(count, max(self._threads, -(-count // most)))

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """What ``work`` gives for every item, in their order."""
        if self._threads == 1 or len(items) == 1:
            return [work(item) for item in items]
        return list(self._pool.map(work, items))

    def factorise(self, blocks: SymmetricBlocks, links: CouplingRows) -> tuple[BlockFactors, FloatArray]:
        """The factors, and the Schur complement of the links."""
        factors = HostFactors(blocks, self._spare)
        return factors, factors.factorise(links)

    def schur(self, matrix: FloatArray) -> Schur:
        """The Schur complement, ready to solve with."""
        return Schur(matrix)


class CompiledAlgebra:
    """Block algebra by compiled loops: all blocks are one batch, and each loop is divided among threads."""

    prefer_fused_operations = False

    def __init__(self, kernels: Any) -> None:
        self.backend = HostBackend(kernels)
        self._spare = Spare()

    def batches(self, count: int, *, width: int = 1) -> list[slice]:  # noqa: ARG002
        """All of them."""
        return even_ranges(count, 1)

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """What ``work`` gives for every item, in their order."""
        return [work(item) for item in items]

    def factorise(self, blocks: SymmetricBlocks, links: CouplingRows) -> tuple[BlockFactors, FloatArray]:
        """The factors, and the Schur complement of the links."""
        factors = CompiledFactors(blocks, self._spare, self.backend)
        return factors, factors.factorise(links)

    def schur(self, matrix: FloatArray) -> Schur:
        """The Schur complement, ready to solve with."""
        return Schur(matrix)
