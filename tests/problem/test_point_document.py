"""The problem document whose secrets are points."""

from pathlib import Path

import numpy as np
import pytest

import privacygames as pg
from privacygames.problem import parse_problem
from privacygames.problem_files import open_problem

TOWN = """
[space]
kind = "area"
box = [6.55, 46.50, 6.68, 46.56]
"""
PLAIN = """
[space]
kind = "area"
width = 3.0
height = 2.0
"""
HOURS = """
[space]
kind = "interval"
low = 0
high = 24
unit = "hours"
"""
BLOCKS = "[observables]\ncolumns = 3\nrows = 2\n"


def read(folder: Path, *parts: str) -> pg.PointProblem:
    (folder / "p.toml").write_text("\n".join(parts))
    problem, _ = pg.read_problem(folder / "p.toml")
    assert isinstance(problem, pg.PointProblem)
    return problem


def test_a_document_is_what_python_says(tmp_path: Path) -> None:
    problem = read(
        tmp_path,
        TOWN,
        "[prior]\npoints = [[6.58, 46.52], [6.63, 46.54]]\nweights = [3, 1]",
        BLOCKS,
        '[problem]\ncost = "squared"\ndistance = "euclidean"',
        "[mesh]\ncolumns = 4\nrows = 3\ndegree = 2",
    )
    town = pg.Area.over((6.55, 46.50, 6.68, 46.56))
    prior = pg.PointPrior(town, [(6.58, 46.52), (6.63, 46.54)], [3, 1])
    outputs = pg.Grid.over((6.55, 46.50, 6.68, 46.56), columns=3, rows=2)
    assert problem == pg.PointProblem(
        prior, outputs, cost="squared", distance="euclidean", mesh=pg.points.Mesh(town, 4, 3, degree=2)
    )


def test_an_interval(tmp_path: Path) -> None:
    problem = read(tmp_path, HOURS, "[prior]\npoints = [8.5, 17]", "[observables]\ncount = 5", "[mesh]\ncells = 6")
    hours = pg.Interval(0, 24, unit="hours")
    assert problem.region == hours
    assert problem.observables == pg.Numbers([0.0, 6.0, 12.0, 18.0, 24.0], unit="hours")
    assert problem.mesh == pg.points.Mesh(hours, 6)
    assert read(tmp_path, HOURS, "[prior]\npoints = [8.5]", "[observables]\nvalues = [8, 17]").observables.labels == (
        8,
        17,
    )


def test_outputs_at_places_and_at_the_visited_ones(tmp_path: Path) -> None:
    prior = "[prior]\npoints = [[0.5, 0.5], [2.5, 1.25]]"
    places = read(tmp_path, PLAIN, prior, '[observables]\npoints = [[1, 1], [2, 1]]\nlabels = ["a", "b"]').observables
    assert places == pg.Places([(1.0, 1.0), (2.0, 1.0)], labels=["a", "b"])
    visited = read(tmp_path, PLAIN, prior, "[observables]\nvisited = true")
    np.testing.assert_allclose(visited.outputs, [(0.5, 0.5), (2.5, 1.25)])
    kind = '[observables]\nkind = "places"\npoints = [[1, 1], [2, 1]]'
    np.testing.assert_allclose(read(tmp_path, PLAIN, prior, kind).outputs, [(1, 1), (2, 1)])
    hours = read(tmp_path, HOURS, "[prior]\npoints = [8.5, 17]", "[observables]\nvisited = true")
    assert hours.observables.labels == (8.5, 17.0)


def test_priors_from_a_file_of_visits(tmp_path: Path) -> None:
    rows = ["who,lon,lat,n", "ann,6.58,46.52,3", "ann,6.58,46.52,1", "ben,6.6,46.5,9", "ann,7.5,46.54,4"]
    (tmp_path / "v.csv").write_text("\n".join(rows))
    columns = '[prior]\ncsv = "v.csv"\nx = "lon"\ny = "lat"\ncount = "n"\nwhere = { who = "ann" }\n'
    dropped = read(tmp_path, TOWN, columns, 'outside = "drop"', BLOCKS).prior
    np.testing.assert_allclose(dropped.points, [(6.58, 46.52)])
    moved = read(tmp_path, TOWN, columns, 'outside = "nearest"', BLOCKS).prior
    np.testing.assert_allclose(moved.points, [(6.58, 46.52), (6.68, 46.54)])
    np.testing.assert_allclose(moved.probabilities, [0.5, 0.5])
    with pytest.raises(pg.InvalidProblem, match="1 of 2 points lie outside the region"):
        read(tmp_path, TOWN, columns, BLOCKS)
    (tmp_path / "h.csv").write_text("hour\n8.5\n17.25\n17.25\n")
    hours = read(tmp_path, HOURS, '[prior]\ncsv = "h.csv"\nvalue = "hour"', "[observables]\ncount = 3").prior
    np.testing.assert_allclose(hours.probabilities, [1 / 3, 2 / 3])


def test_priors_by_cell_and_uniform(tmp_path: Path) -> None:
    area, grid = pg.Area(3.0, 2.0), pg.Grid(3, 2, 3.0, 2.0)
    cells = "[prior]\ncells = { columns = 3, rows = 2, points = 4 }\n"
    problem = read(tmp_path, PLAIN, cells + "counts = { cell-0 = 3, cell-5 = 1 }", BLOCKS)
    assert problem.prior == pg.PointPrior.from_cells(area, grid, [0.75, 0, 0, 0, 0, 0.25], points=4)
    (tmp_path / "v.csv").write_text("x,y\n0.2,0.1\n0.9,0.9\n2.9,1.9\n5,5\n")
    columns = 'csv = "v.csv"\nx = "x"\ny = "y"\noutside = "drop"'
    assert len(read(tmp_path, PLAIN, cells + columns, BLOCKS).prior) == 8
    assert read(tmp_path, PLAIN, "[prior]\nuniform = true", BLOCKS).prior == pg.PointPrior.uniform(area)


def test_adversaries_and_bounds(tmp_path: Path) -> None:
    adversary = '[[adversary]]\nname = "weekday"\nprior = { points = [[2.5, 1.25], [0.6, 0.6]] }\n'
    problem = read(tmp_path, PLAIN, "[prior]\npoints = [[0.5, 0.5]]", BLOCKS, "[bounds]\nepsilon = 1", adversary)
    weekday = pg.Adversary("weekday", prior=pg.PointPrior(pg.Area(3.0, 2.0), [(2.5, 1.25), (0.6, 0.6)]))
    file = open_problem(tmp_path / "p.toml")
    assert (file.bounds, file.adversaries) == ({"epsilon": 1}, [weekday])
    read(tmp_path, PLAIN, "[prior]\npoints = [[0.5, 0.5]]", BLOCKS, "[bounds]\nepsilon = 1", adversary + "share = 0.5")
    bounds = open_problem(tmp_path / "p.toml").bounds
    assert bounds == {"epsilon": 1, "distortion": {weekday: 0.5 * problem.max_distortion(weekday)}}
    assert problem.max_distortion(weekday) == pytest.approx(np.hypot(1.9, 0.65) / 2)
    realised = pg.design(problem, **bounds).certificate.adversary_results[0].realised
    assert realised >= bounds["distortion"][weekday]


ONE_POINT = "[prior]\npoints = [[0.5, 0.5]]"


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((PLAIN, "[prior]\npoints = []", BLOCKS), "a prior needs at least one point"),
        ((PLAIN, "[prior]\npoints = [0.5, 0.5]", BLOCKS), "points must be pairs"),
        ((PLAIN, '[prior]\npoints = [["a", "b"]]', BLOCKS), "not an array of numbers"),
        ((PLAIN, f"{ONE_POINT}\nx = 'lon'", BLOCKS), "x does not go with points"),
        ((PLAIN, f"{ONE_POINT}\nuniform = true", BLOCKS), "exactly one of"),
        ((PLAIN, f"{ONE_POINT}\noutside = 'near'", BLOCKS), "choose from 'error', 'drop', 'nearest'"),
        ((PLAIN, "[prior]\ncounts = { cell-0 = 3 }", BLOCKS), "counts goes with cells"),
        ((PLAIN, "[prior]\ncells = { columns = 2 }\nuniform = true", BLOCKS), "cells needs 'rows'"),
        ((PLAIN, "[prior]\ncells = 2\nuniform = true", BLOCKS), "cells must be a table"),
        ((PLAIN, "[prior]\ncsv = 'v.csv'\nx = 'lon'", BLOCKS), "needs 'y'"),
        ((PLAIN, "[prior]\ncsv = '../v.csv'\nx = 'lon'\ny = 'lat'", BLOCKS), "must be beside the document"),
        ((PLAIN, ONE_POINT), "says what may be released"),
        ((PLAIN, ONE_POINT, "[observables]\nvisited = false"), "says what may be released"),
        ((PLAIN, ONE_POINT, f"{BLOCKS}visited = true"), "exactly one of"),
        ((PLAIN, ONE_POINT, "[observables]\nblock = [2, 2]"), "has no key 'block'"),
        ((PLAIN, ONE_POINT, "[observables]\nlabels = ['a']"), "labels name points"),
        ((PLAIN, ONE_POINT, "[observables]\nkind = 'area'\nwidth = 1\nheight = 1"), "is a region of points"),
        ((PLAIN, ONE_POINT, BLOCKS, "[mesh]\ncells = 2"), "has no key 'cells'"),
        ((PLAIN, ONE_POINT, BLOCKS, "[problem]\ncost = [[1.0]]"), "cost must be a text"),
        ((PLAIN, ONE_POINT, BLOCKS, "[problem]\ndistance = 'taxi'"), "the distance 'taxi' is not known"),
        ((PLAIN, ONE_POINT, BLOCKS, "[[adversary]]\nname = 'a'\nsharpened = {}"), "has no key 'sharpened'"),
        ((HOURS, "[prior]\npoints = [[1, 2], [3, 4]]", "[observables]\ncount = 3"), "must be a list"),
        ((HOURS, "[prior]\npoints = [1, 99]", "[observables]\ncount = 3"), "1 of 2 points lie outside"),
        ((HOURS, "[prior]\npoints = [1]", "[observables]\ncount = 1"), "2 or more"),
        ((HOURS, "[prior]\npoints = [1]", "[observables]\ncount = 100000000000"), "1000000 at most"),
        ((HOURS, "[prior]\ncells = { columns = 2, rows = 1 }", "[observables]\ncount = 3"), "exactly one of"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, parts: tuple[str, ...], message: str) -> None:
    (tmp_path / "v.csv").write_text("lon,lat\n0.5,0.5\n")
    (tmp_path / "p.toml").write_text("\n".join(parts))
    with pytest.raises(pg.InvalidProblem, match=message):
        pg.read_problem(tmp_path / "p.toml")


def test_tables_from_elsewhere_are_of_labels() -> None:
    with pytest.raises(pg.InvalidProblem, match="is a region of points"):
        parse_problem({"space": {"kind": "area", "width": 2.0, "height": 1.0}})


def test_a_mesh_may_have_a_number_of_control_points(tmp_path: Path) -> None:
    assert read(tmp_path, TOWN, "[prior]\npoints = [[6.58, 46.52]]", BLOCKS, "[mesh]\ncontrols = 60").mesh == 60
