"""The Newton system at a point: factors of every block, and the Schur complement in which they meet."""

from dataclasses import replace

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.solvers.cones.program import ConeProgram
from privacygames.solvers.cones.second_order import Scaling, quotient
from privacygames.solvers.cones.state import State
from privacygames.solvers.linalg import HOST, BlockAlgebra, CouplingRows, Gram, Schur, factorise_in_batches

ROWS_AT_A_TIME = 16
"""Limit rows whose solutions with every block are in memory at the same time."""

REFINE_ABOVE, REFINEMENTS = 1e-12, 2
"""Residual above which a direction is refined, and how often at most: of the coupling rows, beside Σ_o v_o = 1, and of
the dual equations, beside the largest objective coefficient. Unrefined, W⁻² amplifies the rounding of cones near their
boundary, and the bound stays a millionth below the value."""


class Newton:
    """The Newton system at a point, factorised; it gives directions.

    With the block Hessians H_o, the coupling rows J_o and the rows' terms t in τ, a direction satisfies
    du_o = H_o⁻¹ (b_o + J_oᵀ dy), S dy + t dτ = r and tᵀ dy = ρ, with S the Schur complement Σ_o J_o H_o⁻¹ J_oᵀ + D.
    """

    def __init__(self, program: ConeProgram, at: State, algebra: BlockAlgebra) -> None:
        self.program, self.at = program, at
        self.scaling = Scaling.of(at.cones, at.z)
        self.scaled = self.scaling.apply(at.z)
        unknowns, adversaries = program.unknowns, len(program.errors)
        blocks = program.hessian.blocks(self.scaling.inverse_square, adversaries)
        coupling = CouplingRows(unknowns)
        if adversaries:
            blocks = replace(
                blocks, grams=(Gram(program.guesses, np.arange(unknowns + adversaries), at.w / at.guesses),)
            )
        if len(program.bounded):
            ones = np.ones((len(at.u), len(program.bounded)))
            coupling = CouplingRows(unknowns, -ones, unknowns + program.bounded)
        self._factors, schur = factorise_in_batches(algebra, blocks, coupling)
        if len(program.limits.required):
            schur = self._bordered(schur)
        rows = np.arange(unknowns, len(schur))
        schur[rows, rows] += at.surplus / at.prices
        self._schur = Schur(schur, HOST)
        self._tau = np.concatenate([np.zeros(unknowns + len(program.bounded)), program.limits.tau])
        if program.minimises_worst_cost:
            self._tau_response = self._schur.solve(self._tau)
        self.missed = program.objective - self._adjoint(at.z, at.w) - program.couple_adjoint(at.y)
        self.missing = program.required - program.couple(at.u, at.tau)
        self.missing[unknowns:] += at.surplus

    def direction(self, change: FloatArray, guesses: FloatArray, surplus: FloatArray, *, whole: bool = True) -> State:
        """The change that linearises all equations.

        Args:
            change: W dz + W⁻¹ ds.
            guesses: the change wanted of the guesses' products.
            surplus: that of the coupling inequalities' products.
            whole: whether residuals are removed, too; otherwise this is an addition to a direction that does.
        """
        program = self.program
        missed = self.missed if whole else np.zeros_like(self.missed)
        right = self._adjoint(self.scaling.apply_inverse(change), guesses / self.at.guesses)
        direction = self._respond(right - missed, change, guesses, surplus, whole=whole)
        negligible = REFINE_ABOVE * float(np.abs(program.objective).max())
        none = np.zeros_like(change), np.zeros_like(guesses), np.zeros_like(surplus)
        for _ in range(REFINEMENTS):
            residual = missed - self._adjoint(direction.z, direction.w) - program.couple_adjoint(direction.y)
            if np.abs(residual).max() <= negligible:
                break
            direction = direction.moved(self._respond(-residual, *none, whole=False), 1.0, 1.0)
        return direction

    def _respond(
        self, right: FloatArray, change: FloatArray, guesses: FloatArray, surplus: FloatArray, *, whole: bool
    ) -> State:
        """The direction with these right-hand sides of the blocks."""
        at, program, unknowns = self.at, self.program, self.program.unknowns
        alone = self._factors.solve(right)
        missing = -program.couple(alone, 0.0)
        if whole:
            missing += self.missing
        missing[unknowns:] += surplus / at.prices
        d_y, d_tau = self._couple(missing, 1.0 - float(self._tau @ at.y) if whole else 0.0)
        d_u = alone + self._factors.solve(program.couple_adjoint(d_y))
        for _ in range(REFINEMENTS):
            residual = missing - program.couple(d_u - alone, d_tau)
            residual[unknowns:] -= at.surplus / at.prices * d_y[unknowns:]
            if np.abs(residual).max() <= REFINE_ABOVE:
                break
            more_y, more_tau = self._couple(residual, 0.0)
            d_u += self._factors.solve(program.couple_adjoint(more_y))
            d_y, d_tau = d_y + more_y, d_tau + more_tau
        d_cones, d_guesses = program.cone_slacks(d_u[:, :unknowns]), d_u @ program.guesses.T
        return State(
            d_u,
            d_tau,
            d_cones,
            d_guesses,
            (surplus - at.surplus * d_y[unknowns:]) / at.prices,
            self.scaling.apply_inverse(change - self.scaling.apply_inverse(d_cones)),
            (guesses - at.w * d_guesses) / at.guesses,
            d_y,
        )

    def _couple(self, missing: FloatArray, unpaid: float) -> tuple[FloatArray, float]:
        """The dy and dτ with S dy + t dτ = missing and tᵀ dy = unpaid."""
        d_y = self._schur.solve(missing)
        if not self.program.minimises_worst_cost:
            return d_y, 0.0
        d_tau = float((self._tau @ d_y - unpaid) / (self._tau @ self._tau_response))
        return d_y - d_tau * self._tau_response, d_tau

    def towards(self, products: FloatArray) -> FloatArray:
        """The change W dz + W⁻¹ ds that changes the cones' products by this."""
        return quotient(self.scaled, products)

    def _bordered(self, schur: FloatArray) -> FloatArray:
        """The Schur complement with the limit rows."""
        program, first = self.program, len(schur)
        count = len(program.limits.required)
        total = np.zeros((first + count, first + count))
        total[:first, :first] = schur
        for begin in range(0, count, ROWS_AT_A_TIME):
            part = slice(begin, min(begin + ROWS_AT_A_TIME, count))
            dense = program.limits.dense(part)
            for row in range(part.stop - begin):
                right = np.zeros_like(self.at.u)
                right[:, : program.unknowns] = dense[:, row]
                column = program.couple(self._factors.solve(right), 0.0)
                total[:, first + begin + row] = column
        total[first:, :first] = total[:first, first:].T
        corner = total[first:, first:]
        total[first:, first:] = (corner + corner.T) / 2
        return total

    def _adjoint(self, z: FloatArray, w: FloatArray) -> FloatArray:
        """The transpose of all rows of a block, applied to dual values."""
        total = w @ self.program.guesses
        total[:, : self.program.unknowns] += self.program.adjoint(z)
        return np.asarray(total)
