"""The Newton system of one batch of blocks, and the part of a direction in it."""

from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.batch import Batch
from privacygames.solvers.interior.elementwise import (
    Number,
    answered,
    dual_change,
    least_growth,
    moved,
    product_total,
    ratio,
    speeds,
    undone,
    used_up,
)
from privacygames.solvers.interior.state import SlackDual
from privacygames.solvers.linalg import BlockAlgebra, SymmetricBlocks


@dataclass(frozen=True)
class BatchDirection:
    """The part of a direction in one batch, and the least growth of slacks and of duals along it."""

    u: FloatArray
    inside: SlackDual
    slack_growth: Number
    dual_growth: Number


class BatchNewton:
    """The Newton system of one batch, factorised, and a direction while it is found."""

    def __init__(self, batch: Batch, now: SlackDual, coupling_dual: FloatArray, algebra: BlockAlgebra) -> None:
        self.batch, self.now = batch, now
        self.total = float(now.slacks @ now.duals)
        self._left = batch.uncoupled(coupling_dual)
        self._residual = self._left - batch.adjoint(now.duals)
        parts = batch.hessian(ratio(batch.backend, now.duals, now.slacks))
        blocks = SymmetricBlocks(parts.diagonal, parts.beside, parts.grams)
        self._factors, self.schur = algebra.factorise(blocks, batch.coupling.links)

    def unsettled(self, u: FloatArray) -> float:
        """Σ |residual·u| over the batch's blocks."""
        return float(abs(self._residual * u[self.batch.blocks]).sum())

    def begin(self, wanted: FloatArray | None, *, feasible: bool) -> FloatArray:
        """Start a direction, one that restores feasibility unless it is ``feasible`` already; J du.

        Where nothing is wanted of products but that they vanish, all that duals bear is let go of.
        """
        if wanted is None:
            self._wanted, self._right = undone(self.batch.backend, *self.now.both), -self._left
            self._du = self._factors.solve(self._right)
        else:
            self._wanted = wanted
            self._right, self._du = self._begun(wanted, feasible=feasible)
        return self.batch.coupling.gather(self._du)

    def _begun(self, wanted: FloatArray, *, feasible: bool) -> tuple[FloatArray, FloatArray]:
        """The right-hand sides of the blocks' equations, and their solutions."""
        right = self.batch.adjoint(ratio(self.batch.backend, wanted, self.now.slacks))
        if not feasible:
            right -= self._residual
        return right, self._factors.solve(right)

    def refine(self, more: FloatArray, dual: FloatArray) -> FloatArray:
        """Take more coupling duals into account and, with all of them, what the blocks' equations miss; J du."""
        spread = self.batch.coupling.spread
        self._du = self._refined(self._factors.solve(spread(more), self._du), self._right + spread(dual))
        return self.batch.coupling.gather(self._du)

    def _refined(self, du: FloatArray, right: FloatArray) -> FloatArray:
        """Du with H⁻¹ (right − H du) added, and H du computed from the inequalities."""
        now, backend = self.now, self.batch.backend
        weighted = ratio(backend, now.duals, now.slacks)
        weighted *= self.batch.slacks(du)
        return self._factors.solve(right - self.batch.adjoint(weighted), du)

    def finish(self, more: FloatArray, base: BatchDirection | None) -> BatchDirection:
        """The direction with more coupling duals, added to a base where there is one."""
        wanted, now, backend = self._wanted, self.now, self.batch.backend
        du = self._factors.solve(self.batch.coupling.spread(more), self._du)
        slacks = self.batch.slacks(du)
        change = SlackDual(slacks, dual_change(backend, wanted, now.duals, slacks, now.slacks))
        del self._wanted, wanted  # at large sizes every array counts
        if base is not None:
            du, change = base.u + du, base.inside.plus(change, backend)
        return self._measured(du, change)

    def forced(
        self, coupling_dual: FloatArray, within: FloatArray, at: IntArray, force: FloatArray, base: BatchDirection
    ) -> BatchDirection:
        """A base with forces: changes inside the blocks, of coupling duals, and what they press on."""
        backend, now = self.batch.backend, self.now
        du = self._factors.solve(self.batch.coupling.spread(coupling_dual), within)
        slacks = self.batch.slacks(du)
        duals = answered(backend, base.inside.duals, now.duals, slacks, now.slacks)
        backend.index_add(duals, backend.indices_to_device(at), force)
        return self._measured(base.u + du, SlackDual(moved(backend, base.inside.slacks, 1.0, slacks), duals))

    def _measured(self, du: FloatArray, change: SlackDual) -> BatchDirection:
        """A direction, with the least growths along it."""
        now, backend = self.now, self.batch.backend
        growth = least_growth(backend, now.slacks, change.slacks)
        return BatchDirection(du, change, growth, least_growth(backend, now.duals, change.duals))

    def limiting(self, change: SlackDual, base: SlackDual, level: float, most: int) -> FloatArray:
        """At most so many that end a step before 1/level, (7, …), on the host.

        By how much sooner, their positions and keys, slacks and dual values, and how another change changes these.
        """
        backend, now = self.batch.backend, self.now
        found = speeds(backend, now.slacks, change.slacks, now.duals, change.duals)
        speed, at = backend.top_k(found, level, most)
        values = [array[at] for array in (*now.both, *base.both)]
        fetched = backend.stack_to_numpy([speed, at, self.batch.keys(at), *values])
        return np.asarray(fetched[:, fetched[0] > level])

    def fastest(self, change: SlackDual, count: int) -> list[FloatArray]:
        """The largest shares of slacks, and of duals, that a change uses up: at most so many, all above one."""
        backend, both = self.batch.backend, zip(self.now.both, change.both, strict=True)
        return backend.top_k_values([used_up(backend, *each) for each in both], 1.0, count)

    def total_after(self, change: SlackDual, primal: float, dual: float) -> float:
        """The sum of the products after steps of these lengths along a change."""
        return float(product_total(self.batch.backend, self.now.both, change.both, (primal, dual)))

    def answers(self, at: IntArray, keys: IntArray) -> tuple[FloatArray, IntArray, FloatArray, FloatArray]:
        """The rows of some inequalities, their blocks, H⁻¹ rows, and what that does to the coupling rows."""
        backend, start = self.batch.backend, self.batch.blocks.start
        block, found = self.batch.rows(at, keys)
        rows, held = backend.to_device(found), backend.indices_to_device(block)
        within = self._factors.solve_rows(held, rows)
        return rows, held + start if start else held, within, self.batch.coupling.gather_each(held, within)
