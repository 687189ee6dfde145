"""CSV and Parquet files as streams of record batches, and back; in constant memory.

Parquet keeps its types. CSV has none: every column is read as the text it is and written as it was (but for
quotation marks), numbers are made of the columns of secrets alone, and sets of texts are written ``Alien;Brazil``.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import IO, Any, Protocol

from privacygames.errors import InvalidProblem, UnreadableFile
from privacygames.spaces import Sets
from privacygames.tables.libraries import needed_for_tables
from privacygames.tables.rules import ColumnRule

ENDINGS = (".csv", ".parquet")
ROWS = 1 << 17
SEPARATORS = (",", ";", "\t", "|")
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
BETWEEN = ";"


class TableFile(Protocol):
    """A file that can be read batch by batch, from any row on."""

    @property
    def path(self) -> Path:
        """Where it is."""
        ...

    @property
    def schema(self) -> Any:
        """What the kernel is to know of its columns."""
        ...

    @property
    def rows(self) -> int | None:
        """How many rows it has, where that is known."""
        ...

    def batches(self, columns: Sequence[str] | None = None, *, skip: int = 0) -> Iterator[Any]:
        """Its record batches, or some columns of them, without the first rows."""
        ...


def open_table(path: Path, rules: Sequence[ColumnRule], separator: str | None = None) -> TableFile:
    """A CSV or Parquet file, by its ending."""
    if path.suffix.lower() == ".parquet":
        return ParquetTable(path)
    if path.suffix.lower() == ".csv":
        return CsvTable(path, tuple(rules), separator)
    raise InvalidProblem(f"{path.name} is neither .csv nor .parquet")


def files_in(folder: Path) -> tuple[str, ...]:
    """The tables in a folder, by their path within it; names that start with a dot or an underscore are no data."""
    found = sorted(path.relative_to(folder) for path in folder.rglob("*") if path.suffix.lower() in ENDINGS)
    names = tuple(path.as_posix() for path in found if not any(part[0] in "._" for part in path.parts))
    if not names:
        raise InvalidProblem(f"{folder} holds no .csv or .parquet files")
    return names


@dataclass(frozen=True)
class ParquetTable:
    """A Parquet file."""

    path: Path

    @property
    def schema(self) -> Any:
        """Its schema, metadata included."""
        with _trouble(self.path):
            return needed_for_tables("pyarrow.parquet").read_schema(self.path)

    @property
    def rows(self) -> int | None:
        """How many rows it has."""
        with _trouble(self.path):
            return int(needed_for_tables("pyarrow.parquet").read_metadata(self.path).num_rows)

    def batches(self, columns: Sequence[str] | None = None, *, skip: int = 0) -> Iterator[Any]:
        """Its record batches; row groups before the first row wanted are not read."""
        with _trouble(self.path), needed_for_tables("pyarrow.parquet").ParquetFile(self.path) as file:
            groups, left = list(range(file.num_row_groups)), skip
            while groups and left >= file.metadata.row_group(groups[0]).num_rows:
                left -= file.metadata.row_group(groups.pop(0)).num_rows
            wanted = None if columns is None else list(columns)
            yield from _after(file.iter_batches(ROWS, row_groups=groups, columns=wanted), left)


@dataclass(frozen=True)
class CsvTable:
    """A CSV file whose first line names its columns."""

    path: Path
    rules: tuple[ColumnRule, ...]
    separator: str | None = None

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
            with self.path.open(encoding="utf-8-sig", newline="") as file:
                line = file.readline(1 << 16)
        except (OSError, UnicodeDecodeError) as error:
            raise UnreadableFile(self.path, getattr(error, "strerror", None) or "it is not UTF-8 text") from None
        between = self.separator or max(SEPARATORS, key=line.count)
        names = next(csv.reader([line], delimiter=between), [])
        if not names or len(set(names)) < len(names):
            raise InvalidProblem(f"{self.path.name}: its first line must name the columns, each once")
        return names, between

    def batches(self, columns: Sequence[str] | None = None, *, skip: int = 0) -> Iterator[Any]:
        """Its record batches; rows before the first one wanted are read, and no more than that."""
        pa, arrow_csv = needed_for_tables("pyarrow"), needed_for_tables("pyarrow.csv")
        names, between = self.header()
        wanted = names if columns is None else list(columns)
        with _trouble(self.path):
            reader = arrow_csv.open_csv(
                self.path,
                parse_options=arrow_csv.ParseOptions(delimiter=between, newlines_in_values=True),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(names, pa.string()), include_columns=wanted, strings_can_be_null=False
                ),
            )
            for batch in _after(reader, skip):
                yield self._with_numbers(batch)

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
    rows = [[item.strip() for item in text.strip("{} ").split(BETWEEN) if item.strip()] for text in texts.to_pylist()]
    return pa.array(rows, pa.list_(pa.string()))


def separator_in(path: Path) -> str:
    """What separates the fields of a CSV file."""
    return CsvTable(path, ()).header()[1] if path.suffix.lower() == ".csv" else ","


class TableWriter(Protocol):
    """Writes record batches to a file that is open."""

    def write(self, batch: Any) -> None:
        """Add a batch."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...


def table_writer(
    ending: str, file: IO[bytes], schema: Any, separator: str = ",", *, header: bool = True
) -> TableWriter:
    """A writer for a file of that ending."""
    return ParquetOutput(file, schema) if ending == ".parquet" else CsvOutput(file, schema, separator, header=header)


class ParquetOutput:
    """Writes a Parquet file."""

    def __init__(self, file: IO[bytes], schema: Any) -> None:
        self._writer = needed_for_tables("pyarrow.parquet").ParquetWriter(file, schema, compression="zstd")

    def write(self, batch: Any) -> None:
        """Add a batch."""
        self._writer.write_batch(batch, row_group_size=8 * ROWS)

    def close(self) -> None:
        """Write the footer."""
        self._writer.close()


class CsvOutput:
    """Writes a CSV file, with quotation marks only where a batch needs some."""

    def __init__(self, file: IO[bytes], schema: Any, separator: str, *, header: bool) -> None:
        self._file, self._separator = file, separator
        if header:
            line = io.StringIO()
            csv.writer(line, delimiter=separator, lineterminator="\n").writerow(schema.names)
            file.write(line.getvalue().encode())

    def write(self, batch: Any) -> None:
        """Add a batch."""
        pa, arrow_csv = needed_for_tables("pyarrow"), needed_for_tables("pyarrow.csv")
        flat = _flat(batch)
        for style in ("none", "needed"):
            options = arrow_csv.WriteOptions(include_header=False, delimiter=self._separator, quoting_style=style)
            buffer = io.BytesIO()
            try:
                arrow_csv.write_csv(flat, buffer, options)
            except pa.ArrowInvalid:  # a value has the separator, a quotation mark or a line break in it
                continue
            self._file.write(buffer.getvalue())
            return

    def close(self) -> None:
        """Nothing is left."""


def _flat(batch: Any) -> Any:
    """The batch with lists as texts, which CSV has no other form for."""
    pa, pc = needed_for_tables("pyarrow"), needed_for_tables("pyarrow.compute")
    arrays = {
        name: pc.binary_join(pc.cast(column, pa.list_(pa.string())), BETWEEN)
        if pa.types.is_list(column.type)
        else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    return pa.RecordBatch.from_pydict(arrays)


def _after(batches: Any, skip: int) -> Iterator[Any]:
    """Batches without their first rows."""
    for batch in batches:
        if skip >= batch.num_rows:
            skip -= batch.num_rows
            continue
        yield batch.slice(skip)
        skip = 0


@contextmanager
def _trouble(path: Path) -> Iterator[None]:
    """What goes wrong in reading, without the values that messages of the library show."""
    pa = needed_for_tables("pyarrow")
    try:
        yield
    except pa.ArrowInvalid:
        raise InvalidProblem(f"{path} is damaged, or not what its ending says") from None
    except OSError as error:
        raise UnreadableFile(path, error.strerror or "it is damaged, or not what its ending says") from None
