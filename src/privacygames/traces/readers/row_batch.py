"""What every format is read into: batches of rows as arrays; and what a format is."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.traces.timestamps import DateOrder


@dataclass(frozen=True)
class TraceSource:
    """One file to read.

    Attributes:
        path: the file.
        zone: the time zone of times without an offset.
        user: whose file it is, if its name says so.
        dates: the order of dates such as 31/12/2024; None detects it.

    >>> from datetime import UTC
    >>> from pathlib import Path
    >>> pg.traces.TraceSource(Path("anna.gpx"), UTC, user="anna").user
    'anna'
    """

    path: Path
    zone: tzinfo
    user: str = ""
    dates: DateOrder | None = None


@dataclass(frozen=True)
class RowBatch:
    """Consecutive rows of a file.

    Attributes:
        users: whose row each is.
        times: unix seconds; the least 64-bit integer if unreadable.
        latitude: degrees; NaN if unreadable.
        longitude: degrees; NaN if unreadable.
        lines: the line number of each row, for messages.
        broken: the numbers of the lines that are not rows.
        position: bytes of the file read so far.

    >>> batch = pg.traces.RowBatch(["anna"], np.array([1704067200]), np.array([46.5]), np.array([6.6]), lines=[1])
    >>> batch.broken
    ()
    """

    users: Sequence[str]
    times: IntArray
    latitude: FloatArray
    longitude: FloatArray
    lines: Sequence[int]
    broken: Sequence[int] = ()
    position: int = 0


@dataclass(frozen=True)
class TraceFormat:
    r"""A format of trace files: how one file is read, and how files are recognised. For ``traces.read(format=…)``.

    Attributes:
        read: the rows of a file, batch by batch.
        endings: endings of the names of files in a folder that have this format, in lower case.
        user_of: the user's name from a file and the file or folder being read; None: rows name their users.
        zone: the time zone of times without an offset, where the format fixes it.

    >>> def read_lines(source):
    ...     rows = [line.split() for line in source.path.read_text().splitlines()]
    ...     users, numbers = [row[0] for row in rows], np.array([row[1:] for row in rows], dtype=float)
    ...     times = numbers[:, 0].astype(int)
    ...     yield pg.traces.RowBatch(users, times, numbers[:, 1], numbers[:, 2], lines=range(1, len(rows) + 1))
    >>> with open("fixes.txt", "w") as file:
    ...     _ = file.write("anna 1704067200 46.5 6.6\n")
    >>> pg.traces.read("fixes.txt", format=pg.traces.TraceFormat(read_lines, endings=(".txt",)))
    Visits(1 visits of 1 users, 1 rows)
    """

    read: Callable[[TraceSource], Iterator[RowBatch]]
    endings: tuple[str, ...]
    user_of: Callable[[Path, Path], str] | None = None
    zone: tzinfo | None = None


DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")


def parse_numbers(texts: Iterable[str]) -> FloatArray:
    """Texts as numbers, with a decimal point or a decimal comma; NaN for texts that are no numbers."""
    listed = list(texts)
    try:
        return np.fromiter(map(float, listed), dtype=np.float64, count=len(listed))
    except ValueError:
        return np.fromiter(map(_parse_number, listed), dtype=np.float64, count=len(listed))


def _parse_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float(text.replace(",", ".")) if DECIMAL_COMMA.fullmatch(text.strip()) else float("nan")
