"""A batch: some of the blocks, their share of the program, and the inequalities that the Newton matrix sees of it.

All work on blocks is done batch by batch, several at the same time; batches meet in few numbers only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from privacygames.arrays import FloatArray
from privacygames.solvers.interior.coupling import Coupling
from privacygames.solvers.interior.families import Family, HessianParts
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

    def slacks(self, u: FloatArray) -> tuple[FloatArray, ...]:
        """The slacks of all families."""
        there = self.backend.held(u)
        return tuple(family.forward(there) for family in self.families)

    def adjoint(self, values: Sequence[FloatArray]) -> FloatArray:
        """The transposes of all families' ``forward``, added up."""
        parts = [family.adjoint(each) for family, each in zip(self.families, values, strict=True)]
        total, *others = sorted(parts, key=lambda part: part.shape[1], reverse=True)
        if total.shape[1] < self.objective.shape[1]:
            total, others = self.backend.zeros(tuple(self.objective.shape)), parts
        for part in others:
            total[:, : part.shape[1]] += part
        return total

    def hessian(self, weights: Sequence[FloatArray]) -> HessianParts:
        """Σ Aᵀ diag(weights) A over all families."""
        parts = HessianParts(self.backend.zeros(tuple(self.objective.shape)))
        for family, each in zip(self.families, weights, strict=True):
            family.add_to(parts, each)
        return parts

    def followed(self, before: FloatArray, after: FloatArray, *, settle: bool) -> tuple[float, "Batch"]:
        """How much of the way from some columns to others all ratios allow, ∞ where all hold at its end, too.

        And the batch with the working set for that end, which no pair leaves if it is to ``settle``.
        """
        if self.working_set is None:
            return inf, self
        held = self.backend.held
        allowed, pairs = self.working_set.followed(held(before), held(after), settle=settle)
        return allowed, replace(self, working_set=pairs)

    def dual_residual(self, coupling_dual: FloatArray, duals: Sequence[FloatArray]) -> FloatArray:
        """What dual values leave of the objective: zero at a dual feasible point."""
        return self.objective - self.coupling.spread(coupling_dual) - self.adjoint(duals)
