"""The Newton system of a batch whose loops are compiled: what is done to the ratios goes along with the solutions."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.batch_newton import BatchDirection, BatchNewton, Force, Part
from privacygames.solvers.interior.compiled_pairs import CompiledWorkingSet
from privacygames.solvers.interior.entrywise import ratio
from privacygames.solvers.interior.state import Inside
from privacygames.solvers.linalg.compiled_factors import CompiledFactors
from privacygames.solvers.predictor_corrector import longest_at

NOTHING = np.zeros(0)


class CompiledBatchNewton(BatchNewton):
    """The same as :class:`BatchNewton`, with a working set; each block's part of a direction is found in one go."""

    _factors: CompiledFactors

    @property
    def _given(self) -> tuple[Any, ...]:
        """What every loop takes: factors, pairs and their slacks."""
        return self._factors.packed, *self._pairs.loop_arguments, self.now.slacks[0]

    @property
    def _pairs(self) -> CompiledWorkingSet:
        return cast("CompiledWorkingSet", self.batch.working_set)

    def begin(self, wanted: Sequence[FloatArray], *, feasible: bool) -> FloatArray:
        """Start a direction; J du."""
        self._wanted, backend = wanted, self.batch.backend
        others = zip(wanted[1:], self.now.slacks[1:], strict=True)
        self._right = self.batch.adjoint([ratio(backend, *each) for each in others], 1)
        if not feasible:
            self._right -= self._residual
        self._du = np.asarray(backend.kernels.begun(*self._given, wanted[0], self._right))
        return self.batch.coupling.gather(self._du)

    def refine(self, more: FloatArray, dual: FloatArray) -> FloatArray:
        """Take more coupling duals into account and, with all of them, what the blocks' equations miss; J du."""
        spread = self.batch.coupling.spread
        self._du += self._factors.solve(spread(more))
        missed = self.batch.adjoint(self._answered(self.batch.slacks(self._du, 1), 1), 1)
        right = self._right + spread(dual) + missed
        self.batch.backend.kernels.refined(*self._given, self.now.duals[0], right, self._du)
        return self.batch.coupling.gather(self._du)

    def _direction(
        self, right: FloatArray, du: FloatArray, wanted: Sequence[FloatArray], force: Sequence[Force], base: Part | None
    ) -> BatchDirection:
        backend, ratios = self.batch.backend, wanted[0] if wanted else NOTHING
        bases = (NOTHING, NOTHING) if base is None else (base[1].slacks[0], base[1].duals[0])
        du = du.copy()
        slack, dual, least = backend.kernels.finished(
            *self._given, self.now.duals[0], ratios, *bases, *self._on_ratios(force), right, du
        )
        change = self._change(du, wanted[1:], force, first=1)
        if base is not None:
            du, change = base[0] + du, base[1].since(1).plus(change, backend)
        lengths = zip(self._lengths(change, 1), least.min(axis=0), strict=True)
        primal, dual_step = (min(longest_at(-growth), others) for others, growth in lengths)
        return BatchDirection(du, Inside((slack, *change.slacks), (dual, *change.duals)), primal, dual_step)

    def _on_ratios(self, force: Sequence[Force]) -> tuple[IntArray, IntArray, FloatArray]:
        """Forces on ratios, sorted: where those of each block start, the ratios, and the forces."""
        starts = self._pairs.loop_arguments[0]
        for family, at, each in force:
            if family == 0:
                order = np.argsort(at)
                return np.searchsorted(at[order], starts), at[order], each[order]
        return np.zeros(len(starts), dtype=np.int64), np.zeros(0, dtype=np.int64), NOTHING
