"""Sections 6 to 8: the user's programs, Theorem 1, and the identities the paper states."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from privacygames import attacks, metrics
from privacygames.programs.design_programs import differential_program, distortion_program, joint_program
from support import Case, cases, error_by_hand, optimum_by_hand, problems


@given(problems(), st.sampled_from([0.0, 0.4, 0.9]))
def test_eq_lp_user_utility_privacy_game(problem: pg.Problem, share: float) -> None:
    """eq:lp:user:utility-privacy:game (…:c1, …:c2): the program has the optimum written out by hand."""
    bound = share * pg.max_distortion(problem)
    program = distortion_program(problem, bound)
    found = pg.Highs().solve_program(program)
    assert program.objective @ found.values == pytest.approx(optimum_by_hand(problem, distortion=bound), abs=1e-8)
    n, m = problem.shape
    assert program.matrix.shape == (n + n * m + 1, n * m + m)


@given(problems(), st.sampled_from([0.1, 1.0]), st.sampled_from([None, 0.0, 1.5]))
def test_eq_lp_user_utility_privacy_diff(problem: pg.Problem, epsilon: float, within: float | None) -> None:
    """eq:lp:user:utility-privacy:diff:mult (…:mult:obj); with a threshold eq:lp:user:utility-privacy:diff:mult2."""
    program = differential_program(problem, epsilon, within=within)
    found = pg.Highs().solve_program(program)
    expected = optimum_by_hand(problem, epsilon=epsilon, within=within)
    assert program.objective @ found.values == pytest.approx(expected, abs=1e-8)
    n, m = problem.shape
    if within is None:
        assert program.matrix.shape == (n + n * (n - 1) * m, n * m)


@given(problems(), st.sampled_from([0.1, 1.0]), st.sampled_from([0.3, 0.9]))
def test_eq_lp_user_utility_jointprivacy(problem: pg.Problem, epsilon: float, share: float) -> None:
    """eq:lp:user:utility-jointprivacy: the program has the optimum written out by hand, and the size stated."""
    bound = share * pg.max_distortion(problem)
    program = joint_program(problem, epsilon, bound)
    found = pg.Highs().solve_program(program)
    expected = optimum_by_hand(problem, epsilon=epsilon, distortion=bound)
    assert program.objective @ found.values == pytest.approx(expected, abs=1e-8)
    n, m = problem.shape
    assert program.matrix.shape == (n + n * m + 1 + n * (n - 1) * m, n * m + m)


@given(cases(reverse=True))
@settings(max_examples=60)
def test_theorem_1_the_value_of_the_program_is_that_of_the_best_attack(case: Case) -> None:
    """Theorem 1 (eq:proof:expectederror, eq:proof:minq): Σ_o x(o) at the optimum is the best attack's error.

    Shown where x is what is maximised, so that it is tight: the program's value, computed by an independent
    solver, equals the error of the adversary's best response to the mechanism found.
    """
    mechanism = pg.design(case.problem, **case.bounds)
    attack = attacks.optimal(mechanism, case.problem)
    assert attack.error == pytest.approx(optimum_by_hand(case.problem, **case.bounds), rel=1e-6, abs=1e-7)


@given(problems(), st.sampled_from([0.2, 0.6, 1.0]))
@settings(max_examples=60)
def test_theorem_1_solves_the_nested_problem(problem: pg.Problem, share: float) -> None:
    """Theorem 1: the solution solves eq:lp:user:utility-privacy:nested (…:nested:c1).

    It meets the nested constraint against its own best response q*, and no mechanism in a sample of those that
    do costs less.
    """
    bound = share * pg.max_distortion(problem)
    mechanism = pg.design(problem, distortion=bound)
    prior, d = problem.prior.probabilities, problem.distance
    response = attacks.optimal(mechanism, problem).matrix
    assert error_by_hand(mechanism.probabilities, response, d, prior) >= bound - 1e-12
    generator = np.random.default_rng(3)
    for _ in range(20):
        rival = pg.Mechanism.from_probabilities(
            problem, generator.dirichlet(np.ones(problem.shape[1]), problem.shape[0])
        )
        if rival.certificate.verification.distortion >= bound:
            assert mechanism.certificate.cost <= metrics.expected_cost(rival, problem) * (1 + 1e-6) + 1e-9


@given(cases())
def test_eq_proof_the_best_pure_guess_is_as_good_as_any_mixture(case: Case) -> None:
    """eq:proof:ineq1, eq:proof:ineq2, eq:proof:q: per observable, mixing guesses cannot beat the best pure one."""
    problem, mechanism = case.problem, pg.baselines.uniform(case.problem)
    errors = (problem.distance * problem.prior.probabilities) @ mechanism.probabilities
    generator = np.random.default_rng(4)
    for o in range(problem.shape[1]):
        mixed = generator.dirichlet(np.ones(len(errors)), 10) @ errors[:, o]
        assert (mixed >= errors[:, o].min() - 1e-12).all()
    assert attacks.optimal(mechanism, problem).error == pytest.approx(errors.min(axis=0).sum())


@given(problems(), st.sampled_from([0.3, 1.0]), st.sampled_from([0.3, 0.9]), st.booleans())
@settings(max_examples=60)
def test_the_joint_mechanism_costs_no_less_than_each_alone(
    problem: pg.Problem, epsilon: float, share: float, worst_case: bool
) -> None:
    """Section 8: two bounds cost at least what the dearer of them costs alone."""
    bound = share * pg.max_distortion(problem)
    joint = pg.design(problem, epsilon=epsilon, distortion=bound, worst_case=worst_case).certificate.cost
    differential = pg.design(problem, epsilon=epsilon, worst_case=worst_case).certificate.cost
    distortion = pg.design(problem, distortion=bound, worst_case=worst_case).certificate.cost
    assert joint >= max(differential, distortion) * (1 - 1e-6) - 1e-9


@given(problems())
def test_a_constant_mechanism_has_the_largest_distortion_privacy(problem: pg.Problem) -> None:
    """Section 8.1: d_m^max is what the adversary errs by from the prior alone, and no mechanism has more."""
    most = pg.max_distortion(problem)
    constant = pg.baselines.constant(problem)
    assert attacks.optimal(constant, problem).error == pytest.approx(most, abs=1e-12)
    best = max(pg.baselines.uniform(problem).certificate.cost, constant.certificate.cost)
    unlimited = pg.design(problem, cost_at_most=best + 1.0)
    assert unlimited.certificate.verification.distortion == pytest.approx(most, rel=1e-6, abs=1e-9)


@given(problems(), st.sampled_from([0.2, 0.5, 0.8]))
@settings(max_examples=60)
def test_turning_the_problem_round_twice_comes_back(problem: pg.Problem, share: float) -> None:
    """Least cost for a distortion, then most distortion for that cost: at least the distortion asked for."""
    bound = share * pg.max_distortion(problem)
    cost = pg.design(problem, distortion=bound).certificate.cost
    back = pg.design(problem, cost_at_most=cost * (1 + 1e-6) + 1e-9)
    assert back.certificate.verification.distortion >= bound * (1 - 1e-6)
