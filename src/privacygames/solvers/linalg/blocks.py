"""What block algebra is: many symmetric blocks of one size, factorised, solved with and summed up in batches.

A block algebra is where the work of the interior-point methods is done. Threads and LAPACK on this machine
(``host.py``) are one, and a device with batched kernels can be another. The methods above know this file and no more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from privacygames.arrays import FloatArray, IntArray

Result = TypeVar("Result")


class FactorisationFailed(Exception):
    """A block is not positive definite in floating point: the iterate is as accurate as it gets."""


@dataclass(frozen=True)
class OffDiagonal:
    """Entries beside the diagonals: ``value`` at (row, column) and at (column, row) of a block, sorted by block.

    The entries of block o are those from ``starts[o]`` to ``starts[o + 1]``; a pair (row, column) occurs once at most.
    """

    starts: IntArray
    row: IntArray
    column: IntArray
    value: FloatArray


@dataclass(frozen=True)
class Gram:
    """A term Rᵀ diag(weights[o]) R, the same R for every block, on some of a block's columns."""

    rows: FloatArray
    columns: IntArray
    weights: FloatArray


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


@dataclass(frozen=True)
class Links:
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


class BlockFactors(Protocol):
    """Factors of a batch of blocks."""

    def solve(self, right: FloatArray) -> FloatArray:
        """H_o⁻¹ r_o for every block, (blocks, width)."""
        ...


class BlockAlgebra(Protocol):
    """Factorises batches of blocks, and runs other work on batches of them."""

    def factorise(self, blocks: SymmetricBlocks, links: Links) -> tuple[BlockFactors, FloatArray]:
        """The factors, and the Schur complement Σ_o J_o H_o⁻¹ J_oᵀ.

        Raises:
            FactorisationFailed: some block is not positive definite, even a little regularised.
        """
        ...

    def batches(self, count: int, *, most: int | None = None) -> list[slice]:
        """Ranges that together are 0 to ``count``, to be worked on at the same time; at most ``most`` long each."""
        ...

    def map(self, work: Callable[[slice], Result], batches: Sequence[slice]) -> list[Result]:
        """What ``work`` gives for every batch, in their order."""
        ...
