"""Fewer answers: exact for those, with a bound against all."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.certificates import DualSolution
from privacygames.designer import design_bounds
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism, certify
from privacygames.problem import Bounds, Distortion, Problem
from privacygames.progress import Watcher
from privacygames.solvers import SolveOptions
from privacygames.spaces import Label, Numbers
from privacygames.validation import is_whole, of_kind

NEVER = 1000.0
"""How many times the dearest allowed output one counts that is never allowed, where outputs are chosen."""


def fewer_answers(
    problem: Problem,
    answers: int | Sequence[Label],
    *,
    epsilon: float | None = None,
    distortion: Distortion = None,
    within: float | None = None,
    worst_case: bool = False,
    time_limit: float | None = None,
    tolerance: float = 1e-6,
    progress: Watcher | None = None,
) -> Mechanism:
    """The best mechanism that gives only some of the answers: n secrets, but a block for each of few answers only.

    It keeps every promise, for the whole problem, and among mechanisms with these answers none costs less (to within
    ``tolerance``; the certificate's provenance says that least cost). The certificate's bound and gap are against *all*
    answers: no mechanism whatever costs less than the bound. It is loose by about what it costs to send the nearest
    of these answers instead of another.

    Args:
        problem: secrets, prior, cost and distances.
        answers: how many, to be chosen so that the nearest one costs little on average; or which.
        epsilon: as in :func:`privacygames.design`.
        distortion: as in :func:`privacygames.design`.
        within: as in :func:`privacygames.design`.
        worst_case: as in :func:`privacygames.design`.
        time_limit: as in :func:`privacygames.design`.
        tolerance: as in :func:`privacygames.design`.
        progress: as in :func:`privacygames.design`.
    """
    of_kind(problem, Problem, "the problem")
    bounds = Bounds.asked(epsilon=epsilon, distortion=distortion, within=within, worst_case=worst_case)
    chosen = _chosen(problem, answers)
    smaller = Problem(
        problem.prior,
        cost=problem.cost[chosen],
        distance=problem.distance,
        distinguishability=problem.distinguishability,
        observables=Numbers(range(len(chosen))),
    )
    options = SolveOptions(tolerance=tolerance, time_limit=time_limit, progress=progress)
    found = design_bounds(smaller, bounds, options=options)
    weights = np.zeros(problem.shape, dtype=found.weights.dtype)
    weights[:, chosen] = found.weights
    least = f"whose least cost is {found.certificate.bound:.6g} or more"
    origin = f"{len(chosen)} of {problem.shape[1]} answers, {least}: {found.certificate.provenance.solver}"
    return certify(problem, bounds, weights, _for_all(problem, chosen, found.dual_solution), origin=origin)


def _chosen(problem: Problem, answers: int | Sequence[Label]) -> IntArray:
    """The observables that may be answered, in their order."""
    count = problem.shape[1]
    if is_whole(answers):
        if not 1 <= int(answers) <= count:  # type: ignore[arg-type]
            raise InvalidProblem(f"answers is {answers}; it must be between 1 and {count}, or labels of observables")
        return _spread_out(problem.cost, problem.prior.probabilities, int(answers))  # type: ignore[arg-type]
    if isinstance(answers, str) or not isinstance(answers, Sequence) or not answers:
        raise InvalidProblem("answers must be a whole number or a list of observables' labels")
    return np.unique(problem.observables.indices(answers))


def _spread_out(cost: FloatArray, prior: FloatArray, count: int) -> IntArray:
    """Observables for which Σ_s π(s) min_{o chosen} c(o,s) is small: greedily, then each in turn for a better one."""
    cost = _finite(cost)
    found: list[int] = []
    for _ in range(count):
        found.append(_best_beside(found, cost, prior))
    for place in range(count if count < len(cost) else 0):
        others = found[:place] + found[place + 1 :]
        found[place] = _best_beside(others, cost, prior)
    return np.sort(np.array(found, dtype=np.int64))


def _finite(cost: FloatArray) -> FloatArray:
    """Costs for a heuristic, where what is never allowed counts as much dearer than all else."""
    return np.where(np.isinf(cost), NEVER * (float(cost[np.isfinite(cost)].max(initial=0.0)) or 1.0), cost)


def _best_beside(chosen: list[int], cost: FloatArray, prior: FloatArray) -> int:
    """The observable that is best to have beside those chosen already."""
    left = cost[chosen].min(axis=0, initial=np.inf)
    after = np.minimum(cost, left) @ prior
    after[chosen] = np.inf
    return int(after.argmin())


def _for_all(problem: Problem, chosen: IntArray, dual_solution: DualSolution | None) -> DualSolution | None:
    """Multipliers for every observable: one that is not chosen borrows those of the chosen one most like it.

    With those of o', the residual of o is that of o' and π(s) (c(o,s) − c(o',s)): what is lost is where o is cheaper.
    """
    if dual_solution is None:
        return None
    prior, cost = problem.prior.probabilities, _finite(problem.cost)
    like = np.empty(len(cost), dtype=np.int64)
    like[chosen] = np.arange(len(chosen))
    for other in np.setdiff1d(np.arange(len(cost)), chosen):
        like[other] = int((np.maximum(cost[chosen] - cost[other], 0.0) @ prior).argmin())
    return replace(dual_solution, like=dual_solution.like[like])
