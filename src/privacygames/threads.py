"""How many processors to work with: those this process may use, and never more than it was told."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import TypeVar

from threadpoolctl import ThreadpoolController

VARIABLE = "PRIVACYGAMES_THREADS"
"""An environment variable that limits the threads of this process and those it starts."""

QUOTA = "/sys/fs/cgroup/cpu.max"
"""Where Linux says how much processor time a container may use."""

WORTH_A_THREAD = 8_000_000
"""So many entries to be looked at are worth a thread of their own: to hand over less takes as long as to do it."""

Result = TypeVar("Result")


def in_threads(work: Callable[[int], Result], count: int, entries: int) -> list[Result]:
    """What ``work`` gives for 0 to ``count``, in that order, by as many threads as so many entries are worth."""
    threads = min(processors(), entries // WORTH_A_THREAD)
    if threads <= 1:
        return [work(item) for item in range(count)]
    edges = [count * part // threads for part in range(threads + 1)]

    def part(at: int) -> list[Result]:
        return [work(item) for item in range(edges[at], edges[at + 1])]

    with ThreadPoolExecutor(threads) as pool:
        return [each for found in pool.map(part, range(threads)) for each in found]


class _Askers:
    """How many ask for plain algebra at this moment, and what gives libraries their threads back after the last."""

    lock, count, after = Lock(), 0, ExitStack()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """As long as this lasts, anywhere, libraries do linear algebra by one thread: it is small, or not all there is."""
    with _Askers.lock:
        if not _Askers.count:
            _Askers.after.enter_context(_libraries().limit(limits=1, user_api="blas"))
        _Askers.count += 1
    try:
        yield
    finally:
        with _Askers.lock:
            _Askers.count -= 1
            if not _Askers.count:
                _Askers.after.close()


@cache
def _libraries() -> ThreadpoolController:
    """The libraries for linear algebra: to look for them takes a hundred times as long as to tell them."""
    import_module("scipy.linalg")  # which brings its own
    return ThreadpoolController()


def processors() -> int:
    """The processors of this machine, less those that affinity, a container's quota or the environment rule out."""
    try:
        found = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        found = os.cpu_count() or 1
    told = os.environ.get(VARIABLE, "")
    limits = [found, _quota(), int(told) if told.isdecimal() else None]
    return max(1, min(limit for limit in limits if limit is not None))


def share_processors(among: int) -> None:
    """From now on, this process and those it starts use no more than their share of the processors."""
    os.environ[VARIABLE] = str(max(1, processors() // among))


def _quota() -> int | None:
    """How many whole processors a container may use; None where nothing limits it."""
    try:
        quota, period = Path(QUOTA).read_text(encoding="ascii").split()
        return max(1, int(quota) // int(period))
    except (OSError, ValueError):
        return None
