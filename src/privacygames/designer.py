"""The designer: from a problem and bounds to the cheapest mechanism that keeps them, certified."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from time import monotonic
from typing import Literal

import numpy as np

from privacygames.arguments import of_kind
from privacygames.baselines import cheapest as cheapest_answers
from privacygames.certificates import AdversaryMultipliers, Multipliers, RatioMultipliers
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
from privacygames.problem import Bounds, Distortion, Problem, Promise, rounding
from privacygames.solvers import Effort, Interior, Solution, SolveOptions, Solver, choose

ROOM = 1e-9
"""How far above the least cost a limit should be, relatively, to leave the repair something to work with."""

CLOSE = 1e-6
"""How closely the least cost is found before a limit below it is called impossible."""


def design(
    problem: Problem,
    *,
    epsilon: float | None = None,
    distortion: Distortion = None,
    within: float | None = None,
    worst_case: bool = False,
    cost_at_most: float | None = None,
    worst_cost_at_most: float | None = None,
    solver: Literal["auto"] | Solver = "auto",
    time_limit: float | None = None,
    tolerance: float = 1e-6,
    progress: Watcher | None = None,
) -> Mechanism:
    """The mechanism that costs least among all that keep the bounds, with a certificate.

    Args:
        problem: secrets, prior, cost and distances.
        epsilon: differential privacy: p(o|s) ≤ exp(epsilon·d^ε(s,s')) p(o|s') for all s, s', o.
        distortion: distortion privacy: even the best attack errs by at least this much on average. A number is about
            the adversary who knows the problem's prior and guesses the secret; a mapping from
            :class:`privacygames.Adversary` to numbers promises something against each, all at once.
        within: use the threshold form of differential privacy instead: exp(epsilon) between secrets at most
            this far apart.
        worst_case: minimise (or limit) the cost of the worst secret rather than the average.
        cost_at_most: turned round: the most distortion privacy for at most this cost. With a mapping, the most against
            its first adversary (whose number may be None), the others' promises kept.
        worst_cost_at_most: the average cost counts, and no secret's cost is above this.
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
    bounds = Bounds.asked(
        epsilon=epsilon,
        within=within,
        distortion=distortion,
        cost_at_most=cost_at_most,
        worst_case=worst_case,
        worst_cost_at_most=worst_cost_at_most,
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


def effort(
    problem: Problem,
    *,
    epsilon: float | None = None,
    distortion: Distortion = None,
    within: float | None = None,
    worst_case: bool = False,
    cost_at_most: float | None = None,
    worst_cost_at_most: float | None = None,
) -> Effort:
    """What :func:`design` is going to take on this machine: memory, and roughly the time (a block is timed for it).

    Args:
        problem: as in :func:`design`.
        epsilon: as in :func:`design`.
        distortion: as in :func:`design`.
        within: as in :func:`design`.
        worst_case: as in :func:`design`.
        cost_at_most: as in :func:`design`.
        worst_cost_at_most: as in :func:`design`.
    """
    of_kind(problem, Problem, "the problem")
    bounds = Bounds.asked(
        epsilon=epsilon,
        within=within,
        distortion=distortion,
        cost_at_most=cost_at_most,
        worst_case=worst_case,
        worst_cost_at_most=worst_cost_at_most,
    )
    return Interior().effort(problem, bounds)


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
    for opponent in bounds.facing(problem):
        most = opponent.blind * (1 - 4 * rounding(problem))
        if opponent.least is None or opponent.least <= most:
            continue
        whom = f" against {opponent.name!r}" if bounds.against else ""
        about = "her prior and errors" if bounds.against else "this prior and distance"
        raise Infeasible(
            f"no mechanism can be certified to have distortion privacy {opponent.least:.9g}{whom}: for {about} the "
            f"most is {most!r} (d_m^max, with room for rounding), reached by revealing nothing",
            limit=most,
            bound="distortion",
        )


class _Design:
    """One design: the solver chosen and its fallbacks, one after the other, until the time for all of them is over."""

    def __init__(self, problem: Problem, bounds: Bounds, solver: Solver, options: SolveOptions) -> None:
        self.problem, self.bounds, self.solver, self.options = problem, bounds, solver, options
        self.deadline = None if options.time_limit is None else monotonic() + options.time_limit

    def mechanism(self) -> Mechanism:
        """The best mechanism, certified; where the time is over first, the best so far."""
        floor = self.bounds.against[0].distortion if self.bounds.reverse and self.bounds.against else None
        if floor is None:
            return self._best(self.bounds, self.options)
        first, *others = self.bounds.against
        tight = replace(self.options, tolerance=min(self.options.tolerance, CLOSE))
        found = self._best(replace(self.bounds, against=(Promise(first.adversary, None), *others)), tight)
        if found.certificate.achieved < floor:
            raise _too_little(first.adversary.name, floor, found)
        return certify(self.problem, self.bounds, found.weights, found.multipliers, origin=_origin(found))

    def _best(self, bounds: Bounds, options: SolveOptions) -> Mechanism:
        return self._solved(bounds, options, self._cheapest(bounds) if bounds.limits else None)

    def _solved(self, bounds: Bounds, options: SolveOptions, cheapest: Mechanism | None) -> Mechanism:
        """Solve and certify, by the solver chosen or by those it falls back on where rounding spoils its answer."""
        found: list[Mechanism] = []
        combined: list[Mechanism] = []
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
            if _gap(found[-1]) <= options.tolerance or _is_enough(found[-1], bounds, solution, options):
                return found[-1]
            combined.extend(self._combined(bounds, found, cheapest))
            if combined and _gap(combined[-1]) <= options.tolerance:
                return combined[-1]
            if solution.status is Status.TIME_LIMIT:
                break
            before = before or f"{_kind(attempt)} left a gap of {_gap(found[-1]):.1e}"
        if self._is_over():
            return min([*found, *combined, _without_solving(self.problem, bounds, cheapest)], key=_gap)
        if trouble is not None and not found:
            raise trouble
        raise SolveFailed(
            f"the gap to the best possible is {min(map(_gap, [*found, *combined])):.1e}, above the tolerance of "
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

    def _combined(self, bounds: Bounds, found: Sequence[Mechanism], cheapest: Mechanism | None) -> list[Mechanism]:
        """The last attempt's mechanism with what an earlier one proves, or the other way round: the best, if any."""
        last = found[-1]
        pairs = [pair for each in found[:-1] for pair in ((last, each), (each, last))]
        every = [
            certify(
                self.problem,
                bounds,
                mechanism.weights,
                other.multipliers,
                origin=f"{_origin(mechanism)}; its bound: {_origin(other)}",
                cheapest=cheapest,
            )
            for mechanism, other in pairs
        ]
        return [min(every, key=_gap)] if every else []

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
            found = cheapest_answers(self.problem)
        elif rest.limits:
            inner = self._cheapest(rest)
            found = self._solved(rest, tight, inner)
        else:
            enough = bounds.limits[0][1] if len(bounds.limits) == 1 else None
            found = self._solved(rest, replace(tight, enough=enough), None)
        for worst_case, limit in bounds.limits:
            self._require_affordable(bounds, found, worst_case=worst_case, limit=limit, closed_form=free)
        if rest is not None and rest.limits:
            return _inside(
                self.problem, replace(rest, worst_cost_at_most=None), found, inner, bounds.cost_at_most or 0.0
            )
        return found

    def _require_affordable(
        self, bounds: Bounds, found: Mechanism, *, worst_case: bool, limit: float, closed_form: bool
    ) -> None:
        """Raise unless the cheapest mechanism keeps a limit, with certainty."""
        alone = Bounds(cost_at_most=limit, worst_case=worst_case)
        try:
            certify(self.problem, alone, found.weights, origin=_origin(found))
        except BrokenPromise:
            pass
        else:
            return
        proved = found.certificate.bound
        if not closed_form and (proved is None or (proved <= limit and _gap(found) > CLOSE)):
            raise SolveFailed(
                f"no mechanism that costs at most {limit:.9g} was found in time, and none was shown not to exist",
                status=Status.TIME_LIMIT,
            )
        least = found.certificate.findings.cost(worst_case=worst_case) * (1 + ROOM)
        each = worst_case and bounds.worst_cost_at_most is not None
        whom = "every secret " if each else ""
        raise Infeasible(
            f"no mechanism can be certified to cost {whom}at most {limit:.9g}: "
            f"the least possible cost, with room for rounding, is {least!r}",
            limit=least,
            bound="worst_cost_at_most" if each else "cost_at_most",
        )


def _too_little(name: str, floor: float, found: Mechanism) -> PrivacyGamesError:
    """The error where the most that was found against an adversary is less than is promised: proved, or not in time."""
    certificate = found.certificate
    if certificate.bound is None or (certificate.bound >= floor and _gap(found) > CLOSE):
        return SolveFailed(
            f"no mechanism that leaves {name!r} {floor:.9g} was found in time, and none was shown not to exist",
            status=Status.TIME_LIMIT,
        )
    return Infeasible(
        f"no mechanism can be certified to leave {name!r} {floor:.9g} with the other promises: "
        f"the most, with room for rounding, is {certificate.achieved!r}",
        limit=certificate.achieved,
        bound="distortion",
    )


def _unlimited(bounds: Bounds) -> Bounds | None:
    """What is left to ask when a limit on the cost is minimised instead; None where that is nothing."""
    if bounds.reverse:
        rest = {"against": bounds.against[1:], "worst_cost_at_most": bounds.worst_cost_at_most}
        rest |= {"cost_at_most": None}
    else:
        rest = {"worst_case": True, "worst_cost_at_most": None}
    if bounds.epsilon is None and bounds.distortion is None and not rest.get("against", bounds.against):
        return None
    return replace(bounds, **rest)  # type: ignore[arg-type]


def _inside(problem: Problem, bounds: Bounds, cheap: Mechanism, fair: Mechanism, limit: float) -> Mechanism:
    """A mixture of what is cheap on average and what is for every secret: it leaves half the room to the limit."""
    least, most = cheap.certificate.findings.expected_cost, fair.certificate.findings.expected_cost
    share = 0.5 if most <= limit else 0.5 * max(limit - least, 0.0) / (most - least)
    mixed = (1 - share) * cheap.probabilities + share * fair.probabilities
    return certify(problem, bounds, mixed, origin="between the cheapest mechanisms")


def _is_enough(found: Mechanism, bounds: Bounds, solution: Solution, options: SolveOptions) -> bool:
    """Whether a solver stopped at a mechanism because one that costs no more than this was all that was asked for."""
    if options.enough is None or solution.status is not Status.OPTIMAL:
        return False
    return found.certificate.findings.cost(worst_case=bounds.worst_case) < options.enough


def _kind(solver: Solver) -> str:
    return type(solver).__name__


def _origin(mechanism: Mechanism) -> str:
    return mechanism.certificate.provenance.solver


def _gap(mechanism: Mechanism) -> float:
    return inf if mechanism.certificate.gap is None else mechanism.certificate.gap


def _aimed(problem: Problem, bounds: Bounds) -> Bounds:
    """The bounds with distortions some last digits higher, so that rounding down does not fall below them."""
    higher = 1 + 2 * rounding(problem)
    if bounds.distortion is not None:
        return replace(bounds, distortion=bounds.distortion * higher)
    raised = (
        Promise(each.adversary, None if each.distortion is None else each.distortion * higher)
        for each in bounds.against
    )
    return replace(bounds, against=tuple(raised)) if bounds.against else bounds


def _without_solving(problem: Problem, bounds: Bounds, cheapest: Mechanism | None) -> Mechanism:
    """A valid mechanism that takes no time: the best constant answer, or the cheapest one where the cost is limited."""
    costs = problem.cost.max(axis=1) if bounds.worst_case else problem.cost @ problem.prior.probabilities
    answer = np.zeros(problem.shape)
    answer[:, int(costs.argmin())] = 1.0
    secrets, observables = problem.shape
    attack = np.ones((observables, secrets))
    against = tuple(
        AdversaryMultipliers(0.0, np.ones((observables, len(opponent.errors)))) for opponent in bounds.facing(problem)
    )
    nothing = Multipliers(
        1.0, 0.0, attack, RatioMultipliers.none(), np.ones(secrets), against=against if bounds.against else ()
    )
    table = answer if cheapest is None else cheapest.weights
    return certify(problem, bounds, table, nothing, origin="none: stopped by the time limit before it had an answer")
