"""The fast engine: exact reductions, then the block interior-point method (``blocks.py``)."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.bounds import Bounds
from privacygames.errors import InvalidProblem, SolveFailed
from privacygames.multipliers import Multipliers, RatioMultipliers
from privacygames.problem import Problem
from privacygames.programs.designs import tie_break
from privacygames.programs.rows import LARGEST_EXPONENT
from privacygames.solvers.absent import may_be_left_out
from privacygames.solvers.blocks import play
from privacygames.solvers.game import Game, Outcome
from privacygames.solvers.highs import Highs
from privacygames.solvers.memory import require_memory
from privacygames.solvers.reductions import dominated_observables
from privacygames.solvers.solution import Progress, Solution, Status

LEAST_EXPONENT = 1e-6
NEAR_THE_TOP = 1e-6
BYTES_PER_ENTRY = 40  # measured: 36 at 15×15 with the Euclidean cost: factors, working sets and scans
KEPT_PRICES = 1e-13


@dataclass(frozen=True)
class Interior:
    """A block interior-point method on the reduced program: exact for the full one, at hundreds of secrets.

    It takes every kind of design; :meth:`can_solve` says which corner cases it leaves to HiGHS.

    Attributes:
        merge_dominated: leave out observables (and guesses) that others dominate.
        drop_chained: leave out ratios that shorter ones imply.
        leave_out_absent: leave out secrets nobody has until they limit the mechanism.
    """

    merge_dominated: bool = True
    drop_chained: bool = True
    leave_out_absent: bool = True

    def other(self) -> "Interior | Highs":
        """What to try when this does not get there."""
        return replace(self, leave_out_absent=False) if self.leave_out_absent else Highs()

    def can_solve(self, problem: Problem, bounds: Bounds) -> bool:
        """Whether the program is of the kind this engine is for."""
        exponents = bounds.exponents(problem.distinguishability)
        if (exponents < LEAST_EXPONENT).any():  # secrets that must look the same: the cone has no inside
            return False
        most = float((problem.distance @ problem.prior.probabilities).min())
        if bounds.reverse:
            return most > NEAR_THE_TOP * float(problem.distance.max())
        return not bounds.distortion or bounds.distortion < most * (1 - NEAR_THE_TOP)

    def solve(
        self,
        problem: Problem,
        bounds: Bounds,
        *,
        tolerance: float,
        time_limit: float | None = None,
        progress: Callable[[Progress], None] | None = None,
        inside: FloatArray | None = None,
    ) -> Solution:
        """Solve the design program for these bounds; ``inside`` keeps the ratios and costs less than the limit."""
        if not self.can_solve(problem, bounds):
            raise InvalidProblem(
                "Interior() needs a distortion below the largest possible and secrets whose answers may differ; "
                'use solver="auto" or Highs()'
            )
        reduced = _Reduced(problem, bounds, self, inside)
        scale = 1e-6 * (float((problem.distance if bounds.reverse else problem.cost).max()) or 1e6)
        outcome = play(reduced.game, tolerance=0.3 * tolerance, scale=scale, time_limit=time_limit, progress=progress)
        if not np.isfinite(outcome.prices.bound):
            raise SolveFailed("the block engine lost its numbers", status=Status.NUMERICAL.name)
        stopped = Status.TIME_LIMIT if outcome.out_of_time else Status.NUMERICAL
        return Solution(
            reduced.expand(outcome),
            reduced.multipliers(outcome),
            Status.OPTIMAL if outcome.finished else stopped,
            f"blocks: {reduced.describe(outcome)}, {outcome.iterations} iterations",
        )


class _Reduced:
    """A problem made smaller, and the way back."""

    def __init__(self, problem: Problem, bounds: Bounds, engine: Interior, inside: FloatArray | None) -> None:
        self.shape = problem.shape
        n, m = self.shape
        prior = problem.prior.probabilities
        held = np.flatnonzero(prior > 0)
        every = np.arange(n)
        counts = every if bounds.worst_case else held  # whose cost matters
        self.like = dominated_observables(problem.cost[:, counts]) if engine.merge_dominated else np.arange(m)
        self.kept = np.unique(self.like)
        # Without ratios a secret nobody has constrains nothing: it gets any other's row.
        self.secrets = held if bounds.epsilon is None and not bounds.worst_case else every
        size = len(self.kept) * len(self.secrets) ** 2 * BYTES_PER_ENTRY / 2**30
        require_memory(size, len(self.secrets), len(self.kept), "the block engine")
        self.guesses = every
        with_errors = bool(bounds.distortion) or bounds.reverse  # a distortion of 0 asks for nothing
        if engine.merge_dominated and with_errors:
            self.guesses = np.unique(dominated_observables(problem.distance[:, held]))
        exponents = bounds.exponents(problem.distinguishability)[np.ix_(self.secrets, self.secrets)]
        exponents[exponents > LARGEST_EXPONENT] = np.inf
        self.ratios = int(np.isfinite(exponents).sum())
        absent = np.isin(self.secrets, held, invert=True) & (not bounds.worst_case and engine.leave_out_absent)
        if not may_be_left_out(exponents, absent):
            absent[:] = False
        self.cost_scale = float((problem.cost * prior).max()) or 1.0
        weight = prior[self.secrets]
        plain = problem.cost[np.ix_(self.kept, self.secrets)]
        expected = plain * weight
        objective = np.zeros_like(plain) if bounds.worst_case else expected
        if bounds.reverse:
            objective = tie_break(problem) * expected
            self.extra = tie_break(problem) * weight
        self.worst_case, self.reverse = bounds.worst_case, bounds.reverse
        self.game = Game(
            objective=objective,
            exponents=exponents,
            absent=absent,
            drop_chained=engine.drop_chained,
            errors=problem.distance[np.ix_(self.guesses, self.secrets)] * weight if with_errors else None,
            distortion=bounds.distortion or None,
            reverse=bounds.reverse,
            limited=plain if bounds.worst_case else expected,
            limit="each" if bounds.worst_case else "average" if bounds.reverse else "none",
            cost_at_most=bounds.cost_at_most,
            start=None if bounds.cost_at_most is None else self._start(inside, plain, weight, bounds.cost_at_most),
        )

    def _start(self, inside: FloatArray | None, cost: FloatArray, weight: FloatArray, limit: float) -> FloatArray:
        """As much of the uniform mechanism as halves what a cheap one leaves of the limit."""
        uniform = np.full(cost.shape, 1.0 / len(cost))
        if inside is None:
            raise InvalidProblem("a limit on the cost needs a mechanism that keeps it to start from")
        cheap = np.zeros(cost.shape)  # what goes to a dominated observable goes to the one that dominates it
        np.add.at(cheap, np.searchsorted(self.kept, self.like), inside.T[:, self.secrets])

        def spent(columns: FloatArray) -> float:
            each = (cost * columns).sum(axis=0)
            return float(each.max() if self.worst_case else each @ weight)

        least, most = spent(cheap), spent(uniform)
        share = min(1.0, 0.5 * (limit - least) / (most - least)) if most > limit else 1.0
        return (1 - share) * cheap + share * uniform

    def describe(self, outcome: Outcome) -> str:
        """How much smaller the game was."""
        n, m = self.shape
        observables, secrets = f"{len(self.kept)} of {m} observables", f"{len(outcome.secrets)} of {n} secrets"
        return f"{observables}, {secrets}, {outcome.ratios} of {self.ratios} ratios"

    def expand(self, outcome: Outcome) -> FloatArray:
        """The mechanism for the whole problem, (secrets, observables)."""
        n, m = self.shape
        rows = np.zeros(n, dtype=np.int64)
        rows[self.secrets] = np.arange(len(self.secrets))
        full = np.zeros((n, m))
        full[:, self.kept] = outcome.probabilities.T[rows]
        return full

    def multipliers(self, outcome: Outcome) -> Multipliers:
        """The prices for the whole problem; dominated observables borrow those of what dominates them."""
        prices = outcome.prices
        attack = np.ones((len(self.kept), self.shape[0]))
        if prices.attack is not None:
            attack[:] = 0.0
            attack[:, self.guesses] = prices.attack
        matters = prices.ratio > KEPT_PRICES * self.cost_scale
        ratios = RatioMultipliers(
            prices.observable[matters].astype(np.int32),
            self.secrets[prices.secret[matters]].astype(np.int32),
            self.secrets[prices.other[matters]].astype(np.int32),
            prices.ratio[matters],
        )
        like: IntArray = np.searchsorted(self.kept, self.like)
        cost_price, weights = self._cost_prices(prices.limits)
        return Multipliers(cost_price, prices.distortion, attack, ratios, weights, like)

    def _cost_prices(self, limits: FloatArray) -> tuple[float, FloatArray | None]:
        """The price of the cost, and how much each secret counts in its worst case."""
        extra = self.extra if self.reverse else np.zeros(len(self.secrets))  # the cost is in the objective, too
        total = float(limits.sum() + extra.sum()) if self.reverse else 1.0
        if not self.worst_case:
            return total, None
        weights = np.zeros(self.shape[0])
        weights[self.secrets] = limits + extra
        return total, weights
