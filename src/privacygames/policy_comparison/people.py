"""The people of a replay: a model learned from earlier days, and the later days to release."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from math import ceil

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import IntArray
from privacygames.beliefs import Mobility, Prior
from privacygames.errors import InvalidProblem
from privacygames.problem import Measure, Problem
from privacygames.spaces import Grid
from privacygames.time_zones import time_zone
from privacygames.traces import Visits
from privacygames.validation import is_number, require_instance

NIGHT = (22, 7)
"""Local hours between which people are assumed to be at home."""

SMOOTHING = 0.1
"""Added to every cell's count, since people may go to new cells."""

MOBILITY_SMOOTHING = 1.0
"""Moves toward the neighbouring cells that are added to every row of the transition matrix."""

MIN_DAYS = 2
"""Days with visits that a person needs: one to learn from, and one to release."""


@dataclass(frozen=True, eq=False)
class PersonDays:
    """The days of one person, and the model learned from earlier days.

    Attributes:
        label: "user 1", "user 2", …
        problem: with the prior learned from earlier days.
        mobility: learned from earlier days.
        cells: the index of the true cell at each request.
        times: of the requests, in unix seconds.
        days: the day of the replay of each request, from 0.
        hours: the local hour of each request.
        home: the index of the home cell; None if there are no visits at night.
        requests: mean number of requests per day in the earlier days, rounded up.
        places: the same for distinct cells per day.
    """

    label: str
    problem: Problem
    mobility: Mobility
    cells: IntArray
    times: IntArray
    days: IntArray
    hours: IntArray
    home: int | None
    requests: int
    places: int

    @property
    def at_night(self) -> NDArray[np.bool_]:
        """A mask of the requests at night."""
        return np.asarray((self.hours >= NIGHT[0]) | (self.hours < NIGHT[1]))


def learn_days(
    visits: Visits,
    grid: Grid,
    users: int | Sequence[str],
    *,
    learn: float = 0.5,
    cost: Measure = "euclidean",
    timezone: str = "UTC",
    cells: int = 1,
) -> list[PersonDays]:
    """People's later days, with a prior and a Markov chain learned from their earlier ones.

    Args:
        visits: in time slots; each visit is a request.
        grid: the cells.
        users: how many of those with most visits, or which by name.
        learn: the share of a person's days to learn from.
        cost: of an output, as in :class:`privacygames.Problem`.
        timezone: of days and hours.
        cells: leave out people who visited fewer cells.

    >>> from privacygames.policy_comparison import learn_days
    >>> city = pg.Grid.over(pg.traces.SYNTHETIC_WINDOW, columns=2, rows=2)
    >>> (person,) = learn_days(pg.traces.synthetic(1, days=4), city, 1)
    >>> person.label, int(person.days.max()) + 1
    ('user 1', 2)
    """
    require_instance(visits, Visits, "visits")
    require_instance(grid, Grid, "the grid")
    if not (is_number(learn) and 0 < learn < 1):
        raise InvalidProblem(f"learn is {repr(learn)[:40]}; it must be a number between 0 and 1")
    if visits.slot is None:
        raise InvalidProblem("a replay needs visits in time slots: read them with a slot")
    names = visits.busiest(users, grid, cells=cells) if isinstance(users, int) else list(users)
    zone = time_zone(timezone)
    people: list[PersonDays] = []
    for name in names:
        person = _person(visits, grid, name, f"user {len(people) + 1}", learn=learn, cost=cost, zone=zone)
        if person is not None:
            people.append(person)
    if not people:
        raise InvalidProblem(f"nobody has visits on {MIN_DAYS} days or more: one to learn from, one to share")
    return people


def _person(
    visits: Visits, grid: Grid, name: str, label: str, *, learn: float, cost: Measure, zone: tzinfo
) -> PersonDays | None:
    cells, times = visits.trace(grid, name)
    clock = [datetime.fromtimestamp(int(time), zone) for time in times]
    dates = np.array([moment.toordinal() for moment in clock], dtype=np.int64)
    hours = np.array([moment.hour for moment in clock], dtype=np.int64)
    known = np.unique(dates)
    if len(known) < MIN_DAYS:
        return None
    shared = dates >= known[min(ceil(learn * len(known)), len(known) - 1)]
    before = [cells[dates == date] for date in np.unique(dates[~shared])]
    prior = Prior.from_counts(grid, np.bincount(np.concatenate(before), minlength=len(grid)), smoothing=SMOOTHING)
    earlier = visits.before(int(times[shared][0]))
    mobility = Mobility.from_visits(grid, earlier, name, smoothing=MOBILITY_SMOOTHING, toward="neighbours")
    return PersonDays(
        label=label,
        problem=Problem(prior, cost=cost, distance="euclidean"),
        mobility=mobility,
        cells=cells[shared],
        times=times[shared],
        days=np.searchsorted(np.unique(dates[shared]), dates[shared]),
        hours=hours[shared],
        home=_home(cells, hours),
        requests=ceil(np.mean([len(day) for day in before])),
        places=ceil(np.mean([len(np.unique(day)) for day in before])),
    )


def _home(cells: IntArray, hours: IntArray) -> int | None:
    """The cell with most visits at night; None without any."""
    night = cells[(hours >= NIGHT[0]) | (hours < NIGHT[1])]
    return int(np.bincount(night).argmax()) if len(night) else None
