"""One step of the method: affine direction, Mehrotra's corrector, centrality correctors, feasible step length."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Literal

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.batch import Batch
from privacygames.solvers.interior.blocking_constraints import lengthened_direction
from privacygames.solvers.interior.elementwise import gondzio_change, mehrotra_change
from privacygames.solvers.interior.lower_bound import CouplingDuals, DualBound, compute_batch_duals, dual_bound
from privacygames.solvers.interior.newton import Direction, Newton, ProductChange
from privacygames.solvers.interior.presolve import extend_mechanism, margins_from
from privacygames.solvers.interior.restricted_program import RestrictedProgram
from privacygames.solvers.interior.settings import InteriorSettings
from privacygames.solvers.interior.state import SlackDual, State, objective_value
from privacygames.solvers.linalg import HOST, BlockAlgebra
from privacygames.solvers.predictor_corrector import back_off, centring_parameter, trial_step

SetChange = Literal["any", "join", "none"]
"""How the working set may change: ratios join and leave; only join; or neither, once the estimate of the gap is small
enough. Each that joins brings a dual value of its own, which in vanishing columns spoils the bound."""


@dataclass(frozen=True)
class Iterate:
    """A state with its restricted program, the margins of deferred secrets, and the bound its dual values prove."""

    restricted: RestrictedProgram
    state: State
    margins: FloatArray
    dual_bound: DualBound

    @property
    def columns(self) -> FloatArray:
        """The mechanism's columns, (observables, secrets in the program)."""
        return self.state.u[:, : self.restricted.secret_count]

    @cached_property
    def value(self) -> float:
        """The value that is minimised."""
        return objective_value(self.restricted, self.state.u, self.state.worst_cost)


class Stepper:
    """Computes the next iterate from one.

    Args:
        algebra: the linear algebra of blocks.
        tolerance: relative gap to stop at.
        scale: the value that counts as negligible beside costs.
        settings: the method's settings.
    """

    def __init__(self, algebra: BlockAlgebra, tolerance: float, scale: float, settings: InteriorSettings) -> None:
        self._algebra, self._tolerance, self._scale, self._settings = algebra, tolerance, scale, settings

    def initial_iterate(self, restricted: RestrictedProgram, state: State) -> Iterate:
        """The iterate of a starting point."""
        columns = state.u[:, : restricted.secret_count]
        bound = self._dual_bound(restricted, state.block_duals, state.coupling_dual, thorough=False)
        return Iterate(restricted, state, self._margins(restricted, columns), bound)

    def step(self, iterate: Iterate, *, linear_only: bool = False) -> Iterate | None:
        """The next iterate; None if the step led nowhere.

        A ``linear_only`` step skips the blocking-constraint correction and centres more.
        """
        restricted, state, settings = iterate.restricted, iterate.state, self._settings
        newton = Newton(restricted, state, self._algebra)
        affine = newton.direction(None, -(state.coupling_slack * state.inequality_dual), refinements=0)
        complementarity, count = newton.complementarity, state.inequality_count
        final = self._final_complementarity(iterate.value)
        refinements = 0
        if restricted.ratio_bounds is None or complementarity < settings.refine_below * abs(iterate.value):
            refinements = 1
        if complementarity <= settings.converged_factor * final:
            refinements = 2
        steps = affine.primal_step, affine.dual_step
        if not linear_only:
            steps = newton.steps_ignoring(affine, 1 + count // settings.ignored_one_in)
        remaining = newton.complementarity_after(affine, *steps) / complementarity
        aim = max(centring_parameter(remaining, settings.min_centring) * complementarity, final)
        if restricted.full_program.deferrable.any():
            floor = settings.residual_fraction * newton.residual_contribution
            aim = max(aim, min(floor, settings.residual_reduction * complementarity))
        target = aim / count
        direction = self._corrected_direction(newton, affine, target, refinements)
        if linear_only or not self._algebra.prefer_fused_operations:
            direction = self._apply_centrality_correctors(newton, direction, target)
        if not linear_only:
            direction = lengthened_direction(newton, direction, target, settings)
        estimated_gap = abs(iterate.value - iterate.dual_bound.dual_objective)
        settled = iterate.value < inf and estimated_gap <= self._tolerance * max(abs(iterate.value), self._scale)
        set_change: SetChange = "any"
        if settled:
            set_change = "none"
        elif target * count <= settings.no_removal_factor * final:
            set_change = "join"
        return self._take_step(iterate, direction, target, set_change)

    def products_converged(self, iterate: Iterate) -> bool:
        """Whether products are as small as they should become: only the dual values may still change."""
        total = iterate.state.mean_product * iterate.state.inequality_count
        return total <= self._settings.converged_factor * self._final_complementarity(iterate.value)

    def _corrected_direction(self, newton: Newton, affine: Direction, target: float, refinements: int) -> Direction:
        """Mehrotra's corrected direction towards products equal to the target, given the affine direction."""
        state, backend = newton.state, self._algebra.backend
        limit = self._settings.second_order_limit * target

        def product_change(batch_index: int) -> FloatArray:
            return mehrotra_change(
                backend, state.slack_duals[batch_index].both, affine.changes[batch_index].both, target, limit
            )

        coupling_slack_dual = state.coupling_slack, state.inequality_dual
        change = affine.coupling_slack, affine.inequality_dual
        coupling_change = mehrotra_change(HOST, coupling_slack_dual, change, target, limit)
        return newton.direction(product_change, coupling_change, refinements=refinements)

    def _apply_centrality_correctors(self, newton: Newton, direction: Direction, target: float) -> Direction:
        """The direction with Gondzio's correctors, as long as they lengthen its steps."""
        for _ in range(self._settings.max_correctors):
            trial = newton.correct(direction, self._towards_centre(newton.state, direction, target))
            gain = self._settings.min_step_gain
            if trial.primal_step + trial.dual_step < direction.primal_step + direction.dual_step + gain:
                break
            direction = trial
        return direction

    def _towards_centre(self, state: State, direction: Direction, target: float) -> ProductChange:
        """The change of products that Gondzio's correctors want, looking ahead along a direction."""
        settings, backend = self._settings, self._algebra.backend
        factor, increment = settings.trial_step_factor, settings.trial_step_increment
        steps = trial_step(direction.primal_step, factor, increment), trial_step(direction.dual_step, factor, increment)

        def product_change(batch_index: int) -> FloatArray:
            slack_dual, change = state.slack_duals[batch_index].both, direction.changes[batch_index].both
            return gondzio_change(backend, slack_dual, change, steps, (target, settings.neighbourhood))

        return product_change

    def _final_complementarity(self, value: float) -> float:
        """The complementarity to end at: smaller products only lose digits."""
        magnitude = max(abs(value) if value < inf else 0.0, self._scale)
        return self._settings.final_complementarity_fraction * self._tolerance * magnitude

    def _take_step(
        self, iterate: Iterate, direction: Direction, target: float, set_change: SetChange
    ) -> Iterate | None:
        """Go along a direction as far as every ratio bound, and every deferred secret, allows."""
        restricted, state, settings = iterate.restricted, iterate.state, self._settings
        n = restricted.secret_count
        backend = self._algebra.backend
        primal = back_off(direction.primal_step, settings.boundary_fraction)
        dual = back_off(direction.dual_step, settings.boundary_fraction)
        before, du = state.device_u, backend.concatenate(direction.u)
        updated: list[Batch] = []
        for _ in range(settings.max_backtracks):
            after = backend.axpy(primal, du, before)
            u = backend.to_numpy(after)
            if (u[:, :n] <= 0).any():
                primal *= settings.positivity_backtrack
                continue
            margins = self._margins(restricted, after[:, :n])
            if (margins < settings.keep_margin * iterate.margins).any():
                primal *= settings.margin_backtrack
                continue
            allowed, updated = self._max_feasible_step(
                restricted, before[:, :n], after[:, :n], keep_all=set_change != "any"
            )
            if allowed == inf:
                break
            primal *= settings.ratio_backtrack * allowed
        else:
            return None
        if primal <= settings.min_step and dual <= settings.min_step:
            return None
        batch_indices = range(len(restricted.batches))
        duals = self._algebra.map(
            lambda batch_index: state.slack_duals[batch_index].duals_after(
                direction.changes[batch_index], dual, backend
            ),
            batch_indices,
        )
        coupling_dual = state.coupling_dual + dual * direction.coupling_dual
        # Before pairs and secrets join: their dual values have not settled yet.
        final = self._final_complementarity(iterate.value)
        thorough = target * state.inequality_count <= settings.thorough_bound_factor * final
        bound = self._dual_bound(restricted, duals, coupling_dual, thorough=thorough)
        old = restricted.batches
        if restricted.ratio_bounds is not None and set_change != "none":
            restricted = restricted.with_batches(updated)
        slack_duals = self._algebra.map(
            lambda batch_index: _with_working_set(
                old[batch_index], restricted.batches[batch_index], duals[batch_index], after, target
            ),
            batch_indices,
        )
        slack = state.coupling_slack + primal * direction.coupling_slack
        worst_cost = state.worst_cost + primal * direction.worst_cost
        next_iterate = Iterate(
            restricted, State(u, after, tuple(slack_duals), slack, coupling_dual, worst_cost), margins, bound
        )
        fraction = margins / restricted.constant_margins
        if (fraction < settings.admit_below).any():
            on_device = self._algebra.prefer_fused_operations
            admit_with = settings.admit_with_on_device if on_device else settings.admit_with
            next_iterate = self.admit(next_iterate, restricted.deferred[fraction < admit_with]) or next_iterate
        return next_iterate

    def _max_feasible_step(
        self, restricted: RestrictedProgram, before: FloatArray, after: FloatArray, *, keep_all: bool
    ) -> tuple[float, list[Batch]]:
        """The largest fraction of a step that all ratio bounds allow, ∞ for the whole step, and updated batches."""
        results = self._algebra.map(
            lambda batch: batch.max_feasible_step(before[batch.blocks], after[batch.blocks], keep_all=keep_all),
            restricted.batches,
        )
        return min(allowed for allowed, _ in results), [batch for _, batch in results]

    def _dual_bound(
        self, restricted: RestrictedProgram, duals: Sequence[FloatArray], coupling_dual: FloatArray, *, thorough: bool
    ) -> DualBound:
        coupling = CouplingDuals.of(restricted, coupling_dual)
        parts = self._algebra.map(
            lambda batch_index: compute_batch_duals(
                restricted, restricted.batches[batch_index], duals[batch_index], coupling, thorough=thorough
            ),
            range(len(restricted.batches)),
        )
        return dual_bound(restricted, parts, coupling)

    def admit(self, iterate: Iterate, secrets: IntArray) -> Iterate | None:
        """Take deferred secrets into the program, with central dual values; None if the mechanism extends to none."""
        restricted, state, n = iterate.restricted, iterate.state, iterate.restricted.secret_count
        wanted = np.intersect1d(secrets, restricted.deferred)
        rows, joined, _ = extend_mechanism(
            restricted.full_program.exponents, iterate.columns, restricted.secrets, wanted
        )
        if not len(joined):
            return None
        target = state.mean_product
        blocks, backend = [batch.blocks for batch in restricted.batches], self._algebra.backend
        secrets = np.append(restricted.secrets, joined)
        larger = RestrictedProgram.of(restricted.full_program, secrets, blocks, backend, self._settings)
        u = np.concatenate([iterate.columns, rows, state.u[:, n:]], axis=1)
        triples = zip(restricted.batches, state.slack_duals, larger.batches, strict=True)
        pairs = [_with_more_secrets(old, values, new, u[new.blocks], target) for old, values, new in triples]
        larger = larger.with_batches([batch for batch, _ in pairs])
        slack_duals = tuple(values for _, values in pairs)
        coupling_dual = np.concatenate([state.coupling_dual[:n], np.zeros(len(joined)), state.coupling_dual[n:]])
        size = larger.secret_count
        residual = larger.dual_residual(coupling_dual, [values.duals for values in slack_duals])
        coupling_dual[n:size] = residual[:, n:size].mean(axis=0)
        admitted = State(u, backend.to_device(u), slack_duals, state.coupling_slack, coupling_dual, state.worst_cost)
        return Iterate(larger, admitted, self._margins(larger, u[:, :size]), iterate.dual_bound)

    def _margins(self, restricted: RestrictedProgram, columns: FloatArray) -> FloatArray:
        """The margins that a mechanism leaves to the deferred secrets."""
        if not len(restricted.deferred):
            return np.zeros(0)
        to, back = restricted.deferred_exponents
        device_columns = self._algebra.backend.to_device(columns)
        parts = self._algebra.map(
            lambda some: margins_from(device_columns, to[some], back[some], self._algebra.backend),
            self._algebra.batch_slices(len(restricted.deferred)),
        )
        return np.concatenate(parts)


def _with_working_set(old: Batch, new: Batch, duals: FloatArray, u: FloatArray, target: float) -> SlackDual:
    """Slacks and dual values with another working set: central dual values for pairs that joined.

    Slacks are computed anew, because sums of steps drift.
    """
    slacks, before, pairs = new.slacks(u[new.blocks]), old.working_set, new.working_set
    if new is old or before is None or pairs is None:
        return SlackDual(slacks, duals)
    inherited = pairs.inherit_duals(before, duals[: len(before)], slacks[: len(pairs)], target)
    if not new.other_families:
        return SlackDual(slacks, inherited)
    return SlackDual(slacks, new.backend.concatenate([inherited, duals[len(before) :]]))


def _with_more_secrets(
    old: Batch, values: SlackDual, new: Batch, u: FloatArray, target: float
) -> tuple[Batch, SlackDual]:
    """A batch with more secrets takes over the working set and dual values; what is new gets central ones."""
    before, pairs = old.working_set, new.working_set
    if before is not None and pairs is not None:
        keys, bounded = before.keys_among(pairs.bounds)
        pairs = replace(pairs, keys=new.backend.union1d(pairs.keys, keys))
        columns = new.backend.to_device(u[:, : pairs.bounds.size])
        # With the new secrets' ratios that nearly bind.
        _, pairs = pairs.max_feasible_step(columns, columns, keep_all=True)
        new = replace(new, working_set=pairs)
    slacks = new.slacks(u)
    duals = target / slacks
    parts = new.split_by_family(duals)
    inherited = dict(zip(map(type, old.families), old.split_by_family(values.duals), strict=True))
    if before is not None and pairs is not None:
        parts[0][new.backend.searchsorted(pairs.keys, keys)] = inherited[type(before)][bounded]
    for family, part in zip(new.families, parts, strict=True):
        old_part = inherited.get(type(family))
        if family is not pairs and old_part is not None and old_part.shape == part.shape:
            part[:] = old_part
    return new, SlackDual(slacks, duals)
