"""The Newton system of the min-max attack over pairs: one dense block per estimate.

The unknowns are q_ŝ ∈ R^m for every estimate and the shared y. Writing A_ŝ = diag(d(ŝ,·)) P for the errors of a block,
t = y − A q for their slacks with duals w, and z for the duals of q ≥ 0, block ŝ has the Hessian

    H_ŝ = A_ŝᵀ diag(w/t) A_ŝ + diag(z/q)

and the blocks meet in Σ_ŝ q_ŝ = 1 with multipliers μ: S = Σ_ŝ H_ŝ⁻¹. Directions are looked for as a common stretch θ of
q, y and μ plus the rest: dq = q θ + dq', dy = y θ, dμ = dμ' − μ θ. Then y's column of the system is no longer the
difference of huge numbers that it is as it stands (docs/theory/minmax-pairs.md).
"""

from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.solvers.linalg import BlockAlgebra, CouplingRows, Gram, SymmetricBlocks, factorise_in_batches


@dataclass(frozen=True)
class PairState:
    """A state of the method, or a change of one.

    Attributes:
        q: the attack, (estimates, observables).
        y: the largest error allowed.
        t: the slacks y − A q, (estimates, secrets).
        w: their dual values.
        z: the dual values of q ≥ 0, (estimates, observables).
        mu: the multipliers of Σ_ŝ q_ŝ = 1.
    """

    q: FloatArray
    y: float
    t: FloatArray
    w: FloatArray
    z: FloatArray
    mu: FloatArray

    def plus(self, change: "PairState", primal: float, dual: float) -> "PairState":
        """This, moved along a change."""
        return PairState(
            self.q + primal * change.q,
            self.y + primal * change.y,
            self.t + primal * change.t,
            self.w + dual * change.w,
            self.z + dual * change.z,
            self.mu + dual * change.mu,
        )


class PairNewton:
    """Factors of one Newton system, ready to give directions."""

    def __init__(self, at: PairState, mechanism: FloatArray, distance: FloatArray, algebra: BlockAlgebra) -> None:
        self.at, self._p, self._d = at, mechanism, distance
        observables = at.q.shape[1]
        gram = Gram(mechanism, np.arange(observables), distance * distance * at.w / at.t)
        blocks = SymmetricBlocks(at.z / at.q, grams=(gram,))
        factors, schur = factorise_in_batches(algebra, blocks, CouplingRows(observables))
        self._solve_blocks, self._solve_schur = factors.solve, algebra.schur(schur).solve
        self._sums = at.q.sum(axis=0)
        self._stretched = self._solve_schur(self._sums)
        gap = float((at.t * at.w).sum() + (at.q * at.z).sum())
        self._stretch = float(self._sums @ self._stretched) + gap + 2 * float(at.mu @ self._sums)
        # What the point misses: the equations of q, of μ and of y.
        self._missed_q = self._adjoint(at.w) - at.z - at.mu
        self._missed_sums = 1 - self._sums
        self._missed_total = 1 - float(at.w.sum())

    def _adjoint(self, values: FloatArray) -> FloatArray:
        """Aᵀ values, block by block."""
        return (values * self._d) @ self._p

    def direction(self, wanted_t: FloatArray, wanted_q: FloatArray) -> PairState:
        """Where the products t·w and q·z change by what is wanted to first order, and what is missed is made up."""
        return self._solve(wanted_t, wanted_q, self._missed_q, self._missed_sums, self._missed_total)

    def correction(self, wanted_t: FloatArray, wanted_q: FloatArray) -> PairState:
        """The same, when another direction makes up for what is missed."""
        return self._solve(wanted_t, wanted_q, np.zeros_like(self.at.q), np.zeros_like(self._sums), 0.0)

    def refined(self, step: PairState) -> PairState:
        """A direction with what it still misses made up."""
        missed_q = self._missed_q + self._adjoint(step.w) - step.z - step.mu
        missed_sums = self._missed_sums - step.q.sum(axis=0)
        missed_total = self._missed_total - float(step.w.sum())
        nothing_t, nothing_q = np.zeros_like(step.t), np.zeros_like(step.q)
        return step.plus(self._solve(nothing_t, nothing_q, missed_q, missed_sums, missed_total), 1.0, 1.0)

    def _solve(
        self,
        wanted_t: FloatArray,
        wanted_q: FloatArray,
        missed_q: FloatArray,
        missed_sums: FloatArray,
        missed_total: float,
    ) -> PairState:
        at = self.at
        right = wanted_q / at.q - self._adjoint(wanted_t / at.t) - missed_q
        free = self._solve_blocks(right)
        halfway = self._solve_schur(missed_sums - free.sum(axis=0))
        wanted = float(wanted_t.sum() + wanted_q.sum())
        goal = at.y * missed_total + float((at.q * missed_q).sum()) - float(at.mu @ missed_sums) - wanted
        theta = (float(self._sums @ halfway) - goal) / self._stretch
        mu = halfway - theta * self._stretched
        q = free + self._solve_blocks(np.broadcast_to(mu, at.q.shape)) + theta * at.q
        y = theta * at.y
        t = y - self._d * (q @ self._p.T)
        return PairState(q, y, t, (wanted_t - at.w * t) / at.t, (wanted_q - at.z * q) / at.q, mu - theta * at.mu)
