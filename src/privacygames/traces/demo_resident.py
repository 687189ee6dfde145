"""The demo's data: one invented resident of a small invented city."""

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.spaces import Area

SEED = 2015
# SYNTHETIC: places of an invented resident: km east, km north, number of visits, standard deviation in km.
PLACES = (
    (3.2, 1.5, 160, 0.35),
    (2.4, 3.9, 110, 0.35),
    (5.1, 2.6, 45, 0.7),
    (0.8, 0.9, 18, 0.5),
    (3.0, 2.6, 40, 1.4),
)


def demo_resident() -> tuple[Area, FloatArray]:
    """A city of 6.3 × 4.5 km, and the points (visits, 2) one invented resident visited; the same every time.

    >>> city, visits = pg.traces.demo_resident()
    >>> city, len(visits)
    (Area(6.3 × 4.5 km), 354)
    """
    city = Area(6.3, 4.5)
    random = np.random.default_rng(SEED)
    points = np.concatenate([random.normal((x, y), spread, (count, 2)) for x, y, count, spread in PLACES])
    return city, points[city.contains(points)]
