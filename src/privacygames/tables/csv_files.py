"""CSV files as streams of record batches, and back: UTF-8, plain or compressed by gzip.

CSV has no types: every cell is read as the text it is and written as it was, numbers are made of the columns of secrets
alone, and sets of texts are written ``Alien;Brazil``. What is written reads back as the same cells: a cell stands in
quotation marks where its content needs them, or where it is an empty text (``""``) rather than no value. Other
quotation marks, a byte order mark and the kind of line ends are not kept; lines without any character are no rows.
"""

import csv
import gzip
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from math import inf
from pathlib import Path
from typing import IO, Any
from zlib import error as ZlibError

import numpy as np

from privacygames.errors import Field, InvalidProblem, UnreadableFile
from privacygames.spaces import Sets
from privacygames.tables.libraries import needed_for_tables
from privacygames.tables.row_batches import after
from privacygames.tables.rules import ColumnRule

COMPRESSED = ".csv.gz"
SEPARATORS = (",", ";", "\t", "|")
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
BETWEEN = ";"

DAMAGED = "it is damaged, or not what its ending says"

HEADER = 1 << 16
"""Characters within which the line that names the columns must end."""

LONGEST = 1 << 20
"""Bytes of the longest row: Arrow reads so much at a time."""

TAIL = 1 << 10
"""Bytes at the end of a file in which its last quotation mark must be."""


@dataclass(frozen=True)
class CsvTable:
    """A CSV file whose first line names its columns."""

    path: Path
    rules: tuple[ColumnRule, ...]
    separator: str | None = None

    def __post_init__(self) -> None:
        if self.separator is not None and (len(self.separator) != 1 or self.separator in '"\r\n'):
            raise InvalidProblem(
                Field("separator"), f" is {repr(self.separator)[:20]}; it must be one character, such as ','"
            )

    @property
    def rows(self) -> int | None:
        """Not known before it was read."""
        return None

    @property
    def schema(self) -> Any:
        """Texts, all of them: answers take the type they have by themselves."""
        pa = needed_for_tables("pyarrow")
        return pa.schema([pa.field(name, pa.string()) for name in self.header()[0]])

    def header(self) -> tuple[list[str], str]:
        """The names of its columns, and what separates them."""
        try:
            with _opened(self.path) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
                start = text.read(HEADER)
        except UnicodeDecodeError:
            raise UnreadableFile(self.path, f"{_not_utf8(self.path)}: save it as UTF-8") from None
        except (OSError, EOFError, ZlibError) as error:
            raise UnreadableFile(self.path, getattr(error, "strerror", None) or DAMAGED) from None
        found = re.match(r'(?:[^"\r\n]|"[^"]*(?:"|$))*', start)
        line = found.group() if found else ""
        unquoted = re.sub(r'"[^"]*"', "", line)
        between = self.separator or max(SEPARATORS, key=unquoted.count)
        names = next(csv.reader(io.StringIO(line, newline=""), delimiter=between), [])
        if not names or len(set(names)) < len(names) or len(line) == HEADER:
            raise InvalidProblem(f"{self.path.name}: its first line must name the columns, each once")
        return names, between

    def batches(self, columns: Sequence[str] | None = None, *, skip: int = 0) -> Iterator[Any]:
        """Its record batches; rows before the first one wanted are read, and no more than that."""
        pa, arrow_csv = needed_for_tables("pyarrow"), needed_for_tables("pyarrow.csv")
        names, between = self.header()
        wanted = names if columns is None else list(columns)
        try:
            with _opened(self.path) as file:
                reader = arrow_csv.open_csv(
                    file,
                    read_options=arrow_csv.ReadOptions(block_size=LONGEST),
                    parse_options=arrow_csv.ParseOptions(delimiter=between, newlines_in_values=True),
                    convert_options=arrow_csv.ConvertOptions(
                        column_types=dict.fromkeys(names, pa.string()),
                        include_columns=wanted,
                        strings_can_be_null=True,
                        null_values=[""],
                        quoted_strings_can_be_null=False,
                    ),
                )
                batch = None
                for batch in after(reader, skip):
                    yield self._with_numbers(batch)
        except pa.ArrowInvalid:  # its message shows the cells
            raise InvalidProblem(f"{self.path.name}: {self._fault(names, between)}") from None
        except (OSError, EOFError, ZlibError) as error:
            raise UnreadableFile(self.path, getattr(error, "strerror", None) or DAMAGED) from None
        if batch is not None and names[-1] in wanted:
            self._require_closed(batch.column(names[-1])[-1].as_py() or "")

    def _fault(self, names: list[str], between: str) -> str:
        """What is wrong with the file, and in which line; never what the line holds."""
        with _opened(self.path) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
            rows, line = csv.reader(text, delimiter=between), 1
            try:
                for row in rows:
                    if row and len(row) != len(names):
                        return f"line {line} has {len(row)} cells, but the first line names {len(names)} columns"
                    line = rows.line_num + 1
            except UnicodeDecodeError:
                return f"{_not_utf8(self.path)}: save it as UTF-8"
            except csv.Error:
                return f"line {line} is too long, or has a quotation mark that is never closed"
        return f"it is damaged, or has a row longer than {LONGEST:,} bytes: Parquet has no such limit"

    def _require_closed(self, last: str) -> None:
        """Refuse a quotation mark that is never closed: it would make one cell of all rows behind it."""
        if "\n" not in last and "\r" not in last:
            return
        tail = b""
        with _opened(self.path) as file:
            while piece := file.read(LONGEST):
                tail = (tail + piece)[-TAIL:]
        if not tail.rstrip(b"\r\n").endswith(b'"'):
            raise InvalidProblem(f"{self.path.name}: a quotation mark is opened, and never closed")

    def _with_numbers(self, batch: Any) -> Any:
        """The batch with secrets that are numbers as numbers, sets as lists; an empty field holds no value."""
        pa = needed_for_tables("pyarrow")
        arrays = {name: batch.column(name) for name in batch.schema.names}
        for rule in self.rules:
            for leaf in rule.reader.leaves():
                for name in leaf.columns:
                    if name in arrays and leaf.wants_numbers:
                        arrays[name] = _as_numbers(arrays[name])
                    elif name in arrays:
                        arrays[name] = _as_sets(arrays[name]) if isinstance(leaf.space, Sets) else _texts(arrays[name])
        return pa.RecordBatch.from_pydict(arrays)


def _as_numbers(texts: Any) -> Any:
    """Numbers; null where a field is empty, and what is no number is infinite: it is there, and no secret."""
    pa, pc = needed_for_tables("pyarrow"), needed_for_tables("pyarrow.compute")
    plain = pc.utf8_trim_whitespace(texts)
    numeric = pc.match_substring_regex(plain, NUMBER)
    numbers = pc.cast(pc.if_else(numeric, plain, pa.scalar(None, pa.string())), pa.float64())
    return pc.if_else(pc.or_(numeric, pc.equal(plain, "")), numbers, inf)


def _texts(texts: Any) -> Any:
    """An empty field holds no value."""
    pa, pc = needed_for_tables("pyarrow"), needed_for_tables("pyarrow.compute")
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def _as_sets(texts: Any) -> Any:
    pa = needed_for_tables("pyarrow")
    rows = [
        [item.strip() for item in (text or "").strip("{} ").split(BETWEEN) if item.strip()]
        for text in texts.to_pylist()
    ]
    return pa.array(rows, pa.list_(pa.string()))


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a CSV file, decompressed."""
    with path.open("rb") as file:
        if not path.name.lower().endswith(COMPRESSED):
            yield file
            return
        with gzip.GzipFile(fileobj=file) as plain:
            yield plain  # type: ignore[misc]  # it reads bytes like any other


def _not_utf8(path: Path) -> str:
    with _opened(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return f"line {number} is not UTF-8 text"
    return "it is not UTF-8 text"


class CsvOutput:
    """Writes a CSV file, with quotation marks only where a cell needs them."""

    def __init__(self, file: IO[bytes], schema: Any, separator: str, *, header: bool, compressed: bool) -> None:
        # Without a name and a time, so that equal rows make equal files.
        self._gzip = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if compressed else None
        self._file: Any = self._gzip or file
        self._separator = separator
        if header:
            pa = needed_for_tables("pyarrow")
            self._write_rows([pa.array([name], pa.string()) for name in schema.names])

    def write(self, batch: Any) -> None:
        """Add a batch."""
        if batch.num_rows:
            self._write_rows(batch.columns)

    def _write_rows(self, columns: Sequence[Any]) -> None:
        pa, pc = needed_for_tables("pyarrow"), needed_for_tables("pyarrow.compute")
        cells = [self._cells(column) for column in columns]
        if len(cells) == 1:  # a line without any character would be no row
            cells = [pc.fill_null(cells[0], '""')]
        options = {"null_handling": "replace", "null_replacement": ""}
        rows = pc.binary_join_element_wise(*cells, pa.scalar(self._separator, pa.large_string()), **options)
        ends, newline = pa.scalar("", pa.large_string()), pa.scalar("\n", pa.large_string())
        lines = pc.binary_join_element_wise(rows, ends, newline)
        _, offsets, characters = lines.buffers()  # one line behind the other: what is to be in the file
        edges = np.frombuffer(offsets, dtype=np.int64)[lines.offset :]
        self._file.write(memoryview(characters)[edges[0] : edges[len(lines)]])

    def _cells(self, column: Any) -> Any:
        """The texts of a column as they stand in the file."""
        pa, pc = needed_for_tables("pyarrow"), needed_for_tables("pyarrow.compute")
        if pa.types.is_list(column.type):
            column = pc.binary_join(pc.cast(column, pa.list_(pa.string())), BETWEEN)
        texts = pc.cast(column, pa.large_string())
        special = [pc.match_substring(texts, each) for each in (self._separator, '"', "\n", "\r")]
        quoted = reduce(pc.or_, [*special, pc.equal(texts, "")])
        if not pc.any(quoted).as_py():
            return texts
        doubled, mark = pc.replace_substring(texts, '"', '""'), pa.scalar('"', pa.large_string())
        around = pc.binary_join_element_wise(mark, doubled, mark, pa.scalar("", pa.large_string()))
        return pc.if_else(quoted, around, texts)

    def close(self) -> None:
        """Write what is left."""
        if self._gzip is not None:
            self._gzip.close()
