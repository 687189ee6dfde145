"""The Newton system at one state, and directions from it.

Each block o has a Hessian H_o; the blocks meet in the rows J of ``coupling.py``. Eliminating the blocks leaves the
Schur complement S = Σ_o J_o H_o⁻¹ J_oᵀ + diag(0, slack/dual), and with a free variable y one column more. All work on
blocks is done batch by batch at the same time, in as few phases as the solutions with S in between allow.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.solvers.interior.batch import Batch
from privacygames.solvers.interior.formulation import Formulation
from privacygames.solvers.interior.state import Inside, State
from privacygames.solvers.linalg import BlockAlgebra, Schur, SymmetricBlocks
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


class BatchNewton:
    """The Newton system of one batch, factorised, and a direction while it is found."""

    def __init__(self, batch: Batch, now: Inside, coupling_dual: FloatArray, algebra: BlockAlgebra) -> None:
        self.batch, self.now = batch, now
        self.total = sum(float(product.sum()) for product in now.products)
        self._residual = batch.dual_residual(coupling_dual, now.duals)
        self._weights = [dual / slack for slack, dual in zip(now.slacks, now.duals, strict=True)]
        parts = batch.hessian(self._weights)
        blocks = SymmetricBlocks(parts.diagonal, parts.beside, parts.grams)
        self._factors, self.schur = algebra.factorise(blocks, batch.coupling.links)

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
        self._du += self._factors.solve(self.batch.coupling.spread(dual))

    def refine(self, dual: FloatArray) -> FloatArray:
        """Make up for what the blocks' equations miss; J du."""
        applied = [w * slack for w, slack in zip(self._weights, self.batch.slacks(self._du), strict=True)]
        right = self._right + self.batch.coupling.spread(dual) - self.batch.adjoint(applied)
        self._du += self._factors.solve(right)
        return self.batch.coupling.gather(self._du)

    def finish(self) -> tuple[FloatArray, Inside]:
        """The direction: how unknowns, slacks and duals change."""
        slacks, now = self.batch.slacks(self._du), self.now
        columns = zip(self._wanted, now.duals, slacks, now.slacks, strict=True)
        duals = tuple((each - dual * change) / slack for each, dual, change, slack in columns)
        return self._du, Inside(slacks, duals)


class Newton:
    """The Newton system at one state, factorised."""

    def __init__(self, formulation: Formulation, state: State, algebra: BlockAlgebra) -> None:
        self._formulation, self._state, self._algebra = formulation, state, algebra
        n, rows = formulation.size, formulation.coupling.rows
        pairs = list(zip(formulation.batches, state.inside, strict=True))
        self._parts = algebra.map(lambda pair: BatchNewton(*pair, state.coupling_dual, algebra), pairs)
        self._softness = state.coupling_slack / state.limit_dual
        linked = formulation.coupling.links.rows
        schur = sum((part.schur for part in self._parts), np.zeros((linked, linked)))
        schur = formulation.coupling.completed(schur)
        inequalities = np.arange(n, rows)
        schur[inequalities, inequalities] += self._softness
        self._solve_schur = Schur(schur).solve
        self._border = np.zeros(rows)
        if formulation.program.minimises_worst:
            self._border[-len(formulation.program.whose) :] = 1.0
            self._border_solved = self._solve_schur(self._border)

    @property
    def total(self) -> float:
        """The sum of all products slack·dual."""
        return float(self._state.coupling_slack @ self._state.limit_dual) + sum(part.total for part in self._parts)

    def direction(self, wanted: Wanted, coupled: FloatArray, *, refine: bool = True) -> Direction:
        """Where slack·dual changes by ``wanted`` to first order, and feasibility is kept or restored."""
        form, state = self._formulation, self._state
        n, coupling = form.size, form.coupling
        goal = np.zeros(coupling.rows)
        goal[:n] = 1.0 - state.u[:, :n].sum(axis=0)
        missed = state.coupling_slack - form.coupling_slack(state.u, state.worst)
        goal[n:] = missed + coupled / state.limit_dual
        gathered = self._added(lambda part, at: part.begin(wanted(at), feasible=False))
        dual, worst = self._solve_coupling(goal - gathered, 1.0 - float(self._border @ state.coupling_dual))
        more = dual
        if refine:

            def refined(part: BatchNewton, _: int) -> FloatArray:
                part.add(dual)
                return part.refine(dual)

            missing = goal - self._added(refined) - worst * self._border
            missing[n:] -= self._softness * dual[n:]
            lacking = 1.0 - float(self._border @ (state.coupling_dual + dual))  # the worst case's duals sum to one
            more, further = self._solve_coupling(missing, lacking)
            worst += further

        def finished(part: BatchNewton, _: int) -> tuple[FloatArray, Inside, tuple[float, float]]:
            part.add(more)
            du, change = part.finish()
            return du, change, part.now.lengths(change)

        total = dual + more if refine else dual
        slack = (coupled - state.coupling_slack * total[n:]) / state.limit_dual
        return self._assembled(self._each(finished), slack, total, worst)

    def corrected(self, step: Direction, wanted: Wanted) -> Direction:
        """The direction with more ``wanted``: the system is linear, so only the difference is solved for."""
        gathered = self._added(lambda part, at: part.begin(wanted(at), feasible=True))
        dual, worst = self._solve_coupling(-gathered, 0.0)

        def finished(part: BatchNewton, at: int) -> tuple[FloatArray, Inside, tuple[float, float]]:
            part.add(dual)
            du, change = part.finish()
            both = step.inside[at].plus(change)
            return step.u[at] + du, both, part.now.lengths(both)

        slack = step.coupling_slack - self._softness * dual[self._formulation.size :]
        return self._assembled(self._each(finished), slack, step.coupling_dual + dual, step.worst + worst)

    def total_after(self, step: Direction) -> float:
        """The sum of all products after the longest steps along a direction."""
        primal, dual, state = step.primal, step.dual, self._state
        duals = state.limit_dual + dual * step.limit_dual
        total = float((state.coupling_slack + primal * step.coupling_slack) @ duals)
        return total + sum(self._each(lambda part, at: part.now.total_after(step.inside[at], primal, dual)))

    def _assembled(
        self,
        found: Sequence[tuple[FloatArray, Inside, tuple[float, float]]],
        slack: FloatArray,
        coupling_dual: FloatArray,
        worst: float,
    ) -> Direction:
        """One direction from those of all batches."""
        limits = coupling_dual[len(coupling_dual) - len(slack) :]
        primal = min(longest(self._state.coupling_slack, slack), *(lengths[0] for _, _, lengths in found))
        dual = min(longest(self._state.limit_dual, limits), *(lengths[1] for _, _, lengths in found))
        du, inside = tuple(each for each, _, _ in found), tuple(each for _, each, _ in found)
        return Direction(du, inside, slack, coupling_dual, worst, primal, dual)

    def _each(self, work: Callable[[BatchNewton, int], Result]) -> list[Result]:
        """What work gives for every batch, several at the same time."""
        return self._algebra.map(lambda at: work(self._parts[at], at), range(len(self._parts)))

    def _added(self, work: Callable[[BatchNewton, int], FloatArray]) -> FloatArray:
        """The sum over all batches of what work gives."""
        return np.asarray(np.sum(self._each(work), axis=0))

    def _solve_coupling(self, missing: FloatArray, lacking: float) -> tuple[FloatArray, float]:
        """Duals (and y, where it is free) that make up for what rows miss and what their duals lack to one."""
        solved = self._solve_schur(missing)
        if not self._formulation.program.minimises_worst:
            return solved, 0.0
        worst = (float(self._border @ solved) - lacking) / float(self._border @ self._border_solved)
        return solved - worst * self._border_solved, worst
