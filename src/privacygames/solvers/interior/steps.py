"""One step of the method: predictor, corrector, centrality correctors; then as far as every ratio allows."""

from dataclasses import dataclass, replace
from math import inf
from typing import Literal

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.absent import fill_in, margins
from privacygames.solvers.interior.formulation import Formulation
from privacygames.solvers.interior.lower_bound import dual_point
from privacygames.solvers.interior.newton import (
    Direction,
    Newton,
    lengths,
    products_at,
    total_after,
)
from privacygames.solvers.interior.program import DualPoint
from privacygames.solvers.interior.state import State, dual_residual, objective_value
from privacygames.solvers.interior.working_set import WorkingSet
from privacygames.solvers.linalg import BlockAlgebra
from privacygames.solvers.predictor_corrector import WORTHWHILE, centrality, centring, farther, shortened

CORRECTORS = 2
BACKTRACKS = 40
AIM = 0.1
SETTLE = 100.0
"""Within this factor of the end, no ratio leaves the working set: in columns that vanish they would come and go."""

THOROUGH = 1e4
"""Within this factor of the end, more work is done for a better bound."""

Change = Literal["both", "join", "none"]
"""How the working set may change: ratios join and leave; only join; or, once the estimate of the gap is small enough,
neither. Each that joins brings a price of its own, which in columns that vanish spoils what the prices prove."""

REFINE = 1e-3
"""Directions are refined once the products add up to less than this share of the value."""

TIGHT, ADMIT = 0.02, 0.05
"""When the row of a secret left out has a smaller margin than the first, all with less than the second join."""

KEEP_MARGIN = 0.1
"""A step leaves those left out at least this share of the margin they had."""


@dataclass(frozen=True)
class Iterate:
    """A state with the formulation it belongs to, the margins of absent secrets, and what its duals prove."""

    formulation: Formulation
    state: State
    margin: FloatArray
    dual: DualPoint

    @property
    def column(self) -> FloatArray:
        """The mechanism's columns, (observables, present secrets)."""
        return self.state.u[:, : self.formulation.size]

    @property
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
        return Iterate(
            formulation, state, self._margins(formulation, column), dual_point(formulation, state, thorough=False)
        )

    def step(self, now: Iterate) -> Iterate | None:
        """The next iterate; None if the step went nowhere."""
        form, state = now.formulation, now.state
        newton = Newton(form, state, self._algebra)
        products, coupled = state.products, state.coupling_slack * state.limit_dual
        step = newton.direction([-each for each in products], -coupled, refine=False)
        mean, count = state.complementarity, state.count
        ahead = total_after(state, step, *lengths(state, step))
        value = now.value
        accuracy = self._accuracy(value)
        target = max(centring(ahead / (mean * count)) * mean, accuracy / count)
        wanted = [target - p - s * z for p, s, z in zip(products, step.slacks, step.duals, strict=True)]
        late = form.ratios is None or mean * count < REFINE * abs(value)
        step = newton.direction(wanted, target - coupled - step.coupling_slack * step.limit_dual, refine=late)
        primal, dual = lengths(state, step)
        for _ in range(CORRECTORS):
            reached = products_at(state, step, farther(primal), farther(dual))
            trial = newton.corrected(step, [centrality(product, target) for product in reached])
            trial_primal, trial_dual = lengths(state, trial)
            if trial_primal + trial_dual < primal + dual + WORTHWHILE:
                break
            step, primal, dual = trial, trial_primal, trial_dual
        frozen = value < inf and abs(value - now.dual.estimate) <= self._tolerance * max(abs(value), self._scale)
        change: Change = "none" if frozen else "join" if target * count <= SETTLE * accuracy else "both"
        return self._moved(now, step, shortened(primal), shortened(dual), target, change)

    def _accuracy(self, value: float) -> float:
        """The sum of products to aim for in the end: smaller ones only spoil the numbers."""
        return AIM * self._tolerance * max(abs(value) if value < inf else 0.0, self._scale)

    def _moved(  # noqa: PLR0917
        self, now: Iterate, step: Direction, primal: float, dual: float, target: float, change: Change
    ) -> Iterate | None:
        """Go along a direction as far as every ratio, and every secret left out, allows."""
        form, state, n = now.formulation, now.state, now.formulation.size
        near: WorkingSet | None = None
        for _ in range(BACKTRACKS):
            u = state.u + primal * step.u
            if (u[:, :n] <= 0).any():
                primal *= 0.5
                continue
            margin = self._margins(form, u[:, :n])
            if (margin < KEEP_MARGIN * now.margin).any():
                primal *= 0.7
                continue
            if form.ratios is None or form.working_set is None:
                break
            broken, near = form.ratios.violated(u[:, :n], form.working_set, self._algebra, settle=change != "both")
            if not len(broken):
                break
            primal *= 0.9 * form.ratios.largest_step(broken, state.u[:, :n], u[:, :n])
        else:
            return None
        if primal <= 1e-8 and dual <= 1e-8:
            return None
        moved = replace(state.plus(step, primal, dual), slacks=form.slacks(u))  # anew: what is added up drifts
        # Before pairs and secrets join: their duals are not settled yet.
        proved = dual_point(form, moved, thorough=target * state.count <= THOROUGH * self._accuracy(now.value))
        if near is not None and change != "none":
            form, moved = _with_working_set(form, moved, near, target)
        found = Iterate(form, moved, margin, proved)
        if (margin < TIGHT).any():
            found = self.admit(found, form.absent[margin < ADMIT]) or found
        return found

    def admit(self, now: Iterate, secrets: IntArray) -> Iterate | None:
        """Take secrets in, their ratios with duals that make them central; None if none could join."""
        form, state, n = now.formulation, now.state, now.formulation.size
        wanted = np.intersect1d(secrets, form.absent)
        rows, joined, _ = fill_in(form.whole.exponents, now.column, form.present, wanted)
        if not len(joined):
            return None
        target = state.complementarity
        larger = Formulation.of(form.whole, np.append(form.present, joined))
        u = np.concatenate([now.column, rows, state.u[:, n:]], axis=1)
        larger, duals = _inherited(form, state, larger, u, target)
        coupling_dual = np.concatenate([state.coupling_dual[:n], np.zeros(len(joined)), state.coupling_dual[n:]])
        size = larger.size
        coupling_dual[n:size] = dual_residual(larger, coupling_dual, duals)[:, n:size].mean(axis=0)
        moved = State(u, larger.slacks(u), duals, state.coupling_slack, coupling_dual, state.worst)
        return Iterate(larger, moved, self._margins(larger, u[:, :size]), now.dual)

    def lacking(self, form: Formulation, column: FloatArray, present: IntArray) -> IntArray:
        """Secrets left out for whom a mechanism of the others has no row."""
        others = np.setdiff1d(np.arange(len(form.whole.absent)), present)
        return fill_in(form.whole.exponents, column, present, others)[2]

    def _margins(self, form: Formulation, column: FloatArray) -> FloatArray:
        """How much margin a mechanism leaves for the rows of the secrets left out."""
        absent = form.absent
        if not len(absent):
            return np.zeros(0)
        batches = self._algebra.batches(len(absent))
        found = self._algebra.map(
            lambda batch: margins(form.whole.exponents, column, form.present, absent[batch]), batches
        )
        return np.concatenate(found)


def _with_working_set(form: Formulation, state: State, pairs: WorkingSet, target: float) -> tuple[Formulation, State]:
    """The same point with another working set: pairs that join get duals that make them central."""
    old = form.working_set
    if old is None:
        return form, state
    changed = form.with_working_set(pairs)
    slack = pairs.forward(state.u)
    dual = pairs.take_over(old, state.duals[0], target / slack)  # the working set comes first among the families
    return changed, replace(state, slacks=(slack, *state.slacks[1:]), duals=(dual, *state.duals[1:]))


def _inherited(
    form: Formulation, state: State, larger: Formulation, u: FloatArray, target: float
) -> tuple[Formulation, tuple[FloatArray, ...]]:
    """A formulation with more secrets takes over working set and duals; what is new gets central duals."""
    old, first = form.working_set, larger.working_set
    if old is not None and first is not None:
        keys, here = old.among(first.bounds)
        first = WorkingSet(first.bounds, first.blocks, _merged(first.keys, keys))
        larger = larger.with_working_set(first)
    duals = [target / slack for slack in larger.slacks(u)]
    if old is not None and first is not None:
        duals[0][np.searchsorted(first.keys, keys)] = state.duals[0][here]
    kept = dict(zip(map(type, form.families), state.duals, strict=True))
    for place, family in enumerate(larger.families):
        before = kept.get(type(family))
        if family is not first and before is not None and before.shape == duals[place].shape:
            duals[place] = before
    return larger, tuple(duals)


def _merged(first: IntArray, second: IntArray) -> IntArray:
    """The union of two sorted arrays, sorted: a stable sort merges them in one go."""
    both = np.sort(np.concatenate([first, second]), kind="stable")
    return np.asarray(both[np.append(True, both[1:] != both[:-1])])
