"""The problems that the studio works on: tables of a problem document, wherever they come from."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import Any, Self

import numpy as np

from privacygames.beliefs import Mobility
from privacygames.errors import Field, InvalidProblem, TooLarge
from privacygames.problem import Problem, max_distortion, parse_adversaries, parse_problem
from privacygames.spaces import Grid, Label, Numbers, Space
from privacygames.studio.http_errors import Refused
from privacygames.studio.limits import bytes_of
from privacygames.text_files import parse_toml
from privacygames.traces import Visits, synthetic

Tables = dict[str, Any]
"""The tables of a problem document."""

SYNTHETIC_DAYS = 28
HOURS = 24
SECONDS_OF_HOUR = 3600

EVIDENCE_STRENGTH = 20.0
"""How many times likelier the likeliest secrets become for an adversary with evidence of them."""

LIKELIEST = 2
"""How many secrets that evidence is about: home and work."""

GUARANTEE_KEYS = ("distortion", "share")
"""Keys of an ``[[adversary]]`` table that are a guarantee, rather than part of the adversary."""


@dataclass(frozen=True)
class AdversaryPreset:
    """An adversary that the page lists to be ticked.

    Attributes:
        key: their name in requests.
        name: what the page calls them.
        about: what they know or want, in words.
        table: the ``[[adversary]]`` table, without a guarantee.
        possible: the largest error that can be guaranteed against them.
        guarantee: the problem file's guarantee, a distortion or a share; empty where it has none.
    """

    key: str
    name: str
    about: str
    table: Tables
    possible: float
    guarantee: Tables = field(default_factory=dict)


@dataclass(frozen=True)
class ProblemSource:
    """A problem with its document, and the visits it was counted from where there are some.

    Attributes:
        tables: the problem document.
        problem: the problem it describes.
        bounds: the document's own bounds.
        visits: the visits that the prior was counted from.
        user: whose visits.
        traces: the name under which the visits are stored; empty where they are not.
    """

    tables: Tables
    problem: Problem
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
            most: the largest number of secrets, and of outputs.
            visits: the visits that the prior was counted from.
            user: whose visits.
            traces: the name under which the visits are stored.

        Raises:
            InvalidProblem: the document does not describe a problem.
            Refused: the problem is larger than it may be here.
        """
        try:
            problem, _ = parse_problem(tables, most=most)
        except TooLarge as error:
            raise Refused(413, "TOO_LARGE", f"{error}: use the command line, or a coarser problem") from None
        return cls(tables, problem, plain_bounds(tables.get("bounds", {})), visits, user, traces)

    @cached_property
    def size(self) -> int:
        """Approximate bytes, without the visits."""
        problem = self.problem
        matrices = (problem.prior.probabilities, problem.cost, problem.distance, problem.distinguishability)
        return sum(matrix.nbytes for matrix in matrices) + bytes_of(self.tables)

    @cached_property
    def visits_outside(self) -> int:
        """The number of the user's visits that are outside the grid, and do not count."""
        if self.visits is None or not isinstance(self.problem.space, Grid):
            return 0
        of_user = int((self.visits.user == self.visits.users.index(self.user)).sum())
        return of_user - int(self.visits.counts(self.problem.space, self.user).sum())

    @cached_property
    def presets(self) -> tuple[AdversaryPreset, ...]:
        """The adversaries that can be ticked."""
        return tuple(_presets(self.problem, self.tables.get("adversary", [])))

    def document(self, bounds: Tables, shares: dict[str, float | None]) -> Tables:
        """The whole problem document for a design.

        Args:
            bounds: its bounds.
            shares: the adversaries to guarantee something against, by key: which share of the largest possible error,
                or None for the problem file's own guarantee.
        """
        known = {preset.key: preset for preset in self.presets}
        unknown = sorted(set(shares) - set(known))
        if unknown:
            message = f"there is no such adversary here; there are: {', '.join(known) or 'none'}"
            raise InvalidProblem(message, field="adversaries")
        if any(share is None and not known[key].guarantee for key, share in shares.items()):
            message = "the problem file guarantees nothing against that adversary: give a share from 0 to 1"
            raise InvalidProblem(message, field="adversaries")
        adversaries = [
            known[key].table | (known[key].guarantee if share is None else {"share": share})
            for key, share in shares.items()
        ]
        tables = {key: value for key, value in self.tables.items() if key not in ("bounds", "adversary")}
        return tables | {"bounds": bounds} | ({"adversary": adversaries} if adversaries else {})

    @cached_property
    def typical_day(self) -> list[Label] | None:
        """The most frequent cell of each hour of the day; None where no visits are known."""
        if self.visits is None or not self.visits.has_times or not isinstance(self.problem.space, Grid):
            return None
        cells, times = self.visits.trace(self.problem.space, self.user)
        hours = times // SECONDS_OF_HOUR % HOURS
        likeliest = int(self.problem.prior.probabilities.argmax())
        day: list[Label] = []
        for hour in range(HOURS):
            visited = cells[hours == hour]
            cell = int(np.bincount(visited).argmax()) if len(visited) else likeliest
            day.append(self.problem.space.labels[cell])
        return day

    def mobility(self, space: Space) -> Mobility:
        """How the secret moves from one hour to the next; not at all where no visits are known."""
        if self.visits is None or not self.visits.has_times or not isinstance(space, Grid):
            return Mobility.still(space)
        cells, times = self.visits.trace(space, self.user)
        hourly: dict[int, Label] = {}
        for cell, hour in zip(cells.tolist(), (times // SECONDS_OF_HOUR).tolist(), strict=True):
            hourly.setdefault(hour, space.labels[cell])
        first, last = min(hourly), max(hourly)
        return Mobility.from_visits(space, [hourly.get(hour) for hour in range(first, last + 1)])


def tables_from_toml(text: str) -> Tables:
    """The tables of a problem document."""
    return parse_toml(text, "the problem file")


def synthetic_visits(seed: int, person: int) -> tuple[Visits, str]:
    """The visits of the people of a synthetic city, and the name of one of them."""
    visits = synthetic(users=person + 1, days=SYNTHETIC_DAYS, seed=seed)
    return visits, visits.users[person]


def tables_from_visits(
    visits: Visits,
    user: str,
    columns: int,
    rows: int,
    cost: str,
    *,
    box: tuple[float, float, float, float] | None = None,
) -> Tables:
    """The problem of one user: their visits, counted in the cells of a grid over them."""
    grid = Grid.over(box or visits.public_box(user), columns=columns, rows=rows)
    counts = visits.counts(grid, user)
    return {
        "space": {"kind": "grid", "columns": columns, "rows": rows, "box": list(grid.box or ())},
        "prior": {"counts": counts.tolist()},
        "problem": {"cost": cost, "distance": "euclidean"},
    }


def plain_bounds(bounds: Tables) -> Tables:
    """A document's bounds, each a finite number or a truth value, so that no control drops or misreads one."""
    for key, value in bounds.items():
        if key == "worst_case":
            if not isinstance(value, bool):
                raise InvalidProblem(Field(key), " must be true or false", location="[bounds]")
        elif isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
            raise InvalidProblem(Field(key), " must be a number", location="[bounds]")
    return dict(bounds)


def _presets(problem: Problem, in_document: object) -> Iterator[AdversaryPreset]:
    space = problem.space
    if isinstance(in_document, list):
        for number, table in enumerate(in_document):
            yield _preset(problem, f"file-{number + 1}", str(table["name"]), "from the problem file", table)
    if len(space) < 3:
        return
    likeliest = {"strength": EVIDENCE_STRENGTH, "places": min(LIKELIEST, len(space) - 1)}
    if isinstance(space, Grid):
        about = "has evidence that you are at one of your two likeliest places"
        yield _preset(problem, "home", "knows home and work", about, {"sharpened": likeliest})
        halves = _halves(space.centres[:, 0], problem.prior.probabilities)
        side = {"attribute": {"given": halves}, "guesses": ["west", "east"]}
        yield _preset(problem, "side", "wants the side of town", "only asks: east or west?", side)
    elif isinstance(space, Numbers):
        halves = _halves(np.array(space.labels, dtype=float), problem.prior.probabilities)
        half = {"attribute": {"given": halves}, "guesses": ["low", "high"]}
        yield _preset(problem, "half", "wants low or high", "only asks: lower or upper half?", half)
    else:
        about = "has evidence that it is one of the two likeliest"
        yield _preset(problem, "likely", "suspects the commonest", about, {"sharpened": likeliest})


def _halves(values: Any, weights: Any) -> list[list[float]]:
    """For each secret, whether it is in the lower or the upper half of the probability, by a value it has."""
    order = np.argsort(values, kind="stable")
    middle = values[order[int(np.searchsorted(weights[order].cumsum(), 0.5))]]
    upper = values > middle if (values > middle).any() else values >= middle
    return [[0.0, 1.0] if high else [1.0, 0.0] for high in upper.tolist()]


def _preset(problem: Problem, key: str, name: str, about: str, table: Tables) -> AdversaryPreset:
    """The preset of an ``[[adversary]]`` table, with its guarantee as a separate attribute."""
    guarantee = {key: value for key, value in table.items() if key in GUARANTEE_KEYS}
    whole = {"name": name} | {key: value for key, value in table.items() if key not in guarantee}
    adversary = parse_adversaries([whole], problem, None)[0].adversary
    return AdversaryPreset(key, name, about, whole, max_distortion(problem, adversary), guarantee)
