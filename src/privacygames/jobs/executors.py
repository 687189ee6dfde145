"""Executors of jobs: this process, several processes, or a Dask cluster. Results are yielded as jobs finish."""

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from secrets import token_hex
from typing import Any, Protocol, TypeVar

from privacygames.errors import Field, InvalidProblem, SolveFailed, Status
from privacygames.threads import (
    DEVICE_VARIABLE,
    available_processors,
    divide_processors,
    limit_threads,
    single_threaded_blas,
)

MAX_CONSECUTIVE_DEATHS = 3
"""Deaths of workers in a row, without a finished task in between, after which the run fails: two may be chance."""

SCHEDULER_TIMEOUT = 10.0
"""Seconds to wait for a connection to the scheduler: longer than a busy one needs."""


class Job(Protocol):
    """An independent piece of work. It is pickled and sent to other processes: keep it small."""

    @property
    def key(self) -> str:
        """Identifies the work: equal for equal work in every process and run."""
        ...

    def run(self) -> Any:
        """Do the work and return its result."""
        ...


TaskResults = Generator[tuple[str, Any], None, None]
"""Pairs of key and result, in the order in which tasks finish. Closing the generator stops all remaining work."""


class Executor(Protocol):
    """Runs tasks in any order, and yields each result with its task's key as soon as it is there."""

    def run(self, tasks: Sequence[Job]) -> TaskResults:
        """Run every task."""
        ...


class SerialExecutor:
    """Runs tasks in this process, one after the other."""

    def run(self, tasks: Sequence[Job]) -> TaskResults:
        """Run every task."""
        for task in tasks:
            yield task.key, task.run()


class ProcessExecutor:
    """Runs tasks in several processes of this machine.

    If one dies, new ones take over its unfinished tasks; none outlives this process.

    Args:
        jobs: number of processes; by default one for each available processor.
    """

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = jobs or available_processors()

    def run(self, tasks: Sequence[Job]) -> TaskResults:
        """Run every task."""
        remaining = {task.key: task for task in tasks}
        deaths = 0
        while remaining:
            try:
                for key, result in self._run_pool(list(remaining.values())):
                    del remaining[key]
                    deaths = 0
                    yield key, result
            except BrokenProcessPool:
                deaths += 1
                if deaths >= MAX_CONSECUTIVE_DEATHS:
                    raise SolveFailed(
                        f"processes died {deaths} times in a row with nothing finished; with too little memory, fewer "
                        "jobs help. What was finished is kept.",
                        status=Status.WORKERS_DIED,
                    ) from None

    def _run_pool(self, tasks: Sequence[Job]) -> TaskResults:
        other_children = set(multiprocessing.active_children())
        jobs = min(self.jobs, len(tasks))
        pool = ProcessPoolExecutor(
            jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_initialise_worker, initargs=(jobs,)
        )
        completed = False
        try:
            futures = {pool.submit(run_alone, task): task.key for task in tasks}
            yield from _results(futures)
            completed = True
        finally:
            if not completed:  # interrupted: results of running tasks are not wanted
                for child in set(multiprocessing.active_children()) - other_children:
                    child.kill()
            # Wait even for killed processes: until the pool's thread has reaped them, active_children() lists them.
            pool.shutdown(wait=True, cancel_futures=True)


class DaskClient(Protocol):
    """The part of a ``dask.distributed.Client`` that this library uses."""

    def submit(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Start a task and return its future."""
        ...


class DaskCluster(Protocol):
    """The part of a Dask cluster, such as ``dask.distributed.LocalCluster``, that this library uses."""

    @property
    def scheduler_address(self) -> str:
        """The address of its scheduler."""
        ...


Scheduler = str | DaskClient | DaskCluster
"""A Dask cluster to work on: the address of its scheduler, a ``Client`` that is connected to it, or the cluster."""


class DaskExecutor:
    """Runs tasks on a Dask cluster whose workers have this library installed.

    Args:
        scheduler: the address of the scheduler, such as ``tcp://10.0.0.1:8786``; a ``dask.distributed.Client``, which
            is left open; or a cluster, such as a ``dask.distributed.LocalCluster``.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler

    def run(self, tasks: Sequence[Job]) -> TaskResults:
        """Run every task; those of a worker that dies are given to another."""
        try:
            import distributed
        except ImportError:
            raise InvalidProblem("a cluster needs Dask: pip install 'privacygames[cluster]'") from None
        cluster: Any = distributed
        lost_tasks = 0
        with self._client(cluster) as client:
            # Dask shares results between clients by key; tasks read files, so a result may not be shared: unique keys.
            run_id = token_hex(8)
            pending = {}
            for task in tasks:
                future = client.submit(_run_on_cluster, task, key=f"privacygames-{run_id}-{task.key}")
                pending[future.key] = task.key, future
            try:
                for future in cluster.as_completed([future for _, future in pending.values()], loop=client.loop):
                    key, _ = pending.pop(future.key)  # a future that nobody holds frees its result on the worker
                    try:
                        result = future.result()
                    except cluster.KilledWorker:
                        lost_tasks += 1
                        continue
                    except CancelledError:
                        raise SolveFailed(
                            "the cluster was closed before all tasks were done. What was finished is kept.",
                            status=Status.WORKERS_DIED,
                        ) from None
                    yield key, result
            finally:
                if pending and client.status == "running":  # interrupted: what has not started is not wanted
                    client.cancel([future for _, future in pending.values()])
        if lost_tasks:
            raise SolveFailed(
                f"{lost_tasks} tasks killed every worker that tried; with too little memory, fewer threads a worker "
                "help. What was finished is kept.",
                status=Status.WORKERS_DIED,
            )

    @contextmanager
    def _client(self, distributed: Any) -> Iterator[Any]:
        """A client of the cluster: the one given, or one that is closed afterwards."""
        scheduler: Any = self.scheduler
        if isinstance(scheduler, distributed.Client):
            if scheduler.asynchronous:
                raise InvalidProblem(
                    Field("scheduler"), " is an asynchronous Client: give one that is not, or its address"
                )
            yield scheduler
            return
        address = scheduler if isinstance(scheduler, str) else getattr(scheduler, "scheduler_address", None)
        if not isinstance(address, str):
            raise InvalidProblem(
                Field("scheduler"),
                " must be the address of a Dask scheduler (tcp://host:8786), a dask.distributed.Client, or a cluster "
                "such as LocalCluster",
            )
        try:  # a cluster also says how to connect: with which certificates, say
            client = distributed.Client(scheduler, timeout=SCHEDULER_TIMEOUT, set_as_default=False)
        except (OSError, ValueError):
            raise InvalidProblem(f"no Dask scheduler answers at {address}") from None
        with client:
            yield client


def _run_on_cluster(task: Job) -> Any:
    """Run a task on one processor: a worker has as many threads as it should use processors."""
    with limit_threads(1):
        return run_alone(task)


def run_alone(task: Job) -> Any:
    """Run a task with single-threaded linear algebra, since other tasks use the other cores."""
    with single_threaded_blas():
        return task.run()


def _results(futures: dict["Future[Any]", str]) -> TaskResults:
    for future in as_completed(futures):
        yield futures[future], future.result()


def _initialise_worker(jobs: int) -> None:
    """Use this worker's share of the processors; leave Ctrl-C to the parent process, and end when it ends.

    Several workers do not share a GPU, where nobody says so: each on a processor of its own takes half as long.
    """
    divide_processors(jobs)
    if jobs > 1:
        os.environ.setdefault(DEVICE_VARIABLE, "host")
    bind_to_parent()


def bind_to_parent() -> None:
    """Leave Ctrl-C to the parent process, and end when it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def require_sendable(executor: Executor, value: object, what: str) -> None:
    """Raise where a value cannot be sent to the processes of an executor, before any of them is started.

    Args:
        executor: the executor.
        value: the value.
        what: what it is, for the message.
    """
    if not isinstance(executor, ProcessExecutor):  # Dask can send functions that are defined anywhere
        return
    try:
        pickle.dumps(value)
    except (pickle.PicklingError, AttributeError, TypeError):
        raise InvalidProblem(
            f"{what} cannot be sent to other processes: define functions and classes at the top of a module, give them "
            "no progress=, or leave ",
            Field("jobs"),
            " at 1",
        ) from None


def executor_for(jobs: int | None, scheduler: Scheduler | None) -> Executor:
    """The executor for these options: a Dask cluster, this process for one job, or several processes."""
    if scheduler is not None:
        return DaskExecutor(scheduler)
    if jobs is not None and jobs < 1:
        raise InvalidProblem(Field("jobs"), f" is {jobs}; it must be 1 or more")
    processes = ProcessExecutor(jobs)
    return SerialExecutor() if processes.jobs == 1 else processes


AnyJob = TypeVar("AnyJob", bound=Job)


def remaining_tasks(tasks: Iterable[AnyJob], finished_keys: Iterable[str]) -> list[AnyJob]:
    """The tasks whose keys are not finished, each once, sorted by key.

    Keys are unrelated to how long a task takes, so the time so far predicts the time that remains.
    """
    finished = set(finished_keys)
    return [task for key, task in sorted({task.key: task for task in tasks}.items()) if key not in finished]
