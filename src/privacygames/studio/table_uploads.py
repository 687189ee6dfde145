"""Uploaded files in the worker process: a preview of a table, its places, numbers or categories, or a recording."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Any

import numpy as np

from privacygames import traces
from privacygames.arrays import FloatArray, IntArray
from privacygames.errors import InvalidProblem, TooLarge, UnreadableFile
from privacygames.studio.column_roles import (
    Column,
    Decimal,
    Role,
    guess_dates,
    guess_decimal,
    guess_roles,
    parse_number,
    parse_position,
)
from privacygames.studio.file_content import MOST_BAD_ROWS, Header, TextTable, kind_of, read_table, unpacked
from privacygames.studio.trace_uploads import read_traces
from privacygames.traces import DateOrder

SAMPLE_ROWS = 1000
"""Rows by which the roles of columns are guessed."""

SHOWN_ROWS, SHOWN_LENGTH = 8, 120
"""Rows of the preview, and characters of a cell in it."""

MOST_LABELS = 60
"""Different values of a column that become categories of their own; rarer ones are counted together."""

OTHER = "other (all rarer values)"
"""The category of the values that are too many to be categories of their own."""

MOST_NUMBERS = 120
"""Largest number of secrets in a range of numbers: a wider range has steps of 2, 5, 10, …"""

MOST_PEOPLE = 500
"""People listed, those with most rows first."""

FAR_OUT = 2.0
"""Values farther out than this many widths of the middle 98 % of them are no part of the range: 999 is no age."""

Json = dict[str, Any]


@dataclass(frozen=True)
class StoredTable:
    """A table as the server keeps it between requests: Parquet in memory, with what is needed to write it as it was.

    Attributes:
        content: the Parquet file. Columns of other files are texts named by their number, after one of line numbers.
        names: the names of the columns.
        form: ``"csv"``, ``"xlsx"`` or ``"parquet"``.
        separator: between the cells of a CSV file.
        has_mark: whether a protected file begins with a byte order mark.
    """

    content: bytes
    names: tuple[str, ...]
    form: str
    separator: str = ","
    has_mark: bool = False

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return len(self.content)

    def read(self) -> Any:
        """The Arrow table, without the line numbers, its columns named."""
        import pyarrow as pa
        from pyarrow import ArrowException, parquet

        try:
            table = parquet.read_table(pa.BufferReader(self.content))
        except (ArrowException, OSError):  # its message may show values
            raise InvalidProblem("the Parquet file is damaged: write it again") from None
        if self.form != "parquet":
            table = table.drop_columns(["line"])
        return table.rename_columns(list(self.names))

    def lines(self, rows: Sequence[int]) -> list[int]:
        """The line or row of the file of some rows of the table, counted from 0."""
        import pyarrow as pa
        from pyarrow import parquet

        if self.form == "parquet":
            return [row + 1 for row in rows]
        lines = parquet.read_table(pa.BufferReader(self.content), columns=["line"])["line"]
        return [lines[row].as_py() for row in rows]


def open_file(content: bytes, *, header: Header, rows: int) -> Json:
    """What a file holds: the visits of a recording, or a table with a preview of it.

    Args:
        content: the file, gzipped or not.
        header: whether the first row of a table names the columns.
        rows: the largest number of rows.
    """
    content = unpacked(content)
    kind = kind_of(content)
    if kind == "parquet":
        return _parquet_preview(content, rows)
    if kind not in ("csv", "xlsx"):
        visits = read_traces(content, kind, rows=rows)
        return {"visits": visits} | _table_of_visits(visits)
    table = read_table(content, kind, header=header, rows=rows)
    texts = list(zip(*table.rows, strict=True))
    stored = StoredTable(
        _as_parquet(table, texts), tuple(table.names), table.form, table.separator, has_mark=table.has_mark
    )
    columns = [
        Column(name, [cell for cell in cells[:SAMPLE_ROWS] if cell.strip()], len({*cells}), len(cells))
        for name, cells in zip(table.names, texts, strict=True)
    ]
    preview = _preview(columns, [list(row) for row in table.rows[:SHOWN_ROWS]], len(table.rows), table.form)
    bad = [{"line": each.line, "cells": _shown(each.cells), "reason": each.reason} for each in table.bad]
    return {
        "stored": stored,
        "preview": preview
        | {"header": table.has_header, "left_out": table.left_out, "bad": bad, "separator": table.separator},
    }


def _table_of_visits(visits: traces.Visits) -> Json:
    """The visits of a recording as a table, which can be protected like any other."""
    columns: dict[Role, Sequence[str]] = {}
    if len(visits.users) > 1:
        columns["who"] = [visits.users[user] for user in visits.user]
    if visits.has_times:
        columns["time"] = [f"{time}Z" for time in visits.time.astype("datetime64[s]")]
    columns["latitude"] = [f"{degrees:.7g}" for degrees in visits.latitude]
    columns["longitude"] = [f"{degrees:.7g}" for degrees in visits.longitude]
    table = TextTable(list(columns), [], list(range(1, len(visits) + 1)), "csv")
    stored = StoredTable(_as_parquet(table, list(columns.values())), tuple(columns), "csv")
    about = [{"name": name, "role": name, "distinct": len({*texts})} for name, texts in columns.items()]
    return {"stored": stored, "preview": {"form": "csv", "rows": len(visits), "columns": about, "decimal": "point"}}


def _as_parquet(table: TextTable, texts: Sequence[Sequence[str]]) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    columns = {"line": pa.array(table.lines, pa.int64())}
    columns |= {str(number): pa.array(cells, pa.string()) for number, cells in enumerate(texts)}
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table(columns), sink, compression="zstd")
    return bytes(sink.getvalue())


def _parquet_preview(content: bytes, rows: int) -> Json:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        metadata = parquet.read_metadata(pa.BufferReader(content))
        names = parquet.read_schema(pa.BufferReader(content)).names
    except (pa.ArrowException, OSError):
        raise InvalidProblem("the Parquet file is damaged: write it again") from None
    if metadata.num_rows > rows:
        raise TooLarge(f"the file has more than {rows} rows: leave some out, or use the command line")
    stored = StoredTable(content, tuple(names), "parquet")
    table = stored.read()
    if not table.num_rows:
        raise InvalidProblem("the file has no rows")
    samples = [_texts(column.slice(0, SAMPLE_ROWS)) for column in table.columns]
    columns = [
        Column(name, [text for text in sample if text.strip()], _distinct(column), table.num_rows)
        for name, sample, column in zip(names, samples, table.columns, strict=True)
    ]
    first = [[sample[row] for sample in samples] for row in range(min(SHOWN_ROWS, table.num_rows))]
    preview = _preview(columns, first, table.num_rows, "parquet")
    return {"stored": stored, "preview": preview | {"header": None, "left_out": 0, "bad": [], "separator": ""}}


def _distinct(column: Any) -> int:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return int(pc.count_distinct(column).as_py())
    except pa.ArrowException:  # lists and the like
        return len(column)


def _preview(columns: Sequence[Column], first: list[list[str]], rows: int, form: str) -> Json:
    """Guesses of what the columns are, and the first rows, for the page of whoever chose the file."""
    decimal = guess_decimal(columns)
    roles = guess_roles(columns, decimal)
    times = [column.values for column, role in zip(columns, roles, strict=True) if role == "time"]
    dates, is_sure = guess_dates(times[0] if times else [])
    return {
        "form": form,
        "rows": rows,
        "columns": [
            {"name": column.name[:SHOWN_LENGTH], "role": role, "distinct": column.distinct}
            for column, role in zip(columns, roles, strict=True)
        ],
        "first": [_shown(row) for row in first],
        "decimal": decimal,
        "dates": dates,
        "dates_sure": is_sure,
    }


def _shown(cells: Sequence[str]) -> list[str]:
    return [cell if len(cell) <= SHOWN_LENGTH else f"{cell[:SHOWN_LENGTH]}…" for cell in cells[:50]]


@dataclass(frozen=True)
class Reading:
    """How the columns of a table are read.

    Attributes:
        roles: what each column is.
        decimal: the sign before the decimal places.
        dates: the order of day and month in dates.
        person: whose rows; None for everyone's.
    """

    roles: tuple[Role, ...]
    decimal: Decimal
    dates: DateOrder | None
    person: str | None = None

    def column(self, role: Role) -> int | None:
        """The column of a role, if there is one."""
        return self.roles.index(role) if role in self.roles else None


def read_columns(stored: StoredTable, reading: Reading, *, rows: int) -> Json:
    """The visits, or the space and prior of numbers or categories, that a table's columns hold.

    Args:
        stored: the table.
        reading: what its columns are.
        rows: the largest number of visits that counts may stand for.

    Raises:
        InvalidProblem: the columns do not say what the secret is, or hold none.
    """
    table = stored.read()
    if len(reading.roles) != table.num_columns:
        raise InvalidProblem("the table has another number of columns: choose the file again")
    for role in {*reading.roles} - {"ignore"}:
        if reading.roles.count(role) > 1:
            raise InvalidProblem(f"two columns are said to be {NAMES[role]}: choose one of them")
    if reading.column("position") is not None or reading.column("latitude") is not None:
        return _read_places(stored, table, reading, rows)
    if reading.column("longitude") is not None:
        raise InvalidProblem("say which column is the latitude, too")
    if (reading.column("number") is None) == (reading.column("category") is None):
        raise InvalidProblem(
            "say which column is the secret: one number or one category, or latitude and longitude for places"
        )
    return _read_values(stored, table, reading)


NAMES: dict[Role, str] = {
    "who": "the person",
    "latitude": "the latitude",
    "longitude": "the longitude",
    "position": "the coordinates",
    "time": "the time",
    "number": "the secret number",
    "category": "the secret category",
    "count": "the count",
}


def _read_places(stored: StoredTable, table: Any, reading: Reading, most: int) -> Json:
    import pyarrow as pa

    position, time, who = reading.column("position"), reading.column("time"), reading.column("who")
    if position is not None:
        latitude, longitude = positions_of(table.column(position))
    else:
        axes = [reading.column(role) for role in ("latitude", "longitude")]
        if None in axes:
            raise InvalidProblem("say which column is the longitude, too")
        latitude, longitude = (numbers_of(table.column(axis), reading.decimal) for axis in axes)
    repeats = _repeats(table, reading, most) if time is None else np.ones(table.num_rows, dtype=np.int64)
    rows = np.repeat(np.arange(table.num_rows), repeats)
    frame = {"latitude": latitude[rows], "longitude": longitude[rows]}
    for role, index in (("user", who), ("time", time)):
        if index is not None:
            frame[role] = _as_text(table.column(index)).take(pa.array(rows))
    absent = {role: None for role, index in (("user", who), ("time", time)) if index is None}
    try:
        visits = traces.read(pa.table(frame), columns=absent, dates=reading.dates)
    except UnreadableFile:
        raise
    except InvalidProblem as error:
        raise InvalidProblem(_in_page_words(str(error))) from None
    bad = [
        (int(rows[line - 1]), WHY.get(reason, reason))
        for reason, lines in visits.skipped_lines.items()
        for line in lines
        if reason in WHY
    ]
    return {"visits": visits, "bad": _bad_rows(stored, table, bad)}


WHY = {
    "broken line": "nobody named",
    "bad time": "no time that can be read",
    "bad coordinates": "no latitude from -90 to 90 with a longitude from -180 to 180",
}
"""Why a row is no visit, in the page's words; rows of a slot that has one already are not bad."""


def _in_page_words(message: str) -> str:
    """The message of an error about a table in memory, for somebody who writes no Python."""
    if "day or the month first" in message:
        return "the dates may have the day or the month first: say which"
    if "holds no visits" in message:
        return "no row has a place that can be read: look at the columns and the decimal sign chosen above"
    return message.replace("the table", "the file")


def _repeats(table: Any, reading: Reading, most: int) -> IntArray:
    """How many visits each row stands for."""
    count = reading.column("count")
    if count is None:
        return np.ones(table.num_rows, dtype=np.int64)
    counts = numbers_of(table.column(count), reading.decimal)
    whole = np.where(np.isfinite(counts) & (counts >= 0), np.round(np.nan_to_num(counts)), 0)
    if whole.sum() > most:
        raise TooLarge(f"the counts add up to more than {most}: give them in thousands")
    return np.asarray(whole, dtype=np.int64)


def _read_values(stored: StoredTable, table: Any, reading: Reading) -> Json:
    """The space and prior of a column of numbers or categories."""
    secret, count, who = (reading.column(role) for role in ("number", "count", "who"))
    weights = np.ones(table.num_rows)
    if count is not None:
        weights = numbers_of(table.column(count), reading.decimal)
    people: list[Json] = []
    wanted = np.ones(table.num_rows, dtype=bool)
    if who is not None:
        names = [name.strip() for name in _texts(table.column(who))]
        by_name = Counter(name for name in names if name)
        if 2 * len(by_name) <= len(names):  # with about one row each there is nobody to choose
            people = [{"name": name, "rows": rows} for name, rows in by_name.most_common(MOST_PEOPLE)]
        if reading.person is not None:
            wanted = np.array([name == reading.person for name in names], dtype=bool)
    can_count = np.isfinite(weights) & (weights >= 0)
    if secret is not None:
        values = numbers_of(table.column(secret), reading.decimal)
        has_value, why = np.isfinite(values), "no number"
    else:
        labels = np.array(
            [text.strip() for text in _texts(table.column(reading.roles.index("category")))], dtype=object
        )
        has_value, why = np.array([bool(label) for label in labels], dtype=bool), "empty"
    use = wanted & has_value & can_count
    if not weights[use].sum() > 0:
        raise InvalidProblem("no row has a value that can be read: look at the columns chosen above")
    if secret is not None:
        space, counts, note = _numbers(values[use], weights[use], table.column_names[secret])
    else:
        space, counts, note = _categories(labels[use].tolist(), weights[use].tolist())
    bad = [(int(row), why) for row in np.flatnonzero(wanted & ~has_value)[:MOST_BAD_ROWS]]
    bad += [(int(row), "no count") for row in np.flatnonzero(wanted & has_value & ~can_count)[:MOST_BAD_ROWS]]
    left_out = {why: int((wanted & ~has_value).sum()), "no count": int((wanted & has_value & ~can_count).sum())}
    return {
        "tables": {"space": space, "prior": {"counts": counts}},
        "people": people,
        "rows": int(wanted.sum()),
        "left_out": {reason: number for reason, number in left_out.items() if number},
        "note": note,
        "bad": _bad_rows(stored, table, bad),
    }


def _bad_rows(stored: StoredTable, table: Any, bad: Sequence[tuple[int, str]]) -> list[Json]:
    """The first bad rows as they are in the file, for the page of whoever chose it."""
    first = sorted(dict(reversed(bad)).items())[:MOST_BAD_ROWS]
    lines = stored.lines([row for row, _ in first])
    return [
        {"line": line, "cells": _shown([_texts(column.slice(row, 1))[0] for column in table.columns]), "reason": reason}
        for line, (row, reason) in zip(lines, first, strict=True)
    ]


def _numbers(values: FloatArray, weights: FloatArray, name: str) -> tuple[Json, list[float], str]:
    """A range of numbers that holds nearly all values, with the weight of those nearest to each."""
    low, high = float(values.min()), float(values.max())
    inner_low, inner_high = (float(each) for each in np.quantile(values, (0.01, 0.99), method="inverted_cdf"))
    reach = FAR_OUT * (inner_high - inner_low)
    is_near = (values >= inner_low - reach) & (values <= inner_high + reach)
    note = ""
    if reach and not is_near.all():
        low, high = float(values[is_near].min()), float(values[is_near].max())
        note = f"{int((~is_near).sum())} far-off values are not in the range, and count as its ends."
    step = _step(high - low, whole=bool((values == np.round(values)).all()))
    first, last = floor(low / step + 1e-9), -floor(-high / step + 1e-9)
    if first == last:
        raise InvalidProblem("all rows have the same number: there is nothing to hide")
    numbers = [_plain(step * index) for index in range(first, last + 1)]
    nearest = np.clip(np.rint(values / step).astype(np.int64) - first, 0, last - first)
    counts = np.bincount(nearest, weights, last - first + 1)
    if step != 1:
        note = f"In steps of {_plain(step):g}; other numbers count as the nearest. {note}".strip()
    unit = "years" if Column(name, (), 0, 0).is_years else ""
    return {"kind": "numbers", "values": numbers, "unit": unit}, counts.tolist(), note


def _step(span: float, *, whole: bool) -> float:
    """1 where that makes few enough numbers; else the least of 1, 2 and 5 times a power of ten that does."""
    if whole and span <= MOST_NUMBERS:
        return 1.0
    if span == 0:
        return 1.0
    power = 10.0 ** (floor(log10(span / MOST_NUMBERS)))
    least = next(each for each in (1, 2, 5, 10) if span / (each * power) <= MOST_NUMBERS - 2)
    return max(least * power, 1.0) if whole else least * power


def _plain(number: float) -> float | int:
    """A number without the digits of its rounding, whole where it can be."""
    rounded = float(f"{number:.12g}")
    return int(rounded) if rounded.is_integer() else rounded


def _categories(labels: Sequence[str], weights: Sequence[float]) -> tuple[Json, list[float], str]:
    """The most frequent values as categories, the others together; sorted, so that their order tells no frequency."""
    totals: Counter[str] = Counter()
    for label, weight in zip(labels, weights, strict=True):
        totals[label] += weight  # type: ignore[assignment]  # counts may be weights
    if len(totals) < 2:
        raise InvalidProblem("all rows have the same value: there is nothing to hide")
    ordered, note = sorted(totals.items()), ""
    if len(totals) > MOST_LABELS:
        commonest = totals.most_common(MOST_LABELS - 1)
        note = f"The {MOST_LABELS - 1} commonest of {len(totals)} values; the rarer ones count together as “{OTHER}”."
        ordered = [*sorted(commonest), (OTHER, sum(totals.values()) - sum(weight for _, weight in commonest))]
    return {"kind": "categories", "labels": [label for label, _ in ordered]}, [float(n) for _, n in ordered], note


def _as_text(column: Any) -> Any:
    """A column as texts; null for missing values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if pa.types.is_dictionary(whole.type):
        whole = whole.dictionary_decode()
    try:
        return pc.cast(whole, pa.string())
    except pa.ArrowException:  # lists and the like
        return pa.array([None if value is None else str(value) for value in whole.to_pylist()], pa.string())


def _texts(column: Any) -> list[str]:
    return [text or "" for text in _as_text(column).to_pylist()]


def _by_value(column: Any) -> tuple[list[str], IntArray]:
    """The different texts of a column, the empty one last, and the number of each row's."""
    encoded = _as_text(column).dictionary_encode()
    values = [*encoded.dictionary.to_pylist(), ""]
    codes = encoded.indices.fill_null(len(values) - 1).to_numpy(zero_copy_only=False)
    return values, codes.astype(np.int64)


def numbers_of(column: Any, decimal: Decimal) -> FloatArray:
    """The numbers in a column; NaN for what is none, and for missing ones."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)
    values, codes = _by_value(column)
    parsed = [parse_number(value, decimal) for value in values]
    return np.array([np.nan if number is None else number for number in parsed])[codes]


def positions_of(column: Any) -> tuple[FloatArray, FloatArray]:
    """The latitudes and longitudes in a column of both; NaN for what is none."""
    values, codes = _by_value(column)
    pairs = np.array([parse_position(value) or (np.nan, np.nan) for value in values])
    return pairs[codes, 0], pairs[codes, 1]


def is_empty(column: Any) -> Any:
    """Whether each row of a column has no value."""
    values, codes = _by_value(column)
    return np.array([not value.strip() for value in values], dtype=bool)[codes]


def labels_of(column: Any) -> list[str | None]:
    """The texts in a column without spaces around them; None for missing ones."""
    values, codes = _by_value(column)
    stripped = [value.strip() or None for value in values]
    return [stripped[code] for code in codes]
