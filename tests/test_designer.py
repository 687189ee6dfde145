"""Designs of every kind against an independent solver, their own promises, baselines and relabelling."""

from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from privacygames import metrics
from support import Case, cases, optimum_by_hand, problem_of, problems, two_secrets
from waiting import Clock


def value(mechanism: pg.Mechanism) -> float:
    """What the design optimised: its cost, or its distortion when turned round."""
    certificate = mechanism.certificate
    return certificate.verification.distortion if certificate.bounds.maximises_distortion else certificate.cost


@given(cases())
@settings(max_examples=150)
def test_design_finds_the_optimum(case: Case) -> None:
    mechanism = pg.design(case.problem, **case.bounds)
    assert value(mechanism) == pytest.approx(optimum_by_hand(case.problem, **case.bounds), rel=1e-6, abs=1e-8)


@given(cases())
@settings(max_examples=100)
def test_design_meets_its_bounds_as_measured(case: Case) -> None:
    bounds = case.bounds
    mechanism = pg.design(case.problem, **bounds)
    assert (mechanism.weights.sum(axis=1) == 2**mechanism.bits).all()
    report = pg.evaluate(mechanism, case.problem, within=bounds.get("within"))
    if "epsilon" in bounds:
        realised = report.epsilon if "within" not in bounds else report.epsilon_within
        assert realised is not None
        assert realised <= bounds["epsilon"] * (1 + 1e-12)
    if "distortion" in bounds:
        assert report.distortion >= bounds["distortion"] * (1 - 1e-12)
    if "cost_at_most" in bounds:
        cost = report.worst_cost if bounds["worst_case"] else report.cost
        assert cost <= bounds["cost_at_most"] * (1 + 1e-12)


@given(cases())
@settings(max_examples=100)
def test_the_certified_gap_is_small_and_the_bound_is_a_bound(case: Case) -> None:
    certificate = pg.design(case.problem, **case.bounds).certificate
    best = optimum_by_hand(case.problem, **case.bounds)
    assert certificate.gap is not None
    assert certificate.gap <= 1e-6
    assert certificate.bound is not None
    slack = 1e-8 * max(1.0, abs(best))  # what SciPy's answer itself may be off by
    if certificate.bounds.maximises_distortion:
        assert certificate.bound >= best - slack
    else:
        assert certificate.bound <= best + slack


@given(problems(), st.sampled_from([0.2, 1.0, 3.0]))
def test_no_baseline_meeting_the_same_bounds_costs_less(problem: pg.Problem, epsilon: float) -> None:
    rivals = [pg.baselines.uniform(problem), pg.baselines.constant(problem), pg.baselines.cheapest(problem)]
    for rival in rivals:
        measured = pg.evaluate(rival, problem)
        distortion = rival.certificate.verification.distortion
        if distortion <= pg.max_distortion(problem):
            best = pg.design(problem, distortion=distortion)
            assert best.certificate.cost <= measured.cost * (1 + 1e-6) + 1e-12
        if measured.epsilon <= epsilon:
            best = pg.design(problem, epsilon=epsilon)
            assert best.certificate.cost <= measured.cost * (1 + 1e-6) + 1e-12


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 2.0])
@pytest.mark.parametrize("cost", ["euclidean", "hamming"])
def test_the_exponential_mechanism_keeps_epsilon_and_costs_no_less(epsilon: float, cost: str) -> None:
    problem = pg.Problem(pg.Prior.from_counts(pg.Grid(3, 2), [5, 1, 0, 2, 9, 1]), cost=cost)
    rival = pg.baselines.exponential(problem, epsilon)
    assert metrics.epsilon(rival, problem) <= epsilon * (1 + 1e-9)
    best = pg.design(problem, epsilon=epsilon)
    assert best.certificate.cost <= metrics.expected_cost(rival, problem) * (1 + 1e-9)


@given(cases(), st.integers(0, 2**32))
@settings(max_examples=50)
def test_relabelling_changes_nothing(case: Case, seed: int) -> None:
    problem = case.problem
    n, m = problem.shape
    generator = np.random.default_rng(seed)
    s, o = generator.permutation(n), generator.permutation(m)
    shuffled = problem_of(
        problem.prior.probabilities[s],
        problem.cost[np.ix_(o, s)],
        problem.distance[np.ix_(s, s)],
        problem.distinguishability[np.ix_(s, s)],
    )
    bounds = dict(case.bounds)
    if "distortion" in bounds:  # the last bits of d_m^max depend on the order of summation
        bounds["distortion"] = min(bounds["distortion"], pg.max_distortion(shuffled))
    assert value(pg.design(problem, **bounds)) == pytest.approx(
        value(pg.design(shuffled, **bounds)), rel=1e-6, abs=1e-9
    )


@pytest.mark.parametrize("solver", [pg.Highs("ipm"), pg.Highs("simplex")])
def test_both_methods_of_highs_agree(solver: pg.Highs) -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(4, 3)), cost="euclidean")
    mechanism = pg.design(problem, epsilon=1.0, distortion=1.2, solver=solver)
    assert mechanism.certificate.cost == pytest.approx(1.2, rel=1e-6)


@pytest.mark.parametrize(
    ("side", "cost", "optimum"),
    [
        (5, "euclidean", 1.228677),
        (7, "euclidean", 1.394617),
        (7, "hamming", 0.759466),
        (10, "euclidean", 1.530302),
        pytest.param(15, "euclidean", 1.64421, marks=pytest.mark.slow),
    ],
)
def test_known_optima(side: int, cost: str, optimum: float) -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(side, side)), cost=cost)
    certificate = pg.design(problem, epsilon=1.0).certificate
    assert certificate.cost == pytest.approx(optimum, abs=1e-5 if side == 15 else 1e-6)
    assert certificate.gap is not None
    assert certificate.gap <= 1e-6


@pytest.mark.parametrize(("cost", "optimum"), [("euclidean", 1.394617), ("hamming", 0.759466)])
def test_known_optima_by_highs(cost: str, optimum: float) -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(7, 7)), cost=cost)
    found = pg.design(problem, epsilon=1.0, solver=pg.Highs()).certificate
    assert found.cost == pytest.approx(optimum, abs=1e-6)
    assert "HiGHS" in found.provenance.solver


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 5.0, 20.0, 100.0])
@pytest.mark.parametrize("first", [0.5, 0.9, 1 - 1e-12, 1.0])
def test_two_secrets_in_closed_form(epsilon: float, first: float) -> None:
    """min(1/(1+e^ε), 1−π): see tests/paper/test_by_hand.py for the arithmetic."""
    problem = two_secrets(first)
    expected = min(1 / (1 + np.exp(epsilon)), 1 - first)
    assert pg.design(problem, epsilon=epsilon).certificate.cost == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_secrets_at_distance_zero_get_the_same_row() -> None:
    distinguishability = [[0, 0, 1], [0.5, 0, 1], [1, 1, 0]]
    problem = problem_of([0.2, 0.3, 0.5], 1 - np.eye(3), 1 - np.eye(3), distinguishability)
    weights = pg.design(problem, epsilon=1.0).weights
    assert (weights[0] == weights[1]).all()
    assert (weights[0] != weights[2]).any()


def test_an_infinite_distinguishability_asks_nothing() -> None:
    graph = pg.Graph([("a", "b"), ("c", "d")])
    problem = pg.Problem(pg.Prior.uniform(graph), distance="hamming", distinguishability="shortest path")
    mechanism = pg.design(problem, epsilon=1.0)
    assert mechanism.certificate.cost == pytest.approx(1 / (1 + np.e), rel=1e-9)  # two separate games of two


def test_the_largest_distortion_can_be_promised_and_nothing_above() -> None:
    problem = pg.Problem(pg.Prior.from_counts(pg.Grid(3, 3), [1, 5, 2, 0, 3, 3, 1, 1, 7]))
    most = pg.max_distortion(problem)
    assert pg.design(problem, distortion=most, epsilon=0.5).certificate.verification.distortion >= most
    with pytest.raises(pg.Infeasible, match="the most is") as caught:
        pg.design(problem, distortion=most * 1.001)
    assert caught.value.limit == most


@pytest.mark.parametrize("epsilon", [None, 1.0])
@pytest.mark.parametrize("worst_case", [False, True])
def test_the_least_cost_can_be_promised_and_nothing_below(epsilon: float | None, worst_case: bool) -> None:
    problem = pg.Problem(pg.Prior.from_counts(pg.Grid(2, 2), [1, 5, 2, 4]), cost=np.ones((4, 4)) - 0.9 * np.eye(4))
    with pytest.raises(pg.Infeasible, match="the least possible cost") as caught:
        pg.design(problem, cost_at_most=0.05, epsilon=epsilon, worst_case=worst_case)
    least = caught.value.limit
    mechanism = pg.design(problem, cost_at_most=least, epsilon=epsilon, worst_case=worst_case)
    assert mechanism.certificate.cost <= least


@pytest.mark.parametrize("solver", [pg.Highs(), pg.Interior(), "auto"], ids=str)
@pytest.mark.parametrize(
    "bounds",
    [
        {"epsilon": 1.0},
        {"epsilon": 1.0, "worst_case": True},
        {"epsilon": 1.0, "distortion": 1.0},
        {"distortion": 1.0},
        {"cost_at_most": 3.0},
        {"cost_at_most": 4.0, "epsilon": 1.0},
    ],
    ids=str,
)
def test_a_time_limit_gives_the_best_so_far_with_its_gap(bounds: dict[str, Any], solver: Any) -> None:
    """One story on every engine: a valid mechanism and a certified gap, however short the time."""
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(8, 8)), cost="euclidean")
    certificate = pg.design(problem, **bounds, time_limit=1e-3, solver=solver).certificate
    assert certificate.gap is not None
    assert certificate.bound is not None
    assert certificate.verification.largest_ratio <= 1
    assert certificate.verification.distortion >= bounds.get("distortion", 0.0)
    if "cost_at_most" in bounds:
        assert certificate.cost <= bounds["cost_at_most"]
        assert certificate.bound >= certificate.verification.distortion
    else:
        assert certificate.bound <= certificate.cost


def test_a_time_limit_covers_all_attempts_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fallbacks do not get the whole time again."""
    clock = Clock(monkeypatch)

    class Slow:
        fallbacks = (pg.Highs(), pg.Highs("simplex"))
        given: ClassVar[list[float]] = []

        def solve(self, problem: pg.Problem, bounds: pg.Bounds, *, options: pg.SolveOptions) -> pg.Solution:
            self.given.append(options.time_limit or 0.0)
            clock.now += options.time_limit or 0.0
            raise pg.SolveFailed("no luck", status=pg.Status.NUMERICAL)

    problem = pg.Problem(pg.Prior.uniform(pg.Grid(10, 10)), cost="euclidean")
    certificate = pg.design(problem, epsilon=1.0, time_limit=0.5, solver=Slow()).certificate
    assert certificate.gap == 1.0
    assert "stopped by the time limit" in certificate.provenance.solver
    assert Slow.given == [pytest.approx(0.5)]
    assert clock.now == pytest.approx(1000.5)  # nobody else was asked


def test_a_limit_that_was_not_reached_in_time_is_not_called_impossible() -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(8, 8)), cost="euclidean")  # 1.309 is possible at ε = 1
    with pytest.raises(pg.SolveFailed, match="found in time") as caught:
        pg.design(problem, epsilon=1.0, cost_at_most=1.5, time_limit=1e-3)
    assert caught.value.status is pg.Status.TIME_LIMIT
    loose = pg.design(problem, epsilon=1.0, cost_at_most=1.5, tolerance=0.5)
    assert loose.certificate.cost <= 1.5
    with pytest.raises(pg.Infeasible, match="the least possible cost"):
        pg.design(problem, epsilon=1.0, cost_at_most=1.2, tolerance=0.5)


def test_the_mechanism_of_one_attempt_may_be_proved_by_another() -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(3, 3)), cost="euclidean")

    class Half:
        """One that gets half of it right: the mechanism, or what proves it."""

        def __init__(self, *, mechanism: bool, fallbacks: tuple[pg.Solver, ...] = ()) -> None:
            self.mechanism, self.fallbacks = mechanism, fallbacks

        def solve(self, problem: pg.Problem, bounds: pg.Bounds, *, options: pg.SolveOptions) -> pg.Solution:
            right = pg.Highs().solve(problem, bounds, options=options)
            if self.mechanism:
                loose = pg.Highs().solve(problem, replace(bounds, epsilon=2.0), options=options)
                return replace(right, dual_solution=loose.dual_solution, status=pg.Status.NUMERICAL, solver="first")
            blind = np.full(problem.shape, 1 / problem.shape[1])
            return replace(right, probabilities=blind, status=pg.Status.NUMERICAL, solver="second")

    second = Half(mechanism=False)
    certificate = pg.design(problem, epsilon=1.0, solver=Half(mechanism=True, fallbacks=(second,))).certificate
    assert certificate.gap is not None
    assert certificate.gap <= 1e-6
    assert certificate.provenance.solver.startswith("first; its bound: second, after Half left a gap of")
    with pytest.raises(pg.SolveFailed, match="above the tolerance"):
        pg.design(problem, epsilon=1.0, solver=Half(mechanism=True))


class Watched:
    """The block engine, and what it found."""

    fallbacks: tuple[pg.Solver, ...] = ()

    def __init__(self) -> None:
        self.found: list[pg.Solution] = []

    def solve(self, problem: pg.Problem, bounds: pg.Bounds, *, options: pg.SolveOptions) -> pg.Solution:
        self.found.append(pg.Interior().solve(problem, bounds, options=options))
        return self.found[-1]


@pytest.mark.parametrize("worst_case", [False, True])
def test_a_mechanism_well_inside_a_limit_is_enough_to_start_from(worst_case: bool) -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(4, 4)), cost="euclidean")
    least = pg.design(problem, epsilon=1.0, worst_case=worst_case).certificate.cost
    watched, limit = Watched(), 1.4 * least
    bounds: dict[str, Any] = {"epsilon": 1.0, "cost_at_most": limit, "worst_case": worst_case}
    certificate = pg.design(problem, **bounds, solver=watched).certificate
    each = (watched.found[0].probabilities * problem.cost).sum(axis=1)
    first = each.max() if worst_case else each @ problem.prior.probabilities
    assert least * 1.001 < first < limit * 0.999
    assert certificate.achieved == pytest.approx(optimum_by_hand(problem, **bounds), rel=1e-6)
    assert certificate.gap is not None
    assert certificate.gap <= 1e-6
    assert len(watched.found) == 2


def test_the_block_engine_stops_in_time_with_a_valid_mechanism_and_its_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(10, 10)), cost="euclidean")
    seen: list[pg.Progress] = []
    clock = Clock(monkeypatch)

    def watch(progress: pg.Progress) -> None:
        seen.append(progress)
        clock.now += 0.25  # an iteration takes a quarter of a second

    certificate = pg.design(problem, epsilon=1.0, distortion=1.0, time_limit=1.5, progress=watch).certificate
    assert len(seen) > 2
    assert certificate.gap is not None
    assert certificate.bound is not None
    assert certificate.gap > 1e-6
    assert certificate.bound <= 1.5303015 <= certificate.cost
    assert certificate.verification.largest_ratio <= 1
    assert [each.done for each in seen] == list(range(len(seen)))
    assert {each.job for each in seen} == {"design"}
    assert (seen[-1].gap or 0.0) < (seen[0].gap or 0.0)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({}, "no guarantee is requested"),
        ({"epsilon": 0.0}, "epsilon is 0.0; it must be a positive number"),
        ({"epsilon": -1.0}, "must be a positive number"),
        ({"epsilon": float("nan")}, "must be a positive number"),
        ({"epsilon": float("inf")}, "must be a positive number"),
        ({"epsilon": "high"}, "must be a positive number"),
        ({"within": 1.0, "distortion": 0.1}, "give epsilon too"),
        ({"epsilon": 1.0, "within": -1.0}, "within is -1.0"),
        ({"distortion": -0.1}, "distortion is -0.1"),
        ({"distortion": float("nan")}, "distortion is nan"),
        ({"cost_at_most": -1.0}, "cost_at_most is -1.0"),
        ({"cost_at_most": 1.0, "distortion": 0.1}, "give distortion .* or cost_at_most"),
        ({"epsilon": 1.0, "tolerance": 0.0}, "tolerance is 0.0"),
    ],
)
def test_bad_bounds_are_refused(bounds: dict[str, float], message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        pg.design(two_secrets(), **bounds)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "space", [pg.Numbers([1, 2, 3, 4]), pg.Grid(3, 2), pg.Grid(4, 4), pg.Numbers(range(8))], ids=repr
)
@pytest.mark.parametrize("bounds", [{}, {"epsilon": 1.0}, {"worst_case": True}], ids=str)
def test_the_largest_distortion_can_be_promised_where_guesses_tie(space: pg.Space, bounds: dict[str, Any]) -> None:
    problem = pg.Problem(pg.Prior.uniform(space))
    most = pg.max_distortion(problem)
    assert pg.design(problem, distortion=most, **bounds).certificate.verification.distortion >= most


def test_the_solver_chosen_takes_what_it_is_given() -> None:
    """So near to the largest distortion a margin decides of what kind the program is: no refusal asks for "auto"."""
    space = pg.Categories("abcdefgh")
    problem = pg.Problem(pg.Prior.uniform(space), distinguishability=1e-9 * (1 - np.eye(8)))
    found = pg.design(problem, epsilon=1.0, distortion=7 / 8 * (1 - 1e-9)).certificate
    assert found.cost == pytest.approx(7 / 8, rel=1e-8)


def test_numpy_numbers_are_numbers(tmp_path: Path) -> None:
    for bounds in ({"epsilon": np.float32(1)}, {"epsilon": np.int64(1)}, {"cost_at_most": np.float32(0.25)}):
        pg.design(two_secrets(), **bounds).save(tmp_path / "m.pgm")
    with pytest.raises(pg.InvalidProblem, match="worst_case must be True or False"):
        pg.design(two_secrets(), epsilon=1.0, worst_case="no")  # type: ignore[call-overload]
    with pytest.raises(pg.InvalidProblem, match="solver must be"):
        pg.design(two_secrets(), epsilon=1.0, solver="simplex")  # type: ignore[call-overload]
    with pytest.raises(pg.InvalidProblem, match="choose 'ipm' or 'simplex'"):
        pg.Highs("barrier")  # type: ignore[arg-type]


def test_a_program_too_large_to_write_out_is_refused_with_an_estimate() -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(30, 30)))
    with pytest.raises(pg.InvalidProblem, match=r"would need about [\d.]+ GiB"):
        pg.design(problem, epsilon=1.0, solver=pg.Highs())
    with pytest.raises(pg.InvalidProblem, match="too many"):
        pg.Problem(pg.Prior.uniform(pg.Grid(1000, 100)))
