"""Google's Timeline: Records.json and Semantic Location History of Takeout, and Timeline.json of phones."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from privacygames.errors import InvalidProblem
from privacygames.traces import timestamps
from privacygames.traces.readers.gpx import user_of_file
from privacygames.traces.readers.json_document import BATCH_ROWS, Fix, load_document, number, row_batch
from privacygames.traces.readers.row_batch import RowBatch, TraceFormat, TraceSource

STAY_SECONDS = 600
"""Seconds between the fixes that a stay counts as: one for each of the slots that ``read`` uses by default."""

MOST_STAY_SECONDS = 7 * timestamps.DAY
"""Longest stay that is counted in full; a longer one ends there, since a false time would make millions of fixes."""

DEGREES = re.compile(r"\s*(?:geo:)?\s*(-?\d+(?:\.\d+)?)\s*°?\s*,\s*(-?\d+(?:\.\d+)?)\s*°?\s*")
"""52.1°, 5.2° (Android) and geo:52.1,5.2 (iPhone)."""

Table = dict[str, Any]


def read_timeline(source: TraceSource) -> Iterator[RowBatch]:
    """The positions of a Timeline export; a stay is a fix every ten minutes."""
    document = load_document(source)
    entries = _entries(document)
    if entries is None:
        raise InvalidProblem(f"{source.path.name} is JSON, but not a Timeline that Google exports")
    size = source.path.stat().st_size
    broken: list[int] = []
    fixes = (fix for place, entry in enumerate(entries, start=1) for fix in _fixes(place, entry, source, broken))
    while (batch := list(islice(fixes, BATCH_ROWS))) or broken:
        yield row_batch(batch, tuple(broken), source, size)
        broken.clear()


def _entries(document: Any) -> list[Any] | None:
    """The recorded entries of any of the four exports; None for another document."""
    if isinstance(document, list):
        return document
    if isinstance(document, dict):
        for key in ("locations", "timelineObjects", "semanticSegments"):
            if isinstance(document.get(key), list):
                return list(document[key])
    return None


def _fixes(entry: int, value: Any, source: TraceSource, broken: list[int]) -> Iterator[Fix]:
    """The fixes of an entry of any kind; one that says nothing of a place is no row, one that is no table is broken."""
    if not isinstance(value, dict):
        broken.append(entry)
        return
    for kind, read in (
        ("placeVisit", _place_visit),
        ("activitySegment", _segment),
        ("visit", _visit),
        ("timelinePath", _path),
        ("activity", _activity),
    ):
        if isinstance(value.get(kind), dict | list):
            for (latitude, longitude), time in read(value, value[kind], source):
                yield Fix(entry, latitude, longitude, time)
            return
    if "latitudeE7" in value or "longitudeE7" in value:
        yield Fix(entry, *_e7(value), _time(value))


Placed = Iterator[tuple[tuple[float, float], int | str]]


def _place_visit(_: Table, visit: Any, source: TraceSource) -> Placed:
    """A stay of a Semantic Location History."""
    table = _table(visit)
    start, end = _duration(table, source)
    yield from _stay(_e7(_table(table.get("location"))), start, end)


def _segment(_: Table, segment: Any, source: TraceSource) -> Placed:
    """A trip of a Semantic Location History: its ends, and what was recorded between them."""
    table = _table(segment)
    start, end = _duration(table, source)
    yield _e7(_table(table.get("startLocation"))), start
    for point in map(_table, _list(_table(table.get("simplifiedRawPath")).get("points"))):
        yield _e7(point), _time(point)
    yield _e7(_table(table.get("endLocation"))), end


def _visit(entry: Table, visit: Any, source: TraceSource) -> Placed:
    """A stay of a phone's Timeline."""
    place = _table(_table(visit).get("topCandidate")).get("placeLocation")
    start, end = (_seconds(entry.get(key), source) for key in ("startTime", "endTime"))
    yield from _stay(_written(place), start, end)


def _path(entry: Table, path: Any, source: TraceSource) -> Placed:
    """The recorded points of a phone's Timeline."""
    start = _seconds(entry.get("startTime"), source)
    for point in map(_table, _list(path)):
        minutes = point.get("durationMinutesOffsetFromStartTime")
        try:
            time: int | str = str(point["time"]) if "time" in point else start + 60 * int(float(minutes or 0))
        except (TypeError, ValueError, OverflowError):
            time = timestamps.UNREADABLE
        yield _written(point.get("point")), time


def _activity(entry: Table, activity: Any, source: TraceSource) -> Placed:
    """A trip of a phone's Timeline: its ends."""
    for end, key in (("start", "startTime"), ("end", "endTime")):
        yield _written(_table(activity).get(end)), _seconds(entry.get(key), source)


def _stay(place: tuple[float, float], start: int, end: int) -> Placed:
    """A fix every ten minutes from the start to the end, one at least."""
    if timestamps.UNREADABLE in (start, end):
        yield place, start
        return
    for time in range(start, max(min(end, start + MOST_STAY_SECONDS), start + 1), STAY_SECONDS):
        yield place, time


def _duration(table: Table, source: TraceSource) -> tuple[int, int]:
    times = _table(table.get("duration"))
    start, end = (
        _seconds(times.get(f"{key}Timestamp") or _milliseconds(times.get(f"{key}TimestampMs")), source)
        for key in ("start", "end")
    )
    return start, end


def _seconds(time: Any, source: TraceSource) -> int:
    """Unix seconds of a text, or of a number of them."""
    if isinstance(time, int) and not isinstance(time, bool):
        return time
    return int(timestamps.seconds_from_texts([str(time)], source.zone)[0])


def _time(table: Table) -> int | str:
    """The time of a recorded point, in either of two ways to write it."""
    return str(table["timestamp"]) if "timestamp" in table else _milliseconds(table.get("timestampMs"))


def _milliseconds(value: Any) -> int:
    """Unix seconds of a number of milliseconds, which older exports write as a text."""
    try:
        return int(timestamps.seconds_from_numbers(np.array([float(value)]))[0])
    except (TypeError, ValueError, OverflowError):
        return timestamps.UNREADABLE


def _e7(table: Table) -> tuple[float, float]:
    """Latitude and longitude from whole numbers of 10⁻⁷ degrees."""
    keys = ("latE7", "lngE7") if "latE7" in table else ("latitudeE7", "longitudeE7")
    latitude, longitude = (number(table.get(key)) / 1e7 for key in keys)
    return latitude, longitude


def _written(place: Any) -> tuple[float, float]:
    """Latitude and longitude from a text, or from a table with one."""
    text = place.get("latLng", "") if isinstance(place, dict) else place
    match = DEGREES.fullmatch(text) if isinstance(text, str) else None
    return (float(match[1]), float(match[2])) if match else (float("nan"), float("nan"))


def _table(value: Any) -> Table:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


TIMELINE = TraceFormat(read_timeline, endings=(".json", ".json.gz"), user_of=user_of_file)
