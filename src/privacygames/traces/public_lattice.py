"""Public lattice: bounding boxes of places whose edges are lines that are the same for everybody."""

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.spaces import Box

STRIPS_PER_DEGREE = 50
"""Strips of the finest lattice per degree: one is 0.02° wide, 2.2 km of latitude: a part of a town, not a street."""

MAX_STRIPS = 8
"""Largest number of strips of a box along each axis: an edge says no more than a cell of as many columns."""

OUTLIER_SHARE = 0.01
"""Share of the visits that may lie beyond each edge of the box, rounded up to whole visits."""

MIN_VISITS = 20
"""Number of visits from which the outermost ones may be left out; with fewer, the box holds every visit."""


def public_box(longitude: FloatArray, latitude: FloatArray) -> Box:
    """The box of lattice strips around nearly all places: (west, south, east, north) in degrees.

    It depends on the places only through the strips of 0.02° that contain them.
    """
    west, east = _edges(longitude, 180)
    south, north = _edges(latitude, 90)
    return west, south, east, north


def is_public_box(box: Box) -> bool:
    """Whether every edge of a box is a line of the finest public lattice: a multiple of 0.02 degrees.

    >>> is_public_box((6.52, 46.48, 6.74, 46.58)), is_public_box((6.532, 46.495, 6.728, 46.567))
    (True, False)
    """
    edges = np.array(box) * STRIPS_PER_DEGREE
    return bool((np.abs(edges - np.round(edges)) < 1e-6).all())


def _edges(degrees: FloatArray, end: int) -> tuple[float, float]:
    """The two edges of the box along one axis, which ends at ±``end`` degrees."""
    strips = _strips(degrees, end)
    left_out = int(np.ceil(OUTLIER_SHARE * len(strips))) if len(strips) >= MIN_VISITS else 0
    first, last = int(strips[left_out]), int(strips[-1 - left_out])
    halvings = 0
    while (last >> halvings) - (first >> halvings) >= MAX_STRIPS:
        halvings += 1
    low = (first >> halvings << halvings) / STRIPS_PER_DEGREE
    high = ((last >> halvings) + 1 << halvings) / STRIPS_PER_DEGREE
    return max(low, float(-end)), min(high, float(end))


def _strips(degrees: FloatArray, end: int) -> IntArray:
    """The strip of each coordinate, sorted; the last line of the axis belongs to the last strip."""
    numbers = np.floor(np.asarray(degrees) * STRIPS_PER_DEGREE).astype(np.int64)
    return np.sort(np.clip(numbers, -end * STRIPS_PER_DEGREE, end * STRIPS_PER_DEGREE - 1))
