"""The block interior-point engine against an independent solver, on everything it says it can solve."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings

import privacygames as pg
from support import Case, cases, geolife, optimum_by_hand, problem_of, two_secrets


@given(cases(largest=7))
@settings(max_examples=250)
def test_same_optimum_as_the_program_written_out(case: Case) -> None:
    assume(pg.Interior().can_solve(case.problem, pg.Bounds(**case.bounds)))
    certificate = pg.design(case.problem, solver=pg.Interior(), **case.bounds).certificate
    value = certificate.verification.distortion if certificate.bounds.maximises_distortion else certificate.cost
    best = optimum_by_hand(case.problem, **case.bounds)
    assert value == pytest.approx(best, rel=1e-6, abs=1e-8)
    assert certificate.gap is not None
    assert certificate.gap <= 1e-6


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("seed", range(4))
def test_distortion_alone_needs_no_second_engine(seed: int, share: float) -> None:
    """x, an unknown without a sign, must not spoil the scaling when it passes zero."""
    problem = metric_problem(seed, 30, 20.0, 1e-3)
    distortion = share * pg.max_distortion(problem)
    certificate = pg.design(problem, solver=pg.Interior(), distortion=distortion).certificate
    assert "blocks" in certificate.provenance.solver
    reference = pg.design(problem, solver=pg.Highs(), distortion=distortion).certificate
    assert certificate.cost == pytest.approx(reference.cost, rel=1e-6)


def metric_problem(seed: int, secrets: int, spread: float, least: float) -> pg.Problem:
    """Points whose distances span ``spread``, a prior with zeros and masses of ``least``."""
    generator = np.random.default_rng(seed)
    radius = np.exp(generator.uniform(-np.log(spread), 0, secrets))
    angle = generator.uniform(0, 2 * np.pi, secrets)
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    distance = np.hypot(*(points[:, None] - points).transpose(2, 0, 1))
    prior = generator.dirichlet(np.ones(secrets))
    prior[0] = 0.0
    prior[1] = least
    return problem_of(prior / prior.sum(), 1 - np.eye(secrets), distance)


@pytest.mark.parametrize(("seed", "epsilon", "share"), [(5, 1.0, None), (5, 1.0, 0.9), (7, 0.3, None), (7, 5.0, 0.5)])
def test_scattered_places_need_no_second_engine(seed: int, epsilon: float, share: float | None) -> None:
    """In columns that vanish ratios must not come and go for ever."""
    problem = metric_problem(seed, 60, 20.0, 1e-12)
    distortion = None if share is None else share * pg.max_distortion(problem)
    certificate = pg.design(problem, epsilon=epsilon, distortion=distortion, solver=pg.Interior()).certificate
    assert "blocks" in certificate.provenance.solver


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("spread", [1.0, 1e6])
@pytest.mark.parametrize("share", [None, 0.0, 0.5, 0.999])
def test_extreme_problems_are_solved_by_some_engine(epsilon: float, spread: float, share: float | None) -> None:
    """Medium size, so that the block engine is chosen first: it converges, or hands over to HiGHS."""
    problem = metric_problem(3, 24, spread, 1e-12)
    distortion = None if share is None else share * pg.max_distortion(problem)
    certificate = pg.design(problem, epsilon=epsilon, distortion=distortion).certificate
    assert certificate.gap is not None
    assert certificate.gap <= 1e-6


@pytest.mark.parametrize(
    "options", [{}, {"merge_dominated": False}, {"drop_implied": False}, {"defer_zero_prior": False}]
)
def test_reductions_can_be_switched_off(options: dict[str, Any]) -> None:
    grid = pg.Grid(4, 4)
    problem = pg.Problem(pg.Prior.from_counts(grid, [3, 0, 1, 2] * 4))
    certificate = pg.design(problem, epsilon=1.0, distortion=1.0, solver=pg.Interior(**options)).certificate
    reference = pg.design(problem, epsilon=1.0, distortion=1.0, solver=pg.Highs()).certificate
    assert certificate.cost == pytest.approx(reference.cost, rel=1e-6)
    left = "16 of 16 observables" if "merge_dominated" in options else "12 of 16 observables"
    assert left in certificate.provenance.solver
    if "defer_zero_prior" in options:
        assert "16 of 16 secrets" in certificate.provenance.solver


def test_what_it_cannot_solve_it_refuses() -> None:
    problem = two_secrets(0.5)
    with pytest.raises(pg.InvalidProblem, match="Interior"):
        pg.design(problem, distortion=pg.max_distortion(problem), solver=pg.Interior())


def test_a_problem_too_large_is_refused_with_an_estimate() -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(40, 40)), cost="euclidean")
    with pytest.raises(pg.InvalidProblem, match=r"would need about [\d.]+ GiB"):
        pg.design(problem, epsilon=1.0)


@pytest.mark.parametrize("bounds", [{"epsilon": 0.6}, {"epsilon": 0.6, "distortion": 0.9}], ids=str)
def test_the_papers_setting_on_real_visits(bounds: dict[str, Any]) -> None:
    """300 cells, exactly: 27 million ratios hold, and no mechanism costs less (known optimum 0.614899)."""
    certificate = pg.design(geolife("35"), **bounds).certificate
    assert certificate.cost == pytest.approx(0.614899, abs=1e-6)
    assert certificate.gap is not None
    assert certificate.gap <= 1e-6


def scattered(n: int, cost: str = "own") -> pg.Problem:
    """Random points in a square of side √n with a Dirichlet prior."""
    random = np.random.default_rng(n)
    points = random.random((n, 2)) * np.sqrt(n)
    distance = np.hypot(*(points[:, None] - points).transpose(2, 0, 1))
    prior = random.dirichlet(np.ones(n))
    return problem_of(prior / prior.sum(), distance if cost == "own" else 1 - np.eye(n), distance, distance)


@pytest.mark.parametrize("cost", ["own", "hamming"])
@pytest.mark.parametrize("epsilon", [None, 0.3, 2.0])
@pytest.mark.parametrize("n", [5, 12])
def test_the_largest_distortion(n: int, epsilon: float | None, cost: str) -> None:
    """No answer may make another guess better than the best blind one: a cone, and no HiGHS."""
    problem = scattered(n, cost)
    most = pg.max_distortion(problem)
    certificate = pg.design(problem, epsilon=epsilon, distortion=most, solver=pg.Interior()).certificate
    assert "after" not in certificate.provenance.solver
    reference = pg.design(problem, epsilon=epsilon, distortion=most, solver=pg.Highs()).certificate
    assert certificate.cost == pytest.approx(reference.cost, rel=1e-6)
    assert certificate.verification.distortion >= most


@pytest.mark.parametrize(
    "bounds",
    [
        {"epsilon": 1e-5},
        {"epsilon": 1e-3},
        {"epsilon": 50.0},
        {"epsilon": 0.1, "worst_case": True},
        {"epsilon": 5.0, "worst_case": True},
        {"epsilon": 1.0, "share": 0.999998},
        {"epsilon": 1.0, "cost_at_most": 2.0},
        {"epsilon": 1.0, "cost_at_most": 1.2},
    ],
    ids=str,
)
def test_what_used_to_end_in_minutes_of_another_engine(bounds: dict[str, Any]) -> None:
    problem = scattered(60)
    given = {key: value for key, value in bounds.items() if key != "share"}
    if "share" in bounds:
        given["distortion"] = bounds["share"] * pg.max_distortion(problem)
    certificate = pg.design(problem, solver=pg.Interior(), **given).certificate
    assert "blocks" in certificate.provenance.solver
    assert "after" not in certificate.provenance.solver
    assert certificate.gap is not None
    assert certificate.gap <= 1e-6


def test_another_solver_is_never_silent() -> None:
    """Which solver took over, and why, is in the progress and in the certificate."""

    class Short(pg.Interior):
        def solve(self, problem: pg.Problem, bounds: pg.Bounds, *, options: pg.SolveOptions) -> pg.Solution:
            return super().solve(problem, bounds, options=replace(options, tolerance=0.1))

    told: list[str] = []
    problem = scattered(12)
    certificate = pg.design(
        problem, epsilon=1.0, solver=Short(), progress=lambda now: told.append(now.message)
    ).certificate
    assert "HiGHS" in certificate.provenance.solver
    assert "after Short left a gap of" in certificate.provenance.solver
    assert any(message.startswith("another attempt: Short left a gap of") for message in told)


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_change_nothing_but_the_time(threads: int) -> None:
    problem = scattered(30)
    one = pg.design(problem, epsilon=1.0, solver=pg.Interior(threads=threads)).certificate
    assert one.cost == pytest.approx(pg.design(problem, epsilon=1.0, solver=pg.Interior()).certificate.cost, rel=1e-7)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "two"])
def test_threads_are_counted(threads: Any) -> None:
    with pytest.raises(pg.InvalidProblem, match="threads"):
        pg.Interior(threads=threads)
