"""Secrets that must look the same are one in the program: same optimum, and a proof for all of them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from privacygames.solvers.interior.presolve import SecretClasses
from support import optimum_by_hand, problem_of


def test_groups_by_hand() -> None:
    away = np.inf
    exponents = np.array([[away, 2, 0, 3], [2, away, 1, 1], [0, 1, away, 4], [3, 1, 4, away]], dtype=float)
    groups = SecretClasses.of(exponents, 0.0)
    assert groups.class_of.tolist() == [0, 1, 0, 2]
    assert groups.class_exponents.tolist() == [[away, 1, 3], [1, away, 1], [3, 1, away]]
    assert groups.sum_members(np.array([[1.0, 2.0, 3.0, 4.0]])).tolist() == [[4.0, 2.0, 4.0]]
    assert SecretClasses.of(exponents, 1.0).count == 1  # by way of others
    assert SecretClasses.of(exponents[1:, 1:] + 1, 0.5).trivial


def test_one_way_is_enough() -> None:
    """Rows of which one is nowhere larger are equal, since both sum to one."""
    exponents = np.array([[np.inf, 0.0], [1.0, np.inf]])
    assert SecretClasses.of(exponents, 0.0).count == 1
    assert SecretClasses.of(exponents + 0.2, 0.1).trivial


@st.composite
def repeated(draw: st.DrawFn) -> tuple[pg.Problem, dict[str, Any]]:
    """A few places, several secrets in each, with costs and priors of their own; and bounds of every kind."""
    seed = draw(st.integers(0, 10_000))
    random = np.random.default_rng(seed)
    places = draw(st.integers(1, 3))
    where = np.concatenate([np.arange(places), random.integers(0, places, draw(st.integers(1, 3)))])
    apart = random.uniform(0.5, 2.0, (places, 2))
    distance = np.abs(apart[:, None] - apart[None]).sum(axis=2)[np.ix_(where, where)]
    prior = random.dirichlet(np.ones(len(where)))
    cost = random.uniform(0, 1, (draw(st.integers(2, 4)), len(where)))
    errors = 1 - np.eye(len(where))
    problem = problem_of(prior / prior.sum(), cost, errors, distance)
    bounds: dict[str, Any] = {"epsilon": draw(st.sampled_from([0.2, 1.0, 3.0])), "worst_case": draw(st.booleans())}
    if draw(st.booleans()):
        bounds["distortion"] = draw(st.sampled_from([0.3, 0.9])) * pg.max_distortion(problem)
    return problem, bounds


@given(repeated())
@settings(max_examples=80)
def test_the_optimum_is_that_of_the_program_written_out(case: tuple[pg.Problem, dict[str, Any]]) -> None:
    problem, bounds = case
    certificate = pg.design(problem, solver=pg.Interior(), **bounds).certificate
    assert "blocks" in certificate.provenance.solver
    assert "after" not in certificate.provenance.solver
    assert certificate.cost == pytest.approx(optimum_by_hand(problem, **bounds), rel=1e-6, abs=1e-8)
    assert certificate.gap is not None
    assert certificate.gap <= 1e-6


@pytest.mark.parametrize("apart", [0.0, 1e-12, 1e-9, 1e-7, 1e-6, 1e-5, 1e-3])
@pytest.mark.parametrize("bounds", [{}, {"worst_case": True}, {"distortion": 0.6}], ids=str)
def test_nearly_the_same_secrets_need_no_second_engine(apart: float, bounds: dict[str, Any]) -> None:
    """From equal to merely close: rescaled, taken together or solved as they are, but always certified."""
    random = np.random.default_rng(3)
    points = random.random((30, 2)) * 5
    distance = np.hypot(*(points[:, None] - points).transpose(2, 0, 1))
    distance[-1], distance[:, -1] = distance[0], distance[:, 0]
    distance[[0, -1], [-1, 0]], distance[-1, -1] = apart, 0.0
    prior = random.dirichlet(np.ones(30))
    problem = problem_of(prior / prior.sum(), distance, distance, distance)
    certificate = pg.design(problem, epsilon=1.0, solver=pg.Interior(), **bounds).certificate
    assert "blocks" in certificate.provenance.solver
    assert "after" not in certificate.provenance.solver
