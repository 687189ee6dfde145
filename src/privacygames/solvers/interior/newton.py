"""The Newton system at one state, and directions from it.

Each block o has a Hessian H_o; the blocks meet in the rows J of ``coupling.py``. Eliminating the blocks leaves the
Schur complement S = Σ_o J_o H_o⁻¹ J_oᵀ + diag(0, slack/dual), and with a free variable y one column more. All work on
blocks is done batch by batch at the same time, in as few phases as the solutions with S in between allow.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.batch_newton import BatchDirection, BatchNewton
from privacygames.solvers.interior.compiled_newton import CompiledBatchNewton
from privacygames.solvers.interior.formulation import Formulation
from privacygames.solvers.interior.inequalities import Answers, Inequalities
from privacygames.solvers.interior.state import Inside, State
from privacygames.solvers.linalg import BlockAlgebra
from privacygames.solvers.predictor_corrector import longest

Result = TypeVar("Result")

Wanted = Callable[[int], list[FloatArray]]
"""By how much slack·dual is to change in a batch (given by its number), family by family."""


@dataclass(frozen=True)
class Direction:
    """A change of a state, and the longest steps along it, at most 1, that keep slacks and dual values positive."""

    u: tuple[FloatArray, ...]
    inside: tuple[Inside, ...]
    coupling_slack: FloatArray
    coupling_dual: FloatArray
    worst: float
    primal: float
    dual: float

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
        self._held_softness = algebra.backend.held(self._softness)
        linked = formulation.coupling.links.rows
        schur = sum((part.schur for part in self._parts), algebra.backend.zeros((linked, linked)))
        schur = formulation.coupling.completed(schur, algebra.backend)
        inequalities = algebra.backend.held_indices(np.arange(n, rows))
        schur[inequalities, inequalities] += self._held_softness
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
        return sum(self._each(lambda part, _: part.unsettled(self.state.u)))

    @property
    def spares_host(self) -> bool:
        """Whether the host should do no more than it must."""
        return self._algebra.spares_host

    def direction(self, wanted: Wanted, coupled: FloatArray, *, refinements: int = 1) -> Direction:
        """Where slack·dual changes by ``wanted`` to first order, and feasibility is kept or restored."""
        form, state = self._formulation, self.state
        n, coupling = form.size, form.coupling
        goal = np.zeros(coupling.rows)
        goal[:n] = 1.0 - state.u[:, :n].sum(axis=0)
        missed = state.coupling_slack - form.coupling_slack(state.u, state.worst)
        goal[n:] = missed + coupled / state.limit_dual
        backend, free = self._algebra.backend, form.program.minimises_worst
        # The worst case's duals sum to one.
        lacking = 1.0 - float(state.limit_dual[coupling.totals :].sum()) if free else 0.0
        asked = backend.held(goal)
        gathered = self._added(lambda part, at: part.begin(wanted(at), feasible=False))
        held, worst = self._solve_coupling(asked - gathered, lacking)
        more = held
        for _ in range(refinements):
            missing = asked - self._refined(more, held)
            missing[n:] -= self._held_softness * held[n:]
            if free:
                missing -= worst * self._border[0]
            more, further = self._solve_coupling(missing, lacking - float(self._border[0] @ held) if free else 0.0)
            held, worst = held + more, worst + further
        found = self._each(lambda part, _: part.finish(more, None))
        dual = backend.fetched(held)
        slack = (coupled - state.coupling_slack * dual[n:]) / state.limit_dual
        return self._assembled(found, slack, dual, worst)

    def corrected(self, step: Direction, wanted: Wanted) -> Direction:
        """The direction with more ``wanted``: the system is linear, so only the difference is solved for."""
        gathered = self._added(lambda part, at: part.begin(wanted(at), feasible=True))
        held, worst = self._solve_coupling(-gathered, 0.0)
        found = self._each(lambda part, at: part.finish(held, (step.u[at], step.inside[at])))
        dual = self._algebra.backend.fetched(held)
        slack = step.coupling_slack - self._softness * dual[self._formulation.size :]
        return self._assembled(found, slack, step.coupling_dual + dual, step.worst + worst)

    def limiting(self, step: Direction, level: float, most: int) -> Inequalities:
        """The inequalities that end a direction before a step of 1/level: at most so many, that do soonest."""
        found = self._each(lambda part, at: part.limiting(step.inside[at], level, most))
        batch = np.repeat(np.arange(len(found)), [len(each[1]) for each in found])
        family, at, speed = (np.concatenate(each) for each in zip(*found, strict=True))
        first = np.argsort(-speed, kind="stable")[:most]
        first = first[np.lexsort((family[first], batch[first]))]  # in the order of batches and families
        return Inequalities(batch[first], family[first], at[first])

    def values(self, those: Inequalities, *insides: Sequence[Inside]) -> FloatArray:
        """The slacks and dual values (or their changes) of some inequalities, on the host: two rows for each given."""
        found = np.empty((2 * len(insides), len(those.at)))
        for batch, part in enumerate(self._parts):
            backend = part.batch.backend
            for family, which, at in those.within(batch):
                there = backend.held_indices(at)
                arrays = [
                    array for each in insides for array in (each[batch].slacks[family], each[batch].duals[family])
                ]
                found[:, which] = backend.fetched_rows([array.ravel()[there] for array in arrays])
        return found

    def answers(self, those: Inequalities) -> Answers:
        """What forces on some inequalities do; they are in the order of batches and families."""
        backend = self._algebra.backend

        def answered(part: BatchNewton, batch: int) -> list[tuple[FloatArray, IntArray, FloatArray, FloatArray]]:
            return [part.answers(family, at) for family, _, at in those.within(batch)]

        found = [each for part in self._each(answered) for each in part]
        rows, block = backend.joined([each[0] for each in found]), backend.joined([each[1] for each in found])
        within, gathered = backend.joined([each[2] for each in found]), backend.joined([each[3] for each in found])
        dual = self._schur.solve_rows(-gathered)
        worst = backend.zeros((len(dual), 1))
        if self._formulation.program.minimises_worst:
            border, solved, both = self._border
            worst = (dual @ border)[:, None] / both
            dual = dual - worst * solved
        return Answers(rows, block, within, gathered, backend.joined([dual.T, worst.T]).T, backend)

    def forced(self, step: Direction, those: Inequalities, answers: Answers, force: FloatArray) -> Direction:
        """The direction with forces on some inequalities added."""
        backend = self._algebra.backend
        held = backend.held(force)
        answer = held @ answers.coupling_dual
        within = backend.totals(answers.block, held[:, None] * answers.within, len(self.state.u))

        def finished(part: BatchNewton, at: int) -> BatchDirection:
            mine = [(family, places, force[which]) for family, which, places in those.within(at)]
            return part.forced(answer[:-1], within[part.batch.blocks], mine, (step.u[at], step.inside[at]))

        found = self._each(finished)
        dual = backend.fetched(answer)
        slack = step.coupling_slack - self._softness * dual[self._formulation.size : -1]
        return self._assembled(found, slack, step.coupling_dual + dual[:-1], step.worst + float(dual[-1]))

    def lengths_but_few(self, step: Direction, few: int) -> tuple[float, float]:
        """The longest steps along a direction, at most 1, that keep all but so few slacks, and duals, positive."""
        found = self._each(lambda part, at: part.fastest(step.inside[at], few + 1))
        slacks, duals = (np.concatenate(each) for each in zip(*found, strict=True))
        state = self.state
        return (
            min(longest(state.coupling_slack, step.coupling_slack), _step_but_few(slacks, few)),
            min(longest(state.limit_dual, step.limit_dual), _step_but_few(duals, few)),
        )

    def total_after(self, step: Direction, primal: float, dual: float) -> float:
        """The sum of all products after steps of these lengths along a direction."""
        state = self.state
        duals = state.limit_dual + dual * step.limit_dual
        total = float((state.coupling_slack + primal * step.coupling_slack) @ duals)
        return total + sum(self._each(lambda part, at: part.total_after(step.inside[at], primal, dual)))

    def _assembled(
        self,
        found: Sequence[BatchDirection],
        slack: FloatArray,
        coupling_dual: FloatArray,
        worst: float,
    ) -> Direction:
        """One direction from those of all batches."""
        limits = coupling_dual[len(coupling_dual) - len(slack) :]
        primal = min(longest(self.state.coupling_slack, slack), *(part.primal for part in found))
        dual = min(longest(self.state.limit_dual, limits), *(part.dual for part in found))
        du, inside = tuple(part.u for part in found), tuple(part.inside for part in found)
        return Direction(du, inside, slack, coupling_dual, worst, primal, dual)

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
