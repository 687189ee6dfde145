"""The problem document whose secrets are points: an area or interval, a prior over its points, outputs and bounds.

docs/reference/problem-file.md describes it; every table and key is checked, and an unknown one is an error. No message
shows a coordinate.
"""

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray, as_floats
from privacygames.beliefs import MOST_POINTS, PointPrior
from privacygames.bound_fields import BOUND_FIELDS
from privacygames.errors import InvalidProblem, TooLarge
from privacygames.points import Mesh, PointProblem
from privacygames.problem import (
    Adversary,
    CountTable,
    DocumentAdversary,
    csv_path,
    distortion_bounds,
    document_adversary,
    prior_from,
    read_adversaries,
)
from privacygames.spaces import (
    Area,
    Grid,
    Numbers,
    Outside,
    Places,
    Region,
    Space,
    decode_region,
    decode_space,
    error_context,
)
from privacygames.table_reader import TableReader
from privacygames.validation import require_choice

TABLES = ("space", "prior", "problem", "observables", "mesh", "bounds", "adversary")
MEASURES = ("cost", "distance")
SOURCES = ("uniform", "points", "csv", "cells")
"""Keys of the prior of which there is exactly one."""

CELL_KEYS = ("columns", "rows", "points")
KEYS_WITH_CELLS = ("counts", "label", "format", "smoothing")
"""Keys of the prior that only counts by cell have."""

MOST_OUTPUTS = 1_000_000
"""Most outputs on an interval: as many as a grid may have cells."""

ADVERSARY_KEYS = ("name", "distortion", "share", "prior")
OUTSIDE: tuple[Outside, ...] = ("error", "drop", "nearest")


class PointProblemFile:
    """A problem file whose secrets are points, parsed once.

    Args:
        path: the TOML file; None for a document that is not a file, which names no files either.
        tables: its tables, parsed.

    Attributes:
        path: the TOML file.

    Raises:
        InvalidProblem: the file is not that of a problem; properties raise it for the tables that they read.

    >>> from pathlib import Path
    >>> from privacygames.point_document import PointProblemFile
    >>> space = {"kind": "interval", "low": 0.0, "high": 24.0, "unit": "hours"}
    >>> tables = {"space": space, "prior": {"uniform": True}, "observables": {"count": 9}, "bounds": {"epsilon": 0.5}}
    >>> file = PointProblemFile(Path("hours.toml"), tables)
    >>> file.problem, file.bounds
    (PointProblem(300 points of Interval(0 to 24 hours), 9 outputs), {'epsilon': 0.5})
    """

    def __init__(self, path: Path | None, tables: dict[str, Any]) -> None:
        self.path = Path("document") if path is None else path
        self._folder = None if path is None else path.parent
        self._document = TableReader(tables, self.path.name, TABLES)

    @cached_property
    def problem(self) -> PointProblem:
        """The problem that the file describes."""
        document = self._document
        region = decode_region(document.value("space", None), name="[space]")
        measures = TableReader(document.value("problem", {}), "[problem]", MEASURES)
        prior = self.prior_over(region)
        with error_context("[observables]"):
            outputs = _outputs(region, prior, document.value("observables", None))
        with error_context("[mesh]"):
            mesh = _mesh(region, document.value("mesh", None))
        with error_context("[problem]"):
            return PointProblem(
                prior,
                outputs,
                cost=measures.string("cost", None),
                distance=measures.string("distance", None),
                mesh=mesh,
            )

    @cached_property
    def bounds(self) -> dict[str, Any]:
        """The bounds of the file, as arguments of :func:`privacygames.design`."""
        bounds = TableReader(self._document.value("bounds", {}), "[bounds]", tuple(BOUND_FIELDS)).table
        return bounds | distortion_bounds(bounds, self._named)

    @property
    def adversaries(self) -> list[Adversary]:
        """The adversaries of the file, with a guarantee or without."""
        return [each.adversary for each in self._named]

    def adversaries_for(self, problem: PointProblem) -> list[Adversary]:
        """The adversaries of the file, about the points of another problem."""
        return [each.adversary for each in self._adversaries(problem)]

    def prior_over(self, region: Region) -> PointPrior:
        """The prior of the file, over the region of another problem."""
        with error_context("[prior]"):
            return _prior(region, self._document.value("prior", {}), self._folder)

    @cached_property
    def _named(self) -> list[DocumentAdversary]:
        return self._adversaries(self.problem)

    def _adversaries(self, problem: PointProblem) -> list[DocumentAdversary]:
        def read(given: TableReader) -> DocumentAdversary:
            prior = None
            if "prior" in given:
                prior = _prior(problem.region, given.value("prior"), self._folder)
            adversary = Adversary(given.string("name"), prior=prior)
            return document_adversary(given, adversary, lambda: problem.max_distortion(adversary))

        return read_adversaries(self._document.value("adversary", []), ADVERSARY_KEYS, read)


def _prior(region: Region, table: object, folder: Path | None) -> PointPrior:
    """The prior that a table describes; files are relative to ``folder``."""
    if isinstance(region, Area) and isinstance(table, dict) and "cells" in table:
        return _prior_of_cells(region, table, folder)
    for key in KEYS_WITH_CELLS:
        if isinstance(region, Area) and isinstance(table, dict) and key in table:
            raise InvalidProblem(f"{key} goes with cells = {{ columns = …, rows = … }}")
    coordinates = ("x", "y") if isinstance(region, Area) else ("value",)
    given = TableReader(table, "[prior]", (*SOURCES, "weights", *coordinates, "count", "outside", "where"))
    given.boolean("uniform", False)
    sources = [key for key in SOURCES if given.value(key, False) is not False]
    if len(sources) != 1 or sources == ["cells"]:
        cells = ", cells = { columns = …, rows = … }" if isinstance(region, Area) else ""
        raise InvalidProblem(f"needs exactly one of: uniform = true, points = […], csv = …{cells}")
    of_source = {"points": ("weights", "outside"), "csv": (*coordinates, "count", "outside", "where")}
    for key in given.table:
        if key not in (*SOURCES, *of_source.get(sources[0], ())):
            raise InvalidProblem(f"{key} does not go with {sources[0]}")
    if sources == ["uniform"]:
        return PointPrior.uniform(region)
    outside = given.string("outside", "error")
    require_choice(outside, OUTSIDE, "outside")
    if sources == ["points"]:
        if not given.array("points"):
            raise InvalidProblem("a prior needs at least one point")
        points = as_floats(given.array("points"), "the points")
        weights = as_floats(given.array("weights", [1.0] * len(points)), "the weights")
    else:
        points, weights = _visits(given, coordinates, folder)
    points, weights = _inside(region, points, weights, outside)
    return PointPrior(region, points, weights)


def _prior_of_cells(region: Area, table: dict[str, Any], folder: Path | None) -> PointPrior:
    """A prior of counts by cell; the keys beside ``cells`` are those of the prior of a grid."""
    cells = TableReader(table["cells"], "[prior] cells", CELL_KEYS)
    grid = _grid(region, cells)
    counts = prior_from(grid, {key: value for key, value in table.items() if key != "cells"}, folder)
    return PointPrior.from_cells(region, grid, counts.probabilities, points=cells.integer("points", 1))


def _visits(given: TableReader, coordinates: tuple[str, ...], folder: Path | None) -> tuple[FloatArray, FloatArray]:
    """The points of a CSV file of visits, each once, and how often each was visited."""
    table = CountTable(csv_path(folder, given), given)
    counts: dict[tuple[float, ...], float] = {}
    for rows in table.batches():
        for row, point in zip(rows, table.numbers(rows, coordinates), strict=True):
            counts[point] = counts.get(point, 0.0) + table.count(row)
        if len(counts) > MOST_POINTS:
            raise TooLarge(
                f"{table.file.path.name} has more than {MOST_POINTS} different points: round them, or count them by "
                "cell, with cells = { columns = …, rows = … }"
            )
    if not counts:
        raise InvalidProblem(f"{table.file.path.name} has no rows (or none that satisfy where): there are no visits")
    return np.array(list(counts)), np.array(list(counts.values()))


def _inside(region: Region, points: FloatArray, weights: FloatArray, outside: str) -> tuple[FloatArray, FloatArray]:
    """The points of the region and their weights, after what ``outside`` says of the others."""
    if outside == "nearest" or not len(points):
        return points, weights
    if isinstance(region, Area) and points.shape == (len(points), 2) and region.looks_swapped(points):
        raise InvalidProblem(
            "no point lies in the area, and most would with longitude and latitude swapped: give (longitude, "
            "latitude), in this order; in a file, x is the column of longitudes and y that of latitudes"
        )
    if outside == "drop":
        inside = region.contains(points)
        return points[inside], weights[inside]
    region.project(points)  # raises unless they are finite numbers of the right shape
    missed = int((~region.contains(points)).sum())
    if missed:
        raise InvalidProblem(
            f"{missed} of {len(points)} points lie outside the region; widen it, or say outside = 'drop' to leave them "
            "out, 'nearest' to move them to its edge"
        )
    return points, weights


def _outputs(region: Region, prior: PointPrior, table: object) -> Space:
    """The outputs that a table describes."""
    if isinstance(table, dict) and "kind" in table:
        return decode_space(table, name="[observables]")
    own = ("columns", "rows", "points", "labels") if isinstance(region, Area) else ("count", "values")
    given = TableReader({} if table is None else table, "[observables]", (*own, "visited"))
    given.boolean("visited", False)
    outputs = (
        _output_places(region, prior, given) if isinstance(region, Area) else _output_numbers(region, prior, given)
    )
    if outputs is None:
        choices = "columns = … and rows = …, points = [[x, y], …]"
        choices = choices if isinstance(region, Area) else "count = …, values = […]"
        raise InvalidProblem(f"says what may be released, and needs exactly one of: {choices}, visited = true")
    return outputs


def _output_places(area: Area, prior: PointPrior, given: TableReader) -> Space | None:
    """The outputs of an area; None where the table does not say them in one way."""
    degrees = area.box is not None
    if "labels" in given and "points" not in given:
        raise InvalidProblem("labels name points = [[x, y], …]")
    match sorted(set(given.table) - {"labels"}):
        case ["columns", "rows"]:
            return _grid(area, given)
        case ["points"]:
            return Places(given.array("points"), labels=given.array("labels", None), degrees=degrees)
        case ["visited"] if given.value("visited"):
            return Places(prior.points, degrees=degrees)
    return None


def _output_numbers(interval: Region, prior: PointPrior, given: TableReader) -> Space | None:
    """The outputs of an interval; None where the table does not say them in one way."""
    match list(given.table):
        case ["values"]:
            return Numbers(given.array("values"), unit=interval.unit)
        case ["count"]:
            return _evenly_spaced(interval, given.integer("count"))
        case ["visited"] if given.value("visited"):
            return Numbers(prior.points[:, 0].tolist(), unit=interval.unit)
    return None


def _evenly_spaced(region: Region, count: int) -> Numbers:
    """Numbers from one end of an interval to the other, both included."""
    if not 2 <= count <= MOST_OUTPUTS:
        raise InvalidProblem(
            f"count is the number of outputs from one end of the interval to the other: 2 or more, and {MOST_OUTPUTS} "
            "at most"
        )
    return Numbers(region.coordinates(region.lattice((count,), edges=True))[:, 0].tolist(), unit=region.unit)


def _grid(region: Area, keys: TableReader) -> Grid:
    """A grid over an area."""
    columns, rows = keys.integer("columns"), keys.integer("rows")
    if region.box is not None:
        return Grid.over(region.box, columns=columns, rows=rows)
    return Grid(columns, rows, region.width, region.height)


def _mesh(region: Region, table: object) -> Mesh | int | None:
    """The mesh that a table describes, or how many control points it may have; None leaves the choice to the design."""
    if table is None:
        return None
    keys = ("columns", "rows") if region.dimension == 2 else ("cells",)
    given = TableReader(table, "[mesh]", (*keys, "degree", "controls"))
    if given.value("controls", None) is not None:
        controls: int = TableReader(table, "[mesh]", ("controls",)).integer("controls")
        return controls
    return Mesh(region, *(given.integer(key) for key in keys), degree=given.integer("degree", 3))
