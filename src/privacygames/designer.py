"""The designer: from a problem and bounds to the cheapest mechanism that keeps them, certified."""

import warnings
from dataclasses import replace
from math import inf
from time import monotonic
from typing import Literal

import numpy as np

from privacygames.arguments import of_kind
from privacygames.baselines import cheapest as cheapest_answers
from privacygames.certificates import Multipliers, RatioMultipliers
from privacygames.errors import (
    BrokenPromise,
    Infeasible,
    InvalidProblem,
    PrivacyGamesError,
    SolveFailed,
    Status,
    UselessAnswers,
)
from privacygames.events import Progress, Watcher
from privacygames.mechanism import Mechanism, certify
from privacygames.problem import Bounds, Problem, max_distortion, rounding
from privacygames.solvers import Solution, SolveOptions, Solver, choose

ROOM = 1e-9
"""How far above the least cost a limit should be, relatively, to leave the repair something to work with."""

CLOSE = 1e-6
"""How closely the least cost is found before a limit below it is called impossible."""


def design(
    problem: Problem,
    *,
    epsilon: float | None = None,
    distortion: float | None = None,
    within: float | None = None,
    worst_case: bool = False,
    cost_at_most: float | None = None,
    solver: Literal["auto"] | Solver = "auto",
    time_limit: float | None = None,
    tolerance: float = 1e-6,
    progress: Watcher | None = None,
) -> Mechanism:
    """The mechanism that costs least among all that keep the bounds, with a certificate.

    Args:
        problem: secrets, prior, cost and distances.
        epsilon: differential privacy: p(o|s) ≤ exp(epsilon·d^ε(s,s')) p(o|s') for all s, s', o.
        distortion: distortion privacy: even the best attack errs by at least this much on average.
        within: use the threshold form of differential privacy instead: exp(epsilon) between secrets at most
            this far apart.
        worst_case: minimise (or limit) the cost of the worst secret rather than the average.
        cost_at_most: turned round: the most distortion privacy for at most this cost.
        solver: ``"auto"`` chooses; or ``Interior()``, ``Highs()``, or one of your own (docs/how-to/own-solver.md).
        time_limit: seconds after which to stop, all solvers and attempts together. What is returned then is the best
            mechanism so far: it keeps every promise, and its certificate states the gap, which may be above tolerance.
        tolerance: the largest relative gap to the best possible that is accepted.
        progress: called with a :class:`privacygames.Progress` now and then; raise ``Cancelled`` in it to stop.

    Raises:
        InvalidProblem: something given does not fit.
        Infeasible: no mechanism keeps these bounds; says what the limit is.
        SolveFailed: no solver got within tolerance; or, with ``cost_at_most`` and ``time_limit``, no mechanism that
            costs so little was found in time.
        Cancelled: the progress function said so.

    Warns:
        UselessAnswers: the best mechanism answers everybody alike.
    """
    bounds = Bounds(
        epsilon=epsilon,
        within=within,
        distortion=distortion,
        cost_at_most=cost_at_most,
        worst_case=worst_case,
    )
    options = SolveOptions(tolerance=tolerance, time_limit=time_limit, progress=progress)
    mechanism = designed(problem, bounds, solver=solver, options=options)
    if mechanism.certificate.usefulness.constant and len(problem.space) > 1:
        warnings.warn(
            "the answers of this mechanism do not depend on the secret at all: it keeps its promises and tells nobody "
            "anything. What helps: a larger epsilon, worst_case=True, or a cost that values rare secrets",
            UselessAnswers,
            stacklevel=2,
        )
    return mechanism


def designed(
    problem: Problem,
    bounds: Bounds,
    *,
    solver: Literal["auto"] | Solver = "auto",
    options: SolveOptions | None = None,
) -> Mechanism:
    """What :func:`design` does, for bounds that are put together already, and without remarks on the result."""
    of_kind(problem, Problem, "the problem")
    chosen = choose(problem, bounds) if isinstance(solver, str) and solver == "auto" else solver
    if not isinstance(chosen, Solver):
        raise InvalidProblem('solver must be "auto" or a solver: Interior(), Highs(), or one of your own')
    _require_possible(problem, bounds)
    return _Design(problem, bounds, chosen, options or SolveOptions()).mechanism()


def _require_possible(problem: Problem, bounds: Bounds) -> None:
    most = max_distortion(problem)
    if bounds.distortion is not None and bounds.distortion > most:
        raise Infeasible(
            f"no mechanism can be certified to have distortion privacy {bounds.distortion:.9g}: for this prior and "
            f"distance the most is {most!r} (d_m^max, with room for rounding), reached by revealing nothing",
            limit=most,
        )


class _Design:
    """One design: the solver chosen and its fallbacks, one after the other, until the time for all of them is over."""

    def __init__(self, problem: Problem, bounds: Bounds, solver: Solver, options: SolveOptions) -> None:
        self.problem, self.bounds, self.solver, self.options = problem, bounds, solver, options
        self.deadline = None if options.time_limit is None else monotonic() + options.time_limit

    def mechanism(self) -> Mechanism:
        """The best mechanism, certified; where the time is over first, the best so far."""
        cheapest = self._cheapest() if self.bounds.reverse else None
        return self._solved(self.bounds, self.options, cheapest)

    def _solved(self, bounds: Bounds, options: SolveOptions, cheapest: Mechanism | None) -> Mechanism:
        """Solve and certify, by the solver chosen or by those it falls back on where rounding spoils its answer."""
        found: list[Mechanism] = []
        trouble: PrivacyGamesError | None = None
        before = ""
        start = None if cheapest is None else cheapest.probabilities
        for attempt in (self.solver, *self.solver.fallbacks):
            if self._is_over():
                break
            given = replace(options, start=start, time_limit=self._left())
            if before and options.progress is not None:
                options.progress(Progress(job="design", done=0, message=f"another solver takes over: {before}"))
            try:
                solution = attempt.solve(self.problem, _aimed(self.problem, bounds), options=given)
            except (SolveFailed, InvalidProblem) as error:
                if error.status is Status.TIME_LIMIT:
                    break
                if attempt is self.solver and error.status is not Status.NUMERICAL:
                    raise
                trouble = trouble or error
                before = before or f"{_kind(attempt)} failed ({error.status.name.lower()})"
                continue
            if before:
                solution = replace(solution, solver=f"{solution.solver}, after {before}")
            found.append(self._certified(bounds, solution, cheapest))
            if _gap(found[-1]) <= options.tolerance:
                return found[-1]
            if solution.status is Status.TIME_LIMIT:
                break
            before = before or f"{_kind(attempt)} left a gap of {_gap(found[-1]):.1e}"
        if self._is_over():
            return min([*found, _without_solving(self.problem, bounds, cheapest)], key=_gap)
        if trouble is not None and not found:
            raise trouble
        raise SolveFailed(
            f"the gap to the best possible is {min(map(_gap, found)):.1e}, above the tolerance of "
            f"{options.tolerance:.1e}: rescale distances or costs, keep a little away from the largest distortion or "
            "the least cost, or raise tolerance"
        )

    def _certified(self, bounds: Bounds, solution: Solution, cheapest: Mechanism | None) -> Mechanism:
        return certify(
            self.problem,
            bounds,
            solution.probabilities,
            solution.multipliers,
            origin=solution.solver,
            cheapest=cheapest,
        )

    def _left(self) -> float | None:
        return None if self.deadline is None else max(self.deadline - monotonic(), 1e-3)

    def _is_over(self) -> bool:
        return self.deadline is not None and monotonic() >= self.deadline

    def _cheapest(self) -> Mechanism:
        """The cheapest mechanism with the ratios asked for; it shows whether the cost limit can be met at all."""
        bounds, limit = self.bounds, self.bounds.cost_at_most or 0.0
        if bounds.epsilon is None:
            found = cheapest_answers(self.problem)
        else:
            plain = Bounds(epsilon=bounds.epsilon, within=bounds.within, worst_case=bounds.worst_case)
            tight = replace(self.options, tolerance=min(self.options.tolerance, CLOSE))
            found = self._solved(plain, tight, None)
        try:
            certify(self.problem, bounds, found.weights, origin=found.certificate.provenance.solver)
        except BrokenPromise:
            pass
        else:
            return found
        proved = found.certificate.bound
        if bounds.epsilon is not None and (proved is None or (proved <= limit and _gap(found) > CLOSE)):
            raise SolveFailed(
                f"no mechanism that costs at most {limit:.9g} was found in time, and none was shown not to exist",
                status=Status.TIME_LIMIT,
            )
        least = found.certificate.findings.cost(worst_case=bounds.worst_case) * (1 + ROOM)
        raise Infeasible(
            f"no mechanism can be certified to cost at most {limit:.9g}: "
            f"the least possible cost, with room for rounding, is {least!r}",
            limit=least,
        )


def _kind(solver: Solver) -> str:
    return type(solver).__name__


def _gap(mechanism: Mechanism) -> float:
    return inf if mechanism.certificate.gap is None else mechanism.certificate.gap


def _aimed(problem: Problem, bounds: Bounds) -> Bounds:
    """The bounds with a distortion some last digits higher, so that rounding down does not fall below it."""
    if bounds.distortion is None:
        return bounds
    return replace(bounds, distortion=bounds.distortion * (1 + 2 * rounding(problem)))


def _without_solving(problem: Problem, bounds: Bounds, cheapest: Mechanism | None) -> Mechanism:
    """A valid mechanism that takes no time: the best constant answer, or the cheapest one where the cost is limited."""
    costs = problem.cost.max(axis=1) if bounds.worst_case else problem.cost @ problem.prior.probabilities
    answer = np.zeros(problem.shape)
    answer[:, int(costs.argmin())] = 1.0
    secrets, observables = problem.shape
    nothing = Multipliers(1.0, 0.0, np.ones((observables, secrets)), RatioMultipliers.none(), np.ones(secrets))
    table = answer if cheapest is None else cheapest.weights
    return certify(problem, bounds, table, nothing, origin="none: stopped by the time limit before it had an answer")
