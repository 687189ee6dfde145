"""The Newton system of the min-max attack over pairs: one dense block per estimate.

The unknowns are q_ŝ ∈ R^m for every estimate and the shared y. Writing A_ŝ = diag(d(ŝ,·)) P for the errors of a block,
t = y − A q for their slacks with duals w, and z for the duals of q ≥ 0, block ŝ has the Hessian

    H_ŝ = A_ŝᵀ diag(w/t) A_ŝ + diag(z/q)

and the blocks are coupled by Σ_ŝ q_ŝ = 1 with dual values μ: the Schur complement is S = Σ_ŝ H_ŝ⁻¹. A direction is a
common scaling θ of q, y and μ plus a remainder: dq = q θ + dq', dy = y θ, dμ = dμ' − μ θ. Without this substitution
y's column of the system suffers from cancellation (docs/theory/minmax-pairs.md).
"""

from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.solvers.linalg import BlockAlgebra, CouplingRows, Gram, SymmetricBlocks, factorise_in_batches


@dataclass(frozen=True)
class PairState:
    """The variables of the method, or a direction for them.

    Attributes:
        q: the attack, (estimates, observables).
        y: the largest error allowed.
        t: the slacks y − A q, (estimates, secrets).
        w: their dual values.
        z: the dual values of q ≥ 0, (estimates, observables).
        mu: the dual values of Σ_ŝ q_ŝ = 1.
    """

    q: FloatArray
    y: float
    t: FloatArray
    w: FloatArray
    z: FloatArray
    mu: FloatArray

    def add_scaled(self, direction: "PairState", primal: float, dual: float) -> "PairState":
        """This state plus a direction times a primal and a dual step length."""
        return PairState(
            self.q + primal * direction.q,
            self.y + primal * direction.y,
            self.t + primal * direction.t,
            self.w + dual * direction.w,
            self.z + dual * direction.z,
            self.mu + dual * direction.mu,
        )


class PairNewton:
    """The factorised Newton system at one iterate."""

    def __init__(self, state: PairState, mechanism: FloatArray, distance: FloatArray, algebra: BlockAlgebra) -> None:
        self.state, self._p, self._d = state, mechanism, distance
        observables = state.q.shape[1]
        gram = Gram(mechanism, np.arange(observables), distance * distance * state.w / state.t)
        blocks = SymmetricBlocks(state.z / state.q, grams=(gram,))
        factors, schur = factorise_in_batches(algebra, blocks, CouplingRows(observables))
        self._solve_blocks, self._solve_schur = factors.solve, algebra.schur(schur).solve
        self._sums = state.q.sum(axis=0)
        self._schur_sums = self._solve_schur(self._sums)
        gap = float((state.t * state.w).sum() + (state.q * state.z).sum())
        self._theta_pivot = float(self._sums @ self._schur_sums) + gap + 2 * float(state.mu @ self._sums)
        # Residuals of the equations of q, of μ and of y.
        self._residual_q = self._adjoint(state.w) - state.z - state.mu
        self._residual_sums = 1 - self._sums
        self._residual_total = 1 - float(state.w.sum())

    def _adjoint(self, values: FloatArray) -> FloatArray:
        """Aᵀ times values, block by block."""
        return (values * self._d) @ self._p

    def direction(self, change_t: FloatArray, change_q: FloatArray) -> PairState:
        """The direction that changes the products t·w and q·z by these amounts to first order and removes residuals."""
        return self._solve(change_t, change_q, self._residual_q, self._residual_sums, self._residual_total)

    def correction(self, change_t: FloatArray, change_q: FloatArray) -> PairState:
        """The direction that changes the products alone, to add to one that removes the residuals."""
        return self._solve(change_t, change_q, np.zeros_like(self.state.q), np.zeros_like(self._sums), 0.0)

    def refine(self, step: PairState) -> PairState:
        """One step of iterative refinement of a direction."""
        residual_q = self._residual_q + self._adjoint(step.w) - step.z - step.mu
        residual_sums = self._residual_sums - step.q.sum(axis=0)
        residual_total = self._residual_total - float(step.w.sum())
        zero_t, zero_q = np.zeros_like(step.t), np.zeros_like(step.q)
        return step.add_scaled(self._solve(zero_t, zero_q, residual_q, residual_sums, residual_total), 1.0, 1.0)

    def _solve(
        self,
        change_t: FloatArray,
        change_q: FloatArray,
        residual_q: FloatArray,
        residual_sums: FloatArray,
        residual_total: float,
    ) -> PairState:
        state = self.state
        rhs = change_q / state.q - self._adjoint(change_t / state.t) - residual_q
        uncoupled = self._solve_blocks(rhs)
        coupling_dual = self._solve_schur(residual_sums - uncoupled.sum(axis=0))
        total_change = float(change_t.sum() + change_q.sum())
        theta_rhs = (
            state.y * residual_total
            + float((state.q * residual_q).sum())
            - float(state.mu @ residual_sums)
            - total_change
        )
        theta = (float(self._sums @ coupling_dual) - theta_rhs) / self._theta_pivot
        mu = coupling_dual - theta * self._schur_sums
        q = uncoupled + self._solve_blocks(np.broadcast_to(mu, state.q.shape)) + theta * state.q
        y = theta * state.y
        t = y - self._d * (q @ self._p.T)
        return PairState(
            q, y, t, (change_t - state.w * t) / state.t, (change_q - state.z * q) / state.q, mu - theta * state.mu
        )
