"""The best guesses for outputs: hand-solved problems, brute force, SciPy, and bounds that no random guess beats."""

from decimal import Decimal, localcontext
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize, minimize_scalar

import privacygames as pg
from privacygames.points.guesses import BestGuesses, best_candidates, best_guesses, covering_lattice

Array = NDArray[np.float64]


def error_of(masses: Array, xy: Array, guess: Array) -> float:
    """The error of one guess, term by term."""
    return sum(float(mass) * float(np.linalg.norm(guess - x)) for mass, x in zip(masses, xy, strict=True))


def worst_gap(best: BestGuesses) -> float:
    """The largest relative gap of an output."""
    return float(((best.errors - best.lower) / np.where(best.errors > 0, best.errors, 1.0)).max())


def test_equilateral_triangle() -> None:
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
    best = best_guesses(np.full((1, 3), 1 / 3), corners)
    assert best.guesses[0] == pytest.approx([0.5, np.sqrt(0.75) / 3], abs=1e-9)
    assert best.lower[0] <= 1 / np.sqrt(3) * (1 + 1e-15)
    assert best.errors[0] == pytest.approx(1 / np.sqrt(3), rel=1e-12)
    assert worst_gap(best) < 1e-12


def test_square_with_equal_and_with_dominant_corners() -> None:
    square = np.array([[0.0, 0.0], [2.0, 0.0], [2.0, 2.0], [0.0, 2.0]])
    best = best_guesses([[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1 + np.sqrt(2)], [1.0, 1.0, 1.0, 2.4]], square)
    assert best.guesses[0] == pytest.approx([1.0, 1.0], abs=1e-9)
    assert best.errors[0] == pytest.approx(4 * np.sqrt(2))
    # the others pull on the fourth corner with 1 + √2, so it is optimal from that mass on
    assert best.guesses[1] == pytest.approx([0.0, 2.0], abs=1e-6)
    assert best.errors[1] == pytest.approx(4 + 2 * np.sqrt(2))
    assert best.errors[2] < 4 + 2 * np.sqrt(2)
    assert best.guesses[2] != pytest.approx([0.0, 2.0], abs=1e-6)
    assert worst_gap(best) < 1e-10


@pytest.mark.parametrize("angle", [119.0, 121.0])
def test_a_corner_of_a_triangle_is_optimal_if_its_angle_is_at_least_120_degrees(angle: float) -> None:
    half = np.radians(angle / 2)
    corners = np.array([[0.0, 0.0], [np.sin(half), np.cos(half)], [-np.sin(half), np.cos(half)]])
    best = best_guesses([[1.0, 1.0, 1.0]], corners)
    assert bool((best.guesses[0] == 0).all()) == (angle > 120)
    assert worst_gap(best) < 1e-12


def test_two_points_one_point_and_an_output_that_is_never_given() -> None:
    two = np.array([[0.0, 0.0], [3.0, 4.0]])
    best = best_guesses([[0.3, 0.2], [0.1, 0.4], [0.25, 0.25], [0.0, 0.7], [0.0, 0.0]], two)
    assert best.errors == pytest.approx([1.0, 0.5, 1.25, 0.0, 0.0])
    assert best.guesses[[0, 1, 3]].tolist() == [[0.0, 0.0], [3.0, 4.0], [3.0, 4.0]]
    assert best.errors[3:].tolist() == best.lower[3:].tolist() == [0.0, 0.0]
    assert worst_gap(best) < 1e-12
    assert best.total_lower <= 2.75 * (1 + 1e-15) <= best.total_error * (1 + 1e-15)
    for distance in ("euclidean", "squared"):
        single = best_guesses([[0.5], [0.0]], [(1.0, 2.0)], distance)
        assert single.guesses.tolist() == [[1.0, 2.0], [1.0, 2.0]]
        assert (single.total_error, single.total_lower, single.gap) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("seed", range(3))
def test_against_brute_force_on_a_fine_lattice(seed: int) -> None:
    rng = np.random.default_rng(seed)
    xy, masses = rng.uniform(0, 2, (7, 2)), rng.random((4, 7)) ** 3
    best = best_guesses(masses, xy)
    lattice, radius = covering_lattice(xy.min(axis=0), xy.max(axis=0), spacing=0.004)
    errors = masses @ np.hypot(*(xy[:, None] - lattice).transpose(2, 0, 1))
    assert (best.lower <= errors.min(axis=1)).all()
    assert (best.errors >= errors.min(axis=1) - radius * masses.sum(axis=1)).all()
    assert (best.errors <= errors.min(axis=1) * (1 + 1e-12)).all()
    assert best.errors == pytest.approx([error_of(m, xy, g) for m, g in zip(masses, best.guesses, strict=True)])


@pytest.mark.parametrize("count", [3, 10, 60])
def test_against_a_general_minimiser(count: int) -> None:
    rng = np.random.default_rng(count)
    xy, masses = rng.normal(size=(count, 2)), rng.random((5, count))
    best = best_guesses(masses, xy)
    for mass, error in zip(masses, best.errors, strict=True):
        options = {"xatol": 1e-10, "fatol": 1e-13, "maxiter": 4000}
        other = minimize(lambda s, m=mass: error_of(m, xy, s), xy.mean(axis=0), method="Nelder-Mead", options=options)
        assert error == pytest.approx(other.fun, rel=1e-10)


@pytest.mark.parametrize("distance", ["euclidean", "squared"])
def test_one_dimension_against_scipy(distance: str) -> None:
    rng = np.random.default_rng(4)
    x, masses = rng.uniform(-5, 5, (30, 1)), rng.random((6, 30))
    best = best_guesses(masses, x, distance)
    power = 1 if distance == "euclidean" else 2
    for mass, guess, error, lower in zip(masses, best.guesses[:, 0], best.errors, best.lower, strict=True):
        other = minimize_scalar(
            lambda s, m=mass: float(m @ np.abs(s - x[:, 0]) ** power),
            bounds=(-5, 5),
            method="bounded",
            options={"xatol": 1e-9},
        )
        assert lower <= other.fun
        assert error == pytest.approx(other.fun, rel=1e-6)
        assert error <= other.fun * (1 + 1e-12)
        assert guess == pytest.approx(other.x, abs=1e-6)
    assert worst_gap(best) < 1e-12


def test_the_plane_agrees_with_the_line_for_collinear_points() -> None:
    rng = np.random.default_rng(1)
    t, masses = rng.integers(0, 12, (40, 1)).astype(float), rng.integers(0, 3, (30, 40)).astype(float)
    line, plane = best_guesses(masses, t), best_guesses(masses, t * [3.0, 4.0] + [1.0, 2.0])
    assert plane.errors == pytest.approx(5 * line.errors, rel=1e-12)
    assert worst_gap(line) < 1e-11
    assert worst_gap(plane) < 1e-11


CLUSTERS = np.random.default_rng(2).uniform(0, 10, (20, 2))


@pytest.mark.parametrize(
    ("xy", "exponents"),
    [
        (np.random.default_rng(3).uniform(0, 10, (200, 2)), (-300, 0)),
        (np.random.default_rng(3).uniform(0, 10, (200, 2)), (-12, 0)),
        (np.repeat(CLUSTERS, 10, axis=0), (-3, 0)),
        (np.repeat(CLUSTERS, 10, axis=0) + np.random.default_rng(4).normal(0, 1e-10, (200, 2)), (-3, 0)),
        (np.repeat(CLUSTERS, 10, axis=0) + np.random.default_rng(4).normal(0, 1e-5, (200, 2)), (-9, 0)),
        (np.linspace(0, 1, 200)[:, None] * [1, 2] + np.random.default_rng(5).normal(0, 1e-9, (200, 2)), (-1, 0)),
        (10.0 ** np.random.default_rng(6).uniform(-12, 3, (200, 2)), (-12, 0)),
        (np.random.default_rng(7).normal(1e6, 1, (200, 2)), (-1, 0)),
        (np.stack(np.meshgrid(np.arange(20.0), np.arange(10.0)), axis=-1).reshape(-1, 2), (0, 0)),
    ],
    ids=["masses 1e-300", "masses 1e-12", "equal", "1e-10", "1e-5", "thin", "scales", "far", "lattice"],
)
def test_the_gap_is_small_for_hard_inputs(xy: Array, exponents: tuple[int, int]) -> None:
    rng = np.random.default_rng(8)
    masses = 10.0 ** rng.uniform(*exponents, (60, len(xy)))
    masses[::2] *= rng.random((30, len(xy))) < 0.03
    for distance in ("euclidean", "squared"):
        best = best_guesses(masses, xy, distance)
        assert worst_gap(best) <= 1e-7
        assert best.gap <= 1e-8


places = st.integers(-8, 8).map(lambda k: k / 4) | st.floats(-3, 3).map(lambda x: round(x, 9))
weights = st.sampled_from([0.0, 1.0, 2.0]) | st.floats(-30, 0).map(lambda e: float(10.0**e))


@given(
    st.integers(1, 2).flatmap(
        lambda dim: st.lists(
            st.tuples(weights, weights, *[places] * dim),
            min_size=1,
            max_size=9,
        )
    ),
    st.sampled_from(["euclidean", "squared"]),
    st.randoms(use_true_random=False),
)
def test_no_guess_beats_the_lower_bound_and_none_is_much_better(
    rows: list[tuple[float, ...]], distance: str, random: Random
) -> None:
    table = np.array(rows)
    masses, xy = table[:, :2].T, table[:, 2:]
    best = best_guesses(masses, xy, distance)
    power = 1 if distance == "euclidean" else 2
    assert (best.lower <= best.errors).all()
    assert (best.errors - best.lower <= 1e-7 * best.errors).all()
    guesses = [*xy, *best.guesses]
    guesses += [np.array([random.uniform(-4, 4) for _ in range(xy.shape[1])]) for _ in range(20)]
    guesses += [g + 10.0 ** random.uniform(-9, 0) * np.ones(xy.shape[1]) for g in best.guesses]
    for guess in guesses:
        errors = masses @ np.linalg.norm(guess - xy, axis=1) ** power
        assert (best.lower <= errors * (1 + 1e-14)).all()
    order = np.argsort([random.random() for _ in rows])
    permuted = best_guesses(masses[:, order], xy[order], distance)
    assert permuted.errors == pytest.approx(best.errors, rel=2e-7)
    scaled = best_guesses(masses * 3, xy * 0.7, distance)
    assert scaled.errors == pytest.approx(3 * 0.7**power * best.errors, rel=2e-7)
    tiny = best_guesses(masses * 2.0**-300, xy, distance)
    assert tiny.errors == pytest.approx(best.errors * 2.0**-300, rel=2e-7)
    assert (tiny.errors - tiny.lower <= 1e-7 * tiny.errors).all()


@pytest.mark.parametrize("distance", ["euclidean", "squared"])
def test_both_bounds_hold_in_fifty_digits(distance: str) -> None:
    """Among 1000 points on a lattice, summed in decimal arithmetic: rounding is on the safe side."""
    rng = np.random.default_rng(11)
    xy = rng.integers(0, 30, (1000, 2)) / 8
    masses = 10.0 ** rng.uniform(-6, 0, (3, 1000))
    best = best_guesses(masses, xy, distance)
    for mass, guess, error, lower in zip(masses, best.guesses, best.errors, best.lower, strict=True):
        with localcontext() as context:
            context.prec = 50
            exact = Decimal(0)
            for a, point in zip(mass, xy, strict=True):
                square = sum(
                    (Decimal(g) - Decimal(x)) ** 2 for g, x in zip(guess.tolist(), point.tolist(), strict=True)
                )
                exact += Decimal(float(a)) * (Decimal(square).sqrt() if distance == "euclidean" else square)
        assert Decimal(float(lower)) < exact < Decimal(float(error))
    assert worst_gap(best) < 1e-11


def test_candidates_bound_the_error_of_all_guesses_for_any_distance() -> None:
    rng = np.random.default_rng(9)
    xy, masses = rng.uniform(0, 1, (20, 2)), rng.random((5, 20))

    def capped(guesses: Array, points: Array) -> Array:
        return np.asarray(np.minimum(np.hypot(*(guesses[:, None] - points).transpose(2, 0, 1)), 0.3))

    candidates, radius = covering_lattice((0.0, 0.0), (1.0, 1.0), spacing=0.05)
    coarse = best_candidates(masses, xy, capped, candidates, lipschitz=1.0, covering_radius=radius)
    finer, finer_radius = covering_lattice((0.0, 0.0), (1.0, 1.0), spacing=0.01)
    fine = best_candidates(masses, xy, capped, finer, lipschitz=1.0, covering_radius=finer_radius)
    random = masses @ capped(rng.uniform(0, 1, (4000, 2)), xy).T
    assert (coarse.lower <= fine.errors).all()
    assert (fine.lower <= random.min(axis=1)).all()
    assert (coarse.lower > 0).all()
    assert fine.gap < coarse.gap / 3
    wide = best_candidates(masses, xy, capped, candidates[:1], lipschitz=1.0, covering_radius=5.0)
    assert wide.total_lower == 0.0


def test_a_lattice_covers_its_rectangle() -> None:
    lattice, radius = covering_lattice((-1.0, 2.0), (1.5, 2.7), spacing=0.3)
    points = np.random.default_rng(0).uniform((-1.0, 2.0), (1.5, 2.7), (500, 2))
    corners = np.array([(-1.0, 2.0), (1.5, 2.7)])
    away = np.hypot(*(np.concatenate([points, corners])[:, None] - lattice).transpose(2, 0, 1)).min(axis=1)
    assert away.max() <= radius <= 0.3 / np.sqrt(2)
    assert away.max() > 0.9 * radius


@pytest.mark.parametrize(
    ("masses", "xy"),
    [
        ([[1.0, -4.25]], [(0.0, 0.0), (1.0, 1.0)]),
        ([[1.0, np.nan]], [(0.0, 0.0), (1.0, 1.0)]),
        ([[1.0, np.inf]], [(0.0, 0.0), (1.0, 1.0)]),
        ([[1.0, 4.25]], [(0.0, 0.0), (np.inf, 1.0)]),
        ([1.0, 4.25], [(0.0, 0.0), (1.0, 1.0)]),
        ([[4.25]], [(0.0, 0.0, 4.25)]),
        ([[4.25]], np.zeros((0, 2))),
        ("4.25", [(0.0, 0.0)]),
    ],
)
def test_invalid_input_is_refused_without_being_shown(masses: object, xy: object) -> None:
    with pytest.raises(pg.InvalidProblem) as caught:
        best_guesses(masses, xy)  # type: ignore[arg-type]
    assert "4.25" not in str(caught.value)
    with pytest.raises(pg.InvalidProblem):
        best_guesses([[1.0]], [(0.0, 0.0)], "taxi")
