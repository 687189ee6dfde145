"""Section 3 (definitions) and 4 (problem statement): each quantity against its formula, term by term."""

from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import given

import privacygames as pg
from privacygames import attacks, metrics
from support import Array, Case, cases, error_by_hand, problems


def some_problem() -> pg.Problem:
    space = pg.Grid(3, 2, width=3.0, height=2.0)
    return pg.Problem(pg.Prior.from_counts(space, [4, 0, 1, 2, 2, 1]), cost="hamming")


def some_mechanism(problem: pg.Problem) -> pg.Mechanism:
    return pg.design(problem, epsilon=0.8, distortion=0.9)


def test_eq_prior_pdf() -> None:
    """eq:prior:pdf: π is the normalised number of visits (maximum likelihood)."""
    space = pg.Categories(["home", "work", "bar"])
    prior = pg.Prior.from_visits(space, ["home", "work", "home", "home"])
    assert prior.probabilities.tolist() == [0.75, 0.25, 0.0]


def test_eq_obfuscation_pdf() -> None:
    """eq:obfuscation:pdf: p(·|s) is a distribution, and what is sampled follows it."""
    mechanism = some_mechanism(some_problem())
    assert (mechanism.weights.sum(axis=1) == 2**mechanism.bits).all()
    drawn = mechanism.sample(["cell-0"] * 40_000, np.random.default_rng(1))
    for position, label in enumerate(mechanism.observables.labels):
        expected = mechanism.probabilities[0, position]
        assert drawn.count(label) / 40_000 == pytest.approx(expected, abs=5 * (0.25 / 40_000) ** 0.5)


@given(cases())
def test_eq_utility_avgmetric(case: Case) -> None:
    """eq:utility:avgmetric and eq:objective:utility:avgmetric: Σ_s π(s) Σ_o p(o|s) c(o,s)."""
    problem, mechanism = case.problem, pg.baselines.uniform(case.problem)
    n, m = problem.shape
    total = sum(
        problem.prior.probabilities[s] * mechanism.probabilities[s, o] * problem.cost[o, s]
        for s in range(n)
        for o in range(m)
    )
    assert metrics.expected_cost(mechanism, problem) == pytest.approx(total)


@given(cases())
def test_eq_utility_maxmetric(case: Case) -> None:
    """eq:utility:maxmetric and eq:objective:utility:maxmetric: max_s Σ_o p(o|s) c(o,s)."""
    problem, mechanism = case.problem, pg.baselines.uniform(case.problem)
    n, m = problem.shape
    worst = max(sum(mechanism.probabilities[s, o] * problem.cost[o, s] for o in range(m)) for s in range(n))
    assert metrics.worst_cost(mechanism, problem) == pytest.approx(worst)
    least = pg.design(problem, distortion=0.0, worst_case=True).certificate.cost
    assert least <= worst + 1e-9


def test_eq_attack_pdf() -> None:
    """eq:attack:pdf: every attack is a distribution over estimates for every observable."""
    problem = some_problem()
    mechanism = some_mechanism(problem)
    for attack in (attacks.optimal, attacks.bayesian, attacks.uniform, attacks.minmax, attacks.minmax_pairs):
        matrix = attack(mechanism, problem).matrix
        assert matrix.shape == (6, 6)
        assert (matrix >= 0).all()
        assert matrix.sum(axis=1) == pytest.approx(np.ones(6))


@given(problems())
def test_eq_privacy_bayesian_persecret_and_average(problem: pg.Problem) -> None:
    """eq:privacy:bayesian:persecret, eq:privacy:bayesian:average and eq:expectederror, term by term."""
    mechanism = pg.baselines.uniform(problem)
    attack = attacks.bayesian(mechanism, problem)
    n, _ = problem.shape
    per_secret = [
        error_by_hand(mechanism.probabilities, attack.matrix, problem.distance, np.eye(n)[s]) for s in range(n)
    ]
    assert metrics.distortion_per_secret(mechanism, problem, attack) == pytest.approx(np.array(per_secret))
    prior = problem.prior.probabilities
    average = error_by_hand(mechanism.probabilities, attack.matrix, problem.distance, prior)
    assert metrics.distortion(mechanism, problem, attack) == pytest.approx(average)
    assert attack.error == pytest.approx(average)


def test_eq_privacy_diff_originalnotation() -> None:
    """eq:privacy:diff:originalnotation: a bound on every outcome bounds every set of outcomes."""
    problem = some_problem()
    mechanism = pg.design(problem, epsilon=0.7, distortion=0.5)
    p = mechanism.probabilities
    for chosen in range(2**6):
        outcomes = [o for o in range(6) if chosen >> o & 1]
        mass = p[:, outcomes].sum(axis=1)
        for s in range(6):
            for t in range(6):
                assert mass[s] <= exp(0.7 * problem.distinguishability[s, t]) * mass[t] * (1 + 1e-12)


def epsilon_by_hand(p: Array, d: Array, within: float | None) -> float:
    """The largest log ratio (over distance), pair by pair."""
    largest = 0.0
    for s in range(len(p)):
        for t in range(len(p)):
            for o in range(p.shape[1]):
                if p[s, o] == 0 or s == t or (within is not None and d[s, t] > within):
                    continue
                ratio = inf if p[t, o] == 0 else log(p[s, o] / p[t, o])
                if within is None and ratio > 0:
                    ratio = ratio / d[s, t] if d[s, t] > 0 else inf
                largest = max(largest, ratio)
    return largest


@given(cases(reverse=False))
def test_eq_privacy_diff_metric_and_threshold(case: Case) -> None:
    """eq:privacy:diff:gneric:mult and eq:privacy:diff:original: realised ε in both forms, ∞ included."""
    problem = case.problem
    for mechanism in (pg.design(problem, **case.bounds), pg.baselines.cheapest(problem)):
        d = problem.distinguishability
        assert metrics.epsilon(mechanism, problem) == pytest.approx(
            epsilon_by_hand(mechanism.probabilities, d, None), abs=1e-9
        )
        assert metrics.epsilon(mechanism, problem, within=1.0) == pytest.approx(
            epsilon_by_hand(mechanism.probabilities, d, 1.0), abs=1e-9
        )


def test_eq_constraint_privacy_bayesian() -> None:
    """eq:constraint:privacy:bayesian: no attack, optimal or not, errs by less than d_m on average."""
    problem = some_problem()
    mechanism = pg.design(problem, distortion=0.8)
    for attack in (attacks.optimal, attacks.bayesian, attacks.uniform, attacks.minmax, attacks.minmax_pairs):
        assert metrics.distortion(mechanism, problem, attack(mechanism, problem)) >= 0.8 * (1 - 1e-12)


def test_eq_constraint_privacy_diff() -> None:
    """eq:constraint:privacy:diff:mult and eq:constraint:privacy:diff:mult2, on the very integers sampled."""
    problem = some_problem()
    d = problem.distinguishability
    for within in (None, 1.0):
        weights = pg.design(problem, epsilon=0.5, within=within).weights.tolist()
        for s in range(6):
            for t in range(6):
                if within is None or d[s, t] <= within:
                    allowed = exp(0.5 * d[s, t] if within is None else 0.5)
                    assert all(a <= allowed * b * (1 + 1e-15) for a, b in zip(weights[s], weights[t], strict=True))


def test_eq_game_mixedstrategies() -> None:
    """eq:game:mixedstrategies:p and eq:game:mixedstrategies:q: pure strategies are mixed ones, and allowed."""
    problem = some_problem()
    pure = pg.Mechanism.from_probabilities(problem, np.eye(6))
    assert pure.sample("cell-3") == "cell-3"
    assert attacks.optimal(pure, problem).matrix.max(axis=1).tolist() == [1.0] * 6
