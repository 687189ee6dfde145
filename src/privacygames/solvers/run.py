"""One iterate of the block engine, and how it moves."""

from concurrent.futures import Executor
from math import inf

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.absent import HALVINGS, fill_in, room
from privacygames.solvers.coupling import Coupling
from privacygames.solvers.families import Family, Guesses, Positive, Ratios
from privacygames.solvers.game import Game, Prices
from privacygames.solvers.system import Direction, System, centrality

CORRECTORS = 2
BACKTRACKS = 40
AIM = 0.1
SETTLE = 100.0
"""Within this factor of the end, no ratio leaves the working set: in columns that vanish they would come and go."""

REFINE = 1e-3
"""Directions are refined once the products add up to less than this share of the value."""

START = 0.25
"""The products at the start add up to this share of what the game costs where nothing is revealed."""

TIGHT, ADMIT = 0.02, 0.05
"""When the row of a secret left out has less room than the first, all with less than the second join the game."""

KEEP_ROOM = 0.1
"""A step leaves those left out at least this share of the room they had."""


class Run:
    """The iterate and how it moves."""

    def __init__(self, game: Game, pool: Executor, tolerance: float, scale: float) -> None:
        self.whole, self.pool = game, pool
        self._tolerance, self._scale = tolerance, scale
        held = ~game.absent
        nearest = np.minimum(game.exponents[held].min(axis=0), game.exponents[:, held].min(axis=1))
        out = game.absent & (-np.expm1(-nearest) > ADMIT)  # the room a constant mechanism leaves
        self.inside, self.outside = np.flatnonzero(~out), np.flatnonzero(out)
        self.game = game.only(self.inside)
        self.free = game.limit == "each" and game.cost_at_most is None
        self.u = self._first()
        self._lay_out()
        self.room = self._room(self.column)
        self.worst = 0.0  # y, where the worst case is minimised
        if self.free:
            self.worst = 1.1 * float(-self.coupling.gather(self.u)[-self.size :].min()) + self._scale
        self.slack = self.coupling_slack()
        size = START * (float(game.objective.sum(axis=1).mean()) + self.worst)
        if game.reverse:
            size = float(self.u[:, -1].sum())
        target = max(size, self._scale) / self.count()
        for family in self.families:
            family.price = target / family.slack
        self.price = np.zeros(self.coupling.rows)
        self.price[self.size :] = target / self.slack
        self.price[: self.size] = self.unpriced()[:, : self.size].mean(axis=0)
        self.found = self._prices()

    def _first(self) -> FloatArray:
        """A mechanism that reveals nothing (or the one given), and x halfway to what it allows."""
        game = self.game
        m, n = game.objective.shape
        u = np.empty((m, n if game.errors is None else n + 1))
        u[:, :n] = _constant_weights(game.objective.sum(axis=1))[:, None] if game.start is None else game.start
        if game.errors is not None:
            most = (u[:, :n] @ game.errors.T).min(axis=1)
            asked = (game.distortion or 0.0) / most.sum()
            u[:, -1] = 0.5 * (1 + asked) * most
        return u

    def _lay_out(self) -> None:
        """Objective, coupling rows and families for the game and the unknowns as they are."""
        game, width = self.game, self.u.shape[1]
        m, n = game.objective.shape
        self.size = n
        self.objective = np.zeros((m, width))
        self.objective[:, :n] = game.objective
        if game.reverse:
            self.objective[:, -1] = -1.0
        self.coupling = Coupling(n, width, game.distortion is not None, game.limited, game.limit)
        self.ratio_total = int(np.isfinite(game.exponents).sum())
        self.ratios = Ratios(game.exponents, self.column) if self.ratio_total else None
        self.guesses = None if game.errors is None else Guesses(game.errors, self.u)
        unsure = np.flatnonzero(~_positivity_implied(game.exponents))
        self.positive = Positive(self.column, unsure, width) if len(unsure) else None
        families = (self.ratios, self.guesses, self.positive)
        self.families: list[Family] = [family for family in families if family is not None]

    def unpriced(self) -> FloatArray:
        """What prices leave of the objective: the dual residual."""
        return self.objective - self.coupling.spread(self.price) - self.adjoint([each.price for each in self.families])

    def lacking(self, column: FloatArray, secrets: IntArray) -> IntArray:
        """Secrets left out for whom a mechanism of the others has no row."""
        others = np.setdiff1d(np.arange(len(self.whole.absent)), secrets)
        return fill_in(self.whole.exponents, column, secrets, others)[2]

    def _room(self, column: FloatArray) -> FloatArray:
        """How much room a mechanism leaves for the secrets left out."""
        parts = np.array_split(self.outside, 2)
        found = self.pool.map(lambda part: room(self.whole.exponents, column, self.inside, part), parts)
        return np.concatenate(list(found))

    def admit(self, secrets: IntArray) -> bool:
        """Take secrets into the game, their ratios with prices that make them central; whether any could join."""
        rows, joined, _ = fill_in(self.whole.exponents, self.column, self.inside, np.intersect1d(secrets, self.outside))
        if not len(joined):
            return False
        n, target = self.size, self.mean_product()
        self.u = np.concatenate([self.column, rows, self.u[:, n:]], axis=1)
        self.inside = np.append(self.inside, joined)
        self.outside = np.setdiff1d(self.outside, joined)
        self.game = self.whole.only(self.inside)
        before = self.ratios, self.guesses, self.positive
        self._lay_out()
        for old, new in zip(before, (self.ratios, self.guesses, self.positive), strict=True):
            if new is not None:
                new.price = target / new.slack
            if isinstance(new, Ratios) and isinstance(old, Ratios):
                new.adopt(old, self.column, target)
            elif new is not None and old is not None and new.slack.shape == old.slack.shape:
                new.price = old.price
        self.price = np.concatenate([self.price[:n], np.zeros(len(joined)), self.price[n:]])
        self.price[n : self.size] = self.unpriced()[:, n : self.size].mean(axis=0)
        self.room = self._room(self.column)
        return True

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

    def sizes(self) -> FloatArray:
        """What the unknowns are measured by: v by itself; x, which may cross zero, by the errors of guesses."""
        if self.guesses is None:
            return self.u
        sizes = self.u.copy()
        sizes[:, -1] += self.guesses.slack.mean(axis=1)
        return sizes

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

    def mean_product(self) -> float:
        """The mean of slack·price over all inequalities."""
        total = sum(float((each.slack * each.price).sum()) for each in self.families)
        return (total + float((self.slack * self.price[self.size :]).sum())) / self.count()

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

    def _prices(self) -> Prices:
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
            where = (self.ratios.block, self.inside[self.ratios.i], self.inside[self.ratios.j])
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
        late = self.ratios is None or system.mean * self.count() < REFINE * abs(self.value)
        step = system.direction(wanted, coupled, refine=late)
        primal, dual = system.lengths(step)
        for _ in range(CORRECTORS):
            farther = min(1.0, 1.5 * primal + 0.1), min(1.0, 1.5 * dual + 0.1)
            reached = system.products_at(step, *farther)
            trial = system.nudged(step, [centrality(product, target) for product in reached])
            trial_primal, trial_dual = system.lengths(trial)
            if trial_primal + trial_dual < primal + dual + 0.02:
                break
            step, primal, dual = trial, trial_primal, trial_dual
        return self._move(step, min(1.0, 0.995 * primal), min(1.0, 0.995 * dual), target)

    def _move(self, step: Direction, primal: float, dual: float, target: float) -> bool:
        """Go along a direction as far as every ratio allows."""
        near: IntArray | None = None
        settle = target * self.count() <= SETTLE * self.accuracy
        for _ in range(BACKTRACKS):
            u = self.u + primal * step.u
            if (u[:, : self.size] <= 0).any():
                primal *= 0.5
                continue
            left = self._room(u[:, : self.size])
            if (left < KEEP_ROOM * self.room).any():
                primal *= 0.7
                continue
            if self.ratios is None:
                break
            broken, near = self.ratios.violated(u[:, : self.size], self.pool, settle=settle)
            if not len(broken):
                break
            primal *= 0.9 * self.ratios.largest_step(broken, self.column, u[:, : self.size])
        else:
            return False
        self.u, self.room = u, left
        self.price = self.price + dual * step.price
        self.slack = self.slack + primal * step.slack
        self.worst += primal * step.worst
        for family, d_price in zip(self.families, step.prices, strict=True):
            family.price = family.price + dual * d_price
        if self.guesses is not None:
            self.guesses.slack = self.guesses.forward(u)
        if self.positive is not None:
            self.positive.slack = self.positive.forward(u)
        self.found = self._prices()  # before pairs and secrets join: theirs are not settled yet
        if self.ratios is not None and near is not None:
            self.ratios.renew(near, self.column, target)
        if (self.room < TIGHT).any():
            self.admit(self.outside[self.room < ADMIT])
        return primal > 1e-8 or dual > 1e-8


def _constant_weights(cost: FloatArray) -> FloatArray:
    """How often each observable is sent by the mechanism that reveals nothing, at the start.

    Among those mechanisms, w_o = κ/(cost_o − λ) is where cost and barrier balance; κ is the products' share of each.
    """
    share = START * float(cost.mean()) / len(cost)
    if share <= 0:
        return np.full(len(cost), 1.0 / len(cost))
    low, high = share, share * len(cost)  # how far λ is below the least cost
    for _ in range(HALVINGS):
        below = (low + high) / 2
        if (share / (cost - cost.min() + below)).sum() > 1:
            low = below
        else:
            high = below
    weights = share / (cost - cost.min() + high)
    return np.asarray(weights / weights.sum())


def _positivity_implied(exponents: FloatArray) -> NDArray[np.bool_]:
    """Secrets s with a finite ratio to some s' and back: v(s) ≤ γ v(s') ≤ γγ' v(s) forces v(s) ≥ 0."""
    both = np.isfinite(exponents) & np.isfinite(exponents.T)
    return np.asarray(both.any(axis=1))
