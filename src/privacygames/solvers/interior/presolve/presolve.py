"""Presolve: from a problem and bounds to a smaller program with the same optimum, and back."""

from dataclasses import replace

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.certificates import AdversaryDuals, DualSolution, RatioDuals
from privacygames.errors import InvalidProblem
from privacygames.problem import Bounds, Problem
from privacygames.programs import tie_break
from privacygames.solvers.interior.presolve.reduced_adversary import ReducedAdversary
from privacygames.solvers.interior.presolve.reduced_problem import ReducedProblem
from privacygames.solvers.interior.presolve.zero_prior import may_be_left_out
from privacygames.solvers.interior.program import BlockProgram, DualPoint, Limit

KEPT_DUALS = 1e-13


class Presolve:
    """A problem made smaller, and the way back.

    Args:
        problem: the problem.
        bounds: what is asked.
        merge_dominated: leave out observables and guesses that others dominate.
        drop_implied: leave out ratios that others imply.
        defer_zero_prior: leave out secrets nobody has until they limit the others.
        alike: take secrets together between which no exponent is larger than this.
        start: where the cost is limited, a mechanism that keeps the ratios and costs less.
        threads: how many will work on it.
        device: where the program is going to be solved.
    """

    def __init__(
        self,
        problem: Problem,
        bounds: Bounds,
        *,
        merge_dominated: bool,
        drop_implied: bool,
        defer_zero_prior: bool,
        alike: float,
        start: FloatArray | None,
        threads: int | None = None,
        device: str = "host",
    ) -> None:
        self.problem, self.bounds, self.shape = problem, bounds, problem.shape
        prior = problem.prior.probabilities
        kept = ReducedProblem.of(problem, bounds, merge_dominated=merge_dominated, alike=alike)
        self.estimate = kept.estimate(threads, device)
        self.estimate.require()
        self.each, self.like, self.kept, self.secrets = kept.each, kept.like, kept.observables, kept.secrets
        self.reduced_adversaries, active = kept.reduced_adversaries, kept.active
        self.groups = groups = kept.groups
        self.ratios = int(np.isfinite(kept.exponents).sum())
        weight = prior[self.secrets]
        absent = (groups.summed(kept.belief[self.secrets]) == 0) & (not self.each and defer_zero_prior)
        if not may_be_left_out(groups.between, absent):
            absent[:] = False
        self.cost_scale = float((problem.cost * prior).max()) or 1.0
        plain = problem.cost[np.ix_(self.kept, self.secrets)]
        expected = groups.summed(plain * weight)
        objective = np.zeros_like(expected) if bounds.worst_case else expected
        if bounds.maximises_distortion:
            objective = tie_break(problem, bounds) * expected
            self.extra = tie_break(problem, bounds) * weight
        # Those with an x of their own, who is sought last; and those who may never learn anything.
        self.bounded = sorted((each for each in active if each.part != "top"), key=lambda each: each.sought)
        self.topped = [each for each in active if each.part == "top"]
        errors = [groups.summed(each.errors(self.secrets)) for each in self.bounded]
        both = bounds.maximises_distortion and bounds.worst_cost_at_most is not None
        limit: Limit = "each" if self.each else "average" if bounds.maximises_distortion else "none"
        self.program = BlockProgram(
            objective=objective,
            exponents=groups.between,
            absent=absent,
            drop_implied=drop_implied,
            errors=np.concatenate(errors) if errors else None,
            owner=np.repeat(np.arange(len(errors)), [len(each) for each in errors]),
            distortion=np.array(
                [each.adversary.distortion for each in self.bounded if not each.sought], dtype=np.float64
            ),
            preferred=self._preferred(),
            reverse=bounds.maximises_distortion,
            limited=plain if self.each else expected,
            whose=groups.of,
            limit=limit,
            cost_at_most=bounds.cost_at_most if bounds.worst_cost_at_most is None else bounds.worst_cost_at_most,
            shares=weight if both else None,
            average_at_most=bounds.cost_at_most or 0.0,
            start=self._start(start, plain, weight) if bounds.cost_limits else None,
        )

    def _preferred(self) -> FloatArray | None:
        """By how much other guesses err more than the best blind one, where that has to stay the best."""
        found = []
        for each in self.topped:
            errors = self.groups.summed(each.errors(self.secrets))
            found.append(np.delete(errors - errors[each.best], each.best, axis=0))
        return np.concatenate(found) if found else None

    def _start(self, given: FloatArray | None, cost: FloatArray, weight: FloatArray) -> FloatArray:
        """As much of the uniform mechanism as halves what a cheap one leaves of the limits."""
        uniform = np.full(cost.shape, 1.0 / len(cost))
        if given is None:
            raise InvalidProblem("a limit on the cost needs a mechanism that keeps it to start from")
        cheap = np.zeros(cost.shape)  # what goes to a dominated observable goes to the one that dominates it
        np.add.at(cheap, np.searchsorted(self.kept, self.like), given.T[:, self.secrets])
        share = 1.0
        for worst_case, limit in self.bounds.cost_limits:

            def spent(columns: FloatArray, *, worst_case: bool = worst_case) -> float:
                each = (cost * columns).sum(axis=0)
                return float(each.max() if worst_case else each @ weight)

            least, most = spent(cheap), spent(uniform)
            if most > max(limit, least):
                share = min(share, 0.5 * (limit - least) / (most - least))
        mixed = (1 - share) * cheap + share * uniform
        members = np.bincount(self.groups.of)
        return mixed if self.groups.trivial else self.groups.summed(mixed) / members

    def describe(self, secrets: int, ratios: int) -> str:
        """The size of the program that was solved, beside that of the whole one."""
        n, m = self.shape
        return f"{len(self.kept)} of {m} observables, {secrets} of {n} secrets, {ratios} of {self.ratios} ratios"

    def expand(self, probabilities: FloatArray) -> FloatArray:
        """The mechanism for the whole problem, (secrets, observables), from the program's columns."""
        n, m = self.shape
        rows = np.zeros(n, dtype=np.int64)
        rows[self.secrets] = np.arange(len(self.secrets))
        full = np.zeros((n, m))
        full[:, self.kept] = probabilities.T[self.groups.of][rows]
        return full

    def dual_solution(self, dual: DualPoint, probabilities: FloatArray) -> DualSolution:
        """The dual values for the whole problem; dominated observables borrow those of what dominates them."""
        against = self._against(dual)
        matters = dual.ratio > KEPT_DUALS * self.cost_scale
        between = RatioDuals(
            dual.observable[matters].astype(np.int32),
            dual.secret[matters].astype(np.int32),
            dual.other[matters].astype(np.int32),
            dual.ratio[matters],
        )
        like: IntArray = np.searchsorted(self.kept, self.like)
        cost_dual, weights, limited = self._cost_duals(dual.limits)
        ratios = between
        if not self.groups.trivial:
            left = self._left(against, cost_dual, weights, limited)
            ratios = self.groups.lifted(between, left, probabilities)
        ratios = replace(
            ratios,
            secret=self.secrets[ratios.secret].astype(np.int32),
            other=self.secrets[ratios.other].astype(np.int32),
        )
        nothing = np.zeros((len(self.kept), self.shape[0]))
        nothing[:, 0] = 1.0  # an attack that nothing depends on
        several = bool(self.bounds.against)
        only = AdversaryDuals(0.0, nothing) if several or not against else against[0]
        return DualSolution(
            cost_dual,
            only.dual,
            only.attack,
            ratios,
            weights,
            like,
            tuple(against) if several else (),
            limited,
        )

    def _against(self, dual: DualPoint) -> list[AdversaryDuals]:
        """For each adversary her price and the attack on the whole of her guesses, in the order of the promises."""
        rows = len(self.kept)
        found = {}
        for place, each in enumerate(self.bounded):
            if dual.attack is not None:
                attack = dual.attack[:, self.program.owner == place]
                found[each.adversary.name] = AdversaryDuals(float(dual.distortion[place]), each.whole(attack))
        start = 0
        for each in self.topped:
            stop = start + len(each.guesses) - 1
            if dual.top is not None:
                found[each.adversary.name] = _covered(each, dual.top[:, start:stop])
            start = stop
        for each in self.reduced_adversaries:
            if each.part == "none":
                attack = np.zeros((rows, len(each.guesses)))
                attack[:, 0] = 1.0
                found[each.adversary.name] = AdversaryDuals(0.0, each.whole(attack))
        return [found[each.adversary.name] for each in self.reduced_adversaries]

    def _left(
        self,
        against: list[AdversaryDuals],
        cost_dual: float,
        weights: FloatArray | None,
        limited: FloatArray | None,
    ) -> FloatArray:
        """What an entry costs, secret by secret, less what its part in the attacks' errors is worth."""
        prior = self.problem.prior.probabilities
        counts = prior if weights is None else weights / weights.sum()
        counts = cost_dual * counts + (0.0 if limited is None else limited)
        left = self.problem.cost[self.kept] * counts
        for guesser, each in zip(self.reduced_adversaries, against, strict=True):
            left = left - each.dual * (each.attack @ guesser.adversary.weighted)
        return np.asarray(left[:, self.secrets])

    def _cost_duals(self, limits: FloatArray) -> tuple[float, FloatArray | None, FloatArray | None]:
        """The dual value of the cost, how much each secret counts in its worst case, and those of limits for each."""
        bounds = self.bounds
        extra = (
            self.extra if bounds.maximises_distortion else np.zeros(len(self.secrets))
        )  # the cost is in the objective, too
        if bounds.worst_cost_at_most is not None:
            return (
                (float(limits[-1] + extra.sum()), None, limits[:-1])
                if bounds.maximises_distortion
                else (1.0, None, limits)
            )
        total = float(limits.sum() + extra.sum()) if bounds.maximises_distortion else 1.0
        if not bounds.worst_case:
            return total, None, None
        weights = np.zeros(self.shape[0])
        weights[self.secrets] = limits + extra
        return total, weights, None


def _covered(guesser: ReducedAdversary, dual: FloatArray) -> AdversaryDuals:
    """Where her error is the largest there is: a price of it that covers every other guess, and shares of it."""
    price = float(dual.sum(axis=1).max()) or 1.0
    shares = dual / price
    rest = np.maximum(1.0 - shares.sum(axis=1), 0.0)
    return AdversaryDuals(price, guesser.whole(np.insert(shares, guesser.best, rest, axis=1)))
