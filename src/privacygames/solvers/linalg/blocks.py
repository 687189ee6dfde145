"""What block algebra is: many symmetric blocks of one size, factorised, solved with and summed up in batches.

A block algebra is where the work of the interior-point methods is done. Threads and LAPACK on this machine
(``host.py``) are one, and a device with batched kernels can be another. The methods above know this file and no more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Protocol, TypeVar

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.linalg.backend import Backend
from privacygames.solvers.linalg.schur import SchurComplement

Item = TypeVar("Item")
Result = TypeVar("Result")

REGULARISATIONS = (1e-14, 1e-12, 1e-10)
"""What is added to a unit diagonal: as little as lets the block be factorised."""


@dataclass(frozen=True)
class OffDiagonal:
    """Entries beside the diagonals: ``value`` at (row, column) and at (column, row) of a block, sorted by block.

    The entries of block o are those from ``starts[o]`` to ``starts[o + 1]``; a pair (row, column) occurs once at most.
    Where the block of each is given, ``block``, there need be no starts.
    """

    starts: IntArray
    row: IntArray
    column: IntArray
    value: FloatArray
    block: IntArray | None = None

    @classmethod
    def none(cls, blocks: int) -> "OffDiagonal":
        """No entries."""
        nothing = np.zeros(0, dtype=np.int64)
        return cls(np.zeros(blocks + 1, dtype=np.int64), nothing, nothing, np.zeros(0))

    def among(self, batch: slice) -> "OffDiagonal":
        """The entries of some of the blocks."""
        starts = self.starts[batch.start : batch.stop + 1]
        part = slice(starts[0], starts[-1])
        return OffDiagonal(starts - starts[0], self.row[part], self.column[part], self.value[part])


@dataclass(frozen=True)
class Gram:
    """A term Rᵀ diag(weights[o]) R, the same R for every block, on some of a block's columns, in ascending order."""

    rows: FloatArray
    columns: IntArray
    weights: FloatArray

    @cached_property
    def leading(self) -> int:
        """How many of the columns are the block's first ones."""
        return int(np.cumprod(self.columns == np.arange(len(self.columns))).sum())


def joined_grams(grams: Sequence[Gram], blocks: int) -> Gram:
    """Gram terms as one, of arrays that are on the host."""
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
    """Blocks H_o, one per row of ``diagonal``, each the sum of a diagonal, entries beside it and Gram terms.

    Attributes:
        diagonal: (blocks, width). Factors are those of the blocks scaled to a unit diagonal, in which nothing is tiny
            or huge however far apart the unknowns are.
        beside: the entries beside the diagonal; None for none.
        grams: the dense terms.
    """

    diagonal: FloatArray
    beside: OffDiagonal | None = None
    grams: tuple[Gram, ...] = ()

    def among(self, batch: slice) -> "SymmetricBlocks":
        """Some of the blocks."""
        return SymmetricBlocks(
            self.diagonal[batch],
            None if self.beside is None else self.beside.among(batch),
            tuple(replace(gram, weights=gram.weights[batch]) for gram in self.grams),
        )


@dataclass(frozen=True)
class CouplingRows:
    """The rows J_o in which blocks meet: an identity on a block's first unknowns, and weighted sums of some of those.

    Attributes:
        shared: how many of a block's first unknowns have a row of their own.
        weights: minus these times some of the first unknowns make up more rows; None for no more. Without ``which``,
            (blocks, n), one row: the sum over the first n unknowns. With it, (blocks, rows), a row each.
        which: the unknown of each row.
    """

    shared: int
    weights: FloatArray | None = None
    which: IntArray | slice | None = None

    @property
    def rows(self) -> int:
        """How many rows there are."""
        if self.weights is None:
            return self.shared
        return self.shared + (1 if self.which is None else self.weights.shape[1])

    def among(self, batch: slice) -> "CouplingRows":
        """The rows of some of the blocks."""
        return self if self.weights is None else replace(self, weights=self.weights[batch])


class BlockFactors(Protocol):
    """Factors of a batch of blocks."""

    def solve(self, right: FloatArray, more: FloatArray | None = None) -> FloatArray:
        """H_o⁻¹ r_o for every block, (blocks, width); with ``more`` added where it is given."""
        ...

    def solve_rows(self, blocks: IntArray, right: FloatArray) -> FloatArray:
        """H_o⁻¹ r for single right-hand sides, each with the block given for it."""
        ...


class BlockAlgebra(Protocol):
    """Factorises a batch of blocks, and runs work on several batches at the same time."""

    @property
    def backend(self) -> Backend:
        """Where the arrays of batches are."""
        ...

    @property
    def prefer_fused_operations(self) -> bool:
        """Whether the host's own part of a step is the longer one, so that it should do no more than it must."""
        ...

    def factorise(self, blocks: SymmetricBlocks, links: CouplingRows) -> tuple[BlockFactors, FloatArray]:
        """The factors, and the Schur complement Σ_o J_o H_o⁻¹ J_oᵀ, right on and above the diagonal.

        It works where it is called, on these blocks alone; several batches are for :meth:`map`.

        Raises:
            FactorisationFailed: some block is not positive definite, even a little regularised.
        """
        ...

    def schur(self, matrix: FloatArray) -> SchurComplement:
        """The Schur complement, from where ``factorise`` left it, ready to solve with."""
        ...

    def batches(self, count: int, *, width: int = 1) -> list[slice]:
        """Ranges that together are 0 to ``count``, to be worked on at the same time: of blocks so wide."""
        ...

    def map(self, work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        """What ``work`` gives for every item, in their order, several at the same time."""
        ...


def factorise_in_batches(
    algebra: BlockAlgebra, blocks: SymmetricBlocks, links: CouplingRows
) -> tuple["FactorsInBatches", FloatArray]:
    """Factors and Schur complement of many blocks, batch by batch at the same time."""
    batches = algebra.batches(len(blocks.diagonal), width=blocks.diagonal.shape[1])
    found = algebra.map(lambda batch: algebra.factorise(blocks.among(batch), links.among(batch)), batches)
    schur = sum((algebra.backend.to_numpy(part) for _, part in found), np.zeros((links.rows, links.rows)))
    return FactorsInBatches(algebra, batches, [factors for factors, _ in found]), schur


@dataclass(frozen=True)
class FactorsInBatches:
    """The factors of several batches, as one."""

    algebra: BlockAlgebra
    batches: Sequence[slice]
    factors: Sequence[BlockFactors]

    def solve(self, right: FloatArray) -> FloatArray:
        """H_o⁻¹ r_o for every block."""
        pairs = list(zip(self.factors, self.batches, strict=True))
        fetched = self.algebra.backend.to_numpy
        return np.concatenate(self.algebra.map(lambda pair: fetched(pair[0].solve(right[pair[1]])), pairs))


def even_ranges(count: int, parts: int) -> list[slice]:
    """Ranges of about equal length that together are 0 to ``count``."""
    edges = np.linspace(0, count, min(max(parts, 1), max(count, 1)) + 1).round().astype(int).tolist()
    return [slice(start, stop) for start, stop in pairwise(edges) if stop > start]
