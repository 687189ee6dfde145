"""The Newton system at one state, and directions from it.

Each block o has a Hessian H_o; the blocks meet in the rows J of ``coupling.py``. Eliminating the blocks leaves the
Schur complement S = Σ_o J_o H_o⁻¹ J_oᵀ + diag(0, slack/dual), and with a free variable y one column more. All work on
blocks is done batch by batch at the same time, in as few phases as the solutions with S in between allow.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.batch_newton import BatchDirection, BatchNewton
from privacygames.solvers.interior.compiled_batch_newton import CompiledBatchNewton
from privacygames.solvers.interior.formulation import Formulation
from privacygames.solvers.interior.sensitivities import Inequalities, Sensitivities
from privacygames.solvers.interior.state import SlackDual, State
from privacygames.solvers.linalg import BlockAlgebra
from privacygames.solvers.predictor_corrector import max_step, step_from_ratio

Result = TypeVar("Result")

Wanted = Callable[[int], FloatArray]
"""By how much slack·dual is to change in a batch, given by its number."""


@dataclass(frozen=True)
class Direction:
    """A change of a state, and the longest steps along it, at most 1, that keep slacks and dual values positive."""

    parts: tuple[BatchDirection, ...]
    coupling_slack: FloatArray
    coupling_dual: FloatArray
    worst: float
    primal: float
    dual: float

    @property
    def u(self) -> list[FloatArray]:
        """The change of the unknowns, batch by batch."""
        return [part.u for part in self.parts]

    @property
    def inside(self) -> list[SlackDual]:
        """The changes of slacks and dual values, batch by batch."""
        return [part.inside for part in self.parts]

    @property
    def limit_dual(self) -> FloatArray:
        """The change of the dual values of the inequalities among the coupling rows."""
        return self.coupling_dual[len(self.coupling_dual) - len(self.coupling_slack) :]


class Newton:
    """The Newton system at one state, factorised."""

    def __init__(self, formulation: Formulation, state: State, algebra: BlockAlgebra) -> None:
        self._formulation, self.state, self._algebra = formulation, state, algebra
        n, rows = formulation.size, formulation.coupling.rows
        pairs = list(zip(formulation.batches, state.inside, strict=True))
        fused = algebra.backend.kernels is not None and formulation.ratios is not None
        kind = CompiledBatchNewton if fused else BatchNewton
        self._parts: list[BatchNewton] = algebra.map(lambda pair: kind(*pair, state.coupling_dual, algebra), pairs)
        self._softness = state.coupling_slack / state.limit_dual
        self._held_softness = algebra.backend.to_device(self._softness)
        first, *others = (part.schur for part in self._parts)
        schur = formulation.coupling.completed(sum(others, first), algebra.backend)
        if rows > n:
            diagonal = schur.reshape(-1)[n * (rows + 1) :: rows + 1]
            diagonal += self._held_softness
        self._schur = algebra.schur(schur)
        if formulation.program.minimises_worst:
            border = algebra.backend.zeros((rows,))
            border[-len(formulation.program.whose) :] = 1.0
            solved = self._schur.solve(border)
            self._border = border, solved, float(border @ solved)

    @property
    def size(self) -> int:
        """How many secrets are present."""
        return self._formulation.size

    @property
    def total(self) -> float:
        """The sum of all products slack·dual."""
        return float(self.state.coupling_slack @ self.state.limit_dual) + sum(part.total for part in self._parts)

    @property
    def unsettled(self) -> float:
        """What the dual residual weighs, with the unknowns as they are: Σ |residual·u|."""
        return sum(self._each(lambda part, _: part.unsettled(self.state.there)))

    @property
    def on_device(self) -> bool:
        """Whether solutions come from a device, which waits while the host works."""
        return self._algebra.backend.prefer_fused_operations

    @cached_property
    def _missed(self) -> FloatArray:
        """What the coupling rows miss: sums to one, and inequalities to their slacks."""
        form, state = self._formulation, self.state
        sums = 1.0 - state.u[:, : form.size].sum(axis=0)
        return np.append(sums, state.coupling_slack - form.coupling_slack(state.u, state.worst))

    def direction(self, wanted: Wanted | None, coupled: FloatArray, *, refinements: int = 1) -> Direction:
        """Where slack·dual changes by ``wanted`` to first order, and feasibility is kept or restored.

        None for products that vanish.
        """
        form, state = self._formulation, self.state
        n, coupling = form.size, form.coupling
        goal = self._missed.copy()
        goal[n:] += coupled / state.limit_dual
        backend, free = self._algebra.backend, form.program.minimises_worst
        # The worst case's duals sum to one.
        lacking = 1.0 - float(state.limit_dual[coupling.totals :].sum()) if free else 0.0
        asked = backend.to_device(goal)
        gathered = self._added(lambda part, at: part.begin(wanted and wanted(at), feasible=False))
        held, worst = self._solve_coupling(asked - gathered, lacking)
        more = held
        for _ in range(refinements):
            missing = asked - self._refined(more, held)
            if coupling.rows > n:
                limits = missing[n:]
                limits -= self._held_softness * held[n:]
            if free:
                missing -= worst * self._border[0]
            more, further = self._solve_coupling(missing, lacking - float(self._border[0] @ held) if free else 0.0)
            held, worst = held + more, worst + further
        found = self._each(lambda part, _: part.finish(more, None))
        dual, lengths = self._fetched(held, found)
        slack = (coupled - state.coupling_slack * dual[n:]) / state.limit_dual
        return self._assembled(found, lengths, slack, dual, worst)

    def corrected(self, step: Direction, wanted: Wanted) -> Direction:
        """The direction with more ``wanted``: the system is linear, so only the difference is solved for."""
        gathered = self._added(lambda part, at: part.begin(wanted(at), feasible=True))
        held, worst = self._solve_coupling(-gathered, 0.0)
        found = self._each(lambda part, at: part.finish(held, step.parts[at]))
        dual, lengths = self._fetched(held, found)
        slack = step.coupling_slack - self._softness * dual[self._formulation.size :]
        return self._assembled(found, lengths, slack, step.coupling_dual + dual, step.worst + worst)

    def limiting(self, step: Direction, base: Direction, level: float, most: int) -> Inequalities:
        """The inequalities that end a direction before a step of 1/level: at most so many, that do soonest.

        With how another direction, the base, changes them.
        """
        found = self._each(lambda part, at: part.limiting(step.inside[at], base.inside[at], level, most))
        batch = np.repeat(np.arange(len(found)), [each.shape[1] for each in found])
        speed, at, keys, *values = np.concatenate(found, axis=1)
        first = np.argsort(-speed, kind="stable")[:most]
        first = first[np.argsort(batch[first], kind="stable")]  # in the order of batches
        named = at[first].astype(np.int64), keys[first].astype(np.int64)
        return Inequalities(batch[first], *named, np.array(values)[:, first])

    def answers(self, those: Inequalities) -> Sensitivities:
        """What forces on some inequalities do; they are in the order of batches."""
        backend = self._algebra.backend

        def answered(part: BatchNewton, batch: int) -> list[tuple[FloatArray, IntArray, FloatArray, FloatArray]]:
            which = those.within(batch)
            return [part.answers(those.at[which], those.keys[which])] if len(which) else []

        found = [each for part in self._each(answered) for each in part]
        rows, block, within, gathered = (backend.concatenate(parts) for parts in zip(*found, strict=True))
        dual = self._schur.solve_rows(-gathered)
        if self._formulation.program.minimises_worst:
            border, solved, both = self._border
            worst = (dual @ border)[:, None] / both
            dual = backend.concatenate([(dual - worst * solved).T, worst.T]).T
        return Sensitivities(rows, block, within, gathered, dual, backend)

    def forced(self, step: Direction, those: Inequalities, answers: Sensitivities, force: FloatArray) -> Direction:
        """The direction with forces on some inequalities added."""
        backend, rows = self._algebra.backend, self._formulation.coupling.rows
        held = backend.to_device(force)
        answer = held @ answers.coupling_dual
        within = backend.scatter_add(answers.block, held[:, None] * answers.within, len(self.state.u))

        def finished(part: BatchNewton, at: int) -> BatchDirection:
            which = those.within(at)
            mine = held if len(which) == len(force) else backend.to_device(force[which])
            return part.forced(answer[:rows], within[part.batch.blocks], those.at[which], mine, step.parts[at])

        found = self._each(finished)
        dual, lengths = self._fetched(answer, found)
        slack = step.coupling_slack - self._softness * dual[self._formulation.size : rows]
        worst = step.worst + float(dual[rows:].sum())
        return self._assembled(found, lengths, slack, step.coupling_dual + dual[:rows], worst)

    def lengths_but_few(self, step: Direction, few: int) -> tuple[float, float]:
        """The longest steps along a direction, at most 1, that keep all but so few slacks, and duals, positive."""
        found = self._each(lambda part, at: part.fastest(step.inside[at], few + 1))
        slacks, duals = (np.concatenate(each) for each in zip(*found, strict=True))
        state = self.state
        return (
            min(max_step(state.coupling_slack, step.coupling_slack), _step_but_few(slacks, few)),
            min(max_step(state.limit_dual, step.limit_dual), _step_but_few(duals, few)),
        )

    def total_after(self, step: Direction, primal: float, dual: float) -> float:
        """The sum of all products after steps of these lengths along a direction."""
        state = self.state
        duals = state.limit_dual + dual * step.limit_dual
        total = float((state.coupling_slack + primal * step.coupling_slack) @ duals)
        return total + sum(self._each(lambda part, at: part.total_after(step.inside[at], primal, dual)))

    def _fetched(self, held: FloatArray, found: Sequence[BatchDirection]) -> tuple[FloatArray, tuple[float, float]]:
        """An array on the host, and with the same transfer the longest steps inside the blocks, at most 1."""
        growths = [each for part in found for each in (part.slack_growth, part.dual_growth)]
        array, *slowest = self._algebra.backend.all_to_numpy([held, *growths])
        lengths = [step_from_ratio(-float(each)) for each in slowest]
        return array, (min(lengths[::2]), min(lengths[1::2]))

    def _assembled(
        self,
        found: Sequence[BatchDirection],
        lengths: tuple[float, float],
        slack: FloatArray,
        coupling_dual: FloatArray,
        worst: float,
    ) -> Direction:
        """One direction from those of all batches."""
        limits = coupling_dual[len(coupling_dual) - len(slack) :]
        primal = min(max_step(self.state.coupling_slack, slack), lengths[0])
        dual = min(max_step(self.state.limit_dual, limits), lengths[1])
        return Direction(tuple(found), slack, coupling_dual, worst, primal, dual)

    def _each(self, work: Callable[[BatchNewton, int], Result]) -> list[Result]:
        """What work gives for every batch, several at the same time."""
        return self._algebra.map(lambda at: work(self._parts[at], at), range(len(self._parts)))

    def _added(self, work: Callable[[BatchNewton, int], FloatArray]) -> FloatArray:
        """The sum over all batches of what work gives, where that is."""
        first, *others = self._each(work)
        return sum(others, first)

    def _refined(self, more: FloatArray, dual: FloatArray) -> FloatArray:
        """J du of a direction with more coupling duals, then refined."""
        return self._added(lambda part, _: part.refine(more, dual))

    def _solve_coupling(self, missing: FloatArray, lacking: float) -> tuple[FloatArray, float]:
        """Duals (and y, where it is free) that make up for what rows miss and what their duals lack to one."""
        found = self._schur.solve(missing)
        if not self._formulation.program.minimises_worst:
            return found, 0.0
        border, solved, both = self._border
        worst = (float(found @ border) - lacking) / both
        return found - worst * solved, worst


def _step_but_few(speeds: FloatArray, few: int) -> float:
    """The longest step, at most 1, that all but the fastest few allow."""
    return 1.0 if len(speeds) <= few else 1 / float(np.partition(speeds, -few - 1)[-few - 1])
