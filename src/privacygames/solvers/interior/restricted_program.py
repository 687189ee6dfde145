"""``RestrictedProgram``: the program restricted to some secrets, and the inequalities its Newton matrix contains."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray, missing_indices
from privacygames.solvers.interior.batch import Batch
from privacygames.solvers.interior.compiled_working_set import CompiledWorkingSet
from privacygames.solvers.interior.constraint_families import GuessRows, MaxDistortionRows, PositivityRows
from privacygames.solvers.interior.coupling import Coupling
from privacygames.solvers.interior.presolve import constant_margins, exponents_between, implied_pairs
from privacygames.solvers.interior.program import BlockProgram
from privacygames.solvers.interior.settings import InteriorSettings
from privacygames.solvers.interior.working_set import RatioBounds, WorkingSet
from privacygames.solvers.linalg import Backend


@dataclass(frozen=True)
class RestrictedProgram:
    """A program restricted to the secrets that are in it now, with its blocks in batches.

    Attributes:
        full_program: the program with every secret.
        secrets: the secrets that are in it now; the others are deferred as long as the mechanism extends to them.
        program: the program with these.
        ratio_bounds: the bounds on all ratios between them; None where there are none.
        guess_rows: the inequalities of distortion privacy; None where it plays no part.
        max_distortion_rows: the inequalities of the largest possible distortion; None where it is not asked for.
        coupling: the coupling rows.
        batches: the blocks, each with the inequalities that the Newton matrix contains.
    """

    full_program: BlockProgram
    secrets: IntArray
    program: BlockProgram
    ratio_bounds: RatioBounds | None
    guess_rows: GuessRows | None
    max_distortion_rows: MaxDistortionRows | None
    coupling: Coupling
    batches: tuple[Batch, ...]

    @classmethod
    def of(
        cls,
        full_program: BlockProgram,
        secrets: IntArray,
        batches: Sequence[slice],
        backend: Backend,
        settings: InteriorSettings,
    ) -> "RestrictedProgram":
        """The program restricted to these secrets, with the pairs that are always in the working sets."""
        program, size = restrict(full_program, secrets, backend), len(secrets)
        width = size + program.adversary_count
        bounded = np.isfinite(program.exponents).any()
        ratio_bounds = RatioBounds(program.exponents, backend, settings) if bounded else None
        unbounded = np.flatnonzero(~_positivity_implied(program.exponents))
        guess_rows = None if program.errors is None else GuessRows(program.errors, program.owner, backend)
        positivity = PositivityRows(backend.indices_to_device(unbounded), width, backend) if len(unbounded) else None
        max_distortion_rows = None
        if program.max_distortion_rows is not None:
            max_distortion_rows = MaxDistortionRows(
                backend.to_device(program.max_distortion_rows), backend.indices_to_device(np.arange(size)), backend
            )
        other_families = tuple(family for family in (guess_rows, positivity, max_distortion_rows) if family is not None)
        coupling = Coupling(
            size,
            width,
            len(program.distortion),
            program.limited_cost,
            program.cost_secret,
            program.limit,
            program.average_weights,
        )
        objective = _full_objective(program, width)
        kind = WorkingSet if backend.kernels is None else CompiledWorkingSet
        parts = (
            Batch(
                blocks,
                backend.to_device(objective[blocks]),
                coupling.restrict(blocks, backend),
                None if ratio_bounds is None else kind.initial(ratio_bounds, blocks.stop - blocks.start),
                other_families,
                backend,
            )
            for blocks in batches
        )
        return cls(
            full_program, secrets, program, ratio_bounds, guess_rows, max_distortion_rows, coupling, tuple(parts)
        )

    @cached_property
    def deferred(self) -> IntArray:
        """The secrets that are left out."""
        return missing_indices(self.secrets, len(self.full_program.deferrable))

    @cached_property
    def deferred_exponents(self) -> tuple[FloatArray, FloatArray]:
        """Exponents from the secrets to each deferred one, (deferred, secrets), and back; on the device."""
        exponents, backend = self.full_program.exponents, self.batches[0].backend
        return exponents_between(exponents, self.secrets, self.deferred, backend)

    @cached_property
    def constant_margins(self) -> FloatArray:
        """The margins of the deferred secrets in a constant mechanism."""
        return constant_margins(self.full_program.exponents, self.secrets, self.deferred)

    @property
    def secret_count(self) -> int:
        """Number of secrets in the program."""
        return len(self.secrets)

    @property
    def ratio_count(self) -> int:
        """Number of ratio bounds of the program."""
        return int(np.isfinite(self.program.exponents).sum())

    @property
    def working_ratio_count(self) -> int:
        """Number of ratios in the working sets."""
        return sum(0 if batch.working_set is None else len(batch.working_set) for batch in self.batches)

    def with_batches(self, batches: Sequence[Batch]) -> "RestrictedProgram":
        """The same with other working sets."""
        changed = replace(self, batches=tuple(batches))
        for name in {"deferred", "deferred_exponents", "constant_margins"} & self.__dict__.keys():
            changed.__dict__[name] = self.__dict__[name]  # these do not depend on batches
        return changed

    def slacks(self, u: FloatArray) -> list[FloatArray]:
        """The slacks of all families, batch by batch."""
        return [batch.slacks(u[batch.blocks]) for batch in self.batches]

    def dual_residual(self, coupling_dual: FloatArray, duals: Sequence[FloatArray]) -> FloatArray:
        """The dual residual of all blocks, on the host."""
        pairs = zip(self.batches, duals, strict=True)
        parts = [batch.backend.to_numpy(batch.dual_residual(coupling_dual, dual)) for batch, dual in pairs]
        return np.concatenate(parts)

    def coupling_slack(self, u: FloatArray, worst_cost: float) -> FloatArray:
        """The slacks of the inequalities among the coupling rows."""
        program = self.program
        slack = self.coupling.matvec(u)[self.secret_count :]
        count = self.coupling.distortion_count
        slack[:count] -= program.distortion
        if program.limit != "none":
            slack[count:] += worst_cost if program.cost_at_most is None else program.cost_at_most
        if program.average_weights is not None:
            slack[-1] += program.average_at_most - (program.cost_at_most or 0.0)
        return slack


def restrict(program: BlockProgram, secrets: IntArray, backend: Backend) -> BlockProgram:
    """The program with some of its secrets, without the ratios between them that others imply.

    Where each secret's cost is limited, no secret is left out.
    """
    exponents = program.exponents[np.ix_(secrets, secrets)]
    if program.drop_implied:
        exponents[implied_pairs(exponents, backend)] = np.inf
    rows = program.max_distortion_rows
    return replace(
        program,
        objective=program.objective[:, secrets],
        exponents=exponents,
        deferrable=program.deferrable[secrets],
        errors=None if program.errors is None else program.errors[:, secrets],
        limited_cost=program.limited_cost if program.limit == "each" else program.limited_cost[:, secrets],
        start=None if program.start is None else program.start[:, secrets],
        max_distortion_rows=None if rows is None else rows[:, secrets],
    )


def _full_objective(program: BlockProgram, width: int) -> FloatArray:
    """The objective in all unknowns, (observables, width)."""
    full = np.zeros((len(program.objective), width))
    full[:, : program.objective.shape[1]] = program.objective
    if program.maximises_distortion:
        full[:, -1] = -1.0
    return full


def _positivity_implied(exponents: FloatArray) -> NDArray[np.bool_]:
    """Secrets s with a ratio bound to some s' and back: v(s) ≤ γ v(s') ≤ γγ' v(s) implies v(s) ≥ 0."""
    both = np.isfinite(exponents) & np.isfinite(exponents.T)
    return np.asarray(both.any(axis=1))
