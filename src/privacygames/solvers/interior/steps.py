"""One step of the method: predictor, corrector, centrality correctors; then as far as every ratio allows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Literal

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.batch import Batch
from privacygames.solvers.interior.blocking_constraints import max_feasible_step
from privacygames.solvers.interior.elementwise import central, outlying
from privacygames.solvers.interior.formulation import Formulation
from privacygames.solvers.interior.lower_bound import CouplingDuals, DualBound, batch_duals, proof
from privacygames.solvers.interior.newton import Direction, Newton, Wanted
from privacygames.solvers.interior.presolve import fill_in, margins_within
from privacygames.solvers.interior.state import SlackDual, State, objective_value
from privacygames.solvers.linalg import HOST, Backend, BlockAlgebra
from privacygames.solvers.predictor_corrector import MIN_STEP_GAIN, back_off, centring_parameter, trial_step

CORRECTORS = 2
"""So many where a step is not lengthened otherwise, or they save more iterations than they take time."""

FEW = 10_000
"""How far to aim is decided by the steps that all but one in so many inequalities allow."""

UNSETTLED, SLOWEST = 0.1, 0.5
"""Where secrets may join, products are not made smaller, together, than this share of what the dual residual weighs:
those that join bring some, and where products are small beside it no step is long. But they may always be halved:
residual that pairs bring is in proportion to the products, and does not go away before they do."""

BACKTRACKS = 40
AIM = 0.1
SETTLE = 100.0
"""Within this factor of the end, no ratio leaves the working set: in columns that vanish they would come and go."""

THOROUGH = 1e4
"""Within this factor of the end, more work is done for a better bound."""

Change = Literal["both", "join", "none"]
"""How the working set may change: ratios join and leave; only join; or, once the estimate of the gap is small enough,
neither. Each that joins brings a price of its own, which in columns that vanish spoils what the prices prove."""

ARRIVED = 2.0
"""Within this factor of the end, products are as small as they are meant to be."""

REFINE = 1e-3
"""Directions are refined once the products add up to less than this share of the value, and more so in the end."""

TIGHT, ADMIT, ADMIT_MORE = 0.1, 0.2, 0.4
"""When the row of a secret left out has less than the first of the margin that revealing nothing leaves it, all with
less than the second join; or with less than the third, where larger blocks cost less than to take somebody in again."""

KEEP_MARGIN = 0.1
"""A step leaves those left out at least this share of the margin they had."""


@dataclass(frozen=True)
class Iterate:
    """A state with the formulation it belongs to, the margins of absent secrets, and what its duals prove."""

    formulation: Formulation
    state: State
    margin: FloatArray
    proof: DualBound

    @property
    def column(self) -> FloatArray:
        """The mechanism's columns, (observables, present secrets)."""
        return self.state.u[:, : self.formulation.size]

    @cached_property
    def value(self) -> float:
        """What is minimised."""
        return objective_value(self.formulation, self.state.u, self.state.worst)


class Stepper:
    """How iterates move: where the work is done, and how accurate the end is to be."""

    def __init__(self, algebra: BlockAlgebra, tolerance: float, scale: float) -> None:
        self._algebra, self._tolerance, self._scale = algebra, tolerance, scale

    def first(self, formulation: Formulation, state: State) -> Iterate:
        """The iterate to start with."""
        column = state.u[:, : formulation.size]
        proved = self._proof(formulation, state.duals, state.coupling_dual, thorough=False)
        return Iterate(formulation, state, self._margins(formulation, column), proved)

    def step(self, now: Iterate, *, careful: bool = False) -> Iterate | None:
        """The next iterate; None if the step went nowhere.

        A careful step aims less far, and leaves inequalities that limit it as they are.
        """
        form, state = now.formulation, now.state
        newton = Newton(form, state, self._algebra)
        coupled = state.coupling_slack * state.limit_dual
        plain = newton.direction(None, -coupled, refinements=0)
        total, count = newton.total, state.count
        value = now.value
        accuracy = self._accuracy(value)
        late = form.ratios is None or total < REFINE * abs(value)
        refinements = 2 if total <= ARRIVED * accuracy else 1 if late else 0
        lengths = (plain.primal, plain.dual) if careful else newton.lengths_but_few(plain, 1 + count // FEW)
        aim = max(centring_parameter(newton.total_after(plain, *lengths) / total) * total, accuracy)
        if form.whole.absent.any():
            aim = max(aim, min(UNSETTLED * newton.unsettled, SLOWEST * total))
        target = aim / count
        step = self._aimed(newton, plain, target, refinements)
        if careful or not self._algebra.prefer_fused_operations:
            step = self._centred(newton, step, target)
        if not careful:
            step = max_feasible_step(newton, step, target)
        frozen = value < inf and abs(value - now.proof.estimate) <= self._tolerance * max(abs(value), self._scale)
        change: Change = "none" if frozen else "join" if target * count <= SETTLE * accuracy else "both"
        return self._moved(now, step, target, change)

    def arrived(self, now: Iterate) -> bool:
        """Whether products are as small as they are meant to be: only prices may settle yet."""
        return now.state.complementarity * now.state.count <= ARRIVED * self._accuracy(now.value)

    def _aimed(self, newton: Newton, plain: Direction, target: float, refinements: int) -> Direction:
        """The direction towards products that are all the target, given the plain one towards none."""
        state, backend = newton.state, self._algebra.backend

        def wanted(at: int) -> FloatArray:
            return central(backend, state.inside[at].both, plain.inside[at].both, target)

        now, change = (state.coupling_slack, state.limit_dual), (plain.coupling_slack, plain.limit_dual)
        return newton.direction(wanted, central(HOST, now, change, target), refinements=refinements)

    def _centred(self, newton: Newton, step: Direction, target: float) -> Direction:
        """The direction with Gondzio's correctors, as long as they lengthen it."""
        for _ in range(CORRECTORS):
            trial = newton.corrected(step, _towards_centre(self._algebra.backend, newton.state, step, target))
            if trial.primal + trial.dual < step.primal + step.dual + MIN_STEP_GAIN:
                break
            step = trial
        return step

    def _accuracy(self, value: float) -> float:
        """The sum of products to aim for in the end: smaller ones only spoil the numbers."""
        return AIM * self._tolerance * max(abs(value) if value < inf else 0.0, self._scale)

    def _moved(self, now: Iterate, step: Direction, target: float, change: Change) -> Iterate | None:
        """Go along a direction as far as every ratio, and every secret left out, allows."""
        form, state, n = now.formulation, now.state, now.formulation.size
        backend, primal, dual = self._algebra.backend, back_off(step.primal), back_off(step.dual)
        before, du = state.there, backend.concatenate(step.u)
        near: list[Batch] = []
        for _ in range(BACKTRACKS):
            after = backend.axpy(primal, du, before)
            u = backend.to_numpy(after)
            if (u[:, :n] <= 0).any():
                primal *= 0.5
                continue
            margin = self._margins(form, after[:, :n])
            if (margin < KEEP_MARGIN * now.margin).any():
                primal *= 0.7
                continue
            allowed, near = self._followed(form, before[:, :n], after[:, :n], settle=change != "both")
            if allowed == inf:
                break
            primal *= 0.9 * allowed
        else:
            return None
        if primal <= 1e-8 and dual <= 1e-8:
            return None
        places = range(len(form.batches))
        duals = self._algebra.map(lambda at: state.inside[at].duals_after(step.inside[at], dual, backend), places)
        coupling_dual = state.coupling_dual + dual * step.coupling_dual
        # Before pairs and secrets join: their duals are not settled yet.
        thorough = target * state.count <= THOROUGH * self._accuracy(now.value)
        proved = self._proof(form, duals, coupling_dual, thorough=thorough)
        old = form.batches
        if form.ratios is not None and change != "none":
            form = form.with_batches(near)
        inside = self._algebra.map(lambda at: _inside(old[at], form.batches[at], duals[at], after, target), places)
        slack, worst = state.coupling_slack + primal * step.coupling_slack, state.worst + primal * step.worst
        found = Iterate(form, State(u, after, tuple(inside), slack, coupling_dual, worst), margin, proved)
        share = margin / form.widest_margins
        if (share < TIGHT).any():
            enough = ADMIT_MORE if self._algebra.prefer_fused_operations else ADMIT
            found = self.admit(found, form.absent[share < enough]) or found
        return found

    def _followed(
        self, form: Formulation, before: FloatArray, after: FloatArray, *, settle: bool
    ) -> tuple[float, list[Batch]]:
        """How much of the way all ratios allow, ∞ where all hold at its end, and batches with working sets for that."""
        found = self._algebra.map(
            lambda batch: batch.followed(before[batch.blocks], after[batch.blocks], settle=settle), form.batches
        )
        return min(allowed for allowed, _ in found), [batch for _, batch in found]

    def _proof(
        self, form: Formulation, duals: Sequence[FloatArray], coupling_dual: FloatArray, *, thorough: bool
    ) -> DualBound:
        """What dual values prove."""
        prices = CouplingDuals.of(form, coupling_dual)
        parts = self._algebra.map(
            lambda at: batch_duals(form, form.batches[at], duals[at], prices, thorough=thorough),
            range(len(form.batches)),
        )
        return proof(form, parts, prices)

    def admit(self, now: Iterate, secrets: IntArray) -> Iterate | None:
        """Take secrets in, their ratios with duals that make them central; None if none could join."""
        form, state, n = now.formulation, now.state, now.formulation.size
        wanted = np.intersect1d(secrets, form.absent)
        rows, joined, _ = fill_in(form.whole.exponents, now.column, form.present, wanted)
        if not len(joined):
            return None
        target = state.complementarity
        blocks, backend = [batch.blocks for batch in form.batches], self._algebra.backend
        larger = Formulation.of(form.whole, np.append(form.present, joined), blocks, backend)
        u = np.concatenate([now.column, rows, state.u[:, n:]], axis=1)
        parts = zip(form.batches, state.inside, larger.batches, strict=True)
        found = [_inherited(old, inside, new, u[new.blocks], target) for old, inside, new in parts]
        larger = larger.with_batches([batch for batch, _ in found])
        inside = tuple(each for _, each in found)
        coupling_dual = np.concatenate([state.coupling_dual[:n], np.zeros(len(joined)), state.coupling_dual[n:]])
        size = larger.size
        residual = larger.dual_residual(coupling_dual, [each.duals for each in inside])
        coupling_dual[n:size] = residual[:, n:size].mean(axis=0)
        moved = State(u, backend.to_device(u), inside, state.coupling_slack, coupling_dual, state.worst)
        return Iterate(larger, moved, self._margins(larger, u[:, :size]), now.proof)

    def _margins(self, form: Formulation, column: FloatArray) -> FloatArray:
        """How much margin a mechanism leaves for the rows of the secrets left out."""
        if not len(form.absent):
            return np.zeros(0)
        to, back = form.to_absent
        held = self._algebra.backend.to_device(column)
        found = self._algebra.map(
            lambda batch: margins_within(held, to[batch], back[batch], self._algebra.backend),
            self._algebra.batches(len(form.absent)),
        )
        return np.concatenate(found)


def _towards_centre(backend: Backend, state: State, step: Direction, target: float) -> Wanted:
    """What Gondzio's correctors want, looking beyond a step."""
    steps = trial_step(step.primal), trial_step(step.dual)

    def wanted(at: int) -> FloatArray:
        return outlying(backend, state.inside[at].both, step.inside[at].both, steps, target)

    return wanted


def _inside(old: Batch, new: Batch, duals: FloatArray, u: FloatArray, target: float) -> SlackDual:
    """Slacks, anew for what is added up drifts, and duals, with another working set: central ones for who joins."""
    slacks, before, pairs = new.slacks(u[new.blocks]), old.working_set, new.working_set
    if new is old or before is None or pairs is None:
        return SlackDual(slacks, duals)
    kept = pairs.take_over(before, duals[: len(before)], slacks[: len(pairs)], target)
    return SlackDual(slacks, new.backend.concatenate([kept, duals[len(before) :]]) if new.others else kept)


def _inherited(old: Batch, inside: SlackDual, new: Batch, u: FloatArray, target: float) -> tuple[Batch, SlackDual]:
    """A batch with more secrets takes over working set and duals; what is new gets central duals."""
    before, first = old.working_set, new.working_set
    if before is not None and first is not None:
        keys, here = before.among(first.bounds)
        first = replace(first, keys=new.backend.union1d(first.keys, keys))
        column = new.backend.to_device(u[:, : first.bounds.size])
        first = first.followed(column, column, settle=True)[1]  # with the ratios of the new that are nearly used up
        new = replace(new, working_set=first)
    slacks = new.slacks(u)
    duals = target / slacks
    parts, kept = new.by_family(duals), dict(zip(map(type, old.families), old.by_family(inside.duals), strict=True))
    if before is not None and first is not None:
        parts[0][new.backend.searchsorted(first.keys, keys)] = kept[type(before)][here]
    for family, part in zip(new.families, parts, strict=True):
        had = kept.get(type(family))
        if family is not first and had is not None and had.shape == part.shape:
            part[:] = had
    return new, SlackDual(slacks, duals)
