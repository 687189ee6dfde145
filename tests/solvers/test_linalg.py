"""Blocks factorised without the interpreter's lock, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacygames.solvers.linalg import (
    HOST,
    CouplingRows,
    FactorisationFailed,
    OffDiagonal,
    Schur,
    SymmetricBlocks,
    factorise_in_batches,
    host_algebra,
)
from privacygames.solvers.linalg.host import BATCH_ENTRIES
from privacygames.solvers.linalg.lapack import BlockRoutines
from random_blocks import links_of, random_blocks


@given(
    seed=st.integers(0, 1000),
    count=st.integers(1, 6),
    width=st.integers(1, 12),
    kind=st.sampled_from(["none", "average", "each"]),
    threads=st.integers(1, 4),
    compiled=st.booleans(),
)
@settings(max_examples=120, deadline=None)  # the first compiles
def test_solutions_and_schur_complements(
    seed: int, count: int, width: int, kind: str, threads: int, compiled: bool
) -> None:
    blocks, dense = random_blocks(seed, count, width)
    links, written_out = links_of(kind, seed, count, width)
    right = np.random.default_rng(seed + 1).normal(size=(count, width))
    with host_algebra(threads, compiled=compiled) as algebra:
        factors, schur = factorise_in_batches(algebra, blocks, links)
        found = factors.solve(right)
    inverses = np.linalg.inv(dense)
    expected = (written_out @ inverses @ written_out.transpose(0, 2, 1)).sum(axis=0)
    assert links.rows == len(expected)
    assert np.abs(schur - expected).max() <= 1e-9 * np.abs(expected).max()
    solved = np.linalg.solve(dense, right[..., None])[..., 0]
    assert np.abs(found - solved).max() <= 1e-9 * np.abs(solved).max()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("width", [64, 65, 130, 200])
def test_blocks_inverted_by_halves(width: int, compiled: bool) -> None:
    blocks, dense = random_blocks(width, 2, width)
    links, written_out = links_of("average", width, 2, width)
    right = np.random.default_rng(width).normal(size=(2, width))
    with host_algebra(1, compiled=compiled) as algebra:
        factors, schur = algebra.factorise(blocks, links)
        found = factors.solve(right)
    expected = (written_out @ np.linalg.inv(dense) @ written_out.transpose(0, 2, 1)).sum(axis=0)
    assert np.abs(schur - expected).max() <= 1e-9 * np.abs(expected).max()
    assert found == pytest.approx(np.linalg.solve(dense, right[..., None])[..., 0], rel=1e-8, abs=1e-10)


@given(st.integers(0, 30), st.integers(1, 5), st.sampled_from([1, 400, 600, 1000, 2000]))
def test_batches_are_a_partition(count: int, threads: int, width: int) -> None:
    with host_algebra(threads, compiled=False) as algebra:
        batches = algebra.batch_slices(count, width=width)
        assert algebra.map(lambda batch: batch.stop - batch.start, batches) == [b.stop - b.start for b in batches]
    assert [i for batch in batches for i in range(batch.start, batch.stop)] == list(range(count))
    assert all((batch.stop - batch.start) * width**2 <= max(BATCH_ENTRIES, width**2) for batch in batches)


def test_what_is_not_positive_definite_fails() -> None:
    beside = OffDiagonal(np.array([0, 1]), np.array([0]), np.array([1]), np.array([2.0]))
    with host_algebra() as algebra, pytest.raises(FactorisationFailed):
        algebra.factorise(SymmetricBlocks(np.ones((1, 2)), beside), CouplingRows(2))
    with pytest.raises(FactorisationFailed):
        Schur(np.array([[1.0, 2.0], [2.0, 1.0]]), HOST)


def test_only_plain_doubles_are_handed_to_lapack() -> None:
    with pytest.raises(ValueError, match="C-ordered doubles"):
        BlockRoutines(2).factor(np.asfortranarray([[2.0, 1.0], [0.0, 2.0]])[:, ::-1])
