"""Whatever a solver returns, the repaired weights keep every promise in exact arithmetic, or it is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from exact import exp_enclosure, holds_exactly
from privacygames.certificates.repair import repair, to_weights
from privacygames.certificates.statement import BITS
from privacygames.certificates.verifier import check
from support import Array, Case, cases, draft_statement, problem_of


def test_the_enclosure_of_exp_encloses() -> None:
    from decimal import Context, Decimal
    from fractions import Fraction

    for x in (0.0, 1e-300, 1e-9, 0.5, 1.0, 3.7, 40.0, 60.0):
        low, high = exp_enclosure(Fraction(x))
        true = Fraction(Context(prec=60).exp(Decimal(x)))
        slack = Fraction(1, 10**55)
        assert low <= true * (1 + slack)
        assert true * (1 - slack) <= high
        assert high - low <= low / 10**30


@st.composite
def noise(draw: st.DrawFn) -> tuple[str, float, int]:
    kind = draw(st.sampled_from(["none", "relative", "absolute", "zeros", "denormals", "sums", "negative"]))
    return kind, draw(st.sampled_from([1e-12, 1e-9, 1e-6, 1e-4])), draw(st.integers(0, 2**32))


def disturbed(probabilities: Array, how: tuple[str, float, int]) -> Array:
    kind, size, seed = how
    generator = np.random.default_rng(seed)
    values = probabilities.copy()
    if kind == "relative":
        values *= 1 + size * generator.standard_normal(values.shape)
    if kind == "absolute":
        values += size * generator.standard_normal(values.shape)
    if kind == "negative":
        values -= size
    if kind == "sums":
        values *= 1 + size * generator.standard_normal((len(values), 1))
    if kind in ("zeros", "denormals"):
        lost = (generator.random(values.shape) < 0.3) & (values < 0.5)
        values[lost] = 0.0 if kind == "zeros" else 5e-324
    return np.asarray(values)


@given(cases(reverse=False), noise())
@settings(max_examples=300)
def test_disturbed_solutions_are_repaired_exactly(case: Case, how: tuple[str, float, int]) -> None:
    good = pg.design(case.problem, **case.bounds)
    values = disturbed(good.probabilities, how)
    if (np.maximum(values, 0).sum(axis=1) <= 0.5).any():
        return
    statement, _ = repair(draft_statement(case.problem, pg.Bounds(**case.bounds)), values)
    assert holds_exactly(statement)


@given(cases(reverse=True))
@settings(max_examples=100)
def test_limits_on_the_cost_are_kept_exactly(case: Case) -> None:
    mechanism = pg.design(case.problem, **case.bounds)
    assert holds_exactly(mechanism.statement)


@given(cases(reverse=False))
@settings(max_examples=100)
def test_repair_costs_next_to_nothing(case: Case) -> None:
    certificate = pg.design(case.problem, **case.bounds).certificate
    largest = float(case.problem.cost.max())
    assert certificate.provenance.repair_cost <= 1e-6 * max(certificate.cost, 1e-6 * largest)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("spread", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("least", [0.0, 1e-12, 0.1])
def test_extreme_scales(epsilon: float, spread: float, least: float) -> None:
    """ε from 0.01 to 20, distances over six orders of magnitude, masses of 0 and 10^-12."""
    points = np.array([0.0, 1.0 / spread, 1.0, 2.0])
    distance = np.abs(points[:, None] - points)
    prior = np.array([0.4, least, 0.3, 0.3 - least])
    problem = problem_of(prior, 1 - np.eye(4), distance)
    for distortion in (None, 0.5 * pg.max_distortion(problem), 0.9999 * pg.max_distortion(problem)):
        mechanism = pg.design(problem, epsilon=epsilon, distortion=distortion)
        assert holds_exactly(mechanism.statement)
        assert mechanism.certificate.gap is not None
        assert mechanism.certificate.gap <= 1e-6


def test_equal_rows_come_from_a_mean_and_not_from_mixing() -> None:
    """No constant mechanism keeps a ratio of exponent 0 strictly, so none can make two rows equal that are not."""
    apart = [[0, 0, 2], [0, 0, 2], [2, 2, 0]]
    problem = problem_of([0.2, 0.3, 0.5], 1 - np.eye(3), 1 - np.eye(3), apart)
    noisy = np.array([[0.6, 0.3, 0.1], [0.6 - 1e-9, 0.3, 0.1 + 1e-9], [0.2, 0.2, 0.6]])
    constant = np.full(3, 1 / 3)
    for share in (1e-9, 0.5, 0.999):
        mixed = (1 - share) * noisy + share * constant
        assert mixed[0, 0] > mixed[1, 0]
    statement, _ = repair(draft_statement(problem, pg.Bounds(epsilon=1.0)), noisy)
    assert (statement.weights[0] == statement.weights[1]).all()
    assert holds_exactly(statement)


def test_hopeless_numbers_are_refused() -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Categories("ab")))
    draft = draft_statement(problem, pg.Bounds(epsilon=1.0))
    for values in ([[np.nan, 1], [0, 1]], [[np.inf, 0], [0, 1]], [[0, 0], [0, 1]], [[-5, -5], [0, 1]]):
        with pytest.raises(pg.SolveFailed):
            repair(draft, np.array(values))


def test_impossible_promises_are_refused() -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Categories("ab")))
    draft = draft_statement(problem, pg.Bounds(distortion=0.51))
    with pytest.raises(pg.GuaranteeViolated, match="distortion privacy is only shown to be"):
        repair(draft, np.eye(2))


@given(
    st.integers(1, 40), st.integers(1, 40), st.integers(0, 2**32), st.sampled_from([0.01, 1.0, 100.0]), st.booleans()
)
def test_weights_sum_to_the_power_of_two(rows: int, columns: int, seed: int, shape: float, holes: bool) -> None:
    generator = np.random.default_rng(seed)
    values = generator.dirichlet(np.full(columns, shape), rows)
    if holes and columns > 1:
        values[:, 0] = 0.0
        values[values.sum(axis=1) == 0, 1] = 1.0
        values /= values.sum(axis=1, keepdims=True)
    weights = to_weights(values, BITS)
    assert all(sum(int(w) for w in row) == 2**BITS for row in weights)
    assert (weights >= 0).all()
    assert (weights[values == 0] == 0).all()
    assert np.abs(weights / 2**BITS - values).max() < 1e-14
    twice = to_weights(np.vstack([values, values]), BITS)
    assert (twice[:rows] == twice[rows:]).all()


def test_one_unit_too_many_is_noticed() -> None:
    """At the boundary a single unit in 2^62 decides, and the verifier sides with exact arithmetic."""
    problem = pg.Problem(pg.Prior.uniform(pg.Categories("ab")))
    mechanism = pg.design(problem, epsilon=1.0)
    statement = mechanism.statement
    weights = statement.weights.copy()
    step = 2**20
    while step >= 1:  # as near to the boundary as the verifier still accepts
        trial = weights + step * np.array([[1, -1], [-1, 1]])
        try:
            check(replace(statement, weights=trial))
            weights = trial
        except pg.GuaranteeViolated:
            step //= 2
    assert holds_exactly(replace(statement, weights=weights))
    past = weights + 2**14 * np.array([[1, -1], [-1, 1]])
    assert not holds_exactly(replace(statement, weights=past))
