"""Priors over the points of an area: weighted points, such as visits as they are."""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, content_hash, freeze_floats, require_nonnegative
from privacygames.errors import InvalidProblem
from privacygames.immutable import Value
from privacygames.spaces import Area


class PointPrior(Value):
    """What an adversary believes about a point before they see an output: weights on finitely many points.

    >>> city = pg.Area(3.0, 3.0)
    >>> pg.points.PointPrior(city, [(0.5, 0.5), (2.5, 1.0), (0.5, 0.5)])
    PointPrior(2 points)

    Args:
        area: the area; points outside it are moved to its nearest point.
        points: pairs (x, y), or (longitude, latitude) where the area is over degrees. Equal points are added up.
        weights: how much each counts, 0 or more; by default all the same. They are normalised.
    """

    area: Area
    xy: FloatArray
    """The points in kilometres, (points, 2), in lexicographic order."""
    probabilities: FloatArray

    def __init__(self, area: Area, points: ArrayLike, weights: ArrayLike | None = None) -> None:
        xy = area.clamp(points)
        if not len(xy):
            raise InvalidProblem("a prior needs at least one point")
        given = np.ones(len(xy)) if weights is None else weights
        counts = require_nonnegative(given, what="the weights", shape=(len(xy),), meaning="one for each point")
        if not counts.sum() > 0:
            raise InvalidProblem("the weights of the points are all 0: nothing says where the secret is")
        places, index = np.unique(xy[counts > 0], axis=0, return_inverse=True)
        total = np.bincount(index.ravel(), counts[counts > 0])
        self._fill(area=area, xy=freeze_floats(places), probabilities=freeze_floats(total / total.sum()))

    @cached_property
    def _content(self) -> tuple[object, ...]:
        return self.area, content_hash(self.xy), content_hash(self.probabilities)

    def __len__(self) -> int:
        return len(self.xy)

    def __repr__(self) -> str:
        return f"PointPrior({len(self)} points)"
