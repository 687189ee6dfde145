"""Runs many cases in processes of their own, ends those that hang, and counts outcomes."""

import os
import signal
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path

from fuzz.generator import generate
from fuzz.judge import OUTCOMES, WRONG, Outcome, judge

TIME_LIMIT = 10.0
"""Seconds the library is given for a design."""

PATIENCE = 3.0
"""A process is ended when a design takes this many times its limit of processor time."""

SEARCHES = 6.0
"""Searches and comparisons, which take no time limit, get this many times a design's."""

REFERENCE_TIME = 200.0
"""Seconds of processor time the reference is given; beyond that a case is undecided."""

CLOCK = 10.0
"""On a busy machine a process is ended after this many times as long on the clock."""


@dataclass(frozen=True)
class Result:
    """A case, by its seed, and what came of it."""

    seed: int
    kind: str
    traits: tuple[str, ...]
    outcome: Outcome


def run(seeds: Iterable[int], processes: int, time_limit: float = TIME_LIMIT) -> Iterator[Result]:
    """Results as they come."""
    todo = iter(seeds)
    workers = [_Worker(time_limit) for _ in range(processes)]
    try:
        busy = [worker for worker in workers if worker.start(todo)]
        while busy:
            ready = wait([worker.link for worker in busy], timeout=0.5)
            for worker in list(busy):
                result = worker.read() if worker.link in ready else worker.overdue()
                if result is not None:
                    yield result
                    if not worker.start(todo):
                        busy.remove(worker)
    finally:
        for worker in workers:
            worker.end()


@dataclass
class _Worker:
    """A process that judges one case after the other; another one takes its place where it is ended."""

    time_limit: float
    seed: int = 0
    kind: str = "not generated"
    traits: tuple[str, ...] = ()
    phase: str = "posing"
    since: float = 0.0
    worked: float = 0.0
    link: Connection = field(init=False)

    def __post_init__(self) -> None:
        self.spawn()

    def spawn(self) -> None:
        context = get_context("spawn")
        self.link, there = context.Pipe()
        self.process = context.Process(target=_serve, args=(there, self.time_limit), daemon=True)
        self.process.start()
        there.close()

    def start(self, todo: Iterator[int]) -> bool:
        """Give it the next seed, if there is one."""
        seed = next(todo, None)
        if seed is None:
            return False
        self.seed, self.kind, self.traits = seed, "not generated", ()
        self.enter("posing")
        self.link.send(seed)
        return True

    def read(self) -> Result | None:
        """What it says: that it has come to another phase, or a result."""
        try:
            said = self.link.recv()
        except (EOFError, OSError):
            return self.replaced("raw error", f"the process died while {self.phase}")
        if isinstance(said, Result):
            return said
        phase, self.kind, self.traits = said
        self.enter(phase)
        return None

    def overdue(self) -> Result | None:
        """A result if it has worked for too long, and was ended."""
        seconds = self.time_limit * PATIENCE * (1 if self.kind[:4] not in ("find", "comp") else SEARCHES)
        limit = seconds if self.phase == "asking" else REFERENCE_TIME
        clock = time.monotonic() - self.since
        if clock > limit and (_processor_time(self.process.pid) - self.worked > limit or clock > CLOCK * limit):
            name = "late" if self.phase == "asking" else "undecided"
            return self.replaced(name, f"ended after {clock:.0f} s while {self.phase}")
        return None

    def replaced(self, name: str, detail: str) -> Result:
        result = Result(self.seed, self.kind, self.traits, Outcome(name, detail, time.monotonic() - self.since))
        self.end()
        self.spawn()
        return result

    def enter(self, phase: str) -> None:
        self.phase, self.since, self.worked = phase, time.monotonic(), _processor_time(self.process.pid)

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()
        self.link.close()


def _processor_time(process: int | None) -> float:
    """Seconds of processor time a process has used; 0 where that cannot be told."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _serve(link: Connection, time_limit: float) -> None:
    """What a process does: judge one seed after the other."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, OSError):
        while True:
            link.send(_one(link.recv(), time_limit, link))


def _one(seed: int, time_limit: float, link: Connection) -> Result:
    try:
        case = generate(seed)
    except Exception:
        return Result(seed, "not generated", (), Outcome("raw error", traceback.format_exc(limit=-3)))
    link.send(("asking", case.kind, case.traits))
    try:
        outcome = judge(case, time_limit=time_limit, answered=lambda: link.send(("judging", case.kind, case.traits)))
    except Exception:
        outcome = Outcome("undecided", traceback.format_exc(limit=-3))
    return Result(seed, case.kind, case.traits, outcome)


def table(results: list[Result]) -> str:
    """Kinds × outcomes."""
    used = [name for name in OUTCOMES if any(each.outcome.name == name for each in results)]
    counts = Counter((each.kind, each.outcome.name) for each in results)
    kinds = sorted({each.kind for each in results})
    width = max(map(len, [*kinds, "all"]), default=3)
    lines = ["  ".join([" " * width, *used, "all"])]
    for kind in [*kinds, "all"]:
        row = [sum(counts[each, name] for each in (kinds if kind == "all" else [kind])) for name in used]
        cells = [f"{count or '':>{len(name)}}" for count, name in zip([*row, sum(row)], [*used, "all"], strict=True)]
        lines.append("  ".join([kind.ljust(width), *cells]))
    return "\n".join(lines)


def findings(results: list[Result]) -> list[Result]:
    """What somebody should look at, the worst first."""
    order = [*WRONG, "raw error", "late", "warning", "solve failed", "undecided"]
    return sorted((each for each in results if each.outcome.finding), key=lambda each: order.index(each.outcome.name))
