"""``traces.read``: visits from a file or folder of traces."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any, get_args

import numpy as np

from privacygames.errors import InvalidProblem, UnreadableFile
from privacygames.progress import Progress, ProgressCallback
from privacygames.spaces import Box, checked_box
from privacygames.time_zones import time_zone
from privacygames.traces.format_detection import detect_format
from privacygames.traces.readers import FORMATS, TraceFormat, TraceSource, checked_names, read_frame, table_format
from privacygames.traces.timestamps import DAY, DateOrder
from privacygames.traces.visit_collector import VisitCollector
from privacygames.traces.visits import Visits
from privacygames.validation import require_choice


def read(
    path: Any,
    *,
    format: str | TraceFormat | None = None,  # noqa: A002 - the usual name
    window: Box | None = None,
    slot: int | None = 600,
    timezone: str = "UTC",
    columns: Mapping[str, str | None] | None = None,
    dates: DateOrder | None = None,
    users: Iterable[str] | None = None,
    progress: ProgressCallback | None = None,
) -> Visits:
    r"""Read visits from a file or folder of traces, as a stream: memory grows with the visits, not with the rows.

    A visit is the first fix of a user in each time slot, whatever the order of the rows. Rows that cannot be read or
    are not wanted are skipped and counted by reason in ``Visits.skipped``; ``Visits.format`` names the format.

    Args:
        path: the file or folder; or a table in memory (pandas, Polars, Arrow).
        format: ``"geolife"`` (a folder of USER/Trajectory/*.plt), ``"checkins"`` (SNAP's Gowalla and Brightkite),
            ``"gpx"`` (USER.gpx or USER/*.gpx), ``"geojson"``, ``"kml"`` (also zipped, KMZ), ``"timeline"`` (Google's
            Records.json, Semantic Location History, and Timeline.json of phones), ``"table"`` (CSV or Parquet with one
            row per fix), or a :class:`TraceFormat` of your own. By default it is detected from the names and first
            lines of the files.
        window: (west, south, east, north) in degrees, edges included; rows elsewhere are skipped.
        slot: the length of a slot in whole seconds; None makes every row a visit. Where no position of a GPX, KML or
            GeoJSON file has a time, every position is a visit without one.
        timezone: the time zone in which slots start at midnight, and of times without an offset (GeoLife's are GMT).
        columns: names of a table's columns, ``{"user": …, "time": …, "latitude": …, "longitude": …}``, where they are
            not scikit-mobility's, MovingPandas' or plain ones. None for a user or time that is not there: all rows are
            then one user's, or visits without times.
        dates: the order of dates such as 03/04/2024, ``"day-first"`` or ``"month-first"``. By default it is detected
            from the first rows; where they allow both, such dates are refused.
        users: the only users wanted.
        progress: called with a :class:`privacygames.Progress` after every block of rows.

    Raises:
        InvalidProblem: an argument makes no sense, a file cannot be read, or there are no visits.

    >>> with open("fixes.csv", "w") as file:
    ...     _ = file.write("uid,datetime,lat,lng\nanna,2024-03-01 08:00:10,46.512,6.551\n")
    >>> pg.traces.read("fixes.csv", timezone="Europe/Zurich")
    Visits(1 visits of 1 users, 1 rows read as table)
    """
    zone = time_zone(timezone)
    wanted_users = _checked_users(users)
    if dates is not None:
        require_choice(dates, get_args(DateOrder), "dates")
    collector = VisitCollector(
        window=None if window is None else checked_box(window, what="window"),
        slot=_checked_slot(slot),
        zone=zone,
        users=wanted_users,
    )
    if not isinstance(path, str | os.PathLike):
        if format not in (None, "table"):
            raise InvalidProblem("a table in memory has the format 'table'; leave format out")
        for rows in read_frame(path, checked_names(columns), zone, dates):
            collector.add(rows, "the table")
        return _visits(collector, "table", "the table")
    root = Path(path)
    name = detect_format(root) if format is None else format if isinstance(format, str) else ""
    trace_format = format if isinstance(format, TraceFormat) else _format(name, columns, dates)
    sources = [
        TraceSource(
            file,
            trace_format.zone or zone,
            trace_format.user_of(file, root) if trace_format.user_of is not None else "",
            dates,
        )
        for file in _files(root, trace_format)
    ]
    if wanted_users is not None and trace_format.user_of is not None:
        sources = [source for source in sources if source.user in wanted_users]
        if not sources:
            raise InvalidProblem(f"{root.name} has no files of the users asked for; their names are texts")
    started = monotonic()
    for share in _collect(sources, trace_format, collector):
        if progress is not None:
            message = f"{share:.0%} of {root.name}"
            seconds = monotonic() - started
            progress(Progress(job="read", done=collector.rows, share=share, seconds=seconds, message=message))
    return _visits(collector, name, root.name)


def _visits(collector: VisitCollector, format_name: str, source: str) -> Visits:
    visits = replace(collector.visits(), format=format_name)
    if not len(visits):
        raise InvalidProblem(f"{source} holds no visits: {collector.rows} rows read, {collector.summary()}")
    return visits


def _collect(sources: list[TraceSource], trace_format: TraceFormat, collector: VisitCollector) -> Iterator[float]:
    """Read every file into the collector; yields the share of all bytes that have been read."""
    sizes = [source.path.stat().st_size for source in sources]
    total, done = max(sum(sizes), 1), 0
    for source, size in zip(sources, sizes, strict=True):
        for rows in trace_format.read(source):
            collector.add(rows, source.path.name)
            yield (done + min(rows.position, size)) / total
        done += size


def _format(name: str, columns: Mapping[str, str | None] | None, dates: DateOrder | None) -> TraceFormat:
    if name == "counts":
        raise InvalidProblem("counts have no times: read them with traces.read_counts(path)")
    if name not in FORMATS:
        raise InvalidProblem(
            f"there is no format {name!r}; choose from {', '.join(FORMATS)}, or read_counts for counts"
        )
    if name != "table" and (columns is not None or dates is not None):
        option = "columns" if columns is not None else "dates"
        raise InvalidProblem(f"{option} goes with the format 'table'; {name!r} has its own")
    return table_format(columns) if name == "table" else FORMATS[name]


def _files(path: Path, trace_format: TraceFormat) -> list[Path]:
    """The files to read, in an order that does not depend on the machine."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UnreadableFile(path, "there is no such file or folder")
    endings = trace_format.endings
    files = sorted(file for file in path.rglob("*") if file.name.lower().endswith(endings) and file.is_file())
    if not files:
        raise InvalidProblem(f"the folder {path.name!r} holds no files ending in {', '.join(endings)}")
    return files


def _checked_slot(slot: int | None) -> int | None:
    if slot is None:
        return None
    if isinstance(slot, bool) or not isinstance(slot, int | np.integer) or not 1 <= slot <= DAY:
        raise InvalidProblem(
            f"slot is {slot}; it must be a whole number of seconds from 1 to {DAY}, or None (on the command line: 0)"
        )
    return int(slot)


def _checked_users(users: Iterable[str] | None) -> list[str] | None:
    if users is None:
        return None
    if isinstance(users, str):
        raise InvalidProblem("users must be a list of names, not one text")
    names = [str(user) for user in users]
    if not names:
        raise InvalidProblem("users is empty; name some, or leave it out to read everyone")
    return names
