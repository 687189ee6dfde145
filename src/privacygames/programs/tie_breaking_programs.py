"""Programs for a second objective among the mechanisms that cost (almost) the least."""

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.problem import Bounds, Problem
from privacygames.programs.constraint_rows import (
    adversary_rows,
    expected_cost,
    numbered,
    ratio_rows,
    row_sums,
    worst_cost_rows,
)
from privacygames.programs.linear_program import LinearProgram, Rows, assemble


def equal_cost_program(problem: Problem, bounds: Bounds, cost: float) -> LinearProgram:
    """Every mechanism with these guarantees whose average cost is at most ``cost``; it minimises nothing."""
    objective, families = _equal_cost(problem, bounds, cost)
    return assemble(objective, *families, free=tuple(objective)[1:])


def least_worst_cost_program(problem: Problem, bounds: Bounds, cost: float) -> LinearProgram:
    r"""The least cost of the worst secret among mechanisms whose average cost is at most ``cost``.

    .. math:: \min_{p,y} y \quad\text{s.t.}\quad \sum_o p(o|s)\,c(o,s) ≤ y\ ∀s;\quad
        \sum_{s,o} π(s)\,p(o|s)\,c(o,s) ≤ C;\quad \text{the guarantees}

    Size: as the design program's, one variable and n + 1 rows more.
    """
    objective, families = _equal_cost(problem, bounds, cost)
    return assemble(objective | {"y": np.ones(1)}, *families, worst_cost_rows(problem), free=tuple(objective)[1:])


def largest_entropy_program(
    problem: Problem, bounds: Bounds, cost: float, observable: IntArray, surprise: FloatArray
) -> LinearProgram:
    r"""An upper bound on the posterior entropy of mechanisms whose average cost is at most ``cost``.

    .. math:: \max_{p,t} \sum_o t(o) \quad\text{s.t.}\quad t(o) ≤ \sum_s π(s)\,p(o|s)\,(-\log_2 q_k(s))
        \text{ for every }k\text{ listed for }o;\quad \text{cost} ≤ C;\quad \text{the guarantees}

    Posterior entropy is the least expected surprise over all beliefs q(·|o), so any beliefs bound it from above.

    Args:
        problem: the problem.
        bounds: the guarantees.
        cost: C.
        observable: which observable each belief is for.
        surprise: −log₂ q_k(s), (beliefs, secrets), finite.
    """
    from scipy.sparse import coo_array, csr_array

    secrets, observables = problem.shape
    count = len(observable)
    columns = np.arange(secrets) * observables + observable[:, None]
    rows = np.repeat(np.arange(count), secrets)
    values = (problem.prior.probabilities * surprise).ravel()
    expected = coo_array((values, (rows, columns.ravel())), shape=(count, secrets * observables)).tocsr()
    ties = csr_array((-np.ones(count), (np.arange(count), observable)), shape=(count, observables))
    beliefs = Rows("beliefs", {"p": expected, "t": ties}, np.zeros(count), np.full(count, np.inf))
    objective, families = _equal_cost(problem, bounds, cost)
    return assemble(objective | {"t": -np.ones(observables)}, *families, beliefs, free=(*tuple(objective)[1:], "t"))


def _equal_cost(problem: Problem, bounds: Bounds, cost: float) -> tuple[dict[str, FloatArray], list[Rows | None]]:
    """The variables and rows shared by all: the guarantees and the limit on the average cost, scaled to 1."""
    from scipy.sparse import csr_array

    secrets, observables = problem.shape
    scale = cost or 1.0
    average = csr_array(expected_cost(problem)[None, :] / scale)
    limit = Rows("average", {"p": average}, np.array([-np.inf]), np.array([cost / scale]))
    objective = {"p": np.zeros(secrets * observables)}
    families: list[Rows | None] = [row_sums(problem), limit, ratio_rows(problem, bounds)]
    objective |= {numbered("x", position): np.zeros(observables) for position in range(len(bounds.distortion))}
    return objective, [*families, *adversary_rows(problem, bounds)]
