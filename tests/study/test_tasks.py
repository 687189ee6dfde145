"""One cell: what is measured is what a direct computation gives, and its key tells work apart."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import privacygames as pg
from privacygames.jobs import number
from privacygames_study import informed_prior, tasks
from privacygames_study.tasks import Task, measure, privacy_column
from support import optimum_by_hand

PRIOR = pg.Prior(pg.Grid(columns=3, rows=2, width=3.0, height=2.0), [0.4, 0.1, 0.2, 0.05, 0.25, 0.0])
PROBLEM = pg.Problem(PRIOR)


@pytest.mark.parametrize(("epsilon", "distortion"), [(0.8, None), (None, 0.5), (0.8, 0.7)])
def test_a_design_costs_what_the_program_written_out_costs(epsilon: float | None, distortion: float | None) -> None:
    measured = measure(Task(PRIOR, epsilon=epsilon, distortion=distortion))
    bounds = {"epsilon": epsilon, "distortion": distortion}
    assert measured["status"] == "done"
    assert measured["cost"] == pytest.approx(optimum_by_hand(PROBLEM, **bounds), abs=1e-6)
    if distortion is not None:
        assert number(measured, "privacy_km") >= distortion - 1e-9
    if epsilon is not None:
        assert number(measured, "realised_epsilon") <= epsilon * (1 + 1e-9)


def test_measured_against_a_direct_evaluation() -> None:
    cell = Task(PRIOR, epsilon=0.8, distortion=0.7, strengths=(4.0,), places=2)
    measured = measure(cell)
    mechanism = pg.design(PROBLEM, epsilon=0.8, distortion=0.7)
    report = pg.evaluate(mechanism, PROBLEM)
    for column, expected in (
        ("privacy_km", report.distortion),
        ("bayesian_km", report.distortion_bayesian),
        ("entropy_bits", report.posterior_entropy),
        ("worst_cost", report.worst_cost),
    ):
        assert measured[column] == pytest.approx(expected, rel=1e-9)
    sharper = informed_prior(PRIOR, 4.0, 2)
    known = pg.evaluate(mechanism, PROBLEM, adversary_prior=sharper, truth=sharper)
    assert measured[privacy_column(4.0)] == pytest.approx(known.distortion, rel=1e-9)


@pytest.mark.parametrize(("reach", "all_guesses"), [(False, False), (True, False), (True, True)])
def test_an_approximation_says_which_epsilon_it_has(reach: bool, all_guesses: bool) -> None:
    measured = measure(Task(PRIOR, epsilon=0.8, distortion=0.7, radius=1.2, reach=reach, all_guesses=all_guesses))
    pruned = pg.approximations.prune(
        PROBLEM, 0.8, 1.2, output_radius=1.2 if reach else None, all_estimates=all_guesses, distortion=0.7, repair=False
    )
    assert str(measured["solver"]).startswith("HiGHS")
    assert number(measured, "processor_seconds") >= 0
    assert measured["cost"] == pytest.approx(pg.evaluate(pruned, PROBLEM).cost, rel=1e-6)
    assert number(measured, "realised_epsilon") > 0.8


def test_a_design_names_its_solver() -> None:
    larger = pg.Prior.uniform(pg.Grid(columns=7, rows=3, width=7.0, height=3.0))
    assert measure(Task(larger, epsilon=0.8))["solver"] == "blocks"
    assert str(measure(Task(larger, epsilon=0.8, solver="highs"))["solver"]).startswith("HiGHS")


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (pg.SolveFailed("no luck", status=pg.Status.NUMERICAL), "failed: NUMERICAL"),
        (pg.Infeasible("too much", limit=1.0), "failed: Infeasible"),
    ],
)
def test_a_failure_is_a_result(error: Exception, status: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(tasks, "design_bounds", fail)
    measured = measure(Task(PRIOR, epsilon=0.8))
    assert measured["status"] == status
    assert "cost" not in measured


def test_keys_tell_work_apart() -> None:
    cell = Task(PRIOR, epsilon=0.8, distortion=0.7, strengths=(2.0,))
    nudged = PRIOR.probabilities + np.array([1e-9, -1e-9, 0, 0, 0, 0])
    others = [
        replace(cell, epsilon=0.9),
        replace(cell, distortion=None),
        replace(cell, radius=1.0),
        replace(cell, radius=1.0, reach=True),
        replace(cell, radius=1.0, reach=True, all_guesses=True),
        replace(cell, solver="highs"),
        replace(cell, promised=((2.0, 0.5),)),
        replace(cell, strengths=(3.0,)),
        replace(cell, places=1),
        replace(cell, prior=pg.Prior(PRIOR.space, nudged)),
        replace(cell, prior=pg.Prior(pg.Grid(columns=3, rows=2, width=3.0, height=2.1), PRIOR.probabilities)),
    ]
    keys = [cell.key, *(other.key for other in others)]
    assert len(set(keys)) == len(keys)
    assert replace(cell).key == cell.key
