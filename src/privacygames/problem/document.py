"""The problem document: a small TOML file with the space, the prior, the measures, the bounds and the adversaries.

Secrets are cells or labels here; ``point_document.py`` has the document whose secrets are points.
docs/reference/problem-file.md describes it; every table and key is checked, and an unknown one is an error.
"""

from functools import cached_property
from pathlib import Path
from typing import Any

from privacygames.beliefs import Prior
from privacygames.bound_fields import BOUND_FIELDS
from privacygames.errors import InvalidProblem
from privacygames.problem.adversary import Adversary
from privacygames.problem.adversary_document import DocumentAdversary, distortion_bounds, parse_adversaries
from privacygames.problem.prior_document import prior_from
from privacygames.problem.problem import Problem
from privacygames.spaces import (
    REGION_KINDS,
    Grid,
    LabelBudget,
    Numbers,
    Space,
    Subsets,
    decode_space,
    error_context,
    refuse_region,
)
from privacygames.table_reader import TableReader
from privacygames.text_files import read_toml

TABLES = ("space", "prior", "problem", "observables", "bounds", "adversary")
MEASURES = ("cost", "distance", "distinguishability")


class ProblemFile:
    """A problem file whose secrets are cells or labels, parsed once.

    Args:
        path: the TOML file.
        tables: its tables, where they were parsed already.

    Attributes:
        path: the TOML file.

    Raises:
        InvalidProblem: the file is not that of a problem; properties raise it for the tables that they read.

    >>> from pathlib import Path
    >>> tables = ["[space]", 'kind = "numbers"', "from = 1", "to = 3", "[prior]", "uniform = true", "[bounds]"]
    >>> _ = Path("ages.toml").write_text(chr(10).join([*tables, "epsilon = 0.5"]))
    >>> file = ProblemFile(Path("ages.toml"))
    >>> len(file.problem.space), file.bounds, file.adversaries
    (3, {'epsilon': 0.5}, [])
    """

    def __init__(self, path: Path, tables: dict[str, Any] | None = None) -> None:
        self.path = path
        given = read_toml(path) if tables is None else tables
        refuse_region(given.get("space"), name=f"{path.name}, [space]")  # else its tables are mistakes
        self._document = TableReader(given, path.name, TABLES)

    @property
    def problem(self) -> Problem:
        """The problem that the file describes."""
        return self._content[0]

    @property
    def bounds(self) -> dict[str, Any]:
        """The bounds of the file, as arguments of :func:`privacygames.design`."""
        return dict(self._content[1])

    @property
    def adversaries(self) -> list[Adversary]:
        """The adversaries of the file, with a guarantee or without."""
        return [named.adversary for named in self._content[2]]

    def adversaries_for(self, problem: Problem) -> list[Adversary]:
        """The adversaries of the file, about the secrets of another problem."""
        tables = self._document.value("adversary", [])
        return [named.adversary for named in parse_adversaries(tables, problem, self.path.parent)]

    def prior_over(self, space: Space) -> Prior:
        """The prior of the file, over the space of another problem."""
        with error_context("[prior]"):
            return prior_from(space, self._document.value("prior", {}), self.path.parent)

    @cached_property
    def _content(self) -> "_Content":
        return _described(self._document, self.path.parent)


def parse_problem(tables: object, *, most: int | None = None) -> tuple[Problem, dict[str, Any]]:
    """The problem and the bounds of tables from elsewhere, which may name no files.

    Args:
        tables: the tables of a problem document.
        most: how many secrets, observables, guesses and attribute values there may be; larger problems are refused
            before anything of that size is built.

    Raises:
        InvalidProblem: the tables are not those of a problem.
        TooLarge: the problem is larger than it may be.
    """
    problem, bounds, _ = _described(TableReader(tables, "the problem", TABLES), None, most)
    return problem, bounds


_Content = tuple[Problem, dict[str, Any], list[DocumentAdversary]]
"""The problem, the arguments of a design, and the adversaries of a document."""


def _described(document: TableReader, folder: Path | None, most: int | None = None) -> _Content:
    bounds = TableReader(document.value("bounds", {}), "[bounds]", tuple(BOUND_FIELDS))
    measures = TableReader(document.value("problem", {}), "[problem]", MEASURES)
    allowance = LabelBudget(most=most)
    others = () if folder is None else REGION_KINDS  # read by open_problem
    space = decode_space(document.value("space", None), name="[space]", allowance=allowance, others=others)
    with error_context("[prior]"):
        prior = prior_from(space, document.value("prior", {}), folder)
    with error_context("[observables]"):
        observables = _observables(space, document.value("observables", None), allowance)
    with error_context("[problem]"):
        problem = Problem(prior, observables=observables, **measures.table)
    named = parse_adversaries(document.value("adversary", []), problem, folder, most=most)
    return problem, bounds.table | distortion_bounds(bounds.table, named), named


def _observables(space: Space, table: object, allowance: LabelBudget) -> Space | None:
    if table is None:
        return None
    most = allowance.most
    if isinstance(table, dict) and "kind" in table:
        return decode_space(table, name="[observables]", secrets=space, allowance=allowance)
    given = TableReader(table, "[observables]", ("block", "interval", "subsets", "at_most", "reading"))
    reading = given.string("reading", "mean")
    kinds = [key for key in given.table if key != "reading"]
    if kinds == ["block"] and isinstance(space, Grid):
        columns, rows = given.array("block")
        return space.blocks(columns, rows, aggregation=reading)
    if kinds == ["interval"] and isinstance(space, Numbers):
        return space.intervals(given.integer("interval"), aggregation=reading)
    if kinds == ["subsets"]:
        return Subsets(space, given.array("subsets", max_length=most), aggregation=reading)
    if kinds == ["at_most"]:
        return Subsets.all(space, at_most=given.integer("at_most"), aggregation=reading, most=most)
    raise InvalidProblem(
        "needs one of: block = [columns, rows] (grids), interval = length (numbers), "
        "subsets = [[labels], …], at_most = members; or the kind of another space"
    )
