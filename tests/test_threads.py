"""How many processors are used: what the machine, the container and the environment allow, whichever is least."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from privacygames import threads
from privacygames.blas_routines import exported_routines


@pytest.fixture
def eight(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A process that may run on eight processors, in a container with a file that may set a quota."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(threads, "CGROUP_QUOTA_FILE", str(tmp_path / "cpu.max"))
    monkeypatch.delenv(threads.THREADS_VARIABLE, raising=False)
    return tmp_path / "cpu.max"


@pytest.mark.parametrize(
    ("quota", "told", "found"),
    [
        *((None, None, 8), ("max 100000", None, 8), ("250000 100000", None, 2), ("50000 100000", None, 1)),
        *(
            (None, "3", 3),
            ("400000 100000", "3", 3),
            (None, "99", 8),
            (None, "many", 8),
            (None, "0", 1),
            ("?", None, 8),
        ),
    ],
)
def test_the_least_of_what_is_allowed(
    eight: Path, monkeypatch: pytest.MonkeyPatch, quota: str | None, told: str | None, found: int
) -> None:
    if quota is not None:
        eight.write_text(quota)
    if told is not None:
        monkeypatch.setenv(threads.THREADS_VARIABLE, told)
    assert threads.available_processors() == found


@pytest.mark.usefixtures("eight")
@pytest.mark.parametrize(("among", "each"), [(1, 8), (2, 4), (3, 2), (8, 1), (20, 1)])
def test_workers_share_them(monkeypatch: pytest.MonkeyPatch, among: int, each: int) -> None:
    monkeypatch.setenv(threads.THREADS_VARIABLE, "8")  # so that what is set is undone
    threads.divide_processors(among)
    assert threads.available_processors() == each


@pytest.mark.usefixtures("eight")
def test_a_task_is_limited_unless_its_process_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with threads.limit_threads(1):
        assert threads.available_processors() == 1
        with ThreadPoolExecutor(1) as pool:  # beside it, nobody is
            assert pool.submit(threads.available_processors).result() == 8
    assert threads.available_processors() == 8
    monkeypatch.setenv(threads.THREADS_VARIABLE, "4")
    with threads.limit_threads(1):
        assert threads.available_processors() == 4


@pytest.mark.parametrize("entries", [0, threads.ENTRIES_PER_THREAD, 3 * threads.ENTRIES_PER_THREAD])
def test_work_in_threads_comes_back_in_order(entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "available_processors", lambda: 3)
    assert threads.map_in_threads(lambda item: item**2, 7, entries) == [0, 1, 4, 9, 16, 25, 36]
    assert threads.map_in_threads(lambda item: item**2, 0, entries) == []


def test_algebra_is_plain_until_the_last_who_asked_is_done() -> None:
    exported_routines()  # loads NumPy's and SciPy's libraries, if no other test has; others may have loaded more

    def blas_threads() -> set[int]:
        own = [each for each in threadpool_info() if "numpy" in each["filepath"] or "scipy" in each["filepath"]]
        return {each["num_threads"] for each in own if each["user_api"] == "blas"}

    with threadpool_limits(2, "blas"):
        before = blas_threads()
        first, second = threads.single_threaded_blas(), threads.single_threaded_blas()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)  # as where two threads design, and one is done
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before
