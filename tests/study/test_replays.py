"""Replays: measured against the same by hand; nothing finished is done again; on processes and clusters alike."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privacygames as pg
from interruptions import Counting
from privacygames import tracking
from privacygames.jobs import DaskExecutor, ProcessExecutor
from privacygames_study.replays import STRATEGIES, PersonDays, learn_days, plots, replay, runner
from privacygames_study.replays.strategies import DailyBudget
from privacygames_study.replays.task import ReplayTask
from support import shared

GRID = pg.Grid.over(pg.traces.SYNTHETIC_WINDOW, columns=4, rows=3)
PEOPLE = learn_days(pg.traces.synthetic(2, days=4), GRID, 2)


def test_people_share_later_days_and_are_known_by_earlier_ones() -> None:
    visits = pg.traces.synthetic(2, days=4)
    name = visits.busiest(2, GRID)[0]
    cells, times = visits.trace(GRID, name)
    person = PEOPLE[0]
    days = times // 86400
    later = days >= np.unique(days)[2]
    assert person.cells.tolist() == cells[later].tolist()
    assert person.times.tolist() == times[later].tolist()
    assert (person.days.min(), person.days.max()) == (0, 1)
    counts = np.bincount(cells[~later], minlength=len(GRID)) + 0.1
    assert person.problem.prior.probabilities == pytest.approx(counts / counts.sum())
    night = [cell for cell, time in zip(cells, times, strict=True) if time % 86400 // 3600 in (22, 23, *range(7))]
    assert person.home == np.bincount(night).argmax()
    assert person.requests == int(np.ceil(len(cells[~later]) / 2))


def test_a_replay_is_what_it_says() -> None:
    person = PEOPLE[0]
    daily = DailyBudget(8.0, person.requests, person.places)
    measured = ReplayTask(person, "independent", daily, seed=0).run()
    again = ReplayTask(person, "independent", daily, seed=0).run()
    other = ReplayTask(person, "independent", daily, seed=1).run()
    assert measured == again
    assert measured["cost"] != other["cost"]
    assert measured["requests"] == len(person.cells)
    assert float(measured["spent_a_day"] or 0) <= 8.0 * 1.5  # a day of the calendar may meet two windows
    by_hours = sum(float(measured[f"cost at {hour}"] or 0) for hour in range(24))
    assert by_hours / len(person.cells) == pytest.approx(measured["cost"])
    seen = tracking.Observations(np.zeros((len(person.cells), len(GRID))), person.times // 600)
    blind = tracking.filtering_attack(person.problem, person.mobility, seen)
    assert measured["blind"] == pytest.approx(person.problem.distance[blind.guesses, person.cells].mean())
    assert float(measured["now"] or 0) < float(measured["blind"] or 0)


@pytest.mark.parametrize("way", STRATEGIES)
def test_every_way_stays_within_its_budget(way: str) -> None:
    person = PEOPLE[1]
    few = PersonDays(
        person.label, person.problem, person.mobility, person.cells[:30], person.times[:30], person.days[:30],
        person.hours[:30], person.home, 20, person.places,
    )  # fmt: skip
    releases = STRATEGIES[way](few.problem, few.mobility, DailyBudget(4.0, 20, few.places), np.random.default_rng(1))
    for cell, time in zip(few.cells, few.times, strict=True):
        releases.release(GRID.labels[cell], at=float(time))
    assert releases.ledger.verify().releases == len(few.cells)
    measured = ReplayTask(few, way, DailyBudget(4.0, 20, few.places), seed=3).run()
    assert measured["status"] == "done"
    assert 0 < float(measured["answered"] or 0) <= 1


def test_an_interrupted_replay_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "MIN_NIGHT_REQUESTS", 1)
    settings: dict[str, Any] = {"budget": 6.0, "strategies": ["noise", "memoised"], "folder": tmp_path}
    first, rest = Counting(3), Counting()
    with pytest.raises(KeyboardInterrupt):
        replay(PEOPLE, workers=first, **settings)
    made = replay(PEOPLE, workers=rest, **settings)
    assert (first.worked, rest.worked, made.fresh) == (3, 1, 1)
    made.write(tmp_path)
    assert {path.name for path in tmp_path.glob("*.csv")} == {"people.csv", "ways.csv", "hours.csv", "homes.csv"}
    assert [row["way"] for row in made.strategies] == ["noise", "memoised"]
    mean = np.mean([float(row["cost"] or 0) for row in made.people if row["way"] == "noise"])
    assert made.strategies[0]["cost"] == pytest.approx(mean)
    text = " ".join(path.read_text() for path in tmp_path.rglob("*.*") if path.suffix in (".csv", ".json"))
    assert "cell-" not in text
    assert PEOPLE[0].label in text


def test_figures_of_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = replay(PEOPLE[:1], budget=6.0, strategies=["memoised"])  # has enough requests at night
    assert nobody.strategies[0]["home"] is None
    with pytest.raises(pg.InvalidProblem, match="at night"):
        plots.homes(nobody)
    monkeypatch.setattr(runner, "MIN_NIGHT_REQUESTS", 1)
    made = replay(PEOPLE[:1], budget=6.0, strategies=["noise", "memoised"])
    day, home = plots.day(made), plots.homes(made)
    assert [axes.get_title(loc="left") for axes in day.axes][3] == "Spent since midnight"
    assert [line.get_label() for line in home.axes[0].lines] == ["noise", "memoised"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_processes_and_clusters_find_the_same() -> None:
    distributed: Any = pytest.importorskip("distributed")
    settings: dict[str, Any] = {"budget": 6.0, "strategies": ["noise", "memoised"]}
    here = replay(PEOPLE, **settings)
    assert replay(PEOPLE, workers=ProcessExecutor(2), **settings).strategies == here.strategies
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as made:
        assert replay(PEOPLE, workers=DaskExecutor(made.scheduler_address), **settings).strategies == here.strategies


def test_real_people() -> None:
    path = shared("data", "usp_saopaulo_window.csv")
    box = (-46.750365, -23.585874, -46.60321, -23.513928)
    columns = {"user": "user", "time": "time", "latitude": "lat", "longitude": "lon"}
    visits = pg.traces.read(path, window=box, timezone="America/Sao_Paulo", columns=columns, users=["u06"])
    grid = pg.Grid.over(box, columns=5, rows=4)
    (person,) = learn_days(visits, grid, ["u06"], timezone="America/Sao_Paulo")
    made = replay([person], budget=20.0, strategies=["noise", "independent", "memoised"])
    assert made.failed == 0
    by_way = {row["way"]: row for row in made.strategies}
    assert float(by_way["independent"]["cost"] or 0) < float(by_way["noise"]["cost"] or 0)
    assert 0.9 < float(by_way["memoised"]["answered"] or 0) < 1  # some days have more places than usual


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "budget"),
        ({"budget": 1.0, "strategies": ["best"]}, "a strategy"),
        ({"budget": 1.0, "strategies": []}, "at least one"),
        ({"budget": 1.0, "seeds": 0}, "one seed"),
        ({"budget": 1.0, "when_spent": "cry"}, "when_spent is 'cry'"),
    ],
)
def test_wrong_replays_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        replay(PEOPLE, **options)
    with pytest.raises(pg.InvalidProblem, match="needs people"):
        replay([], budget=1.0)
    with pytest.raises(pg.InvalidProblem, match="learn"):
        learn_days(pg.traces.synthetic(1, days=3), GRID, 1, learn=1.0)
