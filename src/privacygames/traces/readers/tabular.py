"""Tables with named columns: CSV and Parquet."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.errors import InvalidProblem, UnreadableFile
from privacygames.traces import clock
from privacygames.traces.readers.row_batch import Format, RowBatch, Source, numbers
from privacygames.traces.readers.text_lines import Columns, Lines, lines_of, split_line, split_lines

NAMES: dict[str, tuple[str, ...]] = {
    "user": ("uid", "user", "user_id", "userid", "traj_id", "trajectory_id", "tid"),
    "time": ("datetime", "time", "timestamp", "t"),
    "latitude": ("lat", "latitude", "y"),
    "longitude": ("lng", "lon", "long", "longitude", "x"),
}
"""What the columns may be called, the likelier first: scikit-mobility's names, MovingPandas', and plain words."""

SEPARATORS = (",", ";", "\t")
BATCH = 1 << 16
LONGEST_NAME = 100
DATA = re.compile(r"\d[-.,:]\d")


def table_format(columns: Mapping[str, str] | None) -> Format:
    """A reader of CSV and Parquet files whose columns are called so."""
    named = dict(columns or {})
    for role in named:
        if role not in NAMES:
            raise InvalidProblem(f"columns has no key {role!r}; it may have {', '.join(NAMES)}")
    return partial(_read_table, named=named)


def chosen_columns(present: Sequence[str], named: Mapping[str, str], file: str) -> dict[str, int]:
    """Where each of the four columns is."""
    check_names(present, file)
    lowered = [name.strip().lower() for name in present]
    found = {}
    for role, names in NAMES.items():
        if role in named:
            places = [at for at, name in enumerate(present) if name == named[role]]
        else:
            places = [lowered.index(name) for name in names if name in lowered]
        if not places:
            wanted = repr(named[role]) if role in named else f"one of {', '.join(names)}"
            raise InvalidProblem(
                f"{file} has no column for the {role} ({wanted}); it has {shown(present)}; "
                f"say which with columns={{{role!r}: …}} (on the command line: --fields {role}=…)"
            )
        found[role] = places[0]
    return found


def check_names(present: Sequence[str], file: str) -> None:
    """Refuse a first line of data. It is not shown: it is somebody's place."""
    if not np.isnan(numbers(present, len(present))).all():
        raise InvalidProblem(f"{file} starts with data; its first line must name the columns")


def shown(present: Sequence[str]) -> str:
    """Names as a message lists them; where one may be data, or no text at all, none is shown."""
    if all(name.isprintable() and len(name) <= LONGEST_NAME and not DATA.search(name) for name in present):
        return ", ".join(present) or "none"
    return "what does not look like names"


def header_of(lines: Lines) -> tuple[list[str], str]:
    """The names in a CSV file's first line, and what separates them."""
    line = lines.texts[0]
    separator = max(SEPARATORS, key=line.count)
    return [name.strip() for name in split_line(line, separator)], separator


def _read_table(source: Source, named: Mapping[str, str]) -> Iterator[RowBatch]:
    if source.path.suffix.lower() == ".parquet":
        return _read_parquet(source, named)
    return _read_csv(source, named)


def _read_csv(source: Source, named: Mapping[str, str]) -> Iterator[RowBatch]:
    columns: Columns | None = None
    for lines in lines_of(source.path):
        body = lines
        if columns is None:
            header, separator = header_of(lines)
            columns = Columns(separator, len(header), **chosen_columns(header, named, source.path.name))
            body = Lines(2, lines.texts[1:], lines.position)
        yield split_lines(body, columns, source)


def _read_parquet(source: Source, named: Mapping[str, str]) -> Iterator[RowBatch]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise InvalidProblem(
            "reading Parquet needs pyarrow: install privacygames[traces], or give the table as CSV"
        ) from None
    name = source.path.name
    try:
        with source.path.open("rb") as raw, parquet.ParquetFile(raw) as file:
            present = file.schema_arrow.names
            wanted = {role: present[at] for role, at in chosen_columns(present, named, name).items()}
            total, first = max(file.metadata.num_rows, 1), 1
            size = source.path.stat().st_size
            for batch in file.iter_batches(batch_size=BATCH, columns=list(dict.fromkeys(wanted.values()))):
                position = size * (first - 1 + batch.num_rows) // total
                yield _from_batch(batch, wanted, source, first, position)
                first += batch.num_rows
    except FileNotFoundError as error:
        raise UnreadableFile(source.path, error.strerror) from None
    except (pa.ArrowException, KeyError, OSError) as error:  # its message may show values
        raise InvalidProblem(f"{name} cannot be read as Parquet ({type(error).__name__})") from None


def _from_batch(batch: Any, wanted: Mapping[str, str], source: Source, first: int, position: int) -> RowBatch:
    import pyarrow as pa

    users = [(user or "").strip() for user in batch.column(wanted["user"]).cast(pa.string()).to_pylist()]
    whose = np.array([bool(user) for user in users], dtype=bool)
    lines = np.arange(first, first + len(users))
    return RowBatch(
        users=[user for user in users if user],
        times=_times(_plain(batch.column(wanted["time"])), source)[whose],
        latitude=_floats(_plain(batch.column(wanted["latitude"])))[whose],
        longitude=_floats(_plain(batch.column(wanted["longitude"])))[whose],
        lines=lines[whose].tolist(),
        broken=lines[~whose].tolist(),
        position=position,
    )


def _plain(column: Any) -> Any:
    """A column without categories, its texts all of one kind."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    other = pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type)
    return column.cast(pa.string()) if other else column


def _floats(column: Any) -> FloatArray:
    import pyarrow as pa

    if pa.types.is_string(column.type):
        return numbers((text or "" for text in column.to_pylist()), len(column))
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def _times(column: Any, source: Source) -> IntArray:
    """Unix seconds of a column of timestamps, dates, texts or numbers."""
    import pyarrow as pa

    kinds = pa.types
    if kinds.is_string(column.type):
        return clock.from_text((text or "" for text in column.to_pylist()), source.zone)
    if not (kinds.is_timestamp(column.type) or kinds.is_date(column.type)):
        return clock.from_numbers(_floats(column))
    ticks = column.cast(pa.timestamp("us", tz=getattr(column.type, "tz", None)), safe=False).cast(pa.int64())
    seconds = np.asarray(ticks.fill_null(clock.BAD).to_numpy(zero_copy_only=False), dtype=np.int64) // 1_000_000
    seconds = clock.from_numbers(seconds.astype(np.float64))
    if getattr(column.type, "tz", None) is None:
        return clock.from_local(seconds, source.zone)
    return seconds
