"""What a design is said to take, against what it takes."""

import subprocess
import sys
from pathlib import Path

import pytest

import privacygames as pg
from privacygames.solvers import memory

DESIGN = """
import re, privacygames as pg
from pathlib import Path
problem = pg.Problem(pg.Prior.uniform(pg.Grid(12, 12)), cost="euclidean")
pg.design(problem, epsilon=1.0, worst_case={worst_case})
print(pg.estimate_solve(problem, epsilon=1.0, worst_case={worst_case}).gigabytes)
# Not ru_maxrss: it starts from what the process that started this one had.
print(int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1]) / 2**20)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak memory is read from /proc")
@pytest.mark.parametrize("worst_case", [False, True])
def test_memory_against_reality(worst_case: bool) -> None:
    script = DESIGN.format(worst_case=worst_case)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    said, used = map(float, done.stdout.split())
    assert 0.4 * used <= said <= 2.5 * used


def test_more_takes_longer_and_more_threads_less() -> None:
    small, large = pg.SolveEstimate(50, 50), pg.SolveEstimate(300, 300)
    assert large.seconds > 10 * small.seconds
    assert large.gigabytes > small.gigabytes
    assert pg.SolveEstimate(300, 300, every_cost_counts=True).gigabytes > large.gigabytes


def test_dominated_answers_and_equal_secrets_do_not_count() -> None:
    prior = pg.Prior(pg.Grid(4, 4), [0.2] * 5 + [0.0] * 11)
    effort = pg.estimate_solve(pg.Problem(prior), epsilon=1.0)
    assert (effort.secrets, effort.observables) == (16, 5)
    assert pg.estimate_solve(pg.Problem(prior), epsilon=1.0, cost_at_most=0.5).observables == 5


def test_what_does_not_fit_says_so_with_an_estimate_and_what_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privacygames.solvers.solve_estimate.available_gigabytes", lambda: 1 / 16)
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(15, 15)), cost="euclidean")
    with pytest.raises(pg.TooLarge, match=r"GiB of memory and .* for 225 secrets .*fewer_outputs"):
        pg.design(problem, epsilon=1.0)
    assert memory.available_gigabytes() > 1 / 16


def test_long_designs_say_what_is_expected_first() -> None:
    heard: list[str] = []

    def listen(progress: pg.Progress) -> None:
        heard.append(progress.message)
        raise pg.Cancelled

    problem = pg.Problem(pg.Prior.uniform(pg.Grid(12, 12)), cost="euclidean")
    with pytest.raises(pg.Cancelled):
        pg.design(problem, epsilon=1.0, time_limit=1e-3, progress=listen)
    assert heard[0].startswith("expected: about")
    assert "time limit" in heard[0]
