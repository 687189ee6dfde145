"""The min-max attack over secrets at extreme scales: proved to a millionth of its error, and right by closed forms."""

import numpy as np
import pytest

from privacygames.solvers import minmax_attack
from support import Array


def sharp(size: int, wrong: float, seed: int) -> Array:
    """A mechanism that gives the secret itself but for probabilities of about ``wrong``."""
    table = wrong * np.random.default_rng(seed).random((size, size))
    np.fill_diagonal(table, 0.0)
    return np.asarray(table + np.diag(1 - table.sum(axis=1)))


@pytest.mark.parametrize("wrong", [1e-3, 1e-6, 1e-8])
@pytest.mark.parametrize("seed", range(4))
def test_small_errors_are_proved_as_closely_as_large_ones(wrong: float, seed: int) -> None:
    distance = np.random.default_rng(seed).random((4, 4)) + 0.3
    np.fill_diagonal(distance, 0.0)
    found = minmax_attack(sharp(4, wrong, seed), distance)
    assert 0 < found.bound <= found.error * (1 + 1e-12)
    assert found.error - found.bound <= 1e-6 * found.error


@pytest.mark.parametrize("wrong", [0.1, 1e-5, 1e-8])
def test_randomised_response_in_closed_form(wrong: float) -> None:
    """By symmetry the best guess is the output, and every secret errs by the probability of another output."""
    table = np.full((5, 5), wrong / 4)
    np.fill_diagonal(table, 1 - wrong)
    found = minmax_attack(table, 1 - np.eye(5))
    assert found.error == pytest.approx(wrong, rel=1e-6)


@pytest.mark.parametrize("hopeless", [1e8, 2.1e14, 1e15])
@pytest.mark.parametrize("seed", range(4))
def test_a_hopeless_guess_is_left_out(hopeless: float, seed: int) -> None:
    """It errs by 10¹⁵ on all secrets but one, and every output may come from any: no attack can afford it."""
    rng = np.random.default_rng(seed)
    mechanism, distance = rng.dirichlet(np.full(6, 0.3), 6) + 1e-9, rng.random((6, 6)) + 0.1
    mechanism /= mechanism.sum(axis=1, keepdims=True)
    np.fill_diagonal(distance, 0.0)
    place = int(rng.integers(6))
    distance[place] = hopeless
    distance[place, place] = 0.0
    found = minmax_attack(mechanism, distance)
    without = minmax_attack(mechanism, np.delete(distance, place, axis=0))
    assert found.error - found.bound <= 1e-6 * found.error
    assert found.error == pytest.approx(without.error, rel=1e-5)
