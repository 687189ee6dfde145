"""Formats whose lines have fixed fields: GeoLife's .plt files and SNAP's check-ins. CSV files are split here, too."""

from collections.abc import Iterator, Sequence
from datetime import UTC
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from privacygames.csv_reader import LineBlock, read_lines, split_line
from privacygames.traces import timestamps
from privacygames.traces.readers.row_batch import RowBatch, TraceFormat, TraceSource, parse_numbers


class FieldLayout(NamedTuple):
    """How lines are split: the separator, the number of fields, and the indices of four of them.

    ``user`` is None where the file's name says whose rows they are, and ``time`` where there are no times.
    """

    separator: str
    fields: int
    user: int | None
    time: int | None
    latitude: int
    longitude: int


GEOLIFE_HEADER = 6
"""Lines before the first fix of a .plt file."""

GEOLIFE_FIELDS = FieldLayout(",", fields=6, user=None, time=5, latitude=0, longitude=1)
CHECKIN_FIELDS = FieldLayout("\t", fields=5, user=0, time=1, latitude=2, longitude=3)


def parse_lines(block: LineBlock, layout: FieldLayout, source: TraceSource) -> RowBatch:
    """Lines split into rows; lines with another number of fields, or no user, are broken; blank ones are skipped."""
    rows: list[Sequence[str]] = []
    lines, broken = [], []
    for number, line in enumerate(block.lines, start=block.first):
        fields = split_line(line, layout.separator)
        if len(fields) == layout.fields and (layout.user is None or fields[layout.user].strip()):
            rows.append(fields)
            lines.append(number)
        elif line.strip():
            broken.append(number)
    return RowBatch(
        users=[source.user] * len(rows) if layout.user is None else [row[layout.user].strip() for row in rows],
        times=(
            np.full(len(rows), timestamps.NO_TIME)
            if layout.time is None
            else timestamps.seconds_from_texts(map(itemgetter(layout.time), rows), source.zone, source.dates)
        ),
        latitude=parse_numbers(map(itemgetter(layout.latitude), rows)),
        longitude=parse_numbers(map(itemgetter(layout.longitude), rows)),
        lines=lines,
        broken=broken,
        position=block.position,
    )


def read_checkins(source: TraceSource) -> Iterator[RowBatch]:
    """Gowalla and Brightkite as SNAP gives them: user, time, latitude, longitude and place, between tabs."""
    for block in read_lines(source.path):
        yield parse_lines(block, CHECKIN_FIELDS, source)


def read_geolife(source: TraceSource) -> Iterator[RowBatch]:
    """A .plt file: six lines of header, then latitude, longitude, 0, altitude, days, date and time (GMT)."""
    for block in read_lines(source.path):
        skipped = max(GEOLIFE_HEADER + 1 - block.first, 0)
        lines = [_join_date_and_time(line) for line in block.lines[skipped:]]
        yield parse_lines(LineBlock(block.first + skipped, lines, block.position), GEOLIFE_FIELDS, source)


def _join_date_and_time(line: str) -> str:
    date, comma, time = line.rpartition(",")
    return f"{date}T{time}" if comma else line


def _geolife_user(file: Path, root: Path) -> str:  # noqa: ARG001 - the signature of all formats
    """The name of the folder above ``Trajectory``."""
    folder = file.absolute().parent
    return folder.parent.name if folder.name == "Trajectory" else folder.name


GEOLIFE = TraceFormat(read_geolife, endings=(".plt",), user_of=_geolife_user, zone=UTC)
CHECKINS = TraceFormat(read_checkins, endings=(".txt", ".txt.gz", ".tsv", ".tsv.gz"))
