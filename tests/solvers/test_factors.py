"""Blocks factorised without the interpreter's lock, against NumPy."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacygames.arrays import FloatArray
from privacygames.solvers.factors import Breakdown, Factors, Schur
from privacygames.solvers.unlocked import Square


def blocks(seed: int, count: int, width: int) -> FloatArray:
    roots = np.random.default_rng(seed).normal(size=(count, width, width + 2))
    return np.asarray(roots @ roots.transpose(0, 2, 1))


@given(st.integers(0, 1000), st.integers(1, 5), st.integers(1, 12))
@settings(max_examples=40)
def test_solutions_and_sums_of_inverses(seed: int, count: int, width: int) -> None:
    given_blocks = blocks(seed, count, width)
    sizes = np.random.default_rng(seed).uniform(1e-6, 1.0, (count, width))

    def assemble(block: int, into: FloatArray) -> None:
        into[:] = given_blocks[block] * sizes[block] * sizes[block][:, None]

    with ThreadPoolExecutor(2) as pool:
        factors = Factors(sizes, assemble, pool)
        total = factors.factorise(lambda _, inverse: inverse)
        right = np.random.default_rng(seed + 1).normal(size=(count, width))
        found = factors.solve(right)
    expected = np.linalg.inv(given_blocks)
    scale = np.abs(expected).max()
    assert np.abs(total - expected.sum(axis=0)).max() <= 1e-6 * scale * count
    assert np.abs(found - np.linalg.solve(given_blocks, right[..., None])[..., 0]).max() <= 1e-6 * scale * 10


def test_what_is_not_positive_definite_breaks_down() -> None:
    def assemble(_: int, into: FloatArray) -> None:
        into[:] = [[1.0, 2.0], [2.0, 1.0]]

    with ThreadPoolExecutor(2) as pool, pytest.raises(Breakdown):
        Factors(np.ones((1, 2)), assemble, pool).factorise(lambda _, inverse: inverse)
    with pytest.raises(Breakdown):
        Schur(np.array([[1.0, 2.0], [2.0, 1.0]]))


def test_only_plain_doubles_are_handed_to_lapack() -> None:
    with pytest.raises(ValueError, match="C-ordered doubles"):
        Square(2).factor(np.asfortranarray([[2.0, 1.0], [0.0, 2.0]])[:, ::-1])
