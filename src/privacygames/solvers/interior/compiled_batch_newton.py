"""The Newton system of a batch whose loops are compiled: what is done to the ratios goes along with the solutions."""

from typing import Any, cast

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.batch_newton import BatchDirection, BatchNewton
from privacygames.solvers.interior.compiled_working_set import CompiledWorkingSet
from privacygames.solvers.interior.state import SlackDual
from privacygames.solvers.linalg import CompiledFactors

NOTHING, NOWHERE = np.zeros(0), np.zeros(0, dtype=np.int64)


class CompiledBatchNewton(BatchNewton):
    """The same as :class:`BatchNewton`, with a working set; each block's part of a direction is found in one go.

    Ratios are the first of the inequalities: the loops write their changes where all have theirs.
    """

    _factors: CompiledFactors

    @property
    def _pairs(self) -> CompiledWorkingSet:
        return cast("CompiledWorkingSet", self.batch.working_set)

    @property
    def _given(self) -> tuple[Any, ...]:
        """What every loop takes: factors, pairs, and all slacks and duals, the pairs' first."""
        return self._factors.packed, *self._pairs.loop_arguments, *self.now.both

    def _begun(self, wanted: FloatArray, *, feasible: bool) -> tuple[FloatArray, FloatArray]:
        """The right-hand sides of the blocks' equations, and their solutions."""
        others = slice(len(self._pairs), None)
        right = self.batch.adjoint(wanted[others] / self.now.slacks[others], 1)
        if not feasible:
            right -= self._residual
        return right, np.asarray(self.batch.backend.kernels.begun(*self._given, wanted, right))

    def _refined(self, du: FloatArray, right: FloatArray) -> FloatArray:
        """Du with H⁻¹ (right − H du) added, and H du computed from the inequalities."""
        others = slice(len(self._pairs), None)
        weights = self.now.duals[others] / self.now.slacks[others]
        right = right - self.batch.adjoint(weights * self.batch.slacks(du, 1), 1)
        self.batch.backend.kernels.refined(*self._given, right, du)
        return du

    def finish(self, more: FloatArray, base: BatchDirection | None) -> BatchDirection:
        """The direction with more coupling duals, added to a base where there is one."""
        wanted = self._wanted
        del self._wanted
        return self._direction(self.batch.coupling.spread(more), self._du, wanted, base)

    def forced(
        self, coupling_dual: FloatArray, within: FloatArray, at: IntArray, force: FloatArray, base: BatchDirection
    ) -> BatchDirection:
        """A base with forces: changes inside the blocks, of coupling duals, and what they press on."""
        order = np.argsort(at)
        at, force = at[order], force[order]
        right = self.batch.coupling.spread(coupling_dual)
        return self._direction(right, within.copy(), NOTHING, base, (at, force))

    def _direction(
        self,
        right: FloatArray,
        du: FloatArray,
        wanted: FloatArray,
        base: BatchDirection | None,
        forces: tuple[IntArray, FloatArray] = (NOWHERE, NOTHING),
    ) -> BatchDirection:
        """The direction du + H⁻¹ right, with products that change as wanted, forces, and a base where there is one."""
        loops, now = self.batch.backend.kernels, self.now
        at, force = forces
        starts = self._pairs.loop_arguments[0]
        bases = (NOTHING, NOTHING) if base is None else base.inside.both
        change = SlackDual(np.empty_like(now.slacks), np.empty_like(now.slacks))
        least = loops.finished(
            *self._given, wanted, *bases, np.searchsorted(at, starts), at, force, right, du, *change.both
        )
        if self.batch.others:
            first = len(self._pairs)
            on_others = slice(np.searchsorted(at, first), None)
            change.slacks[first:] = self.batch.slacks(du, 1)
            given = first, *now.both, wanted, *bases, at[on_others], force[on_others]
            rest = loops.finished_others(*given, *change.both)
            least = np.vstack([least, rest])
        du = du if base is None else base.u + du
        return BatchDirection(du, change, *least.min(axis=0))
