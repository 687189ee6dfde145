"""The Newton system of one batch of blocks, and the part of a direction in it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.batch import Batch
from privacygames.solvers.interior.entrywise import (
    answered,
    dual_change,
    least_growth,
    product_total,
    ratio,
    speeds,
    used_up,
)
from privacygames.solvers.interior.state import Inside
from privacygames.solvers.linalg import BlockAlgebra, SymmetricBlocks
from privacygames.solvers.predictor_corrector import longest_at

Part = tuple[FloatArray, Inside]
"""How unknowns, slacks and dual values of a batch change."""

Force = tuple[int, IntArray, FloatArray]
"""Forces on the inequalities of a family, by their positions."""


@dataclass(frozen=True)
class BatchDirection:
    """The part of a direction in one batch, and the longest steps along it, at most 1, that keep it positive."""

    u: FloatArray
    inside: Inside
    primal: float
    dual: float


class BatchNewton:
    """The Newton system of one batch, factorised, and a direction while it is found."""

    def __init__(self, batch: Batch, now: Inside, coupling_dual: FloatArray, algebra: BlockAlgebra) -> None:
        self.batch, self.now = batch, now
        self.total = sum(batch.backend.numbers([s.ravel() @ z.ravel() for s, z in now.pairs]))
        self._residual = batch.dual_residual(coupling_dual, now.duals)
        parts = batch.hessian([ratio(batch.backend, dual, slack) for slack, dual in now.pairs])
        blocks = SymmetricBlocks(parts.diagonal, parts.beside, parts.grams)
        self._factors, self.schur = algebra.factorise(blocks, batch.coupling.links)

    def unsettled(self, u: FloatArray) -> float:
        """Σ |residual·u| over the batch's blocks."""
        return float(abs(self._residual * self.batch.backend.held(u[self.batch.blocks])).sum())

    def begin(self, wanted: Sequence[FloatArray], *, feasible: bool) -> FloatArray:
        """Start a direction, one that restores feasibility unless it is ``feasible`` already; J du."""
        self._wanted = wanted
        backend = self.batch.backend
        ratios = [ratio(backend, each, slack) for each, slack in zip(wanted, self.now.slacks, strict=True)]
        self._right = self.batch.adjoint(ratios)
        if not feasible:
            self._right -= self._residual
        self._du = self._factors.solve(self._right)
        return self.batch.coupling.gather(self._du)

    def refine(self, more: FloatArray, dual: FloatArray) -> FloatArray:
        """Take more coupling duals into account and, with all of them, what the blocks' equations miss; J du."""
        spread = self.batch.coupling.spread
        self._du += self._factors.solve(spread(more))
        missed = self.batch.adjoint(self._answered(self.batch.slacks(self._du)))
        self._du += self._factors.solve(self._right + spread(dual) + missed)
        return self.batch.coupling.gather(self._du)

    def finish(self, more: FloatArray, base: Part | None) -> BatchDirection:
        """The direction with more coupling duals, added to a base where there is one."""
        found = self._direction(self.batch.coupling.spread(more), self._du, self._wanted, (), base)
        self._wanted = ()  # at large sizes every array counts
        return found

    def forced(
        self, coupling_dual: FloatArray, within: FloatArray, force: Sequence[Force], base: Part
    ) -> BatchDirection:
        """A base with forces: changes inside the blocks, of coupling duals, and what they press on."""
        return self._direction(self.batch.coupling.spread(coupling_dual), within, (), force, base)

    def _direction(
        self, right: FloatArray, du: FloatArray, wanted: Sequence[FloatArray], force: Sequence[Force], base: Part | None
    ) -> BatchDirection:
        """The direction du + H⁻¹ right, with products that change as wanted, forces, and a base where there is one."""
        du = du + self._factors.solve(right)
        change = self._change(du, wanted, force)
        if base is not None:
            du, change = base[0] + du, base[1].plus(change, self.batch.backend)
        return BatchDirection(du, change, *self._lengths(change))

    def _change(
        self, du: FloatArray, wanted: Sequence[FloatArray], force: Sequence[Force], *, first: int = 0
    ) -> Inside:
        """How slacks and duals of families from the first on change: products as wanted, or not if that is empty."""
        backend, slacks, now = self.batch.backend, self.batch.slacks(du, first), self.now.since(first)
        if wanted:
            columns = zip(wanted, now.duals, slacks, now.slacks, strict=True)
            duals = [dual_change(backend, *each) for each in columns]
        else:
            duals = self._answered(slacks, first)
        for family, at, each in force:
            if family < first:
                continue
            there, shape = backend.held_indices(at), duals[family - first].shape
            place = (there,) if len(shape) == 1 else (there // shape[1], there % shape[1])
            duals[family - first][place] += backend.held(each)
        return Inside(slacks, tuple(duals))

    def _answered(self, slacks: Sequence[FloatArray], first: int = 0) -> list[FloatArray]:
        """How duals answer to changes of slacks, of the families from the first on."""
        now = self.now.since(first)
        return [answered(self.batch.backend, *each) for each in zip(now.duals, slacks, now.slacks, strict=True)]

    def _lengths(self, change: Inside, first: int = 0) -> tuple[float, float]:
        """The longest primal and dual steps along a change of the families from the first on, at most 1."""
        now, backend = self.now.since(first), self.batch.backend
        pairs = [*zip(now.slacks, change.slacks, strict=True), *zip(now.duals, change.duals, strict=True)]
        slowest = backend.numbers([least_growth(backend, *pair) for pair in pairs])
        lengths, half = [longest_at(-each) for each in slowest], len(now.slacks)
        return min(lengths[:half], default=1.0), min(lengths[half:], default=1.0)

    def limiting(self, change: Inside, level: float, most: int) -> tuple[IntArray, IntArray, FloatArray]:
        """The families and positions of at most so many that end a step before 1/level, and by how much sooner."""
        backend = self.batch.backend
        columns = zip(self.now.slacks, change.slacks, self.now.duals, change.duals, strict=True)
        found = [speeds(backend, *each).ravel() for each in columns]
        ends = np.cumsum([len(each) for each in found])
        at, speed = backend.above(backend.joined(found), level, most)
        family = np.searchsorted(ends, at, side="right")
        return family, at - np.append(0, ends)[family], speed

    def fastest(self, change: Inside, count: int) -> tuple[FloatArray, FloatArray]:
        """The largest shares of slacks, and of duals, that a change uses up: at most so many, all above one."""
        backend = self.batch.backend

        def largest(values: Sequence[FloatArray], changes: Sequence[FloatArray]) -> FloatArray:
            shares = [used_up(backend, *each).ravel() for each in zip(values, changes, strict=True)]
            return backend.above(backend.joined(shares), 1.0, count)[1]

        return largest(self.now.slacks, change.slacks), largest(self.now.duals, change.duals)

    def total_after(self, change: Inside, primal: float, dual: float) -> float:
        """The sum of the products after steps of these lengths along a change."""
        backend, both = self.batch.backend, zip(self.now.pairs, change.pairs, strict=True)
        return sum(backend.numbers([product_total(backend, *each, (primal, dual)) for each in both]))

    def answers(self, family: int, at: IntArray) -> tuple[FloatArray, IntArray, FloatArray, FloatArray]:
        """The rows of some inequalities, their blocks, H⁻¹ rows, and what that does to the coupling rows."""
        backend = self.batch.backend
        block, found = self.batch.families[family].rows(at, self.batch.objective.shape[1])
        rows, held = backend.held(found), backend.held_indices(block)
        within = self._factors.solve_rows(held, rows)
        return rows, held + self.batch.blocks.start, within, self.batch.coupling.gather_each(held, within)
