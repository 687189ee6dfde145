"""Tables with named columns: CSV and Parquet."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import tzinfo
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.errors import InvalidProblem, TooLarge, UnreadableFile
from privacygames.traces import clock
from privacygames.traces.readers.row_batch import Format, RowBatch, Source, numbers
from privacygames.traces.readers.text_lines import (
    MOST_UNFOLDED,
    Columns,
    Lines,
    lines_of,
    most_unpacked,
    split_line,
    split_lines,
)

NAMES: dict[str, tuple[str, ...]] = {
    "user": ("uid", "user", "user_id", "userid", "traj_id", "trajectory_id", "tid"),
    "time": ("datetime", "time", "timestamp", "t"),
    "latitude": ("lat", "latitude", "y"),
    "longitude": ("lng", "lon", "long", "longitude", "x"),
}
"""What the columns may be called, the likelier first: scikit-mobility's names, MovingPandas', and plain words."""

SEPARATORS = (",", ";", "\t")
BATCH = 1 << 16
BYTES_OF_ROW = 40
"""What a visit takes in memory: user, slot, time, latitude and longitude."""
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
            head = _without_blank_lines(lines)
            if not head.texts:
                continue
            header, separator = header_of(head)
            columns = Columns(separator, len(header), **chosen_columns(header, named, source.path.name))
            body = Lines(head.first + 1, head.texts[1:], head.position)
            if source.dates is None:
                fields = (split_line(line, separator) for line in body.texts)
                times = (each[columns.time].strip() for each in fields if len(each) == columns.fields)
                source = replace(source, dates=clock.date_order(times, source.path.name))
        yield split_lines(body, columns, source)


def _without_blank_lines(lines: Lines) -> Lines:
    """The lines from the first on that is not blank."""
    blank = next((at for at, text in enumerate(lines.texts) if text.strip()), len(lines.texts))
    return Lines(lines.first + blank, lines.texts[blank:], lines.position)


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
        with source.path.open("rb") as raw:
            with parquet.ParquetFile(raw) as file:
                present, metadata = file.schema_arrow.names, file.metadata
                wanted = {role: present[at] for role, at in chosen_columns(present, named, name).items()}
                size = source.path.stat().st_size
                _check_unpacked(metadata, set(wanted.values()), size, name)
                texts = [each for each in set(wanted.values()) if _is_text(file.schema_arrow.field(each).type)]
            raw.seek(0)
            # Texts stay packed: a long one that every row repeats is in memory once.
            with parquet.ParquetFile(raw, metadata=metadata, read_dictionary=texts) as file:
                total, first = max(metadata.num_rows, 1), 1
                for batch in file.iter_batches(batch_size=BATCH, columns=list(dict.fromkeys(wanted.values()))):
                    position = size * (first - 1 + batch.num_rows) // total
                    source = _with_order(batch, wanted, source)
                    yield _from_batch(batch, wanted, source, first, position)
                    first += batch.num_rows
    except FileNotFoundError as error:
        raise UnreadableFile(source.path, error.strerror) from None
    except (pa.ArrowException, KeyError, OSError) as error:  # its message may show values
        raise InvalidProblem(f"{name} cannot be read as Parquet ({type(error).__name__})") from None


def _check_unpacked(metadata: Any, wanted: set[str], size: int, name: str) -> None:
    """Refuse a file that its own metadata says to unfold as no trace does, before anything of it is unpacked."""
    unpacked = metadata.num_rows * BYTES_OF_ROW
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        columns = (group.column(at) for at in range(group.num_columns))
        unpacked += sum(each.total_uncompressed_size for each in columns if each.path_in_schema in wanted)
    if unpacked > most_unpacked(size):
        raise TooLarge(
            f"{name} unfolds to over {MOST_UNFOLDED} times its size, as no trace does; write it again "
            "without compression if you trust it"
        )


def _is_text(kind: Any) -> bool:
    """Whether a column is of texts, packed in a dictionary or not."""
    import pyarrow as pa

    kinds = pa.types
    plain = kind.value_type if kinds.is_dictionary(kind) else kind
    return any(
        is_kind(plain) for is_kind in (kinds.is_string, kinds.is_large_string, kinds.is_string_view, kinds.is_binary)
    )


def read_frame(frame: Any, named: Mapping[str, str], zone: tzinfo, dates: clock.Dates | None) -> Iterator[RowBatch]:
    """The rows of a table in memory: pandas', Polars', Arrow's, or anything that speaks Arrow's protocol."""
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
    wanted = {
        role: table.column_names[at] for role, at in chosen_columns(table.column_names, named, "the table").items()
    }
    source, first = Source(Path("the table"), zone, dates=dates), 1
    for batch in table.select(list(dict.fromkeys(wanted.values()))).to_batches(max_chunksize=BATCH):
        source = _with_order(batch, wanted, source)
        yield _from_batch(batch, wanted, source, first, 0)
        first += batch.num_rows


def _with_order(batch: Any, wanted: Mapping[str, str], source: Source) -> Source:
    """The source with the order of its dates, where they are texts and the batch tells it."""
    times = batch.column(wanted["time"])
    if source.dates is not None or not _is_text(times.type):
        return source
    texts = (text.strip() for text in _texts(times))
    return replace(source, dates=clock.date_order([text for text in texts if text], source.path.name))


def _from_batch(batch: Any, wanted: Mapping[str, str], source: Source, first: int, position: int) -> RowBatch:
    import pyarrow as pa
    import pyarrow.compute as pc

    named = batch.column(wanted["user"])
    if not _is_text(named.type):
        named = _plain(named)
        if pa.types.is_floating(named.type):  # NaN is nobody, and no user of that name
            named = pc.if_else(pc.is_nan(named), None, named)
        named = named.cast(pa.string())
    users = [user.strip() for user in _texts(named)]
    whose = np.array([bool(user) for user in users], dtype=bool)
    lines = np.arange(first, first + len(users))
    return RowBatch(
        users=[user for user in users if user],
        times=_times(batch.column(wanted["time"]), source)[whose],
        latitude=_floats(batch.column(wanted["latitude"]))[whose],
        longitude=_floats(batch.column(wanted["longitude"]))[whose],
        lines=lines[whose].tolist(),
        broken=lines[~whose].tolist(),
        position=position,
    )


def _texts(column: Any) -> list[str]:
    """The texts of a column, "" for those that are missing; equal ones are one object, however often they occur."""
    import pyarrow as pa

    if pa.types.is_string_view(column.type):  # Arrow cannot pack these
        column = column.cast(pa.large_string())
    packed = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    codes = packed.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    used, places = np.unique(codes, return_inverse=True)
    known = packed.dictionary.take(pa.array(used[used >= 0])).cast(pa.string()).to_pylist()
    texts = [""] * int((used < 0).any()) + [(text or "") for text in known]
    return [texts[place] for place in places]


def _plain(column: Any) -> Any:
    """A column of numbers or times without categories."""
    import pyarrow as pa

    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _floats(column: Any) -> FloatArray:
    import pyarrow as pa

    if _is_text(column.type):
        return numbers(_texts(column), len(column))
    return np.asarray(_plain(column).cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


def _times(column: Any, source: Source) -> IntArray:
    """Unix seconds of a column of timestamps, dates, texts or numbers."""
    import pyarrow as pa

    kinds = pa.types
    if _is_text(column.type):
        return clock.from_text(_texts(column), source.zone, source.dates)
    column = _plain(column)
    if not (kinds.is_timestamp(column.type) or kinds.is_date(column.type)):
        return clock.from_numbers(_floats(column))
    ticks = column.cast(pa.timestamp("us", tz=getattr(column.type, "tz", None)), safe=False).cast(pa.int64())
    seconds = np.asarray(ticks.fill_null(clock.BAD).to_numpy(zero_copy_only=False), dtype=np.int64) // 1_000_000
    seconds = clock.from_numbers(seconds.astype(np.float64))
    if getattr(column.type, "tz", None) is None:
        return clock.from_local(seconds, source.zone)
    return seconds
