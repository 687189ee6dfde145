"""Who does the work: this process, several processes, or a Dask cluster. Results come back as they are finished."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from secrets import token_hex
from typing import Any, Protocol, TypeVar

from privacygames.errors import Field, InvalidProblem, SolveFailed, Status
from privacygames.threads import available_processors, divide_processors, single_threaded_blas

FRUITLESS = 3
"""So many times in a row may workers die without a single task finished in between."""

PATIENCE = 10.0
"""How many seconds a scheduler has to answer."""


class Job(Protocol):
    """A piece of work that knows nothing of others. It is sent to other processes: keep it small."""

    @property
    def key(self) -> str:
        """The same for the same work, whoever asks for it and whenever."""
        ...

    def run(self) -> Any:
        """Do it, and return what came of it."""
        ...


Finished = Generator[tuple[str, Any], None, None]
"""Results as they come. Closing it stops the work; nothing goes on behind one's back."""


class Executor(Protocol):
    """Something that does tasks, in any order, giving each result with the task's key as soon as there is one."""

    def work(self, tasks: Sequence[Job]) -> Finished:
        """Do every task."""
        ...


class SerialExecutor:
    """This process, one task after the other."""

    def work(self, tasks: Sequence[Job]) -> Finished:
        """Do every task."""
        for task in tasks:
            yield task.key, task.run()


class ProcessExecutor:
    """Several processes of this machine. If one dies, others take over what was not finished; none outlives this one.

    Args:
        jobs: how many; by default as many as there are cores.
    """

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = jobs or available_processors()

    def work(self, tasks: Sequence[Job]) -> Finished:
        """Do every task."""
        left = {task.key: task for task in tasks}
        deaths = 0
        while left:
            try:
                for key, result in self._round(list(left.values())):
                    del left[key]
                    deaths = 0
                    yield key, result
            except BrokenProcessPool:
                deaths += 1
                if deaths >= FRUITLESS:
                    raise SolveFailed(
                        f"processes died {deaths} times in a row with nothing finished; with too little memory, fewer "
                        "jobs help. What was finished is kept.",
                        status=Status.WORKERS_DIED,
                    ) from None

    def _round(self, tasks: Sequence[Job]) -> Finished:
        before = set(multiprocessing.active_children())
        jobs = min(self.jobs, len(tasks))
        pool = ProcessPoolExecutor(
            jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_begin, initargs=(jobs,)
        )
        done = False
        try:
            futures = {pool.submit(run_alone, task): task.key for task in tasks}
            yield from _results(futures)
            done = True
        finally:
            if not done:  # interrupted: nobody waits for what is under way
                for child in set(multiprocessing.active_children()) - before:
                    child.kill()
            # Waiting also where processes were killed: the pool's own thread reaps them, and until it has, they are
            # there for everybody else.
            pool.shutdown(wait=True, cancel_futures=True)


class DaskExecutor:
    """A Dask cluster, which must have this library installed on its workers.

    Args:
        address: of the scheduler, such as ``tcp://10.0.0.1:8786``.
    """

    def __init__(self, address: str) -> None:
        self.address = address

    def work(self, tasks: Sequence[Job]) -> Finished:
        """Do every task; what a dying worker had is given to another."""
        try:
            import distributed
        except ImportError:
            raise InvalidProblem("a cluster needs Dask: pip install 'privacygames[cluster]'") from None
        cluster: Any = distributed
        try:
            client = cluster.Client(self.address, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError):
            raise InvalidProblem(f"no Dask scheduler answers at {self.address}") from None
        lost = 0
        with client:
            # Dask gives one result to all who ask for one key, also to other clients, and tasks read files: no sharing.
            asker = token_hex(8)
            futures = [client.submit(run_alone, task, key=f"privacygames-{asker}-{task.key}") for task in tasks]
            keys = {future.key: task.key for future, task in zip(futures, tasks, strict=True)}
            for future in cluster.as_completed(futures, loop=client.loop):
                try:
                    result = future.result()
                except cluster.KilledWorker:
                    lost += 1
                    continue
                yield keys[future.key], result
        if lost:
            raise SolveFailed(
                f"{lost} tasks killed every worker that tried; with too little memory, fewer threads a worker help. "
                "What was finished is kept.",
                status=Status.WORKERS_DIED,
            )


def run_alone(task: Job) -> Any:
    """Do a task with one thread for linear algebra: the cores are taken by other tasks."""
    with single_threaded_blas():
        return task.run()


def _results(futures: dict["Future[Any]", str]) -> Finished:
    for future in as_completed(futures):
        yield futures[future], future.result()


def _begin(jobs: int) -> None:
    """Use a share of the processors; leave Ctrl-C to the process that hands out the work, and die when it dies."""
    divide_processors(jobs)
    bind_to_parent()


def bind_to_parent() -> None:
    """Leave Ctrl-C to the process that started this one, and die when it dies."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_parent, daemon=True).start()


def _die_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def executor_for(jobs: int | None, scheduler: str | None) -> Executor:
    """The workers asked for: a cluster, this process for one job, else processes."""
    if scheduler is not None:
        return DaskExecutor(scheduler)
    if jobs is not None and jobs < 1:
        raise InvalidProblem(Field("jobs"), f" is {jobs}; it must be 1 or more")
    processes = ProcessExecutor(jobs)
    return SerialExecutor() if processes.jobs == 1 else processes


AnyJob = TypeVar("AnyJob", bound=Job)


def unfinished(tasks: Iterable[AnyJob], known: Iterable[str]) -> list[AnyJob]:
    """The tasks that are not known yet, each once, in an order unrelated to how long they take.

    So that the time left can be told from the time so far.
    """
    finished = set(known)
    return [task for key, task in sorted({task.key: task for task in tasks}.items()) if key not in finished]
