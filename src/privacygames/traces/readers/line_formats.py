"""Formats that are lines of text with fixed columns: GeoLife's .plt files and SNAP's check-ins."""

from collections.abc import Iterator

from privacygames.traces.readers.row_batch import RowBatch, Source
from privacygames.traces.readers.text_lines import Columns, Lines, lines_of, split_lines

GEOLIFE_HEADER = 6
CHECKINS = Columns("\t", fields=5, user=0, time=1, latitude=2, longitude=3)
GEOLIFE = Columns(",", fields=6, user=-1, time=5, latitude=0, longitude=1)


def read_checkins(source: Source) -> Iterator[RowBatch]:
    """Gowalla and Brightkite as SNAP gives them: user, time, latitude, longitude and place, between tabs."""
    for lines in lines_of(source.path):
        yield split_lines(lines, CHECKINS, source)


def read_geolife(source: Source) -> Iterator[RowBatch]:
    """A .plt file: six lines of header, then latitude, longitude, 0, altitude, days, date and time (GMT)."""
    for lines in lines_of(source.path):
        skipped = max(GEOLIFE_HEADER + 1 - lines.first, 0)
        texts = [_joined(text) for text in lines.texts[skipped:]]
        yield split_lines(Lines(lines.first + skipped, texts, lines.position), GEOLIFE, source)


def _joined(line: str) -> str:
    """Date and time as one field."""
    day, comma, hour = line.rpartition(",")
    return f"{day}T{hour}" if comma else line
