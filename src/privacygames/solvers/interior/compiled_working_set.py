"""A working set whose loops over pairs are compiled kernels."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.constraint_families import HessianParts
from privacygames.solvers.interior.working_set import VIOLATED, WorkingSet
from privacygames.solvers.linalg import Kernels, OffDiagonal, Pairs


@dataclass(frozen=True)
class CompiledWorkingSet(WorkingSet):
    """The same pairs, methods and results as :class:`WorkingSet`."""

    @cached_property
    def pairs(self) -> Pairs:
        """``block_starts``, and i, j and √γ of each pair."""
        return super().block_starts, self.i.astype(np.int32), self.j.astype(np.int32), self.root

    @property
    def block_starts(self) -> IntArray:
        """Index of the first pair of each block, then the number of pairs."""
        return self.pairs[0]

    @property
    def _kernels(self) -> Kernels:
        kernels = self.bounds.backend.kernels
        if kernels is None:
            raise ValueError("a compiled working set needs a backend with kernels")
        return kernels

    def forward(self, u: FloatArray) -> FloatArray:
        """The slack of each pair."""
        slacks = np.empty(len(self.keys))
        self._kernels.ratio_slacks(np.ascontiguousarray(u), self.pairs, slacks)
        return slacks

    def adjoint(self, values: FloatArray) -> FloatArray:
        """The transpose: values scattered to the secrets of their pairs."""
        total = np.zeros((self.blocks, self.bounds.size))
        self._kernels.ratio_adjoint(values, self.pairs, total)
        return total

    def add_hessian(self, parts: HessianParts, weights: FloatArray) -> None:
        """On the diagonals, and one off-diagonal entry for each pair."""
        parts.off_diagonal = OffDiagonal(
            *self.pairs[:3], self._kernels.ratio_hessian(weights, self.pairs, parts.diagonal)
        )

    def max_feasible_step(self, before: FloatArray, after: FloatArray, *, keep_all: bool) -> tuple[float, WorkingSet]:
        """The largest feasible fraction of a step, ∞ for the whole step, and the working set at its end."""
        bounds = self.bounds
        allowed, keys, pairs = self._kernels.check_ratios(
            (before, after),
            (bounds.join_threshold, bounds.leave_threshold, bounds.permanent),
            (bounds.device_exponents, bounds.root),
            self.pairs,
            keep_all=keep_all,
            tolerance=VIOLATED,
        )
        if allowed < inf:
            return allowed, self
        updated = replace(self, keys=keys)
        updated.__dict__.update(pairs=pairs, root=pairs[-1])  # computed on the way
        return inf, updated

    def inherit_duals(self, old: WorkingSet, dual: FloatArray, slack: FloatArray, target: float) -> FloatArray:
        """Dual values for this set: those of an older set, and central ones, target/slack, for pairs that joined."""
        before, now = (old.block_starts, old.keys, dual), (self.block_starts, self.keys, slack)
        return self._kernels.inherit_duals(before, now, target)

    def cancel_opposites(self, dual: FloatArray) -> FloatArray:
        """Dual values that prove a better bound: what (i, j) and (j, i) have in common lowers both residuals."""
        return self._kernels.cancel_opposites(dual, self.pairs, self.bounds.size)
