"""The pairs that are always in the working set: few, and they stand for all others."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from privacygames.solvers.interior.presolve import implied_pairs
from privacygames.solvers.interior.working_set import RatioBounds
from privacygames.solvers.linalg import HOST
from support import block_iterations

SETTINGS = pg.InteriorSettings()


def always(exponents: np.ndarray) -> np.ndarray:
    """Those of a program with these exponents, chained pairs left out."""
    full = np.where(implied_pairs(exponents), np.inf, exponents)
    np.fill_diagonal(full, np.inf)
    return np.asarray(RatioBounds(full, HOST).permanent)


def scattered(seed: int, size: int) -> np.ndarray:
    """Distances of random points, a unit apart or so."""
    points = np.random.default_rng(seed).random((size, 2)) * np.sqrt(size)
    return np.asarray(np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2)))


@given(st.integers(0, 10_000), st.integers(2, 40))
@settings(deadline=None)
def test_a_way_over_one_of_them_is_not_much_longer(seed: int, size: int) -> None:
    apart = scattered(seed, size)
    chosen = always(apart)
    assert (chosen == chosen.T).all()
    assert not chosen.diagonal().any()
    for i in range(size):
        if chosen[i].sum() >= SETTINGS.spanner_degree:
            continue
        for k in np.flatnonzero(~chosen[i] & (np.arange(size) != i)):
            first = np.flatnonzero(chosen[i] & (apart[:, k] < apart[i, k]))
            assert (apart[i, first] + apart[first, k] <= SETTINGS.spanner_stretch * apart[i, k]).any()


@given(st.integers(0, 10_000), st.integers(2, 40))
@settings(deadline=None)
def test_all_secrets_hang_together(seed: int, size: int) -> None:
    reached = np.linalg.matrix_power(always(scattered(seed, size)).astype(float) + np.eye(size), size)
    assert (reached > 0).all()


def test_of_numbers_on_a_line_only_neighbours() -> None:
    numbers = np.arange(12.0)
    apart = np.abs(numbers[:, None] - numbers)
    assert (always(apart) == (apart == 1.0)).all()


def test_more_neighbours_where_exponents_are_small() -> None:
    apart = scattered(1, 60)
    assert (always(apart).sum(axis=1) < SETTINGS.thin_neighbours).all()
    assert (always(SETTINGS.thin_exponent / 4 * apart).sum(axis=1) >= SETTINGS.thin_neighbours).all()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_clusters_at_a_small_epsilon_end_in_few_iterations(seed: int) -> None:
    random = np.random.default_rng(seed)
    centres, size = random.random((5, 2)) * 10, 40
    points = centres[np.arange(size) % 5] + random.random((size, 2)) * 2e-3
    apart = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    np.fill_diagonal(apart, 0.0)
    space = pg.Space.from_distances([f"p{i}" for i in range(size)], apart)
    problem = pg.Problem(pg.Prior(space, random.dirichlet(np.ones(size))), cost=space.default_distance)
    assert block_iterations(problem, epsilon=0.003) <= 60
