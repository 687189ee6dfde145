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


@pytest.mark.parametrize("noise", NOISES)
def test_the_edge_of_a_map_adds_what_its_integral_says(noise: PlateauNoise) -> None:
    radius, (width, height) = 0.2, (3.0, 2.0)
    masses = lambda t: noise.probability_within(np.hypot(t, radius)) - noise.probability_within(t)  # noqa: E731
    breaks = [noise.plateau, max(noise.plateau - radius, 0.0)]
    integral = quad(masses, 0, noise.plateau + 8 / noise.epsilon, points=breaks, limit=200)[0]
    integral += quad(masses, noise.plateau + 8 / noise.epsilon, noise.plateau + 60 / noise.epsilon)[0]
    expected = noise.probability_within(radius) + np.pi * radius**2 / 6 + integral * 10 / 6
    assert noise.largest_chance(radius, (width, height)) == pytest.approx(min(expected, 1.0), rel=1e-8)
    assert noise.largest_chance(radius) == noise.probability_within(radius)
    assert noise.largest_chance(radius, (1e6, 1e6)) == pytest.approx(noise.probability_within(radius), rel=1e-4)


@given(st.floats(0.5, 30.0), st.floats(0.05, 0.6), st.floats(0.02, 0.9))
def test_a_plateau_for_a_map_keeps_the_chance_on_it(epsilon: float, radius: float, share: float) -> None:
    """The chance is kept on the map, and no smaller plateau keeps it."""
    sides = (15.0, 8.0)
    blind = np.pi * radius**2 / 120
    probability = blind + share * (1 - blind)
    noise = PlateauNoise.against_disks(epsilon, radius=radius, probability=probability, sides=sides)
    assert noise.largest_chance(radius, sides) <= probability
    smaller = PlateauNoise(epsilon, 0.999 * noise.plateau)
    assert noise.plateau == 0.0 or smaller.largest_chance(radius, sides) > probability


@pytest.mark.parametrize("sides", [(1.4, 1.0), (1.0, 0.7)])
@pytest.mark.parametrize("noise", [PlateauNoise(5.0, 0.0), PlateauNoise(10.0, 0.25)])
def test_no_attack_that_knows_the_map_finds_more_than_the_largest_chance(
    noise: PlateauNoise, sides: tuple[float, float]
) -> None:
    """The optimal attack, for points on a fine lattice and outputs on another one: more than in the plane."""
    radius = 0.2
    points, outputs = (lattice_of(sides, step, beyond) for step, beyond in ((radius / 6, 0.0), (radius / 3, 2.0)))
    densities = np.exp(noise.log_density(np.linalg.norm(outputs[:, None] - points, axis=2)))
    chances = densities * (radius / 3) ** 2
    assert chances.sum(axis=0) == pytest.approx(np.ones(len(points)), abs=2e-3)
    disks = np.linalg.norm(points[:, None] - points, axis=2) <= radius
    found = float((chances @ disks.astype(np.float64)).max(axis=1).sum() / len(points))
    assert noise.probability_within(radius) * 1.2 < found  # so that the bound for the plane does not hold here
    assert found <= noise.largest_chance(radius, sides)


def lattice_of(
    sides: tuple[float, float], step: float, beyond: float
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The centres of small squares over a map and around it."""
    axes = [np.arange(-beyond + step / 2, side + beyond, step) for side in sides]
    return np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)


@pytest.mark.parametrize(
    "make",
    [
        lambda: PlateauNoise(1.0, 0.0).largest_chance(0.2, (0.0, 1.0)),
        lambda: PlateauNoise(1.0, 0.0).largest_chance(0.2, (1.0,)),  # type: ignore[arg-type]
        lambda: PlateauNoise.against_disks(1.0, radius=0.2, probability=0.1, sides=(1.0, 1.0)),  # less than a guess
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
