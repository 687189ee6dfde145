"""A working set whose loops over pairs are compiled kernels."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.constraint_families import HessianParts
from privacygames.solvers.interior.working_set import VIOLATED, WorkingSet
from privacygames.solvers.linalg import OffDiagonal


@dataclass(frozen=True)
class CompiledWorkingSet(WorkingSet):
    """The same pairs, methods and results as :class:`WorkingSet`."""

    @cached_property
    def _pairs_by_block(self) -> tuple[IntArray, IntArray, IntArray]:
        """``block_starts``, and i and j of each pair."""
        return self.block_starts, np.asarray(self.i, dtype=np.int32), np.asarray(self.j, dtype=np.int32)

    @property
    def kernel_arguments(self) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """The arguments of kernels over pairs: block starts, i, j and √γ."""
        return *self._pairs_by_block, self.root

    @property
    def _kernels(self) -> Any:
        return self.bounds.backend.kernels

    def forward(self, u: FloatArray) -> FloatArray:
        """The slack of each pair."""
        return np.asarray(self._kernels.ratio_slacks(np.ascontiguousarray(u), *self.kernel_arguments))

    def adjoint(self, values: FloatArray) -> FloatArray:
        """The transpose: values scattered to the secrets of their pairs."""
        return np.asarray(self._kernels.ratio_adjoint(values, *self.kernel_arguments, self.bounds.size))

    def add_hessian(self, parts: HessianParts, weights: FloatArray) -> None:
        """On the diagonals, and one off-diagonal entry for each pair."""
        size = self.bounds.size
        diagonals, off_diagonal = self._kernels.ratio_hessian(weights, *self.kernel_arguments, size)
        parts.diagonal[:, :size] += diagonals
        parts.off_diagonal = OffDiagonal(*self._pairs_by_block, off_diagonal)

    def max_feasible_step(self, before: FloatArray, after: FloatArray, *, keep_all: bool) -> tuple[float, WorkingSet]:
        """The largest feasible fraction of a step, ∞ for the whole step, and the working set at its end."""
        bounds = self.bounds
        tables = bounds.join_threshold, bounds.leave_threshold, bounds.device_exponents, bounds.permanent, bounds.root
        columns = np.ascontiguousarray(before), np.ascontiguousarray(after)
        allowed, keys, starts, i, j, root = self._kernels.check_ratios(
            *columns, *tables, *self._pairs_by_block, keep_all, VIOLATED
        )
        if allowed.min() < inf:
            return float(allowed.min()), self
        updated = replace(self, keys=keys)
        updated.__dict__.update(_pairs_by_block=(starts, i, j), root=root)  # computed on the way
        return inf, updated
