"""A primal-dual interior-point method that uses the structure: one dense block per observable.

Mehrotra's predictor-corrector with Gondzio's centrality correctors on

    min Σ_o ⟨c_o, v_o⟩   s.t.   Σ_o v_o = 1,  Σ_o x_o ≥ d_m,  and in each block ratios, guesses, v ≥ 0,

started from the uniform mechanism, which is strictly feasible. The Newton matrix sees a working set of ratios that
changes as the method goes on; steps are cut so that *every* ratio holds, so each iterate is a valid mechanism and
stopping early is safe. docs/theory/solver.md derives it.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from time import monotonic

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.families import Family, Guesses, Positive, Ratios
from privacygames.solvers.newton import Breakdown, Newton
from privacygames.solvers.solution import Progress

MOST_ITERATIONS = 300
CORRECTORS = 2
BACKTRACKS = 40
THREADS = 2
AIM = 0.1


@dataclass(frozen=True)
class Game:
    """The numbers of a design after reductions.

    Attributes:
        cost: the objective's coefficients c_o(s), (observables, secrets).
        exponents: logarithms of the ratio bounds, ∞ where there is none or it follows from others.
        errors: π(s) d(ŝ,s), (guesses, secrets); None without distortion privacy.
        distortion: d_m; below what the uniform mechanism has.
    """

    cost: FloatArray
    exponents: FloatArray
    errors: FloatArray | None
    distortion: float


@dataclass
class Outcome:
    """A mechanism, and the prices behind the bound on the optimum."""

    probabilities: FloatArray
    prices: "Prices"
    cost: float
    iterations: int
    finished: bool = False


@dataclass(frozen=True)
class Prices:
    """Multipliers of one iterate: parallel arrays for the ratios, an attack, and what they prove."""

    observable: IntArray
    secret: IntArray
    other: IntArray
    ratio: FloatArray
    attack: FloatArray | None
    distortion: float
    bound: float


def play(
    game: Game,
    *,
    tolerance: float,
    scale: float,
    time_limit: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Solve a game until cost − bound ≤ tolerance·max(cost, scale), or time or accuracy runs out."""
    started = monotonic()
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(THREADS) as pool:
        run = _Run(game, pool, tolerance, scale)
        best = Outcome(run.column.copy(), run.prices(), run.cost, 0)
        for iteration in range(1, MOST_ITERATIONS + 1):
            gap = (best.cost - best.prices.bound) / max(best.cost, scale)
            seconds = monotonic() - started
            if progress is not None:
                progress(Progress(iteration - 1, best.cost, gap, seconds, run.ratio_count))
            best.finished = gap <= tolerance
            if best.finished or (time_limit is not None and seconds > time_limit):
                break
            try:
                moved = run.iterate()
            except Breakdown:
                break
            if run.cost < best.cost:
                best.cost, best.probabilities = run.cost, run.column.copy()
            prices = run.prices()
            if prices.bound > best.prices.bound:
                best.prices = prices
            best.iterations = iteration
            if not moved:
                break
    return best


class _Run:
    """The iterate and how it moves."""

    def __init__(self, game: Game, pool: ThreadPoolExecutor, tolerance: float, scale: float) -> None:
        self.game, self.pool = game, pool
        self._tolerance, self._scale = tolerance, scale
        m, n = game.cost.shape
        self.size = n
        width = n if game.errors is None else n + 1
        self.objective = np.zeros((m, width))
        self.objective[:, :n] = game.cost
        self.u = np.full((m, width), 1.0 / m)
        self.total_slack = 1.0
        if game.errors is not None:  # halfway between what is asked and what the uniform mechanism has
            most = float(game.errors.sum(axis=1).min())
            self.u[:, -1] = (game.distortion + most) / (2 * m)
            self.total_slack = (most - game.distortion) / 2
        some = np.isfinite(game.exponents).any()
        self.ratios = Ratios(game.exponents, self.column) if some else None
        self.guesses = None if game.errors is None else Guesses(game.errors, self.u)
        free = np.flatnonzero(~_positivity_implied(game.exponents))
        self.positive = Positive(self.column, free, width) if len(free) else None
        families = (self.ratios, self.guesses, self.positive)
        self.families: list[Family] = [family for family in families if family is not None]
        target = max(self.cost, 1e-300) / self._count()
        for family in self.families:
            family.price = target / family.slack
        self.coupling = np.zeros(width)
        self.coupling[:n] = game.cost.mean(axis=0)
        if self.guesses is not None:
            self.coupling[-1] = target / self.total_slack

    @property
    def column(self) -> FloatArray:
        """The mechanism's columns, (observables, secrets)."""
        return self.u[:, : self.size]

    @property
    def cost(self) -> float:
        """What the iterate costs."""
        return float((self.game.cost * self.column).sum())

    @property
    def accuracy(self) -> float:
        """The sum of products to aim for in the end: smaller ones only spoil the numbers."""
        return AIM * self._tolerance * max(self.cost, self._scale)

    @property
    def ratio_count(self) -> int:
        """How many ratios the Newton matrix sees."""
        return 0 if self.ratios is None else len(self.ratios.keys)

    def _count(self) -> int:
        return sum(family.slack.size for family in self.families) + 1

    def _adjoint(self, values: list[FloatArray]) -> FloatArray:
        total = np.zeros(self.u.shape)
        for family, each in zip(self.families, values, strict=True):
            part = family.adjoint(each)
            total[:, : part.shape[1]] += part
        return total

    def prices(self) -> Prices:
        """The multipliers now, and the lower bound they prove."""
        left = self.game.cost.copy()
        price, attack = 0.0, None
        if self.guesses is not None:
            price = float(self.coupling[-1])
            attack = self.guesses.price / self.guesses.price.sum(axis=1, keepdims=True)
            left -= price * self.guesses.adjoint(attack)[:, : self.size]
        where, ratio = (np.zeros(0, dtype=np.int64),) * 3, np.zeros(0)
        if self.ratios is not None:
            left -= self.ratios.adjoint(self.ratios.price)
            where = (self.ratios.block, self.ratios.i, self.ratios.j)
            ratio = self.ratios.price / self.ratios.gamma_root  # undo the balancing by √γ
        bound = float(left.min(axis=0).sum()) + price * self.game.distortion
        return Prices(*where, ratio, attack, price, bound)

    def iterate(self) -> bool:
        """One predictor-corrector step; whether it went anywhere."""
        system = _System(self)
        step = system.direction([-each for each in system.products], -system.total_product)
        ahead = system.products_after(step, *system.lengths(step))
        centring = min(1.0, max((ahead / (system.mean * self._count())) ** 3, 1e-4))
        target = max(centring * system.mean, self.accuracy / self._count())
        wanted = [target - p - s * z for p, s, z in zip(system.products, step.slacks, step.prices, strict=True)]
        total_wanted = target - system.total_product - step.total * step.coupling[-1]
        step = system.direction(wanted, total_wanted)
        primal, dual = system.lengths(step)
        for _ in range(CORRECTORS):
            farther = min(1.0, 1.5 * primal + 0.1), min(1.0, 1.5 * dual + 0.1)
            reached = system.products_at(step, *farther)
            nudged = [each + _centrality(product, target) for each, product in zip(wanted, reached, strict=True)]
            trial = system.direction(nudged, total_wanted)
            trial_primal, trial_dual = system.lengths(trial)
            if trial_primal + trial_dual < primal + dual + 0.02:
                break
            wanted, step, primal, dual = nudged, trial, trial_primal, trial_dual
        return self._move(step, min(1.0, 0.995 * primal), min(1.0, 0.995 * dual), target)

    def _move(self, step: "_Direction", primal: float, dual: float, target: float) -> bool:
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
        self.coupling = self.coupling + dual * step.coupling
        self.total_slack += primal * step.total
        for family, d_price in zip(self.families, step.prices, strict=True):
            family.price = family.price + dual * d_price
        if self.guesses is not None:
            self.guesses.slack = self.guesses.forward(u)
        if self.positive is not None:
            self.positive.slack = self.positive.forward(u)
        if self.ratios is not None and near is not None:
            self.ratios.renew(near, self.column, target)
        return primal > 1e-8 or dual > 1e-8


class _System:
    """The Newton system at one iterate."""

    def __init__(self, run: _Run) -> None:
        self.run = run
        self.slacks = [family.slack for family in run.families]
        self.prices = [family.price for family in run.families]
        self.products = [slack * price for slack, price in zip(self.slacks, self.prices, strict=True)]
        self.joint = run.guesses is not None
        self.alpha = float(run.coupling[-1]) if self.joint else 1.0
        self.total_product = run.total_slack * self.alpha if self.joint else 0.0
        self.mean = (sum(float(each.sum()) for each in self.products) + self.total_product) / run._count()
        self.residual = run.objective - run.coupling - run._adjoint(self.prices)
        self.corner = run.total_slack / self.alpha if self.joint else 0.0
        self.stiffness = [price / slack for slack, price in zip(self.slacks, self.prices, strict=True)]
        self.newton = Newton(run.u, run.ratios, run.guesses, run.positive, corner=self.corner, pool=run.pool)

    def direction(self, wanted: list[FloatArray], total_wanted: float) -> "_Direction":
        """Where slack·price changes by ``wanted`` to first order, and feasibility is kept or restored."""
        run, newton = self.run, self.newton
        right = run._adjoint([each / slack for each, slack in zip(wanted, self.slacks, strict=True)]) - self.residual
        goal = np.zeros(run.u.shape[1])
        goal[: run.size] = 1.0 - run.column.sum(axis=0)
        if self.joint:
            goal[-1] = run.game.distortion + run.total_slack - run.u[:, -1].sum() + total_wanted / self.alpha
        y = np.zeros_like(goal)
        du = newton.solve_blocks(right)
        for refinement in (False, True):
            if refinement:
                applied = [w * f.forward(du) for w, f in zip(self.stiffness, run.families, strict=True)]
                du += newton.solve_blocks(right + y - run._adjoint(applied))
            missing = goal - du.sum(axis=0)
            missing[-1] -= self.corner * y[-1]
            more = newton.solve_schur(missing)
            y += more
            du += newton.solve_blocks(np.broadcast_to(more, du.shape))
        slacks = [family.forward(du) for family in run.families]
        columns = zip(wanted, self.prices, slacks, self.slacks, strict=True)
        prices = [(each - price * change) / slack for each, price, change, slack in columns]
        total = (total_wanted - run.total_slack * y[-1]) / self.alpha if self.joint else 0.0
        return _Direction(du, y, slacks, prices, total)

    def lengths(self, step: "_Direction") -> tuple[float, float]:
        """The longest steps, at most 1, that keep slacks and prices positive."""
        primal = [_longest(slack, change) for slack, change in zip(self.slacks, step.slacks, strict=True)]
        dual = [_longest(price, change) for price, change in zip(self.prices, step.prices, strict=True)]
        if self.joint:
            primal.append(_longest(np.array(self.run.total_slack), np.array(step.total)))
            dual.append(_longest(np.array(self.alpha), np.array(step.coupling[-1])))
        return min(primal), min(dual)

    def products_at(self, step: "_Direction", primal: float, dual: float) -> list[FloatArray]:
        """slack·price after steps of these lengths."""
        columns = zip(self.slacks, step.slacks, self.prices, step.prices, strict=True)
        return [(slack + primal * ds) * (price + dual * dp) for slack, ds, price, dp in columns]

    def products_after(self, step: "_Direction", primal: float, dual: float) -> float:
        """The sum of all products after steps of these lengths."""
        total = sum(float(each.sum()) for each in self.products_at(step, primal, dual))
        if self.joint:
            total += (self.run.total_slack + primal * step.total) * (self.alpha + dual * step.coupling[-1])
        return total


@dataclass(frozen=True)
class _Direction:
    u: FloatArray
    coupling: FloatArray
    slacks: list[FloatArray]
    prices: list[FloatArray]
    total: float


def _longest(value: FloatArray, change: FloatArray) -> float:
    """The largest step, at most 1, that keeps value + step·change ≥ 0."""
    fastest = float((-change / value).max(initial=0.0))
    return 1.0 if fastest <= 1 else 1 / fastest


def _centrality(product: FloatArray, target: float) -> FloatArray:
    """Gondzio's correction: what brings outlying products back to within a tenth and ten times the target."""
    low, high = 0.1 * target, 10 * target
    change = np.where(product < low, low - product, np.where(product > high, high - product, 0.0))
    return np.maximum(change, -high)


def _positivity_implied(exponents: FloatArray) -> NDArray[np.bool_]:
    """Secrets s with a finite ratio to some s' and back: v(s) ≤ γ v(s') ≤ γγ' v(s) forces v(s) ≥ 0."""
    both = np.isfinite(exponents) & np.isfinite(exponents.T)
    return np.asarray(both.any(axis=1))
