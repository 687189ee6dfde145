"""Priors and joint counts that a problem document reads from a CSV file of visits or counts."""

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from privacygames.beliefs import Prior
from privacygames.csv_reader import CsvFile
from privacygames.errors import InvalidProblem
from privacygames.spaces import Grid, Label, Space, find_label
from privacygames.table_reader import TableReader
from privacygames.text_files import MAX_BYTES, resolve_inside

CSV_KEYS = ("label", "count", "x", "y", "outside", "format", "where")
"""Keys of the document that describe the file of a prior."""

PAIR_KEYS = ("label", "value", "count", "format", "where", "smoothing")
"""Keys of the document that describe a file of secrets and attributes."""

Rows = list[tuple[int, list[str]]]
"""Rows of a file, each with its line number."""

BATCH = 10_000
"""Number of rows held in memory at a time: a few megabytes."""


def csv_path(folder: Path | None, keys: TableReader) -> Path:
    """The path of the CSV file that a table of the document names, in the document's folder or below it.

    Without a folder, as for untrusted documents, no file is read.
    """
    if folder is None:
        raise InvalidProblem("csv names a file, and files are not read here: give counts or weights instead")
    return resolve_inside(folder, str(keys.string("csv")))


def prior_from_csv(space: Space, keys: TableReader, path: Path) -> Prior:
    """The prior estimated from the rows of a file: labels or points, each row one visit or a count of visits."""
    table = CountTable(path, keys)
    by_point = "x" in keys or "y" in keys
    counts: dict[Label, float] = {}
    empty = True
    for rows in table.batches():
        empty = False
        labels = table.labels_by_point(space, rows) if by_point else table.labels_by_name(space, rows)
        for row, label in zip(rows, labels, strict=True):
            count = table.count(row)
            if label is not None:
                counts[label] = counts.get(label, 0.0) + count
    if empty:
        raise InvalidProblem(f"{path.name} has no rows (or none that satisfy where): there are no visits in it")
    return Prior.from_visits(space, counts, smoothing=keys.number("smoothing", 0.0))


def pairs_from_csv(space: Space, keys: TableReader, path: Path) -> dict[tuple[Label, Label], float]:
    """The joint counts of secrets and values of an attribute, from the rows of a file."""
    table = CountTable(path, keys)
    value = table.file.column(keys.string("value", "value"))
    counts: dict[tuple[Label, Label], float] = {}
    for rows in table.batches():
        for row, label in zip(rows, table.labels_by_name(space, rows), strict=True):
            pair = (label, row[1][value])
            counts[pair] = counts.get(pair, 0.0) + table.count(row)
    return counts


def parse_label(space: Space, text: str, location: str) -> Label:
    """The label that a text names; the error for an unknown one states its location but not the text."""
    try:
        return find_label(space, text)
    except InvalidProblem as error:
        raise InvalidProblem(f"{location}: {error}") from None


class CountTable:
    """A CSV file of labels or points with counts, read as the document describes.

    Args:
        path: the file.
        keys: the table of the document with the names of the columns.
    """

    def __init__(self, path: Path, keys: TableReader) -> None:
        self.file = CsvFile(path, max_bytes=MAX_BYTES, max_expanded=MAX_BYTES)
        self._keys = keys
        self._count_name = keys.string("count", None)
        self._count_column = None if self._count_name is None else self.file.column(self._count_name)

    def batches(self) -> Iterator[Rows]:
        """The rows that ``where`` selects, with their line numbers, in batches."""
        required = [(self.file.column(name), str(value)) for name, value in self._where().items()]
        rows = (row for row in self.file.rows() if all(row[1][column] == value for column, value in required))
        while batch := list(islice(rows, BATCH)):
            yield batch

    def count(self, row: tuple[int, list[str]]) -> float:
        """The number of visits in a row."""
        return 1.0 if self._count_column is None else self._number(row, self._count_column, str(self._count_name))

    def labels_by_name(self, space: Space, rows: Rows) -> list[Label]:
        """The label that each row names."""
        column, pattern = self.file.column(self._keys.string("label", "label")), self._keys.string("format", "{}")
        labels: dict[str, Label] = {}
        for line, cells in rows:
            if cells[column] not in labels:
                text = pattern.replace("{}", cells[column])
                labels[cells[column]] = parse_label(space, text, f"{self.file.path.name}, line {line}")
        return [labels[cells[column]] for _, cells in rows]

    def labels_by_point(self, space: Space, rows: Rows) -> list[Label | None]:
        """The cell of each row's point; None for points outside the grid that are dropped."""
        if not isinstance(space, Grid) or not ("x" in self._keys and "y" in self._keys):
            raise InvalidProblem("x and y name the columns of coordinates; both are needed, and a grid")
        points = self.numbers(rows, ("x", "y"))
        positions = space.locate(points, outside=self._keys.string("outside", "error"))
        return [space.labels[position] if position >= 0 else None for position in positions]

    def numbers(self, rows: Rows, keys: tuple[str, ...]) -> list[tuple[float, ...]]:
        """The numbers of each row in the columns that these keys of the document name."""
        names = [self._keys.string(key) for key in keys]
        columns = [(self.file.column(name), name) for name in names]
        return [tuple(self._number(row, column, name) for column, name in columns) for row in rows]

    def _where(self) -> Mapping[str, object]:
        where = self._keys.value("where", {})
        if not isinstance(where, dict):
            raise self._keys.type_error("where", "a table of columns and their required values")
        return where

    def _number(self, row: tuple[int, list[str]], column: int, name: str) -> float:
        try:
            return float(row[1][column])
        except ValueError:
            raise InvalidProblem(f"{self.file.path.name}, line {row[0]} has no number in column {name!r}") from None
