"""``Presolve``: from a problem and bounds to a smaller program with the same optimum, and postsolve."""

from dataclasses import replace

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.certificates import AdversaryDuals, DualSolution, RatioDuals
from privacygames.errors import InvalidProblem
from privacygames.problem import Bounds, Problem
from privacygames.programs import tie_break
from privacygames.solvers.interior.presolve.reduced_adversary import ReducedAdversary
from privacygames.solvers.interior.presolve.reduced_problem import ReducedProblem
from privacygames.solvers.interior.presolve.zero_prior import can_be_deferred
from privacygames.solvers.interior.program import BlockProgram, DualPoint, Limit
from privacygames.solvers.interior.settings import InteriorSettings
from privacygames.threads import map_in_threads

PIECE = 1 << 20
"""Dual values that one thread looks at: some megabytes, which fit the processor's cache."""


class Presolve:
    """The reductions of a problem, its program, and the postsolve of solutions.

    Args:
        problem: the problem.
        bounds: the bounds of the design.
        merge_dominated: leave out observables and guesses that others dominate.
        drop_implied: leave out ratio bounds that others imply.
        defer_zero_prior: leave out secrets without prior until they constrain the others.
        merge_exponent: merge secrets whose exponent is at most this; 0 merges only secrets with equal rows.
        start: where the cost is limited, a mechanism that satisfies the ratio bounds and costs less.
        settings: tolerances of the reductions.
        threads: number of threads that will work on it, for the estimate.
        device: where the program is going to be solved, for the estimate.

    Raises:
        TooLarge: the program would not fit into memory.
    """

    def __init__(
        self,
        problem: Problem,
        bounds: Bounds,
        *,
        merge_dominated: bool,
        drop_implied: bool,
        defer_zero_prior: bool,
        merge_exponent: float,
        start: FloatArray | None,
        settings: InteriorSettings,
        threads: int | None = None,
        device: str = "host",
    ) -> None:
        self._problem, self._bounds, self._settings = problem, bounds, settings
        prior = problem.prior.probabilities
        reduced = ReducedProblem.of(
            problem,
            bounds,
            merge_dominated=merge_dominated,
            merge_exponent=merge_exponent,
            settings=settings,
        )
        self.estimate = reduced.estimate(threads, device)
        self.estimate.require()
        self._reduced, self._observables, self._secrets = reduced, reduced.observables, reduced.secrets
        self._classes = classes = reduced.classes
        self._ratio_count = int(np.isfinite(reduced.exponents).sum())
        weight = prior[self._secrets]
        deferrable = classes.sum_members(reduced.total_prior[self._secrets]) == 0
        deferrable &= not reduced.every_cost_counts and defer_zero_prior
        if not can_be_deferred(classes.class_exponents, deferrable):
            deferrable[:] = False
        self._cost_scale = float((problem.cost * prior).max()) or 1.0
        cost = problem.cost[np.ix_(self._observables, self._secrets)]
        expected_cost = classes.sum_members(cost * weight)
        objective = np.zeros_like(expected_cost) if bounds.worst_case else expected_cost
        self._tie_break = np.zeros(len(self._secrets))
        if bounds.maximises_distortion:
            objective = tie_break(problem, bounds) * expected_cost
            self._tie_break = tie_break(problem, bounds) * weight
        # Adversaries with an x of their own, the one whose error is maximised last; and those at the largest error.
        active = reduced.active_adversaries
        with_x = (adversary for adversary in active if adversary.role != "at_maximum")
        self._adversaries_with_x = sorted(with_x, key=lambda adversary: adversary.maximised)
        self._adversaries_at_maximum = [adversary for adversary in active if adversary.role == "at_maximum"]
        errors = [
            classes.sum_members(adversary.weighted_errors(self._secrets)) for adversary in self._adversaries_with_x
        ]
        distortion = [
            adversary.adversary.distortion for adversary in self._adversaries_with_x if not adversary.maximised
        ]
        both_limits = bounds.maximises_distortion and bounds.worst_cost_at_most is not None
        limit: Limit = "average" if bounds.maximises_distortion else "none"
        if reduced.every_cost_counts:
            limit = "each"
        self.program = BlockProgram(
            objective=objective,
            exponents=classes.class_exponents,
            deferrable=deferrable,
            drop_implied=drop_implied,
            errors=np.concatenate(errors) if errors else None,
            owner=np.repeat(np.arange(len(errors)), [len(guesses) for guesses in errors]),
            distortion=np.array(distortion, dtype=np.float64),
            max_distortion_rows=self._max_distortion_rows(),
            maximises_distortion=bounds.maximises_distortion,
            limited_cost=cost if reduced.every_cost_counts else expected_cost,
            cost_secret=classes.class_of,
            limit=limit,
            cost_at_most=bounds.cost_at_most if bounds.worst_cost_at_most is None else bounds.worst_cost_at_most,
            average_weights=weight if both_limits else None,
            average_at_most=bounds.cost_at_most or 0.0,
            start=self._interior_start(start, cost, weight) if bounds.cost_limits else None,
        )

    def _max_distortion_rows(self) -> FloatArray | None:
        """The errors of other guesses in excess of the best blind guess's, where that has to stay the best."""
        rows = []
        for adversary in self._adversaries_at_maximum:
            errors, best = (
                self._classes.sum_members(adversary.weighted_errors(self._secrets)),
                adversary.best_blind_guess,
            )
            rows.append(np.delete(errors - errors[best], best, axis=0))
        return np.concatenate(rows) if rows else None

    def _interior_start(self, start: FloatArray | None, cost: FloatArray, weight: FloatArray) -> FloatArray:
        """A cheap mechanism mixed with the uniform one, so that a part of its room below the limits remains."""
        uniform = np.full(cost.shape, 1.0 / len(cost))
        if start is None:
            raise InvalidProblem("a limit on the cost needs a mechanism within it to start from")
        cheap = np.zeros(cost.shape)  # the probability of a dominated observable goes to the one that dominates it
        np.add.at(cheap, np.searchsorted(self._observables, self._reduced.dominating), start.T[:, self._secrets])
        fraction = 1.0
        for worst_case, limit in self._bounds.cost_limits:

            def cost_of(columns: FloatArray, *, worst_case: bool = worst_case) -> float:
                by_secret = (cost * columns).sum(axis=0)
                return float(by_secret.max() if worst_case else by_secret @ weight)

            least, most = cost_of(cheap), cost_of(uniform)
            if most > max(limit, least):
                fraction = min(fraction, self._settings.start_limit_room * (limit - least) / (most - least))
        mixed = (1 - fraction) * cheap + fraction * uniform
        return self._classes.sum_members(mixed) / np.bincount(self._classes.class_of)

    def describe(self, secrets: int, ratios: int) -> str:
        """The size of the program that was solved, beside that of the whole one."""
        n, m = self._problem.shape
        observables = len(self._observables)
        return f"{observables} of {m} observables, {secrets} of {n} secrets, {ratios} of {self._ratio_count} ratios"

    def expand(self, columns: FloatArray) -> FloatArray:
        """The mechanism for the whole problem, (secrets, observables), from the program's columns."""
        n, m = self._problem.shape
        rows = np.zeros(n, dtype=np.int64)
        rows[self._secrets] = np.arange(len(self._secrets))
        full = np.zeros((n, m))
        full[:, self._observables] = columns.T[self._classes.class_of][rows]
        return full

    def dual_solution(self, dual: DualPoint, columns: FloatArray) -> DualSolution:
        """The dual values for the whole problem.

        Dominated observables take the dual values of the observable that dominates them.
        """
        adversaries = self._adversary_duals(dual)
        ratios = _larger_than(dual, self._settings.min_ratio_dual * self._cost_scale)
        dual_source: IntArray = np.searchsorted(self._observables, self._reduced.dominating)
        cost_dual, secret_weights, limit_weights = self._cost_duals(dual.limits)
        if not self._classes.trivial:
            reduced_cost = self._reduced_cost(adversaries, cost_dual, secret_weights, limit_weights)
            ratios = self._classes.separate_duals(ratios, reduced_cost, columns)
        secrets = self._secrets.astype(np.int32)
        ratios = replace(ratios, secret=secrets[ratios.secret], other=secrets[ratios.other])
        return DualSolution(
            ratios=ratios,
            output_rows=dual_source,
            adversaries=tuple(adversaries),
            cost_dual=cost_dual,
            secret_weights=secret_weights,
            worst_cost_duals=limit_weights,
        )

    def _adversary_duals(self, dual: DualPoint) -> list[AdversaryDuals]:
        """For each adversary, the dual value of their guarantee and an attack on all of their guesses, in order."""
        observables = len(self._observables)
        duals = {}
        for place, adversary in enumerate(self._adversaries_with_x):
            if dual.attack is not None:
                attack = adversary.expand_attack(dual.attack[:, self.program.owner == place])
                duals[adversary.adversary.name] = AdversaryDuals(float(dual.distortion[place]), attack)
        start = 0
        for adversary in self._adversaries_at_maximum:
            stop = start + len(adversary.guesses) - 1
            if dual.max_distortion is not None:
                duals[adversary.adversary.name] = _maximum_distortion_duals(
                    adversary, dual.max_distortion[:, start:stop]
                )
            start = stop
        for adversary in self._reduced.adversaries:
            if adversary.role == "none":
                attack = np.zeros((observables, len(adversary.guesses)))
                attack[:, 0] = 1.0
                duals[adversary.adversary.name] = AdversaryDuals(0.0, adversary.expand_attack(attack))
        return [duals[adversary.adversary.name] for adversary in self._reduced.adversaries]

    def _reduced_cost(
        self,
        adversaries: list[AdversaryDuals],
        cost_dual: float,
        secret_weights: FloatArray | None,
        limit_weights: FloatArray | None,
    ) -> FloatArray:
        """The cost of each entry, secret by secret, less its contribution to the attacks' errors."""
        prior = self._problem.prior.probabilities
        weights = prior if secret_weights is None else secret_weights / secret_weights.sum()
        weights = cost_dual * weights + (0.0 if limit_weights is None else limit_weights)
        reduced = self._problem.cost[self._observables] * weights
        for adversary, duals in zip(self._reduced.adversaries, adversaries, strict=True):
            reduced = reduced - duals.dual * (duals.attack @ adversary.adversary.joint_errors)
        return np.asarray(reduced[:, self._secrets])

    def _cost_duals(self, limits: FloatArray) -> tuple[float, FloatArray | None, FloatArray | None]:
        """The dual value of the cost, each secret's weight in its worst case, and the duals of each secret's limit."""
        bounds = self._bounds
        if bounds.worst_cost_at_most is not None:
            if bounds.maximises_distortion:
                return float(limits[-1] + self._tie_break.sum()), None, limits[:-1]
            return 1.0, None, limits
        # Where distortion is maximised, the cost is in the objective, too, to break ties.
        total = float(limits.sum() + self._tie_break.sum()) if bounds.maximises_distortion else 1.0
        if not bounds.worst_case:
            return total, None, None
        weights = np.zeros(self._problem.shape[0])
        weights[self._secrets] = limits + self._tie_break
        return total, weights, None


def _larger_than(dual: DualPoint, least: float) -> RatioDuals:
    """The dual values of ratios that are larger than the least that matters."""
    count = len(dual.ratio)

    def of_piece(piece: int) -> RatioDuals:
        own = slice(piece * PIECE, (piece + 1) * PIECE)
        matters = np.flatnonzero(dual.ratio[own] > least)
        observable, secret, other = (
            indices[own][matters].astype(np.int32) for indices in (dual.observable, dual.secret, dual.other)
        )
        return RatioDuals(observable, secret, other, dual.ratio[own][matters])

    pieces = map_in_threads(of_piece, -(-count // PIECE), 4 * count) or [RatioDuals.none()]
    return RatioDuals(
        np.concatenate([ratios.observable for ratios in pieces]),
        np.concatenate([ratios.secret for ratios in pieces]),
        np.concatenate([ratios.other for ratios in pieces]),
        np.concatenate([ratios.value for ratios in pieces]),
    )


def _maximum_distortion_duals(adversary: ReducedAdversary, dual: FloatArray) -> AdversaryDuals:
    """For the largest possible error: a dual value that covers every other guess, and their shares as an attack."""
    distortion_dual = float(dual.sum(axis=1).max()) or 1.0
    shares = dual / distortion_dual
    rest = np.maximum(1.0 - shares.sum(axis=1), 0.0)
    attack = np.insert(shares, adversary.best_blind_guess, rest, axis=1)
    return AdversaryDuals(distortion_dual, adversary.expand_attack(attack))
