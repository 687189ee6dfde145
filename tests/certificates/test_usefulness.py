"""Answers that say nothing, or never serve somebody, are said to: in certificate, report, words and a warning."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privacygames as pg
from privacygames import metrics
from privacygames.analysis import usefulness_warnings
from support import problems, two_secrets

ILLNESSES = pg.Problem(pg.Prior(pg.Categories(["cancer", "flu", "hiv", "none"]), [0.08, 0.2, 0.02, 0.7]))


def test_an_optimum_that_is_the_same_for_everybody_warns() -> None:
    with pytest.warns(pg.UselessMechanism, match="do not depend on the secret at all"):
        mechanism = pg.design(ILLNESSES, epsilon=1.0)
    useful = mechanism.certificate.usefulness
    assert useful.constant
    assert useful.kinds == 1
    assert useful.unserved == (0, 1, 2)
    assert useful.unserved_share == pytest.approx(0.3)
    assert useful.bits == pytest.approx(0.0, abs=1e-9)
    assert "nothing: the outputs do not depend on the secret" in str(mechanism.certificate)
    report = pg.evaluate(mechanism, ILLNESSES)
    assert str(report).startswith("The outputs do not depend on the secret at all")
    assert str(pg.explain(report, ILLNESSES)).startswith("The outputs do not depend on the secret at all")
    assert report.to_dict()["constant"] is True


def test_an_optimum_that_answers_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mechanism = pg.design(ILLNESSES, epsilon=1.0, worst_case=True)
        pg.design(pg.Problem(pg.Prior.uniform(pg.Categories("a"))), epsilon=1.0)  # one secret: nothing to say
    useful = mechanism.certificate.usefulness
    assert not useful.constant
    assert useful.unserved == ()
    assert usefulness_warnings(useful, ILLNESSES) == []


def test_secrets_that_are_never_served_are_named() -> None:
    mechanism = pg.design(ILLNESSES, epsilon=2.5)
    assert mechanism.certificate.usefulness.unserved == (2,)
    words = str(pg.explain(pg.evaluate(mechanism, ILLNESSES), ILLNESSES))
    assert words.startswith("Of the 4 secrets that occur, one never gets its best output (hiv: 2 % of the prior).")
    assert "What helps: a larger epsilon" in words
    assert "1 secrets that occur, 2.0% of the prior" in str(mechanism.certificate)


def test_many_secrets_that_share_a_row_are_counted() -> None:
    space = pg.Numbers(range(10))
    problem = pg.Problem(pg.Prior.uniform(space), cost="absolute")
    table = np.zeros((10, 10))
    table[:5, 2], table[5:, 7] = 1.0, 1.0
    mechanism = pg.Mechanism.from_probabilities(problem, table)
    useful = mechanism.certificate.usefulness
    assert useful.kinds == 2
    assert useful.bits == pytest.approx(1.0)
    assert useful.unserved == (0, 1, 3, 4, 5, 6, 8, 9)
    said = [str(remark) for remark in usefulness_warnings(useful, problem)]
    assert said[0] == (
        "Of the 10 secrets that occur, 8 never get their best output (0, 1, 3, 4, 5 and 3 more: 80 % of the prior)."
    )
    assert said[1].startswith("Many secrets get almost the same outputs (2 kinds of rows for the 10 that occur)")


def test_an_epsilon_that_limits_nothing_gets_a_remark() -> None:
    absurd = pg.design(two_secrets(), epsilon=1e9)
    assert absurd.certificate.usefulness.limitless
    assert "so large that it limits nothing" in str(pg.explain(pg.evaluate(absurd, two_secrets()), two_secrets()))
    assert not pg.design(two_secrets(), epsilon=5.0).certificate.usefulness.limitless
    assert not pg.design(two_secrets(), distortion=0.1).certificate.usefulness.limitless


@given(problems(), st.integers(0, 1000))
def test_bits_are_the_mutual_information_and_rows_alike_are_one_kind(problem: pg.Problem, seed: int) -> None:
    table = np.random.default_rng(seed).dirichlet(np.full(problem.shape[1], 0.3), problem.shape[0])
    mechanism = pg.Mechanism.from_probabilities(problem, table)
    useful = mechanism.certificate.usefulness
    assert useful.bits == pytest.approx(metrics.mutual_information(mechanism, problem.prior), abs=1e-9)
    occurring = table[problem.prior.probabilities > 0]
    apart = np.abs(occurring[:, None] - occurring).sum(axis=2) / 2
    assert 1 <= useful.kinds <= len(occurring)
    assert (useful.kinds == 1) == bool((apart[0] < 0.01).all())


def test_an_epsilon_that_nobody_promised_is_not_told_as_a_fact() -> None:
    """The realised ε of a design for distortion alone depends on rounding: ∞, 21 or 17.2 for like problems."""
    problem = pg.Problem(pg.Prior.from_counts(pg.Grid(3, 2), [5, 1, 1, 2, 9, 1]))
    for solver in (pg.Highs("ipm"), pg.Highs("simplex"), pg.Interior()):
        report = pg.evaluate(pg.design(problem, distortion=0.5, solver=solver), problem, within=1.0)
        assert not report.epsilon_guaranteed
        assert str(report).count("not bounded by design") == 2
        assert "Nothing limits how far an output shifts the odds" in str(pg.explain(report, problem))
    assert pg.evaluate(pg.design(problem, epsilon=1.0), problem).epsilon_guaranteed


def test_reports_carry_units() -> None:
    city = pg.Problem(pg.Prior.uniform(pg.Grid(3, 2)), cost="euclidean")
    printed = str(pg.evaluate(pg.design(city, epsilon=1.0), city))
    assert " km\n" in printed.split("cost, average")[1]
    assert "1.0000 per km" in printed
    ages = pg.Problem(pg.Prior.uniform(pg.Numbers(range(5), unit="years")))
    report = pg.evaluate(pg.design(ages, epsilon=1.0), ages)
    assert "(share of untrue outputs)" in str(report)
    assert "1.0000 per year; 4 between any two secrets\n" in str(report)
    assert report.to_dict()["distance_unit"] == "years"
    assert "between two secrets 1 year apart" in str(pg.explain(report, ages))


def test_intervals_of_negative_numbers_read_naturally() -> None:
    assert pg.Numbers(range(-5, 1)).intervals(3).labels == ("-5 to -3", "-2 to 0")
    assert pg.Numbers(range(17, 23)).intervals(3).labels == ("17–19", "20–22")
