"""``read``: a file or folder of traces in, visits out."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC
from pathlib import Path
from time import monotonic

import numpy as np

from privacygames.errors import InvalidProblem, UnreadableFile
from privacygames.events import Progress, Watcher
from privacygames.spaces import Box, checked_box
from privacygames.traces.clock import DAY, time_zone
from privacygames.traces.collector import Collector
from privacygames.traces.readers import Format, Source, read_checkins, read_geolife, read_gpx, table_format
from privacygames.traces.visits import Visits

ENDINGS = {
    "geolife": (".plt",),
    "checkins": (".txt", ".txt.gz", ".tsv", ".tsv.gz"),
    "gpx": (".gpx", ".gpx.gz"),
    "table": (".csv", ".csv.gz", ".parquet"),
}
"""The formats, and which files of a folder are read as such (a file named itself may end in anything)."""


def read(
    path: str | Path,
    *,
    format: str,  # noqa: A002 - what a reader asks for
    window: Box | None = None,
    slot: int | None = 600,
    timezone: str = "UTC",
    columns: Mapping[str, str] | None = None,
    users: Iterable[str] | None = None,
    progress: Watcher | None = None,
) -> Visits:
    """Visits from a file or folder of traces, read as a stream: memory grows with the visits kept, not the rows.

    A visit is the first fix of a user in each time slot, whatever the order of the rows. What cannot be read or
    is not wanted is skipped and counted by reason in ``Visits.skipped``.

    Args:
        path: the file or folder.
        format: ``"geolife"`` (a folder of USER/Trajectory/*.plt), ``"checkins"`` (SNAP's Gowalla and Brightkite),
            ``"gpx"`` (USER.gpx or USER/*.gpx) or ``"table"`` (CSV or Parquet with one row per fix).
        window: (west, south, east, north) in degrees; rows elsewhere are skipped. Its edges belong to it.
        slot: the length of a slot in whole seconds; None makes every row a visit.
        timezone: where slots start at midnight, and what times without an offset are in (GeoLife's are GMT always).
        columns: for tables, what the columns are called: ``{"user": …, "time": …, "latitude": …, "longitude": …}``,
            where they are not scikit-mobility's, MovingPandas' or plain names.
        users: the only users wanted.
        progress: called with a :class:`privacygames.Progress` after every block of rows.

    Raises:
        InvalidProblem: if something asked for makes no sense, a file cannot be read, or no visit is left.
    """
    started = monotonic()
    zone = time_zone(timezone)
    chosen = _checked_users(users)
    parse = _format(format, columns)
    collector = Collector(
        window=None if window is None else checked_box(window, what="window"),
        slot=_checked_slot(slot),
        zone=zone,
        users=chosen,
    )
    sources = [
        Source(file, UTC if format == "geolife" else zone, _user(file, Path(path), format))
        for file in _files(Path(path), format)
    ]
    if chosen is not None and format in ("geolife", "gpx"):
        sources = [source for source in sources if source.user in chosen]
        if not sources:
            raise InvalidProblem(f"{Path(path).name} has no files of the users asked for; their names are texts")
    for position in _collected(sources, parse, collector):
        if progress is not None:
            message = f"{position:.0%} of {Path(path).name}"
            seconds = monotonic() - started
            progress(Progress(job="read", done=collector.rows, share=position, seconds=seconds, message=message))
    visits = collector.visits()
    if not len(visits):
        raise InvalidProblem(f"{Path(path).name} holds no visits: {collector.rows} rows read, {collector.summary()}")
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


def _format(name: str, columns: Mapping[str, str] | None) -> Format:
    if name == "counts":
        raise InvalidProblem("counts have no times: read them with traces.read_counts(path)")
    if name not in ENDINGS:
        raise InvalidProblem(
            f"there is no format {name!r}; choose from {', '.join(ENDINGS)}, or read_counts for counts"
        )
    if columns is not None and name != "table":
        raise InvalidProblem(f"columns goes with the format 'table'; {name!r} has its own")
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
