"""Fewer answers: the best among mechanisms with those, promises for the whole problem, and a bound against all."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from exact import holds_exactly
from support import problems


def restricted(problem: pg.Problem, answers: list[int]) -> pg.Problem:
    """The problem whose observables are these alone."""
    return pg.Problem(
        problem.prior,
        cost=problem.cost[answers],
        distance=problem.distance,
        distinguishability=problem.distinguishability,
        observables=pg.Numbers(range(len(answers))),
    )


@given(problems(), st.data())
@settings(max_examples=30)
@pytest.mark.filterwarnings("ignore::privacygames.UselessMechanism")
def test_best_among_those_and_bounded_below_by_all(problem: pg.Problem, data: st.DataObject) -> None:
    labels = problem.observables.labels
    chosen = data.draw(st.lists(st.sampled_from(range(len(labels))), min_size=1, unique=True).map(sorted))
    few = pg.approximations.fewer_outputs(problem, [labels[each] for each in chosen], epsilon=0.7)
    best = pg.design(restricted(problem, chosen), epsilon=0.7, solver=pg.Highs())
    everything = pg.design(problem, epsilon=0.7, solver=pg.Highs())
    assert few.certificate.cost == pytest.approx(best.certificate.cost, rel=1e-5, abs=1e-9)
    assert few.certificate.bound is not None
    assert few.certificate.bound <= everything.certificate.cost * (1 + 1e-12)
    others = np.setdiff1d(np.arange(len(labels)), chosen)
    assert not few.weights[:, others].any()
    assert holds_exactly(few.statement)


def test_all_answers_are_a_plain_design() -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(4, 3)), cost="euclidean")
    whole = pg.approximations.fewer_outputs(problem, 12, epsilon=1.0)
    assert whole.certificate.gap is not None
    assert whole.certificate.gap <= 1e-6
    assert whole.certificate.cost == pytest.approx(pg.design(problem, epsilon=1.0).certificate.cost, rel=1e-6)


def test_chosen_answers_are_spread_out_where_people_are() -> None:
    space = pg.Numbers(range(10))
    weights = np.where(np.isin(np.arange(10), (2, 7)), 0.4, 0.025)
    problem = pg.Problem(pg.Prior(space, weights), cost="absolute")
    two = pg.approximations.fewer_outputs(problem, 2, epsilon=2.0)
    assert np.flatnonzero(two.weights.any(axis=0)).tolist() == [2, 7]
    assert "2 of 10 outputs" in two.certificate.provenance.solver


def test_saved_and_verified(tmp_path: Path) -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(5, 5)), cost="euclidean")
    few = pg.approximations.fewer_outputs(problem, 6, epsilon=1.0, distortion=0.8)
    few.save(tmp_path / "few.pgm")
    assert pg.verify(tmp_path / "few.pgm") == few.certificate


@pytest.mark.parametrize("answers", [0, 26, 2.5, "cell-3", [], True])
def test_wrong_answers(answers: object) -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(5, 5)))
    with pytest.raises(pg.InvalidProblem, match="outputs"):
        pg.approximations.fewer_outputs(problem, answers, epsilon=1.0)  # type: ignore[arg-type]
