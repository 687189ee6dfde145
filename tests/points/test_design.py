"""Mechanisms for points: optimal on their mesh, guaranteed for any two points, sampled as certified."""

from fractions import Fraction
from importlib import import_module
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2

import privacygames as pg
from points.examples import FIVE, FIVE_WEIGHTS, refined_towards
from points.written_out import optimum, value_of
from privacygames import Area, PointMechanism, PointPrior, PointProblem
from privacygames.points import Mesh, certify_points, design
from privacygames.points.bernstein import RESOLUTION_BITS
from privacygames.points.refinement import refine

Array = NDArray[np.float64]
AREA = Area(3.0, 3.0)


def lattice(columns: int, rows: int, area: Area = AREA) -> Array:
    return area.lattice((columns, rows))


def places(count: int = 5, seed: int = 5) -> PointPrior:
    rng = np.random.default_rng(seed)
    return PointPrior(AREA, rng.uniform(0.3, 2.7, (count, 2)), rng.uniform(1, 5, count))


def designed(prior: PointPrior, outputs: Any, mesh: Mesh, **arguments: Any) -> PointMechanism:
    """The mechanism on a mesh at ε = 1, without a bound on all mechanisms."""
    problem = PointProblem(prior, outputs, mesh=mesh)
    return design(problem, **{"epsilon": 1.0, "prove_bound": False, **arguments})


@pytest.fixture(scope="module")
def mechanism() -> PointMechanism:
    prior = places()
    return designed(prior, np.concatenate([prior.xy, lattice(3, 3)]), Mesh(AREA, 3, 3))


@pytest.mark.parametrize(("cells", "degree"), [((2, 2), 2), ((3, 2), 1), ((1, 2), 3)])
def test_the_optimum_lies_between_two_programs_written_out(cells: tuple[int, int], degree: int) -> None:
    outputs, points = lattice(3, 3), lattice(12, 12)
    mechanism = designed(PointPrior(AREA, points), outputs, Mesh(AREA, *cells, degree=degree), tolerance=1e-8)
    basis = value_of(points, cells, (3.0, 3.0), degree)
    costs = basis.T @ np.hypot(*(points[:, None] - outputs).transpose(2, 0, 1)) / len(points)
    below, above = (
        optimum(costs, cells, (3.0, 3.0), degree, 1.0, 32, factor) for factor in (1.0, float(np.cos(np.pi / 32)))
    )
    assert below - 1e-6 <= mechanism.certificate.cost <= above + 1e-6
    assert above - below < 0.01 * above


@pytest.mark.parametrize(
    ("cells", "degree", "sixteen", "thirty_two"),
    [(2, 3, 0.9925, 0.9912), (3, 2, 1.0061, None), (3, 3, 0.9921, 0.9909), (2, 4, None, 0.9869)],
)
def test_measured_optima_with_polygons_are_a_little_above(
    cells: int, degree: int, sixteen: float | None, thirty_two: float | None
) -> None:
    """Square of 3 × 3, ε = 1, 16 outputs, uniform prior: cones cost less than polygons of 16 and 32 directions."""
    prior = PointPrior(AREA, lattice(40, 40))
    cost = designed(prior, lattice(4, 4), Mesh(AREA, cells, cells, degree=degree)).certificate.cost
    for polygon, share in ((sixteen, 0.003), (thirty_two, 0.001)):
        if polygon is not None:
            assert polygon * (1 - share) <= cost <= polygon + 2e-4


@pytest.mark.parametrize(("side", "epsilon"), [(1.0, 1.0), (2.0, 0.3)])
def test_one_cell_of_degree_one_is_solved_by_hand(side: float, epsilon: float) -> None:
    """Two outputs at the ends of a segment: the ratio is at most 1 + εh, so the cost is h / (2 + εh)."""
    area = Area(side, 1.0)
    ends = [(0.0, 0.5), (side, 0.5)]
    mechanism = designed(PointPrior(area, ends), ends, Mesh(area, 1, 1, degree=1), epsilon=epsilon)
    assert mechanism.certificate.cost == pytest.approx(side / (2 + epsilon * side), rel=2e-6)


@pytest.mark.parametrize(
    ("epsilon", "distortion"), [(30.0, None), (100.0, None), (1.0, 0.71), (1.0, 0.72), (1.0, 0.73)]
)
def test_programs_whose_bound_used_to_stay_a_millionth_below(epsilon: float, distortion: float | None) -> None:
    """Many cones end on their boundary, where rounding is amplified: two outputs, and a distortion that binds."""
    if distortion is None:
        outputs = np.array([(0.0, 1.5), (3.0, 1.5)])
        prior, mesh = PointPrior(AREA, outputs), Mesh(AREA, 3, 3)
    else:
        prior, outputs = PointPrior(AREA, FIVE, FIVE_WEIGHTS), np.concatenate([lattice(4, 4), FIVE])
        mesh = refined_towards(Mesh(AREA, 3, 3, degree=2), FIVE[:2], 1)
    verified = designed(prior, outputs, mesh, epsilon=epsilon, distortion=distortion).certificate.verification
    assert verified.distortion >= (distortion or 0.0)
    assert verified.expected_cost <= (4e-6 if distortion is None else distortion * 1.0001)


def test_the_bound_is_below_and_refinement_approaches_it() -> None:
    prior = places()
    outputs = np.concatenate([prior.xy, lattice(4, 4)])
    bound = pg.design(PointProblem(prior, outputs), epsilon=1.0).certificate.bound
    costs = [designed(prior, outputs, Mesh(AREA, cells, cells)).certificate.cost for cells in (1, 2, 4)]
    assert costs == sorted(costs, reverse=True)
    assert bound is not None
    assert bound <= costs[-1] <= 1.08 * bound


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), epsilon=st.floats(0.2, 4.0), count=st.integers(1, 6))
def test_every_design_holds_for_random_pairs(seed: int, epsilon: float, count: int) -> None:
    prior = places(count, seed)
    mechanism = designed(prior, prior.xy, Mesh(AREA, 2, 2, degree=2), epsilon=epsilon)
    assert largest_excess(mechanism, seed, 2000) <= 1e-9


def largest_excess(mechanism: PointMechanism, seed: int, pairs: int) -> float:
    """The largest log-ratio minus ε times the distance, over random pairs: far, close, and across cell borders."""
    rng = np.random.default_rng(seed)
    area, epsilon = mechanism.secrets, mechanism.bounds.epsilon
    assert epsilon is not None
    first = rng.uniform(0, area.lengths, (pairs, 2))
    border = rng.choice(mechanism.mesh.bounds[0][:, 0], pairs)
    first[: pairs // 3, 0] = border[: pairs // 3]
    shift = rng.normal(size=(pairs, 2)) * rng.choice([1e-5, 1e-3, 1e-1, 1.0], (pairs, 1))
    second = area.clamp(first + shift)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(mechanism.probabilities(first) / mechanism.probabilities(second))
    allowed = epsilon * (np.hypot(*(first - second).T) + 2 * mechanism.mesh.resolution)
    return float((np.nan_to_num(ratios, nan=0.0).max(axis=1) - allowed).max())


def test_many_random_pairs_hold(mechanism: PointMechanism) -> None:
    assert max(largest_excess(mechanism, seed, 100_000) for seed in range(3)) <= 1e-9


def exact_probabilities(mechanism: PointMechanism, xy: Array) -> list[Fraction]:
    """p(o|x) at one point in exact fractions, from the integers alone."""
    mesh, d = mechanism.mesh, mechanism.mesh.degree
    cell, inside = mesh.split(mesh.encode(xy[None]))
    along_x, along_y = (
        [comb(d, i) * t**i * (1 - t) ** (d - i) for i in range(d + 1)]
        for t in (Fraction(int(each[0]), 2**RESOLUTION_BITS) for each in inside)
    )
    total = [Fraction(0)] * mechanism.weights.shape[1]
    for place, share in enumerate(y * x for y in along_y for x in along_x):
        row = mesh.shared.weights[[int(cell[0]) * (d + 1) ** 2 + place]]
        for control, weight in zip(row.indices.tolist(), row.data.tolist(), strict=True):
            for output, number in enumerate(mechanism.weights[control].tolist()):
                total[output] += share * Fraction(weight) * number
    return total


def test_pairs_hold_in_exact_arithmetic(mechanism: PointMechanism) -> None:
    rng = np.random.default_rng(3)
    for _ in range(150):
        first = rng.uniform(0, 3, 2)
        second = AREA.clamp([first + rng.normal(size=2) * rng.choice([1e-6, 1e-2, 1.0])])[0]
        distance = float(np.hypot(*(first - second))) + 2 * mechanism.mesh.resolution
        allowed = Fraction(float(np.exp(distance) * (1 + 1e-14)))
        for p, q in zip(exact_probabilities(mechanism, first), exact_probabilities(mechanism, second), strict=True):
            assert p <= allowed * q


def test_a_snapped_grid_fails_where_this_holds(mechanism: PointMechanism) -> None:
    """The search finds a violation at once where there is one: two points on both sides of a border of cells."""
    grid = pg.Grid(3, 3, 3.0, 3.0)
    snapped = pg.design(pg.Problem(pg.Prior.uniform(grid), cost="euclidean"), epsilon=1.0)
    left, right = (snapped.probabilities[grid.index(grid.cell((x, 1.5)))] for x in (0.9999, 1.0001))
    assert np.log(left / right).max() > 0.5
    points = [(0.9999, 1.5), (1.0001, 1.5)]
    assert np.abs(np.log(np.divide(*mechanism.probabilities(points)))).max() <= 0.0002 * 1.01


def test_weights_that_break_the_guarantee_are_refused(mechanism: PointMechanism) -> None:
    def certify(weights: NDArray[np.int64], epsilon: float = 1.0) -> PointMechanism:
        return certify_points(
            mechanism.problem,
            pg.Bounds(epsilon=epsilon),
            mechanism.mesh,
            weights,
            mechanism.bits,
            provenance=mechanism.certificate.provenance,
        )

    weights = mechanism.weights.copy()
    row, output = np.unravel_index(weights.argmax(), weights.shape)
    weights[row, output] -= 2**58
    weights[row, output - 1] += 2**58
    certify(mechanism.weights)
    with pytest.raises(pg.GuaranteeViolated, match="changes faster"):
        certify(weights)
    with pytest.raises(pg.GuaranteeViolated, match="changes faster"):
        certify(mechanism.weights, epsilon=0.99)
    weights[row, output] += 1
    with pytest.raises(pg.GuaranteeViolated, match="does not sum"):
        certify(weights)


@pytest.mark.parametrize("point", [(0.3, 0.4), (1.0, 2.0), (2.999, 0.001), (9.0, -4.0)])
def test_samples_have_the_certified_distribution(mechanism: PointMechanism, point: tuple[float, float]) -> None:
    draws = 200_000
    drawn = mechanism.draw(np.tile(point, (draws, 1)), np.random.default_rng(7))
    expected = mechanism.probabilities([point])[0] * draws
    counts = np.bincount(drawn, minlength=len(expected))
    often = expected > 5
    rest = np.array([counts[~often].sum()]), np.array([expected[~often].sum()])
    counts, expected = np.append(counts[often], rest[0]), np.append(expected[often], rest[1])
    statistic = float(((counts - expected) ** 2 / np.maximum(expected, 1e-9))[expected > 5].sum())
    assert statistic < chi2.ppf(1 - 1e-6, max(int((expected > 5).sum()) - 1, 1))


def test_the_cost_is_what_simulation_gives(mechanism: PointMechanism) -> None:
    prior = places()
    rng = np.random.default_rng(11)
    secrets = prior.xy[rng.choice(len(prior), 200_000, p=prior.probabilities)]
    errors = np.hypot(*(mechanism.sample(secrets, rng) - secrets).T)
    assert abs(errors.mean() - mechanism.certificate.cost) < 6 * errors.std() / np.sqrt(len(errors))


def test_samples_come_in_the_form_they_were_asked_in(mechanism: PointMechanism) -> None:
    outputs = {tuple(each) for each in mechanism.outputs.tolist()}
    assert mechanism.sample((1.0, 1.0)) in outputs
    several = mechanism.sample([(1.0, 1.0), (2.0, 2.0), (0.0, 0.0)])
    assert np.shape(several) == (3, 2)
    with pytest.raises(pg.InvalidProblem):
        mechanism.sample(1.0)


def test_one_output_and_one_point_are_no_trouble() -> None:
    problem = PointProblem(PointPrior(AREA, [(1.0, 1.0)]), [(2.0, 2.0)])
    with pytest.warns(pg.UselessMechanism):
        only = pg.design(problem, epsilon=1.0)
    assert only.certificate.cost == pytest.approx(np.sqrt(2))
    assert only.certificate.gap == pytest.approx(0, abs=1e-9)


def test_true_distances_are_never_shorter_than_those_of_the_area() -> None:
    box = (10.0, 59.0, 12.0, 61.0)
    area = Area.over(box)
    rng = np.random.default_rng(2)
    first, second = (rng.uniform(box[:2], box[2:], (5000, 2)) for _ in range(2))
    lon1, lat1, lon2, lat2 = (np.radians(each) for each in (*first.T, *second.T))
    half = np.sin((lat2 - lat1) / 2) ** 2 + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    true = 2 * 6371.0088 * np.arcsin(np.sqrt(half))
    assert (np.hypot(*(area.clamp(first) - area.clamp(second)).T) <= true * (1 + 1e-9)).all()


def test_wrong_arguments_are_named() -> None:
    prior = places()
    with pytest.raises(pg.InvalidProblem, match="epsilon"):
        design(PointProblem(prior, prior.xy), epsilon=0.0)
    with pytest.raises(pg.InvalidProblem, match="different regions"):
        PointProblem(prior, prior.xy, mesh=Mesh(Area(1.0, 1.0), 1, 1))
    with pytest.raises(pg.InvalidProblem, match="cost 'haming' is not known"):
        PointProblem(prior, prior.xy, cost="haming")
    with pytest.raises(pg.InvalidProblem, match="at least one point"):
        PointPrior(AREA, np.zeros((0, 2)))
    with pytest.raises(pg.InvalidProblem, match="all 0"):
        PointPrior(AREA, [(1.0, 1.0)], [0.0])


def test_time_that_ends_on_a_coarse_mesh_leaves_its_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("privacygames.points.design")
    problem = PointProblem(places(), lattice(4, 4))
    late = False

    def refine_too_long(*arguments: Any) -> Mesh:
        nonlocal late
        late = True
        return refine(*arguments)

    monkeypatch.setattr(module, "refine", refine_too_long)
    monkeypatch.setattr(module, "monotonic", lambda: 1e9 if late else 0.0)
    mechanism = design(problem, epsilon=1.0, time_limit=1000.0)
    first = problem.first_mesh(1.0)
    best = design(problem.with_mesh(first), epsilon=1.0, prove_bound=False)
    assert mechanism.mesh == first
    assert mechanism.certificate.cost == pytest.approx(best.certificate.cost, rel=0.01)
    assert not mechanism.constant
