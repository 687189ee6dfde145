r"""The largest expected cost at any point of a region: an upper bound that is proved, and points where it is nearly so.

On a cell, :math:`p(o \mid x) = \sum_\alpha B_\alpha(x)\, p_\alpha(o)`. A convex cost lies below its Bernstein
operator, :math:`c(o, x) \le \sum_\beta B_\beta(x)\, c(o, \xi_\beta)` with equally spaced :math:`\xi_\beta`: the
right-hand side is the expectation of :math:`c(o, \xi)` for a random :math:`\xi` whose mean is x (Jensen). So the
expected cost lies below a polynomial whose Bernstein coefficients are means of the numbers :math:`M_{\alpha\beta} =
\sum_o p_\alpha(o)\, c(o, \xi_\beta)`, and a polynomial is at most its largest coefficient. Cells are halved by de
Casteljau's algorithm until the bound is within a tolerance of the largest value at a corner.
"""

from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.points import bernstein
from privacygames.points.mesh import Mesh
from privacygames.points.problem import PointCost

COST_DEGREE = 2
"""Degree of the polynomial above the cost: with 1, about twice as many cells have to be halved."""

MOST_HALVINGS = 20
MOST_CELLS = 4096
"""Most cells of a round: where more would be needed, the bound stays above the tolerance."""

ROUNDING = 2.0**-44
"""Relative error of the bound in floating point, at most: sums of fewer than 200 non-negative terms per output."""


@dataclass(frozen=True)
class LargestCost:
    """The largest expected cost at any point.

    Attributes:
        upper: no point costs more.
        lower: some point costs this.
        points: the points of the largest cost in each cell of the mesh, (cells, axes).
        costs: the expected costs there.

    >>> line = pg.Interval(0.0, 4.0)
    >>> mechanism = pg.design(pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 2.0, 3.0]), epsilon=0.5)
    >>> problem, rows = mechanism.problem, np.ldexp(mechanism.weights.astype(float), -mechanism.bits)
    >>> largest = pg.points.largest_cost(mechanism.mesh, rows, problem.outputs, problem.cost)
    >>> largest.lower <= largest.upper <= largest.lower * (1 + 1e-5)
    True
    """

    upper: float
    lower: float
    points: FloatArray
    costs: FloatArray


def largest_cost(
    mesh: Mesh, rows: FloatArray, outputs: FloatArray, cost: PointCost, *, tolerance: float = 1e-6
) -> LargestCost:
    """The largest expected cost at any point of the mesh's region.

    >>> line, rows = pg.Interval(0.0, 4.0), np.array([[1.0], [1.0]])
    >>> problem = pg.PointProblem(pg.PointPrior(line, [1.0]), [1.0])
    >>> mesh = pg.points.Mesh(line, 1, degree=1)
    >>> round(pg.points.largest_cost(mesh, rows, problem.outputs, problem.cost).upper, 6)
    3.0

    Args:
        mesh: the mesh.
        rows: p_α(o), (control points, outputs).
        outputs: the outputs, (outputs, axes).
        cost: a convex cost.
        tolerance: relative difference between the bound and the largest cost at which to stop.
    """
    cells = _Cells.of(mesh, rows)
    best_points, best_costs = np.array(cells.low), np.full(len(cells.low), -np.inf)
    lower, above = -np.inf, 0.0
    for halving in range(MOST_HALVINGS + 1):
        upper = cells.upper_bounds(outputs, cost)
        points, costs = cells.dearest_corners(outputs, cost)
        order = np.argsort(costs, kind="stable")
        improves = order[costs[order] > best_costs[cells.origin[order]]]
        best_costs[cells.origin[improves]], best_points[cells.origin[improves]] = costs[improves], points[improves]
        lower = max(lower, float(costs.max()))
        left = np.flatnonzero(upper > lower * (1 + tolerance))
        if not len(left) or halving == MOST_HALVINGS or len(left) * 2**cells.axes > MOST_CELLS:
            above = max(above, float(upper.max()))
            break
        above = max(above, float(np.delete(upper, left).max(initial=0.0)))
        cells = cells.halves(left)
    scale = 1 + (rows.shape[1] * 2.0**-52 + ROUNDING)
    return LargestCost(max(above, lower) * scale, lower, best_points, best_costs)


@dataclass(frozen=True)
class _Cells:
    """Parts of a mesh's cells, with Bernstein coefficients of every output.

    Attributes:
        values: (cells, coefficients, outputs).
        low: the lower corners, (cells, axes).
        high: the upper corners.
        origin: the cell of the mesh that each is part of.
        degree: the degree along each axis.
    """

    values: FloatArray
    low: FloatArray
    high: FloatArray
    origin: IntArray
    degree: int

    @classmethod
    def of(cls, mesh: Mesh, rows: FloatArray) -> "_Cells":
        """The cells of a mesh."""
        low, high = mesh.bounds
        return cls(mesh.cell_values(rows), low, high, np.arange(mesh.cells, dtype=np.int64), mesh.degree)

    @property
    def axes(self) -> int:
        """The number of axes."""
        return int(self.low.shape[1])

    def nodes(self, count: int) -> FloatArray:
        """Equally spaced points of each cell, (cells, count ** axes, axes), the first axis running fastest."""
        shares = np.linspace(0.0, 1.0, count)
        grid = np.meshgrid(*[shares] * self.axes, indexing="ij")[::-1]
        share = np.stack([axis.ravel() for axis in grid], axis=1)
        return self.low[:, None] + share * (self.high - self.low)[:, None]

    def upper_bounds(self, outputs: FloatArray, cost: PointCost) -> FloatArray:
        """The largest coefficient of the polynomial above the expected cost, of each cell."""
        nodes = self.nodes(COST_DEGREE + 1)
        costs = cost.matrix(nodes.reshape(-1, self.axes), outputs).reshape(*nodes.shape[:2], -1)
        products = self.values @ costs.transpose(0, 2, 1)  # (cells, coefficients, nodes)
        table = bernstein.products(self.degree, COST_DEGREE, self.axes)
        return np.asarray((products.reshape(len(nodes), -1) @ table).max(axis=1))

    def dearest_corners(self, outputs: FloatArray, cost: PointCost) -> tuple[FloatArray, FloatArray]:
        """The corner of each cell that costs most, and what it costs."""
        strides = (self.degree + 1) ** np.arange(self.axes)
        corner = np.array([[(number >> axis) & 1 for axis in range(self.axes)] for number in range(2**self.axes)])
        points = self.nodes(2)
        costs = cost.matrix(points.reshape(-1, self.axes), outputs).reshape(*points.shape[:2], -1)
        expected = (self.values[:, corner @ (self.degree * strides)] * costs).sum(axis=2)
        best, which = expected.argmax(axis=1), np.arange(len(points))
        return points[which, best], expected[which, best]

    def halves(self, chosen: IntArray) -> "_Cells":
        """Some of the cells, each cut in half along every axis."""
        values, low, high = self.values[chosen], self.low[chosen], self.high[chosen]
        middle = (low + high) / 2
        parts = []
        for number in range(2**self.axes):
            upper = np.array([(number >> axis) & 1 for axis in range(self.axes)], dtype=bool)
            operator: FloatArray = np.ones((1, 1))
            for each in upper[::-1].tolist():
                operator = np.asarray(np.kron(operator, bernstein.halves(self.degree)[int(each)]), dtype=np.float64)
            parts.append((operator @ values, np.where(upper, middle, low), np.where(upper, high, middle)))
        values, low, high = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return _Cells(values, low, high, np.tile(self.origin[chosen], len(parts)), self.degree)
