"""Design: the certified mechanism of lowest cost for a problem and bounds."""

import warnings
from math import inf
from typing import TYPE_CHECKING, Literal, Unpack, overload

from privacygames.attempts import Design
from privacygames.certificates import allowed_outputs
from privacygames.errors import (
    Infeasible,
    InvalidProblem,
    UselessMechanism,
)
from privacygames.mechanism import Mechanism
from privacygames.problem import Bounds, BoundsArguments, Distortion, Problem, distortion_rounding
from privacygames.progress import ProgressCallback
from privacygames.solvers import Interior, SolveEstimate, SolveOptions, Solver
from privacygames.validation import require_instance

if TYPE_CHECKING:  # imported where a design for points needs it: it takes a tenth of a first design
    from privacygames.points import PointMechanism, PointProblem

SolverChoice = Literal["auto"] | Solver
"""The solver of a design: ``"auto"``, or an object with the members of :class:`privacygames.Solver`."""


class DesignArguments(BoundsArguments, total=False):
    """The keyword arguments of :func:`design`."""

    solver: SolverChoice
    time_limit: float | None
    tolerance: float
    progress: ProgressCallback | None


@overload
def design(problem: Problem, **arguments: Unpack[DesignArguments]) -> Mechanism: ...
@overload
def design(problem: "PointProblem", **arguments: Unpack[DesignArguments]) -> "PointMechanism": ...
def design(
    problem: "Problem | PointProblem",
    *,
    epsilon: float | None = None,
    distortion: Distortion = None,
    within: float | None = None,
    worst_case: bool = False,
    cost_at_most: float | None = None,
    worst_cost_at_most: float | None = None,
    solver: SolverChoice = "auto",
    time_limit: float | None = None,
    tolerance: float = 1e-6,
    progress: ProgressCallback | None = None,
) -> "Mechanism | PointMechanism":
    """Design the mechanism of lowest cost that satisfies the bounds, with a certificate.

    Args:
        problem: secrets, prior, cost and distances. For a :class:`privacygames.PointProblem`, the guarantees hold
            between any two points, and attacks may guess any point.
        epsilon: differential privacy: p(o|s) ≤ exp(epsilon·d^ε(s,s')) p(o|s') for all s, s', o.
        distortion: distortion privacy: lower bound on the expected error of the optimal attack. A number concerns
            the adversary who knows the problem's prior and guesses the secret; a mapping from
            :class:`privacygames.Adversary` to numbers gives a guarantee against each of them.
        within: use the threshold form of differential privacy instead: exp(epsilon) between secrets at most
            this far apart.
        worst_case: minimise (or limit) the cost of the worst secret rather than the average.
        cost_at_most: maximise distortion privacy for at most this cost, instead of minimising the cost. With a mapping,
            the distortion against its first adversary (whose number may be None); the other guarantees hold.
        worst_cost_at_most: upper limit on the cost of every secret, while the average is minimised.
        solver: ``"auto"`` chooses; or ``Interior()``, ``Highs()``, or one of your own (docs/how-to/own-solver.md).
        time_limit: seconds after which to stop, all solvers and attempts together, and return the best mechanism so
            far: it has every guarantee, and its certificate states the gap, which may be above the tolerance.
        tolerance: largest relative gap to the optimum that is accepted.
        progress: called regularly with a :class:`privacygames.Progress`; raise ``Cancelled`` in it to stop.

    Raises:
        InvalidProblem: an argument is invalid.
        Infeasible: no mechanism satisfies these bounds; the error states the limit.
        SolveFailed: no solver got within tolerance; or, with ``cost_at_most`` and ``time_limit``, no mechanism that
            satisfies the limit was found in time.
        Cancelled: raised by the progress function.

    Warns:
        UselessMechanism: the best mechanism gives every secret the same outputs.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> mechanism = pg.design(problem, epsilon=1.0, distortion=0.4)
    >>> mechanism.certificate.gap < 1e-6, mechanism.sample("flu") in illnesses.labels
    (True, True)
    """
    bounds = Bounds(
        epsilon=epsilon,
        within=within,
        distortion=distortion,
        cost_at_most=cost_at_most,
        worst_case=worst_case,
        worst_cost_at_most=worst_cost_at_most,
    )
    options = SolveOptions(tolerance=tolerance, time_limit=time_limit, progress=progress)
    mechanism, useless = design_any(problem, bounds, solver=solver, options=options)
    if useless:
        warnings.warn(
            "the outputs of this mechanism do not depend on the secret at all: it keeps its guarantees and conveys "
            "no information. What helps: a larger epsilon, worst_case=True, or a cost that values rare secrets",
            UselessMechanism,
            stacklevel=2,
        )
    return mechanism


def design_any(
    problem: "Problem | PointProblem", bounds: Bounds, *, solver: SolverChoice, options: SolveOptions
) -> "tuple[Mechanism | PointMechanism, bool]":
    """A mechanism as :func:`design` makes it, without warnings, and whether it gives every secret the same outputs."""
    if not isinstance(problem, Problem):
        for_points = _design_for_points(problem, bounds, solver, options)
        return for_points, for_points.constant
    mechanism = design_bounds(problem, bounds, solver=solver, options=options)
    return mechanism, mechanism.certificate.usefulness.constant and len(problem.space) > 1


def _design_for_points(
    problem: "PointProblem", bounds: Bounds, solver: SolverChoice, options: SolveOptions
) -> "PointMechanism":
    from privacygames.points import PointDesign, PointProblem

    if not isinstance(problem, PointProblem):
        require_instance(problem, Problem, "the problem")
    return PointDesign(problem, bounds, options, device=_device(solver)).mechanism()


def _device(solver: SolverChoice) -> str:
    """The device of a design for points, which has one solver."""
    if isinstance(solver, Interior):
        return solver.device
    if isinstance(solver, str) and solver == "auto":
        return "host"
    raise InvalidProblem("designs for points have one solver: leave solver out, or give Interior(device=…)")


def estimate_solve(problem: Problem, **bounds: Unpack[BoundsArguments]) -> SolveEstimate:
    """Estimate the memory and time of :func:`design` on this machine, by timing one block.

    Args:
        problem: as in :func:`design`.
        **bounds: ``epsilon``, ``distortion`` and the others, as in :func:`design`.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> estimate = pg.estimate_solve(problem, epsilon=1.0)
    >>> estimate.seconds >= 0
    True
    """
    require_instance(problem, Problem, "the problem")
    return Interior().estimate(problem, Bounds(**bounds))


def design_bounds(
    problem: Problem,
    bounds: Bounds,
    *,
    solver: SolverChoice = "auto",
    options: SolveOptions | None = None,
    best_effort: bool = False,
) -> Mechanism:
    """Design a mechanism for :class:`privacygames.Bounds`, as :func:`design` does, but without warnings.

    Args:
        problem: as in :func:`design`.
        bounds: the bounds of the design.
        solver: as in :func:`design`.
        options: tolerance, time limit and so on.
        best_effort: return the certified mechanism with the smallest gap where no attempt gets within tolerance,
            instead of raising ``SolveFailed``.
    """
    require_instance(problem, Problem, "the problem")
    _require_feasible(problem, bounds)
    automatic = isinstance(solver, str) and solver == "auto"
    chosen = solver if isinstance(solver, Solver) else None
    if not automatic and chosen is None:
        raise InvalidProblem('solver must be "auto" or a solver: Interior(), Highs(), or one of your own')
    return Design(problem, bounds, chosen, options or SolveOptions(), best_effort=best_effort).mechanism()


def _require_feasible(problem: Problem, bounds: Bounds) -> None:
    """Raise if closed forms prove that no mechanism satisfies the bounds."""
    without_output = int((~allowed_outputs(problem.cost, problem.distinguishability, bounds).any(axis=1)).sum())
    if without_output:
        raise Infeasible(
            f"for {without_output} secrets no output is left: those of infinite cost are never allowed, and with a "
            "finite epsilon an output that one secret may never give is forbidden for those compared with it, too. Use "
            "large finite costs, or within= or an infinite distinguishability where secrets may be distinguishable",
            limit=inf,
            bound="epsilon",
        )
    for adversary in bounds.adversaries(problem):
        limit = adversary.max_distortion * (1 - 4 * distortion_rounding(problem))
        if adversary.distortion is None or adversary.distortion <= limit:
            continue
        named = bool(bounds.named_adversaries)
        whom = f" against {adversary.name!r}" if named else ""
        about = "their prior and errors" if named else "this prior and distance"
        raise Infeasible(
            f"no mechanism can be certified to have distortion privacy {adversary.distortion:.9g}{whom}: for {about} "
            f"the most is {limit!r} (d_m^max, with room for rounding), attained by revealing nothing",
            limit=limit,
            bound="distortion",
        )
