"""CSV and Parquet files as streams of Arrow record batches, and back, in constant memory.

Parquet files keep their types. CSV has none: every cell is read as the text it is and written as it was; only columns
of secrets become numbers or sets (written ``Alien;Brazil``). What is written reads back as the same cells: a cell is
quoted if its content needs it, or if it is an empty text (``""``) rather than no value. Other quotation marks, a byte
order mark and the kind of line ends are not kept. How CSV files are read: :mod:`privacygames.csv_reader`.
"""

import gzip
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, reduce
from math import inf
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from privacygames.csv_reader import CsvFile
from privacygames.errors import InvalidProblem, UnreadableFile
from privacygames.tables.optional_imports import import_optional
from privacygames.tables.rules import ColumnRule

PARQUET = ".parquet"
GZIPPED_CSV = ".csv.gz"
ENDINGS = (".csv", GZIPPED_CSV, PARQUET)

BATCH_ROWS = 1 << 17
"""Rows of a Parquet file read at a time."""

ROW_GROUP_ROWS = 8 * BATCH_ROWS
"""Largest number of rows in a row group of a Parquet file written here: about a million, the format's usual size."""

NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
SET_SEPARATOR = ";"
DAMAGED = "it is damaged, or not what its ending says"


class TableFile(Protocol):
    """A file that is read batch by batch, from any row on."""

    @property
    def path(self) -> Path:
        """The file."""
        ...

    @property
    def schema(self) -> Any:
        """The Arrow schema of its columns."""
        ...

    def batches(self, columns: Sequence[str] | None = None, *, skip: int = 0) -> Iterator[Any]:
        """The record batches of all or some columns, without the first ``skip`` rows."""
        ...


def ending_of(path: Path) -> str | None:
    """``.csv``, ``.csv.gz`` or ``.parquet``; None for other files."""
    return next((ending for ending in ENDINGS if path.name.lower().endswith(ending)), None)


def require_same_ending(source: Path, out: Path) -> None:
    """Refuse files that cannot be read, and an output of another kind than the input."""
    if ending_of(source) is None or ending_of(out) != ending_of(source):
        raise InvalidProblem(f"input and output must end alike, in {', '.join(ENDINGS)}; got {source.name}, {out.name}")


def open_table(path: Path, rules: Sequence[ColumnRule], separator: str | None = None) -> TableFile:
    """A CSV or Parquet file, by its ending."""
    ending = ending_of(path)
    if ending is None:
        raise InvalidProblem(f"{path.name} ends in none of {', '.join(ENDINGS)}")
    return ParquetTable(path) if ending == PARQUET else CsvTable(path, tuple(rules), separator)


def table_files_in(folder: Path) -> tuple[str, ...]:
    """The tables in a folder, by their path within it; names that start with a dot or an underscore are no data."""
    paths = sorted(path.relative_to(folder) for path in folder.rglob("*") if ending_of(path))
    names = tuple(path.as_posix() for path in paths if not any(part[0] in "._" for part in path.parts))
    if not names:
        raise InvalidProblem(f"{folder} holds no files that end in {', '.join(ENDINGS)}")
    return names


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file."""

    path: Path

    @cached_property
    def schema(self) -> Any:
        """Its schema, metadata included."""
        with _parquet_errors(self.path):
            return import_optional("pyarrow.parquet").read_schema(self.path)

    def batches(self, columns: Sequence[str] | None = None, *, skip: int = 0) -> Iterator[Any]:
        """Its record batches; row groups before the first row wanted are not read."""
        with _parquet_errors(self.path), import_optional("pyarrow.parquet").ParquetFile(self.path) as file:
            groups, left = list(range(file.num_row_groups)), skip
            while groups and left >= file.metadata.row_group(groups[0]).num_rows:
                left -= file.metadata.row_group(groups.pop(0)).num_rows
            names = None if columns is None else list(columns)
            yield from _skip_rows(file.iter_batches(BATCH_ROWS, row_groups=groups, columns=names), left)


@dataclass(frozen=True)
class CsvTable:
    """A CSV file, whose columns of secrets are read as what the rules need, and all others as texts."""

    path: Path
    rules: tuple[ColumnRule, ...]
    separator: str | None = None

    @cached_property
    def file(self) -> CsvFile:
        """The file."""
        return CsvFile(self.path, self.separator)

    @cached_property
    def schema(self) -> Any:
        """Texts, all of them: columns of outputs take the type that the outputs have."""
        pa = import_optional("pyarrow")
        names = self.file.header.names
        if len(set(names)) < len(names):
            raise InvalidProblem(f"{self.path.name}: its first line must name the columns, each once")
        return pa.schema([pa.field(name, pa.string()) for name in names])

    def batches(self, columns: Sequence[str] | None = None, *, skip: int = 0) -> Iterator[Any]:
        """Its record batches."""
        yield from map(self._with_secrets, _skip_rows(self.file.record_batches(columns), skip))

    def _with_secrets(self, batch: Any) -> Any:
        """The batch with numeric secrets as numbers and sets as lists; an empty cell holds no value."""
        arrays = {name: batch.column(name) for name in batch.schema.names}
        for rule in self.rules:
            numbers, sets = rule.reader.number_columns(), rule.reader.set_columns()
            for name in rule.columns:
                if name in arrays:
                    parse = _parse_numbers if name in numbers else _parse_sets if name in sets else _without_empty
                    arrays[name] = parse(arrays[name])
        return import_optional("pyarrow").RecordBatch.from_pydict(arrays)


def separator_of(path: Path) -> str:
    """The separator of a CSV file, from its first line; a comma for Parquet, where it is not used."""
    return "," if ending_of(path) == PARQUET else CsvFile(path).header.separator


def _skip_rows(batches: Any, count: int) -> Iterator[Any]:
    """Batches without their first rows."""
    for batch in batches:
        if count >= batch.num_rows:
            count -= batch.num_rows
            continue
        yield batch.slice(count)
        count = 0


def _parse_numbers(texts: Any) -> Any:
    """Numbers; null for an empty cell, and infinity for a text that is no number: a value, but not a secret."""
    pa, pc = import_optional("pyarrow"), import_optional("pyarrow.compute")
    trimmed = pc.utf8_trim_whitespace(texts)
    is_number = pc.match_substring_regex(trimmed, NUMBER)
    numbers = pc.cast(pc.if_else(is_number, trimmed, pa.scalar(None, pa.string())), pa.float64())
    return pc.if_else(pc.or_(is_number, pc.equal(trimmed, "")), numbers, inf)


def _without_empty(texts: Any) -> Any:
    """Texts with null in place of empty ones."""
    pa, pc = import_optional("pyarrow"), import_optional("pyarrow.compute")
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)


def _parse_sets(texts: Any) -> Any:
    pa = import_optional("pyarrow")
    rows = [
        [item.strip() for item in (text or "").strip("{} ").split(SET_SEPARATOR) if item.strip()]
        for text in texts.to_pylist()
    ]
    return pa.array(rows, pa.list_(pa.string()))


@contextmanager
def _parquet_errors(path: Path) -> Iterator[None]:
    """Errors in reading, without the values that the library's messages show."""
    pa = import_optional("pyarrow")
    try:
        yield
    except pa.ArrowInvalid:
        raise InvalidProblem(f"{path}: {DAMAGED}") from None
    except OSError as error:
        raise UnreadableFile(path, error.strerror or DAMAGED) from None


class TableWriter(Protocol):
    """Writes record batches to an open file."""

    def write(self, batch: Any) -> None:
        """Add a batch."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...


def table_writer(
    ending: str | None, file: IO[bytes], schema: Any, separator: str = ",", *, header: bool = True
) -> TableWriter:
    """A writer for a file with an ending."""
    if ending == PARQUET:
        return ParquetWriter(file, schema)
    return CsvWriter(file, schema, separator, header=header, compressed=ending == GZIPPED_CSV)


class ParquetWriter:
    """Writes a Parquet file."""

    def __init__(self, file: IO[bytes], schema: Any) -> None:
        self._writer = import_optional("pyarrow.parquet").ParquetWriter(file, schema, compression="zstd")

    def write(self, batch: Any) -> None:
        """Add a batch."""
        self._writer.write_batch(batch, row_group_size=ROW_GROUP_ROWS)

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()


class CsvWriter:
    """Writes a CSV file, with quotation marks only where a cell needs them."""

    def __init__(self, file: IO[bytes], schema: Any, separator: str, *, header: bool, compressed: bool) -> None:
        # Without a name and a time, so that equal rows make equal files.
        self._gzip = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if compressed else None
        self._file: Any = self._gzip or file
        self._separator = separator
        if header:
            pa = import_optional("pyarrow")
            self._write_rows([pa.array([name], pa.string()) for name in schema.names])

    def write(self, batch: Any) -> None:
        """Add a batch."""
        if batch.num_rows:
            self._write_rows(batch.columns)

    def _write_rows(self, columns: Sequence[Any]) -> None:
        pa, pc = import_optional("pyarrow"), import_optional("pyarrow.compute")
        cells = [self._cells(column) for column in columns]
        if len(cells) == 1:  # a line without any character would not be a row
            cells = [pc.fill_null(cells[0], '""')]
        options = {"null_handling": "replace", "null_replacement": ""}
        rows = pc.binary_join_element_wise(*cells, pa.scalar(self._separator, pa.large_string()), **options)
        empty, newline = pa.scalar("", pa.large_string()), pa.scalar("\n", pa.large_string())
        lines = pc.binary_join_element_wise(rows, empty, newline)
        _, offsets, characters = lines.buffers()  # the lines one after the other, as the file has them
        edges = np.frombuffer(offsets, dtype=np.int64)[lines.offset :]
        self._file.write(memoryview(characters)[edges[0] : edges[len(lines)]])

    def _cells(self, column: Any) -> Any:
        """The texts of a column, quoted where needed."""
        pa, pc = import_optional("pyarrow"), import_optional("pyarrow.compute")
        if pa.types.is_list(column.type):
            column = pc.binary_join(pc.cast(column, pa.list_(pa.string())), SET_SEPARATOR)
        texts = pc.cast(column, pa.large_string())
        has_special = [pc.match_substring(texts, special) for special in (self._separator, '"', "\n", "\r")]
        needs_quotes = reduce(pc.or_, [*has_special, pc.equal(texts, "")])
        if not pc.any(needs_quotes).as_py():
            return texts
        doubled, mark = pc.replace_substring(texts, '"', '""'), pa.scalar('"', pa.large_string())
        quoted = pc.binary_join_element_wise(mark, doubled, mark, pa.scalar("", pa.large_string()))
        return pc.if_else(needs_quotes, quoted, texts)

    def close(self) -> None:
        """Write what is left."""
        if self._gzip is not None:
            self._gzip.close()
