r"""Piecewise Bernstein polynomials along one axis: values, and slopes as combinations of control values.

On each cell a function is :math:`f(x) = \sum_i B_i(t)\, c_i` with the Bernstein polynomials
:math:`B_i(t) = \binom{d}{i} t^i (1-t)^{d-i}` of the cell's own coordinate t in [0, 1]; adjacent cells share the control
value at their common end, so f is continuous.
"""

from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np

from privacygames.arrays import FloatArray, IntArray, freeze_floats
from privacygames.immutable import Value

RESOLUTION_BITS = 24
"""A coordinate inside a cell is rounded to a multiple of 2^-24 of the cell's side: under a millimetre."""


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
    """One axis of a mesh: the ends of its cells, and the degree of the polynomials on each.

    >>> pg.points.Mesh.for_epsilon(pg.Area(3.0, 3.0), epsilon=1.0).axes[0].degree
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

    def encode(self, coordinates: FloatArray) -> IntArray:
        """Coordinates as integers: 2^RESOLUTION_BITS times the cell, plus where in it; rounded to the nearest."""
        cell = np.clip(np.searchsorted(self.lines, coordinates, side="right") - 1, 0, self.cells - 1)
        start, side = self.lines[cell], np.diff(self.lines)[cell]
        inside = np.rint((coordinates - start) / side * 2**RESOLUTION_BITS).astype(np.int64)
        return np.asarray((cell << RESOLUTION_BITS) + inside.clip(0, 2**RESOLUTION_BITS))

    def split(self, codes: IntArray) -> tuple[IntArray, IntArray]:
        """The cell of each encoded coordinate, and where in it: integers from 0 to 2^RESOLUTION_BITS, both included."""
        cell = np.minimum(codes >> RESOLUTION_BITS, self.cells - 1)
        return cell, codes - (cell << RESOLUTION_BITS)

    def locate(self, coordinates: FloatArray) -> tuple[IntArray, IntArray]:
        """The cell of each coordinate, and where in it."""
        return self.split(self.encode(coordinates))

    def decode(self, codes: IntArray) -> FloatArray:
        """The coordinates that are encoded."""
        cell, inside = self.split(codes)
        return self.lines[cell] + np.ldexp(inside.astype(np.float64), -RESOLUTION_BITS) * np.diff(self.lines)[cell]

    def basis(self, codes: IntArray) -> tuple[IntArray, FloatArray]:
        """For each encoded coordinate the first control value of its cell, and the d + 1 basis functions there."""
        cell, inside = self.split(codes)
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
