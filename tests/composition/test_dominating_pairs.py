"""Dominating pairs against the largest divergence of all pairs of secrets, in exact fractions."""

from fractions import Fraction
from itertools import permutations
from math import exp, inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privacygames as pg
from accounts import UNITS, close_pairs, divergence, mechanism_of, pairs, rows
from privacygames.composition import (
    DominatingPair,
    bounded_variation_pair,
    dominating_pair,
    loss_pair,
    randomised_response_pair,
)
from privacygames.errors import InvalidProblem

RATIOS = sorted({Fraction(a, b) for a in range(UNITS + 1) for b in range(1, UNITS + 1)})
"""Every likelihood ratio of small weights: between them divergences are straight lines."""


@given(st.lists(rows(4), min_size=2, max_size=4), st.sampled_from([0.5, 1.0, 2.0, inf]))
def test_the_dominating_pair_is_the_largest_divergence_of_any_two_secrets(weights: list[list[int]], r: float) -> None:
    mechanism = mechanism_of(weights)
    pair = dominating_pair(mechanism, within=r)
    near = [(s, t) for s, t in permutations(range(len(weights)), 2) if abs(s - t) <= r]
    for ratio in RATIOS:
        largest = max((divergence(weights[s], weights[t], ratio) for s, t in near), default=Fraction(0))
        assert pair.hockey_stick(ratio) == max(largest, 1 - ratio)


@given(rows(5), rows(5))
def test_the_pair_of_two_secrets_is_exact(first: list[int], second: list[int]) -> None:
    pair = loss_pair(mechanism_of([first, second]), 0, 1)
    assert [pair.hockey_stick(ratio) for ratio in RATIOS] == [divergence(first, second, ratio) for ratio in RATIOS]
    assert (np.diff(pair.losses) < 0).all()


@given(pairs(), pairs(4))
def test_domination_is_decided_exactly(one: DominatingPair, other: DominatingPair) -> None:
    assert one.dominates(other) == all(one.hockey_stick(each) >= other.hockey_stick(each) for each in RATIOS)
    assert one.dominates(one)


@given(close_pairs())
def test_likelihood_ratios_that_floats_confuse_are_ordered(pair: DominatingPair) -> None:
    """Outputs are split into halves whose ratios differ by less than a float can tell."""
    shift = 2**12
    first = np.concatenate([pair.first * shift // 2 + 1, pair.first * shift // 2 - 1])
    second = np.concatenate([pair.second * shift // 2 - 1, pair.second * shift // 2 + 1])
    finer = DominatingPair(first, second, pair.bits + 12)
    assert all(
        int(p) * int(next_q) > int(next_p) * int(q)
        for p, q, next_p, next_q in zip(finer.first, finer.second, finer.first[1:], finer.second[1:], strict=False)
    )
    assert finer.dominates(pair)  # to merge outputs is to process them
    assert not pair.dominates(finer)


@given(st.permutations([0, 1, 2, 3, 4, 5]), st.integers(1, 12))
def test_likelihood_ratios_that_are_equal_as_floats_are_ordered(extra: list[int], half_steps: int) -> None:
    second = [2**58] * 6
    first = [each + more for each, more in zip(second, extra, strict=True)]
    first, second = ([*row, 2**62 - sum(row)] for row in (first, second))
    pair = DominatingPair(np.array(first), np.array(second), 62)
    ratio = 1 + Fraction(half_steps, 2**59)
    assert pair.hockey_stick(ratio) == divergence(first, second, ratio)
    assert len(pair.first) == 7


@given(st.lists(rows(4), min_size=2, max_size=3))
def test_randomised_response_dominates_every_mechanism_with_its_epsilon(weights: list[list[int]]) -> None:
    mechanism = mechanism_of([[*(each + 1 for each in row), UNITS - len(row)] for row in weights])
    pair = dominating_pair(mechanism)
    assert randomised_response_pair(pair.largest_loss * (1 + 1e-12) + 1e-12).dominates(pair)


def test_a_pair_in_another_distance() -> None:
    city = pg.Grid(4, 1, 4.0, 1.0)
    mechanism = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(city)), epsilon=1.0)
    hops = abs(np.arange(4)[:, None] - np.arange(4)) * 2.0
    one, two = dominating_pair(mechanism, 1.0), dominating_pair(mechanism, 2.0, distance=hops)
    assert one.digest == two.digest != dominating_pair(mechanism, 2.0).digest


def test_distances_that_rounding_makes_larger_are_covered() -> None:
    mechanism = mechanism_of([[8, 8], [4, 12]])
    apart = np.array([[0.0, 0.1 + 0.2], [0.1 + 0.2, 0.0]])
    assert dominating_pair(mechanism, 0.3, distance=apart).largest_loss > 0


@given(rows(5), rows(5), st.floats(0.0, 0.2), st.floats(0.0, 0.05))
def test_randomised_response_that_is_rare_dominates_what_varies_little(
    first: list[int], second: list[int], more: float, wider: float
) -> None:
    pair = DominatingPair(
        np.array([each + 1 for each in first] + [43]), np.array([each + 1 for each in second] + [43]), 6
    )
    epsilon = max(pair.largest_loss, pair.reversed().largest_loss) * (1 + 1e-12) + 1e-12 + more
    variation = float(pair.hockey_stick(1)) + wider
    rare = bounded_variation_pair(epsilon, variation)
    assert rare.dominates(pair)
    assert rare.largest_loss <= epsilon + 1e-9
    assert rare.delta(0.0) <= variation + 1e-9


@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 0.3, 70.0])
def test_extreme_variations(epsilon: float) -> None:
    assert bounded_variation_pair(epsilon, 1.0).digest == randomised_response_pair(epsilon).digest
    assert bounded_variation_pair(epsilon, 0.0).delta(0.0) <= np.tanh(epsilon / 2) + 1e-15
    with pytest.raises(InvalidProblem, match="variation"):
        bounded_variation_pair(epsilon, -0.1)


def test_points_vary_no_faster_than_isshown() -> None:
    """Two outputs' worth of directions, near and far points, on a line and in the plane."""
    chance = np.random.default_rng(5)
    places = chance.uniform(0, 3, (5, 2))
    town = pg.PointProblem(pg.PointPrior(pg.Area(3.0, 3.0), places[:3]), places)
    line = pg.PointProblem(pg.PointPrior(pg.Interval(0.0, 3.0), [1.0, 2.0]), [0.5, 1.5, 2.5])
    for problem, axes in [(town, 2), (line, 1)]:
        mechanism = pg.design(problem, epsilon=0.6)
        assert mechanism.variation_rate < 0.3 * 1.002
        for distance in (1e-3, 0.3, 1.0):
            points = chance.uniform(0, 3, (500, axes))
            steps = chance.normal(size=(500, axes))
            others = np.clip(points + distance * steps / np.hypot.reduce(steps, axis=1, keepdims=True), 0, 3)
            near, far = (mechanism.probabilities(each if axes == 2 else each[:, 0]) for each in (points, others))
            apart = np.hypot.reduce(points - others, axis=1)
            variation = np.abs(near - far).sum(axis=1) / 2
            assert (variation <= mechanism.variation_rate * apart + 1e-7).all()
            pair = dominating_pair(mechanism, within=distance)
            for epsilon in (0.0, 0.3 * distance):
                assert (np.maximum(near - exp(epsilon) * far, 0).sum(axis=1) <= pair.delta(epsilon) + 1e-7).all()
        steepest = np.abs(mechanism.probabilities([1.0, 1.001] if axes == 1 else [(1.0, 1.0), (1.001, 1.0)]))
        assert np.abs(steepest[0] - steepest[1]).sum() / 2 > 0.3 * mechanism.variation_rate * 0.001


def test_points_are_dominated_by_randomised_response() -> None:
    line = pg.Interval(0.0, 4.0)
    problem = pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 2.0, 3.0])
    mechanism = pg.design(problem, epsilon=0.5)
    pair = dominating_pair(mechanism, within=1.0)
    assert 0.5 < pair.largest_loss < 0.5 + 1e-5
    near = mechanism.probabilities([1.3, 2.3])
    for epsilon in (0.0, 0.1, 0.3, 0.49):
        assert np.maximum(near[0] - exp(epsilon) * near[1], 0).sum() <= pair.delta(epsilon) + 1e-12
    assert dominating_pair(mechanism).largest_loss <= mechanism.any_pair + 1e-6


def test_delta_is_rounded_up() -> None:
    pair = randomised_response_pair(1.0)
    assert pair.delta(1.0) < 1e-15
    assert abs(pair.delta(0.0) - np.tanh(0.5)) < 1e-15
    assert randomised_response_pair(1e300).largest_loss == inf


@pytest.mark.parametrize(
    ("first", "second"), [([1, 2], [2, 2]), ([4, 0], [5, -1]), ([1, 1], [2]), ([[2, 2]], [[2, 2]]), ([3, 0], [0, 3])]
)
def test_rows_that_are_no_distributions_are_refused(first: list[int], second: list[int]) -> None:
    with pytest.raises(InvalidProblem, match="power of two"):
        DominatingPair(np.array(first), np.array(second), 2)


def test_wrong_arguments() -> None:
    mechanism = mechanism_of([[8, 8], [4, 12]])
    with pytest.raises(InvalidProblem, match="within"):
        dominating_pair(mechanism, -1.0)
    with pytest.raises(InvalidProblem, match="within"):
        dominating_pair(mechanism, float("nan"))
    with pytest.raises(InvalidProblem, match="epsilon"):
        randomised_response_pair(-0.1)
