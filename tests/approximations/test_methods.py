"""Approximations: what they promise holds, what they leave out only lowers the bound, and repair restores ε."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse.csgraph import shortest_path

import privacygames as pg
from exact import holds_exactly
from privacygames import approximations, metrics
from privacygames.approximations import pair_selection as pairs
from privacygames.certificates.repair import least_mixture
from support import optimum_by_hand, problem_of, problems

Array = NDArray[np.float64]


def square(side: int, cost: str = "euclidean") -> pg.Problem:
    return pg.Problem(pg.Prior.uniform(pg.Grid(side, side)), cost=cost)


@pytest.mark.parametrize(
    ("cost", "optimum"),
    [("euclidean", 1.394617), ("hamming", 0.759466)],  # by qif
)
def test_pruning_without_repair_breaks_the_promise_and_says_so(cost: str, optimum: float) -> None:
    """7×7, ratios beyond 2 cells dropped: a nominal 1.0 becomes 1.08, the dilation of the 8-neighbour metric."""
    problem = square(7, cost)
    broken = approximations.prune(problem, 1.0, 2.0, repair=False)
    realised = metrics.epsilon(broken, problem)
    assert realised == pytest.approx(1.0823, abs=1e-4)
    assert broken.certificate.bounds.epsilon == pytest.approx(realised, rel=1e-9)
    assert "not repaired: target ε = 1 per km" in broken.certificate.provenance.solver
    kept = approximations.prune(problem, 1.0, 2.0)
    certificate = kept.certificate
    assert certificate.bounds.epsilon == 1.0
    assert metrics.epsilon(kept, problem) <= 1.0
    assert certificate.bound is not None
    assert certificate.bound <= optimum + 1e-6 <= certificate.cost + 2e-6
    assert certificate.provenance.repair_cost == pytest.approx(certificate.cost - broken.certificate.cost, abs=1e-9)
    assert certificate.gap == pytest.approx((certificate.cost - certificate.bound) / certificate.cost)
    assert "of which repair" in str(certificate)


def approximate(name: str, problem: pg.Problem, epsilon: float, **bounds: Any) -> pg.Mechanism:
    radius = float(np.median(problem.distinguishability)) or 1.0
    if name == "prune":
        return approximations.prune(problem, epsilon, radius, **bounds)
    if name == "sampled":
        return approximations.sample_pairs(problem, epsilon, 0.3, generator=np.random.default_rng(5), **bounds)
    if name == "spanner":
        return approximations.spanner(problem, epsilon, dilation=1.5, **bounds)
    return approximations.early_stopping(problem, epsilon=epsilon, gap=0.05, **bounds)


@given(
    problems(),
    st.sampled_from(["prune", "sampled", "spanner", "early"]),
    st.sampled_from([0.3, 1.0]),
    st.sampled_from([None, 0.5, 0.95]),
    st.booleans(),
)
@settings(max_examples=80)
def test_bounds_enclose_the_exact_optimum_and_every_promise_holds_exactly(
    problem: pg.Problem, name: str, epsilon: float, part: float | None, worst_case: bool
) -> None:
    bounds: dict[str, Any] = {"worst_case": worst_case}
    if part is not None:
        bounds["distortion"] = part * pg.max_distortion(problem)
    mechanism = approximate(name, problem, epsilon, **bounds)
    certificate = mechanism.certificate
    assert certificate.bounds == pg.Bounds(epsilon=epsilon, **bounds)
    assert holds_exactly(mechanism.statement)
    exact = optimum_by_hand(problem, epsilon=epsilon, **bounds)
    assert certificate.bound is not None
    assert certificate.bound <= exact + 1e-8
    assert exact <= certificate.cost + 1e-8


@given(problems(), st.sampled_from([0.3, 1.0]), st.sampled_from([None, 0.9]))
@settings(max_examples=40)
def test_pruning_observables_as_well(problem: pg.Problem, epsilon: float, part: float | None) -> None:
    n = len(problem.space)
    cost = np.resize(problem.cost, (n, n))
    same = pg.Problem(problem.prior, cost, problem.distance, problem.distinguishability)
    bounds: dict[str, Any] = {} if part is None else {"distortion": part * pg.max_distortion(same)}
    mechanism = approximations.prune(same, epsilon, 2.0, output_radius=1.0, **bounds)
    certificate = mechanism.certificate
    exact = optimum_by_hand(same, epsilon=epsilon, **bounds)
    assert certificate.bound is not None
    assert certificate.bound <= exact + 1e-8
    assert exact <= certificate.cost + 1e-8
    assert holds_exactly(mechanism.statement)


def test_pruning_observables_without_repair_keeps_no_epsilon_at_all() -> None:
    """Cells far from an answer are bound by nothing: they never give it, and that tells them apart for sure."""
    broken = approximations.prune(square(4), 1.0, 2.0, output_radius=2.0, repair=False)
    assert broken.certificate.bounds.epsilon is None
    assert metrics.epsilon(broken, square(4)) == np.inf
    assert broken.certificate.provenance.solver.startswith("HiGHS")
    assert approximations.prune(square(4), 1.0, 2.0, output_radius=2.0).certificate.bounds.epsilon == 1.0


@given(problems(), st.sampled_from([0.3, 1.0]), st.sampled_from([0.3, 0.9]), st.sampled_from([0.0, 1.0, 2.0]))
@settings(max_examples=40)
def test_with_every_guess_no_distortion_is_lost(problem: pg.Problem, epsilon: float, part: float, near: float) -> None:
    """Whichever ratios are left out: the distortion asked for is kept, so that at most the exact excess is lost."""
    n = len(problem.space)
    same = pg.Problem(problem.prior, np.resize(problem.cost, (n, n)), problem.distance, problem.distinguishability)
    asked = part * pg.max_distortion(same)
    left = approximations.prune(
        same, epsilon, 1.0, output_radius=near, all_estimates=True, distortion=asked, repair=False
    )
    assert pg.evaluate(left, same).distortion >= asked - 1e-7
    exact = optimum_by_hand(same, epsilon=epsilon, distortion=asked)
    assert pg.evaluate(left, same).cost <= exact + 1e-6
    repaired = approximations.prune(same, epsilon, 1.0, output_radius=near, all_estimates=True, distortion=asked)
    assert repaired.certificate.bounds == pg.Bounds(epsilon=epsilon, distortion=asked)
    assert holds_exactly(repaired.statement)


def test_all_estimates_goes_with_output_radius() -> None:
    with pytest.raises(pg.InvalidProblem, match="all_estimates goes with output_radius"):
        approximations.prune(square(3), 1.0, 2.0, all_estimates=True)


@given(problems(largest=7), st.sampled_from([1.0, 1.2, 2.0]))
def test_the_greedy_spanner_stretches_no_pair_too_far(problem: pg.Problem, dilation: float) -> None:
    exponents = pg.Bounds(epsilon=1.0).log_ratio_bounds(problem.distinguishability + 0.1)
    kept = pairs.greedy_spanner(exponents, dilation)
    paths = shortest_path(np.where(kept, exponents, np.inf))
    asked = np.isfinite(exponents)
    assert (paths[asked] <= dilation * exponents[asked] * (1 + 1e-9)).all()
    stretched = float((paths[asked] / exponents[asked]).max(initial=1.0))
    assert pairs.dilation_of(exponents, kept) == pytest.approx(max(stretched, 1.0))


def test_a_wider_spanner_has_fewer_edges_and_costs_more() -> None:
    problem = square(6)
    exponents = pg.Bounds(epsilon=1.0).log_ratio_bounds(problem.distinguishability)
    sizes, costs = [], []
    for dilation in (1.0, 1.05, 1.5):
        sizes.append(int(pairs.greedy_spanner(exponents, dilation).sum()))
        mechanism = approximations.spanner(problem, 1.0, dilation=dilation)
        costs.append(mechanism.certificate.cost)
        assert holds_exactly(mechanism.statement)
    exact = pg.design(problem, epsilon=1.0).certificate.cost
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 3
    assert costs == sorted(costs)
    assert costs[0] == pytest.approx(exact, rel=1e-6)
    assert approximations.spanner(problem, 1.0, bound=False).certificate.bound is None


def test_secrets_without_a_path_have_an_infinite_dilation() -> None:
    exponents = np.array([[np.inf, 0.0, 1.0], [0.0, np.inf, 1.0], [1.0, 1.0, np.inf]])
    assert pairs.dilation_of(exponents, np.zeros((3, 3), dtype=bool)) == np.inf
    kept = np.isfinite(exponents)
    assert pairs.dilation_of(exponents, kept) == 1.0


@given(st.integers(2, 6), st.integers(2, 6), st.integers(0, 2**32), st.sampled_from([0.1, 1.0]))
def test_no_constant_mechanism_repairs_with_a_smaller_share(n: int, m: int, seed: int, epsilon: float) -> None:
    """λ is the least for which some w has (1−λ)(p − γp') ≤ λ(γ−1)w everywhere: a linear program in λ and λw."""
    from scipy.optimize import linprog

    table = np.random.default_rng(seed).dirichlet(np.ones(m), n)
    problem = problem_of(np.full(n, 1 / n), np.ones((m, n)), 1 - np.eye(n))
    mixed = least_mixture(pg.Bounds(epsilon=epsilon).log_ratio_bounds(problem.distinguishability), table)
    gamma = np.exp(epsilon)
    assert all((mixed[s] <= gamma * mixed[t] * (1 + 1e-9)).all() for s in range(n) for t in range(n))
    rows, limits = [], []
    for s in range(n):
        for t in range(n):
            for o in range(m):
                if s != t:
                    excess = table[s, o] - gamma * table[t, o]
                    row = np.zeros(m + 1)
                    row[0], row[1 + o] = -excess, -(gamma - 1)
                    rows.append(row)
                    limits.append(-excess)
    tie = np.array([[-1.0, *np.ones(m)]])
    found = linprog(np.eye(m + 1)[0], rows, limits, tie, [0.0], [(0, 1)] * (m + 1))
    share = 1 - 1 / (1 + _added(table, gamma))
    assert found.fun == pytest.approx(share, abs=1e-9)
    assert np.abs(mixed - (1 - share) * table).sum(axis=1) == pytest.approx(np.full(n, share), abs=1e-9)


def _added(table: Array, gamma: float) -> float:
    lowest, highest = table.min(axis=0), table.max(axis=0)
    return float(np.maximum((highest - gamma * lowest) / (gamma - 1), 0.0).sum())


def test_certificates_survive_a_file(tmp_path: Path) -> None:
    problem = square(3)
    for number, mechanism in enumerate(
        (
            approximations.prune(problem, 1.0, 1.0),
            approximations.prune(problem, 1.0, 1.0, repair=False),
            approximations.prune(problem, 1.0, 1.0, output_radius=1.0),
            approximations.sample_pairs(problem, 1.0, 0.0),
            approximations.spanner(problem, 1.0),
            pg.break_ties(problem, "worst_cost", epsilon=1.0).mechanism,
            pg.baselines.remap(pg.baselines.planar_laplace(problem, 1.0), problem),
        )
    ):
        path = tmp_path / f"{number}.pgm"
        mechanism.save(path)
        assert pg.verify(path) == mechanism.certificate


def test_stopping_early_keeps_the_promise_and_states_the_gap() -> None:
    problem = square(8)
    mechanism = approximations.early_stopping(problem, epsilon=1.0, gap=0.05)
    certificate = mechanism.certificate
    assert certificate.gap is not None
    assert 1e-6 < certificate.gap <= 0.05
    assert metrics.epsilon(mechanism, problem) <= 1.0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda p: approximations.prune(p, 1.0, 0.0), "radius is 0.0"),
        (lambda p: approximations.prune(p, 0.0, 1.0), "epsilon is 0.0"),
        (lambda p: approximations.spanner(p, 1.0, dilation=0.9), "dilation is 0.9"),
        (lambda p: approximations.sample_pairs(p, 1.0, 1.1), "fraction is 1.1"),
        (lambda p: approximations.prune(p, 1.0, 1.0, output_radius=-1.0), "output_radius must be 0 or more"),
    ],
)
def test_what_does_not_fit_is_refused(wrong: Any, message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        wrong(square(2))
