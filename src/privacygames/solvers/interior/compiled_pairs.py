"""A working set whose loops over pairs are compiled."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.families import HessianParts
from privacygames.solvers.interior.working_set import BROKEN, WorkingSet
from privacygames.solvers.linalg import OffDiagonal


@dataclass(frozen=True)
class CompiledWorkingSet(WorkingSet):
    """The same pairs, methods and results as :class:`WorkingSet`."""

    @cached_property
    def _pairs(self) -> tuple[IntArray, IntArray, IntArray]:
        """What compiled loops take: starts, i and j."""
        return self.starts, np.asarray(self.i, dtype=np.int32), np.asarray(self.j, dtype=np.int32)

    def forward(self, u: FloatArray) -> FloatArray:
        """The slack of each pair."""
        return np.asarray(self.bounds.backend.kernels.pair_slacks(u, *self._pairs, self.root))

    def adjoint(self, values: FloatArray) -> FloatArray:
        """Values put back at the secrets of their pairs."""
        return self._totals(values, self.root, -1.0)

    def add_to(self, parts: HessianParts, weights: FloatArray) -> None:
        """On the diagonals, and one entry beside them for each pair."""
        parts.diagonal[:, : self.bounds.size] += self._totals(weights, self.root * self.root, 1.0)
        parts.beside = OffDiagonal(*self._pairs, -weights)

    def _totals(self, values: FloatArray, factor: FloatArray, sign: float) -> FloatArray:
        loops, size = self.bounds.backend.kernels, self.bounds.size
        return np.asarray(loops.pair_totals(values, *self._pairs, factor, sign, size))

    def followed(self, before: FloatArray, after: FloatArray, *, settle: bool) -> tuple[float, WorkingSet]:
        """How much of the way from some columns to others all pairs allow, and the set at its end."""
        bounds = self.bounds
        tables = bounds.enter, bounds.leave, bounds.limits, bounds.always
        broken, keys = bounds.backend.kernels.near_pairs(np.log(after), *tables, self.keys, settle, BROKEN)
        if len(broken):
            return replace(self, keys=broken)._largest_step(before, after), self
        return inf, replace(self, keys=keys)

    def take_over(self, old: WorkingSet, dual: FloatArray, central: FloatArray) -> FloatArray:
        """The duals of this set: those an older one had, and ``central`` ones for pairs that have joined."""
        return np.asarray(self.bounds.backend.kernels.taken_over(self.keys, old.keys, dual, central))

    def without_opposites(self, dual: FloatArray) -> FloatArray:
        """Dual values that prove more."""
        loops, plain = self.bounds.backend.kernels, dual / self.root
        return np.asarray(loops.less_opposites(plain, *self._pairs, self.bounds.size)) * self.root
