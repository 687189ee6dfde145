"""Mechanisms from elsewhere, certificates and posteriors."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privacygames as pg
from exact import holds_exactly
from privacygames import metrics
from support import problems, two_secrets


@given(problems(), st.integers(0, 2**32), st.sampled_from([0.05, 1.0, 50.0]))
def test_any_matrix_is_certified_for_the_bounds_it_really_has(problem: pg.Problem, seed: int, shape: float) -> None:
    rows = np.random.default_rng(seed).dirichlet(np.full(problem.shape[1], shape), problem.shape[0])
    mechanism = pg.Mechanism.from_probabilities(problem, rows)
    bounds = mechanism.certificate.bounds
    assert holds_exactly(mechanism.statement)
    realised = metrics.epsilon(mechanism, problem)
    if np.isfinite(realised):
        assert bounds.epsilon == pytest.approx(realised, rel=1e-9, abs=1e-11)
    else:
        assert bounds.epsilon is None
    assert bounds.problem_distortion == pytest.approx(
        pg.attacks.optimal(mechanism, problem).error, rel=1e-12, abs=1e-15
    )
    assert mechanism.certificate.bound is None


def test_a_matrix_must_be_a_mechanism() -> None:
    problem = two_secrets()
    for rows, message in (
        ([[0.5, 0.6], [0, 1]], "every row of the mechanism must sum to 1"),
        ([[1.5, -0.5], [0, 1]], "negative"),
        ([[1, 0]], "shape"),
        ([[np.nan, 0], [0, 1]], "NaN"),
    ):
        with pytest.raises(pg.InvalidProblem, match=message):
            pg.Mechanism.from_probabilities(problem, np.array(rows))


def test_the_certificate_prints_and_converts() -> None:
    certificate = pg.design(two_secrets(), epsilon=1.0, distortion=0.3).certificate
    printed = str(certificate)
    for word in (
        "guaranteed epsilon",
        "largest ratio",
        "guaranteed distortion",
        "verified cost",
        "lower bound on the cost",
        "HiGHS",
    ):
        assert word in printed
    assert json.loads(json.dumps(certificate.to_dict()))["bounds"]["distortion"] == 0.3
    turned = str(pg.design(two_secrets(), epsilon=1.0, within=2.0, cost_at_most=0.4).certificate)
    assert "1 between secrets at most 2 apart; " in turned
    assert "upper bound on the distortion" in turned
    assert "at most 0.4" in turned


def test_weights_and_probabilities_cannot_be_changed() -> None:
    mechanism = pg.design(two_secrets(), epsilon=1.0)
    for array in (mechanism.weights, mechanism.probabilities):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 0


def test_posterior_after_an_observation() -> None:
    problem = two_secrets(0.5)
    mechanism = pg.Mechanism.from_probabilities(problem, [[0.75, 0.25], [0.25, 0.75]])
    assert mechanism.posterior("o0")["s0"] == pytest.approx(0.75)
    sure = pg.Prior(problem.space, [1.0, 0.0])
    assert mechanism.posterior("o1", sure)["s0"] == 1.0


def test_an_output_that_is_never_given_has_no_posterior_and_no_estimate() -> None:
    problem = two_secrets(0.5)
    never = pg.Mechanism.from_probabilities(problem, [[1.0, 0.0], [1.0, 0.0]])
    with pytest.raises(pg.InvalidProblem, match="this output is never given") as caught:
        never.posterior("o1")
    assert "o1" not in str(caught.value)
    truthful = pg.Mechanism.from_probabilities(problem, [[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(pg.InvalidProblem, match="impossible under this belief"):
        truthful.posterior("o1", pg.Prior(problem.space, [1.0, 0.0]))
    attacks = [pg.attacks.optimal, pg.attacks.uniform, pg.attacks.minmax, pg.attacks.minmax_pairs, pg.attacks.bayesian]
    for attack in attacks:
        best = attack(never, problem)
        assert best.matrix.sum(axis=1) == pytest.approx(1.0)
        with pytest.raises(pg.InvalidProblem, match="never given"):
            best.estimate("o1")
        assert [each["answer"] for each in best.to_dict()["estimates"]] == ["o0"]  # type: ignore[attr-defined]
    own = pg.attacks.from_matrix(never, problem, [[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(pg.InvalidProblem, match="never given"):
        own.estimate("o1")


def test_a_report_prints_and_converts() -> None:
    problem = two_secrets()
    report = pg.evaluate(pg.baselines.cheapest(problem), problem, within=1.0)
    assert report.epsilon == np.inf
    assert "realised epsilon              not bounded by design" in str(report)
    assert "realised epsilon, within" in str(report)
    assert report.to_dict()["vulnerability"] == 1.0


def test_small_numbers_do_not_print_as_zero() -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Numbers([0, 25000, 50000])), cost="absolute")
    printed = str(pg.evaluate(pg.design(problem, epsilon=2e-5), problem))
    assert "realised epsilon              2e-05 per unit of the absolute distance" in printed


def test_a_mistaken_adversary_is_measured_against_the_truth() -> None:
    space = pg.Numbers(range(5))
    problem = pg.Problem(pg.Prior(space, [0.5, 0.5, 0, 0, 0]))
    mechanism = pg.design(problem, epsilon=1.0)
    report = pg.evaluate(mechanism, problem, adversary_prior=pg.Prior(space, [0, 0, 0, 0, 1]))
    assert report.vulnerability == report.prior_vulnerability == 0.0
    assert report.distortion == pytest.approx(3.5)
    with pytest.raises(pg.InvalidProblem, match="within is nan"):
        pg.evaluate(mechanism, problem, within=float("nan"))


def test_mechanism_and_problem_must_fit() -> None:
    other_prior = pg.Prior.uniform(pg.Categories(["x", "y"]))
    mechanism = pg.baselines.uniform(two_secrets())
    for wrong in (
        lambda: mechanism.posterior("o0", other_prior),
        lambda: pg.evaluate(mechanism, two_secrets(), truth=other_prior),
        lambda: metrics.vulnerability(mechanism, other_prior),
        lambda: pg.attacks.minmax_pairs(mechanism, pg.Problem(other_prior)),
        lambda: pg.attacks.uniform(mechanism, pg.Problem(other_prior)),
    ):
        with pytest.raises(pg.InvalidProblem, match="secrets"):
            wrong()
    other = pg.Problem(pg.Prior.uniform(pg.Categories(["x", "y"])))
    with pytest.raises(pg.InvalidProblem, match="different secrets"):
        pg.evaluate(pg.baselines.uniform(two_secrets()), other)
    with pytest.raises(pg.InvalidProblem, match="other secrets"):
        pg.attacks.optimal(pg.baselines.uniform(other), other, prior=two_secrets().prior)


def test_the_exponential_mechanism_needs_a_metric() -> None:
    space = pg.Categories("abc")
    for distance, message in (
        ([[0, 1, 9], [1, 0, 1], [9, 1, 0]], "triangle"),
        ([[0, 1, 1], [2, 0, 1], [1, 1, 0]], "symmetric"),
    ):
        with pytest.raises(pg.InvalidProblem, match=message):
            pg.baselines.exponential(pg.Problem(pg.Prior.uniform(space), distance=distance), 1.0)
    with pytest.raises(pg.InvalidProblem, match="observables to be the secrets"):
        pg.baselines.exponential(two_secrets(), 1.0)


def test_a_service_needs_no_cast() -> None:
    """From a point to an output's point, whatever kind of grid the file holds."""
    grid = pg.Grid.over((6.5, 46.5, 6.7, 46.6), columns=4, rows=3)
    truth = pg.baselines.identity(pg.Problem(pg.Prior.uniform(grid)))
    output = truth.sample(truth.locate(6.62, 46.51))
    assert truth.coordinates(output) == grid.centre(grid.cell((6.62, 46.51)))
    assert truth.locate(9.9, 46.51, outside="nearest") == "cell-3"
    with pytest.raises(pg.InvalidProblem, match="1 of 1 points lie outside"):
        truth.locate(9.9, 46.51)
    blocks = pg.Problem(pg.Prior.uniform(grid), observables=grid.blocks(2, 3))
    assert pg.baselines.uniform(blocks).coordinates("block-0") == pytest.approx((6.55, 46.55))
    ages = pg.baselines.uniform(pg.Problem(pg.Prior.uniform(pg.Numbers([1, 2]))))
    with pytest.raises(pg.InvalidProblem, match="have places"):
        ages.locate(1.0, 2.0)
    with pytest.raises(pg.InvalidProblem, match="have places"):
        ages.coordinates(1)


SERVICE = """
import privacygames as pg

mechanism = pg.load("home.pgm")


def obfuscate(longitude: float, latitude: float) -> tuple[float, float]:
    return mechanism.coordinates(mechanism.sample(mechanism.locate(longitude, latitude, outside="nearest")))


def ages(values: list[int]) -> list[pg.Label]:
    return mechanism.sample(values)
"""


@pytest.mark.slow
def test_the_obvious_service_passes_strict_types(tmp_path: Path) -> None:
    (tmp_path / "service.py").write_text(SERVICE)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "service.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
