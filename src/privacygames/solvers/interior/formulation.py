"""What the method works on: the program for the secrets that are present, and the inequalities its matrix sees."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.batch import Batch
from privacygames.solvers.interior.compiled_working_set import CompiledWorkingSet
from privacygames.solvers.interior.constraint_families import Family, Guesses, MaxDistortionRows, Positivity
from privacygames.solvers.interior.coupling import Coupling
from privacygames.solvers.interior.presolve import exponents_between, implied_pairs, widest_margins
from privacygames.solvers.interior.program import BlockProgram
from privacygames.solvers.interior.working_set import RatioBounds, WorkingSet
from privacygames.solvers.linalg import Backend


@dataclass(frozen=True)
class Formulation:
    """A program in the form the method takes.

    Attributes:
        whole: the program with every secret.
        present: the secrets that are in it now; the others are left out as long as they can have a row.
        program: the program with these.
        ratios: the bounds on all ratios between them; None where there are none.
        guesses: the inequalities of distortion privacy; None where it plays no part.
        preferred: the inequalities of the largest distortion privacy there is; None where it is not asked for.
        coupling: the rows in which blocks meet.
        batches: the blocks, each with the inequalities that the Newton matrix sees.
    """

    whole: BlockProgram
    present: IntArray
    program: BlockProgram
    ratios: RatioBounds | None
    guesses: Guesses | None
    preferred: MaxDistortionRows | None
    coupling: Coupling
    batches: tuple[Batch, ...]

    @classmethod
    def of(cls, whole: BlockProgram, present: IntArray, batches: Sequence[slice], backend: Backend) -> "Formulation":
        """The formulation with these secrets present, and the pairs that are always there in the working sets."""
        program, size = restrict(whole, present, backend), len(present)
        width = size + program.adversaries
        ratios = RatioBounds(program.exponents, backend) if np.isfinite(program.exponents).any() else None
        unsure = np.flatnonzero(~_positivity_implied(program.exponents))
        guesses = None if program.errors is None else Guesses(program.errors, program.owner, backend)
        positivity = Positivity(backend.indices_to_device(unsure), width, backend) if len(unsure) else None
        preferred = None
        if program.preferred is not None:
            preferred = MaxDistortionRows(
                backend.to_device(program.preferred), backend.indices_to_device(np.arange(size)), backend
            )
        others = tuple(each for each in (guesses, positivity, preferred) if each is not None)
        totals = len(program.distortion)
        coupling = Coupling(size, width, totals, program.limited, program.whose, program.limit, program.shares)
        objective = _objective(program, width)
        kind = WorkingSet if backend.kernels is None else CompiledWorkingSet
        parts = (
            Batch(
                blocks,
                backend.to_device(objective[blocks]),
                coupling.among(blocks, backend),
                None if ratios is None else kind.first(ratios, blocks.stop - blocks.start),
                others,
                backend,
            )
            for blocks in batches
        )
        return cls(whole, present, program, ratios, guesses, preferred, coupling, tuple(parts))

    @cached_property
    def absent(self) -> IntArray:
        """The secrets that are left out."""
        return np.setdiff1d(np.arange(len(self.whole.absent)), self.present)

    @cached_property
    def to_absent(self) -> tuple[FloatArray, FloatArray]:
        """The exponents from those present to each of the absent, (absent, present), and back; where u is."""
        return exponents_between(self.whole.exponents, self.present, self.absent, self.batches[0].backend)

    @cached_property
    def widest_margins(self) -> FloatArray:
        """The margins of the absent where nothing is revealed."""
        return widest_margins(self.whole.exponents, self.present, self.absent)

    @property
    def size(self) -> int:
        """How many secrets are present."""
        return len(self.present)

    @property
    def ratio_count(self) -> int:
        """How many ratios the program has."""
        return int(np.isfinite(self.program.exponents).sum())

    @property
    def working_ratios(self) -> int:
        """How many ratios the working sets have."""
        return sum(0 if batch.working_set is None else len(batch.working_set) for batch in self.batches)

    def with_batches(self, batches: Sequence[Batch]) -> "Formulation":
        """The same with other working sets."""
        changed = replace(self, batches=tuple(batches))
        for name in {"absent", "to_absent", "widest_margins"} & self.__dict__.keys():  # they do not depend on them
            changed.__dict__[name] = self.__dict__[name]
        return changed

    def place(self, family: Family) -> int:
        """Which of the families of inequalities one is."""
        return next(at for at, each in enumerate(self.batches[0].families) if each is family)

    def slacks(self, u: FloatArray) -> list[FloatArray]:
        """The slacks of all families, batch by batch."""
        return [batch.slacks(u[batch.blocks]) for batch in self.batches]

    def dual_residual(self, coupling_dual: FloatArray, duals: Sequence[FloatArray]) -> FloatArray:
        """What dual values leave of the objective, for all blocks."""
        pairs = zip(self.batches, duals, strict=True)
        parts = [batch.backend.to_numpy(batch.dual_residual(coupling_dual, each)) for batch, each in pairs]
        return np.concatenate(parts)

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


def restrict(program: BlockProgram, secrets: IntArray, backend: Backend) -> BlockProgram:
    """The program with some of its secrets, without the ratios between them that others imply.

    Where each secret's cost is limited they are all there.
    """
    exponents = program.exponents[np.ix_(secrets, secrets)]
    if program.drop_implied:
        exponents[implied_pairs(exponents, backend)] = np.inf
    return replace(
        program,
        objective=program.objective[:, secrets],
        exponents=exponents,
        absent=program.absent[secrets],
        errors=None if program.errors is None else program.errors[:, secrets],
        limited=program.limited if program.limit == "each" else program.limited[:, secrets],
        start=None if program.start is None else program.start[:, secrets],
        preferred=None if program.preferred is None else program.preferred[:, secrets],
    )


def _objective(program: BlockProgram, width: int) -> FloatArray:
    """What is minimised, in all unknowns: (observables, width)."""
    full = np.zeros((len(program.objective), width))
    full[:, : program.objective.shape[1]] = program.objective
    if program.reverse:
        full[:, -1] = -1.0
    return full


def _positivity_implied(exponents: FloatArray) -> NDArray[np.bool_]:
    """Secrets s with a finite ratio to some s' and back: v(s) ≤ γ v(s') ≤ γγ' v(s) forces v(s) ≥ 0."""
    both = np.isfinite(exponents) & np.isfinite(exponents.T)
    return np.asarray(both.any(axis=1))
