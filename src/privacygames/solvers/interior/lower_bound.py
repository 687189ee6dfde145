"""The lower bound: what the dual values of a state prove about the minimum, by weak duality."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.solvers.interior.batch import Batch
from privacygames.solvers.interior.program import DualPoint
from privacygames.solvers.interior.restricted_program import RestrictedProgram


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
    def of(cls, restricted: RestrictedProgram, coupling_dual: FloatArray) -> "CouplingDuals":
        """Those of a state."""
        program, n, count = restricted.program, restricted.secret_count, restricted.coupling.distortion_count
        limits = coupling_dual[n + count :]
        if program.minimises_worst_cost:
            limits = limits / limits.sum()
        distortion = np.append(coupling_dual[n : n + count], [1.0] * program.maximises_distortion)
        return cls(coupling_dual[:n], distortion, limits)


@dataclass(frozen=True)
class DualBound:
    """Dual values of one iterate, and the bound that they prove.

    Attributes:
        restricted: the restricted program that they are dual values of.
        batch_duals: those within the blocks, batch by batch.
        coupling: those of the coupling rows.
        bound: a lower bound on the minimum.
        dual_objective: the bound if the dual residual were zero, which proves nothing but shows progress.
    """

    restricted: RestrictedProgram
    batch_duals: tuple[BatchDuals, ...]
    coupling: CouplingDuals
    bound: float
    dual_objective: float

    @property
    def point(self) -> DualPoint:
        """The dual values as plain arrays."""
        restricted = self.restricted
        triples = [
            (batch, batch.working_set, duals) for batch, duals in zip(restricted.batches, self.batch_duals, strict=True)
        ]
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
            np.concatenate([none, *(restricted.secrets[i] for _, i, _ in indices)]),
            np.concatenate([none, *(restricted.secrets[j] for _, _, j in indices)]),
            np.concatenate([np.zeros(0), *ratios]),
            self._concatenate([duals.attack for duals in self.batch_duals]),
            self._concatenate([duals.max_distortion for duals in self.batch_duals]),
            self.coupling.distortion,
            self.coupling.limits,
        )

    def _concatenate(self, parts: Sequence[FloatArray | None]) -> FloatArray | None:
        """Arrays of all batches as one on the host; None where batches have none."""
        to_numpy = self.restricted.batches[0].backend.to_numpy
        arrays = [to_numpy(part) for part in parts if part is not None]
        return np.concatenate(arrays) if arrays else None


def compute_batch_duals(
    restricted: RestrictedProgram, batch: Batch, duals: FloatArray, coupling: CouplingDuals, *, thorough: bool
) -> BatchDuals:
    """A batch's dual values as the bound uses them; if ``thorough``, with opposite ratios cancelled."""
    n = restricted.secret_count
    values = dict(zip(map(id, batch.families), batch.split_by_family(duals), strict=True))
    reduced = batch.objective[:, :n]
    if restricted.program.limit != "none":
        reduced = reduced + batch.coupling.weighted_cost(coupling.limits)
    attack = max_distortion = ratios = None
    if restricted.guess_rows is not None:
        attack = restricted.guess_rows.normalise(values[id(restricted.guess_rows)])
        weighted = attack * batch.backend.to_device(coupling.distortion[restricted.program.owner])
        reduced = reduced - restricted.guess_rows.adjoint(weighted)[:, :n]
    if restricted.max_distortion_rows is not None:
        max_distortion = values[id(restricted.max_distortion_rows)]
        reduced = reduced - restricted.max_distortion_rows.adjoint(max_distortion)
    pairs = batch.working_set
    if pairs is not None:
        dual = values[id(pairs)]
        dual = pairs.cancel_opposites(dual) if thorough else dual
        reduced = reduced - pairs.adjoint(dual)
        ratios = dual / pairs.root  # undo the balancing by √γ
    return BatchDuals(ratios, attack, max_distortion, batch.backend.to_numpy(batch.backend.min(reduced)))


def dual_bound(restricted: RestrictedProgram, batch_duals: Sequence[BatchDuals], coupling: CouplingDuals) -> DualBound:
    """The bound that the dual values of all batches prove."""
    program = restricted.program
    bound = float(np.min([duals.least for duals in batch_duals], axis=0).sum())
    dual_objective = float(coupling.sums.sum())
    # Plus the distortion guarantees, minus the limits; where distortion is maximised, its negative is minimised.
    guarantees = float(coupling.distortion[: len(program.distortion)] @ program.distortion)
    constant = guarantees - (0.0 if program.minimises_worst_cost else program.limit_value(coupling.limits))
    bound, dual_objective = bound + constant, dual_objective + constant
    if program.maximises_distortion:  # no mechanism has more distortion than one that reveals nothing
        bound = max(bound, -float(program.maximised_errors.sum(axis=1).min()))
    return DualBound(restricted, tuple(batch_duals), coupling, bound, dual_objective)
