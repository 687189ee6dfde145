"""The problems of the studio whose secrets are points of an area: tables of a problem document, and the visits."""

from dataclasses import dataclass, field
from functools import cached_property
from math import isqrt, prod
from typing import Self

from privacygames.errors import InvalidProblem
from privacygames.point_document import PointProblemFile
from privacygames.points import PointProblem
from privacygames.spaces import Area, Grid
from privacygames.studio.http_errors import Refused
from privacygames.studio.limits import bytes_of
from privacygames.studio.problem_source import Tables, plain_bounds
from privacygames.traces import Visits

MOST_FINE_CELLS = 4096
"""Largest number of cells in which visits are counted: 150 to 250 m wide in a town, and some hundreds are visited."""

MOST_COUNTED_CELLS = 40_000
"""Largest number of cells that a document counts visits in: 200 by 200."""

OUTPUT_KINDS = ("grid", "places")
"""Kinds of spaces that the outputs of an area may be."""

MOST_PLACES = 5000
"""Largest number of points of a prior: a picture shows no more, and a design takes seconds."""


@dataclass(frozen=True)
class PointProblemSource:
    """A problem for points with its document, and the visits it was counted from where there are some.

    Attributes:
        tables: the problem document.
        problem: the problem it describes.
        area: the area of its secrets.
        bounds: the document's own bounds.
        visits: the visits that the prior was counted from.
        user: whose visits.
        traces: the name under which the visits are stored; empty where they are not.
    """

    tables: Tables
    problem: PointProblem
    area: Area
    bounds: Tables = field(default_factory=dict)
    visits: Visits | None = None
    user: str = ""
    traces: str = ""

    @classmethod
    def validated(
        cls, tables: Tables, *, most: int, visits: Visits | None = None, user: str = "", traces: str = ""
    ) -> Self:
        """A problem that is valid and small enough.

        Args:
            tables: the problem document.
            most: the largest number of outputs.
            visits: the visits that the prior was counted from.
            user: whose visits.
            traces: the name under which the visits are stored.

        Raises:
            InvalidProblem: the document does not describe a problem, or one that the studio does not work on.
            Refused: the problem is larger than it may be here.
        """
        for key in ("adversary", "mesh"):
            if key in tables:
                raise InvalidProblem(f"[{key}] is not read here for points: use the command line")
        _require_small_lattices(tables, most)
        file = PointProblemFile(None, tables)
        problem, bounds = file.problem, plain_bounds(file.bounds)
        if not isinstance(problem.region, Area):
            raise InvalidProblem("points of an interval are not designed for here: use the command line, or numbers")
        if len(problem.observables) > most:
            raise _too_large(f"{len(problem.observables)} outputs", most)
        if len(problem.prior) > MOST_PLACES:
            raise _too_large(f"{len(problem.prior)} points", MOST_PLACES)
        return cls(tables, problem, problem.region, bounds, visits, user, traces)

    @cached_property
    def size(self) -> int:
        """Approximate bytes, without the visits."""
        return 4 * self.problem.costs.nbytes + bytes_of(self.tables)

    @cached_property
    def visits_outside(self) -> int:
        """The number of the user's visits that are outside the area, and do not count."""
        if self.visits is None:
            return 0
        of_user = int((self.visits.user == self.visits.users.index(self.user)).sum())
        return of_user - int(sum(self.tables["prior"]["counts"]))

    def document(self, bounds: Tables, shares: dict[str, float | None]) -> Tables:
        """The whole problem document for a design with some bounds; there are no further adversaries."""
        if shares:
            raise InvalidProblem("there are no further adversaries for points here", field="adversaries")
        return {key: value for key, value in self.tables.items() if key != "bounds"} | {"bounds": bounds}


def parse_point_problem(tables: Tables) -> PointProblem:
    """The problem that a document describes; it names no files."""
    return PointProblemFile(None, tables).problem


def point_tables_from_visits(
    visits: Visits, user: str, columns: int, rows: int, *, box: tuple[float, float, float, float] | None = None
) -> Tables:
    """The problem of one user: their visits, counted in fine cells, and outputs at the centres of coarse ones."""
    area = box or visits.public_box(user)
    finer = max(1, isqrt(MOST_FINE_CELLS // (columns * rows)))
    fine = {"columns": finer * columns, "rows": finer * rows}
    counts = visits.counts(Grid.over(area, **fine), user)
    return {
        "space": {"kind": "area", "box": list(area)},
        "prior": {"cells": fine, "counts": counts.tolist()},
        "observables": {"columns": columns, "rows": rows},
        "problem": {"cost": "euclidean", "distance": "euclidean"},
    }


def _require_small_lattices(tables: Tables, most: int) -> None:
    """Refuse lattices of outputs and of counted cells that are too large, before anything is built of them."""
    outputs, prior = tables.get("observables"), tables.get("prior")
    if isinstance(outputs, dict) and outputs.get("kind", "grid") not in OUTPUT_KINDS:
        raise InvalidProblem(f"the outputs of an area are points: their kind is one of {', '.join(OUTPUT_KINDS)}")
    cells = prior.get("cells") if isinstance(prior, dict) else None
    for what, table, limit in (("outputs", outputs, most), ("counted cells", cells, MOST_COUNTED_CELLS)):
        sides = [table.get(key, 1) for key in ("columns", "rows", "points")] if isinstance(table, dict) else []
        numbers = [side for side in sides if type(side) is int and side > 0]
        if prod(numbers) > limit:
            raise _too_large(f"{prod(numbers)} {what}", limit)


def _too_large(what: str, most: int) -> Refused:
    return Refused(413, "TOO_LARGE", f"the problem has {what}; at most {most} are designed for here")
