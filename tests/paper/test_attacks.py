"""Section 6.1, the Bayesian attack of section 8 and appendix A: each attack against its program."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from privacygames import attacks, metrics
from privacygames.programs.attack_programs import minmax_attack_program, weighted_attack_program
from support import Array, Case, cases, error_by_hand, problem_of, two_secrets


def attains_the_program(attack: attacks.Attack, mechanism: pg.Mechanism, problem: pg.Problem, weights: Array) -> None:
    """The attack's error, as it says and term by term, is the optimum of the program with these weights."""
    p = mechanism.probabilities
    program = weighted_attack_program(p, problem.distance, weights)
    best = float(program.objective @ pg.Highs().solve_program(program).values)
    assert attack.error == pytest.approx(best, abs=1e-9)
    assert error_by_hand(p, attack.matrix, problem.distance, weights) == pytest.approx(best, abs=1e-9)


@given(cases())
def test_eq_lp_adversary_bayesian(case: Case) -> None:
    """eq:lp:adversary:bayesian (…:obj): the closed form attains the linear program's optimum."""
    problem, mechanism = case.problem, pg.design(case.problem, **case.bounds)
    attains_the_program(attacks.optimal(mechanism, problem), mechanism, problem, problem.prior.probabilities)


@given(cases())
def test_eq_lp_adversary_diff(case: Case) -> None:
    """eq:lp:adversary:diff: the same with weight one on every secret; it minimises Σ_s E_s (eq:error:conditional)."""
    problem, mechanism = case.problem, pg.design(case.problem, **case.bounds)
    attains_the_program(attacks.uniform(mechanism, problem), mechanism, problem, np.ones(len(problem.space)))


@given(cases())
@settings(max_examples=50)
def test_eq_lp_adversary_diff_minmax(case: Case) -> None:
    """eq:lp:adversary:diff:minmax: y is the largest E_s of the attack found, and no other attack has a smaller one."""
    problem, mechanism = case.problem, pg.design(case.problem, **case.bounds)
    p, d = mechanism.probabilities, problem.distance
    n = len(d)

    def worst(attack: attacks.Attack) -> float:
        return max(error_by_hand(p, attack.matrix, d, np.eye(n)[s]) for s in range(n))

    found = attacks.minmax(mechanism, problem)
    assert worst(found) == pytest.approx(found.error, abs=1e-7)
    written_out = pg.Highs().solve_program(minmax_attack_program(p, d))
    assert found.error == pytest.approx(float(written_out.block("y")[0]), abs=1e-7)
    for rival in (attacks.optimal, attacks.uniform, attacks.bayesian):
        assert found.error <= worst(rival(mechanism, problem)) + 1e-7


@given(cases())
@settings(max_examples=50)
def test_eq_lp_adversary_diff_minmax2(case: Case) -> None:
    """eq:lp:adversary:diff:minmax2: y is the largest E_{ŝ,s} = Pr{ŝ|s} d(ŝ,s), and no other attack has less."""
    problem, mechanism = case.problem, pg.design(case.problem, **case.bounds)

    def worst(attack: attacks.Attack) -> float:
        return float(((mechanism.probabilities @ attack.matrix) * problem.distance.T).max())

    found = attacks.minmax_pairs(mechanism, problem)
    assert worst(found) == pytest.approx(found.error, abs=1e-7)
    for rival in (attacks.optimal, attacks.uniform, attacks.bayesian, attacks.minmax):
        assert found.error <= worst(rival(mechanism, problem)) + 1e-7


@given(cases())
def test_eq_attack_bayesian(case: Case) -> None:
    """eq:attack:bayesian: q(ŝ|o) = π(ŝ) p(o|ŝ) / Σ_s π(s) p(o|s), entry by entry; unseen o: the prior."""
    problem, mechanism = case.problem, pg.design(case.problem, **case.bounds)
    prior, p = problem.prior.probabilities, mechanism.probabilities
    matrix = attacks.bayesian(mechanism, problem).matrix
    for o in range(p.shape[1]):
        total = sum(prior[s] * p[s, o] for s in range(len(prior)))
        for guess in range(len(prior)):
            expected = prior[guess] * p[guess, o] / total if total > 0 else prior[guess]
            assert matrix[o, guess] == pytest.approx(expected)
        label = mechanism.observables.labels[o]
        if total > 0:
            assert mechanism.posterior(label).probabilities == pytest.approx(matrix[o])
        else:
            with pytest.raises(pg.InvalidProblem, match=r"never given|impossible"):
                mechanism.posterior(label)


@given(cases())
def test_the_optimal_attack_beats_every_attack(case: Case) -> None:
    """Section 6: no inference does better on average than the optimal one, which may be deterministic (eq:proof:q)."""
    problem, mechanism = case.problem, pg.design(case.problem, **case.bounds)
    prior, p, d = problem.prior.probabilities, mechanism.probabilities, problem.distance
    best = attacks.optimal(mechanism, problem)
    assert set(best.matrix.ravel()) <= {0.0, 1.0}
    generator = np.random.default_rng(0)
    rivals = [generator.dirichlet(np.ones(len(prior)), p.shape[1]) for _ in range(5)]
    rivals += [attack(mechanism, problem).matrix for attack in (attacks.bayesian, attacks.uniform)]
    for rival in rivals:
        assert best.error <= error_by_hand(p, rival, d, prior) + 1e-12


def test_the_adversary_may_believe_and_value_something_else() -> None:
    """Section 8.2: π̂ differs from π; and the adversary may minimise another distance than the user fears."""
    problem = pg.Problem(pg.Prior.uniform(pg.Numbers([0, 1, 2])))
    mechanism = pg.baselines.uniform(problem)
    certain = pg.Prior(problem.space, [0, 0, 1])
    assert attacks.optimal(mechanism, problem).estimate(0) == 1
    assert attacks.optimal(mechanism, problem, prior=certain).estimate(0) == 2
    assert attacks.bayesian(mechanism, problem, prior=certain).estimate(1) == 2
    squared = [[0, 9, 9], [0, 0, 9], [0, 0, 0]]  # only underestimates hurt
    assert attacks.optimal(mechanism, problem, distance=squared).estimate(0) == 2
    known = pg.evaluate(mechanism, problem, adversary_prior=certain, truth=certain)
    assert known.distortion == 0.0
    assert pg.evaluate(mechanism, problem, adversary_prior=certain).distortion == pytest.approx(1.0)


def test_observables_of_probability_zero_do_no_harm() -> None:
    """No NaN, no division by zero: the row of an observable nobody sees is a distribution, and there is no estimate."""
    problem = pg.Problem(pg.Prior(pg.Numbers([1, 2, 3]), [0.9, 0.1, 0.0]))
    mechanism = pg.Mechanism.from_probabilities(problem, [[1, 0, 0], [1, 0, 0], [0, 1, 0]])
    for attack in (attacks.optimal, attacks.bayesian, attacks.uniform, attacks.minmax, attacks.minmax_pairs):
        found = attack(mechanism, problem)
        assert np.isfinite(found.matrix).all()
        assert found.matrix.sum(axis=1) == pytest.approx(np.ones(3))
    with pytest.raises(pg.InvalidProblem, match="never given"):
        attacks.optimal(mechanism, problem).estimate(3)
    assert attacks.bayesian(mechanism, problem).matrix[2].tolist() == [0.9, 0.1, 0.0]
    report = pg.evaluate(mechanism, problem)
    assert all(
        np.isfinite(value)
        for name, value in report.to_dict().items()
        if isinstance(value, float) and name not in ("epsilon", "any_pair")
    )


def test_the_minmax_attack_over_pairs_on_a_city() -> None:
    """144 cells, three million coefficients if written out: the error is the attack's own, and no rival has less."""
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(12, 12)))
    mechanism = pg.baselines.exponential(problem, 1.0)
    found = attacks.minmax_pairs(mechanism, problem)
    assert float(((mechanism.probabilities @ found.matrix) * problem.distance.T).max()) == found.error
    for rival in (attacks.optimal, attacks.uniform, attacks.bayesian):
        matrix = rival(mechanism, problem).matrix
        assert found.error < float(((mechanism.probabilities @ matrix) * problem.distance.T).max())


@pytest.mark.slow
def test_the_minmax_attack_at_the_papers_size() -> None:
    """300 secrets and observables: the attack's own worst error is that of the least favourable prior."""
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(20, 15)))
    mechanism = pg.baselines.exponential(problem, 1.0)
    found = attacks.minmax(mechanism, problem)
    best = attacks.optimal(mechanism, problem)
    assert best.error <= found.error  # the uniform prior is no worse for the adversary than the least favourable
    generator = np.random.default_rng(1)
    for _ in range(20):
        prior = pg.Prior(problem.space, generator.dirichlet(np.full(300, 0.05)))
        assert attacks.optimal(mechanism, problem, prior=prior).error <= found.error * (1 + 1e-7)


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e-8, 1e8])
@pytest.mark.parametrize("kind", ["minmax", "minmax_pairs"])
def test_minmax_attacks_do_not_depend_on_units_and_are_proved(unit: float, kind: str) -> None:
    """Distances × 10⁻⁸ once gave an error 58 % too large, silently: privacy was overstated."""
    generator = np.random.default_rng(4)
    points = generator.uniform(0, 3, (12, 2))
    apart = np.hypot(*(points[:, None] - points).transpose(2, 0, 1))
    space = pg.Categories([str(number) for number in range(12)])
    plain = pg.Problem(pg.Prior(space, generator.dirichlet(np.ones(12))), distance=apart)
    mechanism = pg.baselines.exponential(plain, 1.0)
    scaled = pg.Problem(plain.prior, distance=apart * unit, distinguishability=apart)
    attack = getattr(attacks, kind)
    reference, found = attack(mechanism, plain), attack(mechanism, scaled)
    assert found.error == pytest.approx(reference.error * unit, rel=2e-6)
    assert found.bound is not None
    assert found.error * (1 - 1e-6) <= found.bound <= found.error * (1 + 1e-9)


@given(st.integers(0, 5000))
@settings(max_examples=40)
def test_any_prior_bounds_the_minmax_attack_from_below(seed: int) -> None:
    generator = np.random.default_rng(seed)
    n, m = generator.integers(1, 7, 2)
    table = generator.dirichlet(np.full(m, 0.4), n)
    distance = generator.uniform(0, 3, (n, n)) * (1 - np.eye(n))
    problem = problem_of(np.full(n, 1 / n), np.ones((m, n)), distance)
    mechanism = pg.Mechanism.from_probabilities(problem, table)
    found = attacks.minmax(mechanism, problem)
    assert found.bound is not None
    assert found.error - found.bound <= 1e-6 * max(found.error, 1e-300)
    other = pg.Prior(problem.space, generator.dirichlet(np.ones(n)))
    assert attacks.optimal(mechanism, problem, prior=other).error <= found.error * (1 + 1e-9)


def test_an_attack_of_ones_own() -> None:
    problem = two_secrets(0.6)
    mechanism = pg.Mechanism.from_probabilities(problem, [[0.8, 0.2], [0.3, 0.7]])
    best = attacks.optimal(mechanism, problem)
    own = attacks.from_matrix(mechanism, problem, best.matrix, name="copied")
    assert own.name == "copied"
    assert own.error == pytest.approx(best.error)
    assert own.error == pytest.approx(metrics.distortion(mechanism, problem, own))
    stubborn = attacks.from_matrix(mechanism, problem, [[1.0, 0.0], [1.0, 0.0]])
    assert stubborn.error == pytest.approx(0.4)
    wrongs: dict[str, Any] = {"shape": [[1.0, 0.0]], "sum to 1": [[0.5, 0.4], [1, 0]], "negative": [[2, -1], [1, 0]]}
    for message, wrong in wrongs.items():
        with pytest.raises(pg.InvalidProblem, match=message):
            attacks.from_matrix(mechanism, problem, wrong)
