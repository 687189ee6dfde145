"""Places: finitely many points of the plane as labels, such as points of interest."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, as_floats, content_hash, freeze_floats
from privacygames.errors import InvalidProblem
from privacygames.spaces.grid import haversine
from privacygames.spaces.space import NamedDistances, Space


class Places(Space):
    """Points of the plane, in kilometres or as (longitude, latitude), each with a label.

    >>> stops = pg.Places([(0.0, 0.0), (3.0, 4.0)], labels=["home", "work"])
    >>> stops.distance("euclidean").tolist()
    [[0.0, 5.0], [5.0, 0.0]]

    Args:
        points: pairs (x, y) in kilometres, or (longitude, latitude) with ``degrees``.
        labels: a name for each; by default its coordinates as text.
        degrees: whether the points are longitudes and latitudes; distances are then on the sphere.
    """

    points: FloatArray
    degrees: bool
    default_distance = "euclidean"

    def __init__(self, points: ArrayLike, *, labels: Iterable[str] | None = None, degrees: bool = False) -> None:
        pairs = as_floats(points, "the list of points")
        if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
            raise InvalidProblem(f"places are pairs of numbers, an array of shape (many, 2); got shape {pairs.shape}")
        if not np.isfinite(pairs).all():
            raise InvalidProblem("some places are not finite numbers")
        if degrees and not ((np.abs(pairs[:, 0]) <= 180) & (np.abs(pairs[:, 1]) <= 90)).all():
            raise InvalidProblem("some places are not on the Earth: give (longitude, latitude) in degrees")
        names = [f"{x:.10g}, {y:.10g}" for x, y in pairs.tolist()] if labels is None else labels
        super().__init__(names)
        if len(self) != len(pairs) or not all(isinstance(label, str) for label in self.labels):
            raise InvalidProblem(f"{len(pairs)} places need as many labels, which are texts; got {len(self)}")
        self._fill(points=freeze_floats(pairs), degrees=bool(degrees))

    @property
    def content(self) -> tuple[object, ...]:
        """The labels and the coordinates."""
        return self.labels, content_hash(self.points), self.degrees

    def distance_unit(self, name: str) -> str:
        """Kilometres, except for the Hamming distance."""
        return "" if name == "hamming" else "km"

    def named_distances(self) -> NamedDistances:
        """The Euclidean distance, over degrees the distance on the sphere, and Hamming's distance."""
        return {"euclidean": self._euclidean, **super().named_distances()}

    def _euclidean(self, other: Space) -> FloatArray:
        rows = self._needs_same_kind(other, "euclidean")
        if rows.degrees != self.degrees:
            raise InvalidProblem("one set of places is in plain kilometres and the other in degrees")
        if self.degrees:
            return haversine(rows.points[:, None], self.points[None])
        offsets = rows.points[:, None] - self.points[None]
        return np.hypot(offsets[..., 0], offsets[..., 1])
