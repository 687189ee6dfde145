"""Claim 2 of docs/theory/sharing.md in exact arithmetic: its bound holds, what attains it, and what does not.

Mechanism: the truncated geometric one on three places in a row, with exp(ε) = 2. Its first and last outputs have the
ratio 2^(distance) between any two places, so every bound on a ratio is attained.
"""

from fractions import Fraction
from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

import privacygames as pg
from privacygames.releases import Budget, Releases
from sharing import PROBLEM, WALK

PLACES, MOMENTS = range(3), 3
TRACES = list(product(PLACES, repeat=MOMENTS))
AT = 1
"""The moment that claim 2 is about."""

Joint = dict[tuple[int, ...], Fraction]
"""A distribution over traces."""


def output(o: int, x: int) -> Fraction:
    """K(o|x) of the truncated geometric mechanism."""
    inner = Fraction(1, 3) * Fraction(1, 2) ** abs(o - x)
    return inner if o == 1 else 2 * inner


def given_place(joint: Joint, outputs: tuple[int, ...], place: int) -> Fraction:
    """P(outputs | x_τ = place)."""
    traces = {trace: chance for trace, chance in joint.items() if trace[AT] == place}
    told = sum(chance * prod(map(output, outputs, trace)) for trace, chance in traces.items())
    return Fraction(told) / sum(traces.values())


def exponent(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    """Σ_t d(x_t, x'_t), in units of ε."""
    return sum(abs(x - other) for x, other in zip(first, second, strict=True))


def first_maximum(a: int, b: int) -> int:
    """The largest exponent of two traces that are at a and at b at τ."""
    return max(exponent(x, y) for x, y in product(TRACES, repeat=2) if (x[AT], y[AT]) == (a, b))


def shift(joint: Joint, a: int, b: int) -> Fraction:
    """The largest ratio of P(o | x_τ = a) to P(o | x_τ = b) over all sequences of outputs."""
    return max(given_place(joint, o, a) / given_place(joint, o, b) for o in TRACES)


def test_the_mechanism_is_one_and_attains_its_ratios() -> None:
    assert [sum(output(o, x) for o in PLACES) for x in PLACES] == [1, 1, 1]
    for x, other in product(PLACES, repeat=2):
        ratios = [output(o, x) / output(o, other) for o in PLACES]
        assert max(ratios) == 2 ** abs(x - other)


@given(st.lists(st.integers(0, 5), min_size=len(TRACES), max_size=len(TRACES)), st.permutations(PLACES))
def test_no_distribution_over_traces_shifts_the_odds_further(weights: list[int], pair: list[int]) -> None:
    a, b, _ = pair
    joint = {trace: Fraction(weight) for trace, weight in zip(TRACES, weights, strict=True) if weight}
    if {a, b} <= {trace[AT] for trace in joint}:
        assert shift(joint, a, b) <= 2 ** first_maximum(a, b)


@pytest.mark.parametrize(("a", "b"), [(0, 1), (1, 2), (0, 2)])
def test_whoever_moves_to_opposite_ends_attains_it_and_whoever_stays_need_not(a: int, b: int) -> None:
    farthest = 2
    assert first_maximum(a, b) == abs(a - b) + (MOMENTS - 1) * farthest
    apart: Joint = {(0, a, 0): Fraction(1, 2), (2, b, 2): Fraction(1, 2)}
    assert shift(apart, a, b) == 2 ** first_maximum(a, b)
    staying: Joint = {(a, a, a): Fraction(1, 2), (b, b, b): Fraction(1, 2)}
    assert shift(staying, a, b) == 2 ** (MOMENTS * abs(a - b))
    assert (shift(staying, a, b) == shift(apart, a, b)) == (abs(a - b) == farthest)


HOUR = 3600.0
START = 1_700_000_000.0
HALF = pg.design(PROBLEM, epsilon=0.5)


def charged(readings: list[float]) -> list[float]:
    """What each request at these readings of a clock is charged, with 1 in every hour and 0.5 a release."""
    budget = Budget(1.0, every=HOUR)
    releases = Releases(PROBLEM, WALK, mechanism=HALF, budget=budget, when_spent="belief")
    return [float(releases.release("cell-0", at=START + reading).epsilon) for reading in readings]


def most_in_a_window(real: list[float], charges: list[float]) -> float:
    """The largest sum of charges in any hour of real time."""
    return max(sum(cost for time, cost in zip(real, charges, strict=True) if end - HOUR <= time <= end) for end in real)


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 60)), min_size=1, max_size=8))
def test_no_window_of_real_time_exceeds_the_budget_where_the_clock_is_never_set_forward(
    steps: list[tuple[int, int]],
) -> None:
    """Between two requests so many minutes pass, and the clock loses so many: it runs slow, or is set back."""
    real, read = [0.0], [0.0]
    for passed, lost in steps:
        real.append(real[-1] + 60.0 * passed)
        read.append(read[-1] + 60.0 * (passed - lost))
    assert most_in_a_window(real, charged(read)) <= 1.0


@pytest.mark.parametrize("ahead", [2 * HOUR, 0.0], ids=["two hours wrong", "right again"])
def test_a_clock_set_forward_gives_a_window_of_real_time_twice_the_budget(ahead: float) -> None:
    """Six requests within minutes; before the fourth the clock is set forward by two hours, to be wrong or right."""
    real = [0.0, 60.0, 120.0, 180.0, 240.0, 300.0]
    offsets = [ahead - 2 * HOUR] * 3 + [ahead] * 3
    charges = charged([time + offset for time, offset in zip(real, offsets, strict=True)])
    assert charges == [0.5, 0.5, 0.0, 0.5, 0.5, 0.0]
    assert most_in_a_window(real, charges) == 2.0
