"""Detects the format of a file or folder of traces."""

import re
from pathlib import Path

from privacygames.csv_reader import detect_separator, open_decompressed, read_lines, split_line
from privacygames.errors import InvalidProblem, UnreadableFile
from privacygames.traces.readers import FORMATS

CHECKIN_LINE = re.compile(r"[^\t]+\t\d{4}-\d\d-\d\dT[^\t]*\t-?[\d.]+\t-?[\d.]+\t[^\t]*")
"""A line of SNAP's check-ins: user, time, latitude, longitude and place, between tabs."""

GEOJSON_TYPE = re.compile(r'"type"\s*:\s*"(Feature|FeatureCollection|GeometryCollection|(Multi)?(Point|LineString))"')
TIMELINE_KEY = re.compile(r'"(locations|timelineObjects|semanticSegments|startTime)"\s*:')
"""What a GeoJSON document says of itself, and the keys that Google's Timelines begin with."""

START = 1 << 16
"""Bytes of a document that are looked at."""

TABLE_COLUMNS = 4
"""Least number of columns of a table of fixes: user, time, latitude and longitude."""


def detect_format(path: str | Path) -> str:
    r"""The format of a file, by its ending and first line, or of a folder, by its files.

    Returns:
        The name of a format that :func:`privacygames.traces.read` reads; or ``"counts"`` for a CSV file with cells
        instead of coordinates, which :func:`privacygames.traces.read_counts` reads.

    Raises:
        InvalidProblem: the format is not clear.

    >>> with open("fixes.csv", "w") as file:
    ...     _ = file.write("uid,datetime,lat,lng\nanna,2024-03-01 08:00:10,46.512,6.551\n")
    >>> pg.traces.detect_format("fixes.csv")
    'table'
    """
    path = Path(path)
    if path.is_file():
        return _of_file(path)
    if not path.is_dir():
        raise UnreadableFile(path, "there is no such file or folder")
    formats = {_by_ending(file) for file in path.rglob("*") if file.is_file()} - {""}
    if len(formats) == 1:
        return formats.pop()
    contents = f"files of several formats ({', '.join(sorted(formats))})" if formats else "no files of a known format"
    raise InvalidProblem(f"the folder {path.name!r} holds {contents}: say which format, or name one file")


def _of_file(path: Path) -> str:
    by_ending = _by_ending(path)
    if by_ending == "timeline":
        return _of_json(path)
    if by_ending in ("geolife", "gpx", "geojson", "kml") or path.suffix.lower() == ".parquet":
        return by_ending
    first_line = next((line for block in read_lines(path) for line in block.lines if line.strip()), "")
    if CHECKIN_LINE.fullmatch(first_line):
        return "checkins"
    names = {name.strip().lower() for name in split_line(first_line, detect_separator(first_line))}
    if {"user", "cell"} <= names and not names & {"lat", "latitude"}:
        return "counts"
    if by_ending == "table" or len(names) >= TABLE_COLUMNS:
        return "table"
    raise InvalidProblem(f"the format of {path.name} cannot be told: say which of {', '.join(FORMATS)} it is")


def _of_json(path: Path) -> str:
    """GeoJSON, or a Timeline, by what the first block of the document names."""
    with open_decompressed(path) as (file, _):
        start = file.read(START).decode("utf-8", errors="replace")
    return "geojson" if GEOJSON_TYPE.search(start) and not TIMELINE_KEY.search(start) else "timeline"


def _by_ending(path: Path) -> str:
    """The format whose endings fit; "" for none."""
    return next((name for name, form in FORMATS.items() if path.name.lower().endswith(form.endings)), "")
