"""The problem document: a small TOML file with the space, the prior, the measures, the bounds and the adversaries.

docs/reference/problem-file.md describes it; every table and key is checked, and an unknown one is an error.
"""

from functools import cached_property
from pathlib import Path
from typing import Any

from privacygames.beliefs import Prior
from privacygames.bound_fields import BOUND_FIELDS
from privacygames.errors import InvalidProblem
from privacygames.problem.adversary import Adversary
from privacygames.problem.adversary_document import DocumentAdversary, parse_adversaries
from privacygames.problem.bounds import PROBLEM_ADVERSARY
from privacygames.problem.prior_document import prior_from
from privacygames.problem.problem import Problem
from privacygames.spaces import Grid, LabelBudget, Numbers, Space, Subsets, decode_space, error_context
from privacygames.table_reader import TableReader
from privacygames.text_files import read_toml

TABLES = ("space", "prior", "problem", "observables", "bounds", "adversary")
MEASURES = ("cost", "distance", "distinguishability")


class ProblemFile:
    """A problem file, parsed once.

    Args:
        path: the TOML file.

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

    def __init__(self, path: Path) -> None:
        self.path = path
        self._document = TableReader(read_toml(path), path.name, TABLES)

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
        return [named.adversary for named in _adversaries(self._document, problem, self.path.parent)]

    def prior_over(self, space: Space) -> Prior:
        """The prior of the file, over the space of another problem."""
        with error_context("[prior]"):
            return prior_from(space, self._document.value("prior", {}), self.path.parent)

    @cached_property
    def _content(self) -> "_Content":
        return _described(self._document, self.path.parent)


def read_problem(path: Path) -> tuple[Problem, dict[str, Any]]:
    r"""The problem of a file, and its bounds, as keyword arguments of :func:`privacygames.design`.

    >>> space = ["[space]", 'kind = "numbers"', "from = 20", "to = 40"]
    >>> lines = [*space, "[prior]", "uniform = true", "[bounds]", "epsilon = 1"]
    >>> _ = Path("ages.toml").write_text("\n".join(lines))
    >>> problem, bounds = pg.read_problem(Path("ages.toml"))
    >>> len(problem.space), bounds["epsilon"]
    (21, 1)
    """
    file = ProblemFile(path)
    return file.problem, file.bounds


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
    space = decode_space(document.value("space", None), name="[space]", allowance=allowance)
    with error_context("[prior]"):
        prior = prior_from(space, document.value("prior", {}), folder)
    with error_context("[observables]"):
        observables = _observables(space, document.value("observables", None), allowance)
    with error_context("[problem]"):
        problem = Problem(prior, observables=observables, **measures.table)
    named = _adversaries(document, problem, folder, most)
    return problem, bounds.table | _distortion(bounds.table, named), named


def _adversaries(
    document: TableReader, problem: Problem, folder: Path | None, most: int | None = None
) -> list[DocumentAdversary]:
    adversaries = parse_adversaries(document.value("adversary", []), problem, folder, most=most)
    names = [each.adversary.name for each in adversaries]
    for name in names:
        if names.count(name) > 1:
            raise InvalidProblem(f"[[adversary]] two are called {name!r}; names tell them apart")
    return adversaries


def _distortion(bounds: dict[str, Any], named: list[DocumentAdversary]) -> dict[str, Any]:
    """The distortion by adversary, where it is about more than the problem's own; else nothing."""
    guaranteed = {each.adversary: each.distortion for each in named if each.distortion is not None}
    maximised = [each.adversary for each in named if each.maximised]
    if not guaranteed and not maximised:
        return {}
    if len(maximised) > 1:
        raise InvalidProblem('[[adversary]] the distortion of two is "most"; only that of one can be maximised')
    own = {PROBLEM_ADVERSARY: bounds["distortion"]} if "distortion" in bounds else {}
    if maximised or "cost_at_most" in bounds:
        return {"distortion": {(maximised or [PROBLEM_ADVERSARY])[0]: None} | own | guaranteed}
    return {"distortion": own | guaranteed}


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
