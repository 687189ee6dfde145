r"""Meshes: cells over a region, on each of which p(o|x) is a polynomial in Bernstein form.

In the plane a function is :math:`f(x) = \sum_{ij} B_i(t_x) B_j(t_y)\, c_{ij}` on each cell. Cells share control values,
so that f is continuous (``shared_controls.py``); where f has to bend sharply, smaller cells follow it better.
"""

from collections.abc import Sequence
from functools import cached_property
from math import ceil, prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, IntArray, as_floats, content_hash, freeze_floats
from privacygames.errors import InvalidProblem
from privacygames.immutable import Value
from privacygames.points import bernstein
from privacygames.points.bernstein import RESOLUTION_BITS
from privacygames.points.cell_tree import CellTree
from privacygames.points.shared_controls import WEIGHT_BITS, SharedControls
from privacygames.spaces import Region, require_region
from privacygames.validation import is_integer, is_number, require_instance

CELL_SIDE = 2.5
"""Largest side of the cells that refinement starts from, times epsilon."""

CELLS_WITHOUT_EPSILON = 4
"""Default number of cells along the longest axis where no epsilon says how smooth p(o|x) has to be."""

HIGHEST_DEGREE = 8
"""Highest degree of the polynomials; above 4, smaller cells are cheaper than higher degrees."""

MOST_CONTROLS = 4000
"""Most control points of a mesh: the solver factorises a dense matrix of this order for each output."""

COORDINATE_BITS = RESOLUTION_BITS + 1
"""Bits of a coordinate inside a cell, from 0 to 2^RESOLUTION_BITS inclusive; three axes would not fit 64 bits."""


class Mesh(Value):
    """A mesh over a region, with the degree of the Bernstein polynomials on its cells.

    >>> mesh = pg.points.Mesh(pg.Area(3.0, 3.0), 2, 2)
    >>> mesh, mesh.refined([0])
    (Mesh(2×2 cells, degree 3, 49 control points), Mesh(7 cells, degree 3, 76 control points))

    Args:
        region: an area or an interval.
        cells: the number of cells along each axis.
        degree: the degree of the polynomials.
    """

    region: Region
    lines: tuple[FloatArray, ...]
    """Where the cells of level 0 begin and end along each axis, in the unit of distances."""
    tree: CellTree
    degree: int
    """The degree of the polynomials along each axis."""

    def __init__(self, region: Region, *cells: int, degree: int = 3) -> None:
        require_region(region, "what the mesh is over")
        if len(cells) != region.dimension or not all(map(is_integer, cells)):
            wanted = "whole numbers of columns and rows" if region.dimension == 2 else "a whole number of cells"
            raise InvalidProblem(f"a mesh needs {wanted}, 1 or more")
        if is_integer(degree):  # before lines of such a length are made
            _require_size(prod(count * degree + 1 for count in cells))
        lines = [np.linspace(0.0, length, count + 1) for length, count in zip(region.lengths, cells, strict=True)]
        self._fill_checked(region, lines, None, degree)

    @classmethod
    def from_lines(cls, region: Region, *lines: ArrayLike, degree: int = 3, cells: IntArray | None = None) -> "Mesh":
        """A mesh with these lines between its cells, for each axis; the region's edges are added.

        Args:
            region: an area or an interval.
            lines: for each axis, where the cells end, counted from the region's lower end in the unit of distances.
            degree: the degree of the polynomials.
            cells: the cells of another mesh's :attr:`tree`, where some are halved.

        >>> pg.points.Mesh.from_lines(pg.Area(4.0, 2.0), [0.5, 1.0, 2.0], [], degree=2)
        Mesh(4×1 cells, degree 2, 27 control points)
        """
        require_region(region, "what the mesh is over")
        if len(lines) != region.dimension:
            raise InvalidProblem(f"a mesh over {region!r} needs lines for {region.dimension} axes; got {len(lines)}")
        mesh = object.__new__(cls)
        axes = []
        for given, length in zip(lines, region.lengths, strict=True):
            inside = as_floats(given, "the list of lines of the mesh")
            if inside.ndim != 1 or not ((inside >= 0) & (inside <= length)).all():
                raise InvalidProblem("the lines of a mesh must be numbers inside the region")
            axes.append(np.unique(np.concatenate([[0.0, length], inside])))
        mesh._fill_checked(region, axes, cells, degree)
        return mesh

    def _fill_checked(self, region: Region, lines: Sequence[FloatArray], cells: IntArray | None, degree: int) -> None:
        if not (is_integer(degree) and degree <= HIGHEST_DEGREE):
            raise InvalidProblem(f"the degree of a mesh must be a whole number from 1 to {HIGHEST_DEGREE}")
        counts = [len(axis) - 1 for axis in lines]
        if min(float(np.diff(axis).min()) for axis in lines) < 1e-9 * max(region.lengths):
            raise InvalidProblem("some cells of the mesh are thinner than a billionth of the region")
        _require_size(prod(count * degree + 1 for count in counts))
        if cells is not None and len(cells) * degree ** len(lines) > 2 * MOST_CONTROLS:
            _require_size(len(cells) * degree ** len(lines))
        tree = CellTree(counts) if cells is None else CellTree.of(counts, cells)
        if tree.depth * degree > WEIGHT_BITS:
            raise InvalidProblem(f"cells of degree {degree} are halved at most {WEIGHT_BITS // degree} times")
        self._fill(region=region, lines=tuple(map(freeze_floats, lines)), tree=tree, degree=int(degree))
        _require_size(self.controls)

    @classmethod
    def for_epsilon(cls, region: Region, epsilon: float | None, *, degree: int = 3) -> "Mesh":
        """A regular mesh whose cells have sides of at most 2.5 / epsilon: the one that a design refines by default.

        Args:
            region: an area or an interval.
            epsilon: ε of the design; None where none is guaranteed.
            degree: the degree of the polynomials.

        >>> pg.points.Mesh.for_epsilon(pg.Interval(0.0, 10.0), epsilon=0.6)
        Mesh(3 cells, degree 3, 10 control points)
        """
        if epsilon is None:
            side = max(region.lengths) / CELLS_WITHOUT_EPSILON
        elif is_number(epsilon) and 0 < epsilon < np.inf:
            side = CELL_SIDE / epsilon
        else:
            raise InvalidProblem("epsilon must be a positive number")
        cells = [min(ceil(length / side), MOST_CONTROLS) for length in region.lengths]
        return cls(region, *cells, degree=degree)

    def refined(self, cells: Sequence[int] | IntArray) -> "Mesh":
        """The mesh with some cells halved along every axis, and as many of their neighbours as that demands.

        Every function on this mesh is one on the finer mesh, too.

        Args:
            cells: their numbers, in the order of :attr:`bounds`.
        """
        require_instance(self, Mesh, "the mesh")
        mesh = object.__new__(Mesh)
        mesh._fill_checked(self.region, self.lines, self.tree.halved(cells).cells, self.degree)
        return mesh

    @cached_property
    def _content(self) -> tuple[object, ...]:
        return self.region, tuple(content_hash(axis) for axis in self.lines), self.tree, self.degree

    @property
    def axes(self) -> int:
        """The number of axes."""
        return len(self.lines)

    @cached_property
    def shared(self) -> SharedControls:
        """The control values of cells as combinations of free ones."""
        return SharedControls.of(self.tree, self.degree)

    @property
    def controls(self) -> int:
        """How many free control points there are: the rows of a mechanism on this mesh."""
        return self.shared.free

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return len(self.tree)

    @cached_property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """The lower and upper corners of each cell, (cells, axes) each."""
        low, high = np.empty((2, self.cells, self.axes))
        levels = self.tree.cells[:, 0]
        for axis, lines in enumerate(self.lines):
            cell, part = np.divmod(self.tree.cells[:, 1 + axis], 1 << levels)
            side = np.ldexp(np.diff(lines)[cell], -levels)
            low[:, axis] = lines[cell] + part * side
            high[:, axis] = np.where(part + 1 == 1 << levels, lines[cell + 1], lines[cell] + (part + 1) * side)
        return freeze_floats(low), freeze_floats(high)

    @cached_property
    def sides(self) -> FloatArray:
        """The sides of each cell, (cells, axes)."""
        levels = self.tree.cells[:, 0]
        whole = [np.diff(lines)[self.tree.cells[:, 1 + axis] >> levels] for axis, lines in enumerate(self.lines)]
        return freeze_floats(np.ldexp(np.stack(whole, axis=1), -levels[:, None]))

    @property
    def resolution(self) -> float:
        """The farthest, in the unit of distances, that rounding moves a point inside its cell."""
        return float(np.hypot.reduce(self.sides, axis=1).max()) * 2.0 ** -(RESOLUTION_BITS + 1)

    def encode(self, xy: FloatArray) -> IntArray:
        """Points (points, axes) of the region as one integer each: the cell, and where in it."""
        finest = []
        for axis, lines in enumerate(self.lines):
            x, count, parts = xy[:, axis], self.tree.counts[axis], 1 << self.tree.depth
            line = np.clip(np.searchsorted(lines, x, side="right") - 1, 0, count - 1)
            part = ((x - lines[line]) / np.diff(lines)[line] * parts).astype(np.int64)
            finest.append(line * parts + part.clip(0, parts - 1))
        codes: IntArray = self.tree.lookup[tuple(finest[::-1])]
        low, side = self.bounds[0][codes], self.sides[codes]
        inside = np.rint((xy - low) / side * 2**RESOLUTION_BITS).astype(np.int64).clip(0, 2**RESOLUTION_BITS)
        for axis in reversed(range(self.axes)):
            codes = (codes << COORDINATE_BITS) | inside[:, axis]
        return codes

    def split(self, codes: IntArray) -> tuple[IntArray, list[IntArray]]:
        """The cell of each encoded point; and for each axis where in it, from 0 to 2^RESOLUTION_BITS inclusive."""
        inside = []
        for _ in range(self.axes):
            inside.append(codes & ((1 << COORDINATE_BITS) - 1))
            codes = codes >> COORDINATE_BITS
        return codes, inside

    def decode(self, codes: IntArray) -> FloatArray:
        """The points that are encoded, (points, axes): within :attr:`resolution` of the original ones."""
        cell, inside = self.split(codes)
        shares = np.ldexp(np.stack(inside, axis=1).astype(np.float64), -RESOLUTION_BITS)
        return np.asarray(self.bounds[0][cell] + shares * self.sides[cell])

    def basis(self, codes: IntArray) -> Any:
        """B_α(x) for each encoded point and control point, as a sparse matrix; rows are ≥ 0 and sum to one."""
        from scipy.sparse import csr_array

        cell, inside = self.split(codes)
        values = bernstein.basis(inside, self.degree)
        each = values.shape[1]
        columns = cell[:, None] * each + np.arange(each)
        starts = np.arange(len(codes) + 1) * each
        local = csr_array((values.ravel(), columns.ravel(), starts), shape=(len(codes), self.cells * each))
        return local @ self.shared.weights

    def basis_at(self, xy: FloatArray) -> Any:
        """The same at points (points, axes) of the region."""
        return self.basis(self.encode(xy))

    @cached_property
    def gradients(self) -> tuple[Any, ...]:
        """For each control value of each cell: it, and the slope there along each axis, as sparse matrices.

        If the gradient's length is at most ε times the value at every one of them, then ‖∇f‖ ≤ ε·f everywhere.
        """
        from scipy.sparse import csr_array, diags_array, kron

        along = []
        for axis, slopes in enumerate(bernstein.slopes(self.degree, self.axes)):
            local = kron(diags_array(1 / self.sides[:, axis]), csr_array(slopes.astype(np.float64)))
            along.append(csr_array(local @ self.shared.weights))
        return self.shared.weights, *along

    def cell_values(self, rows: FloatArray) -> FloatArray:
        """The control values of each cell, (cells, (degree + 1) ** axes, outputs), from those of control points."""
        return np.asarray(self.shared.weights @ rows).reshape(self.cells, -1, rows.shape[1])

    def __repr__(self) -> str:
        cells = "×".join(map(str, self.tree.counts)) if self.tree.depth == 0 else str(self.cells)
        return f"Mesh({cells} cells, degree {self.degree}, {self.controls} control points)"


def _require_size(controls: int) -> None:
    if controls > MOST_CONTROLS:
        raise InvalidProblem(
            f"the mesh has {controls} control points, more than {MOST_CONTROLS}: use larger cells, a lower degree "
            "or a smaller region"
        )
