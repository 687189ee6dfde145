"""Weak duality: what the dual values of a state prove about the minimum."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.solvers.interior.batch import Batch
from privacygames.solvers.interior.elementwise import ratio
from privacygames.solvers.interior.formulation import Formulation
from privacygames.solvers.interior.program import DualPoint


@dataclass(frozen=True)
class BatchDuals:
    """The dual values of a batch's ratios and guesses, and the least they leave of the objective, secret by secret."""

    ratio: FloatArray | None
    attack: FloatArray | None
    top: FloatArray | None
    least: FloatArray


@dataclass(frozen=True)
class CouplingDuals:
    """The dual values of the rows in which blocks meet.

    Attributes:
        sums: of the row sums.
        distortion: of the total distortions, adversary by adversary; 1 for the one that is maximised.
        limits: of the limits on the cost; where the worst case is minimised they add up to one.
    """

    sums: FloatArray
    distortion: FloatArray
    limits: FloatArray

    @classmethod
    def of(cls, formulation: Formulation, coupling_dual: FloatArray) -> "CouplingDuals":
        """Those of a state."""
        program, n, totals = formulation.program, formulation.size, formulation.coupling.totals
        limits = coupling_dual[n + totals :]
        if program.minimises_worst:
            limits = limits / limits.sum()
        distortion = np.append(coupling_dual[n : n + totals], [1.0] * program.reverse)
        return cls(coupling_dual[:n], distortion, limits)


@dataclass(frozen=True)
class DualBound:
    """Dual values of one iterate, and what they prove.

    Attributes:
        formulation: what they are dual values of.
        parts: those inside the blocks, batch by batch.
        prices: those of the rows in which blocks meet.
        bound: what the minimum is at least.
        estimate: what it would be at least if the dual residual were zero: the dual objective, which proves nothing.
    """

    formulation: Formulation
    parts: tuple[BatchDuals, ...]
    prices: CouplingDuals
    bound: float
    estimate: float

    @property
    def point(self) -> DualPoint:
        """All of them as plain arrays."""
        form = self.formulation
        pairs = [(batch, batch.working_set, part) for batch, part in zip(form.batches, self.parts, strict=True)]
        working = [(batch, pairs, part) for batch, pairs, part in pairs if pairs is not None and part.ratio is not None]
        nothing = np.zeros(0, dtype=np.int64)
        named = [pairs.fetched() for _, pairs, _ in working]
        starts = [batch.blocks.start for batch, _, _ in working]
        ratios = [batch.backend.to_numpy(part.ratio) for batch, _, part in working if part.ratio is not None]
        return DualPoint(
            np.concatenate([nothing, *(block + start for (block, _, _), start in zip(named, starts, strict=True))]),
            np.concatenate([nothing, *(form.present[i] for _, i, _ in named)]),
            np.concatenate([nothing, *(form.present[j] for _, _, j in named)]),
            np.concatenate([np.zeros(0), *ratios]),
            self._joined([part.attack for part in self.parts]),
            self._joined([part.top for part in self.parts]),
            self.prices.distortion,
            self.prices.limits,
        )

    def _joined(self, parts: Sequence[FloatArray | None]) -> FloatArray | None:
        """What all batches have, as one array; None where they have nothing."""
        fetched = self.formulation.batches[0].backend.to_numpy
        there = [fetched(part) for part in parts if part is not None]
        return np.concatenate(there) if there else None


def batch_duals(
    formulation: Formulation, batch: Batch, duals: FloatArray, prices: CouplingDuals, *, thorough: bool
) -> BatchDuals:
    """The dual values of a batch as a proof uses them: better ones if thorough."""
    n, values = formulation.size, dict(zip(map(id, batch.families), batch.by_family(duals), strict=True))
    left = batch.objective[:, :n]
    if formulation.program.limit != "none":
        left = left + batch.coupling.charged(prices.limits)
    attack = top = ratios = None
    if formulation.guesses is not None:
        attack = formulation.guesses.shares(values[id(formulation.guesses)])
        priced = attack * batch.backend.to_device(prices.distortion[formulation.program.owner])
        left = left - formulation.guesses.adjoint(priced)[:, :n]
    if formulation.preferred is not None:
        top = values[id(formulation.preferred)]
        left = left - formulation.preferred.adjoint(top)
    pairs = batch.working_set
    if pairs is not None:
        dual = values[id(pairs)]
        dual = pairs.without_opposites(dual) if thorough else dual
        left = left - pairs.adjoint(dual)
        ratios = ratio(batch.backend, dual, pairs.root)  # undo the balancing by √γ
    return BatchDuals(ratios, attack, top, batch.backend.to_numpy(batch.backend.min(left)))


def proof(formulation: Formulation, parts: Sequence[BatchDuals], prices: CouplingDuals) -> DualBound:
    """What the dual values of all batches prove about what is minimised."""
    program = formulation.program
    bound = float(np.min([part.least for part in parts], axis=0).sum())
    estimate = float(prices.sums.sum())
    # Plus what is promised, minus what the limits are worth: for the privacy that is sought, minus that is minimised.
    held = float(prices.distortion[: len(program.distortion)] @ program.distortion)
    fixed = held - (0.0 if program.minimises_worst else program.spent(prices.limits))
    bound, estimate = bound + fixed, estimate + fixed
    if program.reverse:  # nothing beats revealing nothing
        bound = max(bound, -float(program.sought.sum(axis=1).min()))
    return DualBound(formulation, tuple(parts), prices, bound, estimate)
