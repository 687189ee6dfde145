"""The Newton system of one batch of blocks, and the part of a direction within it."""

from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.batch import Batch
from privacygames.solvers.interior.elementwise import (
    blocking_ratios,
    complementarity_after,
    direction_change,
    least_growth,
    quotient,
    shifted_change,
    step_ratios,
)
from privacygames.solvers.interior.state import SlackDual, SlackDualChange
from privacygames.solvers.linalg import BlockAlgebra, SymmetricBlocks


@dataclass(frozen=True)
class BatchDirection:
    """The part of a direction in one batch, and the least relative growth of slacks and of dual values along it."""

    u: FloatArray
    change: SlackDualChange
    slack_growth: FloatArray
    dual_growth: FloatArray


class BatchNewton:
    """The Newton system of one batch, H_o du_o = r_o + J_oᵀ dμ for each block, factorised.

    A direction is computed in phases, between which the coupling rows' system is solved: ``begin`` with dμ = 0,
    ``refine`` any number of times, ``finish``. Each ``refine`` receives the last increment of dμ and its total;
    ``finish`` applies the last increment of dμ that ``refine`` has not applied yet.
    """

    def __init__(self, batch: Batch, slack_dual: SlackDual, coupling_dual: FloatArray, algebra: BlockAlgebra) -> None:
        self.batch, self.slack_dual = batch, slack_dual
        self.complementarity = float(slack_dual.slacks @ slack_dual.duals)
        self._reduced_objective = batch.reduced_objective(coupling_dual)
        self._dual_residual = self._reduced_objective - batch.adjoint(slack_dual.duals)
        parts = batch.hessian(quotient(batch.backend, slack_dual.duals, slack_dual.slacks))
        blocks = SymmetricBlocks(parts.diagonal, parts.off_diagonal, parts.grams)
        self._factors, self.schur = algebra.factorise(blocks, batch.coupling.block_rows)

    def residual_contribution(self, u: FloatArray) -> float:
        """Σ |dual residual · u| over the batch's blocks."""
        return float(abs(self._dual_residual * u[self.batch.blocks]).sum())

    def begin(self, product_change: FloatArray | None, *, feasible: bool) -> FloatArray:
        """Solve with unchanged coupling duals, and return J du.

        Args:
            product_change: wanted change of every product slack·dual; None for the affine direction, along which all
                products vanish, so that no product Aᵀ z has to be computed.
            feasible: whether the dual residual is left as it is, rather than removed.
        """
        if product_change is None:
            self._product_change = -(self.slack_dual.slacks * self.slack_dual.duals)
            self._right = -self._reduced_objective
        else:
            self._product_change = product_change
            self._right = self.batch.adjoint(quotient(self.batch.backend, product_change, self.slack_dual.slacks))
            if not feasible:
                self._right -= self._dual_residual
        self._du = self._factors.solve(self._right)
        return self.batch.coupling.matvec(self._du)

    def refine(self, dual_increment: FloatArray, dual_total: FloatArray) -> FloatArray:
        """Apply an increment of the coupling duals, then one step of iterative refinement; return J du.

        The residual is computed from the inequalities, not from the assembled H.
        """
        slack_dual, rmatvec = self.slack_dual, self.batch.coupling.rmatvec
        du = self._factors.solve(rmatvec(dual_increment), self._du)
        weighted = quotient(self.batch.backend, slack_dual.duals, slack_dual.slacks)
        weighted *= self.batch.slacks(du)
        self._du = self._factors.solve(self._right + rmatvec(dual_total) - self.batch.adjoint(weighted), du)
        return self.batch.coupling.matvec(self._du)

    def finish(self, dual_increment: FloatArray, base: BatchDirection | None) -> BatchDirection:
        """Apply the last increment of the coupling duals; return the direction, added to a base direction if given."""
        du = self._factors.solve(self.batch.coupling.rmatvec(dual_increment), self._du)
        base_change = None if base is None else base.change.both
        change, growth = direction_change(
            self.batch.backend, self._product_change, self.slack_dual.both, self.batch.slacks(du), base_change
        )
        del self._product_change  # at large sizes every array counts
        return BatchDirection(du if base is None else base.u + du, SlackDualChange(*change), *growth)

    def shift_duals(
        self,
        coupling_dual: FloatArray,
        block_response: FloatArray,
        indices: IntArray,
        shifts: FloatArray,
        base: BatchDirection,
    ) -> BatchDirection:
        """A base direction with the dual values of some inequalities shifted.

        Args:
            coupling_dual: the coupling duals' response.
            block_response: response of the blocks' unknowns with fixed coupling duals.
            indices: the inequalities of this batch.
            shifts: their shifts.
            base: the direction without shifts.
        """
        backend, slack_dual = self.batch.backend, self.slack_dual.both
        du = self._factors.solve(self.batch.coupling.rmatvec(coupling_dual), block_response)
        change = shifted_change(backend, base.change.both, slack_dual, self.batch.slacks(du))
        backend.index_add(change[1], backend.indices_to_device(indices), shifts)
        return BatchDirection(base.u + du, SlackDualChange(*change), *least_growth(backend, slack_dual, change))

    def blocking(self, change: SlackDualChange, base: SlackDualChange, ratio: float, count: int) -> FloatArray:
        """The inequalities that limit a step to less than 1/ratio, the most limiting first, (7, …), on the host.

        Rows: their step ratio, indices, keys, slacks, dual values, and the changes of both along a base direction.

        Args:
            change: the direction whose step they limit.
            base: the base direction.
            ratio: one over the step length.
            count: the maximum number of inequalities.
        """
        backend, slack_dual = self.batch.backend, self.slack_dual
        largest, indices = blocking_ratios(backend, slack_dual.both, change.both, ratio, count)
        values = [array[indices] for array in (*slack_dual.both, *base.both)]
        table = backend.stack_to_numpy([largest, indices, self.batch.keys(indices), *values])
        return np.asarray(table[:, table[0] > ratio])

    def largest_step_ratios(self, change: SlackDualChange, count: int) -> list[FloatArray]:
        """The largest step ratios of slacks and of dual values, at most ``count``, all above one."""
        return step_ratios(self.batch.backend, self.slack_dual.both, change.both, count)

    def complementarity_after(self, change: SlackDualChange, primal: float, dual: float) -> float:
        """The complementarity after steps of these lengths along a direction."""
        return complementarity_after(self.batch.backend, self.slack_dual.both, change.both, (primal, dual))

    def sensitivities(self, indices: IntArray, keys: IntArray) -> tuple[FloatArray, IntArray, FloatArray, FloatArray]:
        """The rows a of some inequalities, their blocks, H⁻¹ a and J H⁻¹ a."""
        backend, start = self.batch.backend, self.batch.blocks.start
        block, rows = self.batch.rows(indices, keys)
        device_rows, device_block = backend.to_device(rows), backend.indices_to_device(block)
        block_response = self._factors.solve_rows(device_block, device_rows)
        coupling_response = self.batch.coupling.matvec_blocks(device_block, block_response)
        return device_rows, device_block + start if start else device_block, block_response, coupling_response
