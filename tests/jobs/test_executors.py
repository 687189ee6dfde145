"""Workers that die: nothing finished is lost, and the rest is done by others."""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privacygames as pg
from interruptions import Gated, Lethal
from privacygames.jobs import (
    DaskExecutor,
    Executor,
    Job,
    ProcessExecutor,
    Scheduler,
    SerialExecutor,
    Store,
    TaskResults,
    executor_for,
    executors,
)
from privacygames.threads import DEVICE_VARIABLE
from privacygames_study import compute
from privacygames_study.people import Person
from privacygames_study.settings import Settings
from privacygames_study.tasks import Task
from support import two_workers
from waiting import GUARD, wait_until

GRID = pg.Grid(columns=3, rows=2, width=6.0, height=4.0)
PRIOR = pg.Prior(GRID, [0.4, 0.1, 0.2, 0.05, 0.25, 0.0])
CELLS = [Task(PRIOR, epsilon=epsilon) for epsilon in np.linspace(0.2, 1.4, 25).tolist()]
COSTS = {cell.key: pg.design(pg.Problem(PRIOR), epsilon=cell.epsilon).certificate.cost for cell in CELLS}


class Deadly(pg.Prior):
    """Kills whichever other process it is sent to."""

    def __reduce__(self) -> Any:
        return os._exit, (1,)


def check(results: list[tuple[str, Any]]) -> None:
    """Every cell once, with the right cost."""
    assert len(results) == len(CELLS)
    assert {key: measured["cost"] for key, measured in results} == pytest.approx(COSTS, rel=1e-6)


def test_processes_go_on_when_one_is_killed(tmp_path: Path) -> None:
    results = []
    pids: list[set[int | None]] = []
    gate = tmp_path / "open"  # only the first can be done before a process is killed
    jobs: list[Job] = [CELLS[0], *(Gated(cell, gate) for cell in CELLS[1:])]
    for result in ProcessExecutor(2).run(jobs):
        results.append(result)
        pids.append({child.pid for child in multiprocessing.active_children()})
        if len(results) == 1:
            victim = multiprocessing.active_children()[0]
            victim.kill()
            gate.touch()
    check(results)
    assert not pids[0] & pids[-1]  # the others were let go, too, and new ones took over


def test_a_cell_that_kills_every_process_is_given_up_and_the_others_kept() -> None:
    deadly = Task(Deadly(GRID, PRIOR.probabilities), epsilon=0.5)
    finished: list[str] = []
    with pytest.raises(pg.SolveFailed, match="nothing finished"):
        finished.extend(key for key, _ in ProcessExecutor(1).run([*CELLS[:2], deadly]))
    assert finished == [cell.key for cell in CELLS[:2]]


def test_leaving_early_leaves_no_process_behind() -> None:
    before = set(multiprocessing.active_children())
    work = ProcessExecutor(2).run(CELLS)
    next(work)
    pids = [child.pid for child in set(multiprocessing.active_children()) - before]
    assert len(pids) == 2
    work.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):  # neither running nor waiting to be reaped, at once
            os.kill(pid or 0, 0)
    assert set(multiprocessing.active_children()) <= before


LONG_WORK = """
import privacygames as pg
from privacygames_study import ProcessExecutor
from privacygames_study.tasks import Task

prior = pg.Prior.uniform(pg.Grid(columns=2, rows=1, width=2.0, height=1.0))
work = ProcessExecutor(2).run([Task(prior, epsilon=1 + step / 10**6) for step in range(10**4)])
next(work)
print("at work", flush=True)
input()
"""


def test_processes_die_with_the_one_that_was_killed() -> None:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", LONG_WORK], **pipes) as study:
        assert study.stdout is not None
        assert study.stdout.readline() == "at work\n"
        study.kill()
        study.communicate(timeout=GUARD)  # ends when nobody has its output open any more, its processes included


@pytest.fixture
def cluster() -> Iterator[Any]:
    with two_workers() as made:
        yield made


@dataclass(frozen=True)
class DeviceOfWorker:
    """Reports the device that a worker's designs are solved on."""

    key: str

    def run(self) -> str:
        return os.environ.get(DEVICE_VARIABLE, "auto")


@pytest.mark.parametrize(
    ("device", "jobs", "expected"), [(None, 2, "host"), (None, 1, "auto"), ("auto", 2, "auto"), ("cpu", 2, "cpu")]
)
def test_several_workers_share_no_gpu_unless_told(
    device: str | None, jobs: int, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(DEVICE_VARIABLE, raising=False)
    if device is not None:
        monkeypatch.setenv(DEVICE_VARIABLE, device)
    results = dict(ProcessExecutor(jobs).run([DeviceOfWorker("a"), DeviceOfWorker("b")]))
    assert results == {"a": expected, "b": expected}


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_goes_on_when_a_worker_is_killed(cluster: Any) -> None:
    distributed: Any = pytest.importorskip("distributed")

    class Murderous(DaskExecutor):
        """Kills a worker after the second result."""

        def run(self, tasks: Sequence[Job]) -> TaskResults:
            for count, result in enumerate(super().run(tasks)):
                yield result
                if count == 1:
                    with distributed.Client(self.scheduler, set_as_default=False) as client:
                        pids = client.run(os.getpid)
                    os.kill(min(pids.values()), signal.SIGKILL)
                    murdered.append(min(pids.values()))

    murdered: list[int] = []
    check(list(Murderous(cluster.scheduler_address).run(CELLS)))
    assert len(murdered) == 1
    settings = Settings(epsilons=(0.3, 0.6), parts=("scenario-1", "prior"), strengths=(2.0,))
    people = [Person("user 1", PRIOR, 10)]
    there = compute(people, settings, workers=DaskExecutor(cluster.scheduler_address))
    here = compute(people, settings)
    assert [row["cost"] for row in there["scenario-1"]] == pytest.approx([row["cost"] for row in here["scenario-1"]])


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_is_given_by_address_as_a_client_or_itself(cluster: Any) -> None:
    distributed: Any = pytest.importorskip("distributed")
    with distributed.Client(cluster, set_as_default=False) as client:
        given: list[Scheduler] = [cluster.scheduler_address, client, cluster]
        for scheduler in given:
            executor = executor_for(None, scheduler)
            assert isinstance(executor, DaskExecutor)
            check(list(executor.run(CELLS)))
            assert client.status == "running"  # the one given is left open
    others: list[Any] = [3, object(), type("Cluster", (), {"scheduler_address": 8786})()]
    for scheduler in others:
        with pytest.raises(pg.InvalidProblem, match=r"scheduler must be the address .*Client, or a cluster"):
            list(executor_for(None, scheduler).run(CELLS))


@pytest.mark.filterwarnings("ignore")
def test_leaving_a_client_early_takes_back_what_has_not_started(cluster: Any, tmp_path: Path) -> None:
    distributed: Any = pytest.importorskip("distributed")
    with distributed.Client(cluster, set_as_default=False) as client:
        gate = tmp_path / "open"
        work = DaskExecutor(client).run([CELLS[0], *(Gated(cell, gate) for cell in CELLS[1:])])
        next(work)
        work.close()
        gate.touch()  # for those that run
        wait_until(lambda: not any(client.processing().values()))
        assert not client.futures  # none is held, so that the cluster forgets them
        assert client.submit(os.getpid).result() > 0


@pytest.mark.filterwarnings("ignore")
def test_a_task_that_kills_every_worker_is_given_up_and_the_others_kept() -> None:
    dask: Any = pytest.importorskip("dask")
    finished: list[tuple[str, Any]] = []
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        two_workers() as cluster,
        pytest.raises(pg.SolveFailed, match="1 tasks killed every worker that tried"),
    ):
        finished.extend(DaskExecutor(cluster).run([*CELLS[:1], Lethal()]))
    assert [key for key, _ in finished] == [CELLS[0].key]


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_is_closed_meanwhile_is_said_so(cluster: Any, tmp_path: Path) -> None:
    work = DaskExecutor(cluster).run([CELLS[0], *(Gated(cell, tmp_path / "never") for cell in CELLS[1:])])
    assert next(work)[0] == CELLS[0].key
    cluster.close()
    with pytest.raises(pg.SolveFailed, match="cluster was closed"):
        list(work)


def test_a_cluster_without_dask_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(pg.InvalidProblem, match=r"a cluster needs Dask: pip install 'privacygames\[cluster\]'"):
        list(DaskExecutor("tcp://127.0.0.1:1").run(CELLS))


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_is_not_there_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(executors, "SCHEDULER_TIMEOUT", 0.5)
    with pytest.raises(pg.InvalidProblem, match="no Dask scheduler answers"):
        list(DaskExecutor("tcp://127.0.0.1:1").run(CELLS))


def test_which_workers_are_asked_for() -> None:
    chosen: list[Executor] = [executor_for(1, None), executor_for(3, None), executor_for(None, "tcp://x:1")]
    assert [type(each) for each in chosen] == [SerialExecutor, ProcessExecutor, DaskExecutor]
    with pytest.raises(pg.InvalidProblem, match="jobs is 0"):
        executor_for(0, None)


def test_a_store_in_memory_writes_nothing() -> None:
    store = Store()
    store.add("key", {"status": "done"})
    assert "key" in store
    assert store.results == {"key": {"status": "done"}}
