"""What the method works on: the program for the secrets that are present, and the inequalities its matrix sees."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.coupling import Coupling
from privacygames.solvers.interior.families import Family, Guesses, HessianParts, Positivity, Preferred
from privacygames.solvers.interior.program import BlockProgram
from privacygames.solvers.interior.working_set import RatioBounds, WorkingSet


@dataclass(frozen=True)
class Formulation:
    """A program in the form the method takes.

    Attributes:
        whole: the program with every secret.
        present: the secrets that are in it now; the others are left out as long as they can have a row.
        program: the program with these.
        ratios: the bounds on all ratios between them; None where there are none.
        working_set: the ratios that the Newton matrix sees.
        guesses: the inequalities of distortion privacy; None where it plays no part.
        positivity: v ≥ 0 where no ratio implies it; None where all do.
        preferred: the inequalities of the largest distortion privacy there is; None where it is not asked for.
    """

    whole: BlockProgram
    present: IntArray
    program: BlockProgram
    ratios: RatioBounds | None
    working_set: WorkingSet | None
    guesses: Guesses | None
    positivity: Positivity | None
    preferred: Preferred | None

    @classmethod
    def of(cls, whole: BlockProgram, present: IntArray) -> "Formulation":
        """The formulation with these secrets present, and the nearest pairs in the working set."""
        program = whole.only(present)
        width = len(present) + program.adversaries
        ratios = RatioBounds(program.exponents) if np.isfinite(program.exponents).any() else None
        unsure = np.flatnonzero(~_positivity_implied(program.exponents))
        return cls(
            whole,
            present,
            program,
            ratios,
            None if ratios is None else ratios.first_set(len(program.objective)),
            None if program.errors is None else Guesses(program.errors, program.owner),
            Positivity(unsure, width) if len(unsure) else None,
            None if program.preferred is None else Preferred(program.preferred),
        )

    @cached_property
    def absent(self) -> IntArray:
        """The secrets that are left out."""
        return np.setdiff1d(np.arange(len(self.whole.absent)), self.present)

    @property
    def size(self) -> int:
        """How many secrets are present."""
        return len(self.present)

    @property
    def width(self) -> int:
        """How many unknowns a block has."""
        return self.size + self.program.adversaries

    @cached_property
    def families(self) -> tuple[Family, ...]:
        """The families of inequalities inside the blocks."""
        every = (self.working_set, self.guesses, self.positivity, self.preferred)
        return tuple(each for each in every if each is not None)

    @cached_property
    def coupling(self) -> Coupling:
        """The rows in which blocks meet."""
        program = self.program
        return Coupling(
            self.size,
            self.width,
            len(program.distortion),
            program.limited,
            program.whose,
            program.limit,
            program.shares,
        )

    @cached_property
    def objective(self) -> FloatArray:
        """What is minimised, in all unknowns: (observables, width)."""
        full = np.zeros((len(self.program.objective), self.width))
        full[:, : self.size] = self.program.objective
        if self.program.reverse:
            full[:, -1] = -1.0
        return full

    @property
    def ratio_count(self) -> int:
        """How many ratios the program has."""
        return int(np.isfinite(self.program.exponents).sum())

    def with_working_set(self, working_set: WorkingSet) -> "Formulation":
        """The same with another working set."""
        changed = replace(self, working_set=working_set)
        for name in ("absent", "coupling", "objective"):  # these do not depend on it
            if name in self.__dict__:
                changed.__dict__[name] = self.__dict__[name]
        return changed

    def part(self, family: Family, values: Sequence[FloatArray]) -> FloatArray:
        """Of values for all families, those of one."""
        return next(value for each, value in zip(self.families, values, strict=True) if each is family)

    def slacks(self, u: FloatArray) -> tuple[FloatArray, ...]:
        """The slacks of all families."""
        return tuple(family.forward(u) for family in self.families)

    def adjoint(self, values: Sequence[FloatArray]) -> FloatArray:
        """The transposes of all families' ``forward``, added up."""
        total = np.zeros(self.objective.shape)
        for family, each in zip(self.families, values, strict=True):
            part = family.adjoint(each)
            total[:, : part.shape[1]] += part
        return total

    def hessian(self, weights: Sequence[FloatArray]) -> HessianParts:
        """Σ Aᵀ diag(weights) A over all families."""
        parts = HessianParts(np.zeros(self.objective.shape))
        for family, each in zip(self.families, weights, strict=True):
            family.add_to(parts, each)
        return parts

    def coupling_slack(self, u: FloatArray, worst: float) -> FloatArray:
        """What the inequalities among the coupling rows leave."""
        program = self.program
        found = self.coupling.gather(u)[self.size :]
        totals = self.coupling.totals
        found[:totals] -= program.distortion
        if program.limit != "none":
            found[totals:] += worst if program.cost_at_most is None else program.cost_at_most
        if program.shares is not None:
            found[-1] += program.average_at_most - (program.cost_at_most or 0.0)
        return found


def _positivity_implied(exponents: FloatArray) -> NDArray[np.bool_]:
    """Secrets s with a finite ratio to some s' and back: v(s) ≤ γ v(s') ≤ γγ' v(s) forces v(s) ≥ 0."""
    both = np.isfinite(exponents) & np.isfinite(exponents.T)
    return np.asarray(both.any(axis=1))
