"""CSV files: one dialect and one set of messages for every CSV file that is read.

The dialect:

- UTF-8, with or without a byte order mark; compressed by gzip if the name ends in ``.gz``.
- The first line names the columns. Fields are separated by the comma, semicolon, tab or vertical bar that is most
  frequent in that line outside of quotation marks.
- A field in double quotes may hold separators, line breaks and, doubled, double quotes.
- Lines without any character are not rows.

All files are read as a stream. There are three ways to read one:

- :meth:`CsvFile.rows`: rows as lists of texts. A row with too few or too many cells is an error.
- :meth:`CsvFile.record_batches`: the same in bulk, as Arrow columns of texts; needs PyArrow.
- :func:`read_lines` and :func:`split_line`: one line at a time, for recordings of devices. No field spans lines, so
  that a broken line or a stray quotation mark spoils no other line.

Messages name the file and the line, and never show a cell: cells are people's places and diagnoses.
"""

import csv
import gzip
import io
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, NamedTuple

from privacygames.errors import Field, InvalidProblem, UnreadableFile
from privacygames.text_files import open_regular

SEPARATORS = (",", ";", "\t", "|")
"""Characters that may separate fields; the first of equally frequent ones is chosen."""

BLOCK = 1 << 20
"""Bytes read at a time. No line or row may be longer, since Arrow parses one block at a time."""

HEADER_LENGTH = 1 << 16
"""Characters within which the line that names the columns must end."""

TAIL = 1 << 10
"""Bytes at the end of a file among which its last quotation mark must be."""

MAX_EXPANSION = 200
"""Largest ratio of the decompressed size of a file to its own size: texts reach ratios of about 20."""

MIN_EXPANSION_LIMIT = 1 << 26
"""Bytes (64 MiB) to which a file may always be decompressed, whatever its size."""

OVERLONG = "\0"
"""Stands for a line that is longer than a block."""

HEADER_LINE = re.compile(r'(?:[^"\r\n]|"[^"]*(?:"|$))*')
QUOTED = re.compile(r'"[^"]*"')
DAMAGED = "it is damaged, or not a whole gzip file: fetch it again"


class CsvHeader(NamedTuple):
    """The names of the columns, and the character between fields."""

    names: list[str]
    separator: str


@dataclass(frozen=True)
class CsvFile:
    r"""A CSV file whose first line names its columns.

    Attributes:
        path: the file.
        separator: the character between fields; None detects it from the first line.
        max_bytes: largest size of the file that is read; None: any.
        max_expanded: largest size to which a compressed file is decompressed; None: any.

    >>> import pathlib
    >>> _ = pathlib.Path("ages.csv").write_text("name;age\nAnn;34\nBob;51\n")
    >>> CsvFile(pathlib.Path("ages.csv")).header
    CsvHeader(names=['name', 'age'], separator=';')
    >>> list(CsvFile(pathlib.Path("ages.csv")).rows())
    [(2, ['Ann', '34']), (3, ['Bob', '51'])]
    """

    path: Path
    separator: str | None = None
    max_bytes: int | None = None
    max_expanded: int | None = None

    def __post_init__(self) -> None:
        if self.separator is not None and (len(self.separator) != 1 or self.separator in '"\r\n'):
            raise InvalidProblem(
                Field("separator"), f" is {repr(self.separator)[:20]}; it must be one character, such as ','"
            )

    @cached_property
    def header(self) -> CsvHeader:
        """The names of the columns and the separator, from the first line."""
        try:
            with self._open() as file, _text(file) as text:
                start = text.read(HEADER_LENGTH)
        except UnicodeDecodeError:
            raise self._not_utf8() from None
        line = HEADER_LINE.match(start.lstrip("\r\n"))[0]  # type: ignore[index]  # it matches every text
        separator = self.separator or detect_separator(line)
        names = next(csv.reader(io.StringIO(line, newline=""), delimiter=separator), [])
        if not names or len(line) == HEADER_LENGTH:
            raise InvalidProblem(f"{self.path.name}: its first line must name the columns")
        return CsvHeader(names, separator)

    def column(self, name: str) -> int:
        """The index of a column.

        The message lists no names: a file that was named by mistake may hold anything in its first line.
        """
        names = self.header.names
        if names.count(name) != 1:
            number = "several columns" if name in names else "no column"
            raise InvalidProblem(
                f"{self.path.name} has {number} {name!r}; its first line must name the columns, and it names "
                f"{len(names)}"
            )
        return names.index(name)

    def rows(self) -> Iterator[tuple[int, list[str]]]:
        """The number of the first line of each row, and its cells: one for each column."""
        names, separator = self.header
        line, cells, in_body = 1, names, False
        try:
            with self._open() as file, _text(file) as text:
                parser = csv.reader(text, delimiter=separator)
                for cells in parser:
                    if in_body and len(cells) == len(names):
                        yield line, cells
                    elif in_body and cells:
                        raise InvalidProblem(
                            f"{self.path.name}: line {line} has {len(cells)} cells, but the first line names "
                            f"{len(names)} columns"
                        )
                    in_body = in_body or bool(cells)
                    line = parser.line_num + 1
        except UnicodeDecodeError:
            raise self._not_utf8() from None
        except csv.Error:
            raise InvalidProblem(
                f"{self.path.name}: line {line} is too long, or has a quotation mark that is never closed"
            ) from None
        self._require_closed_quote(cells[-1] if cells else "")

    def record_batches(self, columns: Sequence[str] | None = None) -> Iterator[Any]:
        """Arrow record batches of some or all columns, every cell as the text it is; an empty cell is null.

        A quoted empty cell (``""``) is an empty text.
        """
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        names, separator = self.header
        if len(set(names)) < len(names):
            raise InvalidProblem(f"{self.path.name}: its first line must name the columns, each once")
        wanted = names if columns is None else list(columns)
        batch = None
        try:
            with self._open() as file:
                reader = arrow_csv.open_csv(
                    file,
                    read_options=arrow_csv.ReadOptions(block_size=BLOCK),
                    parse_options=arrow_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
                    convert_options=arrow_csv.ConvertOptions(
                        column_types=dict.fromkeys(names, pa.string()),
                        include_columns=wanted,
                        strings_can_be_null=True,
                        null_values=[""],
                        quoted_strings_can_be_null=False,
                    ),
                )
                for batch in reader:
                    yield batch
        except pa.ArrowInvalid:  # its message shows cells
            raise self._fault() from None
        if batch is not None and names[-1] in wanted:
            self._require_closed_quote(batch.column(names[-1])[-1].as_py() or "")

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        with open_decompressed(self.path, max_bytes=self.max_bytes, max_expanded=self.max_expanded) as (file, _):
            yield file

    def _fault(self) -> InvalidProblem:
        """The error that names the line Arrow could not read."""
        try:
            for _ in self.rows():
                pass
        except InvalidProblem as error:
            return error
        return InvalidProblem(
            f"{self.path.name}: it is damaged, or has a row longer than {BLOCK:,} bytes: Parquet has no such limit"
        )

    def _not_utf8(self) -> UnreadableFile:
        where = "it"
        with self._open() as file:
            for number, line in enumerate(file, start=1):
                try:
                    line.decode()
                except UnicodeDecodeError:
                    where = f"line {number}"
                    break
        return UnreadableFile(self.path, f"{where} is not UTF-8 text: save it as UTF-8")

    def _require_closed_quote(self, last_cell: str) -> None:
        """Refuse a quotation mark that is never closed: it would make one cell of all the rows after it."""
        if "\n" not in last_cell and "\r" not in last_cell:
            return
        tail = b""
        with self._open() as file:
            while block := file.read(BLOCK):
                tail = (tail + block)[-TAIL:]
        if not tail.rstrip(b"\r\n").endswith(b'"'):
            raise InvalidProblem(f"{self.path.name}: a quotation mark is opened, and never closed")


class LineBlock(NamedTuple):
    """Consecutive lines of a file.

    Attributes:
        first: number of the first line, from 1.
        lines: the lines without their ends.
        position: bytes of the file read off the disk so far.
    """

    first: int
    lines: list[str]
    position: int


def read_lines(path: Path) -> Iterator[LineBlock]:
    """The lines of a file, a block at a time.

    Bytes that are not UTF-8 are replaced, and a line longer than a block is read as :data:`OVERLONG`.
    """
    first, rest, overlong = 1, b"", False
    with open_decompressed(path, max_expanded=expansion_limit(path)) as (file, position):
        while block := file.read(BLOCK):
            body, line_end, tail = block.rpartition(b"\n")
            if not line_end:
                overlong = overlong or len(rest) + len(tail) > BLOCK
                rest = b"" if overlong else rest + tail
                continue
            lines = _decode(rest + body)
            if overlong:
                lines[0] = OVERLONG
            yield LineBlock(first, lines, position())
            first, rest, overlong = first + len(lines), tail, False
        if rest or overlong:
            yield LineBlock(first, [OVERLONG] if overlong else _decode(rest), position())


def split_line(line: str, separator: str) -> list[str]:
    """The fields of one line; none if its quotation marks do not match."""
    if '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator, strict=True))
    except csv.Error:
        return []


def detect_separator(line: str) -> str:
    """The separator that is most frequent outside of quotation marks.

    >>> detect_separator('name;"a, b, c";age')
    ';'
    """
    return max(SEPARATORS, key=QUOTED.sub("", line).count)


def expansion_limit(path: Path) -> int:
    """Bytes to which a compressed recording may be decompressed: one that expands further is an attack."""
    try:
        return max(MIN_EXPANSION_LIMIT, MAX_EXPANSION * path.stat().st_size)
    except OSError as error:
        raise UnreadableFile(path, error.strerror) from None


@contextmanager
def open_decompressed(
    path: Path, *, max_bytes: int | None = None, max_expanded: int | None = None
) -> Iterator[tuple[IO[bytes], Callable[[], int]]]:
    """Open a regular file, decompressed if its name ends in ``.gz``.

    Yields the file, and a function that returns the number of bytes read off the disk so far.
    """
    try:
        with open_regular(path, max_bytes=sys.maxsize if max_bytes is None else max_bytes) as compressed:
            if path.suffix.lower() != ".gz":
                yield compressed, compressed.tell
                return
            with gzip.GzipFile(fileobj=compressed) as file:
                expanded: Any = file if max_expanded is None else _bounded(file, path.name, max_expanded)
                yield expanded, compressed.tell
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise UnreadableFile(path, DAMAGED) from None
    except OSError as error:
        raise UnreadableFile(path, error.strerror or DAMAGED) from None


class _BoundedReader(io.RawIOBase):
    """A stream that refuses to yield more than a number of bytes: a small file may be made to expand to a huge one."""

    def __init__(self, stream: gzip.GzipFile, name: str, max_bytes: int) -> None:
        self._stream, self._name, self._max_bytes = stream, name, max_bytes
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._stream.read(len(buffer))
        self._count += len(block)
        if self._count > self._max_bytes:
            raise InvalidProblem(
                f"{self._name} unfolds to over {MAX_EXPANSION} times its size, or {self._max_bytes:,} bytes, as no "
                "recording does: decompress it yourself if you trust it"
            )
        buffer[: len(block)] = block
        return len(block)


def _bounded(stream: gzip.GzipFile, name: str, max_bytes: int) -> io.BufferedReader:
    return io.BufferedReader(_BoundedReader(stream, name, max_bytes), BLOCK)


def _text(file: IO[bytes]) -> io.TextIOWrapper:
    return io.TextIOWrapper(file, encoding="utf-8-sig", newline="")


def _decode(block: bytes) -> list[str]:
    return block.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").removesuffix("\r").split("\n")
