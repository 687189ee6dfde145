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
from privacygames.solvers.interior.batch import Batch
from privacygames.solvers.interior.entrywise import dual_change, least_growth, product_total, speeds
from privacygames.solvers.interior.formulation import Formulation
from privacygames.solvers.interior.inequalities import Answers, Inequalities
from privacygames.solvers.interior.state import Inside, State
from privacygames.solvers.linalg import BlockAlgebra, SymmetricBlocks
from privacygames.solvers.predictor_corrector import longest, longest_at

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


class BatchNewton:
    """The Newton system of one batch, factorised, and a direction while it is found."""

    def __init__(self, batch: Batch, now: Inside, coupling_dual: FloatArray, algebra: BlockAlgebra) -> None:
        self.batch, self.now = batch, now
        self.total = sum(batch.backend.numbers([product.sum() for product in now.products]))
        self._residual = batch.dual_residual(coupling_dual, now.duals)
        parts = batch.hessian(self._weights)
        blocks = SymmetricBlocks(parts.diagonal, parts.beside, parts.grams)
        self._factors, self.schur = algebra.factorise(blocks, batch.coupling.links)

    @property
    def _weights(self) -> list[FloatArray]:
        return [dual / slack for slack, dual in zip(self.now.slacks, self.now.duals, strict=True)]

    def unsettled(self, u: FloatArray) -> float:
        """Σ |residual·u| over the batch's blocks."""
        return float(abs(self._residual * self.batch.backend.held(u[self.batch.blocks])).sum())

    def begin(self, wanted: Sequence[FloatArray], *, feasible: bool) -> FloatArray:
        """Start a direction, one that restores feasibility unless it is ``feasible`` already; J du."""
        self._wanted = wanted
        ratios = [each / slack for each, slack in zip(wanted, self.now.slacks, strict=True)]
        self._right = self.batch.adjoint(ratios)
        if not feasible:
            self._right -= self._residual
        self._du = self._factors.solve(self._right)
        return self.batch.coupling.gather(self._du)

    def add(self, dual: FloatArray) -> None:
        """Take coupling duals into account."""
        self._du = self._factors.solve(self.batch.coupling.spread(dual), self._du)

    def refine(self, more: FloatArray, dual: FloatArray) -> FloatArray:
        """Take more coupling duals into account and, with all of them, what the blocks' equations miss; J du."""
        self.add(more)
        applied = [w * slack for w, slack in zip(self._weights, self.batch.slacks(self._du), strict=True)]
        right = self._right + self.batch.coupling.spread(dual) - self.batch.adjoint(applied)
        self._du = self._factors.solve(right, self._du)
        return self.batch.coupling.gather(self._du)

    def finish(self) -> tuple[FloatArray, Inside]:
        """The direction: how unknowns, slacks and duals change."""
        slacks, now = self.batch.slacks(self._du), self.now
        columns = zip(self._wanted, now.duals, slacks, now.slacks, strict=True)
        duals = tuple(dual_change(self.batch.backend, *each) for each in columns)
        self._wanted = ()  # at large sizes every array counts
        return self._du, Inside(slacks, duals)

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
            shares = [(-change / value).ravel() for value, change in zip(values, changes, strict=True)]
            return backend.above(backend.joined(shares), 1.0, count)[1]

        return largest(self.now.slacks, change.slacks), largest(self.now.duals, change.duals)

    def lengths(self, change: Inside) -> tuple[float, float]:
        """The longest primal and dual steps along a change, at most 1, that keep slacks and duals positive."""
        now, backend = self.now, self.batch.backend
        pairs = [*zip(now.slacks, change.slacks, strict=True), *zip(now.duals, change.duals, strict=True)]
        slowest = backend.numbers([least_growth(backend, *pair) for pair in pairs])
        lengths, half = [longest_at(-each) for each in slowest], len(now.slacks)
        return min(lengths[:half]), min(lengths[half:])

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

    def forced(
        self, coupling_dual: FloatArray, within: FloatArray, force: Sequence[tuple[int, IntArray, FloatArray]]
    ) -> tuple[FloatArray, Inside]:
        """The direction of forces: changes inside the blocks, of coupling duals, and what they press on."""
        backend, now = self.batch.backend, self.now
        du = self._factors.solve(self.batch.coupling.spread(coupling_dual), within)
        slacks = self.batch.slacks(du)
        columns = zip(now.duals, slacks, now.slacks, strict=True)
        duals = [-dual * change / slack for dual, change, slack in columns]
        for family, at, each in force:
            there, shape = backend.held_indices(at), duals[family].shape
            place = (there,) if len(shape) == 1 else (there // shape[1], there % shape[1])
            duals[family][place] += backend.held(each)
        return du, Inside(slacks, tuple(duals))


class Newton:
    """The Newton system at one state, factorised."""

    def __init__(self, formulation: Formulation, state: State, algebra: BlockAlgebra) -> None:
        self._formulation, self.state, self._algebra = formulation, state, algebra
        n, rows = formulation.size, formulation.coupling.rows
        pairs = list(zip(formulation.batches, state.inside, strict=True))
        self._parts = algebra.map(lambda pair: BatchNewton(*pair, state.coupling_dual, algebra), pairs)
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

        def finished(part: BatchNewton, _: int) -> tuple[FloatArray, Inside, tuple[float, float]]:
            part.add(more)
            du, change = part.finish()
            return du, change, part.lengths(change)

        dual = backend.fetched(held)
        slack = (coupled - state.coupling_slack * dual[n:]) / state.limit_dual
        return self._assembled(self._each(finished), slack, dual, worst)

    def corrected(self, step: Direction, wanted: Wanted) -> Direction:
        """The direction with more ``wanted``: the system is linear, so only the difference is solved for."""
        gathered = self._added(lambda part, at: part.begin(wanted(at), feasible=True))
        held, worst = self._solve_coupling(-gathered, 0.0)

        def finished(part: BatchNewton, at: int) -> tuple[FloatArray, Inside, tuple[float, float]]:
            part.add(held)
            du, change = part.finish()
            both = step.inside[at].plus(change, part.batch.backend)
            return step.u[at] + du, both, part.lengths(both)

        dual = self._algebra.backend.fetched(held)
        slack = step.coupling_slack - self._softness * dual[self._formulation.size :]
        return self._assembled(self._each(finished), slack, step.coupling_dual + dual, step.worst + worst)

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

        def finished(part: BatchNewton, at: int) -> tuple[FloatArray, Inside, tuple[float, float]]:
            mine = [(family, places, force[which]) for family, which, places in those.within(at)]
            du, change = part.forced(answer[:-1], within[part.batch.blocks], mine)
            both = step.inside[at].plus(change, part.batch.backend)
            return step.u[at] + du, both, part.lengths(both)

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
        found: Sequence[tuple[FloatArray, Inside, tuple[float, float]]],
        slack: FloatArray,
        coupling_dual: FloatArray,
        worst: float,
    ) -> Direction:
        """One direction from those of all batches."""
        limits = coupling_dual[len(coupling_dual) - len(slack) :]
        primal = min(longest(self.state.coupling_slack, slack), *(lengths[0] for _, _, lengths in found))
        dual = min(longest(self.state.limit_dual, limits), *(lengths[1] for _, _, lengths in found))
        du, inside = tuple(each for each, _, _ in found), tuple(each for _, each, _ in found)
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
