"""Mechanisms for many people: people a second over 12, 100 and 300 cells, and what 10,000 people take.

Run with ``make bench MANY=1``; ``--quick`` takes a few people, ``--data DIR`` takes the visits over 300 cells from the
GeoLife counts there (columns user, cell, visits) instead of invented ones, ``--jobs 1,16`` other numbers of processes.
The last column is the processor time of a fleet for everything but the designs, in one process.
"""

import argparse
import csv
import json
import platform
import resource
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any
from unittest import mock

import numpy as np

import privacygames as pg
from privacygames import designer
from privacygames.fleet import person_design
from privacygames.threads import available_processors

RESULTS = Path(__file__).parent / "results"

PEOPLE = {"12 cells": 2000, "100 cells": 100, "300 cells": 24}
"""Number of people measured: some minutes in all."""

QUICK_PEOPLE = {"12 cells": 60, "100 cells": 3, "300 cells": 2}

MANY = 10_000
"""Number of people that times are extrapolated to."""

VISITED = 64
"""Median of the number of cells that people over 300 cells visited."""

AIMS = {"12 cells": 40.0, "100 cells": 12 * 60.0, "300 cells": 2.5 * 3600.0}
"""Seconds that 10,000 people should take on two cores."""


@dataclass(frozen=True)
class Setting:
    """People over one space.

    Attributes:
        name: the size of the space.
        priors: the people.
        epsilon: of every mechanism.
    """

    name: str
    priors: dict[str, pg.Prior]
    epsilon: float

    @property
    def problems(self) -> list[pg.Problem]:
        """Each person's problem; they share their matrices."""
        first = pg.Problem(next(iter(self.priors.values())))
        return [first.with_prior(prior) for prior in self.priors.values()]


@dataclass(frozen=True)
class Row:
    """One measurement.

    Attributes:
        what: the setting and the call.
        people: number of people.
        jobs: number of processes.
        wall: seconds.
        processor: seconds of processor time, of all processes.
        start: seconds of ``wall`` until processes had started.
        besides_ms: milliseconds of processor time for each person besides the design; None where it is not separate.
    """

    what: str
    people: int
    jobs: int
    wall: float
    processor: float
    start: float
    besides_ms: float | None = None
    rate: float = field(init=False)
    seconds_of_many: float = field(init=False)

    def __post_init__(self) -> None:
        each = max(self.wall - self.start, 1e-9) / self.people
        object.__setattr__(self, "rate", 1 / each)
        object.__setattr__(self, "seconds_of_many", self.start + MANY * each)


def settings(people: dict[str, int], data: Path | None) -> Iterator[Setting]:
    """The three settings: people who may be anywhere over 12 and 100 cells, and people with habits over 300."""
    rng = np.random.default_rng(0)
    for columns, rows in ((4, 3), (10, 10)):
        name, grid = f"{columns * rows} cells", pg.Grid(columns, rows)
        counts = rng.integers(0, 30, (people[name], len(grid))) + 1
        yield Setting(name, {f"user-{n}": pg.Prior.from_counts(grid, each) for n, each in enumerate(counts)}, 1.0)
    grid = pg.Grid(20, 15, 15.0, 8.0)
    visits = invented_visits if data is None else read_visits(data)
    habits = (visits(rng) for _ in range(people["300 cells"]))
    yield Setting("300 cells", {f"user-{n}": pg.Prior.from_counts(grid, each) for n, each in enumerate(habits)}, 0.6)


def invented_visits(rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """Visits around a few places, to about 64 of 20 × 15 cells."""
    centres = np.array([[column + 0.5, row + 0.5] for row in range(15) for column in range(20)])
    places = rng.uniform((3, 3), (17, 12), (3, 2))
    nearness = np.exp(-np.hypot(*(centres[:, None] - places[None]).transpose(2, 0, 1)) / 2.5) @ (0.6, 0.3, 0.1)
    visited = min(300, max(8, round(VISITED * float(np.exp(rng.normal(0, 0.6))))))
    cells = rng.choice(300, visited, replace=False, p=nearness / nearness.sum())
    counts = np.zeros(300)
    counts[cells] = np.ceil(rng.pareto(1.0, visited) + 1e-9)
    return counts


def read_visits(data: Path) -> Callable[[np.random.Generator], np.ndarray[Any, Any]]:
    """Visits of a random GeoLife user, of those with so many cells that the median is 64."""
    counts: dict[str, np.ndarray[Any, Any]] = {}
    with (data / "geolife_beijing_cell_counts.csv").open() as file:
        for row in csv.DictReader(file):
            counts.setdefault(row["user"], np.zeros(300))[int(row["cell"])] = float(row["visits"])
    users = sorted(counts.values(), key=np.count_nonzero, reverse=True)
    while len(users) > 1 and np.median([np.count_nonzero(each) for each in users]) < VISITED:
        users.pop()

    def draw(rng: np.random.Generator) -> np.ndarray[Any, Any]:
        """A user with a few visits of their own, so that no two people are the same."""
        habits = users[int(rng.integers(len(users)))]
        return habits + (habits > 0) * rng.poisson(0.2, 300)

    return draw


def processor_seconds() -> float:
    """Processor time of this process and of those that it waited for."""
    spent = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)


def measure(what: str, people: int, jobs: int, job: Callable[[], object], start: float = 0.0) -> Row:
    """Time a job, in seconds and in processor time."""
    began, spent = perf_counter(), processor_seconds()
    job()
    return Row(what, people, jobs, perf_counter() - began, processor_seconds() - spent, start)


@contextmanager
def design_seconds() -> Iterator[list[float]]:
    """The processor time of each design of fleets that are made in this process."""
    seconds: list[float] = []
    design = designer.design_bounds

    def timed(*arguments: Any, **options: Any) -> Any:
        started = process_time()
        try:
            return design(*arguments, **options)
        finally:
            seconds.append(process_time() - started)

    with mock.patch.object(person_design, "design_bounds", timed):
        yield seconds


def seconds_to_start(jobs: int) -> float:
    """Seconds until so many processes have started and made a design too small to count."""
    yes_or_no = pg.Categories(["yes", "no"])
    tiny = [pg.Problem(pg.Prior.from_counts(yes_or_no, [1, 2 + number])) for number in range(jobs)]
    return measure("start", jobs, jobs, lambda: pg.design_many(tiny, epsilon=4.0, jobs=jobs)).wall


def measure_setting(setting: Setting, all_jobs: list[int]) -> Iterator[Row]:
    """Designs one after the other; then lists of mechanisms and fleets, in these numbers of processes."""
    count, problems = len(setting.priors), setting.problems

    def one_by_one() -> None:
        for problem in problems:
            pg.design(problem, epsilon=setting.epsilon)

    def all_at_once(jobs: int) -> None:
        pg.design_many(problems, epsilon=setting.epsilon, jobs=jobs)

    def stored(jobs: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            pg.fleet.design(setting.priors, out=f"{folder}/fleet", epsilon=setting.epsilon, jobs=jobs)

    pg.design(problems[0], epsilon=setting.epsilon)  # imports, and whatever is computed once in a process
    yield measure(f"{setting.name}: design, one by one", count, 1, one_by_one)
    for jobs in all_jobs:
        start = 0.0 if jobs == 1 else seconds_to_start(jobs)
        yield measure(f"{setting.name}: design_many", count, jobs, partial(all_at_once, jobs), start)
        with design_seconds() as designs:
            row = measure(f"{setting.name}: fleet.design", count, jobs, partial(stored, jobs), start)
        yield replace(row, besides_ms=1000 * (row.processor - sum(designs)) / count) if jobs == 1 else row


def as_text(row: Row) -> str:
    """A line of Markdown."""
    aim = AIMS[row.what.partition(":")[0]]
    besides = "" if row.besides_ms is None else f"{row.besides_ms:.2f}"
    return (
        f"| {row.what} | {row.jobs} | {row.people} | {row.rate:.3g} | {1000 * row.processor / row.people:.3g} | "
        f"{duration(row.seconds_of_many)} | {duration(aim)} | {besides} |"
    )


def duration(seconds: float) -> str:
    """Seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


HEAD = """| call | processes | people | people/s | processor ms each | 10,000 people | aim, 2 cores | besides, ms |
|---|---:|---:|---:|---:|---:|---:|---:|"""


def main() -> None:
    """Run all settings; only complete runs are written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few people")
    parser.add_argument("--data", type=Path, help="a folder with GeoLife counts")
    parser.add_argument("--jobs", default="1,2", help="numbers of processes, with commas")
    options = parser.parse_args()
    people = QUICK_PEOPLE if options.quick else PEOPLE
    machine = f"{platform.machine()}, {available_processors()} cores, Python {platform.python_version()}"
    habits = "invented" if options.data is None else "of GeoLife users"
    print(f"{machine}; visits to 300 cells: {habits}\n\n{HEAD}", flush=True)
    rows = []
    for setting in settings(people, options.data):
        for row in measure_setting(setting, [int(jobs) for jobs in options.jobs.split(",")]):
            rows.append(row)
            print(as_text(row), flush=True)
    if options.quick:
        return
    RESULTS.mkdir(exist_ok=True)
    content = {"machine": machine, "visits": habits, "rows": [asdict(row) for row in rows]}
    (RESULTS / "many.json").write_text(json.dumps(content, indent=1) + "\n")
    table = "\n".join(map(as_text, rows))
    (RESULTS / "many.md").write_text(REPORT.format(machine=machine, habits=habits, table=f"{HEAD}\n{table}"))


REPORT = """# Many people

Written by `make bench MANY=1`, in one run, on {machine}. Over 12 and 100 cells people may be anywhere (ε = 1 a
cell); over 300 cells they visited about 64 in the median (ε = 0.6 per km), and their visits are {habits}. `design, one
by one` is a loop over `pg.design`; `fleet.design` stores everybody's mechanism in a folder as well. Times of 10,000
people are extrapolated; the start of processes counts once. The last column is the processor time of a fleet for
everything but the designs.

{table}
"""


if __name__ == "__main__":
    main()
