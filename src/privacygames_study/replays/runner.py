"""Replay: people's days through several ways of sharing, in a folder that can be gone on with."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import get_args

import numpy as np

from privacygames.errors import InvalidProblem
from privacygames.jobs import Executor, Measured, SerialExecutor, Store, Table, Value, unfinished, write_table
from privacygames.progress import Progress, ProgressCallback
from privacygames.releases import WhenSpent
from privacygames.validation import as_list, is_integer, is_number, require_choice
from privacygames_study.replays.days import learn_days
from privacygames_study.replays.strategies import STRATEGIES, DailyBudget
from privacygames_study.replays.task import DONE, HOURS, PersonDays, ReplayTask

__all__ = ["PersonDays", "ReplayResult", "learn_days", "replay"]

CELLS = "cells"
QUANTITIES = (
    *("requests", "days", "answered", "kept", "cost", "spent_a_day", "now", "now_expected", "past", "past_expected"),
    *("path", "blind", "home"),
)
"""What is measured of each person and way; distances in the unit of the problem."""

LEAST_NIGHT = 10
"""Home counts for people with so many requests at night."""

HOURLY = ("now", "past", "cost", "spent")


@dataclass(frozen=True)
class ReplayResult:
    """A finished replay.

    Attributes:
        people: one row for each person, way and seed.
        ways: one row for each way: means over people and seeds, each counting the same.
        hours: one row for each way and hour of the day.
        homes: one row for each way and number of days shared: how far off home the averaging attack is, on average
            over people with enough requests at night.
        failed: how many replays could not be done.
        fresh: how many this run made; the others were known.
    """

    people: Table
    ways: Table
    hours: Table
    homes: Table
    failed: int
    fresh: int

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {"ways": self.ways, "failed": self.failed, "made": self.fresh}

    def write(self, folder: Path) -> None:
        """Write every table as a CSV file."""
        for name in ("people", "ways", "hours", "homes"):
            table: Table = getattr(self, name)
            if table:
                write_table(folder / f"{name}.csv", table, tuple(table[0]))


def replay(
    people: Sequence[PersonDays],
    *,
    budget: float,
    ways: Sequence[str] = tuple(STRATEGIES),
    when_spent: WhenSpent = "repeat",
    seeds: int = 1,
    folder: Path | None = None,
    workers: Executor | None = None,
    progress: ProgressCallback | None = None,
) -> ReplayResult:
    """Share people's days in several ways at the same daily budget, and attack what came out.

    Args:
        people: from :func:`privacygames.replays.learn_days`.
        budget: ε per unit of distance, in every 24 hours.
        ways: which, by name.
        when_spent: what becomes of requests that the budget has no room for.
        seeds: how often each is repeated with other draws.
        folder: where finished replays are kept, and never made again; None: in memory.
        workers: who does the work; by default this process.
        progress: called with a :class:`privacygames.Progress` after each; what it raises ends the replay.
    """
    jobs = _jobs(as_list(people, "people"), budget, as_list(ways, "ways"), when_spent, seeds)
    store = Store(None if folder is None else folder / CELLS)
    left = unfinished(jobs, store.results)
    started, done = monotonic(), len(jobs) - len(left)
    with closing((workers or SerialExecutor()).work(left)) as finished:
        for key, measured in finished:
            store.add(key, measured)
            done += 1
            if progress is not None:
                seconds, message = monotonic() - started, f"{done} of {len(jobs)} replays"
                progress(Progress(job="replay", done=done, total=len(jobs), seconds=seconds, message=message))
    found = [(job, store.results[job.key]) for job in jobs]
    return _summary(found, len(left))


def _jobs(
    people: list[PersonDays], budget: float, ways: list[str], when_spent: WhenSpent, seeds: int
) -> list[ReplayTask]:
    if not people or not all(isinstance(each, PersonDays) for each in people):
        raise InvalidProblem("a replay needs people: a list from learn_days")
    if not (is_number(budget) and 0 < budget < np.inf):
        raise InvalidProblem(f"budget is {repr(budget)[:40]}; it must be a positive number")
    require_choice(when_spent, get_args(WhenSpent), "when_spent")
    for way in ways:
        require_choice(way, tuple(STRATEGIES), "a way of sharing")
    if not ways or not is_integer(seeds):
        raise InvalidProblem("a replay needs at least one way of sharing and one seed")
    return [
        ReplayTask(person, way, DailyBudget(budget, person.requests, person.places, when_spent), seed)
        for person in people
        for way in dict.fromkeys(ways)
        for seed in range(seeds)
    ]


def _summary(found: list[tuple[ReplayTask, Measured]], fresh: int) -> ReplayResult:
    done = [(job, _with_home(job, measured)) for job, measured in found if measured["status"] == DONE]
    of_way: dict[str, list[Measured]] = {}
    for job, measured in done:
        of_way.setdefault(job.way, []).append(measured)
    return ReplayResult(
        people=[_settings(job) | {name: measured.get(name) for name in QUANTITIES} for job, measured in done],
        ways=[{"way": way} | {name: _mean(each, name) for name in QUANTITIES} for way, each in of_way.items()],
        hours=[_hour(way, each, hour) for way, each in of_way.items() for hour in range(HOURS)],
        homes=[row for way, each in of_way.items() for row in _homes(way, each)],
        failed=len(found) - len(done),
        fresh=fresh,
    )


def _settings(job: ReplayTask) -> dict[str, Value]:
    daily = job.daily
    return {
        "person": job.days.label,
        "way": job.way,
        "seed": job.seed,
        "budget": daily.budget,
        "expected_requests": daily.requests,
        "expected_places": daily.places,
    }


def _with_home(job: ReplayTask, measured: Measured) -> Measured:
    """What was measured; without home where too few requests came at night to average, or to tell where home is."""
    if job.days.at_night.sum() >= LEAST_NIGHT:
        return measured
    return {name: value for name, value in measured.items() if not name.startswith("home")}


def _mean(measured: list[Measured], name: str) -> float | None:
    values = [float(value) for value in (each.get(name) for each in measured) if isinstance(value, int | float)]
    return float(np.mean(values)) if values else None


def _hour(way: str, measured: list[Measured], hour: int) -> dict[str, Value]:
    """Averages over all requests of an hour of the day; of the spending, over people and days."""
    requests = sum(int(each[f"requests at {hour}"] or 0) for each in measured)
    days = sum(int(each["days"] or 0) for each in measured)
    row: dict[str, Value] = {"way": way, "hour": hour, "requests": requests}
    for name in HOURLY:
        total = sum(float(each[f"{name} at {hour}"] or 0.0) for each in measured)
        over = days if name == "spent" else requests
        row[name] = total / over if over else None
    return row


def _homes(way: str, measured: list[Measured]) -> Table:
    """After each day; who has shared for fewer days counts with her last."""
    known = [[name for name in each if name.startswith("home after")] for each in measured]
    lived = [(each, names) for each, names in zip(measured, known, strict=True) if names]
    longest = max((len(names) for _, names in lived), default=0)
    rows: Table = []
    for day in range(1, longest + 1):
        errors = [each[f"home after {min(day, len(names))}"] for each, names in lived]
        mean = float(np.mean([error for error in errors if isinstance(error, float)]))
        rows.append({"way": way, "days": day, "people": len(lived), "home": mean})
    return rows
