"""Regions: continuous spaces, of which every point may be the secret."""

from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privacygames.arrays import FloatArray, as_floats
from privacygames.immutable import Value
from privacygames.validation import require_instance


class Region(Value):
    """The base of continuous spaces: a rectangle of the plane, or an interval of the line.

    Users give points in the coordinates of the region (degrees, perhaps); distances are Euclidean between the points
    that :meth:`project` gives, which are counted from the lower end of each axis.

    >>> isinstance(pg.Area(2.0, 1.0), pg.Region), isinstance(pg.Interval(0.0, 5.0), pg.Region)
    (True, True)
    """

    @property
    @abstractmethod
    def lengths(self) -> tuple[float, ...]:
        """The length along each axis, in the unit of distances."""

    @property
    @abstractmethod
    def corners(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """The lower and the upper end of each axis, in the region's own coordinates."""

    @property
    @abstractmethod
    def unit(self) -> str:
        """The unit of distances, such as ``"km"``; empty where it has none."""

    @property
    @abstractmethod
    def distance_names(self) -> tuple[str, ...]:
        """The names of the distances between points of this region; the first is the Euclidean one."""

    @property
    def dimension(self) -> int:
        """The number of axes: 1 or 2."""
        return len(self.lengths)

    @abstractmethod
    def project(self, points: ArrayLike) -> FloatArray:
        """Points in the region's coordinates as an array (points, axes) in the unit of distances.

        Raises:
            InvalidProblem: they are not finite numbers of the right shape. The message shows none of them.
        """

    @abstractmethod
    def coordinates(self, points: FloatArray) -> FloatArray:
        """The inverse of :meth:`project`: points (points, axes) in the region's own coordinates."""

    def contains(self, points: ArrayLike) -> NDArray[np.bool_]:
        """Which points, in the region's own coordinates, lie in the region, its edge included. NaN does not.

        >>> pg.Interval(10.0, 20.0).contains([10.0, 20.5]).tolist()
        [True, False]
        >>> pg.Area.over((116.2, 39.8, 116.5, 40.0)).contains([(116.5, 39.9), (39.9, 116.5)]).tolist()
        [True, False]
        """
        coordinates = as_floats(points, "the points").reshape(-1, self.dimension)
        inside = np.ones(len(coordinates), dtype=bool)
        for axis, (low, high) in enumerate(zip(*self.corners, strict=True)):  # an axis at a time is faster than pairs
            inside &= (coordinates[:, axis] >= low) & (coordinates[:, axis] <= high)
        return inside

    def can_clamp(self, points: FloatArray) -> NDArray[np.bool_]:
        """Whether each of the points, (points, axes), has a nearest point in the region: all that are finite do.

        >>> pg.Interval(0.0, 24.0).can_clamp(np.array([[30.0], [np.inf]])).tolist()
        [True, False]
        """
        return np.asarray(np.isfinite(points).all(axis=1))

    def clamp(self, points: ArrayLike) -> FloatArray:
        """The nearest points of the region, as :meth:`project` gives them."""
        return self.project(points).clip(0.0, self.lengths)

    def lattice(self, counts: tuple[int, ...], *, edges: bool = False) -> FloatArray:
        """A regular lattice, (points, axes) in the unit of distances, the first axis running fastest.

        Args:
            counts: the number of points along each axis.
            edges: whether the outermost points lie on the region's edge, instead of half a step inside.

        >>> pg.Area(2.0, 1.0).lattice((2, 1)).tolist()
        [[0.5, 0.5], [1.5, 0.5]]
        """
        axes = [
            np.linspace(0.0, length, count) if edges else (np.arange(count) + 0.5) * (length / count)
            for length, count in zip(self.lengths, counts, strict=True)
        ]
        grid = np.meshgrid(*axes[::-1], indexing="ij")[::-1]
        return np.stack([axis.ravel() for axis in grid], axis=1)

    def lattice_counts(self, longest: int) -> tuple[int, ...]:
        """Numbers of points along each axis at about equal steps, ``longest`` along the longest axis."""
        step = max(self.lengths) / longest
        return tuple(max(1, round(length / step)) for length in self.lengths)


def require_region(value: object, name: str) -> Region:
    """The value, if it is a region; ``name`` is what messages call it."""
    return require_instance(value, Region, name)  # type: ignore[type-abstract]
