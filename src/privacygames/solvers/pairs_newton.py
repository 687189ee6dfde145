"""The Newton system of the min-max attack over pairs: one dense block per estimate.

The unknowns are q_ŝ ∈ R^m for every estimate and the shared y. Writing A_ŝ = diag(d(ŝ,·)) P for the errors of a block,
t = y − A q for their slacks with prices w, and z for the prices of q ≥ 0, block ŝ has the Hessian

    H_ŝ = A_ŝᵀ diag(w/t) A_ŝ + diag(z/q)

and the blocks meet in Σ_ŝ q_ŝ = 1 with multipliers μ: S = Σ_ŝ H_ŝ⁻¹. Directions are looked for as a common stretch θ of
q, y and μ plus the rest: dq = q θ + dq', dy = y θ, dμ = dμ' − μ θ. Then y's column of the system is no longer the
difference of huge numbers that it is as it stands (docs/theory/solver.md).
"""

from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg import lapack

from privacygames.arrays import FloatArray
from privacygames.solvers.newton import Breakdown, invert_lower

REGULARISATION = 1e-14
STACK = 8


@dataclass(frozen=True)
class Point:
    """A state of the method, or a change of one.

    Attributes:
        q: the attack, (estimates, observables).
        y: the largest error allowed.
        t: the slacks y − A q, (estimates, secrets).
        w: their prices.
        z: the prices of q ≥ 0, (estimates, observables).
        mu: the multipliers of Σ_ŝ q_ŝ = 1.
    """

    q: FloatArray
    y: float
    t: FloatArray
    w: FloatArray
    z: FloatArray
    mu: FloatArray

    def plus(self, change: "Point", primal: float, dual: float) -> "Point":
        """This, moved along a change."""
        return Point(
            self.q + primal * change.q,
            self.y + primal * change.y,
            self.t + primal * change.t,
            self.w + dual * change.w,
            self.z + dual * change.z,
            self.mu + dual * change.mu,
        )


class Newton:
    """Factors of one Newton system, ready to give directions.

    ``roots`` is where the factors' inverses go: (estimates, observables, observables), zero above the diagonals.
    """

    def __init__(
        self, at: Point, mechanism: FloatArray, distance: FloatArray, roots: FloatArray, pool: Executor
    ) -> None:
        self.at, self._p, self._d, self._roots, self._pool = at, mechanism, distance, roots, pool
        blocks = len(at.q)
        edges = np.linspace(0, blocks, 2 * min(blocks, 8) + 1).astype(int)
        self._parts = [slice(a, b) for a, b in pairwise(edges) if b > a]
        self._stiffness = distance * np.sqrt(at.w / at.t)
        self._schur: FloatArray = np.sum(list(pool.map(self._factor, self._parts)), axis=0)
        self._scale = 1 / np.sqrt(self._schur.diagonal())
        scaled = self._schur * self._scale * self._scale[:, None]
        self._schur_factor, info = lapack.dpotrf(scaled, lower=1)
        if info or not np.isfinite(self._scale).all():
            raise Breakdown
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

    def _factor(self, part: slice) -> FloatArray:
        """Invert the factors of some blocks; return their part of the Schur complement."""
        size = self._p.shape[1]
        total = np.zeros((size, size))
        for start in range(part.start, part.stop, STACK):
            some = slice(start, min(start + STACK, part.stop))
            for block in range(some.start, some.stop):
                self._invert(block)
            stack = self._roots[some].reshape(-1, size)
            total += stack.T @ stack
        return total

    def _invert(self, block: int) -> None:
        """The root of H⁻¹, from H in the variables relative to q and with a unit diagonal: nothing is tiny or huge."""
        q, root = self.at.q[block], self._roots[block]
        rows = self._p * q
        rows *= self._stiffness[block][:, None]
        hessian = rows.T @ rows
        diagonal = hessian.reshape(-1)[:: len(q) + 1]
        diagonal += self.at.z[block] * q
        scale = 1 / np.sqrt(diagonal)
        hessian *= scale
        hessian *= scale[:, None]
        diagonal += REGULARISATION
        factor, info = lapack.dpotrf(hessian.T, lower=1, overwrite_a=1, clean=0)
        if info or not np.isfinite(scale).all():
            raise Breakdown
        invert_lower(factor, root)
        root *= scale * q

    def _solve_blocks(self, right: FloatArray) -> FloatArray:
        """H_ŝ⁻¹ r_ŝ for every block."""
        result = np.empty(self.at.q.shape)
        right = np.broadcast_to(right, result.shape)

        def solve(part: slice) -> None:
            for block in range(part.start, part.stop):  # one by one: a root stays in the cache for both products
                root = self._roots[block]
                result[block] = (root @ right[block]) @ root

        list(self._pool.map(solve, self._parts))
        return result

    def _solve_schur(self, right: FloatArray) -> FloatArray:
        """S⁻¹ r, refined once."""
        found = np.zeros_like(right)
        for _ in range(2):
            residual = self._scale * (right - self._schur @ found)
            found += self._scale * lapack.dpotrs(self._schur_factor, residual, lower=1)[0]
        return found

    def direction(self, wanted_t: FloatArray, wanted_q: FloatArray) -> Point:
        """Where the products t·w and q·z change by what is wanted to first order, and what is missed is made up."""
        return self._solve(wanted_t, wanted_q, self._missed_q, self._missed_sums, self._missed_total)

    def correction(self, wanted_t: FloatArray, wanted_q: FloatArray) -> Point:
        """The same, when another direction makes up for what is missed."""
        return self._solve(wanted_t, wanted_q, np.zeros_like(self.at.q), np.zeros_like(self._sums), 0.0)

    def refined(self, step: Point) -> Point:
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
    ) -> Point:
        at = self.at
        right = wanted_q / at.q - self._adjoint(wanted_t / at.t) - missed_q
        free = self._solve_blocks(right)
        halfway = self._solve_schur(missed_sums - free.sum(axis=0))
        wanted = float(wanted_t.sum() + wanted_q.sum())
        goal = at.y * missed_total + float((at.q * missed_q).sum()) - float(at.mu @ missed_sums) - wanted
        theta = (float(self._sums @ halfway) - goal) / self._stretch
        mu = halfway - theta * self._stretched
        q = free + self._solve_blocks(mu) + theta * at.q
        y = theta * at.y
        t = y - self._d * (q @ self._p.T)
        return Point(q, y, t, (wanted_t - at.w * t) / at.t, (wanted_q - at.z * q) / at.q, mu - theta * at.mu)
