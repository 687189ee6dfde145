"""Many designs in one call: each is what it is by itself, wherever it is made."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privacygames as pg
from fleets import people
from privacygames.certificates import check
from privacygames.jobs import ENTRIES_PER_BATCH, batches
from support import two_workers

HABITS = list(people(16).values())
PROBLEM = pg.Problem(HABITS[0])
PROBLEMS = [PROBLEM.with_prior(prior) for prior in HABITS]
SURE = PROBLEM.with_prior(pg.Prior(PROBLEM.space, np.eye(12)[3]))
SWEEP = [pg.Bounds(epsilon=0.2 + number / 5, distortion=0.1) for number in range(16)]


@pytest.fixture
def cluster() -> Iterator[Any]:
    with two_workers() as made:
        yield made


def require_equal_to_single(made: list[pg.Mechanism], problems: list[pg.Problem], bounds: list[pg.Bounds]) -> None:
    assert len(made) == len(problems)
    for mechanism, problem, limits in zip(made, problems, bounds, strict=True):
        alone = pg.design(problem, epsilon=limits.epsilon, distortion=limits.problem_distortion)
        assert mechanism.bounds == alone.bounds == limits
        assert mechanism.problem == problem
        assert np.abs(mechanism.probabilities - alone.probabilities).max() <= 1e-6
        assert mechanism.certificate.cost == pytest.approx(alone.certificate.cost, rel=1e-6)
        assert mechanism.certificate.bound == pytest.approx(alone.certificate.bound, rel=1e-6)
        assert check(mechanism.statement) == mechanism.certificate.verification
        assert mechanism.statement.cost is problem.cost  # nobody has a copy of their own


@pytest.mark.parametrize("jobs", [None, 1, 2])
def test_people_and_points_of_a_sweep_are_what_each_is_alone(jobs: int | None) -> None:
    made = pg.design_many(iter(PROBLEMS), epsilon=0.7, jobs=jobs)
    require_equal_to_single(made, PROBLEMS, [pg.Bounds(epsilon=0.7)] * 16)
    swept = pg.design_many([PROBLEM] * 16, bounds=SWEEP, jobs=jobs)
    require_equal_to_single(swept, [PROBLEM] * 16, SWEEP)


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_makes_the_same_though_a_worker_is_killed(cluster: Any) -> None:
    distributed: Any = pytest.importorskip("distributed")
    killed: list[int] = []
    done: list[Any] = []
    with distributed.Client(cluster, set_as_default=False) as client:

        def kill_one(now: pg.Progress) -> None:
            done.append((now.done, now.total))
            if not killed:
                killed.append(min(client.run(os.getpid).values()))
                os.kill(killed[0], signal.SIGKILL)

        made = pg.design_many(PROBLEMS, epsilon=0.7, scheduler=client, progress=kill_one)
    assert done == [(number, 16) for number in range(1, 17)]
    require_equal_to_single(made, PROBLEMS, [pg.Bounds(epsilon=0.7)] * 16)


def test_equal_problems_are_designed_once() -> None:
    first, second, again = pg.design_many([PROBLEMS[0], PROBLEMS[1], pg.Problem(HABITS[0])], epsilon=0.7, jobs=1)
    assert again is first
    assert second is not first
    assert pg.design_many([], epsilon=0.7) == []


def test_points_are_designed_too() -> None:
    line = pg.Interval(0.0, 4.0)
    problems = [pg.PointProblem(pg.PointPrior(line, [1.0, x]), [1.0, 2.0, 3.0]) for x in (2.0, 3.0)]
    made = pg.design_many(problems, epsilon=0.5, jobs=2)
    assert [each.certificate.cost for each in made] == pytest.approx(
        [pg.design(problem, epsilon=0.5).certificate.cost for problem in problems], rel=1e-6
    )


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_design_that_fails_says_which(jobs: int) -> None:
    with pytest.raises(pg.Infeasible, match="no mechanism can be certified") as raised:
        pg.design_many([PROBLEM, PROBLEM, SURE], epsilon=0.7, distortion=0.3, jobs=jobs)
    assert raised.value.__notes__ == ["in the design of problem 2 of 3, counted from 0"]


def test_stopping_stops() -> None:
    cancellation, done = pg.Cancellation(), []

    def stop(now: pg.Progress) -> None:
        done.append(now.done)
        cancellation.cancel()

    with pytest.raises(pg.Cancelled):
        pg.design_many(PROBLEMS, epsilon=0.7, jobs=2, progress=cancellation.callback(stop))
    assert done == [1]


def test_constant_mechanisms_are_counted() -> None:
    with pytest.warns(pg.UselessMechanism, match="the outputs of 2 of 3 mechanisms"):
        pg.design_many([PROBLEM, SURE, SURE], epsilon=0.7, jobs=1)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(pg.InvalidProblem, match="problems must be a list"):
        pg.design_many(3, epsilon=1.0)  # type: ignore[call-overload]
    with pytest.raises(pg.InvalidProblem, match="a list of Problem"):
        pg.design_many([HABITS[0]], epsilon=1.0)  # type: ignore[list-item]
    with pytest.raises(pg.InvalidProblem, match="bounds must be a list of 1 Bounds"):
        pg.design_many([PROBLEM], bounds=SWEEP)
    with pytest.raises(pg.InvalidProblem, match="not both"):
        pg.design_many([PROBLEM], bounds=SWEEP[:1], epsilon=1.0)
    with pytest.raises(pg.InvalidProblem, match="tolerance"):
        pg.design_many([PROBLEM], epsilon=1.0, tolerance=-1.0)
    with pytest.raises(pg.InvalidProblem, match="jobs is 0"):
        pg.design_many([PROBLEM], epsilon=1.0, jobs=0)


def test_a_solver_that_cannot_be_sent_works_here() -> None:
    class Mine(pg.Highs):
        """Known in this function only."""

    with pytest.raises(pg.InvalidProblem, match=r"the solver cannot be sent to other processes: .* leave jobs at 1"):
        pg.design_many(PROBLEMS[:2], epsilon=0.7, solver=Mine(), jobs=2)
    assert len(pg.design_many(PROBLEMS[:2], epsilon=0.7, solver=Mine(), jobs=1)) == 2


def test_a_mechanism_shares_matrices_with_its_own_problem_only() -> None:
    mechanism = pg.design(PROBLEM, epsilon=0.7)
    for other in (PROBLEMS[1], pg.Problem(HABITS[0], cost="euclidean"), pg.Problem(pg.Prior.uniform(pg.Grid(2, 2)))):
        with pytest.raises(pg.InvalidProblem, match="another one than the mechanism's"):
            mechanism.sharing(other)


@given(entries=st.lists(st.integers(1, 2 * ENTRIES_PER_BATCH), max_size=300))
def test_batches_hold_everything_once_and_in_order(entries: list[int]) -> None:
    made = list(batches(entries))
    assert [number for batch in made for number in range(len(entries))[batch]] == list(range(len(entries)))
    for batch in made:
        sizes = entries[batch]
        assert len(sizes) == 1 or sum(sizes) <= ENTRIES_PER_BATCH
        assert len(sizes) <= max(1, len(entries) // 32)
