"""Tables of plain values by column name, stored as CSV files."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path

from privacygames.atomic_io import write_text
from privacygames.csv_reader import CsvFile

Value = str | int | float | bool | None
Row = Mapping[str, Value]
Table = list[dict[str, Value]]
"""One dict per row, every row with the same columns. None: there is no value (an empty field in the file)."""

Measurements = dict[str, Value]
"""The results of a finished job by column name; ``"status"`` says how it ended."""


def write_table(path: Path, table: Iterable[Row], columns: tuple[str, ...]) -> None:
    """Write a table with these columns, in this order, atomically."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_format_value(row.get(column)) for column in columns] for row in table)
    write_text(path, text.getvalue())


def read_table(path: Path) -> Table:
    """Read a table that :func:`write_table` wrote: numbers, truth values and empty fields keep their types."""
    file = CsvFile(path, separator=",")
    names = file.header.names
    return [dict(zip(names, map(_parse_value, cells), strict=True)) for _, cells in file.rows()]


def number(row: Row, column: str) -> float:
    """The number in a column of a row; anything else is an error."""
    value = row[column]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"column {column!r} holds {type(value).__name__}, not a number")
    return float(value)


def where(table: Table, **values: Value) -> Table:
    """The rows with these values in these columns: ``where(table, mechanism="joint", status="done")``."""
    return [row for row in table if all(row.get(column) == value for column, value in values.items())]


def _format_value(value: Value) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else str(value) if _is_nonfinite(value) else json.dumps(value)


def _is_nonfinite(value: Value) -> bool:
    return isinstance(value, float) and not isfinite(value)


def _parse_value(text: str) -> Value:
    if text in ("", "true", "false"):
        return {"": None, "true": True, "false": False}[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
