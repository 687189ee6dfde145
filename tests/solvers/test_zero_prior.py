"""Secrets nobody has: what is left out of the game changes nothing, and everyone gets a row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from privacygames.solvers.interior.presolve import can_be_deferred, extend_mechanism, margins
from support import optimum_by_hand, problem_of


def scattered(seed: int, held: int, absent: int, cost: str) -> pg.Problem:
    """Points in a square, some of them with no prior."""
    generator = np.random.default_rng(seed)
    points = generator.uniform(0, 3, (held + absent, 2))
    distance = np.hypot(*(points[:, None] - points).transpose(2, 0, 1))
    prior = np.concatenate([generator.dirichlet(np.ones(held)), np.zeros(absent)])
    order = generator.permutation(len(prior))
    distance, prior = distance[np.ix_(order, order)], prior[order]
    return problem_of(prior, distance if cost == "distance" else 1 - np.eye(len(prior)), distance)


@given(
    seed=st.integers(0, 10_000),
    held=st.integers(3, 5),
    absent=st.integers(1, 4),
    epsilon=st.sampled_from([0.1, 0.6, 2.0]),
    share=st.sampled_from([None, 0.5, 0.95]),
    cost=st.sampled_from(["hamming", "distance"]),
)
@settings(max_examples=60)
def test_same_optimum_as_with_everyone(
    seed: int, held: int, absent: int, epsilon: float, share: float | None, cost: str
) -> None:
    problem = scattered(seed, held, absent, cost)
    distortion = None if share is None else share * pg.max_distortion(problem)
    certificate = pg.design(problem, epsilon=epsilon, distortion=distortion, solver=pg.Interior()).certificate
    best = optimum_by_hand(problem, epsilon=epsilon, distortion=distortion)
    assert certificate.cost == pytest.approx(best, rel=1e-6, abs=1e-8)
    assert certificate.gap is not None
    assert certificate.gap <= 1e-6


def triangle() -> tuple[pg.Problem, float]:
    """Three secrets around one nobody has, which limits what they can do (docs/theory/solver.md)."""
    angle = 2 * np.pi * np.arange(3) / 3
    points = np.array([*zip(np.cos(angle), np.sin(angle), strict=True), (0.0, 0.0)])
    distance = np.hypot(*(points[:, None] - points).transpose(2, 0, 1))
    return problem_of(np.array([1, 1, 1, 0]) / 3, 1 - np.eye(4), distance), 0.2


def test_a_secret_in_the_middle_is_admitted_because_it_limits_the_others() -> None:
    problem, epsilon = triangle()
    certificate = pg.design(problem, epsilon=epsilon, solver=pg.Interior()).certificate
    alone = problem_of(problem.prior.probabilities[:3], 1 - np.eye(3), problem.distance[:3, :3])
    assert certificate.cost > optimum_by_hand(alone, epsilon=epsilon) * (1 + 1e-4)
    assert certificate.cost == pytest.approx(optimum_by_hand(problem, epsilon=epsilon), rel=1e-6)
    assert "4 of 4 secrets" in certificate.provenance.solver


def test_a_far_secret_stays_out() -> None:
    problem = problem_of(np.array([0.5, 0.5, 0.0]), 1 - np.eye(3), np.array([[0, 1, 9.0], [1, 0, 9.0], [9, 9, 0.0]]))
    certificate = pg.design(problem, epsilon=1.0, solver=pg.Interior()).certificate
    assert "2 of 3 secrets" in certificate.provenance.solver
    assert certificate.cost == pytest.approx(1 / (1 + np.e), rel=1e-6)


def test_secrets_that_no_ratio_reaches_get_a_row() -> None:
    rows, whose, failed = extend_mechanism(
        np.full((3, 3), np.inf), np.array([[0.25], [0.75]]), np.array([0]), np.array([1, 2])
    )
    assert rows.sum(axis=0) == pytest.approx(1.0)
    assert sorted(whose) == [1, 2]
    assert not len(failed)


def test_without_the_triangle_inequality_nobody_is_left_out() -> None:
    exponents = np.array([[np.inf, 5.0, 1.0], [5.0, np.inf, 1.0], [1.0, 1.0, np.inf]])
    assert not can_be_deferred(exponents, np.array([False, False, True]))
    assert can_be_deferred(exponents, np.array([True, False, False]))


@given(st.integers(0, 10_000))
@settings(max_examples=50)
def test_rows_filled_in_keep_every_ratio_and_sum_to_one(seed: int) -> None:
    """Whoever gets a row keeps all promises; whoever does not had no room, given those before."""
    problem = scattered(seed, 4, 5, "hamming")
    exponents = problem.distinguishability + np.diag(np.full(9, np.inf))
    generator = np.random.default_rng(seed)
    known = np.flatnonzero(problem.prior.probabilities > 0)
    # Mixtures of exponential mechanisms keep the ratios between the four.
    scores = np.exp(
        -exponents[np.ix_(known, known)] / 2, where=np.isfinite(exponents[np.ix_(known, known)]), out=np.ones((4, 4))
    )
    share = generator.uniform()
    column = share * (scores / scores.sum(axis=0)).T + (1 - share) / 4
    column = column.T / column.sum(axis=1)
    logs = np.log(column)
    allowed = (logs[:, :, None] - logs[:, None, :] <= exponents[np.ix_(known, known)] + 1e-12).all()
    others = np.setdiff1d(np.arange(9), known)
    rows, whose, failed = extend_mechanism(exponents, column, known, others)
    assert sorted([*whose, *failed]) == others.tolist()
    if not allowed:
        return
    everyone, full = np.append(known, whose), np.concatenate([column, rows], axis=1)
    assert full.sum(axis=0) == pytest.approx(1.0, abs=1e-12)
    logs = np.log(full)
    assert (logs[:, :, None] - logs[:, None, :] <= exponents[np.ix_(everyone, everyone)] + 1e-9).all()
    assert (margins(exponents, full, everyone, failed) <= 0).all()
