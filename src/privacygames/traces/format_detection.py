"""Which format a file or folder of traces is in."""

import re
from pathlib import Path

from privacygames.errors import InvalidProblem, UnreadableFile
from privacygames.traces.readers import lines_of

ENDINGS = {
    "geolife": (".plt",),
    "checkins": (".txt", ".txt.gz", ".tsv", ".tsv.gz"),
    "gpx": (".gpx", ".gpx.gz"),
    "table": (".csv", ".csv.gz", ".parquet"),
}
"""The formats, and which files of a folder are read as such (a file named itself may end in anything)."""

CHECKIN = re.compile(r"[^\t]+\t\d{4}-\d\d-\d\dT[^\t]*\t-?[\d.]+\t-?[\d.]+\t[^\t]*")
"""A line of SNAP's check-ins: user, time, latitude, longitude and place, between tabs."""


def detect_format(path: str | Path) -> str:
    """The format of a file by its ending and first line, or of a folder by the files in it; refused where unclear.

    ``"counts"`` for a CSV file that has cells instead of coordinates (:func:`privacygames.traces.read_counts`).
    """
    place = Path(path)
    if place.is_file():
        return _of_file(place)
    if not place.is_dir():
        raise UnreadableFile(place, "there is no such file or folder")
    found = {_by_ending(file) for file in place.rglob("*") if file.is_file()} - {""}
    if len(found) == 1:
        return found.pop()
    held = f"files of several formats ({', '.join(sorted(found))})" if found else "no files of a format that is known"
    raise InvalidProblem(f"the folder {place.name!r} holds {held}: say which format, or name one file")


def _of_file(path: Path) -> str:
    known = _by_ending(path)
    if known in ("geolife", "gpx") or path.suffix.lower() == ".parquet":
        return known
    first = next((text for lines in lines_of(path) for text in lines.texts if text.strip()), "")
    if CHECKIN.fullmatch(first):
        return "checkins"
    names = {name.strip().lower() for name in re.split(r"[,;\t]", first)}
    if {"user", "cell"} <= names and not names & {"lat", "latitude"}:
        return "counts"
    if known == "table" or len(names) >= 4:
        return "table"
    raise InvalidProblem(f"the format of {path.name} cannot be told: say which of {', '.join(ENDINGS)} it is")


def _by_ending(path: Path) -> str:
    return next((name for name, endings in ENDINGS.items() if path.name.lower().endswith(endings)), "")
