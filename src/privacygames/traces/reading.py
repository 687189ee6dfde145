"""``read``: a file or folder of traces in, visits out."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from time import monotonic
from typing import Any, get_args

import numpy as np

from privacygames.errors import InvalidProblem, UnreadableFile
from privacygames.progress import Progress, ProgressCallback
from privacygames.spaces import Box, checked_box
from privacygames.time_zones import time_zone
from privacygames.traces.clock import DAY, Dates
from privacygames.traces.collector import Collector
from privacygames.traces.format_detection import ENDINGS, detect_format
from privacygames.traces.readers import Format, Source, read_checkins, read_frame, read_geolife, read_gpx, table_format
from privacygames.traces.visits import Visits
from privacygames.validation import require_choice


def read(
    path: Any,
    *,
    format: str | None = None,  # noqa: A002 - what a reader asks for
    window: Box | None = None,
    slot: int | None = 600,
    timezone: str = "UTC",
    columns: Mapping[str, str] | None = None,
    dates: Dates | None = None,
    users: Iterable[str] | None = None,
    progress: ProgressCallback | None = None,
) -> Visits:
    """Visits from a file or folder of traces, read as a stream: memory grows with the visits kept, not the rows.

    A visit is the first fix of a user in each time slot, whatever the order of the rows. What cannot be read or
    is not wanted is skipped and counted by reason in ``Visits.skipped``; ``Visits.format`` says how it was read.

    Args:
        path: the file or folder; or a table in memory (pandas, Polars, Arrow).
        format: ``"geolife"`` (a folder of USER/Trajectory/*.plt), ``"checkins"`` (SNAP's Gowalla and Brightkite),
            ``"gpx"`` (USER.gpx or USER/*.gpx) or ``"table"`` (CSV or Parquet with one row per fix). By default it is
            told from the names of the files, and refused where these do not tell.
        window: (west, south, east, north) in degrees; rows elsewhere are skipped. Its edges belong to it.
        slot: the length of a slot in whole seconds; None makes every row a visit.
        timezone: where slots start at midnight, and what times without an offset are in (GeoLife's are GMT always).
        columns: for tables, what the columns are called: ``{"user": …, "time": …, "latitude": …, "longitude": …}``,
            where they are not scikit-mobility's, MovingPandas' or plain names.
        dates: how dates such as 03/04/2024 are meant, ``"day-first"`` or ``"month-first"``. By default the first rows
            tell (a 13 is no month); where they do not, such dates are refused.
        users: the only users wanted.
        progress: called with a :class:`privacygames.Progress` after every block of rows.

    Raises:
        InvalidProblem: if something asked for makes no sense, a file cannot be read, or no visit is left.
    """
    zone = time_zone(timezone)
    chosen = _checked_users(users)
    if dates is not None:
        require_choice(dates, get_args(Dates), "dates")
    collector = Collector(
        window=None if window is None else checked_box(window, what="window"),
        slot=_checked_slot(slot),
        zone=zone,
        users=chosen,
    )
    if not isinstance(path, str | os.PathLike):
        if format not in (None, "table"):
            raise InvalidProblem("a table in memory has the format 'table'; leave format out")
        for rows in read_frame(path, columns or {}, zone, dates):
            collector.add(rows, "the table")
        return _visits(collector, "table", "the table")
    place = Path(path)
    name = detect_format(place) if format is None else format
    parse = _format(name, columns, dates)
    sources = [
        Source(file, UTC if name == "geolife" else zone, _user(file, place, name), dates)
        for file in _files(place, name)
    ]
    if chosen is not None and name in ("geolife", "gpx"):
        sources = [source for source in sources if source.user in chosen]
        if not sources:
            raise InvalidProblem(f"{place.name} has no files of the users asked for; their names are texts")
    started = monotonic()
    for position in _collected(sources, parse, collector):
        if progress is not None:
            message = f"{position:.0%} of {place.name}"
            seconds = monotonic() - started
            progress(Progress(job="read", done=collector.rows, share=position, seconds=seconds, message=message))
    return _visits(collector, name, place.name)


def _visits(collector: Collector, format_name: str, source: str) -> Visits:
    visits = replace(collector.visits(), format=format_name)
    if not len(visits):
        raise InvalidProblem(f"{source} holds no visits: {collector.rows} rows read, {collector.summary()}")
    return visits


def _collected(sources: list[Source], parse: Format, collector: Collector) -> Iterator[float]:
    """Feed every file to the collector; yields the share of all bytes that have been read."""
    sizes = [source.path.stat().st_size for source in sources]
    total, done = max(sum(sizes), 1), 0
    for source, size in zip(sources, sizes, strict=True):
        for rows in parse(source):
            collector.add(rows, source.path.name)
            yield (done + min(rows.position, size)) / total
        done += size


def _format(name: str, columns: Mapping[str, str] | None, dates: Dates | None) -> Format:
    if name == "counts":
        raise InvalidProblem("counts have no times: read them with traces.read_counts(path)")
    if name not in ENDINGS:
        raise InvalidProblem(
            f"there is no format {name!r}; choose from {', '.join(ENDINGS)}, or read_counts for counts"
        )
    if name != "table" and (columns is not None or dates is not None):
        given = "columns" if columns is not None else "dates"
        raise InvalidProblem(f"{given} goes with the format 'table'; {name!r} has its own")
    plain: dict[str, Format] = {"geolife": read_geolife, "checkins": read_checkins, "gpx": read_gpx}
    return plain[name] if name in plain else table_format(columns)


def _files(path: Path, name: str) -> list[Path]:
    """The files to read, in an order that does not depend on the machine."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UnreadableFile(path, "there is no such file or folder")
    found = sorted(file for file in path.rglob("*") if file.name.lower().endswith(ENDINGS[name]) and file.is_file())
    if not found:
        raise InvalidProblem(f"the folder {path.name!r} holds no files ending in {', '.join(ENDINGS[name])}")
    return found


def _user(file: Path, root: Path, name: str) -> str:
    """Whose file it is, where its place says so."""
    if name == "geolife":
        folder = file.absolute().parent
        return folder.parent.name if folder.name == "Trajectory" else folder.name
    if name == "gpx":
        stem = file.name[: len(file.name.lower().split(".gpx")[0])]
        return stem if root in (file, file.parent) else file.parent.name
    return ""


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
    chosen = [str(user) for user in users]
    if not chosen:
        raise InvalidProblem("users is empty; name some, or leave it out to read everyone")
    return chosen
