"""What lies around a map: names of populated places, land, coasts and borders, from files beside the page."""

from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.spaces import Box

VENDORED = files("privacygames.studio") / "page" / "vendor"
"""The folder of the files that ``make setup`` fetches; it need not be there."""

DEGREE = 100_000
"""Units of a degree in the files."""

MOST_PLACES = 60
"""Most names of one map: more cannot be read."""

FINEST = 2000
"""Points of an outline along one side of a map: finer ones cannot be seen."""

MARGIN = 0.2
"""Degrees around a map in which lines are kept, so that they reach its edge: successive points are closer."""

CREDITS = {
    "places.npz": "Names: GeoNames (CC BY 4.0)",
    "outlines.npz": "Outlines: Natural Earth (public domain)",
    "leaflet.js": "Leaflet",
}
"""The attribution of each file, shown below the map."""


@dataclass(frozen=True)
class Surroundings:
    """The files about the world around a map, each read when it is first needed.

    Attributes:
        folder: where they are.

    >>> Surroundings(Path("nowhere")).around((5.0, 52.0, 5.2, 52.1))
    {'places': [], 'land': [], 'coasts': [], 'borders': []}
    """

    folder: Traversable | Path = field(default_factory=lambda: VENDORED)

    @property
    def present(self) -> list[str]:
        """The files that are there."""
        return [name for name in CREDITS if (self.folder / name).is_file()]

    def around(self, box: Box) -> dict[str, Any]:
        """Names, land, coasts and borders in a box of degrees (west, south, east, north)."""
        return {
            "places": self._places(box),
            "land": [_plain(ring) for ring in self._land(box)],
            "coasts": [_plain(line) for line in self._lines("coast", box)],
            "borders": [_plain(line) for line in self._lines("border", box)],
        }

    @cached_property
    def _gazetteer(self) -> dict[str, Any]:
        """Positions and names, the most populous place first; none if the file is not there."""
        data = self._read("places.npz")
        if not data:
            return {"latitude": np.zeros(0), "longitude": np.zeros(0)}
        latitude, longitude = data["position"].T / DEGREE
        end = np.cumsum(data["length"], dtype=int)
        return {"latitude": latitude, "longitude": longitude, "end": end, "start": end - data["length"]} | data

    @cached_property
    def _outlines(self) -> dict[str, list[FloatArray]]:
        """The lines of each kind, in degrees of longitude and latitude."""
        data = self._read("outlines.npz")
        kinds = ("coast", "border", "land") if data else ()
        return {
            kind: np.split(np.cumsum(data[f"{kind}_steps"], axis=0) / DEGREE, np.cumsum(data[f"{kind}_count"])[:-1])
            for kind in kinds
        }

    def _read(self, name: str) -> dict[str, Any]:
        if name not in self.present:
            return {}
        with (self.folder / name).open("rb") as file:
            return dict(np.load(file, allow_pickle=False))

    def _places(self, box: Box) -> list[dict[str, Any]]:
        west, south, east, north = box
        data = self._gazetteer
        latitude, longitude = data["latitude"], data["longitude"]
        inside = (longitude >= west) & (longitude <= east) & (latitude >= south) & (latitude <= north)
        return [
            {
                "name": data["names"][data["start"][row] : data["end"][row]].tobytes().decode(),
                "latitude": float(latitude[row]),
                "longitude": float(longitude[row]),
                "population": int(data["population"][row]),
            }
            for row in np.flatnonzero(inside)[:MOST_PLACES].tolist()
        ]

    def _land(self, box: Box) -> list[FloatArray]:
        clipped = (_clipped(ring, box) for ring in self._outlines.get("land", []) if _meets(ring, box))
        return [_thinned(ring, box) for ring in clipped if len(ring) > 2]

    def _lines(self, kind: str, box: Box) -> list[FloatArray]:
        lines = [line for line in self._outlines.get(kind, []) if _meets(line, box)]
        return [_thinned(part, box) for line in lines for part in _parts(line, box)]


def _meets(line: FloatArray, box: Box) -> bool:
    """Whether the rectangle around a line meets a box."""
    low, high = line.min(axis=0), line.max(axis=0)
    return bool(low[0] <= box[2] and high[0] >= box[0] and low[1] <= box[3] and high[1] >= box[1])


def _parts(line: FloatArray, box: Box) -> list[FloatArray]:
    """The parts of a line near a box."""
    west, south, east, north = box
    (x, y), near = line.T, MARGIN
    inside = (x >= west - near) & (x <= east + near) & (y >= south - near) & (y <= north + near)
    rows = np.flatnonzero(inside)
    runs = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1) if rows.size else []
    return [line[run] for run in runs if len(run) > 1]


def _clipped(ring: FloatArray, box: Box) -> FloatArray:
    """The part of a polygon in a box, by Sutherland and Hodgman's algorithm: one side after the other.

    >>> _clipped(np.array([[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 4.0]]), (1.0, -1.0, 2.0, 2.0)).tolist()
    [[1.0, 0.0], [2.0, 0.0], [2.0, 2.0], [1.0, 2.0]]
    """
    for side, limit in enumerate(box):
        axis, sign = side % 2, 1.0 if side < 2 else -1.0
        depth = sign * (ring[:, axis] - limit)
        inside = depth >= 0
        following, depth_after = np.roll(ring, -1, axis=0), np.roll(depth, -1)
        crosses = inside != np.roll(inside, -1)
        share = np.divide(depth, depth - depth_after, out=np.zeros_like(depth), where=crosses)
        both = np.stack([ring, ring + share[:, None] * (following - ring)], axis=1)
        ring = both[np.stack([inside, crosses], axis=1)]
        if not len(ring):
            break
    return ring


def _thinned(line: FloatArray, box: Box) -> FloatArray:
    """A line without the points that cannot be told from those before them on a map of the box."""
    unit = max(box[2] - box[0], box[3] - box[1]) / FINEST
    steps = np.diff(np.round(line / unit), axis=0).any(axis=1)
    kept: FloatArray = line[np.concatenate([[True], steps])]
    return kept


def _plain(line: FloatArray) -> list[list[float]]:
    """A line as plain values; the fifth decimal place of a degree is a metre."""
    return [[float(x), float(y)] for x, y in np.round(line, 5)]
