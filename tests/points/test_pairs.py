"""No two points break a guarantee for points; a snapped grid has two points that do, and they are found at once."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

import privacygames as pg
from points.examples import MAKERS, SQUARE, example, snapped_grid
from points.pairs import EXPONENTIAL_BITS, Evaluator, exponential_below, random_pairs, search_pairs
from privacygames.points import certify_points

Point = tuple[float, float]


@pytest.mark.parametrize("name", MAKERS)
def test_two_hundred_thousand_pairs_hold(name: str) -> None:
    search = search_pairs(example(name), 200_000, seed=1)
    assert search.pairs == 200_000
    assert search.broken == 0
    assert search.exact > 0
    assert 0.9 < search.largest <= 1 + 1e-9  # the pairs are those that matter


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_millions_of_pairs_hold(name: str) -> None:
    """Another seed than the ordinary run's; ``python -m points`` searches among ten million."""
    assert search_pairs(example(name), 2_000_000, seed=2).broken == 0


@pytest.mark.parametrize("name", MAKERS)
def test_floats_of_the_search_are_the_exact_probabilities(name: str) -> None:
    mechanism = example(name)
    evaluator, mesh = Evaluator(mechanism), mechanism.mesh
    codes, _ = random_pairs(mesh, np.random.default_rng(5), 40)
    floats = evaluator.probabilities(codes)
    points = mesh.region.coordinates(mesh.decode(codes))
    assert np.allclose(mechanism.probabilities(points), floats, rtol=1e-5, atol=1e-12)
    for code, row in zip(codes.tolist(), floats, strict=True):
        exact = evaluator.exact_probabilities(code)
        total = int(exact.sum())
        assert total & (total - 1) == 0  # they sum to a power of two
        for value, share in zip(row.tolist(), exact.tolist(), strict=True):
            assert abs(Fraction(value) - Fraction(share, total)) <= Fraction(share, total) * Fraction(1, 2**46)
        decoded = mesh.decode(np.array([code]))[0]
        assert [float(part) for part in evaluator.position(code)] == pytest.approx(decoded.tolist(), abs=1e-13)


@given(exponent=st.fractions(0, 20))
def test_exponentials_are_rounded_down(exponent: Fraction) -> None:
    below = exponential_below(Fraction(1), exponent**2)
    assert below * 2.0**-EXPONENTIAL_BITS == pytest.approx(np.exp(float(exponent)), rel=1e-12)
    twice = exponential_below(Fraction(1), (2 * exponent) ** 2)
    assert below * below <= (twice + 2**60) << EXPONENTIAL_BITS  # e^x · e^x = e^2x, up to the rounding of one


def test_an_epsilon_that_is_a_millionth_too_small_is_found_out() -> None:
    """By the verifier, and by the same exact comparison of two points."""
    mechanism = example("line")
    smaller = 1.0 - 1e-6
    with pytest.raises(pg.GuaranteeViolated, match="changes faster"):
        certify_points(
            mechanism.problem,
            pg.Bounds(epsilon=smaller),
            mechanism.mesh,
            mechanism.weights,
            mechanism.bits,
            provenance=mechanism.certificate.provenance,
        )
    evaluator = Evaluator(mechanism)
    one, other = random_pairs(mechanism.mesh, np.random.default_rng(3), 200_000)
    distance = np.abs(mechanism.mesh.decode(one) - mechanism.mesh.decode(other))[:, 0]
    close = (distance > 1e-5) & (distance < 1e-3)
    one, other, distance = one[close], other[close], distance[close]
    ratios = np.abs(np.log(evaluator.probabilities(one) / evaluator.probabilities(other))).max(axis=1)
    worst = int(np.argmax(ratios / distance))
    assert evaluator.holds_exactly(int(one[worst]), int(other[worst]))
    evaluator.epsilon = smaller
    assert not evaluator.holds_exactly(int(one[worst]), int(other[worst]))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Point, Point]:
    """Two points of the square, close or far, or a little outside."""
    x, y = draw(st.floats(-0.5, 3.5)), draw(st.floats(-0.5, 3.5))
    distance, angle = 10 ** draw(st.floats(-6, 0.5)), draw(st.floats(0, 6.3))
    return (x, y), (x + distance * float(np.cos(angle)), y + distance * float(np.sin(angle)))


def snapped_breaks(snapped: pg.Mechanism, pair: tuple[Point, Point]) -> bool:
    """Whether a grid gives two points rows whose ratio is above e^(ε·distance), with room for rounding."""
    grid = snapped.secrets
    assert isinstance(grid, pg.Grid)
    rows = [snapped.probabilities[position] for position in grid.locate(list(pair), outside="nearest")]
    return bool(np.abs(np.log(rows[0] / rows[1])).max() > np.hypot(*np.subtract(*pair)) * 1.001)


def points_break(evaluator: Evaluator, pair: tuple[Point, Point]) -> bool:
    """Whether a mechanism for points does, for the encoded points, in exact arithmetic."""
    one, other = evaluator.mesh.encode(SQUARE.clamp(list(pair))).tolist()
    return not evaluator.holds_exactly(one, other)


SEARCH = settings(max_examples=1500, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def test_a_search_finds_two_points_that_a_snapped_grid_tells_apart() -> None:
    snapped = snapped_grid()
    one, other = find(pairs(), lambda pair: snapped_breaks(snapped, pair), settings=SEARCH)
    assert snapped.secrets.locate([one], outside="nearest") != snapped.secrets.locate([other], outside="nearest")  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", [name for name in MAKERS if name.startswith("square")])
def test_the_same_search_finds_none_here(name: str) -> None:
    evaluator = Evaluator(example(name))
    with pytest.raises(NoSuchExample):
        find(pairs(), lambda pair: points_break(evaluator, pair), settings=SEARCH)
