"""What is secret, as the tables of a problem document, wherever it comes from: the one currency of the studio."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np

from privacygames import traces
from privacygames.beliefs import Mobility
from privacygames.errors import InvalidProblem, TooLarge
from privacygames.problem import Problem, max_distortion, parse_adversaries, parse_problem
from privacygames.spaces import Grid, Label, Numbers
from privacygames.studio.http_errors import Refused
from privacygames.studio.memory_use import bytes_of
from privacygames.text_files import parse_toml

Tables = dict[str, Any]
INVENTED_DAYS = 28
HOURS = 24
STRONG, PLACES = 20.0, 2
PROMISES = ("distortion", "share")


@dataclass(frozen=True)
class AdversaryPreset:
    """An adversary to tick: what she is called, in words, as a table of the document, and the most against her.

    ``asked`` is what the problem file promises against her: a distortion or a share; empty where it promises nothing.
    """

    key: str
    name: str
    about: str
    table: Tables
    possible: float
    asked: Tables = field(default_factory=dict)


@dataclass(frozen=True)
class Described:
    """A problem with where it comes from; ``visits`` of ``user``, where there are some, say how a day goes.

    ``source`` is the name under which the visits are kept, where they are.
    """

    tables: Tables
    problem: Problem
    asked: Tables = field(default_factory=dict)
    visits: traces.Visits | None = None
    user: str = ""
    source: str = ""

    @cached_property
    def size(self) -> int:
        """About how many bytes it takes, without the visits."""
        problem = self.problem
        matrices = (problem.prior.probabilities, problem.cost, problem.distance, problem.distinguishability)
        return sum(each.nbytes for each in matrices) + bytes_of(self.tables)

    @cached_property
    def left_out(self) -> int:
        """How many visits of the person are outside the grid, and do not count."""
        if self.visits is None or not isinstance(self.problem.space, Grid):
            return 0
        mine = int((self.visits.user == self.visits.users.index(self.user)).sum())
        return mine - int(self.visits.counts(self.problem.space, self.user).sum())

    @cached_property
    def offers(self) -> tuple[AdversaryPreset, ...]:
        """The adversaries there are to tick."""
        return tuple(_offered(self.problem, self.tables.get("adversary", [])))

    def with_wishes(self, bounds: Tables, shares: dict[str, float | None]) -> Tables:
        """The whole document: the problem, what is asked, and who else is to be kept in the dark by how much."""
        known = {offer.key: offer for offer in self.offers}
        unknown = sorted(set(shares) - set(known))
        if unknown:
            raise InvalidProblem(f"there is no such adversary here; there are: {', '.join(known) or 'none'}")
        if any(share is None and not known[key].asked for key, share in shares.items()):
            raise InvalidProblem("the problem file promises nothing against that adversary: give a share from 0 to 1")
        ticked = [
            known[key].table | (known[key].asked if share is None else {"share": share})
            for key, share in shares.items()
        ]
        whole = {key: value for key, value in self.tables.items() if key not in ("bounds", "adversary")}
        return whole | {"bounds": bounds} | ({"adversary": ticked} if ticked else {})

    @cached_property
    def day(self) -> list[Label] | None:
        """Where a typical day goes: the cell of each hour that is commonest at that hour."""
        if self.visits is None or not isinstance(self.problem.space, Grid):
            return None
        cells, times = self.visits.trace(self.problem.space, self.user)
        hours = times // 3600 % HOURS
        found: list[Label] = []
        for hour in range(HOURS):
            here = cells[hours == hour]
            likely = int(np.bincount(here).argmax()) if len(here) else int(self.problem.prior.probabilities.argmax())
            found.append(self.problem.space.labels[likely])
        return found

    def mobility(self, space: Grid | Any) -> Mobility:
        """How the secret moves from one hour to the next; not at all where nothing is known of that."""
        if self.visits is None:
            return Mobility.still(space)
        cells, times = self.visits.trace(space, self.user)
        hourly: dict[int, Label] = {}
        for cell, time in zip(cells.tolist(), (times // 3600).tolist(), strict=True):
            hourly.setdefault(time, space.labels[cell])
        first, last = min(hourly), max(hourly)
        return Mobility.from_visits(space, [hourly.get(hour) for hour in range(first, last + 1)])


def described(
    tables: Tables, *, most: int, visits: traces.Visits | None = None, user: str = "", source: str = ""
) -> Described:
    """The problem of a document, if it is not too large for this server; that is known before anything is built."""
    try:
        problem, _ = parse_problem(tables, most=most)
    except TooLarge as error:
        raise Refused(413, "TOO_LARGE", f"{error}: use the command line, or a coarser problem") from None
    return Described(tables, problem, _asked(tables.get("bounds", {})), visits, user, source)


def _asked(bounds: Tables) -> Tables:
    """What a document asks for, each a number (or a yes or no), so that no knob drops or misreads one."""
    wrong = [key for key, value in bounds.items() if isinstance(value, bool) != (key == "worst_case")]
    wrong += [key for key, value in bounds.items() if not isinstance(value, int | float)]
    wrong += [key for key, value in bounds.items() if isinstance(value, float) and not isfinite(value)]
    if wrong:
        raise InvalidProblem(
            f"[bounds] {wrong[0]} must be {'true or false' if wrong[0] == 'worst_case' else 'a number'}"
        )
    return dict(bounds)


def from_toml(text: str) -> Tables:
    """The tables of a problem document."""
    return parse_toml(text, "the problem file")


def invented(seed: int, person: int, columns: int, rows: int, cost: str) -> tuple[Tables, traces.Visits, str]:
    """An invented person in an invented city."""
    visits = traces.synthetic(users=person + 1, days=INVENTED_DAYS, seed=seed)
    user = visits.users[person]
    return positions(visits, user, columns, rows, cost, box=traces.SYNTHETIC_WINDOW), visits, user


def positions(
    visits: traces.Visits,
    user: str,
    columns: int,
    rows: int,
    cost: str,
    *,
    box: tuple[float, float, float, float] | None = None,
) -> Tables:
    """Somebody's visits, counted in the cells of a grid over them."""
    grid = Grid.over(box or visits.public_box(user), columns=columns, rows=rows)
    counts = visits.counts(grid, user)
    return {
        "space": {"kind": "grid", "columns": columns, "rows": rows, "box": list(grid.box or ())},
        "prior": {"counts": counts.tolist()},
        "problem": {"cost": cost, "distance": "euclidean"},
    }


def _offered(problem: Problem, own: object) -> Iterator[AdversaryPreset]:
    space = problem.space
    if isinstance(own, list):
        for number, table in enumerate(own):
            yield _offer(problem, f"file-{number + 1}", str(table["name"]), "from the problem file", table)
    if len(space) < 3:
        return
    likely = {"strength": STRONG, "places": min(PLACES, len(space) - 1)}
    if isinstance(space, Grid):
        about = "has evidence that you are at one of your two likeliest places"
        yield _offer(problem, "home", "knows home and work", about, {"sharpened": likely})
        halves = _halves(space.centres[:, 0], problem.prior.probabilities)
        asks = {"attribute": {"given": halves}, "guesses": ["west", "east"]}
        yield _offer(problem, "side", "wants the side of town", "only asks: east or west?", asks)
    elif isinstance(space, Numbers):
        halves = _halves(np.array(space.labels, dtype=float), problem.prior.probabilities)
        asks = {"attribute": {"given": halves}, "guesses": ["low", "high"]}
        yield _offer(problem, "half", "wants low or high", "only asks: lower or upper half?", asks)
    else:
        about = "has evidence that it is one of the two likeliest"
        yield _offer(problem, "likely", "suspects the commonest", about, {"sharpened": likely})


def _halves(values: Any, weights: Any) -> list[list[float]]:
    order = np.argsort(values, kind="stable")
    middle = values[order[int(np.searchsorted(weights[order].cumsum(), 0.5))]]
    upper = values > middle if (values > middle).any() else values >= middle
    return [[0.0, 1.0] if high else [1.0, 0.0] for high in upper.tolist()]


def _offer(problem: Problem, key: str, name: str, about: str, table: Tables) -> AdversaryPreset:
    """What a table of the document describes; what it promises is kept apart."""
    asked = {key: value for key, value in table.items() if key in PROMISES}
    whole = {"name": name} | {key: value for key, value in table.items() if key not in asked}
    adversary = parse_adversaries([whole], problem, None)[0].adversary
    return AdversaryPreset(key, name, about, whole, max_distortion(problem, adversary), asked)
