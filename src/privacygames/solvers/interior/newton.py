"""The Newton system at one state, and directions from it.

Each block o has a Hessian H_o; the blocks meet in the rows J of ``coupling.py``. Eliminating the blocks leaves the
Schur complement S = Σ_o J_o H_o⁻¹ J_oᵀ + diag(0, slack/dual), and with a free variable y one column more.
"""

from collections.abc import Sequence

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.solvers.interior.formulation import Formulation
from privacygames.solvers.interior.state import State, dual_residual
from privacygames.solvers.linalg import BlockAlgebra, Schur, SymmetricBlocks
from privacygames.solvers.predictor_corrector import longest

Direction = State
"""A change of a state."""


class Newton:
    """The Newton system at one state, factorised."""

    def __init__(self, formulation: Formulation, state: State, algebra: BlockAlgebra) -> None:
        self._formulation, self._state = formulation, state
        n, rows = formulation.size, formulation.coupling.rows
        self._residual = dual_residual(formulation, state.coupling_dual, state.duals)
        self._softness = state.coupling_slack / state.limit_dual
        self._weights = [dual / slack for slack, dual in zip(state.slacks, state.duals, strict=True)]
        parts = formulation.hessian(self._weights)
        blocks = SymmetricBlocks(parts.diagonal, parts.beside, parts.grams)
        factors, schur = algebra.factorise(blocks, formulation.coupling.links)
        schur = formulation.coupling.completed(schur)
        inequalities = np.arange(n, rows)
        schur[inequalities, inequalities] += self._softness
        self._solve_blocks, self._solve_schur = factors.solve, Schur(schur).solve
        self._border = np.zeros(rows)
        if formulation.program.minimises_worst:
            self._border[-len(formulation.program.whose) :] = 1.0
            self._border_solved = self._solve_schur(self._border)

    def direction(self, wanted: Sequence[FloatArray], coupled: FloatArray, *, refine: bool = True) -> Direction:
        """Where slack·dual changes by ``wanted`` to first order, and feasibility is kept or restored."""
        form, state = self._formulation, self._state
        n, coupling = form.size, form.coupling
        right = form.adjoint([each / slack for each, slack in zip(wanted, state.slacks, strict=True)]) - self._residual
        goal = np.zeros(coupling.rows)
        goal[:n] = 1.0 - state.u[:, :n].sum(axis=0)
        missed = state.coupling_slack - form.coupling_slack(state.u, state.worst)
        goal[n:] = missed + coupled / state.limit_dual
        dual, worst = np.zeros_like(goal), 0.0
        du = self._solve_blocks(right)
        for refinement in (False, True) if refine else (False,):
            if refinement:
                applied = [w * slack for w, slack in zip(self._weights, form.slacks(du), strict=True)]
                du += self._solve_blocks(right + coupling.spread(dual) - form.adjoint(applied))
            missing = goal - coupling.gather(du) - worst * self._border
            missing[n:] -= self._softness * dual[n:]
            lacking = 1.0 - float(self._border @ (state.coupling_dual + dual))  # the worst case's duals sum to one
            more, further = self._solve_coupling(missing, lacking)
            dual, worst = dual + more, worst + further
            du += self._solve_blocks(coupling.spread(more))
        slacks, duals = self._inside(du, wanted)
        slack = (coupled - state.coupling_slack * dual[n:]) / state.limit_dual
        return Direction(du, slacks, duals, slack, dual, worst)

    def corrected(self, step: Direction, change: Sequence[FloatArray]) -> Direction:
        """The direction with ``change`` more wanted: the system is linear, so only the difference is solved for."""
        form, state = self._formulation, self._state
        du = self._solve_blocks(form.adjoint([each / slack for each, slack in zip(change, state.slacks, strict=True)]))
        dual, worst = self._solve_coupling(-form.coupling.gather(du), 0.0)
        du += self._solve_blocks(form.coupling.spread(dual))
        slacks, duals = self._inside(du, change)
        more = Direction(du, slacks, duals, -self._softness * dual[form.size :], dual, worst)
        return step.plus(more, 1.0, 1.0)

    def _solve_coupling(self, missing: FloatArray, lacking: float) -> tuple[FloatArray, float]:
        """Duals (and y, where it is free) that make up for what rows miss and what their duals lack to one."""
        solved = self._solve_schur(missing)
        if not self._formulation.program.minimises_worst:
            return solved, 0.0
        worst = (float(self._border @ solved) - lacking) / float(self._border @ self._border_solved)
        return solved - worst * self._border_solved, worst

    def _inside(
        self, du: FloatArray, wanted: Sequence[FloatArray]
    ) -> tuple[tuple[FloatArray, ...], tuple[FloatArray, ...]]:
        """How slacks and duals inside the blocks change along du."""
        state, slacks = self._state, self._formulation.slacks(du)
        columns = zip(wanted, state.duals, slacks, state.slacks, strict=True)
        return slacks, tuple((each - dual * change) / slack for each, dual, change, slack in columns)


def lengths(state: State, step: Direction) -> tuple[float, float]:
    """The longest primal and dual steps, at most 1, that keep slacks and duals positive."""
    primal = [longest(slack, change) for slack, change in zip(state.slacks, step.slacks, strict=True)]
    dual = [longest(value, change) for value, change in zip(state.duals, step.duals, strict=True)]
    primal.append(longest(state.coupling_slack, step.coupling_slack))
    dual.append(longest(state.limit_dual, step.limit_dual))
    return min(primal), min(dual)


def products_at(state: State, step: Direction, primal: float, dual: float) -> list[FloatArray]:
    """slack·dual inside the blocks after steps of these lengths."""
    columns = zip(state.slacks, step.slacks, state.duals, step.duals, strict=True)
    return [(slack + primal * ds) * (value + dual * dz) for slack, ds, value, dz in columns]


def total_after(state: State, step: Direction, primal: float, dual: float) -> float:
    """The sum of all products after steps of these lengths."""
    duals = state.limit_dual + dual * step.limit_dual
    total = float(((state.coupling_slack + primal * step.coupling_slack) * duals).sum())
    return total + sum(float(each.sum()) for each in products_at(state, step, primal, dual))
