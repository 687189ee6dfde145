"""Wrong, degenerate and extreme input of mechanisms for points: a clear error that shows no secret, or the truth."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import privacygames as pg
from points.examples import BEIJING, SQUARE, example
from privacygames import Area, Interval, PointMechanism, PointPrior, PointProblem
from privacygames.points import Mesh, design

CITY = Area.over(BEIJING)
LINE = Interval(0.0, 10.0)
NAN, INF = float("nan"), float("inf")
NO_POINTS: list[tuple[Any, str]] = [
    ([(4.25, NAN)], "1 of the points are not finite"),
    ([(4.25, INF), (1.0, 1.0)], "1 of the points are not finite"),
    ([("4.25 west", 1.0)], "is not an array of numbers"),
    ([(4.25, 1.0), (2.0,)], "is not an array of numbers"),
    ([(4.25j, 1.0)], "is not an array of numbers"),
    ([(10**400, 4.25)], "is not an array of numbers"),
    ([(4.25, 1.0, 2.0)], "must be pairs"),
    (None, "pair"),
    ("4.25", "pair|numbers"),
]


def designed(prior: PointPrior, outputs: Any, *, mesh: Mesh | None = None, **bounds: Any) -> PointMechanism:
    """The mechanism at ε = 1, without a bound on all mechanisms."""
    return design(PointProblem(prior, outputs, mesh=mesh), **{"epsilon": 1.0, "prove_bound": False, **bounds})


@pytest.mark.parametrize(("points", "message"), NO_POINTS)
@pytest.mark.parametrize("use", ["prior", "probabilities", "sample"])
def test_what_is_no_point_is_refused_and_not_shown(use: str, points: Any, message: str) -> None:
    mechanism = example("square")
    uses: dict[str, Callable[[Any], object]]
    uses = {"prior": partial(PointPrior, SQUARE), "probabilities": mechanism.probabilities, "sample": mechanism.sample}
    with pytest.raises(pg.InvalidProblem, match=message) as caught:
        uses[use](points)
    assert "4.25" not in str(caught.value)


@pytest.mark.parametrize("secret", [NAN, INF, "4.25", None, [4.25, NAN], [[4.25, 1.0]]])
def test_what_is_no_number_of_an_interval_is_refused_and_not_shown(secret: Any) -> None:
    with pytest.raises(pg.InvalidProblem) as caught:
        example("line").sample(secret if not isinstance(secret, str) else secret + " years")
    assert "4.25" not in str(caught.value)


def test_no_points_have_no_probabilities_and_no_samples() -> None:
    nothing = np.zeros((0, 2))
    assert example("square").probabilities(nothing).shape == (0, 21)
    assert np.shape(example("square").sample(nothing)) == (0, 2)
    with pytest.raises(pg.InvalidProblem, match="at least one point"):
        PointPrior(SQUARE, nothing)


def test_latitude_and_longitude_the_wrong_way_round() -> None:
    """Off the Earth where a longitude above 90 stands for a latitude; elsewhere where none would be in the area."""
    tuscany = Area.over((10.0, 43.0, 12.0, 44.0))
    for area, point in ((CITY, (39.95, 116.3)), (tuscany, (43.5, 11.0))):
        with pytest.raises(pg.InvalidProblem, match=r"not on the Earth|longitude and latitude swapped") as caught:
            PointPrior(area, [point])
        assert str(point[0]) not in str(caught.value)
    with pytest.raises(pg.InvalidProblem, match="no output lies in the area"):
        PointProblem(PointPrior(tuscany, [(11.0, 43.5)]), [(43.5, 11.0), (43.2, 10.5)])
    with pytest.raises(pg.InvalidProblem, match="not on the Earth"):
        example("degrees, refined").sample((39.95, 116.3))
    with pytest.raises(pg.InvalidProblem, match="latitude and longitude swapped it would be a box"):
        Area.over((39.9, 116.2, 40.1, 116.5))


@pytest.mark.parametrize("point", [(500.0, 39.95), (116.3, 91.0), (-180.1, 0.0)])
def test_points_off_the_earth(point: tuple[float, float]) -> None:
    with pytest.raises(pg.InvalidProblem, match="not on the Earth"):
        PointPrior(CITY, [point])


def test_points_elsewhere_on_the_earth_are_moved_to_the_border() -> None:
    mechanism = example("degrees, refined")
    beyond, border = mechanism.probabilities([(0.0, 89.0), (BEIJING[0], BEIJING[3])])
    assert beyond.tolist() == border.tolist()


@pytest.mark.parametrize("box", [(179.0, 0.0, -179.0, 1.0), (179.0, 0.0, 181.0, 1.0)])
def test_an_area_across_the_date_line(box: tuple[float, float, float, float]) -> None:
    with pytest.raises(pg.InvalidProblem, match="one across the date line is not supported: divide it there"):
        Area.over(box)
    assert Area.over((179.0, 0.0, 180.0, 1.0)).width > 111


@pytest.mark.parametrize(
    ("box", "message"),
    [
        ((0.0, 80.0, 1.0, 90.0), "must not contain a pole"),
        ((-180.0, -60.0, 180.0, 60.0), "fewer than 180 degrees"),
        ((1.0, 1.0, 1.0, 2.0), "west < east"),
        ((1.0, 2.0, 2.0, 2.0), "south < north"),
        ((NAN, 1.0, 1.0, 2.0), "west < east"),
        ((1.0, 1.0, 2.0), "must be four numbers"),
    ],
)
def test_boxes_that_are_no_areas(box: Any, message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        Area.over(box)


@pytest.mark.parametrize("size", [(0.0, 1.0), (-1.0, 1.0), (NAN, 1.0), (INF, 1.0), ("1", 1.0), (True, 1.0)])
def test_sizes_that_are_no_areas(size: Any) -> None:
    with pytest.raises(pg.InvalidProblem, match="positive width and height"):
        Area(*size)


@pytest.mark.parametrize("cells", [(10**12, 1), (10**9, 10**9), (1, 2000), (1334, 1)])
def test_a_mesh_that_is_too_large_is_refused_at_once(cells: tuple[int, int]) -> None:
    with pytest.raises(pg.InvalidProblem, match="control points, more than 4000"):
        Mesh(SQUARE, *cells)


@pytest.mark.parametrize("cells", [(0, 1), (-1, 1), (2,), (2.0, 2), (True, 2), (NAN, 2)])
def test_meshes_that_have_no_cells(cells: Any) -> None:
    with pytest.raises(pg.InvalidProblem, match="whole numbers of columns and rows"):
        Mesh(SQUARE, *cells)


def test_lines_of_a_mesh() -> None:
    """Lines given twice, or on the border, count once; lines almost in one place are refused."""
    assert Mesh.from_lines(SQUARE, [2.0, 1.0, 1.0, 0.0], [3.0]) == Mesh(SQUARE, 3, 1)
    for lines in ([1.0, 1.0 + 1e-12], [1e-10]):
        with pytest.raises(pg.InvalidProblem, match="thinner than a billionth"):
            Mesh.from_lines(SQUARE, lines, [])
    wrong: list[Any] = [[NAN], [-0.1], [3.1], ["1 km"], [[1.0]]]
    for given in wrong:
        with pytest.raises(pg.InvalidProblem, match="lines of"):
            Mesh.from_lines(SQUARE, given, [])


@pytest.mark.parametrize("cells", [[4], [-1], [0.5], [NAN], [[0, 1]], 0, "0", ["first"], None])
def test_cells_to_halve_that_do_not_exist(cells: Any) -> None:
    with pytest.raises(pg.InvalidProblem, match="cells to halve"):
        Mesh(SQUARE, 2, 2).refined(cells)
    assert Mesh(SQUARE, 2, 2).refined([]) == Mesh(SQUARE, 2, 2)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([NAN, 1.0], "contains NaN"),
        ([INF, 1.0], "contains infinite"),
        ([-1.0, 2.0], "contains negative"),
        ([0.0, 0.0], "the weights are all 0"),
        ([1.0], "shape"),
        (["many", 1.0], "is not an array of numbers"),
    ],
)
def test_weights_that_are_none(weights: Any, message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        PointPrior(SQUARE, [(1.0, 1.0), (2.0, 2.0)], weights)


def test_counts_of_cells() -> None:
    grid = pg.Grid(2, 2, 3.0, 3.0)
    with pytest.raises(pg.InvalidProblem, match="the weights are all 0"):
        PointPrior.from_cells(SQUARE, grid, [0, 0, 0, 0])
    with pytest.raises(pg.InvalidProblem, match="some visited cells lie outside the area"):
        PointPrior.from_cells(SQUARE, pg.Grid(2, 2, 30.0, 30.0), [1, 0, 0, 5])
    with pytest.raises(pg.InvalidProblem, match="what the counts are over"):
        PointPrior.from_cells(LINE, grid, [1, 0, 0, 5])  # type: ignore[arg-type]
    with pytest.raises(pg.InvalidProblem, match="over degrees"):
        PointPrior.from_cells(CITY, grid, [1, 0, 0, 5])


def test_a_prior_with_one_point_needs_no_noise() -> None:
    """The secret is known, so the best mechanism gives the cheapest output always."""
    mechanism = designed(PointPrior(SQUARE, [(1.0, 1.0), (1.0, 1.0)]), [(1.0, 1.2), (2.0, 2.0)])
    assert mechanism.certificate.cost == pytest.approx(0.2, abs=1e-6)
    assert mechanism.certificate.verification.distortion == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("outside", [False, True])
def test_all_weight_on_the_border(outside: bool) -> None:
    """Points beyond a border count as the border's nearest ones, so both priors are the same."""
    corners = np.array([(0.0, 0.0), (3.0, 0.0), (0.0, 3.0), (3.0, 3.0)])
    points = corners + (corners - 1.5) * 5 if outside else corners
    mechanism = designed(PointPrior(SQUARE, points), corners)
    assert mechanism.problem.prior == PointPrior(SQUARE, corners)
    assert 4 * 3 / (3 + np.exp(3.0)) / 4 < mechanism.certificate.cost < 1.0  # no better than between all at 3 km
    rows = mechanism.probabilities(corners)
    assert (rows.argmax(axis=1) == np.arange(4)).all()


def test_two_identical_points_and_outputs() -> None:
    assert len(PointPrior(SQUARE, [(1.0, 1.0), (1.0, 1.0), (2.0, 1.0)])) == 2
    with pytest.raises(pg.InvalidProblem, match="distinct"):
        PointProblem(PointPrior(SQUARE, [(1.0, 1.0)]), [(1.0, 1.0), (1.0, 1.0)])


def test_points_that_the_mesh_cannot_tell_apart() -> None:
    """A picometre apart they have the same code; the prior keeps both, and both count."""
    mechanism = designed(PointPrior(SQUARE, [(1.0, 1.0), (1.0 + 1e-12, 1.0)], [1, 3]), [(1.0, 1.0), (2.0, 2.0)])
    assert len(mechanism.problem.prior) == 2
    assert mechanism.certificate.cost == pytest.approx(0.0, abs=1e-9)


def test_outputs_outside_the_area_are_outputs() -> None:
    """Nothing demands that an output lies in the area: its cost says what it is worth."""
    prior = PointPrior(SQUARE, [(1.0, 1.0), (2.0, 2.0)])
    mechanism = designed(prior, [(-1.0, 1.0), (1.5, 1.5), (1e6, 1e6)])
    assert mechanism.certificate.cost == pytest.approx(np.sqrt(0.5), rel=1e-6)
    assert mechanism.probabilities([(1.0, 1.0)])[0].argmax() == 1
    with pytest.raises(pg.InvalidProblem, match="rescale"):
        designed(prior, [(1e70, 1.0), (1.0, 1.0)])


def test_outputs_in_another_unit() -> None:
    prior = PointPrior(Interval(0.0, 5.0, unit="years"), [1.0])
    with pytest.raises(pg.InvalidProblem, match="the outputs are in km and the secrets in years"):
        PointProblem(prior, pg.Numbers([1.0, 2.0], unit="km"))
    with pytest.raises(pg.InvalidProblem, match="plain kilometres and the other over degrees"):
        PointProblem(PointPrior(CITY, [(116.3, 39.95)]), pg.Grid(2, 2, 3.0, 3.0))


@pytest.mark.parametrize("epsilon", [0.0, -1.0, NAN, INF, 1e-300, 1e300, True, "1"])
def test_epsilons_that_are_none(epsilon: Any) -> None:
    with pytest.raises(pg.InvalidProblem, match="epsilon is"):
        designed(PointPrior(SQUARE, [(1.0, 1.0)]), [(1.0, 1.0)], mesh=Mesh(SQUARE, 1, 1), epsilon=epsilon)


@pytest.mark.parametrize("epsilon", [1e-12, 1e-6, 30.0, 100.0, 1e3, 1e9])
def test_epsilons_from_tiny_to_huge(epsilon: float) -> None:
    """A tiny ε is met by a constant; for a huge one the cost falls to that of the nearest outputs."""
    ends = [(0.0, 1.5), (3.0, 1.5)]
    mechanism = designed(PointPrior(SQUARE, ends), ends, mesh=Mesh(SQUARE, 3, 3), epsilon=epsilon)
    cost = mechanism.certificate.cost
    if epsilon < 1e-3:
        assert cost == pytest.approx(1.5, rel=1e-5)
    else:
        assert cost < 1e-3
    near, far = mechanism.probabilities([(1.0, 1.5), (1.0 + 1e-3, 1.5)])
    distance = 1e-3 + 2 * mechanism.certificate.resolution
    assert (far <= np.exp(min(epsilon * distance, 700.0)) * near * (1 + 1e-12)).all()


def test_intervals_of_extreme_sizes() -> None:
    for low, high in ((0.0, 1e15), (1e15, 1e15 + 1), (-1e-9, 1e-9)):
        line, epsilon = Interval(low, high), 2 / (high - low)
        mechanism = designed(PointPrior(line, [low, high]), [low, high], epsilon=epsilon)
        assert 0.15 < mechanism.certificate.cost / (high - low) < 0.25  # 1 / (1 + e²) = 0.12 at best
    for ends in ((1.0, 1.0), (2.0, 1.0), (NAN, 1.0), (0.0, INF)):
        with pytest.raises(pg.InvalidProblem, match="two finite numbers"):
            Interval(*ends)


def test_a_cost_that_is_a_function_is_checked() -> None:
    prior = PointPrior(SQUARE, [(1.0, 1.0), (2.0, 2.0)])
    wrong: list[Any] = [np.zeros((1, 1)), np.full((2, 1), NAN), -np.ones((2, 1)), [["high"], ["low"]]]
    for table in wrong:
        with pytest.raises(pg.InvalidProblem, match="the cost"):
            PointProblem(prior, [(1.0, 1.0)], cost=partial(lambda given, points, outputs: given, table))
