"""Coordinates for people and JSON: the latitude before the longitude, as on the command line."""

from collections.abc import Sequence
from typing import Any

from privacygames.points import PointMechanism, PublicPointMechanism
from privacygames.spaces import Area, Region, display_label

DIGITS = 10
"""Significant digits of a printed coordinate: a degree to a tenth of a millimetre or better."""


def point_text(region: Region, point: Sequence[float]) -> str:
    """A point as text: ``latitude,longitude`` over degrees, ``x,y`` in kilometres, or a number.

    >>> point_text(pg.Area.over((116.2, 39.8, 116.5, 40.0)), (116.4, 39.9))
    '39.9,116.4'
    """
    return ",".join(f"{value:.{DIGITS}g}" for value in _latitude_first(region, point))


def point_json(region: Region, point: Sequence[float]) -> Any:
    """A point for JSON: a table that names its coordinates; a number, for an interval.

    >>> point_json(pg.Area.over((116.2, 39.8, 116.5, 40.0)), (116.4, 39.9))
    {'latitude': 39.9, 'longitude': 116.4}
    """
    values = [float(f"{value:.{DIGITS}g}") for value in _latitude_first(region, point)]
    if not isinstance(region, Area):
        return values[0]
    return dict(zip(("x", "y") if region.box is None else ("latitude", "longitude"), values, strict=True))


def output_text(mechanism: PointMechanism | PublicPointMechanism, output: int) -> str:
    """An output of a mechanism for points as text: its coordinates; its label, for an interval.

    >>> problem = pg.PointProblem(pg.PointPrior(pg.Area(3.0, 2.0), [(1.0, 1.0)]), [(1.0, 0.5), (2.0, 1.5)])
    >>> output_text(pg.design(problem, epsilon=1.0), 1)
    '2,1.5'
    """
    if not isinstance(mechanism.secrets, Area):
        return display_label(mechanism.observables.labels[output])
    return point_text(mechanism.secrets, mechanism.outputs[output].tolist())


def output_json(mechanism: PointMechanism | PublicPointMechanism, output: int) -> Any:
    """An output of a mechanism for points for JSON: its coordinates and its label; its number, for an interval.

    >>> problem = pg.PointProblem(pg.PointPrior(pg.Area(3.0, 2.0), [(1.0, 1.0)]), [(1.0, 0.5), (2.0, 1.5)])
    >>> output_json(pg.design(problem, epsilon=1.0), 1)
    {'x': 2.0, 'y': 1.5, 'label': '2, 1.5'}
    """
    label = mechanism.observables.labels[output]
    if not isinstance(mechanism.secrets, Area):
        return label
    return point_json(mechanism.secrets, mechanism.outputs[output].tolist()) | {"label": label}


def _latitude_first(region: Region, point: Sequence[float]) -> Sequence[float]:
    """The coordinates of a point in the order in which they are written."""
    return point[::-1] if isinstance(region, Area) and region.box is not None else point
