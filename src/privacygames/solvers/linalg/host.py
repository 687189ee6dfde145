"""Block algebra by threads and LAPACK, on this machine's processor."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from privacygames.arrays import FloatArray, IntArray
from privacygames.processors import processors
from privacygames.solvers.linalg.backend import HOST, HostBackend
from privacygames.solvers.linalg.blocks import (
    REGULARISATIONS,
    BlockFactors,
    Item,
    Links,
    OffDiagonal,
    Result,
    SymmetricBlocks,
    even_ranges,
    joined_grams,
)
from privacygames.solvers.linalg.failure import FactorisationFailed
from privacygames.solvers.linalg.lapack import Square
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


class Spare:
    """Memory for blocks that is not needed at the moment."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[int, ...], list[FloatArray]] = {}

    def take(self, *shape: int) -> FloatArray:
        """Memory for blocks, the first number of them, with anything in it."""
        try:
            return self._arrays[shape].pop()
        except (KeyError, IndexError):
            for other in [other for other in self._arrays if other[1:] != shape[1:]]:  # secrets joined: of no use now
                self._arrays.pop(other, None)
            return np.empty(shape)

    def give_back(self, blocks: FloatArray) -> None:
        """Memory that may be used again."""
        self._arrays.setdefault(blocks.shape, []).append(blocks)


class HostFactors:
    """Cholesky's factors of a batch of blocks.

    Their memory goes back to the spare arrays when nobody needs them any more: to get it from the system in every
    iteration took as long, with many threads, as the arithmetic.
    """

    def __init__(self, blocks: SymmetricBlocks, spare: "Spare") -> None:
        self._blocks, self._spare = blocks, spare
        count, width = blocks.diagonal.shape
        self._factors = spare.take(count, width, width)
        self._scales = _scales(blocks)

    def __del__(self) -> None:
        self._spare.give_back(self._factors)

    def factorise(self, links: Links) -> FloatArray:
        """Factorise the blocks; their Schur complement, right on and above the diagonal."""
        count, width = self._scales.shape
        square, inverse = Square(width), np.empty((width, width))
        total = np.zeros((links.rows, links.rows))
        for block in range(count):
            factor = self._factors[block]
            self._factor(block, factor, square)
            np.copyto(inverse, factor)
            square.invert_factor(inverse)
            inverse *= self._scales[block][:, None]  # and so, in the product, on both sides
            square.multiply_by_transpose(inverse)
            _add_projected(total, links, block, inverse)
        return total

    def _factor(self, block: int, into: FloatArray, square: Square) -> None:
        """Factorise one block."""
        for regularisation in REGULARISATIONS:
            _write(self._blocks, block, self._scales[block], into, square)
            into.reshape(-1)[:: len(into) + 1] = 1.0 + regularisation
            if square.factor(into):
                return
        raise FactorisationFailed

    def solve(self, right: FloatArray) -> FloatArray:
        """H_o⁻¹ r_o for every block."""
        found = right * self._scales
        Square(found.shape[1]).solve(self._factors, range(len(found)), found)
        found *= self._scales
        return found

    def solve_rows(self, blocks: IntArray, right: FloatArray) -> FloatArray:
        """H_o⁻¹ r for single right-hand sides."""
        found = right * self._scales[blocks]
        Square(found.shape[1]).solve(self._factors, blocks.tolist(), found)
        found *= self._scales[blocks]
        return found


class CompiledFactors:
    """The same by compiled loops: of every block the triangle M = L⁻¹ D, packed, with H⁻¹ = MᵀM."""

    def __init__(self, blocks: SymmetricBlocks, spare: "Spare", kernels: Any) -> None:
        self._blocks, self._spare, self._kernels = blocks, spare, kernels
        count, width = blocks.diagonal.shape
        self._packed = spare.take(count, width * (width + 1) // 2)
        self._scales = _scales(blocks)

    def __del__(self) -> None:
        self._spare.give_back(self._packed)

    def factorise(self, links: Links) -> FloatArray:
        """Factorise the blocks; their Schur complement, right on and above the diagonal."""
        count, width = self._scales.shape
        beside = self._blocks.beside or OffDiagonal.none(count)
        gram = joined_grams(self._blocks.grams, count)
        which = np.zeros(0, dtype=np.int64)
        if links.which is not None:
            which = np.arange(width)[links.which]
        weights = np.zeros((count, 0)) if links.weights is None else links.weights
        total, done = self._kernels.factorise(
            self._kernels.ROUTINES,
            self._scales,
            beside.starts,
            beside.row.astype(np.int32, copy=False),
            beside.column.astype(np.int32, copy=False),
            beside.value,
            (np.ascontiguousarray(gram.rows), gram.columns, gram.leading),
            np.sqrt(gram.weights),
            (links.rows, links.shared, which, np.ascontiguousarray(weights)),
            REGULARISATIONS,
            self._packed,
        )
        if done < count:
            raise FactorisationFailed
        return np.asarray(total)

    def solve(self, right: FloatArray) -> FloatArray:
        """H_o⁻¹ r_o for every block."""
        return self.solve_rows(np.arange(len(right)), right)

    def solve_rows(self, blocks: IntArray, right: FloatArray) -> FloatArray:
        """H_o⁻¹ r for single right-hand sides."""
        return np.asarray(self._kernels.solve(self._packed, blocks, right))


def _scales(blocks: SymmetricBlocks) -> FloatArray:
    """What brings the blocks' diagonals to one."""
    diagonal = blocks.diagonal.copy()
    for gram in blocks.grams:
        diagonal[:, gram.columns] += gram.weights @ gram.rows**2
    with np.errstate(all="ignore"):
        scales = 1 / np.sqrt(diagonal)
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise FactorisationFailed
    return np.asarray(scales)


def _write(blocks: SymmetricBlocks, block: int, scale: FloatArray, into: FloatArray, square: Square) -> None:
    """One block, scaled on both sides, right above the diagonal; what is on it is left to the caller."""
    into[:] = 0.0
    flat, width = into.reshape(-1), len(scale)
    beside = blocks.beside
    if beside is not None:
        part = slice(beside.starts[block], beside.starts[block + 1])
        row, column = beside.row[part], beside.column[part]
        value = beside.value[part] * scale[row] * scale[column]
        flat[row * width + column] = value
        flat[column * width + row] += value
    for gram in blocks.grams:
        rows = np.multiply(gram.rows, scale[gram.columns], order="C")
        rows *= np.sqrt(gram.weights[block])[:, None]
        if gram.leading:
            square.add_gram(into, rows, gram.leading)
        if gram.leading < len(gram.columns):
            rest = gram.columns[gram.leading :]
            into[gram.columns[:, None], rest] += rows.T @ rows[:, gram.leading :]


def _add_projected(total: FloatArray, links: Links, block: int, inverse: FloatArray) -> None:
    """Add J_o M J_oᵀ, on and above the diagonal, for a symmetric M that is given there."""
    first = links.shared
    total[:first, :first] += inverse[:first, :first]
    if links.weights is None:
        return
    weights = links.weights[block]
    full = np.triu(inverse)
    full += np.triu(inverse, 1).T
    if links.which is not None:
        across = full[:, links.which] * weights
        total[:first, first:] -= across[:first]
        total[first:, first:] += weights[:, None] * across[links.which]
    else:
        n = len(weights)
        across = full[:, :n] @ weights
        total[:first, -1] -= across[:first]
        total[-1, -1] += weights @ across[:n]
