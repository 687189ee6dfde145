"""Visits invented from habits: where somebody is at which hours, habits in files, and what is refused."""

import re
from pathlib import Path
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


PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "weeks.md"
(DOCUMENT,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)


def test_the_file_of_the_document_is_the_person_of_its_snippet(tmp_path: Path) -> None:
    (tmp_path / "me.toml").write_text(DOCUMENT)
    work = Habit(longitude=5.14, latitude=52.10, start=8.5, end=17.0, days="weekdays")
    sport = Habit(longitude=5.10, latitude=52.06, start=19.0, end=21.0, chance=0.3)
    expected = from_habits((5.08, 52.07), [work, sport], generator=np.random.default_rng(4))
    read = pg.traces.read_habits(tmp_path / "me.toml", generator=np.random.default_rng(4))
    assert np.array_equal(read.longitude, expected.longitude)
    assert np.array_equal(read.latitude, expected.latitude)
    assert np.array_equal(read.time, expected.time)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("latitude = 52.07", "latitude = 95.5", "me.toml, [home] latitude must be a number from -90 to 90"),
        ("latitude = 52.07", 'latitude = "north"', "me.toml, [home] latitude must be a number"),
        ("latitude = 52.07\n", "", "me.toml, [home] needs 'latitude'"),
        ("[home]", "[house]", "me.toml has no key 'house'; it may have days, home, habit"),
        ("days = 28 ", "days = 2.5", "me.toml days must be a whole number"),
        ("days = 28 ", "days = 0 ", "me.toml days must be a whole number of days"),
        ("longitude = 5.14", "longitude = true", "me.toml, [[habit]] 1 longitude must be a number"),
        ("start = 8.5", 'start = "08:30"', "me.toml, [[habit]] 1 start must be a number"),
        ("start = 8.5", "start = 18.5", "me.toml, [[habit]] 1 end must be later than start"),
        ('"weekdays"', '"mondays"', "me.toml, [[habit]] 1 days of a habit|me.toml, [[habit]] 1 the days of a habit"),
        ("chance = 0.3", "chance = 30", "me.toml, [[habit]] 2 chance must be a number from 0 to 1"),
        ("chance", "probability", "me.toml, [[habit]] 2 has no key 'probability'"),
        ("[[habit]]           # sport", "[habit]", "not valid TOML"),
    ],
)
def test_mistakes_in_a_file_are_named_by_their_table_and_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in DOCUMENT
    (tmp_path / "me.toml").write_text(DOCUMENT.replace(old, new))
    with pytest.raises(pg.InvalidProblem) as caught:
        pg.traces.read_habits(tmp_path / "me.toml")
    assert any(each in str(caught.value) for each in message.split("|"))
    assert not re.search(r"52\.0|5\.08|5\.14|95\.5", str(caught.value))  # no coordinate of anybody


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(pg.PrivacyGamesError, match=r"none\.toml"):
        pg.traces.read_habits(tmp_path / "none.toml")
