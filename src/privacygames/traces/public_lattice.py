"""Public lattice: the boxes that may be drawn around somebody's places, chosen from lines that are the same for all."""

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.spaces import Box

STRIPS_PER_DEGREE = 50
"""Strips of the finest lattice per degree: one is 0.02° wide, 2.2 km of latitude, a part of a town and not a street."""

MOST_STRIPS = 8
"""Strips of a box along each axis at most. So an edge says no more than the cells of a grid with as many columns."""

OUTLIER_SHARE = 0.01
"""Share of the visits that may be outside the box beyond each edge, rounded up to whole visits."""

LEAST_VISITS = 20
"""Number of visits from which on the outermost one may be left out; with fewer, every visit counts."""


def public_box(longitude: FloatArray, latitude: FloatArray) -> Box:
    """The box of lattice strips around nearly all places, as (west, south, east, north) in degrees.

    It depends on the places only through the strips of 0.02° that they are in.
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
    """The two lines between which the strips lie that count, along one axis that ends at ±``end`` degrees."""
    strips = _strips(degrees, end)
    left_out = int(np.ceil(OUTLIER_SHARE * len(strips))) if len(strips) >= LEAST_VISITS else 0
    first, last = int(strips[left_out]), int(strips[-1 - left_out])
    halvings = 0
    while (last >> halvings) - (first >> halvings) >= MOST_STRIPS:
        halvings += 1
    low = (first >> halvings << halvings) / STRIPS_PER_DEGREE
    high = ((last >> halvings) + 1 << halvings) / STRIPS_PER_DEGREE
    return max(low, float(-end)), min(high, float(end))


def _strips(degrees: FloatArray, end: int) -> IntArray:
    """The strip that each coordinate is in, sorted; the world's last line belongs to the last strip."""
    whole = np.floor(np.asarray(degrees) * STRIPS_PER_DEGREE).astype(np.int64)
    return np.sort(np.clip(whole, -end * STRIPS_PER_DEGREE, end * STRIPS_PER_DEGREE - 1))
