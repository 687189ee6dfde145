r"""Meshes: cells over a region, on which p(o|x) is a polynomial in Bernstein form with shared control values.

In the plane a function is :math:`f(x) = \sum_{ij} B_i(t_x) B_j(t_y)\, c_{ij}` on each cell, with the polynomials of
``bernstein.py`` along each axis.
"""

from functools import cached_property, reduce
from math import ceil, prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, IntArray, as_floats
from privacygames.errors import InvalidProblem
from privacygames.immutable import Value
from privacygames.points.bernstein import RESOLUTION_BITS, Axis
from privacygames.spaces import Region, require_region
from privacygames.validation import is_integer, is_number

CELL_SIDE = 1.5
"""Default side of a cell, times epsilon: with degree 3, 1.4 % above the best mechanism for a uniform prior."""

CELLS_WITHOUT_EPSILON = 4
"""Default number of cells along the longest axis where no epsilon says how smooth p(o|x) has to be."""

HIGHEST_DEGREE = 8
"""Highest degree of the polynomials; above 4, smaller cells are cheaper than higher degrees."""

MOST_CONTROLS = 4000
"""Most control points of a mesh: the solver factorises a dense matrix of this order for each output."""


class Mesh(Value):
    """A mesh over a region, with the degree of the Bernstein polynomials on its cells.

    >>> pg.points.Mesh(pg.Area(3.0, 3.0), 2, 2)
    Mesh(2×2 cells, degree 3, 49 control points)

    Args:
        region: an area or an interval.
        cells: the number of cells along each axis.
        degree: the degree of the polynomials.
    """

    region: Region
    axes: tuple[Axis, ...]

    def __init__(self, region: Region, *cells: int, degree: int = 3) -> None:
        require_region(region, "what the mesh is over")
        if len(cells) != region.dimension or not all(map(is_integer, cells)):
            wanted = "whole numbers of columns and rows" if region.dimension == 2 else "a whole number of cells"
            raise InvalidProblem(f"a mesh needs {wanted}, 1 or more")
        lines = [np.linspace(0.0, length, count + 1) for length, count in zip(region.lengths, cells, strict=True)]
        self._fill_checked(region, lines, degree)

    @classmethod
    def from_lines(cls, region: Region, *lines: ArrayLike, degree: int = 3) -> "Mesh":
        """A mesh with these lines between its cells, for each axis; the region's edges are added.

        Args:
            region: an area or an interval.
            lines: for each axis, where the cells end, counted from the region's lower end in the unit of distances.
            degree: the degree of the polynomials.

        >>> pg.points.Mesh.from_lines(pg.Area(4.0, 2.0), [0.5, 1.0, 2.0], [], degree=2)
        Mesh(4×1 cells, degree 2, 27 control points)
        """
        require_region(region, "what the mesh is over")
        if len(lines) != region.dimension:
            raise InvalidProblem(f"a mesh over {region!r} needs lines for {region.dimension} axes; got {len(lines)}")
        mesh = object.__new__(cls)
        axes = []
        for given, length in zip(lines, region.lengths, strict=True):
            inside = as_floats(given, "the lines of the mesh")
            if inside.ndim != 1 or not ((inside >= 0) & (inside <= length)).all():
                raise InvalidProblem("the lines of a mesh must be numbers inside the region")
            axes.append(np.unique(np.concatenate([[0.0, length], inside])))
        mesh._fill_checked(region, axes, degree)
        return mesh

    def _fill_checked(self, region: Region, lines: list[FloatArray], degree: int) -> None:
        if not (is_integer(degree) and degree <= HIGHEST_DEGREE):
            raise InvalidProblem(f"the degree of a mesh must be a whole number from 1 to {HIGHEST_DEGREE}")
        controls = prod((len(axis) - 1) * degree + 1 for axis in lines)
        if controls > MOST_CONTROLS:
            raise InvalidProblem(
                f"the mesh has {controls} control points, more than {MOST_CONTROLS}: use larger cells, a lower degree "
                "or a smaller region"
            )
        if min(float(np.diff(axis).min()) for axis in lines) < 1e-9 * max(region.lengths):
            raise InvalidProblem("some cells of the mesh are thinner than a billionth of the region")
        self._fill(region=region, axes=tuple(Axis(axis, degree) for axis in lines))

    @classmethod
    def for_epsilon(cls, region: Region, epsilon: float | None, *, degree: int = 3) -> "Mesh":
        """The default mesh: cells with sides of at most 1.5 / epsilon.

        Args:
            region: an area or an interval.
            epsilon: ε of the design; None where none is guaranteed.
            degree: the degree of the polynomials.

        >>> pg.points.Mesh.for_epsilon(pg.Interval(0.0, 10.0), epsilon=0.6)
        Mesh(4 cells, degree 3, 13 control points)
        """
        if epsilon is None:
            side = max(region.lengths) / CELLS_WITHOUT_EPSILON
        elif is_number(epsilon) and 0 < epsilon < np.inf:
            side = CELL_SIDE / epsilon
        else:
            raise InvalidProblem("epsilon must be a positive number")
        cells = [min(ceil(length / side), MOST_CONTROLS) for length in region.lengths]
        return cls(region, *cells, degree=degree)

    @cached_property
    def _content(self) -> tuple[object, ...]:
        return self.region, self.axes

    @property
    def degree(self) -> int:
        """The degree of the polynomials along each axis."""
        return self.axes[0].degree

    @property
    def controls(self) -> int:
        """How many control points there are: the rows of a mechanism on this mesh."""
        return prod(axis.controls for axis in self.axes)

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return prod(axis.cells for axis in self.axes)

    @property
    def resolution(self) -> float:
        """The farthest, in the unit of distances, that rounding moves a point inside its cell."""
        diagonal = float(np.hypot.reduce([float(np.diff(axis.lines).max()) for axis in self.axes]))
        return diagonal * 2.0 ** -(RESOLUTION_BITS + 1)

    def encode(self, xy: FloatArray) -> IntArray:
        """Points (points, axes) of the region as one integer each: the axes' codes, the first in the lowest bits."""
        codes = np.zeros(len(xy), dtype=np.int64)
        for number in reversed(range(len(self.axes))):
            codes = (codes << self._code_bits[number]) | self.axes[number].encode(xy[:, number])
        return codes

    def split(self, codes: IntArray) -> list[IntArray]:
        """The code along each axis."""
        along = []
        for bits in self._code_bits[:-1]:
            along.append(codes & ((1 << bits) - 1))
            codes = codes >> bits
        return [*along, codes]

    def decode(self, codes: IntArray) -> FloatArray:
        """The points that are encoded, (points, axes): within :attr:`resolution` of the original ones."""
        return np.stack([axis.decode(code) for axis, code in zip(self.axes, self.split(codes), strict=True)], axis=1)

    @cached_property
    def _code_bits(self) -> tuple[int, ...]:
        """The bits of each axis' codes; together at most 62, because the mesh has at most 4,000 control points."""
        return tuple(RESOLUTION_BITS + axis.cells.bit_length() for axis in self.axes)

    def basis(self, codes: IntArray) -> Any:
        """B_α(x) for each encoded point and control point, as a sparse matrix; rows are ≥ 0 and sum to one."""
        from scipy.sparse import csr_array

        order = np.arange(self.degree + 1)
        control, values = np.zeros((len(codes), 1), dtype=np.int64), np.ones((len(codes), 1))
        for axis, code in zip(self.axes[::-1], self.split(codes)[::-1], strict=True):
            first, along = axis.basis(code)
            control = (control[:, :, None] * axis.controls + (first[:, None] + order)[:, None, :]).reshape(
                len(codes), -1
            )
            values = (values[:, :, None] * along[:, None, :]).reshape(len(codes), -1)
        points = np.repeat(np.arange(len(codes)), values.shape[1])
        return csr_array((values.ravel(), (points, control.ravel())), shape=(len(codes), self.controls))

    def basis_at(self, xy: FloatArray) -> Any:
        """The same at points (points, axes) of the region."""
        return self.basis(self.encode(xy))

    @cached_property
    def gradients(self) -> tuple[Any, ...]:
        """For each control value of each cell: it, and the slope there along each axis, as sparse matrices.

        If the gradient's length is at most ε times the value at every one of them, then ‖∇f‖ ≤ ε·f everywhere.
        """
        from scipy.sparse import csr_array, kron

        values, slopes = [], []
        for axis in self.axes:
            stencil = axis.stencil
            rows = np.arange(len(stencil.position))
            shape = (len(rows), axis.controls)
            values.append(csr_array((np.ones(len(rows)), (rows, stencil.position)), shape=shape))
            factors = stencil.factors / stencil.side[:, None]
            slopes.append(csr_array((factors.ravel(), (np.repeat(rows, 3), stencil.neighbours.ravel())), shape=shape))

        def product(factors: list[Any]) -> Any:
            return csr_array(reduce(kron, factors[::-1]))

        along = [
            product([slopes[at] if at == axis else values[at] for at in range(len(values))])
            for axis in range(len(values))
        ]
        return product(values), *along

    @cached_property
    def cell_controls(self) -> IntArray:
        """The control points of each cell, (cells, (degree + 1) ** axes), the first axis running fastest in both."""
        control = np.zeros((1, 1), dtype=np.int64)
        for axis in self.axes[::-1]:
            own = np.arange(axis.cells)[:, None] * axis.degree + np.arange(axis.degree + 1)
            control = control[:, None, :, None] * axis.controls + own[None, :, None, :]
            control = control.reshape(control.shape[0] * control.shape[1], -1)
        return control

    @cached_property
    def cell_bounds(self) -> tuple[FloatArray, FloatArray]:
        """The lower and upper corners of each cell, (cells, axes) each, in the order of :attr:`cell_controls`."""
        cells = np.indices([axis.cells for axis in self.axes[::-1]]).reshape(len(self.axes), -1)[::-1]
        low = [axis.lines[cell] for axis, cell in zip(self.axes, cells, strict=True)]
        high = [axis.lines[cell + 1] for axis, cell in zip(self.axes, cells, strict=True)]
        return np.stack(low, axis=1), np.stack(high, axis=1)

    def __repr__(self) -> str:
        cells = "×".join(str(axis.cells) for axis in self.axes)
        return f"Mesh({cells} cells, degree {self.degree}, {self.controls} control points)"
