"""Where the method starts: strictly inside everything, and not dearer than where nothing is revealed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from formulations import restricted_program_of, scattered
from privacygames.problem import Bounds
from privacygames.solvers.interior.presolve import margins
from privacygames.solvers.interior.settings import InteriorSettings
from privacygames.solvers.interior.start import initial_state
from privacygames.solvers.linalg import host_algebra
from support import block_iterations, problem_of

SETTINGS = InteriorSettings()


@given(
    n=st.integers(4, 12),
    seed=st.integers(0, 10**6),
    absent=st.integers(0, 2),
    epsilon=st.sampled_from([1e-3, 0.3, 1.0, 5.0, 50.0]),
    share=st.sampled_from([None, 0.3, 0.95, 0.9999]),
    compiled=st.booleans(),
)
@settings(max_examples=60)
def test_the_start_is_inside(
    n: int, seed: int, absent: int, epsilon: float, share: float | None, compiled: bool
) -> None:
    problem = scattered(n, seed, absent=absent)
    distortion = None if share is None else share * pg.max_distortion(problem)
    with host_algebra(1, compiled=compiled) as algebra:
        form = restricted_program_of(
            problem, Bounds(epsilon=epsilon, distortion=distortion), algebra, defer_zero_prior=absent > 0
        )
        state = initial_state(form, 1e-6, SETTINGS)
    column = state.u[:, : form.secret_count]
    assert column.min() > 0
    assert np.abs(column.sum(axis=0) - 1).max() <= 1e-12
    logs = np.log(column)
    bounded = form.full_program.exponents[np.ix_(form.secrets, form.secrets)]
    assert ((logs[:, :, None] - logs[:, None, :]) <= SETTINGS.exponential_max_use * bounded + 1e-12).all()
    assert all((each.slacks > 0).all() for each in state.slack_duals)
    assert (state.coupling_slack > 0).all()
    if len(form.deferred):
        assert margins(form.full_program.exponents, column, form.secrets, form.deferred).min() > 0
    nothing = form.program.objective.sum(axis=1).mean()  # what it costs to reveal nothing, answers all alike
    assert (form.program.objective * column).sum() <= nothing * (1 + 1e-12)


def test_it_is_exponential_where_that_costs_less() -> None:
    problem = scattered(30, 1)
    with host_algebra(1) as algebra:
        form = restricted_program_of(problem, Bounds(epsilon=2.0), algebra)
        column = initial_state(form, 1e-6, SETTINGS).u
        blind = restricted_program_of(problem, Bounds(epsilon=1e-3), algebra)
        constant = initial_state(blind, 1e-6, SETTINGS).u
    assert np.ptp(constant, axis=1).max() <= 1e-12
    assert (form.program.objective * column).sum() < 0.7 * (form.program.objective * constant).sum()


def test_exponents_that_are_no_distances_get_a_start_inside_them() -> None:
    # From a to c by way of b is much shorter than directly: an exponential mechanism would break the way.
    far = np.array([[0.0, 0.1, 9.0], [0.1, 0.0, 0.1], [9.0, 0.1, 0.0]])
    problem = problem_of(np.ones(3) / 3, 1 - np.eye(3), 1 - np.eye(3), far)
    with host_algebra(1) as algebra:
        form = restricted_program_of(problem, Bounds(epsilon=1.0), algebra)
        logs = np.log(initial_state(form, 1e-6, SETTINGS).u)
    assert (
        (logs[:, :, None] - logs[:, None, :]) <= SETTINGS.exponential_max_use * form.full_program.exponents + 1e-12
    ).all()


def test_revealing_problems_take_few_iterations() -> None:
    assert block_iterations(scattered(40, 2), epsilon=50.0) <= 14  # 18 from a constant mechanism


def test_the_price_of_a_limit_starts_at_what_a_unit_of_cost_buys() -> None:
    # Two secrets, and answers that are wrong with probability e: cost and privacy are both e, up to a half. So a unit
    # of cost buys a unit of privacy wherever one starts, and does so at the optimum, too.
    problem = problem_of(np.array([0.5, 0.5]), 1 - np.eye(2), 1 - np.eye(2), 1 - np.eye(2))
    with host_algebra(1) as algebra:
        bounds = Bounds(epsilon=3.0, cost_at_most=0.3)
        for wrong in (0.06, 0.2):
            start = np.array([[1 - wrong, wrong], [wrong, 1 - wrong]])
            state = initial_state(restricted_program_of(problem, bounds, algebra, start=start), 1e-6, SETTINGS)
            assert state.inequality_dual == pytest.approx([1.0])


@given(
    n=st.integers(3, 15),
    seed=st.integers(0, 10**6),
    epsilon=st.sampled_from([1e-3, 0.3, 1.0, 50.0]),
    share=st.sampled_from([0.01, 0.3, 0.95, 0.9999]),
)
@settings(max_examples=60)
def test_the_prices_of_guesses_add_up_to_the_price_of_the_distortion(
    n: int, seed: int, epsilon: float, share: float
) -> None:
    problem = scattered(n, seed)
    bounds = Bounds(epsilon=epsilon, distortion=share * pg.max_distortion(problem))
    with host_algebra(1) as algebra:
        form = restricted_program_of(problem, bounds, algebra)
        state = initial_state(form, 1e-6, SETTINGS)
    assert form.guess_rows is not None
    price = state.coupling_dual[form.secret_count]
    place = next(at for at, family in enumerate(form.batches[0].families) if family is form.guess_rows)
    for batch, duals in zip(form.batches, state.block_duals, strict=True):
        assert batch.split_by_family(duals)[place].sum(axis=1) == pytest.approx(price, rel=0.02)
