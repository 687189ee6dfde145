"""The problem file: a small TOML document that says what is secret, what is believed and what is asked.

docs/problem-file.md describes it; every table and key is checked, and an unknown one is an error.
"""

import csv
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from privacygames.errors import InvalidProblem, PrivacyGamesError
from privacygames.prior import Prior
from privacygames.problem import Problem
from privacygames.spaces import Categories, Graph, Grid, Label, Numbers, Sets, Space, Subsets, shown
from privacygames.spaces.grid import MOST_CELLS

Table = dict[str, Any]
Rows = list[tuple[int, dict[str, str]]]

TABLES = ("space", "prior", "problem", "observables", "bounds")
SOURCES = ("uniform", "weights", "counts", "csv")
BOUNDS = ("epsilon", "within", "distortion", "cost_at_most", "worst_case")


def read_problem(path: Path) -> tuple[Problem, Table]:
    """The problem a file describes, and the bounds it asks for."""
    document = _read(path)
    bounds = _known(document.get("bounds", {}), "bounds", BOUNDS)
    measures = _known(document.get("problem", {}), "problem", ("cost", "distance", "distinguishability"))
    with _blaming("space"):
        space = _space(document.get("space"))
    with _blaming("prior"):
        prior = _prior(space, document.get("prior", {}), path.parent)
    with _blaming("observables"):
        observables = _observables(space, document.get("observables"))
    with _blaming("problem"):
        return Problem(prior, observables=observables, **measures), bounds


@contextmanager
def _blaming(table: str) -> Iterator[None]:
    """Whatever a value of the wrong type breaks inside, say which table it is in."""
    try:
        yield
    except PrivacyGamesError:
        raise
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError, MemoryError):
        raise InvalidProblem(f"[{table}] has a value of the wrong type or size; see docs/problem-file.md") from None


def read_prior(path: Path, space: Space) -> Prior:
    """The prior of a problem file, over the space of a mechanism."""
    with _blaming("prior"):
        return _prior(space, _read(path).get("prior", {}), path.parent)


def find_label(space: Space, text: str) -> Label:
    """The label a person typed; the error does not repeat it, since it may be the secret."""
    return space.labels[space.index({shown(label): label for label in space.labels}.get(text, text))]


def _read(path: Path) -> Table:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InvalidProblem(f"{path} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidProblem(f"{path} is not valid TOML: {error}") from None
    return _known(document, path.name, TABLES)


def _known(table: object, name: str, allowed: tuple[str, ...]) -> Table:
    if not isinstance(table, dict):
        raise InvalidProblem(f"[{name}] must be a table of keys and values")
    for key in table:
        if key not in allowed:
            raise InvalidProblem(f"[{name}] has no key {key!r}; it may have {', '.join(allowed)}")
    return table


def _space(table: object) -> Space:
    builders: dict[str, tuple[tuple[str, ...], Callable[[Table], Space]]] = {
        "grid": (("columns", "rows", "width", "height", "box"), _grid),
        "numbers": (("values", "from", "to", "step", "unit"), _numbers),
        "categories": (("labels",), lambda given: Categories(_need(given, "labels"))),
        "sets": (("sets",), lambda given: Sets(_need(given, "sets"))),
        "graph": (
            ("edges", "directed"),
            lambda given: Graph(_need(given, "edges"), directed=given.get("directed", False)),
        ),
        "distances": (
            ("labels", "matrix"),
            lambda given: Space.from_distances(_need(given, "labels"), _need(given, "matrix")),
        ),
    }
    if not isinstance(table, dict) or table.get("kind") not in builders:
        raise InvalidProblem(f"[space] needs a kind: one of {', '.join(builders)}")
    keys, build = builders[table["kind"]]
    for name in ("labels", "sets", "edges", "values", "matrix"):
        if name in table and not isinstance(table[name], list):
            raise InvalidProblem(f"[space] {name} must be a list")
    _flag(table, "directed")
    return build(_known(table, "space", ("kind", *keys)))


def _grid(table: Table) -> Grid:
    columns, rows = _need(table, "columns"), _need(table, "rows")
    if "box" in table:
        if "width" in table or "height" in table:
            raise InvalidProblem("[space] give box, or width and height, not both")
        if not isinstance(table["box"], list) or len(table["box"]) != 4:
            raise InvalidProblem("box must be [west, south, east, north] in degrees")
        return Grid.over(tuple(table["box"]), columns=columns, rows=rows)
    return Grid(columns, rows, table.get("width"), table.get("height"))


def _numbers(table: Table) -> Numbers:
    unit = table.get("unit", "")
    if "values" in table:
        if set(table) & {"from", "to", "step"}:
            raise InvalidProblem("[space] give values, or from, to and step, not both")
        return Numbers(table["values"], unit=unit)
    first, last, step = _need(table, "from"), _need(table, "to"), table.get("step", 1)
    if not all(isinstance(each, int) for each in (first, last, step)) or step < 1:
        raise InvalidProblem("[space] from, to and step must be whole numbers, step at least 1; or give values")
    if (last - first) // step > MOST_CELLS:
        raise InvalidProblem(f"[space] has more than {MOST_CELLS} numbers")
    return Numbers(range(first, last + 1, step), unit=unit)


def _observables(space: Space, table: object) -> Space | None:
    if table is None:
        return None
    given = _known(table, "observables", ("block", "interval", "subsets", "at_most", "reading"))
    reading = given.get("reading", "mean")
    kinds = [key for key in given if key != "reading"]
    if kinds == ["block"] and isinstance(space, Grid):
        columns, rows = given["block"]
        return space.blocks(columns, rows, reading=reading)
    if kinds == ["interval"] and isinstance(space, Numbers):
        return space.intervals(given["interval"], reading=reading)
    if kinds == ["subsets"]:
        return Subsets(space, given["subsets"], reading=reading)
    if kinds == ["at_most"]:
        return Subsets.all(space, at_most=given["at_most"], reading=reading)
    raise InvalidProblem(
        "[observables] needs one of: block = [columns, rows] (grids), interval = length (numbers), "
        "subsets = [[labels], …], at_most = members"
    )


def _prior(space: Space, table: object, folder: Path) -> Prior:
    keys = (*SOURCES, "label", "count", "x", "y", "outside", "format", "where", "smoothing")
    given = _known(table, "prior", keys)
    _flag(given, "uniform")
    sources = [key for key in SOURCES if given.get(key, False) is not False]
    if len(sources) != 1:
        raise InvalidProblem(
            "[prior] needs exactly one of: uniform = true, weights = […], counts = {…} or […], csv = …"
        )
    only_csv = [key for key in given if key not in (*SOURCES, "smoothing")]
    if only_csv and sources != ["csv"]:
        raise InvalidProblem(f"[prior] {only_csv[0]} goes with csv only")
    smoothing = given.get("smoothing", 0.0)
    if smoothing and sources[0] in ("uniform", "weights"):
        raise InvalidProblem("[prior] smoothing goes with counts or csv")
    match sources[0]:
        case "csv":
            return _prior_from_csv(space, given, folder / given["csv"])
        case "weights":
            return Prior(space, given["weights"])
        case "uniform":
            return Prior.uniform(space)
    counts = given["counts"]
    if isinstance(counts, dict):
        labels = [_at(find_label, space, key, f"[prior] counts, entry {at}") for at, key in enumerate(counts, start=1)]
        return Prior.from_visits(space, dict(zip(labels, counts.values(), strict=True)), smoothing=smoothing)
    return Prior.from_counts(space, counts, smoothing=smoothing)


def _at(find: Callable[[Space, str], Label], space: Space, text: str, place: str) -> Label:
    """Find a label; an error says where it stood, not what it was."""
    try:
        return find(space, text)
    except InvalidProblem as error:
        raise InvalidProblem(f"{place}: {error}") from None


def _flag(table: Table, key: str) -> None:
    if not isinstance(table.get(key, False), bool):
        raise InvalidProblem(f"{key} must be true or false")


def _prior_from_csv(space: Space, given: Table, path: Path) -> Prior:
    rows = list(_csv_rows(path, given.get("where", {})))
    if not rows:
        raise InvalidProblem(f"{path.name} has no rows (that fit where, if given): there are no visits in it")
    labels = (
        _labels_by_point(space, given, rows)
        if "x" in given or "y" in given
        else _labels_by_name(space, given, rows, path)
    )
    counts: dict[Label, float] = {}
    for (line, row), label in zip(rows, labels, strict=True):
        if label is not None:
            count = _number(row, given["count"], line) if "count" in given else 1.0
            counts[label] = counts.get(label, 0.0) + count
    return Prior.from_visits(space, counts, smoothing=given.get("smoothing", 0.0))


def _labels_by_name(space: Space, given: Table, rows: Rows, path: Path) -> list[Label | None]:
    column, pattern = given.get("label", "label"), given.get("format", "{}")
    texts = [(line, pattern.replace("{}", _field(row, column))) for line, row in rows]
    return [_at(find_label, space, text, f"{path.name}, line {line}") for line, text in texts]


def _labels_by_point(space: Space, given: Table, rows: Rows) -> list[Label | None]:
    if not isinstance(space, Grid) or not ("x" in given and "y" in given):
        raise InvalidProblem("[prior] x and y together name the columns of coordinates, and need a grid")
    outside = given.get("outside", "error")
    if outside not in ("error", "drop"):
        raise InvalidProblem('[prior] outside must be "error" or "drop"')
    points = [(_number(row, given["x"], line), _number(row, given["y"], line)) for line, row in rows]
    positions = space.locate(points)
    if outside == "error" and (positions < 0).any():
        raise InvalidProblem(
            f"{int((positions < 0).sum())} of {len(rows)} points in the CSV file lie outside the grid; widen it, or "
            'say outside = "drop" to leave them out'
        )
    return [space.labels[position] if position >= 0 else None for position in positions]


def _csv_rows(path: Path, where: dict[str, object]) -> Iterator[tuple[int, dict[str, str]]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            for line, row in enumerate(csv.DictReader(file), start=2):
                if all(_field(row, column) == str(value) for column, value in where.items()):
                    yield line, row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidProblem(f"{path.name} cannot be read as CSV ({type(error).__name__})") from None


def _field(row: dict[str, str], column: str) -> str:
    if row.get(column) is None:
        known = ", ".join(key for key in row if key is not None)
        raise InvalidProblem(f"the CSV file has no column {column!r}; it has {known}")
    return row[column]


def _number(row: dict[str, str], column: str, line: int) -> float:
    try:
        return float(_field(row, column))
    except ValueError as error:
        if isinstance(error, InvalidProblem):
            raise
        raise InvalidProblem(f"line {line} of the CSV file has no number in column {column!r}") from None


def _need(table: Table, key: str) -> Any:
    if key not in table:
        raise InvalidProblem(f"[space] needs {key!r}")
    return table[key]
