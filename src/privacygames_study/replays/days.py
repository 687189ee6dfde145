"""People for a replay: what earlier days teach about them, and the days that are shared."""

from collections.abc import Sequence
from datetime import datetime, tzinfo
from math import ceil

import numpy as np

from privacygames.arrays import IntArray
from privacygames.beliefs import Mobility, Prior
from privacygames.errors import InvalidProblem
from privacygames.problem import Measure, Problem
from privacygames.spaces import Grid
from privacygames.time_zones import time_zone
from privacygames.traces import Visits
from privacygames.validation import is_number, require_instance
from privacygames_study.replays.task import NIGHT, PersonDays

SMOOTHING = 0.1
"""Added to every cell's count: she may go where she was never seen."""

MOVES = 1.0
LEAST_DAYS = 2


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
    """People's later days, with a prior and a chain learned from their earlier ones.

    Args:
        visits: in time slots; each visit is a request to share.
        grid: the cells.
        users: how many of the busiest, or which by name.
        learn: the share of a person's days to learn from.
        cost: of an answer, as in :class:`privacygames.Problem`.
        timezone: whose days and hours.
        cells: leave out people seen in fewer cells.
    """
    require_instance(visits, Visits, "visits")
    require_instance(grid, Grid, "the grid")
    if not (is_number(learn) and 0 < learn < 1):
        raise InvalidProblem(f"learn is {repr(learn)[:40]}; it must be a number between 0 and 1")
    if visits.slot is None:
        raise InvalidProblem("a replay needs visits in time slots: read them with a slot")
    names = visits.busiest(users, grid, cells=cells) if isinstance(users, int) else list(users)
    zone = time_zone(timezone)
    found: list[PersonDays] = []
    for name in names:
        person = _person(visits, grid, name, f"user {len(found) + 1}", learn=learn, cost=cost, zone=zone)
        if person is not None:
            found.append(person)
    if not found:
        raise InvalidProblem(f"nobody has visits on {LEAST_DAYS} days or more: one to learn from, one to share")
    return found


def _person(
    visits: Visits, grid: Grid, name: str, label: str, *, learn: float, cost: Measure, zone: tzinfo
) -> PersonDays | None:
    cells, times = visits.trace(grid, name)
    clock = [datetime.fromtimestamp(int(time), zone) for time in times]
    dates = np.array([moment.toordinal() for moment in clock], dtype=np.int64)
    hours = np.array([moment.hour for moment in clock], dtype=np.int64)
    known = np.unique(dates)
    if len(known) < LEAST_DAYS:
        return None
    shared = dates >= known[min(ceil(learn * len(known)), len(known) - 1)]
    before = [cells[dates == date] for date in np.unique(dates[~shared])]
    prior = Prior.from_counts(grid, np.bincount(np.concatenate(before), minlength=len(grid)), smoothing=SMOOTHING)
    earlier = visits.before(int(times[shared][0]))
    mobility = Mobility.from_visits(grid, earlier, name, smoothing=MOVES, toward="neighbours")
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
    """The cell where most of the nights' visits are."""
    night = cells[(hours >= NIGHT[0]) | (hours < NIGHT[1])]
    return int(np.bincount(night).argmax()) if len(night) else None
