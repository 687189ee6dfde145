"""``Batch``: some of the blocks, with the inequalities that the Newton matrix contains of them.

All work on blocks is done batch by batch, several at the same time; batches are linked only by the coupling rows.
"""

from dataclasses import dataclass, replace
from itertools import accumulate
from math import inf, prod

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.constraint_families import Family, HessianParts
from privacygames.solvers.interior.coupling import Coupling
from privacygames.solvers.interior.working_set import WorkingSet
from privacygames.solvers.linalg import Backend


@dataclass(frozen=True)
class Batch:
    """Some of the blocks.

    Attributes:
        blocks: their range among all blocks.
        objective: the objective in all their unknowns, (blocks, width).
        coupling: the coupling rows, restricted to them.
        working_set: the ratios that the Newton matrix contains; None where there are none.
        other_families: the other families of inequalities.
        backend: where the arrays of the batch are.
    """

    blocks: slice
    objective: FloatArray
    coupling: Coupling
    working_set: WorkingSet | None
    other_families: tuple[Family, ...]
    backend: Backend

    @property
    def families(self) -> tuple[Family, ...]:
        """The families of inequalities: the working set first."""
        return self.other_families if self.working_set is None else (self.working_set, *self.other_families)

    def slacks(self, u: FloatArray) -> FloatArray:
        """The slacks of all families, concatenated."""
        device_u = self.backend.to_device(u)
        parts = [family.forward(device_u).reshape(-1) for family in self.families]
        return self.backend.concatenate(parts) if parts else self.backend.zeros((0,))

    def split_by_family(self, values: FloatArray) -> list[FloatArray]:
        """Values of all inequalities, split into one array per family."""
        shapes = [family.shape(len(self.objective)) for family in self.families]
        ends = list(accumulate(map(prod, shapes)))
        starts = [0, *ends][:-1]
        return [values[start:end].reshape(shape) for start, end, shape in zip(starts, ends, shapes, strict=True)]

    def keys(self, indices: IntArray) -> IntArray:
        """The keys of those of some inequalities that are pairs; anything for the others."""
        pairs = self.working_set
        if pairs is None or not len(pairs):
            return indices
        return pairs.keys[indices.clip(max=len(pairs) - 1) if self.other_families else indices]

    def rows(self, indices: IntArray, keys: IntArray) -> tuple[IntArray, FloatArray]:
        """Blocks and rows, (…, width), of some inequalities, pairs given by their keys; on the host."""
        blocks, width = self.objective.shape
        block, rows, start = np.empty(len(indices), dtype=np.int64), np.empty((len(indices), width)), 0
        for family in self.families:
            end = start + prod(family.shape(blocks))
            mine = (indices >= start) & (indices < end)
            names = keys[mine] if family is self.working_set else indices[mine] - start
            block[mine], rows[mine] = family.rows(names, width)
            start = end
        return block, rows

    def adjoint(self, values: FloatArray) -> FloatArray:
        """Aᵀ values, summed over all families."""
        pairs = zip(self.families, self.split_by_family(values), strict=True)
        parts = sorted((family.adjoint(part) for family, part in pairs), key=lambda part: part.shape[1], reverse=True)
        if not parts or parts[0].shape[1] < self.objective.shape[1]:
            parts.insert(0, self.backend.zeros(tuple(self.objective.shape)))
        total, *others = parts
        for part in others:
            columns = total[:, : part.shape[1]]
            columns += part
        return total

    def hessian(self, weights: FloatArray) -> HessianParts:
        """Σ Aᵀ diag(weights) A over all families."""
        parts = HessianParts(self.backend.zeros(tuple(self.objective.shape)))
        for family, family_weights in zip(self.families, self.split_by_family(weights), strict=True):
            family.add_hessian(parts, family_weights)
        return parts

    def max_feasible_step(self, before: FloatArray, after: FloatArray, *, keep_all: bool) -> tuple[float, "Batch"]:
        """The largest feasible fraction of a step, ∞ for the whole step, and the batch at its end.

        The latter has the working set for that end, which no pair leaves with ``keep_all``.
        """
        if self.working_set is None:
            return inf, self
        to_device = self.backend.to_device
        allowed, pairs = self.working_set.max_feasible_step(to_device(before), to_device(after), keep_all=keep_all)
        return allowed, replace(self, working_set=pairs)

    def reduced_objective(self, coupling_dual: FloatArray) -> FloatArray:
        """The objective less Jᵀ times the coupling rows' dual values."""
        return self.objective - self.coupling.rmatvec(coupling_dual)

    def dual_residual(self, coupling_dual: FloatArray, duals: FloatArray) -> FloatArray:
        """The objective less Jᵀ μ and Aᵀ z: zero at a dual feasible point."""
        return self.reduced_objective(coupling_dual) - self.adjoint(duals)
