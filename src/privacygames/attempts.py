"""A design: solvers are tried in turn until a mechanism is certified within tolerance or the time limit is reached."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from time import monotonic

import numpy as np

from privacygames.arrays import freeze
from privacygames.certificates import AdversaryDuals, DualSolution, RatioDuals, allowed_outputs
from privacygames.cost_limits import COST_TOLERANCE, insufficient_distortion_error, require_affordable
from privacygames.errors import (
    GuaranteeViolated,
    Infeasible,
    InvalidProblem,
    PrivacyGamesError,
    SolveFailed,
    Status,
)
from privacygames.mechanism import Mechanism, certify
from privacygames.problem import Bounds, DistortionGuarantee, Problem, cheapest_constant, distortion_rounding
from privacygames.progress import Progress
from privacygames.solvers import Scaling, Solution, SolveOptions, Solver, choose, solve_scaled

LOSS_LIMITS = (1e6, 1e10)
"""Limits on costs and errors in the first and second attempt, as multiples of the stake: larger ones are lowered."""

MARGINS = (0.0, 1e-8, 1e-6)
"""Relative margins, attempt by attempt, by which distortion is raised and epsilon lowered for the solver: where outputs
are allowed for some secrets only, the repair may have no constant mechanism to mix in."""


@dataclass(frozen=True)
class _Attempt:
    """The settings of one attempt: the solver, and the units and bounds that it is given."""

    solver: Solver
    scaling: Scaling


class Design:
    """One design: the chosen solver and its fallbacks in turn, under a common time limit.

    Args:
        problem: the problem.
        bounds: the bounds of the design.
        solver: the solver to try first; None chooses one for each program that has to be solved.
        options: tolerance, time limit and so on.
        best_effort: return the certified mechanism with the smallest gap where no attempt gets within tolerance,
            instead of raising ``SolveFailed``.
    """

    def __init__(
        self,
        problem: Problem,
        bounds: Bounds,
        solver: Solver | None,
        options: SolveOptions,
        *,
        best_effort: bool = False,
    ) -> None:
        self.problem, self.bounds, self.solver, self.options = problem, bounds, solver, options
        self.best_effort = best_effort
        self.deadline = None if options.time_limit is None else monotonic() + options.time_limit

    def mechanism(self) -> Mechanism:
        """Return the best mechanism, certified; at the time limit, the best so far."""
        required = self.bounds.distortion[0].distortion if self.bounds.maximises_distortion else None
        if required is None:
            return self._solve_best(self.bounds, self.options)
        first, *others = self.bounds.distortion
        tight = replace(self.options, tolerance=min(self.options.tolerance, COST_TOLERANCE))
        best = self._solve_best(
            replace(self.bounds, distortion=(DistortionGuarantee(first.adversary, None), *others)), tight
        )
        if best.certificate.achieved < required:
            raise insufficient_distortion_error(first.adversary.name, required, best, timed_out=self._is_timed_out())
        return certify(self.problem, self.bounds, best.weights, best.dual_solution, origin=_solver_of(best))

    def _solve_best(self, bounds: Bounds, options: SolveOptions) -> Mechanism:
        best = self._solve(bounds, options, self._find_cheapest(bounds) if bounds.cost_limits else None)
        return (
            best if bounds.maximises_distortion or best.certificate.cost == 0 else self._free_constant(bounds) or best
        )

    def _free_constant(self, bounds: Bounds) -> Mechanism | None:
        """A constant output of cost 0 that satisfies the bounds, if there is one: it is optimal.

        Solvers end slightly above 0, where no relative gap is small: the cost of revealing nothing, which gaps are
        relative to, is 0 as well.
        """
        if not np.isfinite(self.problem.cost).all(axis=1).any():
            return None
        losses = self.problem.cost[cheapest_constant(self.problem, worst_case=bounds.worst_case)]
        if (losses if bounds.worst_case else losses * self.problem.prior.probabilities).any():
            return None  # without the time that a certificate takes
        try:
            constant = _constant(self.problem, bounds, None, origin="none: a constant output costs nothing")
        except GuaranteeViolated:
            return None
        return constant if constant.certificate.cost == 0 else None

    def _attempts(self, bounds: Bounds) -> list[_Attempt]:
        """The attempts in order: for each solver, those with very large losses lowered come first."""
        units = Scaling.of(self.problem, bounds)  # for all attempts: it is the same with margins
        limits = [*(limit for limit in LOSS_LIMITS if replace(units, loss_limit=limit).lowers_losses), inf]
        allowed = allowed_outputs(self.problem.cost, self.problem.distinguishability, bounds)
        allowed_differ = not (allowed == allowed[0]).all()
        margins = MARGINS if allowed_differ else MARGINS[:1]
        scalings = [
            replace(units, bounds=_tighten_bounds(self.problem, bounds, margin), loss_limit=limit)
            for limit, margin in product(limits, margins)
        ]
        first = self.solver
        if first is None:
            unlimited = replace(scalings[0], loss_limit=inf)
            first = choose(unlimited.scaled_problem, unlimited.scaled_bounds)
        return [_Attempt(*settings) for settings in product((first, *first.fallbacks), scalings)]

    def _solve(self, bounds: Bounds, options: SolveOptions, cheapest: Mechanism | None) -> Mechanism:
        """Solve and certify, with the chosen solver or, where rounding spoils its result, with its fallbacks."""
        certified: list[Mechanism] = []
        combined: list[Mechanism] = []
        first_error: PrivacyGamesError | None = None
        first_failure = ""
        start = None if cheapest is None else cheapest.probabilities
        attempts = self._attempts(bounds)
        for number, attempt in enumerate(attempts):
            if number and self._is_timed_out():  # the first attempt handles its own time limit
                break
            attempt_options = replace(options, start=start, time_limit=self._remaining_time())
            if first_failure and options.progress is not None:
                options.progress(Progress(job="design", done=0, message=f"another attempt: {first_failure}"))
            name = _solver_name(attempt.solver)
            try:
                solution = solve_scaled(attempt.solver, attempt.scaling, options=attempt_options)
                if first_failure:
                    solution = replace(solution, solver=f"{solution.solver}, after {first_failure}")
                certified.append(self._certify(bounds, solution, cheapest))
            except (SolveFailed, InvalidProblem, GuaranteeViolated) as error:
                if error.status is Status.TIME_LIMIT:
                    break
                if attempt.solver is attempts[0].solver and isinstance(error, InvalidProblem):
                    raise
                first_error = first_error or error
                first_failure = first_failure or f"{name} failed ({error.status.name.lower().replace('_', ' ')})"
                continue
            if _gap(certified[-1]) <= options.tolerance or _is_enough(certified[-1], bounds, solution, options):
                return certified[-1]
            combined.extend(self._combine(bounds, certified, cheapest))
            if combined and _gap(combined[-1]) <= options.tolerance:
                return combined[-1]
            if solution.status is Status.TIME_LIMIT:
                break
            first_failure = first_failure or f"{name} left a gap of {_gap(certified[-1]):.1e}"
        if self._is_timed_out():
            return min([*certified, *combined, _unsolved_mechanism(self.problem, bounds, cheapest)], key=_gap)
        if not certified:
            self._require_allowed(bounds)
            raise SolveFailed(f"no solver found a mechanism: {first_error}", status=Status.NUMERICAL) from first_error
        return self._smallest_gap([*certified, *combined], options.tolerance)

    def _smallest_gap(self, candidates: Sequence[Mechanism], tolerance: float) -> Mechanism:
        """The candidate with the smallest gap, which is above the tolerance; an error unless ``best_effort`` is set."""
        best = min(candidates, key=_gap)
        if self.best_effort:
            return best
        raise SolveFailed(
            f"the gap to the best possible is {_gap(best):.1e}, above the tolerance of {tolerance:.1e}: rescale "
            "distances or costs, keep a little away from the largest distortion or the least cost, or raise tolerance"
        )

    def _require_allowed(self, bounds: Bounds) -> None:
        """Raise Infeasible if every mechanism with these guarantees gives some secret a forbidden output.

        The proof is a positive lower bound on the probability of a forbidden output, for the worst secret.
        """
        allowed = allowed_outputs(self.problem.cost, self.problem.distinguishability, bounds)
        guarantees = tuple(guarantee for guarantee in bounds.distortion if guarantee.distortion is not None)
        if allowed.all() or not guarantees:
            return
        indicator = self.problem.with_losses(
            cost=freeze(np.where(allowed.T, 0.0, 1.0)),
            distance=self.problem.distance,
            observables=self.problem.observables,
        )
        privacy_bounds = Bounds(epsilon=bounds.epsilon, within=bounds.within, distortion=guarantees, worst_case=True)
        refutation = Design(
            indicator, privacy_bounds, self.solver, replace(self.options, time_limit=self._remaining_time())
        ).mechanism()
        bound = refutation.certificate.bound
        if bound is not None and bound > 0:
            raise Infeasible(
                "no mechanism satisfies these bounds without outputs that the cost forbids (is infinite for): some "
                f"secret would give one with a probability of {bound:.3g} or more; allow more outputs "
                "or relax the bounds",
                limit=bound,
            )

    def _certify(self, bounds: Bounds, solution: Solution, cheapest: Mechanism | None) -> Mechanism:
        return certify(
            self.problem,
            bounds,
            solution.probabilities,
            solution.dual_solution,
            origin=solution.solver,
            cheapest=cheapest,
        )

    def _combine(self, bounds: Bounds, certified: Sequence[Mechanism], cheapest: Mechanism | None) -> list[Mechanism]:
        """The last mechanism with the dual values of an earlier one, or conversely: the pair with the smallest gap."""
        last = certified[-1]
        pairs = [pair for earlier in certified[:-1] for pair in ((last, earlier), (earlier, last))]
        combinations = [
            certify(
                self.problem,
                bounds,
                mechanism.weights,
                other.dual_solution,
                origin=f"{_solver_of(mechanism)}; its bound: {_solver_of(other)}",
                cheapest=cheapest,
            )
            for mechanism, other in pairs
        ]
        return [min(combinations, key=_gap)] if combinations else []

    def _remaining_time(self) -> float | None:
        return None if self.deadline is None else max(self.deadline - monotonic(), 1e-3)

    def _is_timed_out(self) -> bool:
        return self.deadline is not None and monotonic() >= self.deadline

    def _find_cheapest(self, bounds: Bounds) -> Mechanism:
        """A cheap mechanism with the other guarantees, which decides whether the limits on the cost are feasible.

        It is the cheapest one, or one well below the limit where there is a single limit. Where both the average and
        every secret's cost are limited, it satisfies both, if they are feasible.
        """
        others = _without_cost_limits(bounds)
        tight = replace(self.options, tolerance=min(self.options.tolerance, COST_TOLERANCE))
        unconstrained = others is None
        if others is None:
            from privacygames.baselines import cheapest as cheapest_unconstrained

            cheapest = cheapest_unconstrained(self.problem)
        elif others.cost_limits:
            inner = self._find_cheapest(others)
            cheapest = self._solve(others, tight, inner)
        else:
            enough = bounds.cost_limits[0][1] if len(bounds.cost_limits) == 1 else None
            cheapest = self._solve(others, replace(tight, enough=enough), None)
        for worst_case, limit in bounds.cost_limits:
            every_secret = worst_case and bounds.worst_cost_at_most is not None
            require_affordable(
                self.problem,
                cheapest,
                limit,
                worst_case=worst_case,
                every_secret=every_secret,
                exact=unconstrained,
                timed_out=self._is_timed_out(),
            )
        if others is not None and others.cost_limits:
            return _mix_within_limit(
                self.problem, replace(others, worst_cost_at_most=None), cheapest, inner, bounds.cost_at_most or 0.0
            )
        return cheapest


def _without_cost_limits(bounds: Bounds) -> Bounds | None:
    """The other bounds, with the limited cost to be minimised instead; None where there are none."""
    distortion = bounds.distortion[1:] if bounds.maximises_distortion else bounds.distortion
    if bounds.epsilon is None and not distortion:
        return None
    if bounds.maximises_distortion:
        return replace(bounds, distortion=distortion, cost_at_most=None)
    return replace(bounds, worst_case=True, worst_cost_at_most=None)


def _mix_within_limit(
    problem: Problem, bounds: Bounds, cheap: Mechanism, cheap_for_all: Mechanism, limit: float
) -> Mechanism:
    """A mixture of the mechanisms cheap on average and for every secret, halfway to the limit on the average."""
    lower = cheap.certificate.verification.expected_cost
    upper = cheap_for_all.certificate.verification.expected_cost
    share = 0.5 if upper <= max(limit, lower) else 0.5 * max(limit - lower, 0.0) / (upper - lower)
    mixed = (1 - share) * cheap.probabilities + share * cheap_for_all.probabilities
    return certify(problem, bounds, mixed, origin="between the cheapest mechanisms")


def _is_enough(certified: Mechanism, bounds: Bounds, solution: Solution, options: SolveOptions) -> bool:
    """Whether the solver stopped because the mechanism costs less than ``options.enough``."""
    if options.enough is None or solution.status is not Status.OPTIMAL:
        return False
    return certified.certificate.verification.cost(worst_case=bounds.worst_case) < options.enough


def _solver_name(solver: Solver) -> str:
    return type(solver).__name__


def _solver_of(mechanism: Mechanism) -> str:
    return mechanism.certificate.provenance.solver


def _gap(mechanism: Mechanism) -> float:
    return inf if mechanism.certificate.gap is None else mechanism.certificate.gap


def _tighten_bounds(problem: Problem, bounds: Bounds, margin: float) -> Bounds:
    """The bounds with slightly higher distortions, so that rounding down does not fall below the required ones.

    Args:
        problem: the problem.
        bounds: the bounds of the design.
        margin: relative amount by which distortions are raised further and epsilon is lowered.
    """
    return bounds.tightened(epsilon=margin, distortion=2 * distortion_rounding(problem) + margin)


def _unsolved_mechanism(problem: Problem, bounds: Bounds, cheapest: Mechanism | None) -> Mechanism:
    """A valid mechanism without a solve: the best constant output, or the cheapest mechanism under cost limits."""
    try:
        return _constant(
            problem, bounds, cheapest, origin="none: stopped by the time limit before a solution was found"
        )
    except InvalidProblem as error:
        raise SolveFailed(
            "the time limit was reached before there was a mechanism", status=Status.TIME_LIMIT
        ) from error


def _constant(problem: Problem, bounds: Bounds, replacement: Mechanism | None, *, origin: str) -> Mechanism:
    """The cheapest constant output, certified with dual values that prove a lower bound of 0 on the cost.

    Args:
        problem: the problem.
        bounds: the bounds of the design.
        replacement: a mechanism to certify in its place.
        origin: the name of the solver.
    """
    constant = np.zeros(problem.shape)
    constant[:, cheapest_constant(problem, worst_case=bounds.worst_case)] = 1.0
    secrets, observables = problem.shape
    duals = DualSolution(
        ratios=RatioDuals.none(),
        output_rows=np.arange(observables),
        adversaries=tuple(
            AdversaryDuals(0.0, np.ones((observables, len(adversary.errors))))
            for adversary in bounds.adversaries(problem)
        ),
        secret_weights=np.ones(secrets),
    )
    table = constant if replacement is None else replacement.weights
    return certify(problem, bounds, table, duals, origin=origin)
