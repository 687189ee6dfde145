"""Exact noise on a lattice: its guarantee in exact arithmetic, and that draws have the stated distribution."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare, kstest

import privacygames as pg
from privacygames.points.lattice_noise import BITS, LatticeNoise, RandomBits, random_words

steps = st.integers(-(10**7), 10**7)


@given(st.floats(1e-3, 1e3), st.floats(0.0, 2.0), st.sampled_from([2.0**-20, 0.05, 1.0]), steps, steps, steps, steps)
def test_epsilon_holds_between_any_two_points_of_the_lattice(
    epsilon: float, plateau: float, step: float, one: int, other: int, right: int, up: int
) -> None:
    """The exponents of one output for two points, in exact integers and squares of distances."""
    noise = LatticeNoise(Fraction(epsilon), Fraction(plateau), Fraction(step))
    for across, along in ((right, up), (right % 3, up % 3), (1, 0)):
        apart = noise.exponent(one, other) - noise.exponent(one + across, other + along)
        squared = across**2 + along**2
        assert Fraction(apart, 2**BITS) ** 2 <= (noise.epsilon * noise.step) ** 2 * squared


@given(st.floats(0.01, 1e3), st.floats(0.0, 2.0), st.sampled_from([2.0**-20, 0.05, 1.0]), st.integers(0, 10**6))
def test_the_proposal_never_falls_faster_than_the_noise(epsilon: float, plateau: float, step: float, far: int) -> None:
    noise = LatticeNoise(Fraction(epsilon), Fraction(plateau), Fraction(step))
    reach = noise.reach
    for column, row in ((far, far), (reach + far, 0), (reach + 1, far), (reach + far, reach + far)):
        beyond = max(column - reach, 0) + max(row - reach, 0)
        assert noise.exponent(column, row) >= noise.axis_slope * beyond


@pytest.mark.parametrize(("epsilon", "plateau"), [(1.0, 0.0), (0.7, 2.5), (2.0, 1.0)])
def test_draws_have_the_stated_probabilities(epsilon: float, plateau: float) -> None:
    noise = LatticeNoise(Fraction(epsilon), Fraction(plateau), Fraction(1))
    drawn = noise.sample(4000, np.random.default_rng(5))
    axis = np.arange(-60, 61)
    weights = np.array([[np.exp(-noise.exponent(i, j) / 2**BITS) for i in axis.tolist()] for j in axis.tolist()])
    weights /= weights.sum()
    counts = np.zeros_like(weights)
    np.add.at(counts, (drawn[:, 1] + 60, drawn[:, 0] + 60), 1)
    often = weights * len(drawn) >= 8
    expected = np.append(weights[often], weights[~often].sum()) * len(drawn)
    assert chisquare(np.append(counts[often], counts[~often].sum()), expected).pvalue > 1e-3


@pytest.mark.parametrize("noise", [pg.baselines.PlateauNoise(5.0, 0.0), pg.baselines.PlateauNoise(20.0, 0.336)])
def test_on_a_fine_lattice_it_is_the_noise_with_a_plateau(noise: pg.baselines.PlateauNoise) -> None:
    step = Fraction(1, 2**20)
    exact = LatticeNoise(Fraction(noise.epsilon), Fraction(noise.plateau), step)
    drawn = exact.sample(2000, np.random.default_rng(6)) * float(step)
    within = np.vectorize(noise.probability_within)
    assert kstest(np.linalg.norm(drawn, axis=1), within).pvalue > 1e-3
    angles = np.arctan2(drawn[:, 1], drawn[:, 0]) / (2 * np.pi) + 0.5
    assert kstest(angles, "uniform").pvalue > 1e-3


@pytest.mark.parametrize("exponent", [0.0, 0.3, 1.0, 2.7])
def test_trials_survive_with_the_exponential_of_their_exponent(exponent: float) -> None:
    bits = RandomBits(random_words(np.random.default_rng(7)))
    survived = np.mean([bits.survives(int(exponent * 2**BITS)) for _ in range(4000)])
    chance = np.exp(-exponent)
    assert survived == pytest.approx(chance, abs=4 * np.sqrt(chance * (1 - chance) / 4000) + 1e-12)


def test_it_is_random_without_a_generator() -> None:
    noise = LatticeNoise(Fraction(5), Fraction(0), Fraction(1, 2**20))
    assert not np.array_equal(noise.sample(5), noise.sample(5))
