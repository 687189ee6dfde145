"""Programs of cones against linear programs written out for HiGHS, which share no code with the method.

In one dimension the cones are linear, so the two optima are equal. In two, polygons of many directions inside and
around the cones bracket the optimum.
"""

from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array

import privacygames as pg
from privacygames.solvers import ConeProgram, ConeSolution, CostLimit, WorstCost, solve_cone_program

Array = NDArray[np.float64]
LINE, PLANE = "line", "plane"


def neighbours(shape: tuple[int, ...]) -> tuple[Any, Any, Any]:
    """Cones |difference to the right and upper neighbour| ≤ value, and the same for the left and lower ones."""
    count = int(np.prod(shape))
    index = np.arange(count).reshape(shape)
    value: list[Array] = []
    along: tuple[list[Array], list[Array]] = ([], [])
    for step in (1, -1):
        for place in np.ndindex(shape):
            row = np.zeros(count)
            row[index[place]] = 1.0
            value.append(row)
            for axis in range(2):
                slope = np.zeros(count)
                if axis < len(shape):
                    other = list(place)
                    other[axis] += step
                    if 0 <= other[axis] < shape[axis]:
                        slope[index[place]], slope[index[tuple(other)]] = -step, step
                along[axis].append(slope)
    return csr_array(np.array(value)), csr_array(np.array(along[0])), csr_array(np.array(along[1]))


def program(
    seed: int,
    *,
    outputs: int = 4,
    shape: tuple[int, ...] = (5,),
    epsilon: float | None = 0.7,
    adversaries: tuple[float, ...] = (),
    **more: Any,
) -> ConeProgram:
    """A random program; each adversary's distortion is given as a share of the largest possible one."""
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape))
    points = np.stack(np.unravel_index(np.arange(count), shape), axis=1) + 0.2 * rng.random((count, len(shape)))
    released = rng.random((outputs, len(shape))) * np.array(shape)
    prior = rng.dirichlet(np.ones(count))
    losses = np.linalg.norm(released[:, None] - points, axis=2)
    value, along_x, along_y = neighbours(shape)
    empty = csr_array((count, count))
    rows = (csr_array(np.eye(count)), empty, empty) if epsilon is None else (epsilon * value, along_x, along_y)
    tables, distortions = [], []
    for share in adversaries:
        believed = rng.dirichlet(np.ones(count))
        guesses = rng.random((6, len(shape))) * np.array(shape)
        tables.append(believed * np.linalg.norm(guesses[:, None] - points, axis=2))
        distortions.append(share * float(tables[-1].sum(axis=1).min()))
    return ConeProgram(
        prior * losses, rows, errors=tuple(tables), distortions=tuple(d for d in distortions if d > 0), **more
    )


def worst(seed: int, given: ConeProgram, at_most: float | None = None) -> WorstCost:
    """The costs at points between two unknowns each."""
    rng = np.random.default_rng(seed)
    blocks, unknowns = given.costs.shape
    basis = np.zeros((unknowns - 1, unknowns))
    share = rng.random(unknowns - 1)
    basis[np.arange(unknowns - 1), np.arange(unknowns - 1)] = share
    basis[np.arange(unknowns - 1), np.arange(1, unknowns)] = 1 - share
    return WorstCost(csr_array(basis), rng.random((blocks, unknowns - 1)), at_most)


def written_out(given: ConeProgram, directions: Array | None = None, factor: float = 1.0) -> tuple[float | None, Array]:
    """The optimum by HiGHS and its v, with u·(second, third) ≤ factor · first for some directions u."""
    blocks, unknowns = given.costs.shape
    adversaries = len(given.errors)
    size = blocks * unknowns + blocks * adversaries + 1
    directions = np.array([[1.0, 0.0], [-1.0, 0.0]]) if directions is None else directions
    first, second, third = (part.toarray() for part in given.rows)
    upper: list[Array] = []
    at_most: list[float] = []

    def below(limit: float, v: Array | None = None, x: tuple[int, int, float] | None = None, tau: float = 0.0) -> None:
        row = np.zeros(size)
        if v is not None:
            row[: blocks * unknowns] = v.ravel()
        if x is not None:
            row[blocks * unknowns + x[0] * blocks + x[1]] = x[2]
        row[-1] = tau
        upper.append(row)
        at_most.append(limit)

    for block in range(blocks):
        for u in directions:
            for row in u[0] * second + u[1] * third - factor * first:
                whole = np.zeros((blocks, unknowns))
                whole[block] = row
                below(0.0, whole)
        for adversary, table in enumerate(given.errors):
            for guess in table:
                whole = np.zeros((blocks, unknowns))
                whole[block] = -guess
                below(0.0, whole, (adversary, block, 1.0))
    skipped = int(given.maximises_distortion)
    for adversary in range(skipped, adversaries):
        row = np.zeros(size)
        row[blocks * unknowns + adversary * blocks :][:blocks] = -1.0
        upper.append(row)
        at_most.append(-given.distortions[adversary - skipped])
    if given.cost_limit is not None:
        below(given.cost_limit.at_most, given.cost_limit.costs)
    objective = np.zeros(size)
    objective[: blocks * unknowns] = given.costs.ravel()
    if given.maximises_distortion:
        objective[blocks * unknowns :][:blocks] = -1.0
    if given.worst_cost is not None:
        limit = given.worst_cost.at_most
        for point, basis in enumerate(given.worst_cost.basis.toarray()):
            below(limit or 0.0, given.worst_cost.costs[:, [point]] * basis, tau=-1.0 if limit is None else 0.0)
        objective[-1] = float(limit is None)
    sums = np.hstack([np.tile(np.eye(unknowns), blocks), np.zeros((unknowns, size - blocks * unknowns))])
    bounds = [(0, None)] * (blocks * unknowns) + [(None, None)] * (size - blocks * unknowns - 1) + [(0, None)]
    result = linprog(objective, np.array(upper), at_most, sums, np.ones(unknowns), bounds, method="highs")
    if result.status != 0:
        return None, np.zeros((0, 0))
    sign = -1.0 if given.maximises_distortion else 1.0
    return sign * float(result.fun), result.x[: blocks * unknowns].reshape(blocks, unknowns)


def violation(given: ConeProgram, v: Array) -> float:
    """By how much v violates any condition at most."""
    first, second, third = (v @ part.toarray().T for part in given.rows)
    amounts = [-v.min(), np.abs(v.sum(axis=0) - 1).max(), (np.hypot(second, third) - first).max()]
    bounded = given.errors[int(given.maximises_distortion) :]
    for table, distortion in zip(bounded, given.distortions, strict=True):
        amounts.append(distortion - (v @ table.T).min(axis=1).sum())
    if given.cost_limit is not None:
        amounts.append((given.cost_limit.costs * v).sum() - given.cost_limit.at_most)
    if given.worst_cost is not None and given.worst_cost.at_most is not None:
        amounts.append(point_costs(given, v).max() - given.worst_cost.at_most)
    return float(max(amounts))


def point_costs(given: ConeProgram, v: Array) -> Array:
    assert given.worst_cost is not None
    return np.asarray((given.worst_cost.costs * (v @ given.worst_cost.basis.toarray().T)).sum(axis=0))


def objective(given: ConeProgram, v: Array) -> float:
    cost = float((given.costs * v).sum())
    if given.maximises_distortion:
        return float((v @ given.errors[0].T).min(axis=1).sum()) - cost
    if given.worst_cost is not None and given.worst_cost.at_most is None:
        return cost + float(point_costs(given, v).max())
    return cost


def check(given: ConeProgram, tolerance: float = 1e-8) -> ConeSolution:
    """Solve, and compare with HiGHS and with the conditions written out."""
    optimum, _ = written_out(given)
    assert optimum is not None
    solution = solve_cone_program(given, tolerance=tolerance)
    assert solution.finished
    assert solution.value == pytest.approx(optimum, rel=1e-6, abs=1e-9)
    assert solution.value == pytest.approx(objective(given, solution.v), rel=1e-9)
    sign = -1.0 if given.maximises_distortion else 1.0
    assert sign * solution.bound <= sign * optimum + 1e-9 * abs(optimum)
    assert violation(given, solution.v) <= 1e-9
    return solution


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("epsilon", "adversaries"),
    [(0.7, ()), (None, (0.8,)), (0.7, (0.9,)), (0.7, (0.9, 0.85)), (None, (0.7, 0.8, 0.9))],
    ids=["epsilon", "distortion", "joint", "two adversaries", "three adversaries"],
)
def test_the_cheapest(seed: int, epsilon: float | None, adversaries: tuple[float, ...]) -> None:
    solution = check(program(seed, epsilon=epsilon, adversaries=adversaries))
    assert len(solution.alpha) == len(adversaries)
    assert (solution.alpha >= 0).all()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("epsilon", [0.7, None])
def test_the_most_distortion_within_a_cost_limit(seed: int, epsilon: float | None) -> None:
    given = program(seed, epsilon=epsilon, adversaries=(0.0, 0.5), maximises_distortion=True)
    least, _ = written_out(replace(given, errors=given.errors[1:], maximises_distortion=False))
    assert least is not None
    limit = CostLimit(given.costs, 0.7 * least + 0.3 * float(given.costs.sum(axis=1).min()))
    given = replace(given, costs=np.zeros_like(given.costs), cost_limit=limit)
    solution = check(given)
    assert solution.alpha[0] == 1.0
    assert solution.cost_dual > 0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_a_cost_limit_beside_epsilon(seed: int, share: float) -> None:
    """A second cost is limited between its least value and its value where the first one is cheapest."""
    given = program(seed, adversaries=(0.7,))
    other = np.random.default_rng(seed + 50).random(given.costs.shape)
    least, _ = written_out(replace(given, costs=other))
    _, cheapest = written_out(given)
    assert least is not None
    limit = (1 - share) * least + share * float((cheapest * other).sum())
    solution = check(replace(given, cost_limit=CostLimit(other, limit)))
    assert solution.cost_dual > 0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("adversaries", [(), (0.8,)])
@pytest.mark.parametrize("costs", [0.0, 1e-3])
def test_the_worst_cost_is_minimised(seed: int, adversaries: tuple[float, ...], costs: float) -> None:
    given = program(seed, adversaries=adversaries)
    given = replace(given, costs=costs * given.costs, worst_cost=worst(seed, given))
    solution = check(given)
    assert solution.point_duals.sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("share", [0.02, 0.4])
def test_the_worst_cost_is_limited(seed: int, share: float) -> None:
    given = program(seed, adversaries=(0.8,))
    least, _ = written_out(replace(given, costs=0 * given.costs, worst_cost=worst(seed, given)))
    _, cheapest = written_out(given)
    assert least is not None
    freely = float(point_costs(replace(given, worst_cost=worst(seed, given)), cheapest).max())
    limited = replace(given, worst_cost=worst(seed, given, (1 - share) * least + share * freely))
    solution = check(limited)
    assert solution.point_duals.max() > 0


def test_the_worst_cost_is_minimised_within_a_cost_limit() -> None:
    given = program(3)
    limit = CostLimit(given.costs, 1.1 * solve_cone_program(given, tolerance=1e-8).value)
    check(replace(given, costs=0 * given.costs, cost_limit=limit, worst_cost=worst(3, given)))


@pytest.mark.parametrize("missing", [1e-4, 0.1, 0.9])
@pytest.mark.parametrize("kind", ["cost", "worst"])
def test_limits_below_the_least_are_proved_infeasible(kind: str, missing: float) -> None:
    given = program(1, adversaries=(0.8,))
    if kind == "cost":
        least, _ = written_out(given)
        assert least is not None
        given = replace(given, cost_limit=CostLimit(given.costs, (1 - missing) * least))
    else:
        least, _ = written_out(replace(given, costs=0 * given.costs, worst_cost=worst(1, given)))
        assert least is not None
        given = replace(given, worst_cost=worst(1, given, (1 - missing) * least))
    assert written_out(given)[0] is None
    with pytest.raises(pg.Infeasible) as caught:
        solve_cone_program(given, tolerance=1e-8)
    assert (1 - missing) * least <= caught.value.limit <= least * (1 + 1e-9)


def test_more_distortion_than_the_most_is_infeasible() -> None:
    given = program(1, adversaries=(1.001,))
    with pytest.raises(pg.Infeasible) as caught:
        solve_cone_program(given, tolerance=1e-8)
    assert caught.value.limit == pytest.approx(given.distortions[0] / 1.001)


@pytest.mark.parametrize("kind", ["cheapest", "joint", "worst"])
def test_polygons_bracket_the_plane(kind: str) -> None:
    given = program(5, outputs=5, shape=(3, 4), adversaries=() if kind == "cheapest" else (0.9,))
    if kind == "worst":
        given = replace(given, worst_cost=worst(5, given))
    angles = 2 * np.pi * np.arange(48) / 48
    directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    lower, _ = written_out(given, directions)
    upper, _ = written_out(given, directions, float(np.cos(np.pi / 48)))
    assert lower is not None
    assert upper is not None
    solution = solve_cone_program(given, tolerance=1e-8)
    assert lower * (1 - 1e-7) <= solution.value <= upper * (1 + 1e-7)
    assert solution.bound <= upper
    assert violation(given, solution.v) <= 1e-9


@given(
    seed=st.integers(0, 10_000),
    outputs=st.integers(2, 5),
    shape=st.sampled_from([(2,), (6,), (2, 3)]),
    epsilon=st.sampled_from([None, 0.05, 0.7, 4.0]),
    shares=st.lists(st.floats(0.05, 0.99), max_size=2),
    kind=st.sampled_from(["average", "maximised", "worst", "limited"]),
    scale=st.sampled_from([1e-4, 1.0, 1e5]),
)
@settings(max_examples=60, deadline=None)
def test_the_bound_brackets_the_value(
    seed: int,
    outputs: int,
    shape: tuple[int, ...],
    epsilon: float | None,
    shares: list[float],
    kind: str,
    scale: float,
) -> None:
    """Value ≥ bound ≥ value (1 − tolerance), and v satisfies every condition."""
    maximised = kind == "maximised"
    problem = program(
        seed,
        outputs=outputs,
        shape=shape,
        epsilon=epsilon,
        adversaries=(0.0, *shares) if maximised else tuple(shares),
        maximises_distortion=maximised,
    )
    if maximised:  # an average cost between those of the cheapest and of the constant mechanism
        limit = CostLimit(
            problem.costs, float(0.9 * problem.costs.mean(axis=0).sum() + 0.1 * problem.costs.sum(1).min())
        )
        problem = replace(problem, costs=np.zeros_like(problem.costs), cost_limit=limit)
    else:
        problem = replace(problem, costs=scale * (problem.costs + 0.01))
    if kind in ("worst", "limited"):
        problem = replace(problem, worst_cost=worst(seed, problem))
    if kind == "limited":
        uniform = np.full(problem.costs.shape, 1 / outputs)
        problem = replace(problem, worst_cost=worst(seed, problem, float(point_costs(problem, uniform).max())))
    tolerance = 1e-6
    solution = solve_cone_program(problem, tolerance=tolerance)
    value, bound = sorted((solution.value, solution.bound), reverse=not maximised)
    assert (value, bound) == pytest.approx((solution.value, solution.bound), rel=1e-12)
    assert abs(value - bound) <= tolerance * abs(value) * (1 + 1e-9)
    assert solution.value == pytest.approx(objective(problem, solution.v), rel=1e-9)
    assert violation(problem, solution.v) <= 1e-9


def test_a_time_limit_returns_a_feasible_mechanism_and_its_gap() -> None:
    given = program(2, outputs=6, shape=(4, 4), adversaries=(0.8,))
    optimum = solve_cone_program(given, tolerance=1e-8).value
    solution = solve_cone_program(given, tolerance=1e-8, time_limit=0.0)
    assert not solution.finished
    assert violation(given, solution.v) <= 1e-9
    assert solution.bound <= optimum < solution.value


def test_a_time_limit_before_any_mechanism_meets_the_limits() -> None:
    given = program(2)
    limit = CostLimit(given.costs, 1.001 * solve_cone_program(given, tolerance=1e-8).value)
    with pytest.raises(pg.SolveFailed, match="time limit") as caught:
        solve_cone_program(replace(given, cost_limit=limit), tolerance=1e-8, time_limit=0.0)
    assert caught.value.status is pg.Status.TIME_LIMIT


def test_more_rows_than_are_worked_on_at_a_time() -> None:
    given = program(7, shape=(40,), epsilon=0.5)
    check(replace(given, costs=0 * given.costs, worst_cost=worst(7, given)))


def test_a_constant_cost_and_a_single_output() -> None:
    given = program(1, outputs=3)
    constant = solve_cone_program(replace(given, costs=np.full_like(given.costs, 0.3)), tolerance=1e-6)
    assert constant.value == pytest.approx(0.3 * given.costs.shape[1])
    nothing = solve_cone_program(replace(given, costs=0 * given.costs), tolerance=1e-6)
    assert nothing.value == 0
    assert nothing.bound == pytest.approx(0, abs=1e-12)
    alone = program(1, outputs=1)
    assert solve_cone_program(alone, tolerance=1e-6).value == pytest.approx(alone.costs.sum())


@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed: pip install 'privacygames[gpu]'")
@pytest.mark.parametrize("adversaries", [(), (0.8, 0.9)])
def test_the_device_gives_the_same_optimum(adversaries: tuple[float, ...]) -> None:
    given = program(4, shape=(3, 4), adversaries=adversaries)
    given = replace(given, worst_cost=worst(4, given))
    host, device = (solve_cone_program(given, tolerance=1e-8, device=name) for name in ("host", "cpu"))
    assert device.value == pytest.approx(host.value, rel=1e-7)


def test_a_device_without_pytorch_is_refused() -> None:
    with pytest.raises(pg.InvalidProblem):
        solve_cone_program(program(1), tolerance=1e-6, device="tpu")
