"""Capacities: closed forms against what attains them, and bounds against a grid of priors."""

from fractions import Fraction
from itertools import product
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from leakage_channels import channel_of, channels, priors
from privacygames import leakage
from privacygames.leakage import Channel, Gain
from support import Array

STEPS = 24
"""Denominator of the grid of priors."""


def grid_of_priors(secrets: int) -> Array:
    """Every prior whose probabilities are multiples of 1/24."""
    return np.array([p for p in product(range(STEPS + 1), repeat=secrets) if sum(p) == STEPS]) / STEPS


def vulnerabilities(channel: Channel, gains: Array) -> tuple[Array, Array]:
    """Prior and posterior vulnerability for every prior of the grid, by brute force."""
    grid = grid_of_priors(len(channel.secrets))
    joint = grid[:, :, None] * channel.probabilities[None]
    return (grid @ gains.T).max(axis=1), np.einsum("ws,pso->pwo", gains, joint).max(axis=1).sum(axis=1)


@settings(max_examples=25)
@given(st.data())
def test_bounds_over_priors_bracket_a_grid_search(data: st.DataObject) -> None:
    channel = data.draw(channels(secrets=3, outputs=3))
    rows = data.draw(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=3))
    gains = np.array([*rows, [1, 1, 1]], dtype=float)
    before, after = vulnerabilities(channel, gains)
    additive = leakage.additive_capacity(channel, gains)
    factor = leakage.multiplicative_capacity(channel, gains)
    for capacity, grid in ((additive, (after - before).max()), (factor, (after / before).max())):
        assert grid <= capacity.upper
        assert capacity.lower <= capacity.upper
    assert additive.lower == pytest.approx(leakage.additive_leakage(channel, additive.prior, gains), abs=1e-12)
    assert factor.lower == pytest.approx(leakage.multiplicative_leakage(channel, factor.prior, gains), abs=1e-12)
    assert additive.lower >= (after - before).max() - 0.25 * gains.max()
    assert factor.upper <= leakage.bayes_capacity(channel) * (1 + 1e-12)


@settings(max_examples=25)
@given(st.data())
def test_additive_bayes_capacity_is_exact(data: st.DataObject) -> None:
    """The capacity is attained at a uniform prior on some secrets, all of which are on the grid."""
    channel = data.draw(channels(secrets=4, outputs=3))
    before, after = vulnerabilities(channel, np.eye(4))
    capacity = leakage.additive_capacity(channel)
    assert capacity.lower == pytest.approx((after - before).max(), abs=1e-12)
    assert capacity.upper == pytest.approx(capacity.lower, abs=1e-12)


@given(st.data())
def test_bayes_capacity_is_the_largest_factor_for_every_prior(data: st.DataObject) -> None:
    """The theorem of Alvim et al. 2012: one gain attains it, and no other exceeds it."""
    channel, prior = data.draw(channels(secrets=3, outputs=3)), data.draw(priors(3))
    capacity = leakage.bayes_capacity.exact(channel, prior)
    reciprocal = [
        [1 / prior[secret] if secret == guess and prior[secret] else Fraction(0) for secret in range(3)]
        for guess in range(3)
    ]
    assert leakage.multiplicative_leakage.exact(channel, prior, reciprocal) == capacity
    rows = data.draw(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=4))
    gain = Gain.from_matrix([*rows, [1, 1, 1]])
    assert leakage.multiplicative_leakage.exact(channel, prior, gain) <= capacity


@given(st.data())
def test_additive_capacities_over_gains_are_attained(data: st.DataObject) -> None:
    """By the gains of the proofs in docs/theory/leakage.md."""
    channel, prior = data.draw(channels(secrets=3, outputs=3)), data.draw(priors(3))
    hyper = leakage.hyper(channel, prior)
    likelier = [[Fraction(inner[s] > prior[s]) for s in range(3)] for inner in hyper.inners]
    shifted = [[entry - sum(e * p for e, p in zip(row, prior, strict=True)) for entry in row] for row in likelier]
    capacity = leakage.additive_gain_capacity.exact(channel, prior)
    assert leakage.additive_leakage.exact(channel, prior, shifted) == capacity

    possible = [s for s in range(3) if prior[s]]
    rarest = [min(possible, key=lambda s: channel.fractions[s][o]) for o in range(3)]
    punished = [[1 - (1 / prior[s] if s == rare else Fraction(0)) for s in range(3)] for rare in rarest]
    bound = leakage.additive_vulnerability_capacity.exact(channel, prior)
    assert leakage.additive_leakage.exact(channel, prior, [*punished, [Fraction(0)] * 3]) == bound
    assert bound >= capacity

    rows = data.draw(st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=4))
    in_unit_interval = [[Fraction(entry, 9) for entry in row] for row in rows]
    assert leakage.additive_leakage.exact(channel, prior, in_unit_interval) <= capacity


@settings(max_examples=40)
@given(st.data())
def test_shannon_capacity_brackets_a_grid_search(data: st.DataObject) -> None:
    channel = data.draw(channels(secrets=3, outputs=3))
    capacity = leakage.shannon_capacity(channel)
    assert capacity.upper - capacity.lower <= 1.1e-7
    grid = max(leakage.shannon_leakage(channel, prior.tolist()) for prior in grid_of_priors(3)[::5])
    assert grid <= capacity.upper
    assert capacity.lower == pytest.approx(leakage.shannon_leakage(channel, capacity.prior), abs=1e-10)
    assert capacity.lower <= leakage.min_capacity(channel) + 1e-12


def test_shannon_capacity_of_known_channels() -> None:
    """The Z-channel and the erasure channel, by their closed forms."""
    z_channel = channel_of([[1, 0], [1, 1]])
    assert leakage.shannon_capacity(z_channel).lower == pytest.approx(log2(5) - 2, abs=1e-6)
    erasure = channel_of([[3, 0, 1], [0, 3, 1]])
    assert leakage.shannon_capacity(erasure).lower == pytest.approx(0.75, abs=1e-9)
    few = leakage.shannon_capacity(z_channel, iterations=1)
    assert few.lower < log2(5) - 2 < few.upper


def test_capacities_of_many_secrets_are_bounded() -> None:
    """Beyond fourteen secrets no set is left out either: the bound is that of a linear program."""
    generator = np.random.default_rng(5)
    channel = channel_of(generator.integers(0, 9, (16, 6)).tolist())
    capacity = leakage.additive_capacity(channel)
    few = channel_of(channel.integers[:8].tolist())
    assert leakage.additive_capacity(few).upper <= capacity.upper
    assert 0 < capacity.lower <= capacity.upper <= leakage.additive_vulnerability_capacity(channel)


def test_wrong_gains_are_refused() -> None:
    channel = channel_of([[1, 0], [0, 1]])
    with pytest.raises(pg.InvalidProblem, match="negative"):
        leakage.multiplicative_capacity(channel, [[1, -1]])
    with pytest.raises(pg.InvalidProblem, match="tolerance"):
        leakage.shannon_capacity(channel, tolerance=0)
    large = channel_of([[1, 2]] * 300)
    with pytest.raises(pg.TooLarge, match="entries"):
        leakage.multiplicative_capacity(large, "hamming")
    with pytest.raises(pg.TooLarge, match="guesses"):
        leakage.additive_capacity(large, Gain.tries(5))
