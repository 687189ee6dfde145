"""Running a replay: people's days released under several strategies, resumable in a folder."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import get_args

import numpy as np

from privacygames.errors import InvalidProblem
from privacygames.jobs import Executor, Measurements, SerialExecutor, Store, Table, Value, remaining_tasks, write_table
from privacygames.policy_comparison import PersonDays, learn_days
from privacygames.progress import Progress, ProgressCallback
from privacygames.releases import WhenSpent
from privacygames.validation import as_list, is_integer, is_number, require_choice
from privacygames_study.replays.strategies import STRATEGIES, DailyBudget
from privacygames_study.replays.task import DONE, HOURS, ReplayTask

__all__ = ["PersonDays", "ReplayResult", "learn_days", "replay"]

CELLS = "cells"
QUANTITIES = (
    *("requests", "days", "answered", "kept", "cost", "spent_a_day", "now", "now_expected", "past", "past_expected"),
    *("path", "blind", "home"),
)
"""Measured quantities per person and strategy; distances are in the unit of the problem."""

MIN_NIGHT_REQUESTS = 10
"""Requests at night from which the averaging attack on a home is evaluated; with fewer it has nothing to average."""

HOURLY = ("now", "past", "cost", "spent")


@dataclass(frozen=True)
class ReplayResult:
    """A finished replay.

    Attributes:
        people: one row per person, strategy and seed.
        strategies: one row per strategy: means over people and seeds with equal weights.
        hours: one row per strategy and hour of the day.
        homes: one row per strategy and number of days: mean distance of the averaging attack from home, over people
            with enough requests at night.
        failed: number of replays that failed.
        fresh: number of replays of this run; the others were stored.
    """

    people: Table
    strategies: Table
    hours: Table
    homes: Table
    failed: int
    fresh: int

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {"ways": self.strategies, "failed": self.failed, "made": self.fresh}

    def write(self, folder: Path) -> None:
        """Write every table as a CSV file."""
        tables = {"people": self.people, "ways": self.strategies, "hours": self.hours, "homes": self.homes}
        for name, table in tables.items():
            if table:
                write_table(folder / f"{name}.csv", table, tuple(table[0]))


def replay(
    people: Sequence[PersonDays],
    *,
    budget: float,
    strategies: Sequence[str] = tuple(STRATEGIES),
    when_spent: WhenSpent = "repeat",
    seeds: int = 1,
    folder: Path | None = None,
    workers: Executor | None = None,
    progress: ProgressCallback | None = None,
) -> ReplayResult:
    """Release people's days under several strategies at the same daily budget, and attack the outputs.

    Args:
        people: from :func:`privacygames_study.replays.learn_days`.
        budget: ε per unit of distance, in every 24 hours.
        strategies: names of strategies.
        when_spent: how requests beyond the budget are treated.
        seeds: number of repetitions with other random draws.
        folder: where finished replays are stored, and reused by later runs; None: in memory.
        workers: runs the replays; by default this process.
        progress: called with a :class:`privacygames.Progress` after each; an exception from it ends the replay.

    >>> from privacygames_study import replays
    >>> city = pg.Grid.over(pg.traces.SYNTHETIC_WINDOW, columns=2, rows=2)
    >>> people = replays.learn_days(pg.traces.synthetic(1, days=2), city, 1)
    >>> result = replays.replay(people, budget=6.0, strategies=["memoised"])
    >>> [row["way"] for row in result.strategies], result.failed
    (['memoised'], 0)
    """
    jobs = _jobs(as_list(people, "people"), budget, as_list(strategies, "strategies"), when_spent, seeds)
    store = Store(None if folder is None else folder / CELLS)
    left = remaining_tasks(jobs, store.results)
    started, done = monotonic(), len(jobs) - len(left)
    with closing((workers or SerialExecutor()).run(left)) as finished:
        for key, measured in finished:
            store.add(key, measured)
            done += 1
            if progress is not None:
                seconds, message = monotonic() - started, f"{done} of {len(jobs)} replays"
                progress(Progress(job="replay", done=done, total=len(jobs), seconds=seconds, message=message))
    return _summarise([(job, store.results[job.key]) for job in jobs], len(left))


def _jobs(
    people: list[PersonDays], budget: float, strategies: list[str], when_spent: WhenSpent, seeds: int
) -> list[ReplayTask]:
    if not people or not all(isinstance(each, PersonDays) for each in people):
        raise InvalidProblem("a replay needs people: a list from learn_days")
    if not (is_number(budget) and 0 < budget < np.inf):
        raise InvalidProblem(f"budget is {repr(budget)[:40]}; it must be a positive number")
    require_choice(when_spent, get_args(WhenSpent), "when_spent")
    for strategy in strategies:
        require_choice(strategy, tuple(STRATEGIES), "a strategy")
    if not strategies or not is_integer(seeds):
        raise InvalidProblem("a replay needs at least one strategy and one seed")
    return [
        ReplayTask(person, strategy, DailyBudget(budget, person.requests, person.places, when_spent), seed)
        for person in people
        for strategy in dict.fromkeys(strategies)
        for seed in range(seeds)
    ]


def _summarise(results: list[tuple[ReplayTask, Measurements]], fresh: int) -> ReplayResult:
    done = [(job, _with_home(job, measured)) for job, measured in results if measured["status"] == DONE]
    by_strategy: dict[str, list[Measurements]] = {}
    for job, measured in done:
        by_strategy.setdefault(job.strategy, []).append(measured)
    return ReplayResult(
        people=[_settings(job) | {name: measured.get(name) for name in QUANTITIES} for job, measured in done],
        strategies=[
            {"way": strategy} | {name: _mean(each, name) for name in QUANTITIES}
            for strategy, each in by_strategy.items()
        ],
        hours=[_hour(strategy, each, hour) for strategy, each in by_strategy.items() for hour in range(HOURS)],
        homes=[row for strategy, each in by_strategy.items() for row in _homes(strategy, each)],
        failed=len(results) - len(done),
        fresh=fresh,
    )


def _settings(job: ReplayTask) -> dict[str, Value]:
    daily = job.daily
    return {
        "person": job.days.label,
        "way": job.strategy,
        "seed": job.seed,
        "budget": daily.budget,
        "expected_requests": daily.requests,
        "expected_places": daily.places,
    }


def _with_home(job: ReplayTask, measured: Measurements) -> Measurements:
    """The measurements, without those about home if there are too few requests at night."""
    if job.days.at_night.sum() >= MIN_NIGHT_REQUESTS:
        return measured
    return {name: value for name, value in measured.items() if not name.startswith("home")}


def _mean(measured: list[Measurements], name: str) -> float | None:
    values = [float(value) for value in (each.get(name) for each in measured) if isinstance(value, int | float)]
    return float(np.mean(values)) if values else None


def _hour(strategy: str, measured: list[Measurements], hour: int) -> dict[str, Value]:
    """Means over all requests of an hour of the day; for spending, over people and days."""
    requests = sum(int(each[f"requests at {hour}"] or 0) for each in measured)
    days = sum(int(each["days"] or 0) for each in measured)
    row: dict[str, Value] = {"way": strategy, "hour": hour, "requests": requests}
    for name in HOURLY:
        total = sum(float(each[f"{name} at {hour}"] or 0.0) for each in measured)
        over = days if name == "spent" else requests
        row[name] = total / over if over else None
    return row


def _homes(strategy: str, measured: list[Measurements]) -> Table:
    """Means after each day; people with fewer days count with their last."""
    known = [[name for name in each if name.startswith("home after")] for each in measured]
    lived = [(each, names) for each, names in zip(measured, known, strict=True) if names]
    longest = max((len(names) for _, names in lived), default=0)
    rows: Table = []
    for day in range(1, longest + 1):
        errors = [each[f"home after {min(day, len(names))}"] for each, names in lived]
        mean = float(np.mean([error for error in errors if isinstance(error, float)]))
        rows.append({"way": strategy, "days": day, "people": len(lived), "home": mean})
    return rows
