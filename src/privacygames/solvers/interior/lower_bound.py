"""The lower bound: what the dual values of a state prove about the minimum, by weak duality."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.solvers.interior.batch import Batch
from privacygames.solvers.interior.formulation import Formulation
from privacygames.solvers.interior.program import DualPoint


@dataclass(frozen=True)
class BatchDuals:
    """Dual values of a batch's inequalities, and the least reduced objective of each secret over its blocks."""

    ratio: FloatArray | None
    attack: FloatArray | None
    max_distortion: FloatArray | None
    least: FloatArray


@dataclass(frozen=True)
class CouplingDuals:
    """Dual values of the coupling rows.

    Attributes:
        sums: of the sums to one.
        distortion: of the total distortions, adversary by adversary; 1 for the one that is maximised.
        limits: of the limits on the cost; where the worst case is minimised they sum to one.
    """

    sums: FloatArray
    distortion: FloatArray
    limits: FloatArray

    @classmethod
    def of(cls, formulation: Formulation, coupling_dual: FloatArray) -> "CouplingDuals":
        """Those of a state."""
        program, n, count = formulation.program, formulation.secret_count, formulation.coupling.distortion_count
        limits = coupling_dual[n + count :]
        if program.minimises_worst_cost:
            limits = limits / limits.sum()
        distortion = np.append(coupling_dual[n : n + count], [1.0] * program.maximises_distortion)
        return cls(coupling_dual[:n], distortion, limits)


@dataclass(frozen=True)
class DualBound:
    """Dual values of one iterate, and the bound that they prove.

    Attributes:
        formulation: the formulation they are dual values of.
        batches: those within the blocks, batch by batch.
        coupling: those of the coupling rows.
        bound: a lower bound on the minimum.
        dual_objective: the bound if the dual residual were zero, which proves nothing but shows progress.
    """

    formulation: Formulation
    batches: tuple[BatchDuals, ...]
    coupling: CouplingDuals
    bound: float
    dual_objective: float

    @property
    def point(self) -> DualPoint:
        """The dual values as plain arrays."""
        form = self.formulation
        triples = [(batch, batch.working_set, duals) for batch, duals in zip(form.batches, self.batches, strict=True)]
        pairs = [
            (batch, working_set, duals.ratio)
            for batch, working_set, duals in triples
            if working_set is not None and duals.ratio is not None
        ]
        none = np.zeros(0, dtype=np.int64)
        indices = [working_set.to_numpy() for _, working_set, _ in pairs]
        starts = [batch.blocks.start for batch, _, _ in pairs]
        ratios = [batch.backend.to_numpy(ratio) for batch, _, ratio in pairs]
        return DualPoint(
            np.concatenate([none, *(block + start for (block, _, _), start in zip(indices, starts, strict=True))]),
            np.concatenate([none, *(form.secrets[i] for _, i, _ in indices)]),
            np.concatenate([none, *(form.secrets[j] for _, _, j in indices)]),
            np.concatenate([np.zeros(0), *ratios]),
            self._concatenate([batch.attack for batch in self.batches]),
            self._concatenate([batch.max_distortion for batch in self.batches]),
            self.coupling.distortion,
            self.coupling.limits,
        )

    def _concatenate(self, parts: Sequence[FloatArray | None]) -> FloatArray | None:
        """Arrays of all batches as one on the host; None where batches have none."""
        to_numpy = self.formulation.batches[0].backend.to_numpy
        arrays = [to_numpy(part) for part in parts if part is not None]
        return np.concatenate(arrays) if arrays else None


def batch_duals(
    formulation: Formulation, batch: Batch, duals: FloatArray, coupling: CouplingDuals, *, thorough: bool
) -> BatchDuals:
    """A batch's dual values as the bound uses them; if ``thorough``, with opposite ratios cancelled."""
    n = formulation.secret_count
    values = dict(zip(map(id, batch.families), batch.split_by_family(duals), strict=True))
    reduced = batch.objective[:, :n]
    if formulation.program.limit != "none":
        reduced = reduced + batch.coupling.weighted_cost(coupling.limits)
    attack = max_distortion = ratios = None
    if formulation.guess_rows is not None:
        attack = formulation.guess_rows.normalise(values[id(formulation.guess_rows)])
        weighted = attack * batch.backend.to_device(coupling.distortion[formulation.program.owner])
        reduced = reduced - formulation.guess_rows.adjoint(weighted)[:, :n]
    if formulation.max_distortion_rows is not None:
        max_distortion = values[id(formulation.max_distortion_rows)]
        reduced = reduced - formulation.max_distortion_rows.adjoint(max_distortion)
    pairs = batch.working_set
    if pairs is not None:
        dual = values[id(pairs)]
        dual = pairs.cancel_opposites(dual) if thorough else dual
        reduced = reduced - pairs.adjoint(dual)
        ratios = dual / pairs.root  # undo the balancing by √γ
    return BatchDuals(ratios, attack, max_distortion, batch.backend.to_numpy(batch.backend.min(reduced)))


def dual_bound(formulation: Formulation, batches: Sequence[BatchDuals], coupling: CouplingDuals) -> DualBound:
    """The bound that the dual values of all batches prove."""
    program = formulation.program
    bound = float(np.min([batch.least for batch in batches], axis=0).sum())
    dual_objective = float(coupling.sums.sum())
    # Plus the distortion guarantees, minus the limits; where distortion is maximised, its negative is minimised.
    guarantees = float(coupling.distortion[: len(program.distortion)] @ program.distortion)
    constant = guarantees - (0.0 if program.minimises_worst_cost else program.limit_value(coupling.limits))
    bound, dual_objective = bound + constant, dual_objective + constant
    if program.maximises_distortion:  # no mechanism has more distortion than one that reveals nothing
        bound = max(bound, -float(program.maximised_errors.sum(axis=1).min()))
    return DualBound(formulation, tuple(batches), coupling, bound, dual_objective)
