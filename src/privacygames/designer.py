"""The designer: from a problem and bounds to the cheapest mechanism that keeps them, certified."""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Literal

from privacygames.arrays import FloatArray
from privacygames.bounds import Bounds
from privacygames.errors import BrokenPromise, Infeasible, InvalidProblem, PrivacyGamesError, SolveFailed
from privacygames.mechanism import baselines
from privacygames.mechanism.certificate import Provenance
from privacygames.mechanism.files import Contents
from privacygames.mechanism.mechanism import Mechanism, draft_statement, own_version
from privacygames.mechanism.repair import repair
from privacygames.mechanism.verifier import check, probabilities
from privacygames.problem import Problem, max_distortion, rounding
from privacygames.solvers import Engine, Highs, Interior, Progress, Solution, Status, choose

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
    solver: Literal["auto"] | Engine = "auto",
    time_limit: float | None = None,
    tolerance: float = 1e-6,
    progress: Callable[[Progress], None] | None = None,
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
        solver: the engine; ``"auto"`` chooses.
        time_limit: seconds after which to stop. The block engine then returns what it has: a mechanism that keeps
            every promise, and whose certificate states the gap. HiGHS has nothing to return and raises.
        tolerance: the largest relative gap to the best possible that is accepted.
        progress: called with a :class:`Progress` now and then.

    Raises:
        InvalidProblem: something given does not fit.
        Infeasible: no mechanism keeps these bounds; says what the limit is.
        SolveFailed: the solver did not get within tolerance.
    """
    bounds = Bounds(
        epsilon=epsilon,
        within=within,
        distortion=distortion,
        cost_at_most=cost_at_most,
        worst_case=worst_case,
    )
    for name, value in (("tolerance", tolerance), ("time_limit", time_limit)):
        if value is not None and not (isinstance(value, int | float) and value > 0):
            raise InvalidProblem(f"{name} is {value!r}; it must be a positive number")
    engine = choose(problem, bounds) if solver == "auto" else solver
    if not isinstance(engine, Highs | Interior):
        raise InvalidProblem('solver must be "auto" or an engine: Interior() or Highs()')
    most = max_distortion(problem)
    if bounds.distortion is not None and bounds.distortion > most:
        raise Infeasible(
            f"no mechanism can be certified to have distortion privacy {bounds.distortion:.9g}: for this prior and "
            f"distance the most is {most!r} (d_m^max, with room for rounding), reached by revealing nothing",
            limit=most,
        )
    cheapest = _cheapest(problem, bounds, engine, time_limit, tolerance) if bounds.reverse else None
    gaps: list[float] = []
    trouble: PrivacyGamesError | None = None
    for each in _attempts(engine):
        try:
            solution = each.solve(
                problem,
                _aimed(problem, bounds),
                tolerance=tolerance,
                time_limit=time_limit,
                progress=progress,
                inside=None if cheapest is None else cheapest.probabilities,
            )
        except (SolveFailed, InvalidProblem) as error:
            if each is engine and not (isinstance(error, SolveFailed) and error.status == Status.NUMERICAL.name):
                raise
            trouble = trouble or error
            continue
        mechanism = _certified(problem, bounds, solution, cheapest)
        gap = mechanism.certificate.gap
        if gap is not None and (gap <= tolerance or solution.status is Status.TIME_LIMIT):
            return mechanism
        gaps.append(inf if gap is None else gap)
    if trouble is not None and not gaps:
        raise trouble
    raise SolveFailed(
        f"the gap to the best possible is {min(gaps):.1e}, above the tolerance of {tolerance:.1e}: rescale distances "
        "or costs, keep a little away from the largest distortion or the least cost, or raise tolerance",
        status="NUMERICAL",
    )


def _attempts(engine: Engine) -> list[Engine]:
    """The engine asked for, then what else might do where rounding spoils its answer."""
    attempts = [engine]
    while (following := attempts[-1].other()) not in attempts:
        attempts.append(following)
    return attempts if isinstance(engine, Interior) else [*attempts, Interior()]


def _certified(problem: Problem, bounds: Bounds, solution: Solution, cheapest: Mechanism | None) -> Mechanism:
    draft = draft_statement(problem, bounds, solution.multipliers)
    try:
        statement, findings = repair(
            draft, solution.probabilities, None if cheapest is None else cheapest.probabilities
        )
    except BrokenPromise:
        if cheapest is None:
            raise
        statement = replace(draft, weights=cheapest.weights)  # the limit is what the cheapest costs
        findings = check(statement)
    added = _cost(problem, bounds, probabilities(statement)) - _cost(problem, bounds, solution.probabilities)
    provenance = Provenance(solution.solver, own_version(), added)
    return Mechanism(Contents(statement, problem.space, problem.observables, provenance), findings)


def _aimed(problem: Problem, bounds: Bounds) -> Bounds:
    """The bounds with a distortion some last digits higher, so that rounding down does not fall below it."""
    if bounds.distortion is None:
        return bounds
    return replace(bounds, distortion=bounds.distortion * (1 + 2 * rounding(problem)))


def _cheapest(
    problem: Problem, bounds: Bounds, engine: Engine, time_limit: float | None, tolerance: float
) -> Mechanism:
    """The cheapest mechanism with the ratios asked for; it shows whether the cost limit can be met at all."""
    if bounds.epsilon is None:
        found = baselines.cheapest(problem)
    else:
        found = design(
            problem,
            epsilon=bounds.epsilon,
            within=bounds.within,
            worst_case=bounds.worst_case,
            solver=engine,
            time_limit=time_limit,
            tolerance=tolerance,
        )
    limited = replace(draft_statement(problem, bounds), weights=found.weights)
    try:
        check(limited)
    except BrokenPromise:
        least = found.certificate.findings.cost(worst_case=bounds.worst_case) * (1 + ROOM)
        raise Infeasible(
            f"no mechanism can be certified to cost at most {bounds.cost_at_most:.9g}: "
            f"the least possible cost, with room for rounding, is {least!r}",
            limit=least,
        ) from None
    return found


def _cost(problem: Problem, bounds: Bounds, probabilities: FloatArray) -> float:
    per_secret = (probabilities * problem.cost.T).sum(axis=1)
    return float(per_secret.max() if bounds.worst_case else problem.prior.probabilities @ per_secret)
