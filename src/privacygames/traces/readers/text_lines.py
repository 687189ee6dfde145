"""Files of lines: read a block at a time, plain or gzipped, and split into the columns that matter."""

import csv
import gzip
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import BinaryIO, NamedTuple

from privacygames.errors import InvalidProblem, UnreadableFile
from privacygames.traces import clock
from privacygames.traces.readers.row_batch import RowBatch, Source, numbers

BLOCK = 1 << 20
"""Bytes read at once; a line longer than this is broken."""

OVERLONG = "\0"

MOST_UNFOLDED, LEAST_UNPACKED = 200, 1 << 26
"""A packed file may unfold to so many times its size, and to so many bytes in any case."""


def most_unpacked(size: int) -> int:
    """How many bytes a packed file of a size may unfold to: more is an attack, not a trace."""
    return max(LEAST_UNPACKED, MOST_UNFOLDED * size)


class Lines(NamedTuple):
    """Some lines of a file: the number of the first, the texts, and how far into the file they reach."""

    first: int
    texts: list[str]
    position: int


class Columns(NamedTuple):
    """How lines are split: the separator, how many fields there must be, and where the four of interest are.

    ``user`` is −1 where the file's name says whose rows they are.
    """

    separator: str
    fields: int
    user: int
    time: int
    latitude: int
    longitude: int


class _Bounded:
    """A file being unpacked that is not believed without end: small files that unfold to huge ones are attacks."""

    def __init__(self, unzipped: gzip.GzipFile, path: Path) -> None:
        self._unzipped, self._name = unzipped, path.name
        self._most = most_unpacked(path.stat().st_size)
        self._read = 0

    def read(self, size: int) -> bytes:
        """The next bytes."""
        block = self._unzipped.read(size)
        self._read += len(block)
        if self._read > self._most:
            raise InvalidProblem(
                f"{self._name} unfolds to over {MOST_UNFOLDED} times its size, as no trace does; unpack it yourself if "
                "you trust it"
            )
        return block


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, Callable[[], int]]]:
    """The bytes of a file, unzipped if its name ends in .gz, and a way to ask how many were read off the disk."""
    try:
        with path.open("rb") as raw:
            if path.suffix.lower() == ".gz":
                with gzip.GzipFile(fileobj=raw) as unzipped:
                    yield _Bounded(unzipped, path), raw.tell  # type: ignore[misc]  # all that is asked of it is read
            else:
                yield raw, raw.tell
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise InvalidProblem(f"{path.name} is not a whole gzip file; unpack it again or fetch it anew") from None
    except OSError as error:
        raise UnreadableFile(path, error.strerror) from None


def lines_of(path: Path) -> Iterator[Lines]:
    """The lines of a file, some at a time; one of more than a block's length becomes one that no format takes."""
    first, kept, cut = 1, b"", False
    with opened(path) as (file, position):
        while block := file.read(BLOCK):
            body, found, rest = block.rpartition(b"\n")
            if not found:
                kept, cut = (b"", True) if cut or len(kept) + len(rest) > BLOCK else (kept + rest, False)
                continue
            texts = _decoded(kept + body)
            if cut:
                texts[0] = OVERLONG
            yield Lines(first, texts, position())
            first, kept, cut = first + len(texts), rest, False
        if kept or cut:
            yield Lines(first, [OVERLONG] if cut else _decoded(kept), position())


def split_lines(lines: Lines, columns: Columns, source: Source) -> RowBatch:
    """Lines split into rows; those with another number of fields are broken, empty ones are nothing at all."""
    taken: list[Sequence[str]] = []
    numbered, broken = [], []
    for number, line in enumerate(lines.texts, start=lines.first):
        fields = split_line(line, columns.separator)
        if len(fields) == columns.fields and (columns.user < 0 or fields[columns.user].strip()):
            taken.append(fields)
            numbered.append(number)
        elif line.strip():
            broken.append(number)
    count = len(taken)
    return RowBatch(
        users=[source.user] * count if columns.user < 0 else [fields[columns.user].strip() for fields in taken],
        times=clock.from_text(map(itemgetter(columns.time), taken), source.zone, source.dates),
        latitude=numbers(map(itemgetter(columns.latitude), taken), count),
        longitude=numbers(map(itemgetter(columns.longitude), taken), count),
        lines=numbered,
        broken=broken,
        position=lines.position,
    )


def split_line(line: str, separator: str) -> list[str]:
    """One line's fields. A quoted field ends with its line at the latest, so a stray quote spoils one row only."""
    if '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator, strict=True))
    except csv.Error:
        return []


def _decoded(block: bytes) -> list[str]:
    return block.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").removesuffix("\r").split("\n")
