"""The Newton system at one state: blocks, Schur complement of the coupling rows, and directions.

With slacks and dual values eliminated, each block o has a Hessian H_o = Aᵀ diag(dual/slack) A; the blocks are linked
only by the coupling rows J. Eliminating the blocks leaves the Schur complement
S = Σ_o J_o H_o⁻¹ J_oᵀ + diag(0, slack/dual), and with a free variable y (the worst secret's cost) one border column
more. Work on blocks is done batch by batch at the same time, in as few phases as the solutions with S in between allow.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.batch_newton import BatchDirection, BatchNewton
from privacygames.solvers.interior.restricted_program import RestrictedProgram
from privacygames.solvers.interior.sensitivities import SelectedInequalities, Sensitivities
from privacygames.solvers.interior.state import SlackDualChange, State
from privacygames.solvers.linalg import BlockAlgebra
from privacygames.solvers.predictor_corrector import max_step, step_from_ratio

Result = TypeVar("Result")

ProductChange = Callable[[int], FloatArray]
"""The wanted change of every product slack·dual in a batch, given by its number."""


@dataclass(frozen=True)
class Direction:
    """A change of a state, and the largest step lengths along it, at most 1, that keep slacks and duals positive."""

    parts: tuple[BatchDirection, ...]
    coupling_slack: FloatArray
    coupling_dual: FloatArray
    worst_cost: float
    primal_step: float
    dual_step: float

    @property
    def u(self) -> list[FloatArray]:
        """The change of the unknowns, batch by batch."""
        return [part.u for part in self.parts]

    @property
    def changes(self) -> list[SlackDualChange]:
        """The changes of slacks and dual values within the blocks, batch by batch."""
        return [part.change for part in self.parts]

    @property
    def inequality_dual(self) -> FloatArray:
        """The change of the dual values of the inequalities among the coupling rows."""
        return self.coupling_dual[len(self.coupling_dual) - len(self.coupling_slack) :]


class Newton:
    """The Newton system at one state, factorised."""

    def __init__(self, restricted: RestrictedProgram, state: State, algebra: BlockAlgebra) -> None:
        self._restricted, self.state, self._algebra = restricted, state, algebra
        n, rows = restricted.secret_count, restricted.coupling.row_count
        pairs = list(zip(restricted.batches, state.slack_duals, strict=True))
        self._batches = algebra.map(lambda pair: BatchNewton(*pair, state.coupling_dual, algebra), pairs)
        self._slack_by_dual = state.coupling_slack / state.inequality_dual
        self._device_slack_by_dual = algebra.backend.to_device(self._slack_by_dual)
        first, *others = (batch.schur for batch in self._batches)
        schur = restricted.coupling.complete_schur(sum(others, first), algebra.backend)
        if rows > n:
            diagonal = schur.reshape(-1)[n * (rows + 1) :: rows + 1]
            diagonal += self._device_slack_by_dual
        self._schur = algebra.schur(schur)
        if restricted.program.minimises_worst_cost:
            border = algebra.backend.zeros((rows,))
            border[-len(restricted.program.cost_secret) :] = 1.0
            solved = self._schur.solve(border)
            self._border = border, solved, float(border @ solved)

    @property
    def secret_count(self) -> int:
        """Number of secrets in the program."""
        return self._restricted.secret_count

    @property
    def complementarity(self) -> float:
        """The sum of all products slack·dual."""
        coupling = float(self.state.coupling_slack @ self.state.inequality_dual)
        return coupling + sum(batch.complementarity for batch in self._batches)

    @property
    def residual_contribution(self) -> float:
        """The dual residual's contribution to the gap at the present unknowns: Σ |residual·u|."""
        return sum(self._map(lambda batch, _: batch.residual_contribution(self.state.device_u)))

    @property
    def on_device(self) -> bool:
        """Whether solutions come from a device, which waits while the host works."""
        return self._algebra.backend.prefer_fused_operations

    @cached_property
    def _primal_residual(self) -> FloatArray:
        """Residuals of the coupling rows: of sums to one, and of inequalities to their slacks."""
        restricted, state = self._restricted, self.state
        sums = 1.0 - state.u[:, : restricted.secret_count].sum(axis=0)
        return np.append(sums, state.coupling_slack - restricted.coupling_slack(state.u, state.worst_cost))

    def direction(
        self, product_change: ProductChange | None, coupling_change: FloatArray, *, refinements: int = 1
    ) -> Direction:
        """The direction along which products change as wanted, to first order, and residuals vanish.

        Args:
            product_change: for products within the blocks; None for those that vanish (the affine direction).
            coupling_change: for products of the inequalities among the coupling rows.
            refinements: steps of iterative refinement.
        """
        restricted, state = self._restricted, self.state
        n, coupling = restricted.secret_count, restricted.coupling
        goal = self._primal_residual.copy()
        goal[n:] += coupling_change / state.inequality_dual
        backend, free = self._algebra.backend, restricted.program.minimises_worst_cost
        # Where y is free, the dual values of the worst case sum to one.
        border_goal = 1.0 - float(state.inequality_dual[coupling.distortion_count :].sum()) if free else 0.0
        device_goal = backend.to_device(goal)
        product = self._sum(
            lambda batch, batch_index: batch.begin(product_change and product_change(batch_index), feasible=False)
        )
        coupling_dual, worst_cost = self._solve_schur(device_goal - product, border_goal)
        dual_increment = coupling_dual
        for _ in range(refinements):
            residual = device_goal - self._refine(dual_increment, coupling_dual)
            if coupling.row_count > n:
                inequalities = residual[n:]
                inequalities -= self._device_slack_by_dual * coupling_dual[n:]
            if free:
                residual -= worst_cost * self._border[0]
            border_residual = border_goal - float(self._border[0] @ coupling_dual) if free else 0.0
            dual_increment, worst_cost_increment = self._solve_schur(residual, border_residual)
            coupling_dual, worst_cost = coupling_dual + dual_increment, worst_cost + worst_cost_increment
        parts = self._map(lambda batch, _: batch.finish(dual_increment, None))
        dual, steps = self._to_host(coupling_dual, parts)
        slack = (coupling_change - state.coupling_slack * dual[n:]) / state.inequality_dual
        return self._assemble(parts, steps, slack, dual, worst_cost)

    def correct(self, direction: Direction, product_change: ProductChange) -> Direction:
        """The direction with a further change of products; the system is linear, so only that is solved for."""
        product = self._sum(lambda batch, batch_index: batch.begin(product_change(batch_index), feasible=True))
        coupling_dual, worst_cost = self._solve_schur(-product, 0.0)
        parts = self._map(lambda batch, batch_index: batch.finish(coupling_dual, direction.parts[batch_index]))
        dual, steps = self._to_host(coupling_dual, parts)
        slack = direction.coupling_slack - self._slack_by_dual * dual[self._restricted.secret_count :]
        return self._assemble(parts, steps, slack, direction.coupling_dual + dual, direction.worst_cost + worst_cost)

    def blocking_inequalities(
        self, direction: Direction, base: Direction, ratio: float, count: int
    ) -> SelectedInequalities:
        """The inequalities that limit a direction to a step below 1/ratio: the most limiting ones, at most ``count``.

        Their values are slacks, dual values and the changes of both along another direction, the base.
        """
        tables = self._map(
            lambda batch, batch_index: batch.blocking(
                direction.changes[batch_index], base.changes[batch_index], ratio, count
            )
        )
        batch = np.repeat(np.arange(len(tables)), [table.shape[1] for table in tables])
        ratios, index, keys, *values = np.concatenate(tables, axis=1)
        first = np.argsort(-ratios, kind="stable")[:count]
        first = first[np.argsort(batch[first], kind="stable")]  # in the order of batches
        names = index[first].astype(np.int64), keys[first].astype(np.int64)
        return SelectedInequalities(batch[first], *names, np.array(values)[:, first])

    def sensitivities(self, selected: SelectedInequalities) -> Sensitivities:
        """The direction's derivatives with respect to shifts of the duals of inequalities in the order of batches."""
        backend = self._algebra.backend

        def in_batch(batch: BatchNewton, batch_index: int) -> list[tuple[FloatArray, IntArray, FloatArray, FloatArray]]:
            which = selected.in_batch(batch_index)
            return [batch.sensitivities(selected.index[which], selected.keys[which])] if len(which) else []

        parts = [part for batch in self._map(in_batch) for part in batch]
        rows, block = backend.concatenate([part[0] for part in parts]), backend.concatenate([part[1] for part in parts])
        block_response = backend.concatenate([part[2] for part in parts])
        coupling_response = backend.concatenate([part[3] for part in parts])
        dual = self._schur.solve_rows(-coupling_response)
        if self._restricted.program.minimises_worst_cost:
            border, solved, pivot = self._border
            worst_cost = (dual @ border)[:, None] / pivot
            dual = backend.concatenate([(dual - worst_cost * solved).T, worst_cost.T]).T
        return Sensitivities(rows, block, block_response, coupling_response, dual, backend)

    def shift_duals(
        self,
        direction: Direction,
        selected: SelectedInequalities,
        sensitivities: Sensitivities,
        shifts: FloatArray,
    ) -> Direction:
        """The direction with the dual values of some inequalities shifted, and everything else in response."""
        backend, rows = self._algebra.backend, self._restricted.coupling.row_count
        device_shifts = backend.to_device(shifts)
        response = device_shifts @ sensitivities.coupling_dual
        change = device_shifts[:, None] * sensitivities.block_response
        block_response = backend.scatter_add(sensitivities.block, change, len(self.state.u))

        def in_batch(batch: BatchNewton, batch_index: int) -> BatchDirection:
            which = selected.in_batch(batch_index)
            own = device_shifts if len(which) == len(shifts) else backend.to_device(shifts[which])
            blocks = batch.batch.blocks
            return batch.shift_duals(
                response[:rows], block_response[blocks], selected.index[which], own, direction.parts[batch_index]
            )

        parts = self._map(in_batch)
        dual, steps = self._to_host(response, parts)
        slack = direction.coupling_slack - self._slack_by_dual * dual[self._restricted.secret_count : rows]
        worst_cost = direction.worst_cost + float(dual[rows:].sum())
        return self._assemble(parts, steps, slack, direction.coupling_dual + dual[:rows], worst_cost)

    def steps_ignoring(self, direction: Direction, count: int) -> tuple[float, float]:
        """The largest primal and dual steps, at most 1, that keep all but ``count`` slacks and duals positive."""
        ratios = self._map(
            lambda batch, batch_index: batch.largest_step_ratios(direction.changes[batch_index], count + 1)
        )
        slack_ratios, dual_ratios = (np.concatenate(parts) for parts in zip(*ratios, strict=True))
        state = self.state
        return (
            min(max_step(state.coupling_slack, direction.coupling_slack), _step_ignoring(slack_ratios, count)),
            min(max_step(state.inequality_dual, direction.inequality_dual), _step_ignoring(dual_ratios, count)),
        )

    def complementarity_after(self, direction: Direction, primal: float, dual: float) -> float:
        """The complementarity after steps of these lengths along a direction."""
        state = self.state
        duals = state.inequality_dual + dual * direction.inequality_dual
        total = float((state.coupling_slack + primal * direction.coupling_slack) @ duals)
        return total + sum(
            self._map(
                lambda batch, batch_index: batch.complementarity_after(direction.changes[batch_index], primal, dual)
            )
        )

    def _to_host(self, array: FloatArray, parts: Sequence[BatchDirection]) -> tuple[FloatArray, tuple[float, float]]:
        """An array on the host, and with the same transfer the primal and dual step lengths within the blocks."""
        growths = [growth for part in parts for growth in (part.slack_growth, part.dual_growth)]
        on_host, *least = self._algebra.backend.all_to_numpy([array, *growths])
        steps = [step_from_ratio(-float(growth)) for growth in least]
        return on_host, (min(steps[::2]), min(steps[1::2]))

    def _assemble(
        self,
        parts: Sequence[BatchDirection],
        steps: tuple[float, float],
        slack: FloatArray,
        coupling_dual: FloatArray,
        worst_cost: float,
    ) -> Direction:
        """One direction from those of all batches."""
        inequality_dual = coupling_dual[len(coupling_dual) - len(slack) :]
        primal = min(max_step(self.state.coupling_slack, slack), steps[0])
        dual = min(max_step(self.state.inequality_dual, inequality_dual), steps[1])
        return Direction(tuple(parts), slack, coupling_dual, worst_cost, primal, dual)

    def _map(self, work: Callable[[BatchNewton, int], Result]) -> list[Result]:
        """The results of work for every batch, several at the same time."""
        return self._algebra.map(
            lambda batch_index: work(self._batches[batch_index], batch_index), range(len(self._batches))
        )

    def _sum(self, work: Callable[[BatchNewton, int], FloatArray]) -> FloatArray:
        """The sum of the results over all batches."""
        first, *others = self._map(work)
        return sum(others, first)

    def _refine(self, dual_increment: FloatArray, dual_total: FloatArray) -> FloatArray:
        """J du after an increment of the coupling duals and one step of refinement within the blocks."""
        return self._sum(lambda batch, _: batch.refine(dual_increment, dual_total))

    def _solve_schur(self, right: FloatArray, border_right: float) -> tuple[FloatArray, float]:
        """Coupling duals, and y where it is free, from the bordered Schur system."""
        dual = self._schur.solve(right)
        if not self._restricted.program.minimises_worst_cost:
            return dual, 0.0
        border, solved, pivot = self._border
        worst_cost = (float(dual @ border) - border_right) / pivot
        return dual - worst_cost * solved, worst_cost


def _step_ignoring(ratios: FloatArray, count: int) -> float:
    """The largest step length, at most 1, that all but the ``count`` largest step ratios allow."""
    return 1.0 if len(ratios) <= count else 1 / float(np.partition(ratios, -count - 1)[-count - 1])
