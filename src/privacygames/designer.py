"""The designer: from a problem and bounds to the cheapest mechanism that keeps them, certified."""

from dataclasses import replace
from math import inf
from typing import Literal

from privacygames.baselines import cheapest as cheapest_answers
from privacygames.errors import BrokenPromise, Infeasible, InvalidProblem, PrivacyGamesError, SolveFailed, Status
from privacygames.events import Watcher
from privacygames.mechanism import Mechanism, certify
from privacygames.problem import Bounds, Problem, max_distortion, rounding
from privacygames.solvers import SolveOptions, Solver, choose

ROOM = 1e-9
"""How far above the least cost a limit should be, relatively, to leave the repair something to work with."""


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
        time_limit: seconds after which to stop. The block engine then returns what it has: a mechanism that keeps
            every promise, and whose certificate states the gap. HiGHS has nothing to return and raises.
        tolerance: the largest relative gap to the best possible that is accepted.
        progress: called with a :class:`privacygames.Progress` now and then; raise ``Cancelled`` in it to stop.

    Raises:
        InvalidProblem: something given does not fit.
        Infeasible: no mechanism keeps these bounds; says what the limit is.
        SolveFailed: the solver did not get within tolerance.
        Cancelled: the progress function said so.
    """
    bounds = Bounds(
        epsilon=epsilon,
        within=within,
        distortion=distortion,
        cost_at_most=cost_at_most,
        worst_case=worst_case,
    )
    options = SolveOptions(tolerance=tolerance, time_limit=time_limit, progress=progress)
    chosen = choose(problem, bounds) if solver == "auto" else solver
    if not isinstance(chosen, Solver):
        raise InvalidProblem('solver must be "auto" or a solver: Interior(), Highs(), or one of your own')
    _require_possible(problem, bounds)
    cheapest = _cheapest(problem, bounds, chosen, options) if bounds.reverse else None
    return _solved(problem, bounds, chosen, options, cheapest)


def _require_possible(problem: Problem, bounds: Bounds) -> None:
    most = max_distortion(problem)
    if bounds.distortion is not None and bounds.distortion > most:
        raise Infeasible(
            f"no mechanism can be certified to have distortion privacy {bounds.distortion:.9g}: for this prior and "
            f"distance the most is {most!r} (d_m^max, with room for rounding), reached by revealing nothing",
            limit=most,
        )


def _solved(
    problem: Problem, bounds: Bounds, solver: Solver, options: SolveOptions, cheapest: Mechanism | None
) -> Mechanism:
    """Solve and certify, by the solver chosen, or by those it falls back on where rounding spoils its answer."""
    gaps: list[float] = []
    trouble: PrivacyGamesError | None = None
    start = None if cheapest is None else cheapest.probabilities
    for attempt in (solver, *solver.fallbacks):
        try:
            solution = attempt.solve(problem, _aimed(problem, bounds), options=replace(options, start=start))
        except (SolveFailed, InvalidProblem) as error:
            if attempt is solver and error.status is not Status.NUMERICAL:
                raise
            trouble = trouble or error
            continue
        mechanism = certify(
            problem,
            bounds,
            solution.probabilities,
            solution.multipliers,
            origin=solution.solver,
            cheapest=cheapest,
        )
        gap = mechanism.certificate.gap
        if gap is not None and (gap <= options.tolerance or solution.status is Status.TIME_LIMIT):
            return mechanism
        gaps.append(inf if gap is None else gap)
    if trouble is not None and not gaps:
        raise trouble
    raise SolveFailed(
        f"the gap to the best possible is {min(gaps):.1e}, above the tolerance of {options.tolerance:.1e}: rescale "
        "distances or costs, keep a little away from the largest distortion or the least cost, or raise tolerance"
    )


def _aimed(problem: Problem, bounds: Bounds) -> Bounds:
    """The bounds with a distortion some last digits higher, so that rounding down does not fall below it."""
    if bounds.distortion is None:
        return bounds
    return replace(bounds, distortion=bounds.distortion * (1 + 2 * rounding(problem)))


def _cheapest(problem: Problem, bounds: Bounds, solver: Solver, options: SolveOptions) -> Mechanism:
    """The cheapest mechanism with the ratios asked for; it shows whether the cost limit can be met at all."""
    if bounds.epsilon is None:
        found = cheapest_answers(problem)
    else:
        plain = Bounds(epsilon=bounds.epsilon, within=bounds.within, worst_case=bounds.worst_case)
        found = _solved(problem, plain, solver, options, None)
    try:
        certify(problem, bounds, found.weights, origin=found.certificate.provenance.solver)
    except BrokenPromise:
        least = found.certificate.findings.cost(worst_case=bounds.worst_case) * (1 + ROOM)
        raise Infeasible(
            f"no mechanism can be certified to cost at most {bounds.cost_at_most:.9g}: "
            f"the least possible cost, with room for rounding, is {least!r}",
            limit=least,
        ) from None
    return found
