"""Where adversaries stand: what a mechanism promises is told of everybody it is about."""

import numpy as np
import pytest

import privacygames as pg


def town() -> pg.Problem:
    return pg.Problem(pg.Prior.from_counts(pg.Grid(3, 2), [5, 1, 0, 2, 7, 3]), cost="euclidean")


def test_a_promise_by_number_is_one_against_the_problems_own_adversary() -> None:
    problem = town()
    vague = pg.Adversary("vague", prior=pg.Prior.uniform(problem.space))
    made = pg.design(problem, distortion=0.5)
    adversary_results = pg.evaluate(made, problem, adversaries=[pg.Adversary("anybody"), vague]).adversary_results
    assert [stand.guaranteed for stand in adversary_results] == [0.5, None]


def test_what_counts_is_what_they_believe_and_want_not_their_name() -> None:
    problem = town()
    prior = problem.prior.sharpen(3.0)
    made = pg.design(problem, distortion={pg.Adversary("a", prior=prior): 0.3, pg.Adversary("b"): 0.4})
    crowd = [
        pg.Adversary("other name", prior=prior),
        pg.Adversary("written out", prior=problem.prior, errors=problem.distance),
        pg.Adversary("a", errors=2 * problem.distance),
    ]
    adversary_results = pg.evaluate(made, problem, adversaries=crowd).adversary_results
    assert [stand.guaranteed for stand in adversary_results] == [0.3, 0.4, None]
    assert all(stand.realised >= (stand.guaranteed or 0.0) for stand in adversary_results)


def test_of_another_problem_nothing_is_promised() -> None:
    problem = town()
    made = pg.design(problem, distortion=0.5)
    other = problem.with_prior(pg.Prior.uniform(problem.space))
    assert pg.evaluate(made, other, adversaries=[pg.Adversary("plain")]).adversary_results[0].guaranteed is None


def test_what_is_maximised_is_not_promised() -> None:
    problem = town()
    made = pg.design(problem, cost_at_most=0.4)
    assert pg.evaluate(made, problem, adversaries=[pg.Adversary("plain")]).adversary_results[0].guaranteed is None


def test_an_adversary_goes_by_their_own_name() -> None:
    problem = town()
    made = {"it": pg.design(problem, distortion=0.5)}
    known = pg.Adversary("nosy", errors=np.eye(6))
    assert (
        pg.compare(problem, made, adversaries={"nosy": known}).rows[0].report.adversary_results[0].adversary == "nosy"
    )
    with pytest.raises(pg.InvalidProblem, match="its own name"):
        pg.compare(problem, made, adversaries={"somebody": known})
