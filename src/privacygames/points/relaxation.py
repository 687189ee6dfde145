r"""The relaxation on finitely many points, which bounds every mechanism with the same guarantees, whatever its form.

Any mechanism for points satisfies the ratio constraints between finitely many of them, and its attacks are at least as
good as those with finitely many guesses. So a dual solution of the finite program on the prior's points and a lattice
proves a bound for every mechanism. The lattice has prior 0; it matters, because between two visited places all points
have to be protected.

Where the prior has many points they are divided into parts, :math:`\pi = \sum_k w_k \pi_k`: the cost of a mechanism is
:math:`\sum_k w_k \operatorname{cost}_k`, and each part has a relaxation of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, prod
from time import monotonic

import numpy as np

from privacygames.arrays import FloatArray, IntArray, freeze_floats
from privacygames.attempts import Design
from privacygames.beliefs import Prior
from privacygames.certificates import BITS, DualSolution, Statement, proved_bound
from privacygames.errors import Cancelled, Infeasible, PrivacyGamesError
from privacygames.points.problem import PointAdversary, PointProblem, norms
from privacygames.problem import Adversary, Bounds, DistortionGuarantee, Problem
from privacygames.progress import Progress
from privacygames.solvers import SolveOptions
from privacygames.spaces import Categories, Region

LATTICE_STEP = 0.4
"""Step of the lattice of points with prior 0, times epsilon: with twice as much, a person with few places lost 4 %."""

FEWEST_STEPS = 12
"""Points of that lattice along the longest axis, at least."""

MOST_POINTS = 330
"""Most points of the prior in one part, and of a finite program whose lattice has more than the fewest steps: it takes
some ten seconds for 300 points and outputs."""

TOLERANCE = 1e-4
"""Relative gap to which the finite program is solved: much smaller than what the relaxation itself leaves open."""

DISTANCE_ROUNDING = 1e-15
"""Relative amount by which distances are rounded up, so that no ratio is bounded more than it must be."""


@dataclass(frozen=True)
class RelaxedPart:
    """The relaxation on some points, and the dual solution that proves its bound.

    Attributes:
        members: the points of the problem's prior that belong to it, by their positions.
        lattice: points without prior, (points, axes).
        dual_solution: of the finite program.
    """

    members: IntArray
    lattice: FloatArray
    dual_solution: DualSolution


@dataclass(frozen=True)
class RelaxedProgram:
    """A finite program that relaxes a problem for points.

    Attributes:
        problem: the problem on the points of one part.
        bounds: what is guaranteed there.
        share: how much of the prior the part has.
    """

    problem: Problem
    bounds: Bounds
    share: float


def relaxed_program(
    problem: PointProblem,
    bounds: Bounds,
    adversaries: Sequence[PointAdversary],
    members: IntArray,
    lattice: FloatArray,
) -> RelaxedProgram:
    """The finite program on some of the prior's points, the points of all adversaries, and a lattice.

    With a part of the prior only, guarantees of distortion are left out: they are about all of it.

    Args:
        problem: the problem for points.
        bounds: what is guaranteed.
        adversaries: those of the bounds, as arrays.
        members: positions of the prior's points in this part.
        lattice: further points, (points, axes).
    """
    whole = len(members) == len(problem.prior)
    xy, weights = problem.prior.xy[members], problem.prior.probabilities[members]
    supports = [adversary.xy for adversary in adversaries] if whole else []
    points = np.unique(np.concatenate([xy, lattice, *supports]), axis=0)
    index = {point: position for position, point in enumerate(map(tuple, points.tolist()))}

    def positions(of: FloatArray) -> IntArray:
        return np.array([index[tuple(point)] for point in of.tolist()], dtype=np.int64)

    space = Categories(f"point {number}" for number in range(len(points)))
    prior = np.zeros(len(points))
    prior[positions(xy)] = weights / weights.sum()
    costs = np.zeros((len(points), len(problem.outputs)))
    if problem.cost.is_convex:
        costs = problem.cost.matrix(points, problem.outputs)
    else:  # a cost that is a function counts only where there is a prior
        costs[positions(xy)] = problem.costs[members]
    finite = Problem(
        Prior(space, prior),
        cost=costs.T,
        distance=problem.distances(points, points),
        distinguishability=norms(points, points) * (1 + DISTANCE_ROUNDING),
        observables=Categories(f"output {number}" for number in range(len(problem.outputs))),
    )
    guarantees = []
    for guarantee, adversary in zip(bounds.distortion, adversaries, strict=True) if whole else ():
        if guarantee.adversary.prior is None and guarantee.adversary.errors is None:
            guarantees.append(guarantee)
            continue
        belief, at = np.zeros(len(points)), positions(adversary.xy)
        belief[at] = adversary.probabilities
        errors = None
        if adversary.errors is not None:
            errors = np.zeros((len(adversary.errors), len(points)))
            errors[:, at] = adversary.errors
        named = Adversary(adversary.name, prior=Prior(space, belief / belief.sum()), errors=errors)
        guarantees.append(DistortionGuarantee(named, guarantee.distortion))
    if not guarantees and bounds.epsilon is None:
        guarantees = list(Bounds(distortion=0.0).distortion)
    return RelaxedProgram(finite, replace(bounds, distortion=tuple(guarantees)), float(weights.sum()))


def solve_relaxation(
    problem: PointProblem, bounds: Bounds, adversaries: Sequence[PointAdversary], options: SolveOptions
) -> tuple[RelaxedPart, ...]:
    """The parts of a relaxation, solved; empty where the time limit or the bounds leave nothing to prove.

    Args:
        problem: the problem for points.
        bounds: what is guaranteed.
        adversaries: those of the bounds, as arrays.
        options: time limit and progress; the tolerance is this module's.

    Raises:
        Infeasible: not even between these points is there a mechanism within the bounds.
    """
    count = len(problem.prior)
    part_count = -(-count // MOST_POINTS)
    if part_count > 1 and (bounds.maximises_distortion or bounds.epsilon is None):
        return ()  # a part of the prior says nothing about the distortion of all of it
    deadline = None if options.time_limit is None else monotonic() + options.time_limit
    region = problem.region
    lattice = _lattice(region, bounds.epsilon, -(-count // part_count))
    parts = []
    for number in range(part_count):
        left = None if deadline is None else deadline - monotonic()
        if left is not None and left <= 0:
            return ()
        members = np.arange(number, count, part_count, dtype=np.int64)
        program = relaxed_program(problem, bounds, adversaries, members, freeze_floats(lattice))
        if options.progress is not None:
            message = f"lower bound, part {number + 1} of {part_count}: {len(program.problem.space)} points"
            options.progress(Progress(job="points", done=number, message=message))
        limits = SolveOptions(tolerance=TOLERANCE, time_limit=left)
        try:
            mechanism = Design(program.problem, program.bounds, None, limits, best_effort=True).mechanism()
        except (Cancelled, Infeasible):
            raise
        except PrivacyGamesError:
            return ()
        if mechanism.dual_solution is None:
            return ()
        parts.append(RelaxedPart(members, freeze_floats(lattice), mechanism.dual_solution))
    return tuple(parts)


def _lattice(region: Region, epsilon: float | None, points: int) -> FloatArray:
    """The lattice beside so many points of the prior: as fine as epsilon asks for and the size allows."""
    wanted = FEWEST_STEPS if epsilon is None else ceil(min(max(region.lengths) * epsilon / LATTICE_STEP, MOST_POINTS))
    for longest in range(max(wanted, FEWEST_STEPS), FEWEST_STEPS - 1, -1):
        counts = tuple(max(2, count) for count in region.lattice_counts(longest))
        if prod(counts) + points <= MOST_POINTS:
            break
    return region.lattice(counts, edges=True)


def relaxation_bound(
    problem: PointProblem, bounds: Bounds, adversaries: Sequence[PointAdversary], parts: Sequence[RelaxedPart]
) -> float | None:
    """The bound that the dual solutions prove, computed anew: on the cost, or on the distortion that is maximised.

    Args:
        problem: the problem for points.
        bounds: what is guaranteed.
        adversaries: those of the bounds, as arrays.
        parts: of the relaxation; every point of the prior belongs to one part at most.
    """
    if not parts:
        return None
    members = np.concatenate([part.members for part in parts])
    if len(np.unique(members)) != len(members):
        return None
    if bounds.maximises_distortion and len(members) != len(problem.prior):
        return None
    total = 0.0
    for part in parts:
        program = relaxed_program(problem, bounds, adversaries, part.members, part.lattice)
        bound = proved_bound(_statement(program, part.dual_solution))
        if bounds.maximises_distortion or (bounds.worst_case and len(parts) == 1):
            return bound
        total = max(total, bound) if bounds.worst_case else total + program.share * bound
    return total * (1 - len(problem.prior) * 2.0**-50)


def _statement(program: RelaxedProgram, dual_solution: DualSolution) -> Statement:
    """The finite program as a statement; the weights are those of a constant output, and are not looked at."""
    problem = program.problem
    weights = np.zeros(problem.shape, dtype=np.int64)
    weights[:, 0] = 2**BITS
    return Statement(
        weights=weights,
        bits=BITS,
        prior=problem.prior.probabilities,
        cost=problem.cost,
        distance=problem.distance,
        distinguishability=problem.distinguishability,
        bounds=program.bounds,
        dual_solution=dual_solution,
    )
