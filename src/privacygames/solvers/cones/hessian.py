"""The sparse Hessians Aᵀ M_o A of all blocks, which share their pattern."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.cones.second_order import entries
from privacygames.solvers.linalg import OffDiagonal, SymmetricBlocks


@dataclass(frozen=True)
class HessianPattern:
    """The entries of Aᵀ M A on and above the diagonal, linear in the entries of each cone's symmetric M.

    Attributes:
        diagonal: sparse (unknowns, entries of M · cones).
        beside: sparse (entries above the diagonal, entries of M · cones).
        off_diagonal: the places of those entries in every block, without values.
    """

    diagonal: Any
    beside: Any
    off_diagonal: OffDiagonal

    @classmethod
    def of(cls, rows: tuple[Any, ...], blocks: int) -> "HessianPattern":
        """The pattern for the coordinates of all cones, each a sparse matrix (cones, unknowns)."""
        from scipy.sparse import csr_array

        cones, unknowns = rows[0].shape
        places, sources, values = [], [], []
        for entry, (first, second) in enumerate(entries(len(rows))):
            cone, left, right, value = _outer_products(rows[first], rows[second])
            if first != second:  # the entry stands at (first, second) and at (second, first)
                left, right = np.concatenate([left, right]), np.concatenate([right, left])
                cone, value = np.tile(cone, 2), np.tile(value, 2)
            above = left <= right
            places.append((left * unknowns + right)[above])
            sources.append((cones * entry + cone)[above])
            values.append(value[above])
        key, position = np.unique(np.concatenate(places), return_inverse=True)
        shape = len(key), len(entries(len(rows))) * cones
        table = csr_array((np.concatenate(values), (position, np.concatenate(sources))), shape=shape)
        row, column = np.divmod(key, unknowns)
        on = row == column
        row, column = (np.tile(part[~on].astype(np.int32), blocks) for part in (row, column))
        off = OffDiagonal(np.arange(blocks + 1) * int((~on).sum()), row, column, np.zeros(0))
        return cls(table[np.flatnonzero(on)], table[np.flatnonzero(~on)], off)

    def blocks(self, values: FloatArray, more: int) -> SymmetricBlocks:
        """The Hessians for the matrices M of every block, (entries, cones, blocks), with so many unknowns added."""
        flat = values.reshape(-1, values.shape[-1])
        beside = np.ascontiguousarray((self.beside @ flat).T)
        off = OffDiagonal(self.off_diagonal.starts, self.off_diagonal.row, self.off_diagonal.column, beside.ravel())
        return SymmetricBlocks(np.hstack([(self.diagonal @ flat).T, np.zeros((flat.shape[1], more))]), off)


def _outer_products(first: Any, second: Any) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
    """For each cone, the products of the entries of two sparse rows: cone, both columns, value."""
    first, second = first.tocsr(), second.tocsr()
    lengths = np.diff(first.indptr), np.diff(second.indptr)
    count = lengths[0] * lengths[1]
    cone = np.repeat(np.arange(first.shape[0]), count)
    inside = np.arange(len(cone)) - np.repeat(np.cumsum(count) - count, count)
    left = first.indptr[cone] + inside // lengths[1][cone]
    right = second.indptr[cone] + inside % lengths[1][cone]
    columns = (each.astype(np.int64) for each in (first.indices[left], second.indices[right]))
    return cone, *columns, first.data[left] * second.data[right]
