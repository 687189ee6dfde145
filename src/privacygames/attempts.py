"""One design: solvers tried one after the other, until a mechanism is certified within tolerance or time is over."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import inf
from time import monotonic

import numpy as np

from privacygames.arrays import freeze
from privacygames.baselines import cheapest as cheapest_answers
from privacygames.certificates import AdversaryDuals, DualSolution, RatioDuals, allowed_outputs
from privacygames.cost_limits import CLOSE, require_affordable, too_little_distortion
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

LOWERED = (1e6, 1e10)
"""Costs and errors above these multiples of what is at stake are lowered to them, in the first and second attempt."""

RAISED = (0.0, 1e-8, 1e-6)
"""By how much more distortion and less epsilon, relatively, is asked of a solver, attempt by attempt: where outputs are
allowed for some secrets and not for others, there may be no constant mechanism to mix in."""


@dataclass(frozen=True)
class _Attempt:
    """One way of solving: by which solver, with losses lowered to which multiple of the stake, and what margin."""

    solver: Solver
    most: float
    margin: float


class Design:
    """One design: the solver chosen and its fallbacks, one after the other, until the time for all of them is over.

    Args:
        problem: the problem.
        bounds: what the mechanism has to keep.
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
        """The best mechanism, certified; where the time is over first, the best so far."""
        floor = self.bounds.distortion[0].distortion if self.bounds.maximises_distortion else None
        if floor is None:
            return self._best(self.bounds, self.options)
        first, *others = self.bounds.distortion
        tight = replace(self.options, tolerance=min(self.options.tolerance, CLOSE))
        best = self._best(replace(self.bounds, distortion=(DistortionGuarantee(first.adversary, None), *others)), tight)
        if best.certificate.achieved < floor:
            raise too_little_distortion(first.adversary.name, floor, best, late=self._is_over())
        return certify(self.problem, self.bounds, best.weights, best.dual_solution, origin=_origin(best))

    def _best(self, bounds: Bounds, options: SolveOptions) -> Mechanism:
        best = self._solved(bounds, options, self._cheapest(bounds) if bounds.cost_limits else None)
        return (
            best if bounds.maximises_distortion or best.certificate.cost == 0 else self._free_constant(bounds) or best
        )

    def _free_constant(self, bounds: Bounds) -> Mechanism | None:
        """A constant output that costs nothing, if there is one that keeps the bounds: nothing is cheaper.

        Solvers end a little above 0, and there no gap is small: what revealing nothing costs, which gaps are relative
        to, is 0 as well.
        """
        if not np.isfinite(self.problem.cost).all(axis=1).any():
            return None
        try:
            constant = _constant(self.problem, bounds, None, origin="none: a constant output costs nothing")
        except GuaranteeViolated:
            return None
        return constant if constant.certificate.cost == 0 else None

    def _attempts(self, bounds: Bounds) -> list[_Attempt]:
        """What to try, in this order: each solver, with very large losses lowered first."""
        scaling = Scaling.of(self.problem, bounds)
        limits = [*(most for most in LOWERED if replace(scaling, loss_limit=most).lowers_losses), inf]
        allowed = allowed_outputs(self.problem.cost, self.problem.distinguishability, bounds)
        mixed = not (allowed == allowed[0]).all()
        margins = RAISED if mixed else RAISED[:1]
        first = self.solver or self._chosen(bounds)
        solvers = (first, *first.fallbacks)
        return [_Attempt(*each) for each in product(solvers, limits, margins)]

    def _chosen(self, bounds: Bounds) -> Solver:
        """The solver that suits a program as it is posed in the first attempt: in its units, with its margins."""
        scaling = Scaling.of(self.problem, _aimed(self.problem, bounds, 0.0))
        return choose(scaling.scaled_problem, scaling.scaled_bounds)

    def _solved(self, bounds: Bounds, options: SolveOptions, cheapest: Mechanism | None) -> Mechanism:
        """Solve and certify, by the solver chosen or by those it falls back on where rounding spoils its result."""
        certified: list[Mechanism] = []
        combined: list[Mechanism] = []
        trouble: PrivacyGamesError | None = None
        before = ""
        start = None if cheapest is None else cheapest.probabilities
        attempts = self._attempts(bounds)
        for number, attempt in enumerate(attempts):
            if number and self._is_over():  # the first attempt says itself when its time is over
                break
            given = replace(options, start=start, time_limit=self._left())
            if before and options.progress is not None:
                options.progress(Progress(job="design", done=0, message=f"another attempt: {before}"))
            name = _kind(attempt.solver)
            try:
                asked = _aimed(self.problem, bounds, attempt.margin)
                solution = solve_scaled(attempt.solver, self.problem, asked, options=given, loss_limit=attempt.most)
                if before:
                    solution = replace(solution, solver=f"{solution.solver}, after {before}")
                certified.append(self._certified(bounds, solution, cheapest))
            except (SolveFailed, InvalidProblem, GuaranteeViolated) as error:
                if error.status is Status.TIME_LIMIT:
                    break
                if attempt.solver is attempts[0].solver and isinstance(error, InvalidProblem):
                    raise
                trouble = trouble or error
                before = before or f"{name} failed ({error.status.name.lower().replace('_', ' ')})"
                continue
            if _gap(certified[-1]) <= options.tolerance or _is_enough(certified[-1], bounds, solution, options):
                return certified[-1]
            combined.extend(self._combined(bounds, certified, cheapest))
            if combined and _gap(combined[-1]) <= options.tolerance:
                return combined[-1]
            if solution.status is Status.TIME_LIMIT:
                break
            before = before or f"{name} left a gap of {_gap(certified[-1]):.1e}"
        if self._is_over():
            return min([*certified, *combined, _without_solving(self.problem, bounds, cheapest)], key=_gap)
        if not certified:
            self._require_allowed(bounds)
            raise SolveFailed(f"no solver found a mechanism: {trouble}", status=Status.NUMERICAL) from trouble
        return self._nearest([*certified, *combined], options.tolerance)

    def _nearest(self, candidates: Sequence[Mechanism], tolerance: float) -> Mechanism:
        """The candidate with the smallest gap, all being above the tolerance; an error unless that will do."""
        nearest = min(candidates, key=_gap)
        if self.best_effort:
            return nearest
        raise SolveFailed(
            f"the gap to the best possible is {_gap(nearest):.1e}, above the tolerance of {tolerance:.1e}: rescale "
            "distances or costs, keep a little away from the largest distortion or the least cost, or raise tolerance"
        )

    def _require_allowed(self, bounds: Bounds) -> None:
        """Raise Infeasible if every mechanism with these guarantees gives some secret an output it may never give.

        The proof is the bound on the least chance of that, for the secret for which it is the largest.
        """
        allowed = allowed_outputs(self.problem.cost, self.problem.distinguishability, bounds)
        guarantees = tuple(each for each in bounds.distortion if each.distortion is not None)
        if allowed.all() or not guarantees:
            return
        indicator = self.problem.with_losses(
            cost=freeze(np.where(allowed.T, 0.0, 1.0)),
            distance=self.problem.distance,
            observables=self.problem.observables,
        )
        alone = Bounds(epsilon=bounds.epsilon, within=bounds.within, distortion=guarantees, worst_case=True)
        least = Design(indicator, alone, self.solver, replace(self.options, time_limit=self._left())).mechanism()
        bound = least.certificate.bound
        if bound is not None and bound > 0:
            raise Infeasible(
                "no mechanism keeps these bounds without outputs that the cost forbids (is infinite for): some secret "
                f"would give one with a probability of {bound:.3g} or more; allow more outputs or ask for less",
                limit=bound,
            )

    def _certified(self, bounds: Bounds, solution: Solution, cheapest: Mechanism | None) -> Mechanism:
        return certify(
            self.problem,
            bounds,
            solution.probabilities,
            solution.dual_solution,
            origin=solution.solver,
            cheapest=cheapest,
        )

    def _combined(self, bounds: Bounds, certified: Sequence[Mechanism], cheapest: Mechanism | None) -> list[Mechanism]:
        """The last attempt's mechanism with what an earlier one proves, or the other way round: the best, if any."""
        last = certified[-1]
        pairs = [pair for earlier in certified[:-1] for pair in ((last, earlier), (earlier, last))]
        combinations = [
            certify(
                self.problem,
                bounds,
                mechanism.weights,
                other.dual_solution,
                origin=f"{_origin(mechanism)}; its bound: {_origin(other)}",
                cheapest=cheapest,
            )
            for mechanism, other in pairs
        ]
        return [min(combinations, key=_gap)] if combinations else []

    def _left(self) -> float | None:
        return None if self.deadline is None else max(self.deadline - monotonic(), 1e-3)

    def _is_over(self) -> bool:
        return self.deadline is not None and monotonic() >= self.deadline

    def _cheapest(self, bounds: Bounds) -> Mechanism:
        """A cheap mechanism with what else is asked for; it shows whether limits on the cost can be met at all.

        It is the cheapest, unless one is found before that is well inside a single limit. Where both the average and
        every secret's cost are limited it is inside both limits, if anything is.
        """
        rest = _unlimited(bounds)
        tight = replace(self.options, tolerance=min(self.options.tolerance, CLOSE))
        free = rest is None
        if rest is None:
            cheapest = cheapest_answers(self.problem)
        elif rest.cost_limits:
            inner = self._cheapest(rest)
            cheapest = self._solved(rest, tight, inner)
        else:
            enough = bounds.cost_limits[0][1] if len(bounds.cost_limits) == 1 else None
            cheapest = self._solved(rest, replace(tight, enough=enough), None)
        for worst_case, limit in bounds.cost_limits:
            each = worst_case and bounds.worst_cost_at_most is not None
            require_affordable(
                self.problem, cheapest, limit, worst_case=worst_case, each=each, exact=free, late=self._is_over()
            )
        if rest is not None and rest.cost_limits:
            return _inside(
                self.problem, replace(rest, worst_cost_at_most=None), cheapest, inner, bounds.cost_at_most or 0.0
            )
        return cheapest


def _unlimited(bounds: Bounds) -> Bounds | None:
    """What is left to ask when a limit on the cost is minimised instead; None where that is nothing."""
    distortion = bounds.distortion[1:] if bounds.maximises_distortion else bounds.distortion
    if bounds.epsilon is None and not distortion:
        return None
    if bounds.maximises_distortion:
        return replace(bounds, distortion=distortion, cost_at_most=None)
    return replace(bounds, worst_case=True, worst_cost_at_most=None)


def _inside(problem: Problem, bounds: Bounds, cheap: Mechanism, fair: Mechanism, limit: float) -> Mechanism:
    """A mixture of what is cheap on average and what is for every secret: it leaves half the room to the limit."""
    least, most = cheap.certificate.verification.expected_cost, fair.certificate.verification.expected_cost
    share = 0.5 if most <= max(limit, least) else 0.5 * max(limit - least, 0.0) / (most - least)
    mixed = (1 - share) * cheap.probabilities + share * fair.probabilities
    return certify(problem, bounds, mixed, origin="between the cheapest mechanisms")


def _is_enough(certified: Mechanism, bounds: Bounds, solution: Solution, options: SolveOptions) -> bool:
    """Whether a solver stopped at a mechanism because one that costs no more than this was all that was asked for."""
    if options.enough is None or solution.status is not Status.OPTIMAL:
        return False
    return certified.certificate.verification.cost(worst_case=bounds.worst_case) < options.enough


def _kind(solver: Solver) -> str:
    return type(solver).__name__


def _origin(mechanism: Mechanism) -> str:
    return mechanism.certificate.provenance.solver


def _gap(mechanism: Mechanism) -> float:
    return inf if mechanism.certificate.gap is None else mechanism.certificate.gap


def _aimed(problem: Problem, bounds: Bounds, margin: float) -> Bounds:
    """The bounds with distortions some last digits higher, so that rounding down does not fall below them.

    Args:
        problem: the problem.
        bounds: what the mechanism has to keep.
        margin: by how much more, relatively, distortions are raised, and epsilon is lowered.
    """
    return bounds.tightened(epsilon=margin, distortion=2 * distortion_rounding(problem) + margin)


def _without_solving(problem: Problem, bounds: Bounds, cheapest: Mechanism | None) -> Mechanism:
    """A valid mechanism that takes no time: the best constant answer, or the cheapest one where the cost is limited."""
    try:
        return _constant(problem, bounds, cheapest, origin="none: stopped by the time limit before it had an answer")
    except InvalidProblem as error:
        raise SolveFailed("the time was over before there was a mechanism", status=Status.TIME_LIMIT) from error


def _constant(problem: Problem, bounds: Bounds, instead: Mechanism | None, *, origin: str) -> Mechanism:
    """The cheapest constant output, certified with dual values that prove no more than that costs are 0 or more.

    Args:
        problem: the problem.
        bounds: what the mechanism has to keep.
        instead: a mechanism to certify instead.
        origin: what to call the solver.
    """
    answer = np.zeros(problem.shape)
    answer[:, cheapest_constant(problem, worst_case=bounds.worst_case)] = 1.0
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
    table = answer if instead is None else instead.weights
    return certify(problem, bounds, table, duals, origin=origin)
