"""Grids: a rectangle divided into cells, in plain kilometres or over a longitude/latitude box."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privacygames.arrays import FloatArray, IntArray
from privacygames.errors import InvalidProblem
from privacygames.spaces.space import Label, NamedDistances, Space
from privacygames.spaces.subsets import Aggregation, Subsets
from privacygames.validation import is_integer, is_number, require_choice

EARTH_RADIUS_KM = 6371.0088
MOST_CELLS = 1_000_000

Box = tuple[float, float, float, float]
Outside = Literal["error", "drop", "nearest"]
"""What becomes of points outside a grid."""


class Grid(Space):
    """``columns`` × ``rows`` cells over a rectangle of ``width`` × ``height`` kilometres.

    Cells are numbered from the south-west corner, along each row from west to east, rows from south to north, and
    labelled ``"cell-0"``, ``"cell-1"``, … Distances are between cell centres, in kilometres.

    Guarantees are between cells. Where a coordinate is replaced by its cell, no ε holds between coordinates: close
    points on two sides of a border differ like their cells. :class:`privacygames.Area` protects coordinates.

    >>> city = pg.Grid(columns=20, rows=15, width=15.0, height=8.0)
    >>> city.cell((0.5, 7.9)), city.centre("cell-0")
    ('cell-280', (0.375, 0.26666666666666666))
    """

    columns: int
    rows: int
    width: float
    height: float
    box: Box | None
    """West, south, east and north in degrees; None for plain kilometres."""
    default_distance = "euclidean"

    def __init__(
        self,
        columns: int,
        rows: int,
        width: float | None = None,
        height: float | None = None,
        *,
        box: Box | None = None,
    ) -> None:
        if not (is_integer(columns) and is_integer(rows) and columns * rows <= MOST_CELLS):
            raise InvalidProblem(
                f"a grid needs whole numbers of columns and rows, at least 1 each and at most {MOST_CELLS} cells "
                f"in all; got {columns} columns and {rows} rows"
            )
        size = columns if width is None else width, rows if height is None else height
        if not all(is_number(length) and 0 < length < np.inf for length in size):
            raise InvalidProblem(
                f"a grid needs positive width and height; got {repr(width)[:40]} × {repr(height)[:40]} km"
            )
        edges = None if box is None else checked_box(box)
        self._fill(columns=int(columns), rows=int(rows), width=float(size[0]), height=float(size[1]), box=edges)
        super().__init__(f"cell-{number}" for number in range(self.columns * self.rows))

    @classmethod
    def over(cls, box: Box, *, columns: int, rows: int) -> "Grid":
        """A grid over ``(west, south, east, north)`` in degrees, with distances in kilometres.

        The width is that of the middle latitude, so for a box some tens of kilometres high the plain Euclidean distance
        is right to a fraction of a percent (``"haversine"`` is the distance on the sphere).

        >>> pg.Grid.over((6.5, 46.5, 6.7, 46.6), columns=4, rows=3).cell((6.63, 46.52))
        'cell-2'
        """
        west, south, east, north = checked_box(box)
        middle = np.radians((south + north) / 2)
        width = EARTH_RADIUS_KM * np.radians(east - west) * np.cos(middle)
        height = EARTH_RADIUS_KM * np.radians(north - south)
        return cls(columns, rows, float(width), float(height), box=(west, south, east, north))

    @property
    def content(self) -> tuple[object, ...]:
        """The numbers of columns and rows, the size and the box."""
        return self.columns, self.rows, self.width, self.height, self.box

    def __repr__(self) -> str:
        size = f"{self.columns}×{self.rows} cells, {self.width:.3g}×{self.height:.3g} km"
        return f"Grid({size}{', over degrees' if self.box else ''})"

    def cell(self, point: tuple[float, float], *, outside: Literal["error", "nearest"] = "error") -> Label:
        """The cell that contains a point: (x, y) in kilometres, or (longitude, latitude) over a box.

        A point outside is an error, or goes to the nearest cell if you say so. A mechanism protects the cell: close
        points on two sides of a border are told apart like their cells.
        """
        require_choice(outside, ("error", "nearest"), "outside, for one point,")
        labels = self.cells([point], outside=outside)
        if len(labels) != 1:
            raise InvalidProblem("one point is wanted: (x, y), or (longitude, latitude) over a box")
        return labels[0]

    def cells(self, points: ArrayLike, *, outside: Outside = "error") -> list[Label]:
        """The cells that contain the points, in order.

        Args:
            points: pairs (x, y) in kilometres, or (longitude, latitude) over a box.
            outside: for points outside the grid: ``"error"`` raises; ``"drop"`` leaves them out; ``"nearest"`` moves
                them to the nearest cell. The east and north edges belong to the last column and row.
        """
        return [self.labels[position] for position in self.locate(points, outside=outside) if position >= 0]

    def locate(self, points: ArrayLike, *, outside: Outside = "drop") -> IntArray:
        """The position of the cell that contains each point; −1 for dropped points, which are outside or NaN.

        A mechanism protects these cells, not the points; see the class.
        """
        require_choice(outside, get_args(Outside), "outside")
        try:
            xy = np.asarray(points, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidProblem("points must be pairs of numbers: (x, y), or (longitude, latitude)") from None
        if xy.size == 0:
            return np.zeros(0, dtype=np.int64)
        if xy.ndim != 2 or xy.shape[1] != 2:
            raise InvalidProblem(f"points must be pairs, an array of shape (many, 2); got shape {xy.shape}")
        positions = self._positions(xy, clip=outside == "nearest")
        missed = int((positions < 0).sum())
        if missed and outside != "drop":
            raise InvalidProblem(self._missed(xy, missed))
        return positions

    def _positions(self, xy: FloatArray, *, clip: bool = False) -> IntArray:
        west, south, east, north = self._edges()
        column, in_width = _steps(xy[:, 0], west, east, self.columns, clip=clip)
        row, in_height = _steps(xy[:, 1], south, north, self.rows, clip=clip)
        positions = row * self.columns + column
        inside = in_width & in_height
        if not inside.all():
            positions[~inside] = -1
        return positions

    def _missed(self, xy: FloatArray, missed: int) -> str:
        """What to say of points outside; where they were given the wrong way round, that."""
        swapped = int((self._positions(xy[:, ::-1]) >= 0).sum()) if self.box is not None else 0
        said = f"{missed} of {len(xy)} points lie outside the grid"
        if swapped > len(xy) - missed:
            return f"{said}, and {swapped} inside with latitude and longitude swapped: give (longitude, latitude)"
        return f"{said}; widen it, or say outside='drop' to leave them out, 'nearest' to move them to its edge"

    def centre(self, label: Label) -> tuple[float, float]:
        """The centre of a cell, in the grid's own coordinates (kilometres, or degrees over a box)."""
        corners = np.array(self.outline(label))
        x, y = corners.mean(axis=0)
        return float(x), float(y)

    def outline(self, label: Label) -> list[tuple[float, float]]:
        """The four corners of a cell, counter-clockwise from the south-west one."""
        row, column = divmod(self.index(label), self.columns)
        west, south, east, north = self._edges()
        xs = west + (east - west) * np.array([column, column + 1]) / self.columns
        ys = south + (north - south) * np.array([row, row + 1]) / self.rows
        return [(float(xs[i]), float(ys[j])) for i, j in ((0, 0), (1, 0), (1, 1), (0, 1))]

    def blocks(self, columns: int, rows: int, *, aggregation: Aggregation = "mean") -> Subsets:
        """Coarser cells as outputs: blocks of ``columns`` × ``rows`` cells of this grid.

        >>> pg.Grid(4, 4).blocks(2, 2).labels
        ('block-0', 'block-1', 'block-2', 'block-3')
        """
        if not (is_integer(columns) and is_integer(rows)):
            raise InvalidProblem(f"a block needs at least 1 column and 1 row; got {columns} × {rows}")
        groups: dict[tuple[int, int], list[Label]] = {}
        for number, label in enumerate(self.labels):
            row, column = divmod(number, self.columns)
            groups.setdefault((row // rows, column // columns), []).append(label)
        names = [f"block-{number}" for number in range(len(groups))]
        return Subsets(self, groups.values(), labels=names, aggregation=aggregation)

    @property
    def centres(self) -> FloatArray:
        """All cell centres in kilometres from the south-west corner, shape (cells, 2)."""
        row, column = np.divmod(np.arange(len(self)), self.columns)
        xs = (column + 0.5) * self.width / self.columns
        ys = (row + 0.5) * self.height / self.rows
        return np.stack([xs, ys], axis=1)

    @property
    def degrees(self) -> FloatArray:
        """All cell centres as (longitude, latitude); only for a grid over a box."""
        west, south, east, north = self._needs_box("degrees")
        return self.centres / (self.width, self.height) * (east - west, north - south) + (west, south)

    def _edges(self) -> Box:
        return self.box or (0.0, 0.0, self.width, self.height)

    def _needs_box(self, what: str) -> Box:
        if self.box is None:
            raise InvalidProblem(f"{what} needs a grid over degrees: build it with Grid.over(box, …)")
        return self.box

    def distance_unit(self, name: str) -> str:
        """Kilometres, except for the Hamming distance."""
        return "" if name == "hamming" else "km"

    def named_distances(self) -> NamedDistances:
        """Distances between centres: Euclidean and, over a box in degrees, haversine; and Hamming's distance."""
        known = {"euclidean": self._euclidean, **super().named_distances()}
        return known | {"haversine": self._haversine} if self.box else known

    def _hamming(self, other: Space) -> FloatArray:
        if isinstance(other, Grid) and other != self:
            raise InvalidProblem(
                "cells of different grids have the same names but not the same places: use the euclidean distance, "
                "blocks of this grid, or a matrix"
            )
        return super()._hamming(other)

    def _euclidean(self, other: Space) -> FloatArray:
        rows = self._centres_of(self._needs_same_kind(other, "euclidean"))
        offsets = rows[:, None, :] - self.centres[None, :, :]
        return np.hypot(offsets[..., 0], offsets[..., 1])

    def _centres_of(self, other: "Grid") -> FloatArray:
        """The other grid's centres in this grid's kilometres."""
        if (self.box is None) != (other.box is None):
            raise InvalidProblem("one grid is in plain kilometres and the other over degrees; use the same for both")
        if self.box == other.box:  # both plain, or over the very same window
            return other.centres
        west, south, east, north = self._needs_box("degrees")
        fractions = (other.degrees - (west, south)) / (east - west, north - south)
        return fractions * (self.width, self.height)

    def _haversine(self, other: Space) -> FloatArray:
        return haversine(self._needs_same_kind(other, "haversine").degrees[:, None], self.degrees[None])


def _steps(
    coordinates: FloatArray, low: float, high: float, count: int, *, clip: bool
) -> tuple[IntArray, NDArray[np.bool_]]:
    """The number, from 0 to ``count`` − 1, of the part of an axis that each coordinate lies in; and which lie in one.

    The axis goes from ``low`` to ``high``, both included, in ``count`` equal parts.
    """
    fractions = coordinates - low  # one array, and one axis at a time: several times as fast as pairs
    fractions /= high - low
    if clip:
        np.clip(fractions, 0.0, 1.0, out=fractions)
    inside = (fractions >= 0) & (fractions <= 1)  # NaN is outside
    if not inside.all():
        fractions[~inside] = 0.0
    fractions *= count
    return np.minimum(fractions.astype(np.int64), count - 1), inside


def haversine(first: FloatArray, second: FloatArray) -> FloatArray:
    """Distances on the sphere in kilometres, between points (…, 2) of longitude and latitude in degrees."""
    first, second = np.radians(first), np.radians(second)
    half = np.sin((first - second) / 2) ** 2
    chord = half[..., 1] + np.cos(first[..., 1]) * np.cos(second[..., 1]) * half[..., 0]
    return np.asarray(2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.minimum(chord, 1.0))))


def checked_box(box: Box, *, what: str = "box") -> Box:
    """A box in degrees as four plain numbers, or an error that says what it may be."""
    try:
        west, south, east, north = (float(edge) for edge in box)
    except (TypeError, ValueError):
        raise InvalidProblem(f"the {what} must be four numbers: (west, south, east, north) in degrees") from None
    if not (-180 <= west < east <= 180 and -90 <= south < north <= 90):
        hint = ""
        if -180 <= east < west <= 180 or 180 < east < west + 360:
            hint = "; one across the date line is not supported: divide it there"
        elif -180 <= south < north <= 180 and -90 <= west < east <= 90:
            hint = "; with latitude and longitude swapped it would be a box"
        raise InvalidProblem(
            f"the {what} must be (west, south, east, north) in degrees with -180 ≤ west < east ≤ 180 and "
            f"-90 ≤ south < north ≤ 90; got {box}{hint}"
        )
    return west, south, east, north
