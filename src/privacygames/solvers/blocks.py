"""A primal-dual interior-point method that uses the structure: one dense block per observable.

Mehrotra's predictor-corrector with Gondzio's centrality correctors on

    min Σ_o ⟨c_o, v_o⟩   s.t.   Σ_o v_o = 1,  Σ_o x_o ≥ d_m,  and in each block ratios, guesses, v ≥ 0,

started from the uniform mechanism, which is strictly feasible. The Newton matrix sees a working set of ratios that
changes as the method goes on; steps are cut so that *every* ratio holds, so each iterate is a valid mechanism and
stopping early is safe. docs/theory/solver.md derives it.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import inf
from time import monotonic

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.coupling import Coupling
from privacygames.solvers.families import Family, Guesses, Positive, Ratios
from privacygames.solvers.game import Game, Outcome, Prices
from privacygames.solvers.newton import Breakdown
from privacygames.solvers.solution import Progress
from privacygames.solvers.system import Direction, System

MOST_ITERATIONS = 300
CORRECTORS = 2
BACKTRACKS = 40
THREADS = 2
AIM = 0.1


def play(
    game: Game,
    *,
    tolerance: float,
    scale: float,
    time_limit: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Solve a game until value − bound ≤ tolerance·max(|bound or value|, scale), or time or accuracy runs out.

    The value is the cost, or minus the distortion privacy where that is maximised; it counts only once the
    iterate keeps its limits.
    """
    started = monotonic()
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(THREADS) as pool:
        run = Run(game, pool, tolerance, scale)
        best = Outcome(run.column.copy(), run.prices(), run.value, 0)
        for iteration in range(1, MOST_ITERATIONS + 1):
            size = max(best.value, -best.prices.bound, scale)
            gap = (best.value - best.prices.bound) / size
            seconds = monotonic() - started
            if progress is not None:
                progress(Progress(iteration - 1, abs(best.value), gap, seconds, run.ratio_count))
            best.finished = gap <= tolerance
            best.out_of_time = not best.finished and time_limit is not None and seconds > time_limit
            if best.finished or best.out_of_time:
                break
            try:
                moved = run.iterate()
            except Breakdown:
                break
            if run.value < best.value:
                best.value, best.probabilities = run.value, run.column.copy()
            prices = run.prices()
            if prices.bound > best.prices.bound:
                best.prices = prices
            best.iterations = iteration
            if not moved:
                break
    return best


class Run:
    """The iterate and how it moves."""

    def __init__(self, game: Game, pool: ThreadPoolExecutor, tolerance: float, scale: float) -> None:
        self.game, self.pool = game, pool
        self._tolerance, self._scale = tolerance, scale
        m, n = game.objective.shape
        self.size = n
        width = n if game.errors is None else n + 1
        self.objective = np.zeros((m, width))
        self.objective[:, :n] = game.objective
        self.u = np.full((m, width), 1.0 / m)
        if game.errors is not None:  # halfway between what is asked (or nothing) and what the uniform mechanism has
            most = float(game.errors.sum(axis=1).min())
            self.u[:, -1] = ((game.distortion or 0.0) + most) / (2 * m)
        if game.start is not None:
            self.u[:, :n] = game.start
        if game.errors is not None and game.reverse:
            self.u[:, -1] = 0.5 * (self.column @ game.errors.T).min(axis=1)
            self.objective[:, -1] = -1.0
        self.coupling = Coupling(n, width, game.distortion is not None, game.limited, game.limit)
        self.worst = 0.0  # y, where the worst case is minimised
        self.free = game.limit == "each" and game.cost_at_most is None
        some = np.isfinite(game.exponents).any()
        self.ratios = Ratios(game.exponents, self.column) if some else None
        self.guesses = None if game.errors is None else Guesses(game.errors, self.u)
        unsure = np.flatnonzero(~_positivity_implied(game.exponents))
        self.positive = Positive(self.column, unsure, width) if len(unsure) else None
        families = (self.ratios, self.guesses, self.positive)
        self.families: list[Family] = [family for family in families if family is not None]
        self._start()

    def _start(self) -> None:
        """Slacks of the coupling rows, and prices that make every product the same."""
        if self.free:
            self.worst = 1.1 * float(-self.coupling.gather(self.u)[-self.size :].min()) + self._scale
        self.slack = self.coupling_slack()
        size = float((self.game.objective * self.column).sum()) + self.worst
        if self.game.reverse:
            size = float(self.u[:, -1].sum())
        target = max(size, self._scale) / self.count()
        for family in self.families:
            family.price = target / family.slack
        self.price = np.zeros(self.coupling.rows)
        self.price[: self.size] = self.game.objective.mean(axis=0)
        self.price[self.size :] = target / self.slack

    def coupling_slack(self) -> FloatArray:
        """What the inequalities among the coupling rows leave, as the iterate is."""
        found = self.coupling.gather(self.u)[self.size :]
        if self.coupling.total:
            found[0] -= self.game.distortion or 0.0
        if self.game.limit != "none":
            first = int(self.coupling.total)
            found[first:] += self.worst if self.game.cost_at_most is None else self.game.cost_at_most
        return found

    @property
    def column(self) -> FloatArray:
        """The mechanism's columns, (observables, secrets)."""
        return self.u[:, : self.size]

    @property
    def value(self) -> float:
        """What is minimised, for the mechanism as it is: ∞ while it does not keep its limits."""
        game = self.game
        if game.cost_at_most is not None:
            spent = game.cost_at_most - float(self.coupling_slack()[int(self.coupling.total) :].min())
            if spent > game.cost_at_most * (1 + 1e-9):
                return inf
        if game.reverse and game.errors is not None:
            return -float((self.column @ game.errors.T).min(axis=1).sum())
        if game.limit == "each":
            return float((game.limited * self.column).sum(axis=0).max())
        return float((game.objective * self.column).sum())

    @property
    def accuracy(self) -> float:
        """The sum of products to aim for in the end: smaller ones only spoil the numbers."""
        value = self.value
        return AIM * self._tolerance * max(abs(value) if value < inf else 0.0, self._scale)

    @property
    def ratio_count(self) -> int:
        """How many ratios the Newton matrix sees."""
        return 0 if self.ratios is None else len(self.ratios.keys)

    def count(self) -> int:
        """How many inequalities there are."""
        return sum(family.slack.size for family in self.families) + len(self.slack)

    def adjoint(self, values: list[FloatArray]) -> FloatArray:
        """The transposes of all families' ``forward``, added up."""
        total = np.zeros(self.u.shape)
        for family, each in zip(self.families, values, strict=True):
            part = family.adjoint(each)
            total[:, : part.shape[1]] += part
        return total

    def prices(self) -> Prices:
        """The multipliers now, and the lower bound they prove on what is minimised."""
        game, first = self.game, self.size + int(self.coupling.total)
        limits = self.price[first:]
        distortion = 1.0 if game.reverse else float(self.price[self.size]) if self.coupling.total else 0.0
        if self.free:
            limits = limits / limits.sum()
        left = game.objective + (game.limited * limits if game.limit != "none" else 0.0)
        attack = None
        if self.guesses is not None:
            attack = self.guesses.price / self.guesses.price.sum(axis=1, keepdims=True)
            left = left - distortion * self.guesses.adjoint(attack)[:, : self.size]
        where, ratio = (np.zeros(0, dtype=np.int64),) * 3, np.zeros(0)
        if self.ratios is not None:
            left = left - self.ratios.adjoint(self.ratios.price)
            where = (self.ratios.block, self.ratios.i, self.ratios.j)
            ratio = self.ratios.price / self.ratios.gamma_root  # undo the balancing by √γ
        bound = float(left.min(axis=0).sum())
        if game.reverse:  # Σ x ≤ price·limit − bound, so minus that bounds what is minimised
            bound -= float(limits.sum()) * (game.cost_at_most or 0.0)
            if game.errors is not None:  # nothing beats revealing nothing
                bound = max(bound, -float(game.errors.sum(axis=1).min()))
        else:
            bound += distortion * (game.distortion or 0.0)
        return Prices(*where, ratio, attack, distortion, limits, bound)

    def iterate(self) -> bool:
        """One predictor-corrector step; whether it went anywhere."""
        system = System(self)
        step = system.direction([-each for each in system.products], -system.coupling_product, refine=False)
        ahead = system.products_after(step, *system.lengths(step))
        centring = min(1.0, max((ahead / (system.mean * self.count())) ** 3, 1e-4))
        target = max(centring * system.mean, self.accuracy / self.count())
        wanted = [target - p - s * z for p, s, z in zip(system.products, step.slacks, step.prices, strict=True)]
        coupled = target - system.coupling_product - step.slack * step.price[self.size :]
        step = system.direction(wanted, coupled)
        primal, dual = system.lengths(step)
        for _ in range(CORRECTORS):
            farther = min(1.0, 1.5 * primal + 0.1), min(1.0, 1.5 * dual + 0.1)
            reached = system.products_at(step, *farther)
            trial = system.nudged(step, [_centrality(product, target) for product in reached])
            trial_primal, trial_dual = system.lengths(trial)
            if trial_primal + trial_dual < primal + dual + 0.02:
                break
            step, primal, dual = trial, trial_primal, trial_dual
        return self._move(step, min(1.0, 0.995 * primal), min(1.0, 0.995 * dual), target)

    def _move(self, step: Direction, primal: float, dual: float, target: float) -> bool:
        """Go along a direction as far as every ratio allows."""
        near: IntArray | None = None
        for _ in range(BACKTRACKS):
            u = self.u + primal * step.u
            if (u[:, : self.size] <= 0).any():
                primal *= 0.5
                continue
            if self.ratios is None:
                break
            broken, near = self.ratios.violated(u[:, : self.size])
            if not len(broken):
                break
            primal *= 0.9 * self.ratios.largest_step(broken, self.column, u[:, : self.size])
        else:
            return False
        self.u = u
        self.price = self.price + dual * step.price
        self.slack = self.slack + primal * step.slack
        self.worst += primal * step.worst
        for family, d_price in zip(self.families, step.prices, strict=True):
            family.price = family.price + dual * d_price
        if self.guesses is not None:
            self.guesses.slack = self.guesses.forward(u)
        if self.positive is not None:
            self.positive.slack = self.positive.forward(u)
        if self.ratios is not None and near is not None:
            self.ratios.renew(near, self.column, target)
        return primal > 1e-8 or dual > 1e-8


def _centrality(product: FloatArray, target: float) -> FloatArray:
    """Gondzio's correction: what brings outlying products back to within a tenth and ten times the target."""
    low, high = 0.1 * target, 10 * target
    change = np.where(product < low, low - product, np.where(product > high, high - product, 0.0))
    return np.maximum(change, -high)


def _positivity_implied(exponents: FloatArray) -> NDArray[np.bool_]:
    """Secrets s with a finite ratio to some s' and back: v(s) ≤ γ v(s') ≤ γγ' v(s) forces v(s) ≥ 0."""
    both = np.isfinite(exponents) & np.isfinite(exponents.T)
    return np.asarray(both.any(axis=1))
