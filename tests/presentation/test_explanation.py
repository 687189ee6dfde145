"""Risks in words: what is said is what an independent count finds, with the right unit."""

import numpy as np
import pytest
from hypothesis import given, settings

import privacygames as pg
from privacygames import metrics
from privacygames.analysis import format_amount, format_percent
from privacygames.mechanism_files import load_finite
from privacygames.presentation.explanation import cost_label, distortion_label, epsilon_label
from privacygames.problem import measure_scale
from support import Case, cases


def exactness_by_hand(mechanism: pg.Mechanism, problem: pg.Problem, belief: pg.Prior, truth: pg.Prior) -> float:
    """For each answer, the guess with the least expected error; how often it is the secret, term by term."""
    total = 0.0
    secrets, observables = problem.shape
    p = mechanism.probabilities
    for o in range(observables):
        joint = [belief.probabilities[s] * p[s, o] for s in range(secrets)]
        if sum(joint) == 0:
            joint = list(belief.probabilities)
        errors = [sum(joint[s] * problem.distance[guess, s] for s in range(secrets)) for guess in range(secrets)]
        best = [guess for guess in range(secrets) if errors[guess] <= min(errors) * (1 + 1e-12)]
        chances = [truth.probabilities[guess] * p[guess, o] for guess in best]
        total += chances[0] if len(best) == 1 else float("nan")  # a tie may go either way
    return total


@given(case=cases(largest=4))
@settings(max_examples=30)
def test_how_often_the_best_guess_is_exact(case: Case) -> None:
    problem = case.problem
    mechanism = pg.design(problem, **case.bounds)
    other = pg.Prior(problem.space, np.arange(1, len(problem.space) + 1) / np.arange(1, len(problem.space) + 1).sum())
    for belief in (problem.prior, other):
        report = pg.evaluate(mechanism, problem, adversary_prior=belief)
        expected = exactness_by_hand(mechanism, problem, belief, problem.prior)
        if not np.isnan(expected):
            assert report.accuracy == pytest.approx(expected, abs=1e-9)
        assert report.accuracy <= report.vulnerability + 1e-12 or belief is other


def test_exactness_of_any_attack() -> None:
    problem = pg.Problem(pg.Prior(pg.Categories("ab"), [0.25, 0.75]))
    mechanism = pg.Mechanism.from_probabilities(problem, [[0.8, 0.2], [0.4, 0.6]])
    drawn = pg.attacks.bayesian(mechanism, problem)  # guesses a after "a" with probability .2/.5, after "b" .05/.5
    expected = 0.25 * (0.8 * 0.4 + 0.2 * 0.1) + 0.75 * (0.4 * 0.6 + 0.6 * 0.9)
    assert metrics.accuracy(mechanism, problem, drawn) == pytest.approx(expected)


def report_of(problem: pg.Problem, table: object) -> tuple[pg.Report, pg.Problem]:
    mechanism = pg.Mechanism.from_probabilities(problem, table)  # type: ignore[arg-type]
    return pg.evaluate(mechanism, problem), problem


HALF = [[0.75, 0.25], [0.25, 0.75]]


def test_places_are_off_by_kilometres() -> None:
    city = pg.Grid(columns=2, rows=1, width=4.0, height=1.0)
    assert str(pg.explain(*report_of(pg.Problem(pg.Prior(city, [0.6, 0.4])), HALF))) == (
        "An adversary's best guess is off by 0.5 km on average; their likeliest guess is exact in 75 % of cases. "
        "Without the output it would be off by 0.8 km, and the likeliest guess exact in 60 % of cases. "
        "No output shifts the odds between two secrets 1 km apart by more than a factor of 1.73, "
        "or between any two secrets by more than 3."
    )


def test_numbers_are_off_by_their_unit_or_by_none() -> None:
    for unit, expected in (("years", "off by 2.5 years on average"), ("", "off by 2.5 on average")):
        ages = pg.Problem(pg.Prior.uniform(pg.Numbers([20, 30], unit=unit)))
        assert expected in str(pg.explain(*report_of(ages, HALF)))


def test_categories_are_wrong_or_right() -> None:
    illness = pg.Problem(pg.Prior.uniform(pg.Categories(["flu", "cold"])))
    assert str(pg.explain(*report_of(illness, HALF))) == (
        "An adversary's best guess is wrong in 25 % of cases, and exact in 75 %. "
        "Without the output it would be wrong in 50 % of cases. "
        "No output shifts the odds between any two secrets by more than a factor of 3."
    )


def test_sets_differ() -> None:
    films = pg.Problem(pg.Prior.uniform(pg.Sets([{"Alien", "Brazil"}, {"Alien"}])))
    words = str(pg.explain(*report_of(films, HALF)))
    assert "differs from the true set by 0.125 on average (0: the same, 1: nothing in common)" in words
    assert "their likeliest guess is exact in 75 % of cases" in words


def test_a_distance_of_ones_own_has_no_unit() -> None:
    city = pg.Grid(columns=2, rows=1)
    problem = pg.Problem(pg.Prior.uniform(city), distance=[[0, 3], [3, 0]])
    words = str(pg.explain(*report_of(problem, HALF)))
    assert "off by 0.75 on average" in words
    assert "two secrets at distance 1 by more" in words
    assert "km" not in words


def test_no_epsilon_is_said_so() -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Categories("ab")))
    assert "Nothing limits" in str(pg.explain(*report_of(problem, [[1, 0], [0, 1]])))


def test_a_huge_factor_stays_readable() -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Categories("ab")))
    words = str(pg.explain(pg.evaluate(pg.baselines.randomised_response(problem, 20.0), problem), problem))
    assert "a factor of e^20." in words
    assert "wrong in under 1 % of cases, and exact in over 99 %" in words


def test_percentages_and_amounts() -> None:
    assert [format_percent(share) for share in (0.0, 1e-4, 0.124, 0.999, 1.0)] == [
        "0 %",
        "under 1 %",
        "12 %",
        "over 99 %",
        "100 %",
    ]
    assert [format_amount(value) for value in (0.0, 0.12345, 1.4, 12345.6, 2e7)] == [
        "0",
        "0.123",
        "1.4",
        "12,346",
        "2e+07",
    ]


def test_labels_of_axes_name_the_unit() -> None:
    city = pg.Problem(pg.Prior.uniform(pg.Grid(2, 2)), cost="hamming")
    assert cost_label(city) == "share of untrue outputs"
    assert distortion_label(city) == "error, km"
    assert epsilon_label(city) == "epsilon, per km"
    plain = pg.Problem(pg.Prior.uniform(pg.Categories("abc")))
    assert distortion_label(plain) == "share of wrong guesses"
    assert epsilon_label(plain) == "epsilon, per unit of the hamming distance"
    blocks = pg.Grid(4, 2)
    assert (
        measure_scale(blocks.distance("euclidean", blocks.blocks(2, 1)), blocks, blocks.blocks(2, 1)).name
        == "euclidean"
    )


def test_a_unit_survives_a_file(tmp_path: pytest.TempPathFactory) -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Numbers([1, 2, 3], unit="years")))
    pg.design(problem, epsilon=1.0).save(f"{tmp_path}/m.pgm")
    loaded = load_finite(f"{tmp_path}/m.pgm")
    assert loaded.secrets.distance_unit("absolute") == "years"
    assert loaded.secrets.distance_unit("hamming") == ""
    assert " years on average" in str(pg.explain(pg.evaluate(loaded, loaded.problem), loaded.problem))
    for bad in ("a\nb", "x" * 41, 5):
        with pytest.raises(pg.InvalidProblem, match="unit must be"):
            pg.Numbers([1, 2], unit=bad)  # type: ignore[arg-type]
