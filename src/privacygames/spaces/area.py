"""Areas: rectangles whose points are secrets, in kilometres or over a box of longitudes and latitudes."""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privacygames.arrays import FloatArray, as_floats
from privacygames.errors import InvalidProblem
from privacygames.spaces.grid import EARTH_RADIUS_KM, Box, checked_box
from privacygames.spaces.region import Region
from privacygames.validation import is_number


class Area(Region):
    """A rectangle of ``width`` × ``height`` kilometres; every point of it may be the secret.

    A point outside is moved to the nearest point of the rectangle. That never increases the distance between two
    points, so a guarantee for the rectangle covers the whole plane.

    >>> city = pg.Area(15.0, 8.0)
    >>> city.clamp([(3.0, 4.0), (20.0, -1.0)]).tolist()
    [[3.0, 4.0], [15.0, 0.0]]

    Args:
        width: west to east, in kilometres.
        height: south to north, in kilometres.
    """

    width: float
    height: float
    box: Box | None
    """West, south, east and north in degrees; None for plain kilometres."""

    def __init__(self, width: float, height: float) -> None:
        if not all(is_number(length) and 0 < length < np.inf for length in (width, height)):
            raise InvalidProblem(
                f"an area needs a positive width and height in km; got {repr(width)[:40]} × {repr(height)[:40]}"
            )
        self._fill(width=float(width), height=float(height), box=None)

    @classmethod
    def over(cls, box: Box) -> "Area":
        """The area of ``(west, south, east, north)`` in degrees.

        Longitudes are measured at the highest latitude that a great circle between two points of the box reaches. So
        the distance in this area is never longer than the true one, and a guarantee per kilometre holds for true ones.

        >>> pg.Area.over((116.2, 39.8, 116.5, 40.0))
        Area(25.6 × 22.2 km, over degrees)
        """
        west, south, east, north = checked_box(box)
        highest = max(abs(south), abs(north))
        if highest >= 90 or east - west >= 180:
            raise InvalidProblem("an area must not contain a pole, and must span fewer than 180 degrees of longitude")
        beyond = np.arctan(np.tan(np.radians(highest)) / np.cos(np.radians(east - west) / 2))
        area = cls(
            float(EARTH_RADIUS_KM * np.radians(east - west) * np.cos(beyond)),
            float(EARTH_RADIUS_KM * np.radians(north - south)),
        )
        area._fill(box=(west, south, east, north))
        return area

    def with_lengths(self, width: float, height: float) -> "Area":
        """The same area with lengths that another machine computed for its box, which may differ in last digits.

        >>> city = pg.Area.over((116.2, 39.8, 116.5, 40.0))
        >>> city.with_lengths(city.width, city.height) == city
        True
        """
        if not np.allclose((width, height), self.lengths, rtol=1e-12, atol=0):
            raise InvalidProblem("the width and height are not those of the area's box")
        area = object.__new__(type(self))
        area._fill(width=float(width), height=float(height), box=self.box)
        return area

    @cached_property
    def _content(self) -> tuple[object, ...]:
        return self.width, self.height, self.box

    @property
    def lengths(self) -> tuple[float, float]:
        """Width and height."""
        return self.width, self.height

    @property
    def corners(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The south-west and the north-east corner: (x, y), or (longitude, latitude) where the area is over degrees."""
        west, south, east, north = self.box or (0.0, 0.0, self.width, self.height)
        return (west, south), (east, north)

    @property
    def unit(self) -> str:
        """Kilometres."""
        return "km"

    @property
    def distance_names(self) -> tuple[str, ...]:
        """The Euclidean distance, and its square."""
        return "euclidean", "squared"

    def project(self, points: ArrayLike) -> FloatArray:
        """Points as (x, y) in kilometres from the south-west corner.

        >>> pg.Area.over((0.0, -1.0, 2.0, 1.0)).project([(1.0, 0.0)]).round(1).tolist()
        [[111.2, 111.2]]

        Args:
            points: pairs (x, y) in kilometres, or (longitude, latitude) where the area is over degrees.

        Raises:
            InvalidProblem: they are not pairs of finite numbers, or not on the Earth. The message shows none of them.
        """
        pairs = as_floats(points, "the list of points")
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise InvalidProblem(f"points must be pairs, an array of shape (many, 2); got shape {pairs.shape}")
        invalid = int((~np.isfinite(pairs)).any(axis=1).sum())
        if invalid:
            raise InvalidProblem(f"{invalid} of the points are not finite numbers")
        if self.box is None:
            return pairs
        west, south, east, north = self.box
        beyond = int(((np.abs(pairs[:, 0]) > 180) | (np.abs(pairs[:, 1]) > 90)).sum())
        if beyond:
            raise InvalidProblem(
                f"{beyond} of the points are not on the Earth: give (longitude, latitude) in degrees, in this order"
            )
        return (pairs - (west, south)) * (self.width / (east - west), self.height / (north - south))

    def can_clamp(self, points: FloatArray) -> NDArray[np.bool_]:
        """Whether each of the points has a nearest point in the area: it is finite and, over degrees, on the Earth.

        >>> pg.Area.over((116.2, 39.8, 116.5, 40.0)).can_clamp(np.array([[2.4, 48.9], [39.9, 116.3]])).tolist()
        [True, False]
        """
        if self.box is None:
            return super().can_clamp(points)
        return np.asarray((np.abs(points[:, 0]) <= 180) & (np.abs(points[:, 1]) <= 90))

    def looks_swapped(self, points: ArrayLike) -> bool:
        """Whether none of the points lies in the area, and most would with longitude and latitude swapped.

        >>> pg.Area.over((116.2, 39.8, 116.5, 40.0)).looks_swapped([(39.9, 116.3)])
        True
        """
        pairs = as_floats(points, "the list of points")
        swapped = int(self.is_swapped(pairs).sum())
        return 2 * swapped > len(pairs) and not self.contains(pairs).any()

    def is_swapped(self, points: FloatArray) -> NDArray[np.bool_]:
        """Whether each of the points lies outside an area over degrees, and inside with its coordinates swapped.

        >>> pg.Area.over((116.2, 39.8, 116.5, 40.0)).is_swapped(np.array([[39.9, 116.3], [116.3, 39.9]])).tolist()
        [True, False]
        """
        if self.box is None:
            return np.zeros(len(points), dtype=bool)
        return self.contains(points[:, ::-1]) & ~self.contains(points)

    def coordinates(self, points: FloatArray) -> FloatArray:
        """Points (x, y) in kilometres as (longitude, latitude), where the area is over degrees.

        >>> pg.Area.over((0.0, -1.0, 2.0, 1.0)).coordinates(np.array([[111.2, 111.2]])).round(1).tolist()
        [[1.0, 0.0]]
        """
        if self.box is None:
            return points
        west, south, east, north = self.box
        return points * ((east - west) / self.width, (north - south) / self.height) + (west, south)

    def __repr__(self) -> str:
        return f"Area({self.width:.3g} × {self.height:.3g} km{', over degrees' if self.box else ''})"
