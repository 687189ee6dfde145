"""Visits invented from habits: where somebody is at which hours, and what is refused."""

from typing import Any

import numpy as np
import pytest

import privacygames as pg
from privacygames.traces import Habit, from_habits

HOME, WORK, SPORT = (5.08, 52.07), (5.14, 52.10), (5.10, 52.06)
HABITS = [Habit(*WORK, start=8.5, end=17.0, days="weekdays"), Habit(*SPORT, start=19.0, end=21.0, chance=0.5)]
NEAR = 0.002
"""Degrees: a hundred and fifty metres, ten standard deviations of the receiver's error."""


def positions(visits: pg.traces.Visits, hour: float) -> np.ndarray[Any, Any]:
    """Where somebody is at an hour of each day, (days, 2)."""
    at = visits.time % 86_400 == round(hour * 3600)
    return np.stack([visits.longitude[at], visits.latitude[at]], axis=1)


def near(points: np.ndarray[Any, Any], place: tuple[float, float]) -> np.ndarray[Any, Any]:
    return np.asarray(np.abs(points - place).max(axis=1) < NEAR)


def test_somebody_is_where_they_usually_are() -> None:
    visits = from_habits(HOME, HABITS, days=70, generator=np.random.default_rng(1))
    assert near(positions(visits, 3.0), HOME).all()
    at_noon = positions(visits, 12.0)
    weekday = np.arange(70) % 7 < 5
    assert near(at_noon[weekday], WORK).all()
    assert near(at_noon[~weekday], HOME).all()
    evenings = near(positions(visits, 20.5), SPORT)
    assert 20 <= evenings.sum() <= 50  # half of 70, within 3.5 standard deviations
    assert not near(positions(visits, 20.5)[~evenings], SPORT).any()


def test_the_same_generator_makes_the_same_visits_and_none_makes_others() -> None:
    first, again = (from_habits(HOME, HABITS, days=3, generator=np.random.default_rng(5)) for _ in range(2))
    assert np.array_equal(first.longitude, again.longitude)
    assert not np.array_equal(from_habits(HOME, HABITS, days=3).longitude, from_habits(HOME, HABITS, days=3).longitude)


def test_a_habit_that_starts_ends_the_one_before() -> None:
    late = [Habit(*WORK, start=8.0, end=20.0), Habit(*SPORT, start=12.0, end=14.0)]
    visits = from_habits(HOME, late, days=5, generator=np.random.default_rng(2))
    assert near(positions(visits, 13.5), SPORT).all()
    assert near(positions(visits, 17.0), HOME).all()


def test_policies_are_compared_on_habits() -> None:
    visits = from_habits(HOME, HABITS, days=8, generator=np.random.default_rng(3))
    grid = pg.Grid.over((5.0, 52.0, 5.2, 52.15), columns=5, rows=4)
    comparison = pg.compare_policies(visits, grid, 1, budget=20.0, repeats=1, generator=np.random.default_rng(0))
    assert comparison.people == 1
    assert comparison.recommended == "frequent places"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"start": 17.0, "end": 8.0}, "end must be later than start"),
        ({"start": -1.0}, "start must be a number from 0 to 24"),
        ({"latitude": 100.0}, "latitude must be a number from -90 to 90"),
        ({"chance": float("nan")}, "chance must be a number from 0 to 1"),
        ({"days": "mondays"}, "days of a habit"),
    ],
)
def test_what_is_no_habit_is_refused(change: dict[str, Any], message: str) -> None:
    given = {"longitude": 5.0, "latitude": 52.0, "start": 8.0, "end": 17.0} | change
    with pytest.raises(pg.InvalidProblem, match=message):
        Habit(**given)


@pytest.mark.parametrize(
    ("home", "days", "message"),
    [((5.0,), 7, "home must be"), ((5.0, 99.0), 7, "latitude"), (HOME, 0, "days must be"), (HOME, 2.5, "days must be")],
)
def test_what_is_no_home_or_number_of_days_is_refused(home: Any, days: Any, message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        from_habits(home, HABITS, days=days)
