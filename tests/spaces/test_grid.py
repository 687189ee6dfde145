import numpy as np
import pytest

import privacygames as pg

BOX = (116.273035, 39.932113, 116.44905, 40.004058)  # 15 × 8 km


def test_cells_are_numbered_from_the_south_west_along_rows() -> None:
    grid = pg.Grid(columns=3, rows=2, width=6.0, height=2.0)
    assert grid.labels == tuple(f"cell-{i}" for i in range(6))
    assert grid.centre("cell-0") == (1.0, 0.5)
    assert grid.centre("cell-5") == (5.0, 1.5)
    assert grid.outline("cell-4") == [(2.0, 1.0), (4.0, 1.0), (4.0, 2.0), (2.0, 2.0)]


def test_every_centre_is_in_its_own_cell() -> None:
    for grid in (pg.Grid(7, 4, 3.3, 9.1), pg.Grid.over(BOX, columns=20, rows=15)):
        assert grid.cells([grid.centre(label) for label in grid.labels]) == list(grid.labels)


def test_edges_belong_to_the_window_and_nothing_beyond_does() -> None:
    grid = pg.Grid(2, 2)
    assert grid.cells([(0, 0), (2, 2), (1, 1), (0.999, 1)]) == ["cell-0", "cell-3", "cell-3", "cell-2"]
    outside = [(-1e-9, 1), (2.0000001, 1), (1, -5), (np.nan, 1)]
    for point in outside:
        with pytest.raises(pg.InvalidProblem, match="1 of 1 points lie outside") as caught:
            grid.cells([point])
        assert str(point) not in str(caught.value)
    assert grid.cells([*outside, (0.5, 0.5)], outside="drop") == ["cell-0"]
    with pytest.raises(pg.InvalidProblem, match="choose from 'error', 'drop', 'nearest'"):
        grid.cells([(0, 0)], outside="clamp")  # type: ignore[arg-type]


def test_a_box_in_degrees_is_measured_in_kilometres() -> None:
    grid = pg.Grid.over(BOX, columns=20, rows=15)
    assert grid.width == pytest.approx(15.0, abs=0.01)
    assert grid.height == pytest.approx(8.0, abs=0.01)
    euclidean, haversine = grid.distance("euclidean"), grid.distance("haversine")
    assert haversine[0, 299] == pytest.approx(np.hypot(19 / 20 * 15, 14 / 15 * 8), rel=1e-3)
    off = ~np.eye(300, dtype=bool)
    assert (np.abs(haversine[off] / euclidean[off] - 1) < 1e-3).all()
    quarter = pg.Grid.over((-90.0, -1.0, 90.0, 1.0), columns=2, rows=1).distance("haversine")
    assert quarter[0, 1] == pytest.approx(6371.0088 * np.pi / 2)


def test_points_must_be_pairs_and_are_not_repeated() -> None:
    with pytest.raises(pg.InvalidProblem, match=r"shape \(2, 3\)"):
        pg.Grid(3, 2).cells([[0.5, 0.5, 2.5], [1.5, 1.5, 0.5]])
    with pytest.raises(pg.InvalidProblem, match="pairs of numbers") as caught:
        pg.Grid(3, 2).cells([["hideout", "1"]])
    assert caught.value.__cause__ is None
    assert pg.Grid(3, 2).cells([]) == []


def test_cells_of_different_grids_are_not_compared_by_name() -> None:
    with pytest.raises(pg.InvalidProblem, match="same names but not the same places"):
        pg.Problem(pg.Prior.uniform(pg.Grid(4, 4)), observables=pg.Grid(2, 2, 4.0, 4.0))


@pytest.mark.parametrize("box", [(5, 50, 6, 51), (4.8, 52.3, 5.0, 52.4), BOX])
def test_a_grid_over_degrees_has_distance_zero_to_itself(box: tuple[float, float, float, float]) -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Grid.over(box, columns=5, rows=4)))
    assert (problem.distance == problem.distance.T).all()


def test_plain_grids_know_no_haversine() -> None:
    with pytest.raises(pg.InvalidProblem, match="knows no distance 'haversine'; choose from euclidean, hamming"):
        pg.Grid(2, 2).distance("haversine")


def test_a_coarser_grid_over_the_same_window_can_answer() -> None:
    fine, coarse = pg.Grid(4, 4, 4.0, 4.0), pg.Grid(2, 2, 4.0, 4.0)
    cost = fine.distance("euclidean", coarse)
    assert cost.shape == (4, 16)
    assert cost[0, 0] == pytest.approx(np.hypot(0.5, 0.5))
    assert cost[3, 0] == pytest.approx(np.hypot(2.5, 2.5))
    problem = pg.Problem(pg.Prior.uniform(fine), cost="euclidean", observables=coarse)
    assert pg.design(problem, epsilon=1.0).weights.shape == (16, 4)
    with pytest.raises(pg.InvalidProblem, match="one grid is in plain kilometres"):
        pg.Grid.over(BOX, columns=2, rows=2).distance("euclidean", coarse)


def test_grids_over_degrees_compare_with_each_other() -> None:
    fine, coarse = pg.Grid.over(BOX, columns=4, rows=2), pg.Grid.over(BOX, columns=2, rows=1)
    for name in ("euclidean", "haversine"):
        assert fine.distance(name, coarse)[0, 0] == pytest.approx(np.hypot(15 / 8, 2), rel=1e-2)


def test_blocks_of_cells() -> None:
    grid = pg.Grid(3, 3)
    blocks = grid.blocks(2, 2)
    assert len(blocks) == 4
    assert blocks.elements[0] == {"cell-0", "cell-1", "cell-3", "cell-4"}
    assert blocks.elements[3] == {"cell-8"}


@pytest.mark.parametrize(
    ("columns", "rows", "width", "height"),
    [
        (0, 2, None, None),
        (2, -1, None, None),
        (2.5, 2, None, None),
        (2, 2, 0, 1),
        (2, 2, 1, np.nan),
        (10**4, 10**4, 1, 1),
    ],
)
def test_impossible_grids(columns: int, rows: int, width: float, height: float) -> None:
    with pytest.raises(pg.InvalidProblem, match="a grid needs"):
        pg.Grid(columns, rows, width, height)


@pytest.mark.parametrize("box", [(10, 0, 5, 1), (0, 80, 1, 95), (0, 1, 1, 0), (float("nan"), 0, 1, 1)])
def test_impossible_boxes(box: tuple[float, float, float, float]) -> None:
    with pytest.raises(pg.InvalidProblem, match="the box must be"):
        pg.Grid.over(box, columns=2, rows=2)


def test_points_outside_may_go_to_the_nearest_cell() -> None:
    grid = pg.Grid(3, 2)
    points = [(-1.0, 0.5), (9.0, 9.0), (1.5, -3.0), (1.5, 1.5)]
    assert grid.cells(points, outside="nearest") == ["cell-0", "cell-5", "cell-1", "cell-4"]
    assert grid.cell((-1.0, 0.5), outside="nearest") == "cell-0"
    with pytest.raises(pg.InvalidProblem, match="1 of 2 points lie outside"):
        grid.cells([(np.nan, 0.5), (0.5, 0.5)], outside="nearest")  # what is no number is near nothing
    with pytest.raises(pg.InvalidProblem, match="for one point, is 'drop'; choose from 'error', 'nearest'"):
        grid.cell((0.5, 0.5), outside="drop")  # type: ignore[arg-type]


def test_swapped_coordinates_are_noticed() -> None:
    lausanne = pg.Grid.over((6.5, 46.5, 6.7, 46.6), columns=4, rows=3)
    with pytest.raises(pg.InvalidProblem, match=r"2 inside with latitude and longitude swapped: give \(longitude, lat"):
        lausanne.cells([(46.52, 6.6), (46.55, 6.61)])
    with pytest.raises(pg.InvalidProblem, match="widen it") as caught:
        lausanne.cells([(7.5, 46.55)])
    assert "7.5" not in str(caught.value)
