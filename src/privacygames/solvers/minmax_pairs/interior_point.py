"""A primal-dual interior-point method for the min-max attack over pairs: one dense block per estimate.

Mehrotra's predictor-corrector with Gondzio's centrality correctors, started strictly inside on both sides. Every
iterate is an attack with its largest error, and weights on pairs with the bound they prove; the best of each are kept.
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

MOST_ITERATIONS = 120
PATIENCE = 15
CORRECTORS = 4
SHARES = (1.0, 0.7, 0.4, 0.2)
AIM = 0.1
START = 1.1


def solve_by_blocks(mechanism: FloatArray, distance: FloatArray, *, tolerance: float) -> tuple[FloatArray, FloatArray]:
    """The attack (observables, estimates) and the weights on pairs (estimates, secrets) when their gap is small enough.

    Every entry of ``distance @ mechanism`` must be positive. Where rounding ends the method early, what is returned is
    the best so far: the caller measures it.
    """
    with host_algebra() as algebra:
        run = _Run(mechanism, distance / distance.max(), tolerance, algebra)
        for _ in range(MOST_ITERATIONS):
            if run.gap <= tolerance * run.error or run.idle > PATIENCE:
                break
            try:
                run.iterate()
            except FactorisationFailed:
                break
    return run.attack.T, run.weights


class _Run:
    """The iterate, how it moves, and the best attack and weights so far."""

    def __init__(self, mechanism: FloatArray, distance: FloatArray, tolerance: float, algebra: BlockAlgebra) -> None:
        self._p, self._d, self._tolerance, self._algebra = mechanism, distance, tolerance, algebra
        self.error, self.bound, self.idle = np.inf, -np.inf, 0
        self._at = self._start()
        self._keep_best()

    @property
    def gap(self) -> float:
        """Between the best attack's error and the best bound."""
        return self.error - self.bound

    def _start(self) -> PairState:
        """Estimates as likely as makes their largest errors the same; equal products in t, and z at least as large."""
        q = np.tile(1 / (self._d * self._p.sum(axis=1)).max(axis=1)[:, None], (1, self._p.shape[1]))
        q /= q.sum(axis=0)
        errors = self._d * (q @ self._p.T)
        y = START * float(errors.max())
        t = y - errors
        w = 1 / t
        product = 1 / w.sum()
        w *= product
        levels = (w * self._d) @ self._p
        mu = (levels - product / q).min(axis=0)
        return PairState(q, y, t, w, levels - mu, mu)

    def _keep_best(self) -> None:
        before = self.gap
        q = self._at.q / self._at.q.sum(axis=0)
        error = largest_error(self._p, self._d, q.T)
        if error < self.error:
            self.error, self.attack = error, q
        w = self._at.w / self._at.w.sum()
        bound = least_error_bound(self._p, self._d, w)
        if bound > self.bound:
            self.bound, self.weights = bound, w
        self.idle = 0 if self.gap < 0.99 * before else self.idle + 1

    def iterate(self) -> None:
        """One predictor-corrector step."""
        at = self._at
        newton = PairNewton(at, self._p, self._d, self._algebra)
        products = at.t * at.w, at.q * at.z
        count = at.t.size + at.q.size
        mean = float(products[0].sum() + products[1].sum()) / count
        step = newton.direction(-products[0], -products[1])
        ahead = at.plus(step, *self._lengths(step))
        left = float((ahead.t * ahead.w).sum() + (ahead.q * ahead.z).sum()) / (mean * count)
        # Products below what the tolerance asks for only spoil the numbers.
        target = max(centring_parameter(left) * mean, AIM * self._tolerance * self.error / count)
        second = newton.correction(target - step.t * step.w, target - step.q * step.z)
        step, primal, dual = self._farthest(step, second)
        for _ in range(CORRECTORS):
            tried = at.plus(step, trial_step(primal), trial_step(dual))
            nudge = newton.correction(
                centrality_correction(tried.t * tried.w, target), centrality_correction(tried.q * tried.z, target)
            )
            trial, trial_primal, trial_dual = self._farthest(step, nudge)
            if trial_primal + trial_dual < primal + dual + MIN_STEP_GAIN:
                break
            step, primal, dual = trial, trial_primal, trial_dual
        step = newton.refined(newton.refined(step))
        self._move(step)
        self._keep_best()

    def _farthest(self, step: PairState, correction: PairState) -> tuple[PairState, float, float]:
        """The step with as much of a correction as lets it go farthest."""
        trials = (step.plus(correction, share, share) for share in SHARES)
        return max(((trial, *self._lengths(trial)) for trial in trials), key=lambda found: found[1] + found[2])

    def _lengths(self, step: PairState) -> tuple[float, float]:
        at = self._at
        primal = min(max_step(at.t, step.t), max_step(at.q, step.q))
        return primal, min(max_step(at.w, step.w), max_step(at.z, step.z))

    def _move(self, step: PairState) -> None:
        primal, dual = self._lengths(step)
        moved = self._at.plus(step, back_off(primal), back_off(dual))
        slack = moved.y - self._d * (moved.q @ self._p.T)  # anew: what is added up drifts
        if not (slack > 0).all():  # rounding; NaN included
            raise FactorisationFailed
        self._at = PairState(moved.q, moved.y, slack, moved.w, moved.z, moved.mu)
