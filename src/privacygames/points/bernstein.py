r"""Piecewise Bernstein polynomials on a rectangle: values, and gradients as combinations of control values.

A mesh cuts the rectangle into cells. On each cell a function is :math:`f(x) = \sum_{ij} B_i(t_x) B_j(t_y) c_{ij}` with
the Bernstein polynomials :math:`B_i(t) = \binom{d}{i} t^i (1-t)^{d-i}` of the cell's own coordinates in [0, 1];
adjacent cells share the control values on their common edge, so f is continuous.
"""

from dataclasses import dataclass
from functools import cached_property
from math import ceil, comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, IntArray, as_floats, freeze_floats
from privacygames.errors import InvalidProblem
from privacygames.immutable import Value
from privacygames.spaces import Area
from privacygames.validation import is_integer, is_number

RESOLUTION_BITS = 24
"""A coordinate inside a cell is rounded to a multiple of 2^-24 of the cell's side: under a millimetre."""

CELL_SIDE = 1.5
"""Default side of a cell, times epsilon: with degree 3, 1.4 % above the best mechanism for a uniform prior."""

HIGHEST_DEGREE = 8
"""Highest degree of the polynomials; above 4, smaller cells are cheaper than higher degrees."""

MOST_CONTROLS = 4000
"""Most control points of a mesh: the solver factorises a dense matrix of this order for each output."""


@dataclass(frozen=True)
class Stencil:
    """For each control value of each cell along one axis: the slope there, as integers over the cell's side.

    The derivative of a Bernstein polynomial, raised to the degree of the polynomial, has the coefficients
    ``(-i·c[i-1] + (2i-d)·c[i] + (d-i)·c[i+1]) / h``.

    Attributes:
        position: the index of c[i] among the axis' control values, one for each cell and i.
        neighbours: (cells·(d+1), 3) indices of c[i−1], c[i] and c[i+1]; those beyond the axis, whose factor is 0,
            are clipped.
        factors: (cells·(d+1), 3) integers −i, 2i − d, d − i.
        side: h of each.
    """

    position: IntArray
    neighbours: IntArray
    factors: IntArray
    side: FloatArray


class Axis(Value):
    """One axis of a mesh: the lines between its cells, and the degree of the polynomials on each.

    >>> pg.points.Mesh.for_epsilon(pg.Area(3.0, 3.0), epsilon=1.0).x.degree
    3
    """

    lines: FloatArray
    degree: int

    def __init__(self, lines: FloatArray, degree: int) -> None:
        self._fill(lines=freeze_floats(np.asarray(lines, dtype=np.float64)), degree=int(degree))

    @cached_property
    def _content(self) -> tuple[object, ...]:
        return tuple(self.lines.tolist()), self.degree

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return len(self.lines) - 1

    @property
    def controls(self) -> int:
        """How many control values there are."""
        return self.cells * self.degree + 1

    def locate(self, coordinates: FloatArray) -> tuple[IntArray, IntArray]:
        """The cell of each coordinate, and where in it: integers from 0 to 2^RESOLUTION_BITS, both included."""
        cell = np.clip(np.searchsorted(self.lines, coordinates, side="right") - 1, 0, self.cells - 1)
        start, side = self.lines[cell], np.diff(self.lines)[cell]
        inside = np.rint((coordinates - start) / side * 2**RESOLUTION_BITS).astype(np.int64)
        return cell, inside.clip(0, 2**RESOLUTION_BITS)

    def basis(self, coordinates: FloatArray) -> tuple[IntArray, FloatArray]:
        """The first control value of each coordinate's cell, and the d + 1 basis functions there."""
        cell, inside = self.locate(coordinates)
        t = np.ldexp(inside.astype(np.float64), -RESOLUTION_BITS)[:, None]
        order = np.arange(self.degree + 1)
        binomial = np.array([comb(self.degree, i) for i in order], dtype=np.float64)
        return cell * self.degree, binomial * t**order * (1 - t) ** (self.degree - order)

    @cached_property
    def stencil(self) -> Stencil:
        """The slopes at the control values."""
        cell, i = (axis.ravel() for axis in np.indices((self.cells, self.degree + 1)))
        factors = np.stack([-i, 2 * i - self.degree, self.degree - i], axis=1)
        position = cell * self.degree + i
        neighbours = np.clip(position[:, None] + np.array([-1, 0, 1]), 0, self.controls - 1)
        return Stencil(position, neighbours, factors, np.diff(self.lines)[cell])


class Mesh(Value):
    """A rectangular mesh over an area, with the degree of the Bernstein polynomials on its cells.

    >>> mesh = pg.points.Mesh.for_epsilon(pg.Area(3.0, 3.0), epsilon=1.0)
    >>> mesh
    Mesh(2×2 cells, degree 3, 49 control points)
    """

    area: Area
    x: Axis
    y: Axis

    def __init__(self, area: Area, columns: int, rows: int, *, degree: int = 3) -> None:
        if not (is_integer(columns) and is_integer(rows)):
            raise InvalidProblem("a mesh needs whole numbers of columns and rows, 1 or more")
        lines = (np.linspace(0.0, length, cells + 1) for length, cells in ((area.width, columns), (area.height, rows)))
        self._fill_checked(area, *lines, degree=degree)

    @classmethod
    def from_lines(cls, area: Area, x: ArrayLike, y: ArrayLike, *, degree: int = 3) -> "Mesh":
        """A mesh with these lines between its cells, in kilometres; the area's edges are added.

        >>> pg.points.Mesh.from_lines(pg.Area(4.0, 2.0), x=[0.5, 1.0, 2.0], y=[], degree=2)
        Mesh(4×1 cells, degree 2, 27 control points)
        """
        mesh = object.__new__(cls)
        axes = []
        for given, length in ((x, area.width), (y, area.height)):
            inside = as_floats(given, "the lines of the mesh")
            if inside.ndim != 1 or not ((inside >= 0) & (inside <= length)).all():
                raise InvalidProblem("the lines of a mesh must be numbers inside the area")
            axes.append(np.unique(np.concatenate([[0.0, length], inside])))
        mesh._fill_checked(area, *axes, degree=degree)
        return mesh

    def _fill_checked(self, area: Area, x: FloatArray, y: FloatArray, *, degree: int) -> None:
        if not (is_integer(degree) and degree <= HIGHEST_DEGREE):
            raise InvalidProblem(f"the degree of a mesh must be a whole number from 1 to {HIGHEST_DEGREE}")
        controls = ((len(x) - 1) * degree + 1) * ((len(y) - 1) * degree + 1)
        if controls > MOST_CONTROLS:
            raise InvalidProblem(
                f"the mesh has {controls} control points, more than {MOST_CONTROLS}: use larger cells, a lower degree "
                "or a smaller area"
            )
        self._fill(area=area, x=Axis(x, degree), y=Axis(y, degree))

    @classmethod
    def for_epsilon(cls, area: Area, epsilon: float, *, degree: int = 3) -> "Mesh":
        """The default mesh: cells with sides of at most 1.5 / epsilon."""
        if not (is_number(epsilon) and epsilon > 0):
            raise InvalidProblem("epsilon must be a positive number")
        columns, rows = (max(1, ceil(length * epsilon / CELL_SIDE)) for length in (area.width, area.height))
        return cls(area, columns, rows, degree=degree)

    @cached_property
    def _content(self) -> tuple[object, ...]:
        return self.area, self.x, self.y

    @property
    def controls(self) -> int:
        """How many control points there are: the rows of a mechanism on this mesh."""
        return self.x.controls * self.y.controls

    @property
    def resolution(self) -> float:
        """The farthest, in kilometres, that rounding moves a point inside its cell."""
        sides = float(np.diff(self.x.lines).max()), float(np.diff(self.y.lines).max())
        return float(np.hypot(*sides)) * 2.0 ** -(RESOLUTION_BITS + 1)

    def basis(self, xy: FloatArray) -> Any:
        """B_α(x) for each point and control point, as a sparse matrix; rows are non-negative and sum to one."""
        from scipy.sparse import csr_array

        order = np.arange(self.x.degree + 1)
        (column, along_x), (row, along_y) = self.x.basis(xy[:, 0]), self.y.basis(xy[:, 1])
        control = (row[:, None] + order)[:, :, None] * self.x.controls + (column[:, None] + order)[:, None, :]
        values = along_y[:, :, None] * along_x[:, None, :]
        points = np.repeat(np.arange(len(xy)), len(order) ** 2)
        return csr_array((values.ravel(), (points, control.ravel())), shape=(len(xy), self.controls))

    @cached_property
    def gradients(self) -> tuple[Any, Any, Any]:
        """For each control value of each cell: it, and the gradient there along x and y, as sparse matrices.

        If the gradient's length is at most ε times the value at every one of them, then ‖∇f‖ ≤ ε·f everywhere.
        """
        from scipy.sparse import csr_array, kron

        value, slope = [], []
        for axis in (self.x, self.y):
            stencil = axis.stencil
            rows = np.arange(len(stencil.position))
            shape = (len(rows), axis.controls)
            value.append(csr_array((np.ones(len(rows)), (rows, stencil.position)), shape=shape))
            factors = stencil.factors / stencil.side[:, None]
            slope.append(csr_array((factors.ravel(), (np.repeat(rows, 3), stencil.neighbours.ravel())), shape=shape))
        along_x = kron(value[1], slope[0]).tocsr()
        along_y = kron(slope[1], value[0]).tocsr()
        return kron(value[1], value[0]).tocsr(), along_x, along_y

    def __repr__(self) -> str:
        return f"Mesh({self.x.cells}×{self.y.cells} cells, degree {self.x.degree}, {self.controls} control points)"
