"""The optimal mechanism with a subset of the outputs, with a bound for all outputs."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.certificates import DualSolution
from privacygames.designer import design_bounds
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism, certify
from privacygames.problem import Bounds, Distortion, Problem
from privacygames.progress import ProgressCallback
from privacygames.solvers import SolveOptions
from privacygames.spaces import Label, Numbers
from privacygames.validation import is_integer, require_instance

INFINITE_COST_FACTOR = 1000.0
"""Multiple of the largest finite cost that replaces an infinite one while outputs are selected."""


def fewer_outputs(
    problem: Problem,
    outputs: int | Sequence[Label],
    *,
    epsilon: float | None = None,
    distortion: Distortion = None,
    within: float | None = None,
    worst_case: bool = False,
    time_limit: float | None = None,
    tolerance: float = 1e-6,
    progress: ProgressCallback | None = None,
) -> Mechanism:
    """Optimal mechanism that uses only a subset of the outputs, for problems too large to solve with all of them.

    Every guarantee holds for the whole problem, and no mechanism with the same outputs costs less, to within
    ``tolerance``; the provenance of the certificate states this lowest cost. The certificate's bound and gap refer to
    *all* outputs: no mechanism at all costs less than the bound. The bound is loose by about the cost of releasing the
    nearest output of the subset instead of another one.

    Args:
        problem: secrets, prior, cost and distances.
        outputs: their number, selected so that the nearest one costs little on average; or their labels.
        epsilon: as in :func:`privacygames.design`.
        distortion: as in :func:`privacygames.design`.
        within: as in :func:`privacygames.design`.
        worst_case: as in :func:`privacygames.design`.
        time_limit: as in :func:`privacygames.design`.
        tolerance: as in :func:`privacygames.design`.
        progress: as in :func:`privacygames.design`.

    >>> grid = pg.Grid(columns=3, rows=2, width=3.0, height=2.0)
    >>> problem = pg.Problem(pg.Prior.uniform(grid), cost="euclidean")
    >>> mechanism = pg.approximations.fewer_outputs(problem, ["cell-1", "cell-4"], epsilon=1.0)
    >>> mechanism.sample("cell-0") in ("cell-1", "cell-4")
    True
    """
    require_instance(problem, Problem, "the problem")
    bounds = Bounds(epsilon=epsilon, distortion=distortion, within=within, worst_case=worst_case)
    selected = _select_outputs(problem, outputs)
    reduced_problem = Problem(
        problem.prior,
        cost=problem.cost[selected],
        distance=problem.distance,
        distinguishability=problem.distinguishability,
        observables=Numbers(range(len(selected))),
    )
    options = SolveOptions(tolerance=tolerance, time_limit=time_limit, progress=progress)
    reduced = design_bounds(reduced_problem, bounds, options=options)
    weights = np.zeros(problem.shape, dtype=reduced.weights.dtype)
    weights[:, selected] = reduced.weights
    note = f"whose least cost is {reduced.certificate.bound:.6g} or more"
    origin = f"{len(selected)} of {problem.shape[1]} outputs, {note}: {reduced.certificate.provenance.solver}"
    return certify(problem, bounds, weights, _extend_duals(problem, selected, reduced.dual_solution), origin=origin)


def _select_outputs(problem: Problem, outputs: int | Sequence[Label]) -> IntArray:
    """The positions of the outputs to use, in ascending order."""
    available = problem.shape[1]
    if is_integer(outputs):
        count = int(outputs)  # type: ignore[arg-type]
        if not 1 <= count <= available:
            raise InvalidProblem(f"outputs is {count}; it must be between 1 and {available}, or labels of observables")
        return _representatives(problem.cost, problem.prior.probabilities, count)
    if isinstance(outputs, str) or not isinstance(outputs, Sequence) or not outputs:
        raise InvalidProblem("outputs must be a whole number or a list of labels of observables")
    return np.unique(problem.observables.indices(outputs))


def _representatives(cost: FloatArray, prior: FloatArray, count: int) -> IntArray:
    """A heuristic for the k-median problem min Σ_s π(s) min_o c(o,s) over sets of ``count`` outputs o.

    Greedy addition, then one round that exchanges each output for the best alternative.
    """
    cost = _finite(cost)
    selected: list[int] = []
    for _ in range(count):
        selected.append(_best_addition(selected, cost, prior))
    for position in range(count if count < len(cost) else 0):
        others = selected[:position] + selected[position + 1 :]
        selected[position] = _best_addition(others, cost, prior)
    return np.sort(np.array(selected, dtype=np.int64))


def _finite(cost: FloatArray) -> FloatArray:
    """The costs with a large finite value in place of ∞, for the heuristics."""
    return np.where(
        np.isinf(cost), INFINITE_COST_FACTOR * (float(cost[np.isfinite(cost)].max(initial=0.0)) or 1.0), cost
    )


def _best_addition(selected: list[int], cost: FloatArray, prior: FloatArray) -> int:
    """The output whose addition to those selected reduces the objective most."""
    cost_so_far = cost[selected].min(axis=0, initial=np.inf)
    objective = np.minimum(cost, cost_so_far) @ prior
    objective[selected] = np.inf
    return int(objective.argmin())


def _extend_duals(problem: Problem, selected: IntArray, duals: DualSolution | None) -> DualSolution | None:
    """Dual values for every output: an output that was not selected gets those of the most similar selected one.

    With the dual values of o', the residual of o is that of o' plus π(s) (c(o,s) − c(o',s)): the bound is weaker
    where o is cheaper than o'.
    """
    if duals is None:
        return None
    prior, cost = problem.prior.probabilities, _finite(problem.cost)
    most_similar = np.empty(len(cost), dtype=np.int64)
    most_similar[selected] = np.arange(len(selected))
    for other in np.setdiff1d(np.arange(len(cost)), selected):
        most_similar[other] = int((np.maximum(cost[selected] - cost[other], 0.0) @ prior).argmin())
    return replace(duals, output_rows=duals.output_rows[most_similar])
