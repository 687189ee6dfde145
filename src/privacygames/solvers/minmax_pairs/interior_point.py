"""A primal-dual interior-point method for the min-max attack over pairs: one dense block per estimate.

Mehrotra's predictor-corrector with Gondzio's centrality correctors, started strictly inside on both sides. Every
iterate gives an attack with its largest error, and weights on pairs with the bound they prove; the best of each are
kept.
"""

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.solvers.linalg import BlockAlgebra, FactorisationFailed, host_algebra
from privacygames.solvers.minmax_pairs.bounds import largest_error, least_error_bound
from privacygames.solvers.minmax_pairs.newton import PairNewton, PairState
from privacygames.solvers.predictor_corrector import (
    MIN_STEP_GAIN,
    back_off,
    centrality_correction,
    centring_parameter,
    max_step,
    trial_step,
)

MAX_ITERATIONS = 120
"""Iterations after which the method ends with its best result: a safeguard that programs do not normally reach."""

MAX_IDLE_ITERATIONS = 15
"""Iterations in a row with less than a hundredth of progress in the gap, after which rounding has taken over."""

MAX_CORRECTORS = 4
"""Maximum number of Gondzio's centrality correctors per iteration: each costs a solution, not a factorisation."""

CORRECTION_FRACTIONS = (1.0, 0.7, 0.4, 0.2)
"""Fractions of a correction that are tried; the one with the longest step is taken."""

MIN_TARGET_FRACTION = 0.1
"""Lower bound on the target product, as a fraction of the mean product at which the tolerance is reached."""

INITIAL_ERROR_FACTOR = 1.1
"""The initial y, as a multiple of the initial attack's largest error: above 1, so that every slack is positive."""


def solve_by_blocks(mechanism: FloatArray, distance: FloatArray, *, tolerance: float) -> tuple[FloatArray, FloatArray]:
    """An attack (observables, estimates) and weights on pairs (estimates, secrets) with a relative gap of `tolerance`.

    Every entry of ``distance @ mechanism`` must be positive. Where rounding ends the method early, it returns the best
    so far: the caller evaluates the gap.
    """
    with host_algebra() as algebra:
        run = _Run(mechanism, distance / distance.max(), tolerance, algebra)
        for _ in range(MAX_ITERATIONS):
            if run.gap <= tolerance * run.error or run.idle_iterations > MAX_IDLE_ITERATIONS:
                break
            try:
                run.iterate()
            except FactorisationFailed:
                break
    return run.attack.T, run.weights


class _Run:
    """The current iterate, and the best attack and weights so far."""

    def __init__(self, mechanism: FloatArray, distance: FloatArray, tolerance: float, algebra: BlockAlgebra) -> None:
        self._p, self._d, self._tolerance, self._algebra = mechanism, distance, tolerance, algebra
        self.error, self.bound, self.idle_iterations = np.inf, -np.inf, 0
        self._iterate = self._initial_state()
        self._keep_best()

    @property
    def gap(self) -> float:
        """The difference between the best attack's error and the best bound."""
        return self.error - self.bound

    def _initial_state(self) -> PairState:
        """Probabilities of estimates with equal largest errors; all products t·w equal, and no product q·z smaller."""
        q = np.tile(1 / (self._d * self._p.sum(axis=1)).max(axis=1)[:, None], (1, self._p.shape[1]))
        q /= q.sum(axis=0)
        errors = self._d * (q @ self._p.T)
        y = INITIAL_ERROR_FACTOR * float(errors.max())
        t = y - errors
        w = 1 / t
        product = 1 / w.sum()
        w *= product
        adjoint = (w * self._d) @ self._p
        mu = (adjoint - product / q).min(axis=0)
        return PairState(q, y, t, w, adjoint - mu, mu)

    def _keep_best(self) -> None:
        previous_gap = self.gap
        q = self._iterate.q / self._iterate.q.sum(axis=0)
        error = largest_error(self._p, self._d, q.T)
        if error < self.error:
            self.error, self.attack = error, q
        w = self._iterate.w / self._iterate.w.sum()
        bound = least_error_bound(self._p, self._d, w)
        if bound > self.bound:
            self.bound, self.weights = bound, w
        self.idle_iterations = 0 if self.gap < 0.99 * previous_gap else self.idle_iterations + 1

    def iterate(self) -> None:
        """One predictor-corrector step."""
        current = self._iterate
        newton = PairNewton(current, self._p, self._d, self._algebra)
        products = current.t * current.w, current.q * current.z
        count = current.t.size + current.q.size
        mean_product = float(products[0].sum() + products[1].sum()) / count
        step = newton.direction(-products[0], -products[1])
        predicted = current.add_scaled(step, *self._max_steps(step))
        remaining = float((predicted.t * predicted.w).sum() + (predicted.q * predicted.z).sum()) / (
            mean_product * count
        )
        # Products smaller than the tolerance needs only make the system ill-conditioned.
        target = max(
            centring_parameter(remaining) * mean_product, MIN_TARGET_FRACTION * self._tolerance * self.error / count
        )
        second_order = newton.correction(target - step.t * step.w, target - step.q * step.z)
        step, primal, dual = self._longest_step(step, second_order)
        for _ in range(MAX_CORRECTORS):
            trial_point = current.add_scaled(step, trial_step(primal), trial_step(dual))
            correction = newton.correction(
                centrality_correction(trial_point.t * trial_point.w, target),
                centrality_correction(trial_point.q * trial_point.z, target),
            )
            trial, trial_primal, trial_dual = self._longest_step(step, correction)
            if trial_primal + trial_dual < primal + dual + MIN_STEP_GAIN:
                break
            step, primal, dual = trial, trial_primal, trial_dual
        step = newton.refine(newton.refine(step))
        self._move(step)
        self._keep_best()

    def _longest_step(self, step: PairState, correction: PairState) -> tuple[PairState, float, float]:
        """The step plus the fraction of a correction that allows the longest step, with its primal and dual lengths."""
        trials = (step.add_scaled(correction, fraction, fraction) for fraction in CORRECTION_FRACTIONS)
        return max(((trial, *self._max_steps(trial)) for trial in trials), key=lambda trial: trial[1] + trial[2])

    def _max_steps(self, step: PairState) -> tuple[float, float]:
        """The longest primal and dual steps that keep every variable positive."""
        current = self._iterate
        primal = min(max_step(current.t, step.t), max_step(current.q, step.q))
        return primal, min(max_step(current.w, step.w), max_step(current.z, step.z))

    def _move(self, step: PairState) -> None:
        primal, dual = self._max_steps(step)
        moved = self._iterate.add_scaled(step, back_off(primal), back_off(dual))
        slack = moved.y - self._d * (moved.q @ self._p.T)  # recomputed: updated slacks would drift
        if not (slack > 0).all():  # rounding errors; NaN included
            raise FactorisationFailed
        self._iterate = PairState(moved.q, moved.y, slack, moved.w, moved.z, moved.mu)
