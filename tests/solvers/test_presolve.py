"""Each reduction by itself: what it leaves out, and that the optimum stays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from privacygames.solvers.interior.presolve import dominating_observables, implied_pairs
from support import matrices, optimum_by_hand, problem_of, problems


def test_dominated_observables_by_hand() -> None:
    cost = np.array([[1, 2, 3], [1, 1, 3], [0, 9, 9], [1, 1, 3]])
    assert dominating_observables(cost).tolist() == [1, 1, 2, 1]


def test_with_the_hamming_cost_only_visited_places_remain() -> None:
    prior = np.array([0.5, 0, 0.5, 0])
    cost = 1 - np.eye(4)
    like = dominating_observables(cost[:, prior > 0])
    assert like[[0, 2]].tolist() == [0, 2]
    assert set(like) == {0, 2}


@given(matrices(6, 3))
def test_what_dominates_costs_no_more(cost: np.ndarray) -> None:
    like = dominating_observables(cost)
    assert (cost[like] <= cost).all()
    assert (like[like] == like).all()
    kept = np.unique(like)
    for first in kept:
        assert not any((cost[other] <= cost[first]).all() for other in kept if other != first)
    assert dominating_observables(np.concatenate([cost, cost])).tolist() == [*like, *like]


@given(problems(), st.sampled_from([0.3, 1.0]), st.sampled_from([None, 0.5]))
@settings(max_examples=60)
def test_leaving_dominated_observables_out_keeps_the_optimum(
    problem: pg.Problem, epsilon: float, share: float | None
) -> None:
    held = problem.prior.probabilities > 0
    kept = np.unique(dominating_observables(problem.cost[:, held]))
    smaller = problem_of(problem.prior.probabilities, problem.cost[kept], problem.distance, problem.distinguishability)
    bounds = {"epsilon": epsilon, "distortion": None if share is None else share * pg.max_distortion(problem)}
    assert optimum_by_hand(smaller, **bounds) == pytest.approx(optimum_by_hand(problem, **bounds), abs=1e-8)


def test_chained_pairs_on_a_line_leave_neighbours() -> None:
    points = np.array([0.0, 1.0, 3.0, 7.0])
    exponents = np.abs(points[:, None] - points)
    np.fill_diagonal(exponents, np.inf)
    left = np.isfinite(exponents) & ~implied_pairs(exponents)
    assert np.argwhere(left).tolist() == [[0, 1], [1, 0], [1, 2], [2, 1], [2, 3], [3, 2]]


def test_chained_pairs_on_a_grid_leave_coprime_offsets() -> None:
    grid = pg.Grid(6, 5)
    exponents = grid.distance("euclidean").copy()
    np.fill_diagonal(exponents, np.inf)
    chained = implied_pairs(exponents)
    for i in range(30):
        for j in range(30):
            if i != j:
                steps = np.gcd(abs(i % 6 - j % 6), abs(i // 6 - j // 6))
                assert chained[i, j] == (steps > 1)


@given(problems(), st.sampled_from([0.3, 1.0]))
@settings(max_examples=60)
def test_leaving_chained_pairs_out_keeps_the_optimum(problem: pg.Problem, epsilon: float) -> None:
    """For any distances at all: asymmetric, with zeros, without the triangle inequality."""
    exponents = problem.distinguishability.copy()
    np.fill_diagonal(exponents, np.inf)
    pruned = np.where(implied_pairs(exponents), np.inf, problem.distinguishability)
    smaller = problem_of(problem.prior.probabilities, problem.cost, problem.distance, pruned)
    whole = optimum_by_hand(problem, epsilon=epsilon)
    assert optimum_by_hand(smaller, epsilon=epsilon) == pytest.approx(whole, abs=1e-8)
