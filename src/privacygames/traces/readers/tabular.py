"""Tables with one row per fix and named columns: CSV and Parquet files, and tables in memory."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.csv_reader import (
    MAX_EXPANSION,
    LineBlock,
    detect_separator,
    expansion_limit,
    read_lines,
    split_line,
)
from privacygames.errors import InvalidProblem, TooLarge, UnreadableFile
from privacygames.traces import timestamps
from privacygames.traces.readers.delimited_lines import FieldLayout, parse_lines
from privacygames.traces.readers.row_batch import RowBatch, TraceFormat, TraceSource, parse_numbers

COLUMN_NAMES: dict[str, tuple[str, ...]] = {
    "user": ("uid", "user", "user_id", "userid", "traj_id", "trajectory_id", "tid"),
    "time": ("datetime", "time", "timestamp", "t"),
    "latitude": ("lat", "latitude", "y"),
    "longitude": ("lng", "lon", "long", "longitude", "x"),
}
"""Names that each column may have, the likelier first: scikit-mobility's, MovingPandas', and plain words."""

OPTIONAL = ("user", "time")
"""Columns that a table may lack, where the caller says so: all rows are then one user's, or have no times."""

BATCH_ROWS = 1 << 16
"""Rows of a Parquet file or table read at a time."""

BYTES_PER_ROW = 40
"""Memory of a visit: user, slot, time, latitude and longitude."""

ONE_USER = "all rows"
"""The user's name where a table has no column of users."""

MAX_NAME_LENGTH = 100
DATA = re.compile(r"\d[-.,:]\d")
"""Part of a number, date or time: a name that holds one may be data, and is not shown."""


def table_format(columns: Mapping[str, str | None] | None = None) -> TraceFormat:
    """The format of CSV and Parquet files whose columns have these names; None for a user or time that is not there."""
    names = checked_names(columns)
    return TraceFormat(partial(_read_table, names=names), endings=(".csv", ".csv.gz", ".parquet"))


def checked_names(columns: Mapping[str, str | None] | None) -> dict[str, str | None]:
    """The names of columns by role, as a caller gives them."""
    names = dict(columns or {})
    for role, name in names.items():
        if role not in COLUMN_NAMES:
            raise InvalidProblem(f"columns has no key {role!r}; it may have {', '.join(COLUMN_NAMES)}")
        if name is None and role not in OPTIONAL:
            raise InvalidProblem(f"columns[{role!r}] is None; a position needs its {role}")
    return names


def require_names(header: Sequence[str], file: str) -> None:
    """Refuse a first line of data. It is not shown: it is somebody's location."""
    if not np.isnan(parse_numbers(header)).all():
        raise InvalidProblem(f"{file} starts with data; its first line must name the columns")


def list_names(header: Sequence[str]) -> str:
    """The names of columns for a message; if one may be data, or is not plain text, none is shown."""
    if all(name.isprintable() and len(name) <= MAX_NAME_LENGTH and not DATA.search(name) for name in header):
        return ", ".join(header) or "none"
    return "what does not look like names"


def _find_columns(header: Sequence[str], names: Mapping[str, str | None], file: str) -> dict[str, int]:
    """The index of each of the four columns, but for those that the caller says are not there."""
    require_names(header, file)
    lowered = [name.strip().lower() for name in header]
    columns = {}
    for role, usual_names in COLUMN_NAMES.items():
        if role in names and names[role] is None:
            continue
        if role in names:
            matches = [index for index, name in enumerate(header) if name == names[role]]
        else:
            matches = [lowered.index(name) for name in usual_names if name in lowered]
        if not matches:
            wanted = repr(names[role]) if role in names else f"one of {', '.join(usual_names)}"
            raise InvalidProblem(
                f"{file} has no column for the {role} ({wanted}); it has {list_names(header)}; "
                f"say which with columns={{{role!r}: …}} (on the command line: --fields {role}=…)"
            )
        columns[role] = matches[0]
    return columns


def _read_table(source: TraceSource, names: Mapping[str, str | None]) -> Iterator[RowBatch]:
    is_parquet = source.path.suffix.lower() == ".parquet"
    return _read_parquet(source, names) if is_parquet else _read_csv(source, names)


TABLE = table_format()


def _read_csv(source: TraceSource, names: Mapping[str, str | None]) -> Iterator[RowBatch]:
    layout: FieldLayout | None = None
    for block in read_lines(source.path):
        body = block
        if layout is None:
            blank = next((index for index, line in enumerate(block.lines) if line.strip()), len(block.lines))
            if blank == len(block.lines):
                continue
            line = block.lines[blank]
            separator = detect_separator(line)
            header = [name.strip() for name in split_line(line, separator)]
            columns = _find_columns(header, names, source.path.name)
            at = {"user": columns.get("user"), "time": columns.get("time")}
            layout = FieldLayout(
                separator, len(header), **at, latitude=columns["latitude"], longitude=columns["longitude"]
            )
            source = replace(source, user=ONE_USER)
            body = LineBlock(block.first + blank + 1, block.lines[blank + 1 :], block.position)
            if source.dates is None and layout.time is not None:
                rows = (split_line(line, separator) for line in body.lines)
                times = [row[layout.time].strip() for row in rows if len(row) == layout.fields]
                source = replace(source, dates=timestamps.detect_date_order(times, source.path.name))
        yield parse_lines(body, layout, source)


def _read_parquet(source: TraceSource, names: Mapping[str, str | None]) -> Iterator[RowBatch]:
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise InvalidProblem(
            "reading Parquet needs pyarrow: install privacygames[traces], or give the table as CSV"
        ) from None
    name = source.path.name
    try:
        with source.path.open("rb") as raw:
            with parquet.ParquetFile(raw) as file:
                header, metadata = file.schema_arrow.names, file.metadata
                columns = {role: header[index] for role, index in _find_columns(header, names, name).items()}
                _check_expansion(metadata, set(columns.values()), source.path)
                texts = [each for each in set(columns.values()) if _is_text(file.schema_arrow.field(each).type)]
            raw.seek(0)
            # Texts stay dictionary-encoded: a long one that every row repeats is in memory once.
            with parquet.ParquetFile(raw, metadata=metadata, read_dictionary=texts) as file:
                size = source.path.stat().st_size
                total, first = max(metadata.num_rows, 1), 1
                for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=list(dict.fromkeys(columns.values()))):
                    position = size * (first - 1 + batch.num_rows) // total
                    source = _with_date_order(batch, columns, source)
                    yield _row_batch(batch, columns, source, first, position)
                    first += batch.num_rows
    except FileNotFoundError as error:
        raise UnreadableFile(source.path, error.strerror) from None
    except (pa.ArrowException, KeyError, OSError) as error:  # its message may show values
        raise InvalidProblem(f"{name} cannot be read as Parquet ({type(error).__name__})") from None


def _check_expansion(metadata: Any, columns: set[str], path: Path) -> None:
    """Refuse a file that, by its own metadata, expands as no recording does, before anything of it is decompressed."""
    expanded = metadata.num_rows * BYTES_PER_ROW
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        chunks = (group.column(index) for index in range(group.num_columns))
        expanded += sum(chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema in columns)
    if expanded > expansion_limit(path):
        raise TooLarge(
            f"{path.name} unfolds to over {MAX_EXPANSION} times its size, as no recording does: write it again "
            "without compression if you trust it"
        )


def read_frame(
    frame: Any, names: Mapping[str, str | None], zone: tzinfo, dates: timestamps.DateOrder | None
) -> Iterator[RowBatch]:
    """The rows of a table in memory: of pandas, Polars, PyArrow, or anything with Arrow's interface."""
    try:
        import pyarrow as pa
    except ImportError:
        raise InvalidProblem(
            "reading a table in memory needs pyarrow: install privacygames[traces], or give a file"
        ) from None
    try:
        table = pa.table(frame)
    except (TypeError, ValueError, pa.ArrowException):
        raise InvalidProblem("traces are read from a path, or from a table (pandas, Polars, Arrow)") from None
    header = table.column_names
    columns = {role: header[index] for role, index in _find_columns(header, names, "the table").items()}
    source, first = TraceSource(Path("the table"), zone, dates=dates), 1
    for batch in table.select(list(dict.fromkeys(columns.values()))).to_batches(max_chunksize=BATCH_ROWS):
        source = _with_date_order(batch, columns, source)
        yield _row_batch(batch, columns, source, first, 0)
        first += batch.num_rows


def _with_date_order(batch: Any, columns: Mapping[str, str], source: TraceSource) -> TraceSource:
    """The source with the order of its dates, if times are texts and the batch shows it."""
    if source.dates is not None or "time" not in columns or not _is_text(batch.column(columns["time"]).type):
        return source
    times = batch.column(columns["time"])
    texts = [text for text in map(str.strip, _texts(times)) if text]
    return replace(source, dates=timestamps.detect_date_order(texts, source.path.name))


def _row_batch(batch: Any, columns: Mapping[str, str], source: TraceSource, first: int, position: int) -> RowBatch:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = (
        batch.column(columns["user"]) if "user" in columns else pa.repeat(ONE_USER, batch.num_rows).dictionary_encode()
    )
    if not _is_text(column.type):
        column = _decoded(column)
        if pa.types.is_floating(column.type):  # NaN is a missing user, and not the name of one
            column = pc.if_else(pc.is_nan(column), None, column)
        column = column.cast(pa.string())
    users = [user.strip() for user in _texts(column)]
    named = np.array([bool(user) for user in users], dtype=bool)
    lines = np.arange(first, first + len(users))
    return RowBatch(
        users=[user for user in users if user],
        times=_times(batch.column(columns["time"]), source)[named]
        if "time" in columns
        else np.full(len(users), timestamps.NO_TIME)[named],
        latitude=_floats(batch.column(columns["latitude"]))[named],
        longitude=_floats(batch.column(columns["longitude"]))[named],
        lines=lines[named].tolist(),
        broken=lines[~named].tolist(),
        position=position,
    )


def _is_text(kind: Any) -> bool:
    """Whether a column holds texts, dictionary-encoded or not."""
    import pyarrow as pa

    types = pa.types
    plain = kind.value_type if types.is_dictionary(kind) else kind
    return any(test(plain) for test in (types.is_string, types.is_large_string, types.is_string_view, types.is_binary))


def _texts(column: Any) -> list[str]:
    """The texts of a column, "" for missing ones; equal texts are one object, however often they occur."""
    import pyarrow as pa

    if pa.types.is_string_view(column.type):  # Arrow cannot dictionary-encode these
        column = column.cast(pa.large_string())
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    used, index = np.unique(codes, return_inverse=True)
    values = encoded.dictionary.take(pa.array(used[used >= 0])).cast(pa.string()).to_pylist()
    texts = [""] * int((used < 0).any()) + [(text or "") for text in values]
    return [texts[each] for each in index]


def _decoded(column: Any) -> Any:
    """A column of numbers or times without a dictionary."""
    import pyarrow as pa

    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _floats(column: Any) -> FloatArray:
    import pyarrow as pa

    if _is_text(column.type):
        return parse_numbers(_texts(column))
    return np.asarray(_decoded(column).cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def _times(column: Any, source: TraceSource) -> IntArray:
    """Unix seconds of a column of timestamps, dates, texts or numbers."""
    import pyarrow as pa

    types = pa.types
    if _is_text(column.type):
        return timestamps.seconds_from_texts(_texts(column), source.zone, source.dates)
    column = _decoded(column)
    if not (types.is_timestamp(column.type) or types.is_date(column.type)):
        return timestamps.seconds_from_numbers(_floats(column))
    zone = getattr(column.type, "tz", None)
    ticks = column.cast(pa.timestamp("us", tz=zone), safe=False).cast(pa.int64()).fill_null(timestamps.UNREADABLE)
    seconds = np.asarray(ticks.to_numpy(zero_copy_only=False), dtype=np.int64) // 1_000_000
    in_range = timestamps.seconds_from_numbers(seconds.astype(np.float64))
    return timestamps.seconds_from_local(in_range, source.zone) if zone is None else in_range
