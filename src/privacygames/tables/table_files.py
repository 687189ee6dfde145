"""CSV and Parquet files as streams of record batches, and back; in constant memory. Parquet keeps its types."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from privacygames.errors import InvalidProblem, UnreadableFile
from privacygames.tables.csv_files import COMPRESSED, DAMAGED, CsvOutput, CsvTable
from privacygames.tables.libraries import needed_for_tables
from privacygames.tables.row_batches import after
from privacygames.tables.rules import ColumnRule

PARQUET = ".parquet"
ENDINGS = (".csv", COMPRESSED, PARQUET)
ROWS = 1 << 17


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


def ending_of(path: Path) -> str | None:
    """``.csv``, ``.csv.gz`` or ``.parquet``; None for other files."""
    return next((ending for ending in ENDINGS if path.name.lower().endswith(ending)), None)


def require_same_ending(source: Path, out: Path) -> None:
    """Refuse an output of another kind than the input, and kinds that cannot be read."""
    if ending_of(source) is None or ending_of(out) != ending_of(source):
        raise InvalidProblem(f"input and output must end alike, in {', '.join(ENDINGS)}; got {source.name}, {out.name}")


def open_table(path: Path, rules: Sequence[ColumnRule], separator: str | None = None) -> TableFile:
    """A CSV or Parquet file, by its ending."""
    ending = ending_of(path)
    if ending is None:
        raise InvalidProblem(f"{path.name} ends in none of {', '.join(ENDINGS)}")
    return ParquetTable(path) if ending == PARQUET else CsvTable(path, tuple(rules), separator)


def files_in(folder: Path) -> tuple[str, ...]:
    """The tables in a folder, by their path within it; names that start with a dot or an underscore are no data."""
    found = sorted(path.relative_to(folder) for path in folder.rglob("*") if ending_of(path))
    names = tuple(path.as_posix() for path in found if not any(part[0] in "._" for part in path.parts))
    if not names:
        raise InvalidProblem(f"{folder} holds no files that end in {', '.join(ENDINGS)}")
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
            yield from after(file.iter_batches(ROWS, row_groups=groups, columns=wanted), left)


def separator_in(path: Path) -> str:
    """What separates the fields of a CSV file."""
    return "," if ending_of(path) == PARQUET else CsvTable(path, ()).header()[1]


class TableWriter(Protocol):
    """Writes record batches to a file that is open."""

    def write(self, batch: Any) -> None:
        """Add a batch."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...


def table_writer(
    ending: str | None, file: IO[bytes], schema: Any, separator: str = ",", *, header: bool = True
) -> TableWriter:
    """A writer for a file of that ending."""
    if ending == PARQUET:
        return ParquetOutput(file, schema)
    return CsvOutput(file, schema, separator, header=header, compressed=ending == COMPRESSED)


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


@contextmanager
def _trouble(path: Path) -> Iterator[None]:
    """What goes wrong in reading, without the values that messages of the library show."""
    pa = needed_for_tables("pyarrow")
    try:
        yield
    except pa.ArrowInvalid:
        raise InvalidProblem(f"{path}: {DAMAGED}") from None
    except OSError as error:
        raise UnreadableFile(path, error.strerror or DAMAGED) from None
