"""The prior of a problem document that comes from a CSV file of visits or counts."""

import csv
import io
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from privacygames.beliefs import Prior
from privacygames.errors import InvalidProblem, UnreadableFile
from privacygames.spaces import Grid, Label, Space, find_label
from privacygames.table_reader import TableReader
from privacygames.text_files import open_regular, resolve_inside

CSV_KEYS = ("label", "count", "x", "y", "outside", "format", "where")
"""The keys that say how the file is read."""

PAIR_KEYS = ("label", "value", "count", "format", "where", "smoothing")
"""The keys that say how a file of secrets and attributes is read."""

Rows = list[tuple[int, dict[str, str]]]
BATCH = 10_000
"""Rows that are in memory at a time."""


def file_at(folder: Path | None, given: TableReader) -> Path:
    """The file a table names, beside the document or below it; none where there is no folder, as from a stranger."""
    if folder is None:
        raise InvalidProblem("csv names a file, and files are not read here: give counts or weights instead")
    return resolve_inside(folder, str(given.string("csv")))


def prior_from_csv(space: Space, given: TableReader, path: Path) -> Prior:
    """The prior estimated from the rows of a file: labels or points, one visit each or counted."""
    by_point = "x" in given or "y" in given
    count = given.string("count", None)
    counts: dict[Label, float] = {}
    empty = True
    for rows in _batches(path, _where(given)):
        empty = False
        labels = _labels_by_point(space, given, rows) if by_point else _labels_by_name(space, given, rows, path)
        for (line, row), label in zip(rows, labels, strict=True):
            times = 1.0 if count is None else _number(row, count, line)
            if label is not None:
                counts[label] = counts.get(label, 0.0) + times
    if empty:
        raise InvalidProblem(f"{path.name} has no rows (that fit where, if given): there are no visits in it")
    return Prior.from_visits(space, counts, smoothing=given.number("smoothing", 0.0))


def pairs_from_csv(space: Space, given: TableReader, path: Path) -> dict[tuple[Label, Label], float]:
    """How often each secret occurs with each value of an attribute, from the rows of a file."""
    column, count = given.string("value", "value"), given.string("count", None)
    found: dict[tuple[Label, Label], float] = {}
    for rows in _batches(path, _where(given)):
        for (line, row), label in zip(rows, _labels_by_name(space, given, rows, path), strict=True):
            pair = (label, _field(row, column))
            found[pair] = found.get(pair, 0.0) + (1.0 if count is None else _number(row, count, line))
    return found


def label_at(space: Space, text: str, place: str) -> Label:
    """Find a label; an error says where it stood, not what it was."""
    try:
        return find_label(space, text)
    except InvalidProblem as error:
        raise InvalidProblem(f"{place}: {error}") from None


def _where(given: TableReader) -> dict[str, object]:
    where = given.value("where", {})
    if not isinstance(where, dict):
        raise given.type_error("where", "a table of columns and the values wanted in them")
    return where


def _labels_by_name(space: Space, given: TableReader, rows: Rows, path: Path) -> list[Label]:
    column, pattern = given.string("label", "label"), given.string("format", "{}")
    texts = [(line, pattern.replace("{}", _field(row, column))) for line, row in rows]
    return [label_at(space, text, f"{path.name}, line {line}") for line, text in texts]


def _labels_by_point(space: Space, given: TableReader, rows: Rows) -> list[Label | None]:
    """The cell of each row's point; None for points outside that are to be dropped."""
    if not isinstance(space, Grid) or not ("x" in given and "y" in given):
        raise InvalidProblem("x and y together name the columns of coordinates, and need a grid")
    x, y = given.string("x"), given.string("y")
    points = [(_number(row, x, line), _number(row, y, line)) for line, row in rows]
    positions = space.locate(points, outside=given.string("outside", "error"))
    return [space.labels[position] if position >= 0 else None for position in positions]


def _batches(path: Path, where: dict[str, object]) -> Iterator[Rows]:
    """The rows that fit, with their line numbers, some thousand at a time: a file is never in memory as a whole."""
    rows = _csv_rows(path, where)
    while batch := list(islice(rows, BATCH)):
        yield batch


def _csv_rows(path: Path, where: dict[str, object]) -> Iterator[tuple[int, dict[str, str]]]:
    with open_regular(path) as raw:
        try:
            text = io.TextIOWrapper(raw, encoding="utf-8-sig", newline="")
            for line, row in enumerate(csv.DictReader(text), start=2):
                if all(_field(row, column) == str(value) for column, value in where.items()):
                    yield line, row
        except OSError as error:
            raise UnreadableFile(path, error.strerror) from None
        except (UnicodeDecodeError, csv.Error) as error:
            raise InvalidProblem(f"{path.name} cannot be read as CSV ({type(error).__name__})") from None


def _field(row: dict[str, str], column: str) -> str:
    if row.get(column) is None:  # what there is instead is not shown: the file need not be what it was taken for
        raise InvalidProblem(
            f"the CSV file has no column {column!r} in every row; its first line must name the columns, and it names "
            f"{sum(key is not None for key in row)}"
        )
    return row[column]


def _number(row: dict[str, str], column: str, line: int) -> float:
    try:
        return float(_field(row, column))
    except ValueError as error:
        if isinstance(error, InvalidProblem):
            raise
        raise InvalidProblem(f"line {line} of the CSV file has no number in column {column!r}") from None
