"""Priors over the points of a region: weighted points, such as visits as they are."""

from collections.abc import Callable
from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, as_floats, content_hash, freeze_floats, require_nonnegative
from privacygames.errors import InvalidProblem
from privacygames.immutable import Value
from privacygames.spaces import Area, Grid, Region, require_region
from privacygames.validation import is_integer, require_instance

DENSITY_POINTS = 300
"""Number of points that stand for a density: about as many as the lower bound on the cost can be proved for at once."""

MOST_POINTS = 100_000
"""Largest number of points of a prior."""

NOTHING_COUNTED = "the weights are all 0: nothing says where the secret is"


class PointPrior(Value):
    """What an adversary believes about a point before they see an output: weights on finitely many points.

    >>> city = pg.Area(3.0, 3.0)
    >>> pg.PointPrior(city, [(0.5, 0.5), (2.5, 1.0), (0.5, 0.5)])
    PointPrior(2 points)

    Args:
        region: an :class:`privacygames.Area` or :class:`privacygames.Interval`; points outside it are moved to its
            nearest point.
        points: visits as they are: pairs (x, y), or (longitude, latitude) where the area is over degrees; numbers, for
            an interval. Equal points are added up.
        weights: how much each counts, 0 or more; by default all the same. They are normalised.
    """

    region: Region
    xy: FloatArray
    """The points in the unit of distances, counted from the region's lower ends, (points, axes), sorted."""
    probabilities: FloatArray

    def __init__(self, region: Region, points: ArrayLike, weights: ArrayLike | None = None) -> None:
        require_region(region, "what the prior is over")
        if isinstance(region, Area) and region.looks_swapped(np.atleast_2d(region.coordinates(region.project(points)))):
            raise InvalidProblem(
                "no point lies in the area, and most would with longitude and latitude swapped: give (longitude, "
                "latitude), in this order"
            )
        self._fill_weighted(region, region.clamp(points), weights)

    def _fill_weighted(self, region: Region, xy: FloatArray, weights: ArrayLike | None) -> None:
        if not len(xy):
            raise InvalidProblem("a prior needs at least one point")
        if len(xy) > MOST_POINTS:
            raise InvalidProblem(f"a prior takes at most {MOST_POINTS} points; aggregate them first")
        given = np.ones(len(xy)) if weights is None else weights
        counts = require_nonnegative(given, what="the list of weights", shape=(len(xy),), meaning="one for each point")
        if not counts.sum() > 0:
            raise InvalidProblem(NOTHING_COUNTED)
        places, index = np.unique(xy[counts > 0], axis=0, return_inverse=True)
        total = np.bincount(index.ravel(), counts[counts > 0])
        size = float(total.sum())
        # Already as near to one as floats add up: kept bit for bit, so that saving and loading changes nothing.
        shares = total if abs(size - 1) <= 1e-12 else total / size
        self._fill(region=region, xy=freeze_floats(places), probabilities=freeze_floats(shares))

    @classmethod
    def from_projected(cls, region: Region, xy: FloatArray, weights: ArrayLike | None = None) -> "PointPrior":
        """A prior over points that are projected already: (points, axes) in the unit of distances, in the region.

        >>> pg.PointPrior.from_projected(pg.Interval(10.0, 20.0), np.array([[2.0]])).points.tolist()
        [[12.0]]
        """
        prior = object.__new__(cls)
        prior._fill_weighted(region, np.clip(xy, 0.0, region.lengths), weights)
        return prior

    @classmethod
    def uniform(cls, region: Region, *, points: int = DENSITY_POINTS) -> "PointPrior":
        """The uniform density over a region, on a regular lattice.

        >>> pg.PointPrior.uniform(pg.Interval(0.0, 1.0), points=50)
        PointPrior(50 points)
        """
        return cls.from_density(region, lambda given: np.ones(len(given)), points=points)

    @classmethod
    def from_density(
        cls, region: Region, density: Callable[[FloatArray], ArrayLike], *, points: int = DENSITY_POINTS
    ) -> "PointPrior":
        """A density, by its values on a regular lattice: costs and errors are those of the points of the lattice.

        Args:
            region: what the density is over.
            density: a function of points (points, axes) in the region's coordinates; it need not be normalised.
            points: about how many points the lattice has.

        >>> pg.PointPrior.from_density(pg.Interval(0.0, 4.0), lambda x: np.exp(-x[:, 0]), points=8)
        PointPrior(8 points)
        """
        if not is_integer(points):
            raise InvalidProblem("the number of points must be a whole number, 1 or more")
        step = float(np.prod(region.lengths) / points) ** (1 / region.dimension)
        xy = region.lattice(tuple(max(1, round(length / step)) for length in region.lengths))
        values = as_floats(density(region.coordinates(xy)), "the density")
        return cls.from_projected(region, xy, values.reshape(-1) if values.size == len(xy) else values)

    @classmethod
    def from_cells(cls, region: Area, grid: Grid, counts: ArrayLike, *, points: int = 1) -> "PointPrior":
        """Counts of the cells of a grid: each cell's weight on its centre, or spread evenly over points in it.

        Args:
            region: an area with the coordinates of the grid.
            grid: the grid.
            counts: how often each cell was visited.
            points: how many points each visited cell is represented by, a square number.

        >>> grid = pg.Grid(2, 1, width=2.0, height=1.0)
        >>> pg.PointPrior.from_cells(pg.Area(2.0, 1.0), grid, [3, 1]).probabilities.tolist()
        [0.75, 0.25]
        """
        require_instance(region, Area, "what the counts are over")
        seen = require_nonnegative(counts, what="the list of counts", shape=(len(grid),), meaning="one for each cell")
        side = round(sqrt(points)) if is_integer(points) else 0
        if side**2 != points:
            raise InvalidProblem("a cell is represented by a square number of points: 1, 4, 9, …")
        if (grid.box is None) != (region.box is None):
            raise InvalidProblem("one of grid and area is in plain kilometres and the other over degrees")
        if not seen.any():
            raise InvalidProblem(NOTHING_COUNTED)
        cells = np.flatnonzero(seen)
        outlines = np.array([grid.outline(grid.labels[cell]) for cell in cells.tolist()]).reshape(-1, 4, 2)
        shares = (np.arange(side) + 0.5) / side
        inside = np.stack([axis.ravel() for axis in np.meshgrid(shares, shares)], axis=1)
        low, high = outlines[:, None, 0], outlines[:, None, 2]
        xy = region.project((low + inside * (high - low)).reshape(-1, 2))
        if ((xy < 0) | (xy > region.lengths)).any():
            raise InvalidProblem("some visited cells lie outside the area: choose an area that covers the grid")
        return cls.from_projected(region, xy, np.repeat(seen[cells], len(inside)))

    @property
    def points(self) -> FloatArray:
        """The points in the region's own coordinates, (points, axes), in the order of the probabilities."""
        return self.region.coordinates(self.xy)

    @cached_property
    def _content(self) -> tuple[object, ...]:
        return self.region, content_hash(self.xy), content_hash(self.probabilities)

    def __len__(self) -> int:
        return len(self.xy)

    def __repr__(self) -> str:
        return f"PointPrior({len(self)} point{'s' * (len(self) != 1)})"
