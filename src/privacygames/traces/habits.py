"""Visits invented from habits: for people who know where they usually are and have no trace."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from privacygames.arrays import as_floats
from privacygames.errors import Field, InvalidProblem
from privacygames.spaces import Area
from privacygames.table_reader import TableReader
from privacygames.text_files import read_toml
from privacygames.traces.synthetic_people import GPS_ERROR, SLOT, START, Diary
from privacygames.traces.timestamps import DAY, HOUR
from privacygames.traces.visits import Visits
from privacygames.validation import as_list, is_integer, is_number, require_choice, require_instance

HabitDays = Literal["all", "weekdays", "weekends"]
"""The days of a habit."""

SPEED = 20.0
"""Speed on the way between two places, in km an hour: a city's buses and bicycles."""

PUNCTUALITY = 0.3
"""Standard deviation of the hour at which somebody leaves for a place, in hours."""

BEYOND = 0.05
"""Margin in degrees around the places within which ways are projected to km."""

MAX_DAYS = 3650
"""Largest number of days: ten years."""

DAYS = 28
"""Number of days where none is given: two weeks to learn from, and two to share."""

MAX_HABITS = 100
"""Largest number of habits in a file."""

HOME_KEYS, HABIT_KEYS = ("latitude", "longitude"), ("latitude", "longitude", "start", "end", "days", "chance")
"""Keys of ``[home]`` and of each ``[[habit]]`` in a file."""


@dataclass(frozen=True)
class Habit:
    """A place where somebody usually is at some hours.

    Attributes:
        longitude: of the place, in degrees.
        latitude: of the place, in degrees.
        start: the hour of leaving for it, 0 to 24.
        end: the hour of leaving it again, after ``start``.
        days: ``"all"``, ``"weekdays"`` or ``"weekends"``.
        chance: the share of these days on which it happens.

    >>> pg.traces.Habit(longitude=5.11, latitude=52.09, start=8.5, end=17, days="weekdays").chance
    1.0
    """

    longitude: float
    latitude: float
    start: float
    end: float
    days: HabitDays = "all"
    chance: float = 1.0

    def __post_init__(self) -> None:
        for name, low, high in (("longitude", -180, 180), ("latitude", -90, 90), ("start", 0, 24), ("end", 0, 24)):
            _require_between(name, getattr(self, name), low, high)
        _require_between("chance", self.chance, 0, 1)
        if not self.start < self.end:
            raise InvalidProblem(
                Field("end"), " must be later than ", Field("start"), ": a night at home needs no habit"
            )
        require_choice(self.days, get_args(HabitDays), "the days of a habit")

    def applies(self, day: int) -> bool:
        """Whether it is a habit of a day.

        Args:
            day: its number; day 0 is a Monday.
        """
        return self.days == "all" or (self.days == "weekends") == (day % 7 >= 5)


def from_habits(
    home: tuple[float, float],
    habits: Sequence[Habit],
    *,
    days: int = DAYS,
    generator: np.random.Generator | None = None,
) -> Visits:
    """Visits every ten minutes of somebody who lives at home and has some habits, with the ways in between.

    Departures vary by some twenty minutes, and positions by a GPS receiver's error. Times are in UTC, from a Monday on.

    Args:
        home: its longitude and latitude in degrees.
        habits: where else they are, and when; one that starts while another lasts ends the other.
        days: number of days.
        generator: makes the visits reproducible; by default the operating system's randomness.

    >>> work = pg.traces.Habit(longitude=5.14, latitude=52.10, start=8.5, end=17.0, days="weekdays")
    >>> pg.traces.from_habits((5.08, 52.07), [work], days=7)
    Visits(1008 visits of 1 users, 1008 rows)
    """
    if not (is_integer(days) and 1 <= days <= MAX_DAYS):
        raise InvalidProblem(Field("days"), f" must be a whole number of days, 1 to {MAX_DAYS}")
    if as_floats(home, "home").shape != (2,):
        raise InvalidProblem(Field("home"), " must be a longitude and a latitude")
    for name, value, largest in (("longitude", home[0], 180), ("latitude", home[1], 90)):
        _require_between(name, float(value), -largest, largest)
    places = as_list(habits, "habits")
    for habit in places:
        require_instance(habit, Habit, "a habit")
    points = np.array([home, *((habit.longitude, habit.latitude) for habit in places)], dtype=np.float64)
    (west, south), (east, north) = points.min(axis=0) - BEYOND, points.max(axis=0) + BEYOND
    area = Area.over((float(west), float(south), float(east), float(north)))
    random = np.random.default_rng() if generator is None else generator
    at = area.project(points)
    diary = Diary(at[0], at.mean(axis=0))
    for day in range(days):
        today = [(habit, place) for habit, place in zip(places, at[1:], strict=True) if habit.applies(day)]
        today = [(habit, place) for habit, place in today if random.random() < habit.chance]
        today.sort(key=lambda each: each[0].start)
        starts = [habit.start for habit, _ in today] + [inf]
        for (habit, place), following in zip(today, starts[1:], strict=True):
            diary.go(place, _leaving(day, habit.start, random), SPEED)
            if habit.end < following:
                diary.go(at[0], _leaving(day, habit.end, random), SPEED)
    times = np.arange(0, days * DAY, SLOT)
    positions = diary.positions(times) + random.normal(0.0, GPS_ERROR, size=(len(times), 2))
    degrees = area.coordinates(np.clip(positions, 0.0, area.lengths))
    return Visits(
        user=np.zeros(len(times), dtype=np.int64),
        time=START + times,
        latitude=degrees[:, 1],
        longitude=degrees[:, 0],
        users=("somebody",),
        slot=SLOT,
    )


def read_habits(path: str | Path, *, generator: np.random.Generator | None = None) -> Visits:
    r"""Visits of somebody whose home and habits are written in a TOML file, as :func:`from_habits` invents them.

    The file has a table ``[home]`` with ``latitude`` and ``longitude``, a ``[[habit]]`` with the attributes of
    :class:`Habit` for each other place, and ``days``, their number (docs/how-to/weeks.md has one).

    Args:
        path: the file.
        generator: makes the visits reproducible; by default the operating system's randomness.

    >>> from pathlib import Path
    >>> at_work = "[[habit]]\nlatitude = 52.1\nlongitude = 5.14\nstart = 8.5\nend = 17\ndays = 'weekdays'\n"
    >>> Path("me.toml").write_text(f"days = 7\n[home]\nlatitude = 52.07\nlongitude = 5.08\n{at_work}") > 0
    True
    >>> pg.traces.read_habits("me.toml")
    Visits(1008 visits of 1 users, 1008 rows)
    """
    file = Path(path)
    document = TableReader(read_toml(file), file.name, ("days", "home", "habit"))
    home = TableReader(document.value("home"), f"{file.name}, [home]", HOME_KEYS)
    tables = document.array("habit", [], max_length=MAX_HABITS)
    try:
        habits = [_habit(table, f"{file.name}, [[habit]] {number}") for number, table in enumerate(tables, start=1)]
        place = home.number("longitude"), home.number("latitude")
        return from_habits(place, habits, days=document.integer("days", DAYS), generator=generator)
    except InvalidProblem as error:
        if error.location:
            raise
        raise error.at(home.name if error.field in HOME_KEYS else file.name) from None


def _habit(table: object, name: str) -> Habit:
    """One habit of a file."""
    reader = TableReader(table, name, HABIT_KEYS)
    values: dict[str, Any] = {key: reader.number(key) for key in ("latitude", "longitude", "start", "end")}
    values |= {"days": reader.string("days", "all"), "chance": reader.number("chance", 1.0)}
    try:
        return Habit(**values)
    except InvalidProblem as error:
        raise error.at(name) from None


def _leaving(day: int, hour: float, random: np.random.Generator) -> float:
    """The time of leaving around an hour of a day, in seconds since the first midnight."""
    return day * DAY + (hour + PUNCTUALITY * float(random.standard_normal())) * HOUR


def _require_between(name: str, value: float, low: float, high: float) -> None:
    if not (is_number(value) and low <= value <= high):
        raise InvalidProblem(Field(name), f" must be a number from {low} to {high}")
