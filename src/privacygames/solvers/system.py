"""The Newton system at one iterate of the block engine, and directions from it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.solvers.newton import Newton

if TYPE_CHECKING:
    from privacygames.solvers.run import Run


@dataclass(frozen=True)
class Direction:
    """Changes of the unknowns; of slacks and prices inside the blocks and of the coupling rows; and of y."""

    u: FloatArray
    slacks: list[FloatArray]
    prices: list[FloatArray]
    slack: FloatArray
    price: FloatArray
    worst: float


class System:
    """The Newton system at one iterate."""

    def __init__(self, run: "Run") -> None:
        self.run = run
        self.slacks = [family.slack for family in run.families]
        self.prices = [family.price for family in run.families]
        self.products = [slack * price for slack, price in zip(self.slacks, self.prices, strict=True)]
        self.coupling_price = run.price[run.size :]
        self.coupling_product = run.slack * self.coupling_price
        self.mean = run.mean_product()
        self.residual = run.unpriced()
        self.softness = run.slack / self.coupling_price
        self.stiffness = [price / slack for slack, price in zip(self.slacks, self.prices, strict=True)]
        self.newton = Newton(
            run.sizes(),
            run.ratios,
            run.guesses,
            run.positive,
            coupling=run.coupling,
            softness=self.softness,
            pool=run.pool,
        )
        self.border = np.zeros(run.coupling.rows)
        if run.free:
            self.border[-run.size :] = 1.0
            self.border_solved = self.newton.solve_schur(self.border)

    def direction(self, wanted: list[FloatArray], coupled: FloatArray, *, refine: bool = True) -> Direction:
        """Where slack·price changes by ``wanted`` to first order, and feasibility is kept or restored."""
        run, newton, n = self.run, self.newton, self.run.size
        right = run.adjoint([each / slack for each, slack in zip(wanted, self.slacks, strict=True)]) - self.residual
        goal = np.zeros(run.coupling.rows)
        goal[:n] = 1.0 - run.column.sum(axis=0)
        goal[n:] = run.slack - run.coupling_slack() + coupled / self.coupling_price
        price, worst = np.zeros_like(goal), 0.0
        du = newton.solve_blocks(right)
        for refinement in (False, True) if refine else (False,):
            if refinement:
                applied = [w * f.forward(du) for w, f in zip(self.stiffness, run.families, strict=True)]
                du += newton.solve_blocks(right + run.coupling.spread(price) - run.adjoint(applied))
            missing = goal - run.coupling.gather(du) - worst * self.border
            missing[n:] -= self.softness * price[n:]
            lacking = 1.0 - float(self.border @ (run.price + price))  # the worst case's prices sum to one
            more, further = self._solve_coupling(missing, lacking)
            price, worst = price + more, worst + further
            du += newton.solve_blocks(run.coupling.spread(more))
        slacks, prices = self._inside(du, wanted)
        slack = (coupled - run.slack * price[n:]) / self.coupling_price
        return Direction(du, slacks, prices, slack, price, worst)

    def nudged(self, step: Direction, change: list[FloatArray]) -> Direction:
        """The direction with ``change`` more wanted: the system is linear, so only the difference is solved for."""
        run, newton, n = self.run, self.newton, self.run.size
        du = newton.solve_blocks(run.adjoint([each / slack for each, slack in zip(change, self.slacks, strict=True)]))
        price, worst = self._solve_coupling(-run.coupling.gather(du), 0.0)
        du += newton.solve_blocks(run.coupling.spread(price))
        slacks, prices = self._inside(du, change)
        return Direction(
            step.u + du,
            [old + new for old, new in zip(step.slacks, slacks, strict=True)],
            [old + new for old, new in zip(step.prices, prices, strict=True)],
            step.slack - self.softness * price[n:],
            step.price + price,
            step.worst + worst,
        )

    def _solve_coupling(self, missing: FloatArray, lacking: float) -> tuple[FloatArray, float]:
        """Prices (and y, where it is free) that make up for what rows miss and what their prices lack to one."""
        solved = self.newton.solve_schur(missing)
        if not self.run.free:
            return solved, 0.0
        worst = (float(self.border @ solved) - lacking) / float(self.border @ self.border_solved)
        return solved - worst * self.border_solved, worst

    def _inside(self, du: FloatArray, wanted: list[FloatArray]) -> tuple[list[FloatArray], list[FloatArray]]:
        """How slacks and prices inside the blocks change along du."""
        slacks = [family.forward(du) for family in self.run.families]
        columns = zip(wanted, self.prices, slacks, self.slacks, strict=True)
        return slacks, [(each - price * change) / slack for each, price, change, slack in columns]

    def lengths(self, step: Direction) -> tuple[float, float]:
        """The longest steps, at most 1, that keep slacks and prices positive."""
        primal = [longest(slack, change) for slack, change in zip(self.slacks, step.slacks, strict=True)]
        dual = [longest(price, change) for price, change in zip(self.prices, step.prices, strict=True)]
        primal.append(longest(self.run.slack, step.slack))
        dual.append(longest(self.coupling_price, step.price[self.run.size :]))
        return min(primal), min(dual)

    def products_at(self, step: Direction, primal: float, dual: float) -> list[FloatArray]:
        """slack·price after steps of these lengths."""
        columns = zip(self.slacks, step.slacks, self.prices, step.prices, strict=True)
        return [(slack + primal * ds) * (price + dual * dp) for slack, ds, price, dp in columns]

    def products_after(self, step: Direction, primal: float, dual: float) -> float:
        """The sum of all products after steps of these lengths."""
        prices = self.coupling_price + dual * step.price[self.run.size :]
        total = float(((self.run.slack + primal * step.slack) * prices).sum())
        return total + sum(float(each.sum()) for each in self.products_at(step, primal, dual))


def longest(value: FloatArray, change: FloatArray) -> float:
    """The largest step, at most 1, that keeps value + step·change ≥ 0."""
    fastest = float((-change / value).max(initial=0.0))
    return 1.0 if fastest <= 1 else 1 / fastest


def centrality(product: FloatArray, target: float) -> FloatArray:
    """Gondzio's correction: what brings outlying products back to within a tenth and ten times the target."""
    low, high = 0.1 * target, 10 * target
    change = np.where(product < low, low - product, np.where(product > high, high - product, 0.0))
    return np.maximum(change, -high)
