"""Feasibility of limits on the cost, and of a required distortion under one: an error states a proved bound."""

from privacygames.certificates import Certificate
from privacygames.errors import GuaranteeViolated, Infeasible, SolveFailed, Status
from privacygames.mechanism import Mechanism, certify
from privacygames.problem import Bounds, Problem

MARGIN = 1e-9
"""Relative margin of a feasible limit above the lowest cost, which leaves room for the repair."""

COST_TOLERANCE = 1e-6
"""Relative gap within which the lowest cost is computed before it is compared with a limit."""


def require_affordable(
    problem: Problem,
    cheapest: Mechanism,
    limit: float,
    *,
    worst_case: bool,
    every_secret: bool = False,
    exact: bool = False,
    timed_out: bool = False,
) -> None:
    """Raise unless a mechanism that minimises the cost satisfies a limit.

    Args:
        problem: the problem.
        cheapest: the mechanism; the bound of its certificate is the proof where it costs more than the limit.
        limit: upper limit on the cost.
        worst_case: whether the worst secret's cost is limited, rather than the average.
        every_secret: whether the limit is ``worst_cost_at_most``, for the message.
        exact: whether the cost of ``cheapest`` is proved to be the lowest by a closed form.
        timed_out: whether the time limit ended the search for it.

    Raises:
        Infeasible: the lowest possible cost is proved to be above the limit.
        SolveFailed: the limit lies between the proved lower bound and the lowest cost reached.
    """
    if is_within_limit(problem, cheapest, limit, worst_case=worst_case):
        return
    certificate = cheapest.certificate
    reached = certificate.verification.cost(worst_case=worst_case)
    lower_bound = reached if exact else certificate.bound
    whom = "every secret " if every_secret else ""
    name = "worst_cost_at_most" if every_secret else "cost_at_most"
    if lower_bound is None or not (exact or lower_bound > limit):
        raise undecided_error(f"costs {whom}at most {limit!r}", certificate, reached, timed_out=timed_out)
    reachable = reached * (1 + MARGIN)
    raise Infeasible(
        f"no mechanism with these guarantees costs {whom}at most {limit:.9g}: {name} must be at least "
        f"{lower_bound!r}, the least possible cost; {reachable!r} is enough, with room for rounding",
        limit=reachable,
        bound=name,
    )


def is_within_limit(problem: Problem, mechanism: Mechanism, limit: float, *, worst_case: bool) -> bool:
    """Whether the cost of a mechanism is within a limit, decided in exact arithmetic."""
    cost_limit = Bounds(cost_at_most=limit, worst_case=worst_case)
    try:
        certify(problem, cost_limit, mechanism.weights, origin=mechanism.certificate.provenance.solver)
    except GuaranteeViolated:
        return False
    return True


def insufficient_distortion_error(
    name: str, required: float, best: Mechanism, *, timed_out: bool = False
) -> Infeasible | SolveFailed:
    """The error where the maximum distortion against an adversary is below the required one, or not proved to reach it.

    Args:
        name: the name of the adversary.
        required: the distortion required against them.
        best: the mechanism with the largest distortion found against them.
        timed_out: whether the time limit ended the search for it.
    """
    certificate = best.certificate
    if certificate.bound is None or certificate.bound >= required:
        return undecided_error(
            f"leaves {name!r} {required:.9g}", certificate, certificate.achieved, timed_out=timed_out
        )
    return Infeasible(
        f"no mechanism leaves {name!r} {required:.9g} with the other guarantees: the most is {certificate.bound!r}; "
        f"{certificate.achieved!r} can be certified",
        limit=certificate.achieved,
        bound="distortion",
    )


def undecided_error(
    requirement: str, certificate: Certificate, reached: float, *, timed_out: bool = False
) -> SolveFailed:
    """The error where a required value lies between the proved bound and the value reached.

    Args:
        requirement: the requirement, as a verb with its object.
        certificate: the certificate of the best mechanism.
        reached: the value of the best mechanism.
        timed_out: whether the time limit ended the search for it.
    """
    if timed_out and (certificate.gap is None or certificate.gap > COST_TOLERANCE):
        return SolveFailed(
            f"no mechanism that {requirement} was found in time, and none was shown not to exist",
            status=Status.TIME_LIMIT,
        )
    return SolveFailed(
        f"whether a mechanism {requirement} is not known: the best one has {reached!r}, and it is only proved "
        f"that none is beyond {certificate.bound!r}; relax the requirement slightly"
    )
