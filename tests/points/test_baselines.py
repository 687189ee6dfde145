"""Known mechanisms for points: masses of Laplace noise, remapping, and grids that points are snapped to."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.spatial import cKDTree
from scipy.special import k1

import privacygames as pg
from privacygames import Area, Interval, PointPrior, PointProblem, points

Array = NDArray[np.float64]
TOWN = Area(4.0, 3.0)


def problem_with(outputs: Any, region: Any = TOWN, prior: Any = None, **arguments: Any) -> PointProblem:
    return PointProblem(PointPrior(region, outputs if prior is None else prior), outputs, **arguments)


def far_from(points_: Array, outputs: Array) -> Array:
    return np.asarray(np.hypot(*(points_[:, None] - outputs).transpose(2, 0, 1)))


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_masses_are_those_of_the_rectangles_of_a_grid(epsilon: float) -> None:
    grid = pg.Grid(4, 3, width=4.0, height=3.0)
    exact = pg.baselines.planar_laplace(pg.Problem(pg.Prior.uniform(grid), cost="euclidean"), epsilon).probabilities
    ours = points.planar_laplace(problem_with(grid, prior=grid.centres), epsilon).probabilities(grid.centres)
    assert np.abs(ours / exact - 1).max() < 1e-7 * max(epsilon, 1.0)
    assert np.abs(ours.sum(axis=1) - 1).max() < 1e-14


def beyond(height: float) -> float:
    """The probability that noise of ε = 1 leads beyond a line at this distance, from the density of a coordinate."""
    return float(quad(lambda x: x * k1(x) / np.pi, height, np.inf)[0])


BEYOND = beyond(0.5)


def test_two_outputs_share_the_plane_along_a_line() -> None:
    baseline = points.planar_laplace(problem_with([(0.5, 1.0), (2.5, 1.0)]), 0.7)
    for x, far in [(0.5, 1.0), (1.49999, 1e-5), (1.2, 0.3), (0.0, 1.5)]:
        assert baseline.probabilities([(x, 2.3)])[0, 1] == pytest.approx(beyond(0.7 * far), abs=1e-7)


def test_masses_agree_with_simulation() -> None:
    rng = np.random.default_rng(3)
    outputs, secrets = rng.uniform(0, 3, (17, 2)), rng.uniform(0, 3, (5, 2))
    baseline = points.planar_laplace(problem_with(outputs, prior=secrets), 1.3)
    noise = pg.baselines.planar_laplace_noise(1.3, 200_000, rng)
    order = cKDTree(baseline.places)
    for x, row in zip(secrets, baseline.probabilities(secrets), strict=True):
        seen = np.bincount(order.query(x + noise)[1], minlength=17) / len(noise)
        assert (np.abs(seen - row) < 5 * np.sqrt(row / len(noise)) + 1e-5).all()


@pytest.mark.parametrize(
    ("outputs", "at", "expected"),
    [
        ([(1.0, 1.0)], (0.0, 0.0), [1.0]),
        ([(0.0, 0.0), (2.0, 0.0), (0.0, 2.0), (2.0, 2.0)], (1.0, 1.0), [0.25] * 4),  # a corner of all four cells
        ([(0.0, 1.0), (1.0, 1.0), (2.0, 1.0)], (1.0, 2.0), [BEYOND, 1 - 2 * BEYOND, BEYOND]),  # on one line
        ([(1.0, 1.0), (1.0, 1.0), (3.0, 1.0)], (2.0, 0.0), [0.5, 0.0, 0.5]),  # twice the same: the first has the cell
    ],
)
def test_special_positions_of_outputs(outputs: Any, at: Any, expected: Any) -> None:
    named = pg.Places(outputs, labels=[f"output {number}" for number in range(len(outputs))])
    row = points.planar_laplace(problem_with(named, prior=outputs), 1.0).probabilities([at])[0]
    assert row.sum() == pytest.approx(1.0, abs=1e-14)
    assert row == pytest.approx(expected, abs=1e-7)


def test_on_a_line_masses_are_differences_of_the_distribution_function() -> None:
    line = Interval(0.0, 4.0)
    baseline = points.planar_laplace(problem_with([3.0, 1.0, 1.5], line), 0.8)
    ends = np.array([-np.inf, 1.25, 2.25, np.inf])
    for x in (0.0, 1.25, 1.3, 4.0):
        distribution = np.where(ends < x, np.exp(0.8 * (ends - x)) / 2, 1 - np.exp(0.8 * (x - ends)) / 2)
        lower, middle, upper = np.diff(distribution)
        assert baseline.probabilities([x])[0] == pytest.approx([upper, lower, middle], abs=1e-14)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), epsilon=st.floats(0.1, 5.0), size=st.integers(1, 12))
def test_noise_and_exponential_keep_epsilon_between_any_points(seed: int, epsilon: float, size: int) -> None:
    rng = np.random.default_rng(seed)
    outputs = rng.uniform(0, 3, (size, 2)).round(int(rng.integers(0, 4)))
    problem = problem_with(np.unique(outputs, axis=0))
    first = rng.uniform(0, 3, (20, 2))
    second = first + rng.normal(size=(20, 2)) * 10.0 ** rng.uniform(-3, 0, (20, 1))
    second = second.clip(0, (4.0, 3.0))
    apart = np.hypot(*(first - second).T)
    for baseline in (points.planar_laplace(problem, epsilon), points.exponential(problem, epsilon)):
        near, far = baseline.probabilities(first), baseline.probabilities(second)
        likely = (near > 1e-12) & (far > 1e-12)  # quadrature is accurate to 10⁻¹⁴ and better
        ratios = np.abs(np.log(np.where(likely, near, 1.0) / np.where(likely, far, 1.0)))
        assert (ratios.max(axis=1) <= epsilon * apart * (1 + 1e-6) + 1e-5).all()


@pytest.mark.parametrize(("name", "power"), [("euclidean", 1), ("squared", 2)])
def test_the_cost_of_noise_in_closed_form(name: str, power: int) -> None:
    problem = problem_with([(1.0, 1.0)], cost=name)
    noise = pg.baselines.planar_laplace_noise(0.9, 400_000, np.random.default_rng(1))
    simulated = (np.hypot(*noise.T) ** power).mean()
    assert points.laplace_cost(problem, 0.9) == pytest.approx(simulated, rel=0.01)
    fine = points.planar_laplace(problem, 0.9, fine=True)
    rounded = points.cost_per_point(fine, problem, [(2.0, 1.5)])[0]
    assert rounded == pytest.approx(points.laplace_cost(problem, 0.9), rel=0.12)  # its border is finite


def test_the_cost_of_noise_on_a_line() -> None:
    line = Interval(0.0, 9.0)
    assert points.laplace_cost(problem_with([1.0], line), 0.5) == pytest.approx(
        quad(lambda y: abs(y) * np.exp(-abs(y) / 2) / 4, -80, 80, points=[0])[0]
    )
    assert points.laplace_cost(problem_with([1.0], line, cost="squared"), 0.5) == pytest.approx(
        quad(lambda y: y * y * np.exp(-abs(y) / 2) / 4, -160, 160, points=[0])[0]
    )
    assert points.laplace_cost(problem_with([1.0], line, cost=lambda x, o: np.abs(x - o.T)), 0.5) is None


def test_remapping_is_the_best_of_all_maps() -> None:
    rng = np.random.default_rng(8)
    problem = problem_with(rng.uniform(0, 3, (3, 2)), prior=rng.uniform(0, 3, (6, 2)))
    noisy = points.planar_laplace(problem, 1.0)
    masses = noisy.probabilities(problem.prior.points) * problem.prior.probabilities[:, None]
    costs = masses.T @ problem.costs  # (output, replaced by)
    best = min(sum(costs[o, to] for o, to in enumerate(maps)) for maps in product(range(3), repeat=3))
    remapped = points.remap(noisy, problem)
    assert points.cost_per_point(remapped, problem) @ problem.prior.probabilities == pytest.approx(best)
    assert remapped.epsilon == 1.0


def test_remapping_fine_noise_is_cheaper_and_any_point_cheaper_still() -> None:
    rng = np.random.default_rng(2)
    problem = problem_with(TOWN.lattice((4, 3)), prior=rng.uniform(0, 3, (8, 2)))
    nearest, fine = points.planar_laplace(problem, 1.0), points.planar_laplace(problem, 1.0, fine=True)
    costs = [
        float(points.cost_per_point(each, problem) @ problem.prior.probabilities)
        for each in (
            nearest,
            points.remap(nearest, problem),
            points.remap(fine, problem),
            points.remap(fine, problem, any_point=True),
        )
    ]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > 1.05 * costs[-1]


@pytest.fixture(scope="module")
def cells() -> pg.Mechanism:
    grid = pg.Grid(4, 3, width=4.0, height=3.0)
    counts = [3, 1, 0, 2, 1, 1, 5, 1, 0, 1, 1, 2]
    return pg.design(pg.Problem(pg.Prior.from_counts(grid, counts), cost="euclidean"), epsilon=1.0)


@pytest.mark.parametrize("distance", [0.05, 0.4, 1.0, 2.5])
def test_epsilon_of_a_snapped_grid_beyond_a_distance(cells: pg.Mechanism, distance: float) -> None:
    """No pair of 200,000 exceeds it, and some come close."""
    snapped, rng = points.snapped(cells), np.random.default_rng(4)
    first = rng.uniform(size=(200_000, 2)) * (4.0, 3.0)
    turn, length = rng.uniform(0, 2 * np.pi, len(first)), distance * (1 + rng.exponential(0.1, len(first)))
    second = first + length[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    inside = ((second >= 0) & (second <= (4.0, 3.0))).all(axis=1)
    measured = points.measure_ratios(snapped, (first[inside], second[inside]))
    stated = snapped.epsilon_apart(distance)
    assert 0.8 * stated < measured.epsilon <= stated * (1 + 1e-12)


def test_no_epsilon_holds_between_close_points_of_a_snapped_grid(cells: pg.Mechanism) -> None:
    snapped = points.snapped(cells)
    assert snapped.epsilon == np.inf
    assert snapped.epsilon_apart(0.0) == np.inf
    assert points.measure_ratios(snapped, points.point_pairs([snapped], 500)).epsilon > 20
    constant = pg.baselines.constant(cells.problem)
    assert points.snapped(constant).epsilon == 0.0
    assert (snapped.probabilities([(0.99, 0.5), (1.0, 0.5)]) == cells.probabilities[[0, 1]]).all()


def test_pairs_across_the_borders_of_cells(cells: pg.Mechanism) -> None:
    first, second = points.point_pairs([points.snapped(cells)], 400)
    across = ((first + second) / 2 % 1.0 < 1e-9).any(axis=1) | ((first + second) / 2 % 1.0 > 1 - 1e-9).any(axis=1)
    assert 150 < across.sum() < 250  # fewer where a point was moved to the edge
    apart = np.hypot(*(first - second).T)
    assert apart.min() < 0.01 < 2.0 < apart.max()


def test_what_points_cannot_be_snapped_to(cells: pg.Mechanism) -> None:
    with pytest.raises(pg.InvalidProblem, match="different sizes"):
        points.snapped(cells, Area(4.0, 4.0))
    box = pg.Grid.over((0.0, 0.0, 1.0, 1.0), columns=2, rows=2)
    with pytest.raises(pg.InvalidProblem, match="different boxes"):
        points.snapped(pg.baselines.identity(pg.Problem(pg.Prior.uniform(box))), TOWN)
    with pytest.raises(pg.InvalidProblem, match="cells of a Grid"):
        points.snapped(pg.baselines.identity(pg.Problem(pg.Prior.uniform(pg.Categories("ab")))))
    with pytest.raises(pg.InvalidProblem, match="positive"):
        points.planar_laplace(problem_with([(1.0, 1.0)]), -1.0)
    problem = problem_with([(1.0, 1.0)], cost=far_from)
    noisy = points.planar_laplace(problem, 1.0)
    with pytest.raises(pg.InvalidProblem, match="named costs"):
        points.remap(noisy, problem, any_point=True)
