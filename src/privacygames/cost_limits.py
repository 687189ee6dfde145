"""Whether a limit on the cost, or a least distortion under one, can be met: an error only with a proof."""

from privacygames.certificates import Certificate
from privacygames.errors import GuaranteeViolated, Infeasible, SolveFailed, Status
from privacygames.mechanism import Mechanism, certify
from privacygames.problem import Bounds, Problem

MARGIN = 1e-9
"""How far above the least cost a limit should be, relatively, so that repair has something to work with."""

CLOSE = 1e-6
"""How closely a least cost is found before it is compared with a limit."""


def require_affordable(
    problem: Problem,
    cheapest: Mechanism,
    limit: float,
    *,
    worst_case: bool,
    each: bool = False,
    exact: bool = False,
    late: bool = False,
) -> None:
    """Raise unless a mechanism that minimises the cost keeps a limit.

    Args:
        problem: the problem.
        cheapest: the mechanism; its certificate's bound is the proof where it is dearer than the limit.
        limit: what the cost may be at most.
        worst_case: whether the worst secret's cost is limited, rather than the average.
        each: whether the limit is ``worst_cost_at_most``, for the message.
        exact: whether no mechanism is cheaper at all, by a closed form.
        late: whether the time limit ended the search for it.

    Raises:
        Infeasible: the least possible cost is above the limit, with certainty.
        SolveFailed: the limit is between what is proved and what was reached.
    """
    if keeps_limit(problem, cheapest, limit, worst_case=worst_case):
        return
    certificate = cheapest.certificate
    reached = certificate.verification.cost(worst_case=worst_case)
    least = reached if exact else certificate.bound
    whom = "every secret " if each else ""
    name = "worst_cost_at_most" if each else "cost_at_most"
    if least is None or not (exact or least > limit):
        raise undecided(f"costs {whom}at most {limit!r}", certificate, reached, late=late)
    reachable = reached * (1 + MARGIN)
    raise Infeasible(
        f"no mechanism with these guarantees costs {whom}at most {limit:.9g}: {name} must be at least {least!r}, the "
        f"least possible cost; {reachable!r} is enough, with room for rounding",
        limit=reachable,
        bound=name,
    )


def keeps_limit(problem: Problem, mechanism: Mechanism, limit: float, *, worst_case: bool) -> bool:
    """Whether a mechanism costs at most so much, decided in exact arithmetic."""
    alone = Bounds(cost_at_most=limit, worst_case=worst_case)
    try:
        certify(problem, alone, mechanism.weights, origin=mechanism.certificate.provenance.solver)
    except GuaranteeViolated:
        return False
    return True


def too_little_distortion(name: str, floor: float, best: Mechanism, *, late: bool = False) -> Infeasible | SolveFailed:
    """The error where the most distortion against an adversary is less than required, or not known to be enough.

    Args:
        name: of the adversary.
        floor: the distortion required against them.
        best: the mechanism with the most distortion against them.
        late: whether the time limit ended the search for it.
    """
    certificate = best.certificate
    if certificate.bound is None or certificate.bound >= floor:
        return undecided(f"leaves {name!r} {floor:.9g}", certificate, certificate.achieved, late=late)
    return Infeasible(
        f"no mechanism leaves {name!r} {floor:.9g} with the other guarantees: the most is {certificate.bound!r}; "
        f"{certificate.achieved!r} can be certified",
        limit=certificate.achieved,
        bound="distortion",
    )


def undecided(asked: str, certificate: Certificate, reached: float, *, late: bool = False) -> SolveFailed:
    """The error where a value lies between what was proved and what was reached.

    Args:
        asked: what was asked of a mechanism, as a verb with its object.
        certificate: of the best mechanism.
        reached: what it has.
        late: whether the time limit ended the search for it.
    """
    if late and (certificate.gap is None or certificate.gap > CLOSE):
        return SolveFailed(
            f"no mechanism that {asked} was found in time, and none was shown not to exist", status=Status.TIME_LIMIT
        )
    return SolveFailed(
        f"whether a mechanism {asked} is not known: the best one has {reached!r}, and it is only proved that none is "
        f"beyond {certificate.bound!r}; ask for a little less"
    )
