"""GeoJSON: the points and lines of its features, with the times and users that their properties name."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from privacygames.errors import InvalidProblem
from privacygames.traces.readers.gpx import user_of_file
from privacygames.traces.readers.json_document import BATCH_ROWS, Fix, load_document, number, row_batch
from privacygames.traces.readers.row_batch import RowBatch, TraceFormat, TraceSource

TIMES = ("time", "timestamp", "datetime", "date", "times", "coordtimes", "coordinateproperties", "t")
"""Properties with a time, or with one for each position of a line; lower case, the likelier first."""

USERS = ("user", "uid", "user_id", "userid", "traj_id", "trajectory_id", "tid")
"""Properties that say whose position it is."""

MAX_COLLECTIONS = 16
"""Deepest nesting of geometry collections."""


def read_geojson(source: TraceSource) -> Iterator[RowBatch]:
    """The positions of a GeoJSON document; areas (polygons) are no positions, and count as broken."""
    document = load_document(source)
    features = document.get("features", [document]) if isinstance(document, dict) else None
    if not isinstance(features, list) or not isinstance(document.get("type"), str):
        raise InvalidProblem(f"{source.path.name} is JSON, but not GeoJSON: it has no features")
    size = source.path.stat().st_size
    broken: list[int] = []
    fixes = (fix for entry, feature in enumerate(features, start=1) for fix in _fixes(entry, feature, broken))
    while (batch := list(islice(fixes, BATCH_ROWS))) or broken:
        yield row_batch(batch, tuple(broken), source, size)
        broken.clear()


def _fixes(entry: int, feature: Any, broken: list[int]) -> Iterator[Fix]:
    """The positions of a feature; a broken one is noted."""
    table = feature if isinstance(feature, dict) else {}
    geometry = table.get("geometry") if "geometry" in table else table
    given = table.get("properties")
    properties = {str(key).lower(): value for key, value in given.items()} if isinstance(given, dict) else {}
    user = next((str(properties[name]) for name in USERS if isinstance(properties.get(name), str | int)), "")
    times = next((properties[name] for name in TIMES if name in properties), "")
    times = times.get("times", "") if isinstance(times, dict) else times
    positions = list(_positions(geometry, MAX_COLLECTIONS))
    if not positions:
        broken.append(entry)
    for index, position in enumerate(positions):
        longitude, latitude = (number(value) for value in position[:2]) if len(position) >= 2 else (number(None),) * 2
        yield Fix(entry, latitude, longitude, _time(times, index), user)


def _time(times: Any, index: int) -> str:
    """The time of the position of that number; of nested lists, one for each line, the first."""
    while isinstance(times, list):
        times, index = (times[index] if index < len(times) else ""), 0
    return str(times) if isinstance(times, str | int | float) and not isinstance(times, bool) else ""


def _positions(geometry: Any, depth: int) -> Iterator[list[Any]]:
    """The positions of points and lines."""
    if not isinstance(geometry, dict) or depth == 0:
        return
    coordinates = geometry.get("coordinates")
    match geometry.get("type"):
        case "Point":
            yield from _lists([coordinates])
        case "MultiPoint" | "LineString":
            yield from _lists(coordinates)
        case "MultiLineString":
            for line in _lists(coordinates):
                yield from _lists(line)
        case "GeometryCollection":
            for each in _values(geometry.get("geometries")):
                yield from _positions(each, depth - 1)


def _values(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _lists(value: Any) -> Iterator[list[Any]]:
    return (each for each in _values(value) if isinstance(each, list))


GEOJSON = TraceFormat(read_geojson, endings=(".geojson", ".geojson.gz"), user_of=user_of_file)
