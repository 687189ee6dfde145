"""Presolve: from a problem and bounds to a smaller program with the same optimum, and back."""

from dataclasses import replace

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.certificates import Multipliers, RatioMultipliers
from privacygames.errors import InvalidProblem
from privacygames.problem import Bounds, Problem
from privacygames.programs import LARGEST_EXPONENT, tie_break
from privacygames.solvers.interior.absent import may_be_left_out
from privacygames.solvers.interior.alike import Groups
from privacygames.solvers.interior.outcome import Outcome
from privacygames.solvers.interior.program import BlockProgram, DualPoint
from privacygames.solvers.interior.reductions import dominated_observables
from privacygames.solvers.memory import require_memory

BYTES_PER_ENTRY = 40  # measured: 36 at 15×15 with the Euclidean cost: factors, working sets and scans
KEPT_DUALS = 1e-13
AT_THE_TOP = 1e-9
"""A distortion within this share of the largest there is counts as that."""


class Presolved:
    """A problem made smaller, and the way back.

    Args:
        problem: the problem.
        bounds: what is asked.
        merge_dominated: leave out observables and guesses that others dominate.
        drop_chained: leave out ratios that others imply.
        leave_out_absent: leave out secrets nobody has until they limit the others.
        alike: take secrets together between which no exponent is larger than this.
        start: where the cost is limited, a mechanism that keeps the ratios and costs less.
    """

    def __init__(
        self,
        problem: Problem,
        bounds: Bounds,
        *,
        merge_dominated: bool,
        drop_chained: bool,
        leave_out_absent: bool,
        alike: float,
        start: FloatArray | None,
    ) -> None:
        self.problem, self.shape = problem, problem.shape
        n, m = self.shape
        prior = problem.prior.probabilities
        held = np.flatnonzero(prior > 0)
        every = np.arange(n)
        counts = every if bounds.worst_case else held  # whose cost matters
        self.like = dominated_observables(problem.cost[:, counts]) if merge_dominated else np.arange(m)
        self.kept = np.unique(self.like)
        # Without ratios a secret nobody has constrains nothing: it gets any other's row.
        self.secrets = held if bounds.epsilon is None and not bounds.worst_case else every
        exponents = bounds.exponents(problem.distinguishability)[np.ix_(self.secrets, self.secrets)]
        exponents[exponents > LARGEST_EXPONENT] = np.inf
        self.groups = groups = Groups.where(exponents, alike)
        size = len(self.kept) * groups.count**2 * BYTES_PER_ENTRY / 2**30
        require_memory(size, groups.count, len(self.kept), "the block engine")
        self.guesses = every
        with_errors = bool(bounds.distortion) or bounds.reverse  # a distortion of 0 asks for nothing
        if merge_dominated and with_errors:
            self.guesses = np.unique(dominated_observables(problem.distance[:, held]))
        self.ratios = int(np.isfinite(exponents).sum())
        weight = prior[self.secrets]
        absent = (groups.summed(weight) == 0) & (not bounds.worst_case and leave_out_absent)
        if not may_be_left_out(groups.between, absent):
            absent[:] = False
        self.cost_scale = float((problem.cost * prior).max()) or 1.0
        plain = problem.cost[np.ix_(self.kept, self.secrets)]
        expected = groups.summed(plain * weight)
        objective = np.zeros_like(expected) if bounds.worst_case else expected
        if bounds.reverse:
            objective = tie_break(problem) * expected
            self.extra = tie_break(problem) * weight
        errors = groups.summed(self._errors(problem, weight)) if with_errors else None
        excess = None
        if errors is not None and bounds.distortion:
            self.preferred = best = int(errors.sum(axis=1).argmin())
            if bounds.distortion > errors[best].sum() * (1 - AT_THE_TOP):
                excess = np.delete(errors - errors[best], best, axis=0)
                errors = None
        self.at_the_top = excess is not None
        self.worst_case, self.reverse = bounds.worst_case, bounds.reverse
        self.program = BlockProgram(
            objective=objective,
            exponents=groups.between,
            absent=absent,
            drop_chained=drop_chained,
            errors=errors,
            distortion=None if self.at_the_top else bounds.distortion or None,
            preferred=excess,
            reverse=bounds.reverse,
            limited=plain if bounds.worst_case else expected,
            whose=groups.of,
            limit="each" if bounds.worst_case else "average" if bounds.reverse else "none",
            cost_at_most=bounds.cost_at_most,
            start=None if bounds.cost_at_most is None else self._start(start, plain, weight, bounds.cost_at_most),
        )

    def _start(self, given: FloatArray | None, cost: FloatArray, weight: FloatArray, limit: float) -> FloatArray:
        """As much of the uniform mechanism as halves what a cheap one leaves of the limit."""
        uniform = np.full(cost.shape, 1.0 / len(cost))
        if given is None:
            raise InvalidProblem("a limit on the cost needs a mechanism that keeps it to start from")
        cheap = np.zeros(cost.shape)  # what goes to a dominated observable goes to the one that dominates it
        np.add.at(cheap, np.searchsorted(self.kept, self.like), given.T[:, self.secrets])

        def spent(columns: FloatArray) -> float:
            each = (cost * columns).sum(axis=0)
            return float(each.max() if self.worst_case else each @ weight)

        least, most = spent(cheap), spent(uniform)
        share = min(1.0, 0.5 * (limit - least) / (most - least)) if most > limit else 1.0
        mixed = (1 - share) * cheap + share * uniform
        members = np.bincount(self.groups.of)
        return mixed if self.groups.trivial else self.groups.summed(mixed) / members

    def describe(self, outcome: Outcome) -> str:
        """How much smaller the program was."""
        n, m = self.shape
        observables, secrets = f"{len(self.kept)} of {m} observables", f"{len(outcome.secrets)} of {n} secrets"
        return f"{observables}, {secrets}, {outcome.ratios} of {self.ratios} ratios"

    def expand(self, outcome: Outcome) -> FloatArray:
        """The mechanism for the whole problem, (secrets, observables)."""
        n, m = self.shape
        rows = np.zeros(n, dtype=np.int64)
        rows[self.secrets] = np.arange(len(self.secrets))
        full = np.zeros((n, m))
        full[:, self.kept] = outcome.probabilities.T[self.groups.of][rows]
        return full

    def multipliers(self, outcome: Outcome) -> Multipliers:
        """The dual values for the whole problem; dominated observables borrow those of what dominates them."""
        dual = self._with_attack(outcome.dual)
        attack = np.ones((len(self.kept), self.shape[0]))
        if dual.attack is not None:
            attack[:] = 0.0
            attack[:, self.guesses] = dual.attack
        matters = dual.ratio > KEPT_DUALS * self.cost_scale
        between = RatioMultipliers(
            dual.observable[matters].astype(np.int32),
            dual.secret[matters].astype(np.int32),
            dual.other[matters].astype(np.int32),
            dual.ratio[matters],
        )
        like: IntArray = np.searchsorted(self.kept, self.like)
        cost_dual, weights = self._cost_duals(dual.limits)
        ratios = between
        if not self.groups.trivial:
            ratios = self.groups.lifted(between, self._left(dual, cost_dual, weights), outcome.probabilities)
        ratios = replace(
            ratios,
            secret=self.secrets[ratios.secret].astype(np.int32),
            other=self.secrets[ratios.other].astype(np.int32),
        )
        return Multipliers(cost_dual, dual.distortion, attack, ratios, weights, like)

    def _with_attack(self, dual: DualPoint) -> DualPoint:
        """Where the distortion is the largest there is: a price of it that covers every guess, and shares of it."""
        if not self.at_the_top or dual.attack is None:
            return dual
        price = float(dual.attack.sum(axis=1).max()) or 1.0
        shares = dual.attack / price
        rest = np.maximum(1.0 - shares.sum(axis=1), 0.0)
        return replace(dual, attack=np.insert(shares, self.preferred, rest, axis=1), distortion=price)

    def _errors(self, problem: Problem, weight: FloatArray) -> FloatArray:
        """π(s) d(ŝ,s) for the guesses and secrets that are left."""
        return problem.distance[np.ix_(self.guesses, self.secrets)] * weight

    def _left(self, dual: DualPoint, cost_dual: float, weights: FloatArray | None) -> FloatArray:
        """What an entry costs, secret by secret, less what its part in the attack's error is worth."""
        prior = self.problem.prior.probabilities[self.secrets]
        counts = prior if weights is None else weights[self.secrets] / weights.sum()
        left = cost_dual * self.problem.cost[np.ix_(self.kept, self.secrets)] * counts
        if dual.attack is not None:
            left = left - dual.distortion * (dual.attack @ self._errors(self.problem, prior))
        return np.asarray(left)

    def _cost_duals(self, limits: FloatArray) -> tuple[float, FloatArray | None]:
        """The dual value of the cost, and how much each secret counts in its worst case."""
        extra = self.extra if self.reverse else np.zeros(len(self.secrets))  # the cost is in the objective, too
        total = float(limits.sum() + extra.sum()) if self.reverse else 1.0
        if not self.worst_case:
            return total, None
        weights = np.zeros(self.shape[0])
        weights[self.secrets] = limits + extra
        return total, weights
