"""Planar noise with a plateau: its density, its draws, and that no other noise with its guarantees is cheaper."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import linprog
from scipy.stats import kstest

import privacygames as pg
from privacygames.baselines import PlateauNoise, planar_laplace_noise

NOISES = [PlateauNoise(5.0, 0.0), PlateauNoise(10.0, 0.3), PlateauNoise(1.0, 4.0)]


@pytest.mark.parametrize("noise", NOISES)
def test_the_closed_forms_are_integrals_of_the_density(noise: PlateauNoise) -> None:
    def mass(weight: float, radius: float) -> float:
        """∫ 2πr·r^weight·k(r) dr, in pieces."""
        integrand = lambda r: 2 * np.pi * r ** (1 + weight) * np.exp(noise.log_density(np.array(r)))  # noqa: E731
        ends = sorted({0.0, min(radius, noise.plateau), radius})
        return float(sum(quad(integrand, low, high)[0] for low, high in pairwise(ends)))

    far = noise.plateau + 60 / noise.epsilon
    assert mass(0, far) == pytest.approx(1.0)
    assert mass(1, far) == pytest.approx(noise.expected_distance)
    for radius in (0.5 * noise.plateau + 0.01, noise.plateau + 0.3 / noise.epsilon):
        assert mass(0, radius) == pytest.approx(noise.probability_within(radius))


@pytest.mark.parametrize("noise", NOISES)
def test_draws_have_this_density(noise: PlateauNoise) -> None:
    draws = noise.sample(20_000, np.random.default_rng(1))
    radii, angles = np.hypot(*draws.T), np.arctan2(draws[:, 1], draws[:, 0])
    assert kstest(radii, np.vectorize(noise.probability_within)).pvalue > 1e-3
    assert kstest((angles + np.pi) / (2 * np.pi), "uniform").pvalue > 1e-3
    assert noise.sample(3).shape == (3, 2)


def test_without_a_plateau_it_is_planar_laplace_noise() -> None:
    noise = PlateauNoise(2.0, 0.0)
    assert noise.expected_distance == pytest.approx(1.0)
    laplace = np.hypot(*planar_laplace_noise(2.0, 20_000, np.random.default_rng(2)).T)
    assert kstest(laplace, np.vectorize(noise.probability_within)).pvalue > 1e-3
    assert noise.probability_within(0.4) == pytest.approx(pg.place_attacks.disk_bound(2.0, 0.4))


@given(st.floats(0.5, 20.0), st.floats(0.05, 2.0), st.floats(0.01, 0.99))
def test_no_disk_is_more_probable_than_asked(epsilon: float, radius: float, probability: float) -> None:
    noise = PlateauNoise.against_disks(epsilon, radius=radius, probability=probability)
    assert noise.probability_within(radius) <= probability * (1 + 1e-9)
    if noise.plateau >= radius:
        assert noise.probability_within(radius) == pytest.approx(probability)
    distances = np.linspace(0.0, noise.plateau + 5 / epsilon, 200)
    assert np.abs(np.diff(noise.log_density(distances)) / np.diff(distances)).max() <= epsilon * (1 + 1e-6)


def test_no_radial_noise_with_its_guarantees_is_cheaper() -> None:
    """A linear program over densities in thin rings: ε between neighbours, and the largest density."""
    noise = PlateauNoise(2.0, 0.7)
    edges = np.linspace(0.0, 7.0, 1401)
    middle, step = (edges[1:] + edges[:-1]) / 2, edges[1]
    area = np.pi * np.diff(edges**2)
    factor = np.exp(noise.epsilon * step)
    count = len(area)
    falling = np.eye(count)[:-1] - factor * np.eye(count)[1:]
    result = linprog(
        area * middle, A_ub=falling, b_ub=np.zeros(count - 1), A_eq=[area], b_eq=[1], bounds=(0, noise.largest_density)
    )
    assert result.fun == pytest.approx(noise.expected_distance, rel=2e-3)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PlateauNoise(0.0, 1.0),
        lambda: PlateauNoise(1.0, -1.0),
        lambda: PlateauNoise(1.0, np.inf),
        lambda: PlateauNoise.against_disks(1.0, radius=0.0, probability=0.5),
        lambda: PlateauNoise.against_disks(1.0, radius=0.1, probability=0.0),
    ],
)
def test_wrong_arguments_are_refused(make: object) -> None:
    with pytest.raises(pg.InvalidProblem):
        make()  # type: ignore[operator]
