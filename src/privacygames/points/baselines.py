r"""Known mechanisms for points, to compare with: their distributions and the ε that a theorem guarantees for points.

They are computed in floating point and not sampled from. Every post-processing of a distribution with the guarantee ε
between any two points has it, too: rounding noise to the nearest output, and replacing outputs by better ones.
"""

from collections.abc import Callable
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, freeze_floats
from privacygames.certificates import log_ratios
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism
from privacygames.points.guesses import best_guesses
from privacygames.points.laplace_masses import LaplaceCells
from privacygames.points.problem import PointProblem, norms, output_coordinates
from privacygames.problem import require_epsilon
from privacygames.spaces import Area, Grid, Interval, Numbers, Region
from privacygames.validation import is_number, require_instance

Table = Callable[[FloatArray], FloatArray]
"""The probabilities (points, outputs) of points (points, axes) in the unit of distances."""

MARGIN = 3.0
"""Width of the border of a fine lattice beyond the region, in units of 1/ε; its outermost cells are unbounded."""

FINE_STEP = 0.4
"""Step of a fine lattice, in units of 1/ε: with a quarter of it, remapped noise costs 0.1 to 0.5 % less."""

FINE_STEP_ON_LINE = 0.02
"""The same on a line, where cells cost next to nothing."""

MOST_FINE_CELLS = 10_000
MOST_FINE_ENTRIES = 6_000_000
"""Most pairs of a point of the prior and a cell of a fine lattice: more would take over ten seconds."""


class PointBaseline:
    """The distribution of a known mechanism at every point of a region, with its guarantee for points.

    >>> town = pg.Area(2.0, 2.0)
    >>> problem = pg.PointProblem(pg.PointPrior(town, [(0.5, 0.5), (1.5, 1.2)]), [(0.5, 0.5), (1.5, 1.2)])
    >>> baseline = pg.points.exponential(problem, 1.0)
    >>> baseline, baseline.probabilities([(0.5, 0.5)]).round(4).tolist()
    (PointBaseline(exponential mechanism, 2 outputs), [[0.648, 0.352]])

    Args:
        name: what it is called.
        secrets: the region of the secrets.
        places: the outputs in the unit of distances, (outputs, axes).
        epsilon: the guarantee between any two points; ∞ where none holds.
        table: the probabilities at points in the unit of distances.
        quadrature_error: an estimate of the largest error of a probability.
    """

    def __init__(
        self,
        name: str,
        secrets: Region,
        places: FloatArray,
        epsilon: float,
        table: Table,
        *,
        quadrature_error: float = 0.0,
    ) -> None:
        self.name, self.secrets, self.places = name, secrets, freeze_floats(places)
        self.epsilon, self.table, self.quadrature_error = epsilon, table, quadrature_error

    @property
    def outputs(self) -> FloatArray:
        """The outputs in the region's coordinates, (outputs, axes)."""
        return self.secrets.coordinates(self.places)

    def probabilities(self, points: ArrayLike) -> FloatArray:
        """p(o|x) at points in the region's coordinates, (points, outputs); points outside are moved to the edge."""
        return self.table(self.secrets.clamp(points))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name}, {len(self.places)} outputs)"


class SnappedGrid(PointBaseline):
    """A mechanism for cells, used on points: each point is replaced by its cell. No ε holds for points.

    Two points on either side of a border between cells, however close, have the log-ratio of the two cells.

    >>> grid = pg.Grid(2, 1, width=2.0, height=1.0)
    >>> mechanism = pg.design(pg.Problem(pg.Prior.uniform(grid), cost="euclidean"), epsilon=1.0)
    >>> snapped = pg.points.snapped(mechanism)
    >>> snapped.epsilon, round(snapped.epsilon_apart(0.1), 6), round(snapped.epsilon_apart(1.0), 6)
    (inf, 10.0, 1.0)
    """

    def __init__(self, mechanism: Mechanism, secrets: Region, counts: tuple[int, ...]) -> None:
        self.mechanism, self.counts = mechanism, counts
        self._sides = np.divide(secrets.lengths, counts)
        size = "×".join(map(str, counts))
        places = output_coordinates(secrets, mechanism.observables)
        super().__init__(f"snapped grid, {size} cells", secrets, places, inf, self._rows_of_cells)
        self.epsilon = self.epsilon_apart(0.0)

    def _rows_of_cells(self, points: FloatArray) -> FloatArray:
        cells = np.minimum((points / self._sides).astype(np.int64), np.subtract(self.counts, 1))
        strides = np.cumprod([1, *self.counts[:-1]])
        return np.asarray(self.mechanism.probabilities[cells @ strides])

    def epsilon_apart(self, distance: float) -> float:
        """The smallest ε that holds between any two points of the region at least ``distance`` apart; ∞ if none does.

        Computed from the weights: for two cells it is their log-ratio, divided by the smallest possible distance of a
        point of the one from a point of the other that is not below ``distance``.

        Args:
            distance: in the unit of distances, 0 or more.
        """
        if not (is_number(distance) and 0 <= distance < inf):
            raise InvalidProblem("a distance must be a number, 0 or more")
        ratios = log_ratios(self.mechanism.weights)
        np.fill_diagonal(ratios, 0.0)
        steps = np.abs(self._positions[:, None] - self._positions[None])
        least = np.sqrt(((np.maximum(steps - 1, 0) * self._sides) ** 2).sum(axis=2))
        most = np.sqrt((((steps + 1) * self._sides) ** 2).sum(axis=2))
        ratios[most < distance] = 0.0
        apart = np.maximum(least, distance)
        if (ratios[apart == 0] > 0).any():
            return inf
        return float((ratios[apart > 0] / apart[apart > 0]).max(initial=0.0))

    @property
    def _positions(self) -> FloatArray:
        """The column, and the row, of each cell, (cells, axes)."""
        axes = np.meshgrid(*[np.arange(count) for count in self.counts[::-1]], indexing="ij")[::-1]
        return np.stack([axis.ravel() for axis in axes], axis=1).astype(np.float64)


def snapped(mechanism: Mechanism, region: Region | None = None) -> SnappedGrid:
    """A mechanism whose secrets are the cells of a grid (or evenly spaced numbers), as it is used on points.

    Args:
        mechanism: the mechanism for cells.
        region: the area or interval that the cells divide; by default that of the grid.

    >>> grid = pg.Grid(4, 2, width=4.0, height=2.0)
    >>> mechanism = pg.baselines.planar_laplace(pg.Problem(pg.Prior.uniform(grid), cost="euclidean"), 1.0)
    >>> pg.points.snapped(mechanism)
    SnappedGrid(snapped grid, 4×2 cells, 8 outputs)
    """
    cells = require_instance(mechanism, Mechanism, "the mechanism").secrets
    if isinstance(cells, Grid) and (region is None or isinstance(region, Area)):
        if region is None:
            region = Area(cells.width, cells.height) if cells.box is None else Area.over(cells.box)
        if cells.box != region.box and cells.box is not None:
            raise InvalidProblem("the grid and the region are over different boxes")
        if cells.box is None and not np.allclose((cells.width, cells.height), region.lengths, rtol=1e-9, atol=0):
            raise InvalidProblem("the grid and the region have different sizes")
        return SnappedGrid(mechanism, region, (cells.columns, cells.rows))
    if isinstance(cells, Numbers) and isinstance(region, Interval):
        centres = region.coordinates(region.lattice((len(cells),)))[:, 0]
        if np.allclose(cells.values, centres, rtol=0, atol=1e-9 * region.lengths[0]):
            return SnappedGrid(mechanism, region, (len(cells),))
    raise InvalidProblem(
        "only the cells of a Grid, or the centres of equal parts of an Interval, are what points can be replaced by"
    )


def planar_laplace(problem: PointProblem, epsilon: float, *, fine: bool = False) -> PointBaseline:
    r"""Planar Laplace noise added to the point, and the nearest output released; on an interval, Laplace noise.

    The probabilities are integrals of :math:`\frac{ε^2}{2π} e^{-ε r}` over the points nearest to each output, by
    quadrature. Rounding is post-processing, so ε is guaranteed between any two points.

    Args:
        problem: the outputs.
        epsilon: ε per unit of distance.
        fine: instead of the problem's outputs, release the nearest point of a fine lattice over the region and a
            border around it: what :func:`remap` replaces by outputs.

    >>> line = pg.Interval(0.0, 2.0)
    >>> problem = pg.PointProblem(pg.PointPrior(line, [0.0, 2.0]), [0.0, 2.0])
    >>> pg.points.planar_laplace(problem, 1.0).probabilities([0.0]).round(4).tolist()
    [[0.8161, 0.1839]]
    """
    require_instance(problem, PointProblem, "the problem")
    epsilon = require_epsilon(epsilon)
    places = _fine_lattice(problem, epsilon) if fine else problem.outputs
    cells = LaplaceCells(places, epsilon)
    name = "planar Laplace" if problem.region.dimension == 2 else "Laplace"
    error = cells.quadrature_error(problem.prior.xy)
    return PointBaseline(name, problem.region, places, epsilon, cells.masses, quadrature_error=error)


def _fine_lattice(problem: PointProblem, epsilon: float) -> FloatArray:
    """A lattice over the region and a border around it, fine in units of 1/ε as far as its size allows."""
    lengths = np.add(problem.region.lengths, 2 * MARGIN / epsilon)
    most = max(min(MOST_FINE_CELLS, MOST_FINE_ENTRIES // len(problem.prior)), 16)
    finest = FINE_STEP if len(lengths) == 2 else FINE_STEP_ON_LINE
    step = max(finest / epsilon, float(np.prod(lengths) / most) ** (1 / len(lengths)))
    axes = [
        (np.arange(count := max(2, round(length / step))) + 0.5) * (length / count) - MARGIN / epsilon
        for length in lengths.tolist()
    ]
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


def laplace_cost(problem: PointProblem, epsilon: float) -> float | None:
    """The expected cost of releasing the point with Laplace noise itself, in closed form; None for given costs.

    It is 2/ε in the plane and 1/ε on a line, and the squares cost 6/ε² and 2/ε².

    >>> town = pg.Area(2.0, 2.0)
    >>> problem = pg.PointProblem(pg.PointPrior(town, [(0.5, 0.5)]), [(0.5, 0.5)])
    >>> pg.points.laplace_cost(problem, 0.5)
    4.0
    """
    require_instance(problem, PointProblem, "the problem")
    epsilon = require_epsilon(epsilon)
    plane = problem.region.dimension == 2
    if not problem.cost.is_convex:
        return None
    if problem.cost.name == "squared":
        return (6.0 if plane else 2.0) / epsilon**2
    return (2.0 if plane else 1.0) / epsilon


def exponential(problem: PointProblem, epsilon: float) -> PointBaseline:
    r"""The exponential mechanism for points: :math:`p(o|x) ∝ e^{-(ε/2) \|x - o\|}`.

    The numerator and the sum of all numerators change by at most :math:`e^{(ε/2) \|x - x'\|}` each, so ε is guaranteed
    between any two points.

    Args:
        problem: the outputs.
        epsilon: ε per unit of distance.

    >>> line = pg.Interval(0.0, 2.0)
    >>> problem = pg.PointProblem(pg.PointPrior(line, [0.0, 2.0]), [0.0, 2.0])
    >>> pg.points.exponential(problem, 1.0).probabilities([1.0]).tolist()
    [[0.5, 0.5]]
    """
    require_instance(problem, PointProblem, "the problem")
    epsilon, outputs = require_epsilon(epsilon), problem.outputs

    def table(points: FloatArray) -> FloatArray:
        distances = norms(points, outputs)
        scores = np.exp(-epsilon / 2 * (distances - distances.min(axis=1, keepdims=True)))
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))

    return PointBaseline("exponential mechanism", problem.region, outputs, epsilon, table)


def uniform(problem: PointProblem) -> PointBaseline:
    """Every output with the same probability, whatever the point: reveals nothing.

    >>> line = pg.Interval(0.0, 2.0)
    >>> problem = pg.PointProblem(pg.PointPrior(line, [0.0, 2.0]), [0.0, 2.0])
    >>> pg.points.uniform(problem).probabilities([1.7]).tolist()
    [[0.5, 0.5]]
    """
    count = len(require_instance(problem, PointProblem, "the problem").outputs)
    return _independent("uniform", problem, np.full(count, 1 / count))


def constant(problem: PointProblem) -> PointBaseline:
    """The one output that is cheapest on average: least cost among the mechanisms that reveal nothing.

    >>> line = pg.Interval(0.0, 2.0)
    >>> problem = pg.PointProblem(pg.PointPrior(line, [0.0, 2.0, 2.0]), [0.0, 2.0])
    >>> pg.points.constant(problem).probabilities([1.7]).tolist()
    [[0.0, 1.0]]
    """
    require_instance(problem, PointProblem, "the problem")
    row = np.zeros(len(problem.outputs))
    row[int((problem.prior.probabilities @ problem.costs).argmin())] = 1.0
    return _independent("constant", problem, row)


def _independent(name: str, problem: PointProblem, row: FloatArray) -> PointBaseline:
    return PointBaseline(name, problem.region, problem.outputs, 0.0, lambda points: np.tile(row, (len(points), 1)))


def remap(baseline: PointBaseline, problem: PointProblem, *, any_point: bool = False) -> PointBaseline:
    r"""Optimal deterministic post-processing: each output is replaced by the cheapest one given its posterior.

    .. math:: o ↦ \operatorname{argmin}_{o'} \sum_x π(x)\,p(o|x)\,c(o',x)

    It keeps ε, because that is a function of the output, and reveals no more. No post-processing of this baseline costs
    less for this prior and cost.

    Args:
        baseline: the mechanism.
        problem: the prior, the cost, and the outputs to choose from.
        any_point: choose from all points instead of the problem's outputs; the cost must be a named one.

    >>> line = pg.Interval(0.0, 2.0)
    >>> problem = pg.PointProblem(pg.PointPrior(line, [0.0, 0.1, 2.0], [1, 1, 8]), [0.0, 2.0])
    >>> noisy = pg.points.planar_laplace(problem, 0.1)
    >>> pg.points.remap(noisy, problem).probabilities([0.0]).tolist()
    [[0.0, 1.0]]
    """
    from scipy.sparse import csr_array

    require_instance(baseline, PointBaseline, "the baseline")
    require_instance(problem, PointProblem, "the problem")
    if baseline.secrets != problem.region:
        raise InvalidProblem("the baseline and the problem are over different regions")
    masses = baseline.table(problem.prior.xy) * problem.prior.probabilities[:, None]
    if any_point:
        if not problem.cost.is_convex:
            raise InvalidProblem("the best of all points is known for named costs only, not for a function")
        guesses = best_guesses(masses.T, problem.prior.xy, problem.cost.name).guesses
        places, target = np.unique(guesses, axis=0, return_inverse=True)
    else:
        places, target = problem.outputs, (masses.T @ problem.costs).argmin(axis=1)
    selection = csr_array(
        (np.ones(target.size), target.ravel(), np.arange(target.size + 1)), shape=(target.size, len(places))
    )

    def table(points: FloatArray) -> FloatArray:
        return np.asarray(baseline.table(points) @ selection)

    name = f"{baseline.name}, remapped"
    return PointBaseline(
        name, problem.region, places, baseline.epsilon, table, quadrature_error=baseline.quadrature_error
    )
