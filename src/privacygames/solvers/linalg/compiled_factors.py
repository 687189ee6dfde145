"""Inverse factors of blocks by compiled loops, a whole batch in one call."""

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.linalg.backend import Backend
from privacygames.solvers.linalg.blocks import REGULARISATIONS, CouplingRows, OffDiagonal, SymmetricBlocks, joined_grams
from privacygames.solvers.linalg.failure import FactorisationFailed
from privacygames.solvers.linalg.host_factors import Spare, unit_scales


class CompiledFactors:
    """Of every block the triangle M = L⁻¹ D, packed, with H⁻¹ = MᵀM."""

    def __init__(self, blocks: SymmetricBlocks, spare: "Spare", backend: Backend) -> None:
        self._blocks, self._spare, self._kernels = blocks, spare, backend.kernels
        count, width = blocks.diagonal.shape
        self.packed = spare.take(count, width * (width + 1) // 2)
        self._scales = unit_scales(blocks, backend)

    def __del__(self) -> None:
        self._spare.give_back(self.packed)

    def factorise(self, links: CouplingRows) -> FloatArray:
        """Factorise the blocks; their Schur complement, right on and above the diagonal."""
        count, width = self._scales.shape
        beside = self._blocks.beside or OffDiagonal.none(count)
        gram = joined_grams(self._blocks.grams, count)
        which = np.zeros(0, dtype=np.int64)
        if links.which is not None:
            which = np.arange(width)[links.which]
        weights = np.zeros((count, 0)) if links.weights is None else links.weights
        total, failed = self._kernels.factorise(
            self._kernels.ROUTINES,
            self._scales,
            beside.starts,
            beside.row.astype(np.int32, copy=False),
            beside.column.astype(np.int32, copy=False),
            beside.value,
            np.ascontiguousarray(gram.rows),
            gram.columns,
            gram.leading,
            np.sqrt(gram.weights),
            links.rows,
            links.shared,
            which,
            np.ascontiguousarray(weights),
            np.array(REGULARISATIONS),
            self.packed,
        )
        if failed.any():
            raise FactorisationFailed
        return np.asarray(total)

    def solve(self, right: FloatArray, more: FloatArray | None = None) -> FloatArray:
        """H_o⁻¹ r_o for every block, and more."""
        found = self.solve_rows(np.arange(len(right)), right)
        if more is not None:
            found += more
        return found

    def solve_rows(self, blocks: IntArray, right: FloatArray) -> FloatArray:
        """H_o⁻¹ r for single right-hand sides."""
        return np.asarray(self._kernels.solve(self.packed, blocks, right))
