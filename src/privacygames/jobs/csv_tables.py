"""Tables: rows of plain values by column name, kept as CSV files that any program reads."""

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

Measured = dict[str, Value]
"""What is known of a finished job, by the name of the column; ``"status"`` says how it ended."""


def write_table(path: Path, table: Iterable[Row], columns: tuple[str, ...]) -> None:
    """Write a table with these columns, in this order; the file appears whole or not at all."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_text(row.get(column)) for column in columns] for row in table)
    write_text(path, text.getvalue())


def read_table(path: Path) -> Table:
    """A table as it was written: numbers, truth values and empty fields come back as such."""
    file = CsvFile(path, separator=",")
    names = file.header.names
    return [dict(zip(names, map(_parse_value, cells), strict=True)) for _, cells in file.rows()]


def number(row: Row, column: str) -> float:
    """A number that must be there."""
    value = row[column]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"column {column!r} holds {type(value).__name__}, not a number")
    return float(value)


def where(table: Table, **wanted: Value) -> Table:
    """The rows with these values: ``where(table, mechanism="joint", status="done")``."""
    return [row for row in table if all(row.get(column) == value for column, value in wanted.items())]


def _text(value: Value) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else str(value) if _endless(value) else json.dumps(value)


def _endless(value: Value) -> bool:
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
