"""A second objective at equal cost, against programs written out by hand."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog, minimize

import privacygames as pg
from exact import holds_exactly
from privacygames import metrics
from support import Case, cases, problem_of

Array = NDArray[np.float64]

COUNTS = [1, 5, 2, 4, 0, 0, 3, 1, 1, 8, 1, 1, 0, 2, 2, 1]


def rows_by_hand(problem: pg.Problem, cost: float, **bounds: Any) -> tuple[Array, Array, Array]:
    """A z ≤ b and the row sums for z = (p, x, y): the promises, the limit on the average cost, and y."""
    n, m = problem.shape
    prior, d, separation = problem.prior.probabilities, problem.distance, problem.distinguishability
    size = n * m + m + 1
    rows, limits = [], []

    def add(entries: dict[int, float], limit: float) -> None:
        row = np.zeros(size)
        for position, value in entries.items():
            row[position] += value
        rows.append(row)
        limits.append(limit)

    add({s * m + o: prior[s] * problem.cost[o, s] for s in range(n) for o in range(m)}, cost)
    for s in range(n):
        add({s * m + o: problem.cost[o, s] for o in range(m)} | {size - 1: -1.0}, 0.0)
    for o in range(m):
        for guess in range(n):
            add({n * m + o: 1.0} | {s * m + o: -prior[s] * d[guess, s] for s in range(n)}, 0.0)
    add({n * m + o: -1.0 for o in range(m)}, -bounds.get("distortion", 0.0))
    if "epsilon" in bounds:
        for s in range(n):
            for t in range(n):
                if s != t and separation[s, t] <= bounds.get("within", np.inf):
                    power = bounds["epsilon"] * (1.0 if "within" in bounds else separation[s, t])
                    for o in range(m):
                        add({s * m + o: 1.0, t * m + o: -np.exp(power)}, 0.0)
    sums = np.zeros((n, size))
    for s in range(n):
        sums[s, s * m : (s + 1) * m] = 1.0
    return np.array(rows), np.array(limits), sums


def surprise_by_hand(table: Array, prior: Array) -> float:
    """H(S|O) = −Σ_{s,o} π p log₂(π p / P(o)), term by term."""
    total = 0.0
    for o in range(table.shape[1]):
        chance = float(prior @ table[:, o])
        for s in range(len(prior)):
            joint = prior[s] * max(table[s, o], 0.0)
            if joint > 0:
                total -= joint * np.log2(joint / chance)
    return total


@given(cases(reverse=False, largest=4))
@settings(max_examples=60)
def test_the_least_worst_cost_at_equal_cost(case: Case) -> None:
    bounds = {name: value for name, value in case.bounds.items() if name != "worst_case"}
    problem = case.problem
    found = pg.break_ties(problem, "worst_cost", slack=1e-4, **bounds)
    least = found.initial.certificate.cost
    limit = least + 1e-4 * max(least, 1e-6 * float(problem.cost.max()))
    rows, limits, sums = rows_by_hand(problem, limit, **bounds)
    n, m = problem.shape
    free = [(0, None)] * (n * m) + [(None, None)] * m + [(0, None)]
    by_hand = linprog(np.eye(rows.shape[1])[-1], rows, limits, sums, np.ones(n), free, method="highs-ds")
    assert by_hand.status == 0
    assert found.bound == pytest.approx(by_hand.fun, abs=1e-6)
    assert found.value == pytest.approx(by_hand.fun, rel=1e-4, abs=1e-6)
    assert found.value <= found.initial_value
    assert found.mechanism.certificate.cost <= limit * (1 + 1e-6) + 1e-9
    assert found.mechanism.certificate.bounds == pg.Bounds(**bounds)
    assert holds_exactly(found.mechanism.statement)


@pytest.mark.parametrize("bounds", [{"distortion": 0.5}, {"epsilon": 0.7}, {"epsilon": 1.5, "distortion": 0.6}])
def test_the_most_entropy_at_equal_cost_as_a_general_solver_finds_it(bounds: dict[str, float]) -> None:
    distance = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    problem = problem_of([0.5, 0.2, 0.3], 1 - np.eye(3), distance)
    found = pg.break_ties(problem, "entropy", slack=1e-3, **bounds)
    limit = found.initial.certificate.cost * (1 + 1e-3)
    rows, limits, sums = rows_by_hand(problem, limit, **bounds)
    start = np.concatenate([found.initial.probabilities.ravel(), np.zeros(3), [1.0]])
    by_hand = minimize(
        lambda z: -surprise_by_hand(z[:9].reshape(3, 3), problem.prior.probabilities),
        start,
        constraints=[
            {"type": "ineq", "fun": lambda z: limits - rows @ z},
            {"type": "eq", "fun": lambda z: sums @ z - 1},
        ],
        bounds=[(1e-12, 1)] * 9 + [(None, None)] * 4,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert found.bound >= -by_hand.fun - 1e-6
    assert found.value == pytest.approx(-by_hand.fun, abs=2e-4)
    assert found.value == pytest.approx(metrics.posterior_entropy(found.mechanism, problem.prior))
    assert found.initial_value <= found.value <= found.bound + 1e-7


@pytest.mark.parametrize(
    ("cost", "bounds", "gain"),
    [
        ("euclidean", {"distortion": 0.8}, 0.1),  # degenerate: many mechanisms, very different entropies
        ("hamming", {"distortion": 0.8}, 0.1),
        ("hamming", {"epsilon": 1.0}, 0.0),
    ],
)
def test_equal_cost_hides_very_different_mechanisms(cost: str, bounds: dict[str, float], gain: float) -> None:
    problem = pg.Problem(pg.Prior.from_counts(pg.Grid(4, 4), COUNTS), cost=cost)
    found = pg.break_ties(problem, "entropy", **bounds)
    assert found.value >= found.initial_value + gain
    assert found.bound - found.value <= 1e-3
    gap = found.mechanism.certificate.gap
    assert gap is not None
    assert gap <= 3e-6
    assert holds_exactly(found.mechanism.statement)
    assert "posterior entropy, bits" in str(found)


@given(cases(reverse=False, largest=4), st.integers(0, 2**32))
@settings(max_examples=25)
def test_no_mechanism_of_equal_cost_exceeds_the_limit(case: Case, seed: int) -> None:
    """Whatever the problem: zeros, equal secrets, impossible secrets."""
    bounds = {name: value for name, value in case.bounds.items() if name != "worst_case"}
    found = pg.break_ties(case.problem, "entropy", slack=1e-3, **bounds)
    assert found.initial_value <= found.value <= found.bound + 1e-6
    other = pg.break_ties(case.problem, "worst_cost", slack=1e-3, **bounds).mechanism.probabilities
    share = np.random.default_rng(seed).uniform()
    mixed = share * other + (1 - share) * found.mechanism.probabilities
    assert surprise_by_hand(mixed, case.problem.prior.probabilities) <= found.bound + 1e-6


def test_where_all_cost_the_same_nothing_need_be_revealed() -> None:
    problem = problem_of([0.5, 0.25, 0.25], np.ones((3, 3)), 1 - np.eye(3))
    found = pg.break_ties(problem, "entropy", epsilon=2.0)
    assert found.value == pytest.approx(1.5, abs=1e-4)
    assert found.bound == pytest.approx(1.5, abs=1e-4)


def test_what_does_not_fit_is_refused() -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(8, 8)))
    with pytest.raises(pg.InvalidProblem, match="at most 2500 are allowed"):
        pg.break_ties(problem, "entropy", epsilon=1.0)
    with pytest.raises(pg.InvalidProblem, match="choose from 'entropy', 'worst_cost'"):
        pg.break_ties(problem, "cost", epsilon=1.0)  # type: ignore[arg-type]
    with pytest.raises(pg.InvalidProblem, match="slack is 0"):
        pg.break_ties(problem, "worst_cost", epsilon=1.0, slack=0)
