"""Measurements of a mechanism at points: probabilities, expected costs, and log-ratios of pairs.

Pairs of points are near or far, and many of them lie on two sides of a border between cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray
from privacygames.beliefs import PointPrior
from privacygames.errors import InvalidProblem
from privacygames.points.baselines import PointBaseline, SnappedGrid
from privacygames.points.mechanism import PointSampleable
from privacygames.points.problem import PointProblem
from privacygames.validation import require_instance

SHORTEST = 1e-3
"""Smallest distance of a pair, as a share of the region's longest side: nearer ones measure rounding errors."""

SEED = 0
"""Seed of the pairs that are tried by default, so that reports are reproducible."""

BLOCK_ENTRIES = 2**21
"""Most probabilities that are computed at once."""

Points = PointSampleable | PointBaseline
"""A mechanism for points, designed or a known one."""


@dataclass(frozen=True)
class MeasuredRatios:
    """The largest log-ratio of any output for each of several pairs of points.

    Attributes:
        distances: of the pairs, in the unit of distances.
        log_ratios: the largest difference of ln p(o|x) between the two, of any output; ∞ where an output excludes one.

    >>> line = pg.Interval(0.0, 4.0)
    >>> mechanism = pg.design(pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 2.0, 3.0]), epsilon=0.5)
    >>> measured = pg.points.measure_ratios(mechanism, pg.points.point_pairs([mechanism], 200))
    >>> bool(0.4 < measured.epsilon <= 0.5)
    True
    """

    distances: FloatArray
    log_ratios: FloatArray

    @property
    def epsilon(self) -> float:
        """The largest log-ratio per unit of distance, which no ε that holds for all points is below."""
        return float((self.log_ratios / self.distances).max(initial=0.0))


def point_pairs(mechanisms: Sequence[Points], count: int, *, seed: int = SEED) -> tuple[FloatArray, FloatArray]:
    """Random pairs of points of a region; the middle of every second pair lies on a border between cells.

    Distances are spread evenly on a logarithmic scale, from a thousandth of the longest side to the diagonal.

    Args:
        mechanisms: mechanisms over one region, whose cells are meant: of a mesh, or of a grid.
        count: the number of pairs.
        seed: of the random numbers.

    >>> line = pg.Interval(0.0, 4.0)
    >>> mechanism = pg.design(pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 2.0, 3.0]), epsilon=0.5)
    >>> first, second = pg.points.point_pairs([mechanism], 100)
    >>> first.shape == second.shape == (100, 1)
    True
    """
    region, generator = mechanisms[0].secrets, np.random.default_rng(seed)
    if any(mechanism.secrets != region for mechanism in mechanisms):
        raise InvalidProblem("the mechanisms are over different regions: compare those over one")
    middles = generator.uniform(size=(count, region.dimension)) * region.lengths
    borders = [borders for borders in map(_borders, mechanisms) if any(map(len, borders))]
    for row in range(0, count if borders else 0, 2):
        chosen = borders[generator.integers(len(borders))]
        axis = int(generator.choice([axis for axis, lines in enumerate(chosen) if len(lines)]))
        middles[row, axis] = generator.choice(chosen[axis])
    longest = float(np.hypot.reduce(region.lengths))
    shortest = max(region.lengths) * SHORTEST
    distances = shortest * (longest / shortest) ** generator.uniform(size=count)
    directions = generator.standard_normal((count, region.dimension))
    directions /= np.sqrt((directions**2).sum(axis=1, keepdims=True))
    offsets = directions * distances[:, None] / 2
    return (middles - offsets).clip(0.0, region.lengths), (middles + offsets).clip(0.0, region.lengths)


def measure_ratios(mechanism: Points, pairs: tuple[FloatArray, FloatArray]) -> MeasuredRatios:
    """The log-ratios of a mechanism at pairs of points.

    Args:
        mechanism: a mechanism for points.
        pairs: the two points of each pair, (pairs, axes) each, in the unit of distances; as :func:`point_pairs` gives.

    >>> line = pg.Interval(0.0, 1.0)
    >>> problem = pg.PointProblem(pg.PointPrior(line, [0.0, 1.0]), [0.0, 1.0])
    >>> measured = pg.points.measure_ratios(pg.points.uniform(problem), (np.array([[0.1]]), np.array([[0.6]])))
    >>> measured.distances.tolist(), measured.log_ratios.tolist()
    ([0.5], [0.0])
    """
    if isinstance(mechanism, PointSampleable):  # the points that it rounds coordinates to
        mesh = mechanism.mesh
        first, second = (mesh.decode(mesh.encode(points)) for points in pairs)
    else:
        first, second = pairs
    distances = np.sqrt(((first - second) ** 2).sum(axis=1))
    largest = np.zeros(len(first))
    size = max(1, BLOCK_ENTRIES // len(mechanism.outputs))
    for start in range(0, len(first), size):
        rows = slice(start, start + size)
        near, far = (probabilities_at(mechanism, points[rows]) for points in (first, second))
        with np.errstate(divide="ignore", invalid="ignore"):
            differences = np.abs(np.log(near) - np.log(far))
        differences[(near == 0) & (far == 0)] = 0.0
        largest[rows] = differences.max(axis=1)
    apart = distances > 0
    return MeasuredRatios(distances[apart], largest[apart])


def probabilities_at(mechanism: Points, points: FloatArray) -> FloatArray:
    """The probabilities at points of the region (points, axes) in the unit of distances, (points, outputs)."""
    if isinstance(mechanism, PointBaseline):
        return mechanism.table(points)
    return np.asarray(mechanism.mesh.basis_at(points) @ np.ldexp(mechanism.weights.astype(np.float64), -mechanism.bits))


def joint_probabilities(mechanism: Points, prior: PointPrior) -> FloatArray:
    """The probabilities π(x) p(o|x) of the points of a prior, (outputs, points).

    >>> line = pg.Interval(0.0, 4.0)
    >>> problem = pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 3.0])
    >>> pg.points.joint_probabilities(pg.points.uniform(problem), problem.prior).tolist()
    [[0.25, 0.25], [0.25, 0.25]]
    """
    return np.ascontiguousarray(probabilities_at(mechanism, prior.xy).T * prior.probabilities)


def cost_per_point(mechanism: Points, problem: PointProblem, points: ArrayLike | None = None) -> FloatArray:
    """The expected cost at points, (points,).

    Args:
        mechanism: the mechanism, whose outputs need not be the problem's.
        problem: the cost.
        points: points in the region's coordinates; by default those of the problem's prior.

    >>> line = pg.Interval(0.0, 4.0)
    >>> problem = pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 3.0])
    >>> pg.points.cost_per_point(pg.points.uniform(problem), problem, [0.0, 1.0]).tolist()
    [2.0, 1.0]
    """
    require_instance(problem, PointProblem, "the problem")
    xy = problem.prior.xy if points is None else problem.region.clamp(points)
    outputs = problem.region.project(mechanism.outputs)
    costs = problem.costs
    if points is not None or not np.array_equal(outputs, problem.outputs):
        costs = problem.cost.matrix(xy, outputs)
    return np.asarray((probabilities_at(mechanism, xy) * costs).sum(axis=1))


def _borders(mechanism: Points) -> list[FloatArray]:
    """For each axis the borders between cells, where a mechanism has some."""
    if isinstance(mechanism, PointSampleable):
        return [lines[1:-1] for lines in mechanism.mesh.lines]
    if isinstance(mechanism, SnappedGrid):
        pairs = zip(mechanism.secrets.lengths, mechanism.counts, strict=True)
        return [np.linspace(0.0, length, count + 1)[1:-1] for length, count in pairs]
    return []
