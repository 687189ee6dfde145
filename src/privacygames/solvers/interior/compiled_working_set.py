"""A working set whose loops over pairs are compiled."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.constraint_families import HessianParts
from privacygames.solvers.interior.working_set import BROKEN, WorkingSet
from privacygames.solvers.linalg import OffDiagonal


@dataclass(frozen=True)
class CompiledWorkingSet(WorkingSet):
    """The same pairs, methods and results as :class:`WorkingSet`."""

    @cached_property
    def _pairs(self) -> tuple[IntArray, IntArray, IntArray]:
        """Starts, i and j."""
        return self.starts, np.asarray(self.i, dtype=np.int32), np.asarray(self.j, dtype=np.int32)

    @property
    def loop_arguments(self) -> tuple[IntArray, IntArray, IntArray, FloatArray]:
        """What compiled loops take: starts, i, j and √γ."""
        return *self._pairs, self.root

    @property
    def _loops(self) -> Any:
        return self.bounds.backend.kernels

    def forward(self, u: FloatArray) -> FloatArray:
        """The slack of each pair."""
        return np.asarray(self._loops.pair_slacks(np.ascontiguousarray(u), *self.loop_arguments))

    def adjoint(self, values: FloatArray) -> FloatArray:
        """Values put back at the secrets of their pairs."""
        return np.asarray(self._loops.pair_totals(values, *self.loop_arguments, self.bounds.size))

    def add_to(self, parts: HessianParts, weights: FloatArray) -> None:
        """On the diagonals, and one entry beside them for each pair."""
        size = self.bounds.size
        diagonals, beside = self._loops.pair_squares(weights, *self.loop_arguments, size)
        parts.diagonal[:, :size] += diagonals
        parts.beside = OffDiagonal(*self._pairs, beside)

    def followed(self, before: FloatArray, after: FloatArray, *, settle: bool) -> tuple[float, WorkingSet]:
        """How much of the way from some columns to others all pairs allow, and the set at its end."""
        bounds = self.bounds
        tables = bounds.enter, bounds.leave, bounds.limits, bounds.always, bounds.root
        columns = np.ascontiguousarray(before), np.ascontiguousarray(after)
        found = self._loops.near_pairs(*columns, *tables, *self._pairs, settle, BROKEN)
        allowed, keys, starts, i, j, root = found
        if allowed.min() < inf:
            return float(allowed.min()), self
        near = replace(self, keys=keys)
        near.__dict__.update(_pairs=(starts, i, j), root=root)  # found on the way
        return inf, near

    def take_over(self, old: WorkingSet, dual: FloatArray, slack: FloatArray, target: float) -> FloatArray:
        """The duals of this set: those an older one had, and central ones for pairs that have joined."""
        if not isinstance(old, CompiledWorkingSet):
            return super().take_over(old, dual, slack, target)
        return np.asarray(self._loops.taken_over(*self._pairs, *old._pairs, dual, slack, target))

    def without_opposites(self, dual: FloatArray) -> FloatArray:
        """Dual values that prove more."""
        return np.asarray(self._loops.less_opposites(dual, *self.loop_arguments, self.bounds.size))
