"""Block algebra: many symmetric blocks of one size, factorised, solved with and summed up in batches.

The interior-point methods do their linear algebra through the protocols in this module. ``host.py`` implements them by
LAPACK or compiled loops on this machine, ``device.py`` by PyTorch on a GPU.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.linalg.backend import Backend
from privacygames.solvers.linalg.schur import Schur

Item = TypeVar("Item")
Result = TypeVar("Result")

REGULARISATIONS = (1e-14, 1e-12, 1e-10)
"""Values added to the diagonal of a block scaled to a unit diagonal: the first that lets it be factorised is used."""


@dataclass(frozen=True)
class OffDiagonal:
    """Off-diagonal entries of the blocks, sorted by block: ``value`` at (row, column) and at (column, row).

    Attributes:
        starts: the entries of block o are those from ``starts[o]`` to ``starts[o + 1]``; unused if ``block`` is given.
        row: the row of each entry; a pair (row, column) occurs at most once in a block.
        column: the column of each entry.
        value: the value of each entry.
        block: the block of each entry, or None.
    """

    starts: IntArray
    row: IntArray | NDArray[np.int32]
    column: IntArray | NDArray[np.int32]
    value: FloatArray
    block: IntArray | None = None

    @property
    def entries(self) -> tuple[IntArray, NDArray[np.int32], NDArray[np.int32], FloatArray]:
        """Starts, rows, columns and values, as the compiled loops take them."""
        row, column = (index.astype(np.int32, copy=False) for index in (self.row, self.column))
        return self.starts, row, column, self.value

    @classmethod
    def empty(cls, blocks: int) -> "OffDiagonal":
        """No entries, for this many blocks."""
        nothing = np.zeros(0, dtype=np.int64)
        return cls(np.zeros(blocks + 1, dtype=np.int64), nothing, nothing, np.zeros(0))

    def subset(self, batch: slice) -> "OffDiagonal":
        """The entries of a range of blocks."""
        starts = self.starts[batch.start : batch.stop + 1]
        part = slice(starts[0], starts[-1])
        return OffDiagonal(starts - starts[0], self.row[part], self.column[part], self.value[part])


@dataclass(frozen=True)
class Gram:
    """A term Rᵀ diag(weights[o]) R of every block o, on some of its columns.

    Attributes:
        rows: R, the same for every block.
        columns: the block's columns that the columns of R stand for, ascending.
        weights: (blocks, rows of R).
    """

    rows: FloatArray
    columns: IntArray
    weights: FloatArray

    @cached_property
    def leading(self) -> int:
        """How many of the columns are the block's first ones (0, 1, 2, …)."""
        return int(np.cumprod(self.columns == np.arange(len(self.columns))).sum())


def concatenate_grams(grams: Sequence[Gram], blocks: int) -> Gram:
    """Several Gram terms as one, for NumPy arrays."""
    if len(grams) == 1:
        return grams[0]
    columns = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *(gram.columns for gram in grams)]))
    rows = np.zeros((sum(len(gram.rows) for gram in grams), len(columns)))
    start = 0
    for gram in grams:
        rows[start : start + len(gram.rows), np.searchsorted(columns, gram.columns)] = gram.rows
        start += len(gram.rows)
    return Gram(rows, columns, np.concatenate([np.zeros((blocks, 0)), *(gram.weights for gram in grams)], axis=1))


@dataclass(frozen=True)
class SymmetricBlocks:
    """Symmetric blocks H_o, each the sum of a diagonal, off-diagonal entries and Gram terms.

    Attributes:
        diagonal: the diagonals, (blocks, width). Blocks are scaled to a unit diagonal before they are factorised, so
            that entries of very different magnitudes do no harm.
        off_diagonal: the off-diagonal entries; None for none.
        grams: the dense terms.
    """

    diagonal: FloatArray
    off_diagonal: OffDiagonal | None = None
    grams: tuple[Gram, ...] = ()

    def subset(self, batch: slice) -> "SymmetricBlocks":
        """A range of the blocks."""
        return SymmetricBlocks(
            self.diagonal[batch],
            None if self.off_diagonal is None else self.off_diagonal.subset(batch),
            tuple(replace(gram, weights=gram.weights[batch]) for gram in self.grams),
        )


@dataclass(frozen=True)
class CouplingRows:
    """The coupling rows J_o of every block o: an identity on its first unknowns, and weighted rows below it.

    Attributes:
        identity_rows: how many of a block's first unknowns have a row of the identity.
        weights: the weights of the rows below; None for no such rows. Without ``unknowns`` there is one, with entries
            −weights[o], (blocks, n), at the first n unknowns. With it there is one row for each unknown listed, with
            the single entry −weights[o, row], (blocks, rows).
        unknowns: the unknown of each weighted row.
    """

    identity_rows: int
    weights: FloatArray | None = None
    unknowns: IntArray | slice | None = None

    @property
    def rows(self) -> int:
        """The number of rows."""
        if self.weights is None:
            return self.identity_rows
        return self.identity_rows + (1 if self.unknowns is None else self.weights.shape[1])

    def subset(self, batch: slice) -> "CouplingRows":
        """The rows of a range of blocks."""
        return self if self.weights is None else replace(self, weights=self.weights[batch])


class BlockFactors(Protocol):
    """The factors of a batch of blocks."""

    def solve(self, right: FloatArray, addend: FloatArray | None = None) -> FloatArray:
        """H_o⁻¹ r_o for every block, (blocks, width), plus the addend where there is one."""
        ...

    def solve_rows(self, blocks: IntArray, right: FloatArray) -> FloatArray:
        """H_o⁻¹ r for right-hand sides r, each with the block o given for it."""
        ...


class BlockAlgebra(Protocol):
    """Factorises batches of blocks, and runs work on several batches at the same time."""

    @property
    def backend(self) -> Backend:
        """The operations on the arrays of batches."""
        ...

    @property
    def prefer_fused_operations(self) -> bool:
        """Whether a step takes longer on the host than on the device, so that the host should do less."""
        ...

    def factorise(self, blocks: SymmetricBlocks, coupling: CouplingRows) -> tuple[BlockFactors, FloatArray]:
        """The factors, and the Schur complement Σ_o J_o H_o⁻¹ J_oᵀ.

        It runs in the calling thread; several batches are factorised at the same time through :meth:`map`.

        Raises:
            FactorisationFailed: some block is not positive definite, even when regularised.
        """
        ...

    def schur(self, matrix: FloatArray) -> Schur:
        """A Schur complement on this algebra's device, factorised."""
        ...

    def batch_slices(self, count: int, *, width: int = 1) -> list[slice]:
        """Ranges of ``count`` blocks of this width, to be worked on at the same time; they partition 0 to ``count``."""
        ...

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """``work(item)`` for every item, in their order, several at the same time."""
        ...


def factorise_in_batches(
    algebra: BlockAlgebra, blocks: SymmetricBlocks, coupling: CouplingRows
) -> tuple["BatchedFactors", FloatArray]:
    """The factors and the Schur complement of many blocks, several batches at the same time; both on the host."""
    batches = algebra.batch_slices(len(blocks.diagonal), width=blocks.diagonal.shape[1])
    results = algebra.map(lambda batch: algebra.factorise(blocks.subset(batch), coupling.subset(batch)), batches)
    zeros = np.zeros((coupling.rows, coupling.rows))
    schur = sum((algebra.backend.to_numpy(part) for _, part in results), zeros)
    return BatchedFactors(algebra, batches, [factors for factors, _ in results]), schur


@dataclass(frozen=True)
class BatchedFactors:
    """The factors of several batches."""

    algebra: BlockAlgebra
    batches: Sequence[slice]
    factors: Sequence[BlockFactors]

    def solve(self, right: FloatArray) -> FloatArray:
        """H_o⁻¹ r_o for every block."""
        pairs = list(zip(self.factors, self.batches, strict=True))
        to_numpy = self.algebra.backend.to_numpy
        return np.concatenate(self.algebra.map(lambda pair: to_numpy(pair[0].solve(right[pair[1]])), pairs))


def even_ranges(count: int, parts: int) -> list[slice]:
    """``parts`` ranges of about equal length that partition 0 to ``count``, without empty ones."""
    edges = np.linspace(0, count, min(max(parts, 1), max(count, 1)) + 1).round().astype(int).tolist()
    return [slice(start, stop) for start, stop in pairwise(edges) if stop > start]
