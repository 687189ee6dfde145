"""A batch: some of the blocks, their share of the program, and the inequalities that the Newton matrix sees of it.

All work on blocks is done batch by batch, several at the same time; batches meet in few numbers only.
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
        blocks: which.
        objective: what is minimised, in all their unknowns, (blocks, width).
        coupling: the rows in which they meet the others.
        working_set: the ratios that the Newton matrix sees; None where there are none.
        others: the other families of inequalities.
        backend: where the arrays of the batch are.
    """

    blocks: slice
    objective: FloatArray
    coupling: Coupling
    working_set: WorkingSet | None
    others: tuple[Family, ...]
    backend: Backend

    @property
    def families(self) -> tuple[Family, ...]:
        """The families of inequalities: the working set first."""
        return self.others if self.working_set is None else (self.working_set, *self.others)

    def slacks(self, u: FloatArray, first: int = 0) -> FloatArray:
        """The slacks of the families from the first on, one after the other."""
        there = self.backend.to_device(u)
        parts = [family.forward(there).reshape(-1) for family in self.families[first:]]
        return self.backend.concatenate(parts) if parts else self.backend.zeros((0,))

    def by_family(self, values: FloatArray, first: int = 0) -> list[FloatArray]:
        """Values of the inequalities of the families from the first on, family by family."""
        shapes = [family.shape(len(self.objective)) for family in self.families[first:]]
        ends = list(accumulate(map(prod, shapes)))
        starts = [0, *ends][:-1]
        return [values[start:end].reshape(shape) for start, end, shape in zip(starts, ends, shapes, strict=True)]

    def keys(self, at: IntArray) -> IntArray:
        """The keys of inequalities at some positions that are pairs, and anything for others."""
        pairs = self.working_set
        if pairs is None or not len(pairs):
            return at
        return pairs.keys[at.clip(max=len(pairs) - 1) if self.others else at]

    def rows(self, at: IntArray, keys: IntArray) -> tuple[IntArray, FloatArray]:
        """The blocks and rows, (…, width), of inequalities at some positions, pairs with their keys; on the host."""
        blocks, width = self.objective.shape
        block, rows, start = np.empty(len(at), dtype=np.int64), np.empty((len(at), width)), 0
        for family in self.families:
            end = start + prod(family.shape(blocks))
            mine = (at >= start) & (at < end)
            names = keys[mine] if family is self.working_set else at[mine] - start
            block[mine], rows[mine] = family.rows(names, width)
            start = end
        return block, rows

    def adjoint(self, values: FloatArray, first: int = 0) -> FloatArray:
        """The transposes of the ``forward`` of the families from the first on, added up."""
        both = zip(self.families[first:], self.by_family(values, first), strict=True)
        parts = sorted((family.adjoint(each) for family, each in both), key=lambda part: part.shape[1], reverse=True)
        if not parts or parts[0].shape[1] < self.objective.shape[1]:
            parts.insert(0, self.backend.zeros(tuple(self.objective.shape)))
        total, *others = parts
        for part in others:
            there = total[:, : part.shape[1]]
            there += part
        return total

    def hessian(self, weights: FloatArray) -> HessianParts:
        """Σ Aᵀ diag(weights) A over all families."""
        parts = HessianParts(self.backend.zeros(tuple(self.objective.shape)))
        for family, each in zip(self.families, self.by_family(weights), strict=True):
            family.add_to(parts, each)
        return parts

    def followed(self, before: FloatArray, after: FloatArray, *, settle: bool) -> tuple[float, "Batch"]:
        """How much of the way from some columns to others all ratios allow, ∞ where all hold at its end, too.

        And the batch with the working set for that end, which no pair leaves if it is to ``settle``.
        """
        if self.working_set is None:
            return inf, self
        held = self.backend.to_device
        allowed, pairs = self.working_set.followed(held(before), held(after), settle=settle)
        return allowed, replace(self, working_set=pairs)

    def uncoupled(self, coupling_dual: FloatArray) -> FloatArray:
        """What the coupling rows' dual values leave of the objective."""
        return self.objective - self.coupling.spread(coupling_dual)

    def dual_residual(self, coupling_dual: FloatArray, duals: FloatArray) -> FloatArray:
        """What dual values leave of the objective: zero at a dual feasible point."""
        return self.uncoupled(coupling_dual) - self.adjoint(duals)
