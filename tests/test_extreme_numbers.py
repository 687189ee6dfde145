"""Costs, distances and priors at extreme scales: the same optimum, an honest gap, and no error but a proved one."""

from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from privacygames.certificates import loss_scale
from privacygames.mechanism import certify
from privacygames.mechanism_files import load_bytes
from privacygames.problem import Bounds
from privacygames.solvers import Scaling, solve_scaled
from privacygames.solvers.protocol import SolveOptions
from support import optimum_by_hand

NEVER = 1e12


def square(side: int) -> pg.Grid:
    return pg.Grid(columns=side, rows=side, width=float(side), height=float(side))


def uniform(side: int, cost: Any, **others: Any) -> pg.Problem:
    return pg.Problem(pg.Prior.uniform(square(side)), cost=cost, **others)


def hamming(size: int) -> Any:
    return 1.0 - np.eye(size)


def test_a_sentinel_cost_does_not_empty_the_gap() -> None:
    cost = hamming(9)
    cost[0, 8] = NEVER
    found = pg.design(uniform(3, cost), epsilon=1.0).certificate
    without = pg.design(uniform(3, cost, observables=None), epsilon=1.0, tolerance=1e-6).certificate
    assert found.gap is not None
    assert found.gap < 1e-6
    assert found.cost == pytest.approx(without.cost, rel=1e-6)
    assert found.cost - (found.bound or 0) < 1e-6 * found.cost  # and not of the sentinel
    # The column of the sentinel is not used: the optimum is that of the problem without that output.
    smaller = uniform(3, cost[1:], observables=pg.Numbers(range(8)))
    assert found.cost == pytest.approx(pg.design(smaller, epsilon=1.0).certificate.cost, rel=2e-6)


def test_sentinels_in_every_column_leave_the_gap_as_it_is() -> None:
    distance = square(5).distance("euclidean")
    found = pg.design(uniform(5, np.where(distance > 3, NEVER, distance)), epsilon=4.0).certificate
    assert found.bound is not None
    assert found.cost - found.bound <= 1e-6 * found.cost
    assert found.cost == pytest.approx(1.874364, rel=1e-5)


def test_a_hopeless_guess_changes_nothing() -> None:
    rng = np.random.default_rng(3)
    errors = rng.random((6, 6))
    np.fill_diagonal(errors, 0.0)
    prior = pg.Prior(pg.Numbers(range(6)), rng.dirichlet(np.ones(6)))
    values = []
    for hopeless in (10.0, 1e15):
        errors[0, 5] = hopeless
        problem = pg.Problem(prior, distance=errors, distinguishability="hamming")
        values.append(pg.design(problem, cost_at_most=0.5).certificate.achieved)
    assert values[0] > 0.1
    assert values[1] == pytest.approx(values[0], rel=1e-5)


@pytest.mark.parametrize("unit", [1e-9, 1e8, 1e14])
@pytest.mark.parametrize("asked", [{"epsilon": 1.0}, {"epsilon": 1.0, "worst_case": True}, {"distortion": 0.5}])
def test_other_units_are_the_same_design(unit: float, asked: dict[str, Any]) -> None:
    plain = pg.design(uniform(3, "hamming"), **asked).certificate.cost
    scaled = pg.design(uniform(3, unit * hamming(9)), **asked).certificate.cost
    assert scaled == pytest.approx(unit * plain, rel=2e-6)


@pytest.mark.parametrize("unit", [1e-9, 1e13])
def test_distances_in_other_units_are_the_same_design(unit: float) -> None:
    rng = np.random.default_rng(5)
    points = rng.random((12, 2)) * 4
    apart = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    prior = pg.Prior(pg.Numbers(range(12)), rng.dirichlet(np.ones(12)))
    plain = pg.Problem(prior, distance=apart)
    scaled = pg.Problem(prior, distance=apart * unit)
    least = 0.5 * pg.max_distortion(plain)
    expected = pg.design(plain, epsilon=1.0, distortion=least).certificate.cost
    found = pg.design(scaled, epsilon=1.0 / unit, distortion=least * unit).certificate.cost
    assert found == pytest.approx(expected, rel=2e-6)


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_multipliers_are_converted_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 6))
    unit, far = 10.0 ** rng.integers(-12, 13, 2)
    prior = pg.Prior(pg.Numbers(range(size)), rng.dirichlet(np.ones(size)))
    apart = rng.random((size, size)) * far
    np.fill_diagonal(apart, 0.0)
    problem = pg.Problem(prior, rng.random((size, size)) * unit, apart, "absolute")
    wrong = pg.Adversary("other", errors=rng.random((3, size)) * 10.0 ** rng.integers(-9, 9))
    for bounds in (
        Bounds(epsilon=1.0, distortion=0.5 * pg.max_distortion(problem)),
        Bounds(epsilon=1.0, worst_case=True),
        Bounds(epsilon=0.5, distortion={wrong: 0.3 * pg.max_distortion(problem, wrong)}),
    ):
        solution = solve_scaled(pg.Highs(), Scaling.of(problem, bounds), options=SolveOptions())
        made = pg.mechanism.certify(
            problem, bounds, solution.probabilities, solution.dual_solution, origin="scaled"
        ).certificate
        assert made.gap is not None
        assert made.gap < 1e-6


def test_ordinary_problems_are_not_converted() -> None:
    problem = uniform(3, "hamming")
    scaling = Scaling.of(problem, Bounds(epsilon=1.0), 1e6)
    assert scaling.trivial
    assert scaling.scaled_problem is problem


def test_the_stake_is_not_moved_by_single_entries() -> None:
    losses = hamming(8)
    prior = np.full(8, 1 / 8)
    assert loss_scale(losses, prior) == pytest.approx(7 / 8)  # what the best constant output loses
    losses[0] = NEVER
    assert loss_scale(losses, prior) == pytest.approx(7 / 8)
    np.fill_diagonal(losses[:, ::-1], NEVER)  # now every row has one
    assert loss_scale(losses, prior) == pytest.approx(1.0)
    assert loss_scale(np.zeros((2, 2)), np.array([0.5, 0.5])) == 1.0


# Infinite costs: outputs that are never allowed.


def test_an_infinite_cost_is_never_given() -> None:
    cost = hamming(9)
    cost[0, 8] = inf
    made = pg.design(uniform(3, cost), epsilon=1.0)
    assert not made.weights[:, 0].any()  # with a finite ε, what one secret may not give, none may
    alone = pg.design(uniform(3, cost), distortion=0.05)
    assert not alone.weights[8, 0]
    assert alone.weights[:, 0].any()
    assert np.isfinite(pg.evaluate(alone, uniform(3, cost)).cost)


def test_what_is_never_allowed_costs_what_the_program_without_it_does() -> None:
    cost = hamming(9)
    cost[0, 8] = inf
    smaller = uniform(3, cost[1:], observables=pg.Numbers(range(8)))
    expected = pg.design(smaller, epsilon=1.0).certificate.cost
    assert pg.design(uniform(3, cost), epsilon=1.0).certificate.cost == pytest.approx(expected, rel=2e-6)


def test_files_with_infinite_costs_are_verified() -> None:
    cost = hamming(4)
    cost[1, 2] = inf
    made = pg.design(uniform(2, cost), epsilon=1.0)
    assert load_bytes(made.to_bytes()).certificate.cost == made.certificate.cost
    with pytest.raises(pg.GuaranteeViolated, match="never allowed"):
        pg.mechanism.certify(
            uniform(2, cost), Bounds(distortion=0.0), np.full((4, 4), 2**60, dtype=np.int64), origin="forged"
        )


def test_no_output_left_is_said_clearly() -> None:
    cost = np.array([[0.0, inf], [inf, 0.0]])
    problem = pg.Problem(pg.Prior.uniform(pg.Numbers([0, 1])), cost=cost)
    with pytest.raises(pg.Infeasible, match="no output is left"):
        pg.design(problem, epsilon=1.0)
    assert pg.design(problem, distortion=0.0).certificate.cost == 0
    with pytest.raises(pg.Infeasible, match="forbids"):
        pg.design(problem, distortion=0.2)
    with pytest.raises(pg.InvalidProblem, match="infinite for every output of 1 secrets"):
        pg.Problem(pg.Prior.uniform(pg.Numbers([0, 1])), cost=[[0.0, inf], [1.0, inf]])


def test_comparisons_leave_out_what_gives_forbidden_outputs() -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Numbers([0, 1])), cost=[[0.0, inf], [1.0, 0.0]])
    rows = pg.compare(problem, pg.calibrated_baselines(problem, epsilon=0.5)).rows
    assert all(np.isfinite(row.report.cost) for row in rows)


# No division by nothing, no wrong refusals.

FREE = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]])


@pytest.mark.parametrize("solver", [pg.Interior(), pg.Highs(), "auto"])
@pytest.mark.parametrize(
    ("cost", "limits"),
    [
        (np.ones((3, 3)), {"cost_at_most": 1.0}),
        (np.ones((3, 3)), {"cost_at_most": 1.0, "worst_cost_at_most": 1.0}),
        (np.zeros((3, 3)), {"cost_at_most": 0.0}),
        (FREE, {"cost_at_most": 0.0}),
        (FREE, {"cost_at_most": 0.0, "worst_cost_at_most": 0.0}),
        (np.ones((1, 3)), {"cost_at_most": 1.0}),
    ],
)
def test_limits_without_room_are_kept(cost: Any, limits: dict[str, float], solver: Any) -> None:
    outputs = pg.Numbers(range(len(cost)))
    problem = pg.Problem(pg.Prior.uniform(pg.Numbers(range(3))), cost=cost, observables=outputs)
    for more in ({}, {"epsilon": 1.0}):
        try:
            made = pg.design(problem, solver=solver, **limits, **more)  # type: ignore[call-overload]
        except (pg.SolveFailed, pg.InvalidProblem):
            assert solver == pg.Interior()  # which has no inside to work in
        else:
            assert made.certificate.cost <= limits["cost_at_most"]
            assert made.certificate.achieved == pytest.approx(pg.max_distortion(problem), rel=1e-6)


def test_large_costs_in_the_worst_case_are_feasible() -> None:
    made = pg.design(uniform(3, 1e8 * hamming(9)), epsilon=1.0, worst_case=True)
    plain = pg.design(uniform(3, "hamming"), epsilon=1.0, worst_case=True)
    assert made.certificate.cost == pytest.approx(1e8 * plain.certificate.cost, rel=1e-6)


@pytest.mark.parametrize("way", [0.0, 1e-12, 1e-9, 1e-8, 1e-7, 1e-6])
@pytest.mark.parametrize("asked", [{}, {"distortion": 0.3}, {"worst_case": True}])
def test_secrets_that_are_nearly_the_same_one_way(way: float, asked: dict[str, Any]) -> None:
    rng = np.random.default_rng(7)
    points = rng.random((12, 2)) * 3
    apart = np.hypot(*(points[:, None] - points[None]).transpose(2, 0, 1))
    near = apart.copy()
    near[0, 1] = near[3, 2] = way
    prior = pg.Prior(pg.Numbers(range(12)), rng.dirichlet(np.ones(12)))
    problem = pg.Problem(prior, apart, apart, near)
    found = pg.design(problem, epsilon=1.0, **asked).certificate
    assert found.gap is not None
    assert found.gap <= 1e-6
    both = near.copy()
    both[1, 0] = both[2, 3] = way
    merged = pg.design(pg.Problem(prior, apart, apart, both), epsilon=1.0, **asked).certificate
    assert found.cost <= merged.cost * (1 + 2e-6)  # one way asks less than both
    assert found.cost >= merged.cost * (1 - 3 * (way + 1e-6))  # and hardly less: rows sum to one


# Infeasible needs a proof.


def test_infeasible_names_the_least_possible_cost() -> None:
    problem = uniform(3, hamming(9) + 0.3)
    with pytest.raises(pg.Infeasible) as caught:
        pg.tightest_bound(problem, "epsilon", cost_at_most=0.2)
    assert caught.value.limit == pytest.approx(0.3)


def test_pairs_at_distance_zero_count_for_the_least_cost() -> None:
    together = square(3).distance("euclidean").copy()
    together[0, 1] = together[1, 0] = 0.0
    problem = uniform(3, hamming(9) + 0.3, distinguishability=together)
    with pytest.raises(pg.Infeasible) as caught:
        pg.tightest_bound(problem, "epsilon", cost_at_most=0.35)
    assert caught.value.limit == pytest.approx(0.3 + 1 / 9, rel=1e-4)
    assert pg.tightest_bound(problem, "epsilon", cost_at_most=caught.value.limit * 1.001).value > 0


def test_a_solver_that_says_infeasible_proves_nothing() -> None:
    class Wrong:
        @property
        def fallbacks(self) -> tuple[pg.Highs, ...]:
            return (pg.Highs(),)

        def solve(self, problem: Any, bounds: Any, *, options: Any) -> Any:
            raise pg.SolveFailed("no mechanism", status=pg.Status.INFEASIBLE)

    made = pg.design(uniform(3, "hamming"), epsilon=1.0, solver=Wrong())
    assert made.certificate.cost == pytest.approx(optimum_by_hand(uniform(3, "hamming"), epsilon=1.0), rel=1e-6)


def test_a_limit_between_bound_and_cost_is_neither_met_nor_infeasible() -> None:
    problem = uniform(3, "hamming")
    least = pg.design(problem, epsilon=1.0).certificate
    assert least.bound is not None
    between = (least.bound + least.cost) / 2
    for limit, outcome in ((least.bound * (1 - 1e-9), pg.Infeasible), (between, pg.SolveFailed)):
        with pytest.raises(outcome):
            pg.design(problem, epsilon=1.0, cost_at_most=limit)


def test_both_methods_of_highs_share_one_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    from privacygames.programs import design_program
    from privacygames.solvers import highs

    given: list[float] = []
    now = 1000.0

    def failing(program: Any, method: str, deadline: float, progress: Any) -> Any:
        nonlocal now
        given.append(deadline - now)
        now += 30.0
        return highs.LinearSolution(program, np.zeros(0), np.zeros(0), pg.Status.NUMERICAL, method)

    monkeypatch.setattr(highs, "_run", failing)
    monkeypatch.setattr(highs, "monotonic", lambda: now)
    with pytest.raises(pg.SolveFailed):
        pg.Highs().solve_program(design_program(uniform(2, "hamming"), Bounds(epsilon=1.0)), time_limit=40.0)
    assert given == [40.0, 10.0]


def costs_with_few_that_are_meant(size: int, never: float) -> np.ndarray:
    """Free outputs, one neighbour at an ordinary cost for each secret, and "never" for all others."""
    cost = np.full((size, size), never)
    np.fill_diagonal(cost, 0.0)
    for secret in range(size):
        cost[(secret + 1) % size, secret] = 0.5 + secret / size
    return cost


@pytest.mark.parametrize("worst_case", [False, True])
@pytest.mark.parametrize("never", [1e6, 1e9, 1e12, 1e15, 1e20])
def test_most_entries_may_stand_for_never(never: float, *, worst_case: bool) -> None:
    """Such costs were at stake themselves, so that a bound of 0 was certified with a gap of 10⁻⁷."""
    problem = uniform(3, costs_with_few_that_are_meant(9, never))
    assert loss_scale(problem.cost, problem.prior.probabilities, worst_case=worst_case) < 1e3
    forbidden = uniform(3, costs_with_few_that_are_meant(9, inf))
    made, expected = (pg.design(each, distortion=0.2, worst_case=worst_case) for each in (problem, forbidden))
    certificate = made.certificate
    assert certificate.bound is not None
    assert certificate.cost - certificate.bound <= 1e-6 * certificate.cost
    assert certificate.cost == pytest.approx(expected.certificate.cost, rel=2e-6)


@pytest.mark.parametrize("never", [1e12, 1e15, 1e20])
def test_a_unit_of_weight_on_never_is_no_excuse(never: float) -> None:
    """The gap was relative to 10⁸ units of weight in the dearest entry that is used, however large that is."""
    cost = hamming(5)
    cost[0, 4] = never
    problem = pg.Problem(pg.Prior.uniform(pg.Numbers(range(5))), cost, "absolute")
    best = pg.design(problem, distortion=0.3)
    table = best.probabilities + 0.05 * (np.roll(np.eye(5), 2, axis=1) - np.eye(5))
    table[4, 0] = 2.0**-61
    assert (table >= 0).all()
    made = pg.mechanism.certify(problem, Bounds(distortion=0.3), table, best.dual_solution, origin="worse").certificate
    assert made.bound is not None
    assert made.bound < 0.9 * made.cost
    assert made.gap == pytest.approx(1 - made.bound / made.cost)


def test_what_cannot_be_stored_closely_is_not_certified() -> None:
    """With γ = e⁴⁰ and a cost of 10²⁰ a mechanism ten times too dear was certified with a gap of 2·10⁻⁷."""
    rng = np.random.default_rng(5)
    for never in (1e12, 1e15, 1e20):
        cost = rng.uniform(0.5, 1.5, (5, 5)) * hamming(5)
        cost[0, 4] = never
        apart = 10.0 * np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
        problem = pg.Problem(pg.Prior.uniform(pg.Numbers(range(5))), cost, "absolute", apart)
        try:
            made = pg.design(problem, epsilon=1.0).certificate
        except pg.SolveFailed:
            continue
        assert made.bound is not None
        assert made.cost - made.bound <= max(1e-6 * made.cost, 1e-11)


@pytest.mark.parametrize("worst_case", [False, True])
def test_a_free_constant_output_is_the_optimum_exactly(worst_case: bool) -> None:
    """Rare secrets leave a solver a little above 0, where no gap would be small: a constant output costs nothing."""
    rng = np.random.default_rng(100962)
    prior = np.array([4.6e-15, 0.52, 6e-15, 1.5e-14, 0.23, 1.4e-14, 3.3e-14, 8.6e-15, 2.5e-14, 0.22, 0.03])
    cost = rng.random((11, 11))
    cost[6] = 0.0
    space = pg.Numbers(range(11))
    problem = pg.Problem(pg.Prior(space, prior / prior.sum()), cost=cost)
    distortion = 0.9 * pg.max_distortion(problem)
    found = pg.design(problem, distortion=distortion, worst_case=worst_case)
    assert (found.certificate.cost, found.certificate.bound, found.certificate.gap) == (0.0, 0.0, 0.0)
    assert found.certificate.verification.distortion >= distortion


def test_a_free_constant_output_that_breaks_another_limit_is_not_taken() -> None:
    """It is free on average, for nobody has the secret whom it costs something."""
    cost = np.array([[0.0, 5.0], [1.0, 1.0], [1.0, 0.0]])
    problem = pg.Problem(pg.Prior(pg.Categories("ab"), [1.0, 0.0]), cost=cost, observables=pg.Categories("xyz"))
    found = pg.design(problem, epsilon=1.0, worst_cost_at_most=1.0).certificate
    assert found.verification.worst_cost <= 1.0
    assert found.cost > 0.1


def test_baselines_without_forbidden_outputs_have_a_cost_of_repair() -> None:
    """Secrets that nobody has may be the ones an output is forbidden for: 0·∞ = 0, and no warning."""
    cost = 1.0 - np.eye(3)
    cost[0, 2] = np.inf
    space = pg.Numbers(range(3))
    far = np.where(np.eye(3) > 0, 0.0, np.inf)
    problem = pg.Problem(pg.Prior(space, [0.5, 0.5, 0.0]), cost=cost, distinguishability=far)
    given = np.full((3, 3), 1 / 3)
    for worst_case in (False, True):
        found = certify(problem, Bounds(epsilon=1.0, worst_case=worst_case), given, origin="test").certificate
        assert np.isfinite(found.provenance.repair_cost)
        assert found.cost == pytest.approx(2 / 3)
