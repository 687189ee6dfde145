"""What every format is read into: some rows at a time, as arrays, with where they stood in the file."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from pathlib import Path

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.traces.clock import Dates


@dataclass(frozen=True)
class Source:
    """One file to read: where it is, whose it is (where its name says so), how to read its times and dates."""

    path: Path
    zone: tzinfo
    user: str = ""
    dates: Dates | None = None


@dataclass(frozen=True)
class RowBatch:
    """Some rows of a file.

    Attributes:
        users: whose row it is.
        times: unix seconds, ``clock.BAD`` where unreadable.
        latitude: degrees, NaN where unreadable.
        longitude: degrees, NaN where unreadable.
        lines: the number of each row's line, for messages.
        broken: the numbers of the lines that were not rows at all.
        position: how many bytes of the file have been read by now.
    """

    users: Sequence[str]
    times: IntArray
    latitude: FloatArray
    longitude: FloatArray
    lines: Sequence[int]
    broken: Sequence[int] = field(default=())
    position: int = 0


COMMA = re.compile(r"[-+]?\d+,\d+")

Format = Callable[[Source], Iterator[RowBatch]]


def numbers(texts: Iterable[str], count: int) -> FloatArray:
    """Texts as numbers; NaN for those that are none."""
    kept = list(texts)
    try:
        return np.fromiter(map(float, kept), dtype=np.float64, count=count)
    except ValueError:
        return np.fromiter(map(_number, kept), dtype=np.float64, count=count)


def _number(text: str) -> float:
    """A number, with a decimal point or a decimal comma."""
    try:
        return float(text)
    except ValueError:
        return float(text.replace(",", ".")) if COMMA.fullmatch(text.strip()) else float("nan")
