"""Jobs end cleanly however they end: done, cancelled, killed, too slow, too many, too large."""

import os
import signal
from multiprocessing import active_children

import psutil
import pytest

from privacygames.studio import JobQueue, Limits, Ticket, job_queue
from studio_server import AGES, client, described, designed, over
from waiting import GUARD, wait_until

LARGE = {"invented": {"columns": 20, "rows": 20, "cost": "euclidean"}}


def test_a_killed_process_is_told_and_replaced() -> None:
    with client() as made:
        before = set(active_children())
        large = made.post("/api/problems", json=LARGE).json()["id"]
        name = made.post("/api/jobs", json={"problem": large, "bounds": {"epsilon": 0.8}}).json()["id"]
        wait_until(lambda: made.get(f"/api/jobs/{name}").json()["progress"])
        (worker,) = set(active_children()) - before
        os.kill(worker.pid or 0, signal.SIGKILL)
        job = over(made, name)
        assert job["state"] == "failed"
        assert job["error"]["status"] == "WORKERS_DIED"
        assert designed(made, described(made))["state"] == "done"
    assert set(active_children()) == before


def test_cancelling_ends_the_process() -> None:
    with client() as made:
        before = set(active_children())
        large = made.post("/api/problems", json=LARGE).json()["id"]
        body = {"problem": large, "bounds": {"epsilon": 0.8}}
        first = made.post("/api/jobs", json=body).json()["id"]
        second = made.post("/api/jobs", json=body).json()["id"]
        wait_until(lambda: made.get(f"/api/jobs/{first}").json()["progress"])
        (worker,) = set(active_children()) - before
        assert made.get(f"/api/jobs/{second}").json()["state"] == "queued"
        assert made.delete(f"/api/jobs/{second}").json()["state"] == "cancelled"
        made.delete(f"/api/jobs/{first}")
        assert over(made, first)["state"] == "cancelled"
        wait_until(lambda: not worker.is_alive())


def test_stopping_the_server_ends_what_runs() -> None:
    before = set(active_children())
    with client() as made:
        large = made.post("/api/problems", json=LARGE).json()["id"]
        made.post("/api/jobs", json={"problem": large, "bounds": {"epsilon": 0.8}})
        wait_until(lambda: set(active_children()) - before)
    assert set(active_children()) == before


def test_the_time_limit_leaves_a_valid_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_queue, "GRACE_SECONDS", GUARD)  # a process of its own takes a while to start
    with client(Limits(job_seconds=0.01)) as made:
        job = designed(made, described(made), bounds={"distortion": 0.5})
        assert job["state"] == "done", job["error"]
        view = made.get(f"/api/mechanisms/{job['result']['mechanism']}").json()
        assert view["distortion"] >= 0.5 - 1e-9


def test_a_job_that_does_not_stop_is_stopped() -> None:
    queue = JobQueue(Limits())
    ticket = queue.submit({"kind": "design", "tables": {}, "time_limit": -1000.0})
    wait_until(lambda: ticket.over)
    assert ticket.error is not None
    assert ticket.error["status"] in ("TIME_LIMIT", "INVALID")
    queue.close()


def test_a_process_that_cannot_be_started_is_told_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = JobQueue(Limits())
    spec = {"kind": "design", "tables": AGES | {"bounds": {"epsilon": 1.0}}, "time_limit": GUARD}

    def full(*_: object) -> None:
        raise OSError("no room")

    with monkeypatch.context() as crowded:
        crowded.setattr("multiprocessing.process.BaseProcess.start", full)
        first = queue.submit(spec)
        wait_until(lambda: first.over)
    assert first.error is not None
    assert first.error["status"] == "WORKERS_DIED"
    second = queue.submit(spec)
    wait_until(lambda: second.over)
    assert second.state == "done"
    queue.close()


def test_too_little_memory_is_a_clear_refusal() -> None:
    with client(Limits(memory=200 * 2**20)) as made:
        large = made.post("/api/problems", json=LARGE).json()["id"]
        name = made.post("/api/jobs", json={"problem": large, "bounds": {"epsilon": 0.8}}).json()["id"]
        job = over(made, name)
        assert job["state"] == "failed"
        assert job["error"]["status"] in ("TOO_LARGE", "WORKERS_DIED")


def test_a_thousand_designs_are_refused_politely() -> None:
    limits = Limits(queue=4)
    with client(limits) as made:
        large = made.post("/api/problems", json=LARGE).json()["id"]
        answers = [made.post("/api/jobs", json={"problem": large, "bounds": {"epsilon": 0.8}}) for _ in range(1000)]
        codes = [answer.status_code for answer in answers]
        assert set(codes) == {202, 429}
        assert codes.count(202) <= limits.queue + limits.workers + 1
        last = answers[-1]
        assert last.json()["error"]["status"] == "BUSY"
        assert int(last.headers["retry-after"]) > 0
        assert made.get("/api/about").status_code == 200


def test_an_ended_job_keeps_no_prior() -> None:
    queue = JobQueue(Limits())
    ticket: Ticket = queue.submit(
        {"kind": "design", "tables": AGES | {"bounds": {"epsilon": 1.0}}, "time_limit": GUARD}
    )
    wait_until(lambda: ticket.over)
    assert ticket.state == "done"
    assert "tables" not in ticket.spec
    queue.close()


@pytest.mark.slow
def test_memory_after_many_designs() -> None:
    """What is kept is bounded: two hundred designs take no more than forty, but for a little."""
    with client(Limits(kept=10, kept_bytes=2**20)) as made:
        process = psutil.Process()
        problem = described(made)
        sizes = []
        for number in range(200):
            assert designed(made, problem, bounds={"epsilon": 0.5 + number / 100})["state"] == "done"
            if number in (39, 199):
                children = sum(child.memory_info().rss for child in process.children(recursive=True))
                sizes.append((process.memory_info().rss, children))
        for early, late in zip(*sizes, strict=True):
            assert late - early < 60 * 2**20
