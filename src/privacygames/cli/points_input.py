"""Points on the command line: LATITUDE,LONGITUDE over degrees, X,Y in kilometres, or a number."""

from collections.abc import Sequence
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from privacygames.errors import InvalidProblem
from privacygames.presentation import output_json, output_text
from privacygames.spaces import Area, Region

if TYPE_CHECKING:
    from privacygames.points import PointMechanism, PublicPointMechanism

Coordinates = tuple[float, ...]
"""A point in the coordinates of its region: (longitude, latitude), (x, y) or (number,)."""


def parse_point(region: Region, text: str) -> Coordinates:
    """The point that a text names; no message shows it.

    Raises:
        InvalidProblem: the text is not a point, not one on the Earth, or looks swapped.
    """
    try:
        numbers = tuple(float(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) != region.dimension or not all(map(isfinite, numbers)):
        raise InvalidProblem(f"it is not {_form(region)}")
    if not (isinstance(region, Area) and region.box is not None):
        return numbers
    latitude, longitude = numbers
    if region.looks_swapped([(longitude, latitude)]):
        raise InvalidProblem("it lies outside the area, and inside with both numbers swapped: give the latitude first")
    if abs(latitude) > 90 or abs(longitude) > 180:
        raise InvalidProblem("it is not on the Earth: give LATITUDE,LONGITUDE in degrees, the latitude first")
    return longitude, latitude


class PointSource:
    """Draws outputs for points that are given as texts.

    Args:
        mechanism: the mechanism.
    """

    def __init__(self, mechanism: "PointMechanism | PublicPointMechanism") -> None:
        self._mechanism, self._region = mechanism, mechanism.secrets
        self._outside = 0

    def parse(self, text: str) -> Coordinates:
        """The point that a text names."""
        point = parse_point(self._region, text)
        self._outside += not self._region.contains([point])[0]
        return point

    def draw(self, points: Sequence[Coordinates]) -> list[int]:
        """The index of an output for each point."""
        drawn: list[int] = self._mechanism.draw(np.array(points)).tolist()
        return drawn

    def text(self, output: int) -> str:
        """An output as a line: its coordinates, as points are given."""
        return output_text(self._mechanism, output)

    def json(self, output: int) -> Any:
        """An output for JSON: its coordinates and its label; or its number."""
        return output_json(self._mechanism, output)

    @property
    def warnings(self) -> list[str]:
        """What to say once all outputs are drawn: how many points lay outside, without saying which."""
        if not self._outside:
            return []
        return [f"{self._outside} of the points lay outside the region, and were moved to its nearest point"]


def _form(region: Region) -> str:
    if not isinstance(region, Area):
        return f"one number{f' of {region.unit}' if region.unit else ''}, such as 1.5"
    if region.box is None:
        return "X,Y: two numbers of kilometres with a comma between them, such as 1.5,0.7"
    return "LATITUDE,LONGITUDE: two numbers of degrees with a comma between them, such as 39.9,116.4"
