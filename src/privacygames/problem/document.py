"""The problem document: a small TOML file that says what is secret, what is believed and what is asked.

docs/reference/problem-file.md describes it; every table and key is checked, and an unknown one is an error.
"""

import tomllib
from pathlib import Path
from typing import Any

from privacygames.beliefs import Prior
from privacygames.errors import InvalidProblem, UnreadableFile
from privacygames.keys import Keys
from privacygames.problem.problem import Problem
from privacygames.problem.visit_table import CSV_KEYS, label_at, prior_from_csv
from privacygames.spaces import Grid, Numbers, Space, Subsets, blaming, space_from

TABLES = ("space", "prior", "problem", "observables", "bounds")
SOURCES = ("uniform", "weights", "counts", "csv")
BOUNDS = ("epsilon", "within", "distortion", "cost_at_most", "worst_case")
MEASURES = ("cost", "distance", "distinguishability")


def read_problem(path: Path) -> tuple[Problem, dict[str, Any]]:
    """The problem a file describes, and the bounds it asks for."""
    document = _read(path)
    bounds = Keys(document.value("bounds", {}), "[bounds]", BOUNDS)
    measures = Keys(document.value("problem", {}), "[problem]", MEASURES)
    space = space_from(document.value("space", None), name="[space]")
    with blaming("[prior]"):
        prior = _prior(space, document.value("prior", {}), path.parent)
    with blaming("[observables]"):
        observables = _observables(space, document.value("observables", None))
    with blaming("[problem]"):
        return Problem(prior, observables=observables, **measures.table), bounds.table


def read_prior(path: Path, space: Space) -> Prior:
    """The prior of a problem file, over the space of a mechanism."""
    document = _read(path)
    with blaming("[prior]"):
        return _prior(space, document.value("prior", {}), path.parent)


def _read(path: Path) -> Keys:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UnreadableFile(path, error.strerror) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidProblem(f"{path} is not valid TOML: {error}") from None
    return Keys(document, path.name, TABLES)


def _observables(space: Space, table: object) -> Space | None:
    if table is None:
        return None
    if isinstance(table, dict) and "kind" in table:
        return space_from(table, name="[observables]", secrets=space)
    given = Keys(table, "[observables]", ("block", "interval", "subsets", "at_most", "reading"))
    reading = given.text("reading", "mean")
    kinds = [key for key in given.table if key != "reading"]
    if kinds == ["block"] and isinstance(space, Grid):
        columns, rows = given.listed("block")
        return space.blocks(columns, rows, reading=reading)
    if kinds == ["interval"] and isinstance(space, Numbers):
        return space.intervals(given.whole("interval"), reading=reading)
    if kinds == ["subsets"]:
        return Subsets(space, given.listed("subsets"), reading=reading)
    if kinds == ["at_most"]:
        return Subsets.all(space, at_most=given.whole("at_most"), reading=reading)
    raise InvalidProblem(
        "needs one of: block = [columns, rows] (grids), interval = length (numbers), "
        "subsets = [[labels], …], at_most = members; or the kind of another space"
    )


def _prior(space: Space, table: object, folder: Path) -> Prior:
    given = Keys(table, "[prior]", (*SOURCES, *CSV_KEYS, "smoothing"))
    given.flag("uniform", False)
    sources = [key for key in SOURCES if given.value(key, False) is not False]
    if len(sources) != 1:
        raise InvalidProblem("needs exactly one of: uniform = true, weights = […], counts = {…} or […], csv = …")
    only_csv = [key for key in given.table if key in CSV_KEYS]
    if only_csv and sources != ["csv"]:
        raise InvalidProblem(f"{only_csv[0]} goes with csv only")
    smoothing = given.number("smoothing", 0.0)
    if smoothing and sources[0] in ("uniform", "weights"):
        raise InvalidProblem("smoothing goes with counts or csv")
    match sources[0]:
        case "csv":
            return prior_from_csv(space, given, folder / given.text("csv"))
        case "weights":
            return Prior(space, given.listed("weights"))
        case "uniform":
            return Prior.uniform(space)
    counts = given.value("counts")
    if isinstance(counts, dict):
        labels = [label_at(space, key, f"counts, entry {at}") for at, key in enumerate(counts, start=1)]
        return Prior.from_visits(space, dict(zip(labels, counts.values(), strict=True)), smoothing=smoothing)
    return Prior.from_counts(space, counts, smoothing=smoothing)
