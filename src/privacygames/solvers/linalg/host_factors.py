"""Cholesky's factors of blocks by LAPACK, one block after the other."""

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.linalg.backend import HOST, Backend
from privacygames.solvers.linalg.blocks import REGULARISATIONS, CouplingRows, SymmetricBlocks
from privacygames.solvers.linalg.failure import FactorisationFailed
from privacygames.solvers.linalg.lapack import Square


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


def unit_scales(blocks: SymmetricBlocks, backend: Backend = HOST) -> FloatArray:
    """What brings the blocks' diagonals to one."""
    diagonal = blocks.diagonal.copy()
    for gram in blocks.grams:
        diagonal[:, gram.columns] += backend.matmul(gram.weights, gram.rows**2)
    with np.errstate(all="ignore"):
        scales = 1 / np.sqrt(diagonal)
    if not (np.isfinite(scales).all() and (scales > 0).all()):
        raise FactorisationFailed
    return np.asarray(scales)


class HostFactors:
    """Cholesky's factors of a batch of blocks.

    Their memory goes back to the spare arrays when nobody needs them any more: to get it from the system in every
    iteration took as long, with many threads, as the arithmetic.
    """

    def __init__(self, blocks: SymmetricBlocks, spare: "Spare") -> None:
        self._blocks, self._spare = blocks, spare
        count, width = blocks.diagonal.shape
        self._factors = spare.take(count, width, width)
        self._scales = unit_scales(blocks)

    def __del__(self) -> None:
        self._spare.give_back(self._factors)

    def factorise(self, links: CouplingRows) -> FloatArray:
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

    def solve(self, right: FloatArray, more: FloatArray | None = None) -> FloatArray:
        """H_o⁻¹ r_o for every block, and more."""
        found = right * self._scales
        Square(found.shape[1]).solve(self._factors, range(len(found)), found)
        found *= self._scales
        if more is not None:
            found += more
        return found

    def solve_rows(self, blocks: IntArray, right: FloatArray) -> FloatArray:
        """H_o⁻¹ r for single right-hand sides."""
        found = right * self._scales[blocks]
        Square(found.shape[1]).solve(self._factors, blocks.tolist(), found)
        found *= self._scales[blocks]
        return found


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


def _add_projected(total: FloatArray, links: CouplingRows, block: int, inverse: FloatArray) -> None:
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
