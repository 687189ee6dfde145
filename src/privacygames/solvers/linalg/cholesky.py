"""Cholesky factors of a batch of blocks on the host: by LAPACK block by block, or by compiled loops in one call.

Every block H is scaled by a diagonal D to a unit diagonal before it is factorised, D H D = L Lᵀ.
"""

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.linalg.backend import HOST, Backend, FactorisationFailed
from privacygames.solvers.linalg.block_algebra import (
    REGULARISATIONS,
    CouplingRows,
    OffDiagonal,
    SymmetricBlocks,
    concatenate_grams,
)
from privacygames.solvers.linalg.kernels import Kernels
from privacygames.solvers.linalg.lapack import BlockRoutines


class BufferPool:
    """Arrays that are reused for the factors of later iterations.

    To allocate them anew in every iteration took as long, with many threads, as the arithmetic.
    """

    def __init__(self) -> None:
        self._arrays: dict[tuple[int, ...], list[FloatArray]] = {}

    def acquire(self, *shape: int) -> FloatArray:
        """An array of this shape, not initialised; the first axis is the number of blocks."""
        try:
            return self._arrays[shape].pop()
        except (KeyError, IndexError):
            outdated = [other for other in self._arrays if other[1:] != shape[1:]]  # the blocks have grown
            for other in outdated:
                self._arrays.pop(other, None)
            return np.empty(shape)

    def release(self, array: FloatArray) -> None:
        """Give back an array for reuse."""
        self._arrays.setdefault(array.shape, []).append(array)


def unit_diagonal_scales(blocks: SymmetricBlocks, backend: Backend = HOST) -> FloatArray:
    """The diagonal scaling D of every block, (blocks, width).

    Raises:
        FactorisationFailed: some diagonal entry is not positive and finite.
    """
    diagonal = blocks.diagonal.copy()
    for gram in blocks.grams:
        diagonal[:, gram.columns] += backend.matmul(gram.weights, gram.rows**2)
    with np.errstate(all="ignore"):
        scales = 1 / np.sqrt(diagonal)
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise FactorisationFailed
    return np.asarray(scales)


class LapackFactors:
    """The Cholesky factors of a batch of blocks, by LAPACK, one block after the other."""

    def __init__(self, blocks: SymmetricBlocks, pool: BufferPool) -> None:
        self._blocks, self._pool = blocks, pool
        count, width = blocks.diagonal.shape
        self._factors = pool.acquire(count, width, width)
        self._scales = unit_diagonal_scales(blocks)

    def __del__(self) -> None:
        self._pool.release(self._factors)

    def factorise(self, coupling: CouplingRows) -> FloatArray:
        """Factorise the blocks; returns the Schur complement of their coupling rows."""
        count, width = self._scales.shape
        routines, inverse = BlockRoutines(width), np.empty((width, width))
        total = np.zeros((coupling.rows, coupling.rows))
        for block in range(count):
            factor = self._factors[block]
            self._factor(block, factor, routines)
            np.copyto(inverse, factor)
            routines.invert_factor(inverse)
            inverse *= self._scales[block][:, None]
            routines.multiply_by_transpose(inverse)
            _add_projected(total, coupling, block, inverse)
        return _symmetric_from_upper(total)

    def _factor(self, block: int, into: FloatArray, routines: BlockRoutines) -> None:
        """Factorise one block, with the smallest regularisation that it needs."""
        for regularisation in REGULARISATIONS:
            _write_block(self._blocks, block, self._scales[block], into, routines)
            into.reshape(-1)[:: len(into) + 1] = 1.0 + regularisation
            if routines.factor(into):
                return
        raise FactorisationFailed

    def solve(self, right: FloatArray, addend: FloatArray | None = None) -> FloatArray:
        """H_o⁻¹ r_o for every block, plus the addend."""
        solution = right * self._scales
        BlockRoutines(solution.shape[1]).solve(self._factors, range(len(solution)), solution)
        solution *= self._scales
        if addend is not None:
            solution += addend
        return solution

    def solve_rows(self, blocks: IntArray, right: FloatArray) -> FloatArray:
        """H_o⁻¹ r for right-hand sides r, each with the block o given for it."""
        solution = right * self._scales[blocks]
        BlockRoutines(solution.shape[1]).solve(self._factors, blocks.tolist(), solution)
        solution *= self._scales[blocks]
        return solution


class CompiledFactors:
    """The inverse factors M = L⁻¹ D of a batch of blocks, packed, with H⁻¹ = MᵀM, by compiled loops."""

    def __init__(self, blocks: SymmetricBlocks, pool: BufferPool, kernels: Kernels) -> None:
        self._blocks, self._pool, self._kernels = blocks, pool, kernels
        count, width = blocks.diagonal.shape
        self._every_block = np.arange(count)
        self.packed = pool.acquire(count, width * (width + 1) // 2)
        self._scales = unit_diagonal_scales(blocks)

    def __del__(self) -> None:
        self._pool.release(self.packed)

    def factorise(self, coupling: CouplingRows) -> FloatArray:
        """Factorise the blocks; returns the Schur complement of their coupling rows."""
        count, width = self._scales.shape
        off_diagonal = self._blocks.off_diagonal or OffDiagonal.empty(count)
        gram = concatenate_grams(self._blocks.grams, count)
        unknowns = np.zeros(0, dtype=np.int64)
        if coupling.unknowns is not None:
            unknowns = np.arange(width)[coupling.unknowns]
        weights = np.zeros(0) if coupling.weights is None else coupling.weights
        total = self._kernels.factorise(
            scales=self._scales,
            entries=off_diagonal.entries,
            gram=(np.ascontiguousarray(gram.rows), gram.columns, gram.leading, np.sqrt(gram.weights)),
            coupling=(coupling.rows, coupling.identity_rows, unknowns, np.ascontiguousarray(weights)),
            regularisations=np.array(REGULARISATIONS),
            packed=self.packed,
        )
        if total is None:
            raise FactorisationFailed
        return total

    def solve(self, right: FloatArray, addend: FloatArray | None = None) -> FloatArray:
        """H_o⁻¹ r_o for every block, plus the addend."""
        solution = np.zeros(right.shape) if addend is None else addend.copy()
        return self._kernels.solve(self.packed, self._every_block, np.ascontiguousarray(right), solution)

    def solve_rows(self, blocks: IntArray, right: FloatArray) -> FloatArray:
        """H_o⁻¹ r for right-hand sides r, each with the block o given for it."""
        return self._kernels.solve(self.packed, blocks, np.ascontiguousarray(right), np.zeros(right.shape))


def _write_block(
    blocks: SymmetricBlocks, block: int, scale: FloatArray, into: FloatArray, routines: BlockRoutines
) -> None:
    """Write the upper triangle of D H D of one block; its diagonal is left to the caller."""
    into[:] = 0.0
    flat, width = into.reshape(-1), len(scale)
    off_diagonal = blocks.off_diagonal
    if off_diagonal is not None:
        part = slice(off_diagonal.starts[block], off_diagonal.starts[block + 1])
        row, column = off_diagonal.row[part], off_diagonal.column[part]
        value = off_diagonal.value[part] * scale[row] * scale[column]
        flat[row * width + column] = value
        flat[column * width + row] += value
    for gram in blocks.grams:
        rows = np.multiply(gram.rows, scale[gram.columns], order="C")
        rows *= np.sqrt(gram.weights[block])[:, None]
        if gram.leading:
            routines.add_gram(into, rows, gram.leading)
        if gram.leading < len(gram.columns):
            rest = gram.columns[gram.leading :]
            into[gram.columns[:, None], rest] += rows.T @ rows[:, gram.leading :]


def _add_projected(total: FloatArray, coupling: CouplingRows, block: int, inverse: FloatArray) -> None:
    """Add the upper triangle of J_o H⁻¹ J_oᵀ, given that of H⁻¹."""
    first = coupling.identity_rows
    total[:first, :first] += inverse[:first, :first]
    if coupling.weights is None:
        return
    weights = coupling.weights[block]
    full = _symmetric_from_upper(inverse)
    if coupling.unknowns is not None:
        across = full[:, coupling.unknowns] * weights
        total[:first, first:] -= across[:first]
        total[first:, first:] += weights[:, None] * across[coupling.unknowns]
    else:
        n = len(weights)
        across = full[:, :n] @ weights
        total[:first, -1] -= across[:first]
        total[-1, -1] += weights @ across[:n]


def _symmetric_from_upper(upper: FloatArray) -> FloatArray:
    """The symmetric matrix with this diagonal and upper triangle."""
    matrix = np.triu(upper)
    matrix += np.triu(upper, 1).T
    return matrix
