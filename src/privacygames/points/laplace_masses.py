r"""Probabilities that Laplace noise moves a point into each of several cells, the points nearest to each output.

The density in the plane is :math:`\frac{\varepsilon^2}{2\pi} e^{-\varepsilon r}`, and the mass beyond the radius r is
:math:`G(\varepsilon r)` with :math:`G(u) = (1 + u)\,e^{-u}`. A ray from x loses :math:`G` where it leaves a convex cell
and gains it where it enters the next. So with one number for each edge between two cells,

.. math:: S = \frac{1}{2\pi} \int G(\varepsilon\, r(\theta))\, d\theta,

over the angles in which x sees the edge, the mass of a cell is 1 if x lies in it and 0 otherwise, less S of the edges
across which rays leave it, plus S of those across which rays enter it. The masses of all cells add up to one whatever
the error of S is. (On a line edges are points, and :math:`S = \frac12 e^{-\varepsilon r}`.)

With h the distance of x from the line of the edge and the substitution :math:`\tan\theta = \sinh s`,

.. math:: 2\pi S = \int \frac{G(a \cosh s)}{\cosh s}\, ds, \qquad a = \varepsilon h,

whose integrand is analytic at a distance of :math:`\pi/2` from the real line: Gauss-Legendre quadrature converges
exponentially. Where the interval is long, a is small, and :math:`\int (1 - G)/\cosh s\, ds`, which is small there, is
integrated instead, since :math:`\int ds/\cosh s` is known.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray, IntArray

NODES = 40
"""Nodes of the quadrature for each edge: with these, errors are below 10⁻¹⁰."""

FEWER_NODES = 26
"""Nodes of a second quadrature; the difference of the two estimates the error from above."""

NEGLIGIBLE_EXPONENT = 45.0
"""Beyond the nearest point of an edge by this, in units of 1/ε, the rest of the edge adds less than 10⁻¹⁷ of it."""

LARGEST_EXPONENT = 800.0
"""Radius, in units of 1/ε, beyond which the mass is 0 in floating point."""

LONG_INTERVAL = 6.0
"""Length of an interval of s beyond which 1 − G is integrated."""

SHIFT = 3e-8
"""Distance in units of 1/ε by which every point is moved, so that none lies on a corner, where S of an edge is not
defined. That is noise with another mean: ε is guaranteed as before, and probabilities change by a relative 3·10⁻⁸."""

NEAREST = 1e-12
"""Smallest distance from the line of an edge that is told from 0, in units of 1/ε: S changes by less than 10⁻¹⁰."""

BLOCK_ENTRIES = 2**16
"""Most pairs of a point and an edge that are processed at once, so that temporary arrays stay in the cache."""


@dataclass(frozen=True)
class LaplaceCells:
    """The cells of the points nearest to each of several places, for Laplace noise of parameter ε.

    Attributes:
        places: (places, axes), in the unit of distances; the first of several equal ones has the cell.
        epsilon: ε per unit of distance.
    """

    places: FloatArray
    epsilon: float

    def masses(self, points: FloatArray, nodes: int = NODES) -> FloatArray:
        """The probability of each cell for each point, (points, places).

        Args:
            points: (points, axes), in the unit of distances.
            nodes: nodes of the quadrature for each edge; not used on a line.
        """
        table = np.zeros((len(points), len(self.places)))
        distinct, first = self._distinct
        if len(distinct) == 1:
            table[:, first[0]] = 1.0
            return table
        own = np.zeros((len(points), len(distinct)))
        size = max(1, BLOCK_ENTRIES // max(len(self._edges.cells), len(distinct)))
        for start in range(0, len(points), size):
            rows = slice(start, start + size)
            own[rows] = self._block(points[rows], nodes)
        table[:, first] = own
        return table

    def quadrature_error(self, points: FloatArray) -> float:
        """An estimate of the largest error of a probability at these points: the change with fewer nodes."""
        if points.shape[1] == 1:
            return 0.0
        return max(float(np.abs(self.masses(points) - self.masses(points, FEWER_NODES)).max()), SHIFT)

    def _block(self, points: FloatArray, nodes: int) -> FloatArray:
        distinct, _ = self._distinct
        edges = self._edges
        if points.shape[1] == 2:
            points = points + SHIFT / self.epsilon * np.array([0.8, 0.6])
        squares = ((points[:, None] - distinct[None]) ** 2).sum(axis=2)
        in_first = squares[:, edges.cells[:, 0]] <= squares[:, edges.cells[:, 1]]  # breaks ties as argmin does
        beyond = edges.beyond(points, self.epsilon, nodes)
        own = np.asarray(edges.incidence.T @ np.where(in_first, beyond, -beyond).T).T  # what the second cells gain
        own[np.arange(len(points)), squares.argmin(axis=1)] += 1.0
        return np.asarray(np.maximum(own, 0.0))

    @cached_property
    def _distinct(self) -> tuple[FloatArray, IntArray]:
        """The distinct places, and the position of the first of each."""
        distinct, first = np.unique(self.places, axis=0, return_index=True)
        return distinct, first

    @cached_property
    def _edges(self) -> "_Edges":
        distinct, _ = self._distinct
        if distinct.shape[1] == 1:
            pairs = np.stack([np.arange(len(distinct) - 1), np.arange(1, len(distinct))], axis=1)
            return _Edges.between(distinct, pairs, None)
        return _Edges.of_plane(distinct, self.epsilon)


@dataclass(frozen=True)
class _Edges:
    """Edges between pairs of cells: where they lie, and which cells they separate.

    Attributes:
        cells: (edges, 2), the smaller number first.
        normals: (edges, axes) unit vectors from the first cell to the second.
        heights: (edges,) the products of an edge's points with its normal.
        ends: (edges, 2) the ends as positions along the edge, turned left from the normal; None on a line.
        incidence: (edges, cells) 1 for the second cell and −1 for the first, sparse.
    """

    cells: IntArray
    normals: FloatArray
    heights: FloatArray
    ends: FloatArray | None
    incidence: Any

    @classmethod
    def between(cls, places: FloatArray, pairs: IntArray, corners: FloatArray | None) -> "_Edges":
        """The edges between pairs of places, with the ends (edges, 2, axes) of each in the plane."""
        from scipy.sparse import csr_array

        difference = places[pairs[:, 1]] - places[pairs[:, 0]]
        normals = difference / np.sqrt((difference**2).sum(axis=1, keepdims=True))
        heights = (normals * (places[pairs[:, 0]] + places[pairs[:, 1]]) / 2).sum(axis=1)
        ends = None
        if corners is not None:
            along = np.stack([-normals[:, 1], normals[:, 0]], axis=1)
            ends = np.sort((corners * along[:, None]).sum(axis=2), axis=1)
        signs = np.tile([-1.0, 1.0], len(pairs))
        incidence = csr_array((signs, pairs.ravel(), np.arange(len(pairs) + 1) * 2), shape=(len(pairs), len(places)))
        return cls(pairs, normals, heights, ends, incidence)

    @classmethod
    def of_plane(cls, places: FloatArray, epsilon: float) -> "_Edges":
        """The edges of the Voronoi diagram of places in the plane.

        Four further places so far away that no mass reaches their cells make every edge between two others finite.
        """
        from scipy.spatial import Voronoi

        middle = (places.min(axis=0) + places.max(axis=0)) / 2
        far = 4 * (float(np.abs(places - middle).max()) + LARGEST_EXPONENT / epsilon)
        around = middle + far * np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
        diagram = Voronoi(np.concatenate([places, around]))
        pairs = np.sort(np.asarray(diagram.ridge_points, dtype=np.int64), axis=1)
        inner = np.flatnonzero((pairs < len(places)).all(axis=1))
        corners = np.array([diagram.vertices[diagram.ridge_vertices[row]] for row in inner.tolist()])
        return cls.between(places, pairs[inner], corners.reshape(-1, 2, 2))

    def beyond(self, points: FloatArray, epsilon: float, nodes: int) -> FloatArray:
        """S of each edge for each point, (points, edges); see the module's docstring."""
        h = epsilon * np.abs(points @ self.normals.T - self.heights)
        if self.ends is None:
            return np.asarray(np.exp(-h) / 2)
        h = np.maximum(h, NEAREST)
        along = points @ np.stack([-self.normals[:, 1], self.normals[:, 0]])
        low, high = (np.arcsinh(epsilon * (end - along) / h) for end in self.ends.T)
        nearest = np.where(low > 0, low, np.where(high < 0, -high, 0.0))  # |s| of the edge's nearest point
        most = np.arccosh(np.cosh(np.minimum(nearest, 600.0)) + NEGLIGIBLE_EXPONENT / h)
        low, high = np.clip(low, -most, most), np.clip(high, -most, most)
        half, middle = (high - low) / 2, (high + low) / 2
        complement = half > LONG_INTERVAL / 2
        total = np.zeros(h.shape)
        for node, weight in zip(*np.polynomial.legendre.leggauss(nodes), strict=True):
            cosh = np.cosh(middle + node * half)
            r = h * cosh
            decayed = np.exp(-np.minimum(r, LARGEST_EXPONENT))
            remaining = (1 + r) * decayed
            remaining[r >= LARGEST_EXPONENT] = 0.0
            np.subtract(1.0, remaining, out=remaining, where=complement)
            total += weight * remaining / cosh
        total *= half
        angle = np.arctan(np.sinh(high)) - np.arctan(np.sinh(low))
        return np.where(complement, angle - total, total) / (2 * np.pi)
