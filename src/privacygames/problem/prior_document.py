"""The prior of a problem document: uniform, weights, counts, or a CSV file of visits."""

from pathlib import Path

from privacygames.beliefs import Prior
from privacygames.errors import InvalidProblem
from privacygames.problem.visit_csv import CSV_KEYS, csv_path, parse_label, prior_from_csv
from privacygames.spaces import Space
from privacygames.table_reader import TableReader

SOURCES = ("uniform", "weights", "counts", "csv")


def prior_from(space: Space, table: object, folder: Path | None) -> Prior:
    """The prior that a table describes; files are relative to ``folder``, and refused where that is None."""
    given = TableReader(table, "[prior]", (*SOURCES, *CSV_KEYS, "smoothing"))
    given.boolean("uniform", False)
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
            return prior_from_csv(space, given, csv_path(folder, given))
        case "weights":
            return Prior(space, given.array("weights"))
        case "uniform":
            return Prior.uniform(space)
    counts = given.value("counts")
    if isinstance(counts, dict):
        labels = [parse_label(space, key, f"counts, entry {at}") for at, key in enumerate(counts, start=1)]
        return Prior.from_visits(space, dict(zip(labels, counts.values(), strict=True)), smoothing=smoothing)
    return Prior.from_counts(space, counts, smoothing=smoothing)
