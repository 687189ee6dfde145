"""How many processors this process may use, and work on several of them at the same time."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TypeVar

from threadpoolctl import ThreadpoolController

from privacygames.blas_routines import exported_routines

THREADS_VARIABLE = "PRIVACYGAMES_THREADS"
"""The environment variable that limits the threads of this process and of those it starts."""

DEVICE_VARIABLE = "PRIVACYGAMES_DEVICE"
"""Environment variable with the device that this process, and those it starts, solve on: "auto", "host", "cuda", …"""

CGROUP_QUOTA_FILE = "/sys/fs/cgroup/cpu.max"
"""The file in which Linux states a container's limit on processor time."""

ENTRIES_PER_THREAD = 8_000_000
"""Array entries to be read that justify one more thread: for fewer, starting it takes as long as the work."""

_task_threads: ContextVar[int | None] = ContextVar("threads of the task that is running", default=None)
"""The limit that :func:`limit_threads` sets for the calling thread; None without one."""

Result = TypeVar("Result")


def map_in_threads(work: Callable[[int], Result], count: int, entries: int) -> list[Result]:
    """``[work(0), …, work(count - 1)]``, computed by one thread for every ``ENTRIES_PER_THREAD`` of ``entries``."""
    threads = entries // ENTRIES_PER_THREAD
    threads = min(threads, available_processors()) if threads > 1 else 1  # which reads files
    if threads <= 1:
        return [work(item) for item in range(count)]
    from concurrent.futures import ThreadPoolExecutor

    edges = [count * part // threads for part in range(threads + 1)]

    def work_on_part(part: int) -> list[Result]:
        return [work(item) for item in range(edges[part], edges[part + 1])]

    with ThreadPoolExecutor(threads) as pool:
        return [result for results in pool.map(work_on_part, range(threads)) for result in results]


class _BlasLimit:
    """How many callers limit BLAS to one thread at this moment, and what lifts the limit after the last of them."""

    lock, callers, lift = Lock(), 0, ExitStack()


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS libraries to one thread, in the whole process, until the last such block has ended.

    For matrices too small for several threads, and for work that runs beside other work.
    """
    with _BlasLimit.lock:
        if not _BlasLimit.callers:
            _BlasLimit.lift.enter_context(_libraries().limit(limits=1, user_api="blas"))
        _BlasLimit.callers += 1
    try:
        yield
    finally:
        with _BlasLimit.lock:
            _BlasLimit.callers -= 1
            if not _BlasLimit.callers:
                _BlasLimit.lift.close()


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS libraries that are loaded: to find them takes a hundred times as long as to limit them."""
    exported_routines()  # which loads SciPy's own
    return ThreadpoolController()


def available_processors() -> int:
    """The machine's processors, less those ruled out by affinity, a container's quota or ``PRIVACYGAMES_THREADS``."""
    try:
        usable = len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        usable = os.cpu_count() or 1
    variable = os.environ.get(THREADS_VARIABLE, "")
    limits = [usable, _container_quota(), _task_threads.get(), int(variable) if variable.isdecimal() else None]
    return max(1, min(limit for limit in limits if limit is not None))


@contextmanager
def limit_threads(count: int) -> Iterator[None]:
    """Limit :func:`available_processors` within a block, for the calling thread only.

    For tasks in processes that are not this library's own, whose environment is left alone. Where the environment of
    such a process limits its threads, that counts instead: whoever set it knows the machine.
    """
    if os.environ.get(THREADS_VARIABLE, "").isdecimal():
        yield
        return
    token = _task_threads.set(count)
    try:
        yield
    finally:
        _task_threads.reset(token)


def divide_processors(among: int) -> None:
    """Limit this process, and those it starts, to one part of its processors divided ``among`` so many."""
    os.environ[THREADS_VARIABLE] = str(max(1, available_processors() // among))


def _container_quota() -> int | None:
    """How many whole processors a container may use; None without a limit."""
    try:
        quota, period = Path(CGROUP_QUOTA_FILE).read_text(encoding="ascii").split()
        return max(1, int(quota) // int(period))
    except (OSError, ValueError):
        return None
