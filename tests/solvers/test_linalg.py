"""Blocks factorised without the interpreter's lock, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacygames.arrays import FloatArray
from privacygames.solvers.linalg import (
    FactorisationFailed,
    Gram,
    Links,
    OffDiagonal,
    Schur,
    SymmetricBlocks,
    factorise_in_batches,
    host_algebra,
)
from privacygames.solvers.linalg.lapack import Square


def random_blocks(seed: int, count: int, width: int) -> tuple[SymmetricBlocks, FloatArray]:
    """Blocks with every kind of term, and the same written out."""
    generator = np.random.default_rng(seed)
    diagonal = generator.uniform(width, 2.0 * width, (count, width))
    dense = np.stack([np.diag(each) for each in diagonal])
    starts, rows, columns, values = [0], [], [], []
    for block in range(count):
        for i, j in zip(
            *np.nonzero(~np.eye(width, dtype=bool) & (generator.random((width, width)) < 0.3)), strict=True
        ):
            rows.append(i)
            columns.append(j)
            values.append(generator.uniform(-0.4, 0.4))
            dense[block, i, j] += values[-1]
            dense[block, j, i] += values[-1]
        starts.append(len(rows))
    beside = OffDiagonal(np.array(starts), np.array(rows, int), np.array(columns, int), np.array(values, float))
    grams = []
    for chosen in (np.arange(width), np.flatnonzero(generator.random(width) < 0.5)):
        gram = Gram(generator.normal(size=(3, len(chosen))), chosen, generator.uniform(0.0, 2.0, (count, 3)))
        grams.append(gram)
        for block in range(count):
            dense[block][np.ix_(chosen, chosen)] += gram.rows.T @ np.diag(gram.weights[block]) @ gram.rows
    return SymmetricBlocks(diagonal, beside, tuple(grams)), dense


def links_of(kind: str, seed: int, count: int, width: int) -> tuple[Links, FloatArray]:
    """Links of each kind, and J_o written out, (count, rows, width)."""
    n = max(1, width - 1)
    weights = np.random.default_rng(seed + 7).uniform(0.0, 3.0, (count, n))
    identity = np.tile(np.eye(width)[None], (count, 1, 1))
    if kind == "none":
        return Links(width), identity
    if kind == "average":
        row = np.zeros((count, 1, width))
        row[:, 0, :n] = -weights
        return Links(width, weights), np.concatenate([identity, row], axis=1)
    which = np.random.default_rng(seed + 8).integers(0, n, n + 2)  # several rows may be of one unknown
    weights = np.random.default_rng(seed + 7).uniform(0.0, 3.0, (count, len(which)))
    more = np.zeros((count, len(which), width))
    more[:, np.arange(len(which)), which] = -weights
    return Links(width, weights, which), np.concatenate([identity, more], axis=1)


@given(
    seed=st.integers(0, 1000),
    count=st.integers(1, 6),
    width=st.integers(1, 12),
    kind=st.sampled_from(["none", "average", "each"]),
    threads=st.integers(1, 4),
)
@settings(max_examples=60)
def test_solutions_and_schur_complements(seed: int, count: int, width: int, kind: str, threads: int) -> None:
    blocks, dense = random_blocks(seed, count, width)
    links, written_out = links_of(kind, seed, count, width)
    right = np.random.default_rng(seed + 1).normal(size=(count, width))
    with host_algebra(threads) as algebra:
        factors, schur = factorise_in_batches(algebra, blocks, links)
        found = factors.solve(right)
    inverses = np.linalg.inv(dense)
    expected = (written_out @ inverses @ written_out.transpose(0, 2, 1)).sum(axis=0)
    assert links.rows == len(expected)
    assert np.abs(np.triu(schur - expected)).max() <= 1e-9 * np.abs(expected).max()
    solved = np.linalg.solve(dense, right[..., None])[..., 0]
    assert np.abs(found - solved).max() <= 1e-9 * np.abs(solved).max()


@given(st.integers(0, 30), st.integers(1, 5), st.one_of(st.none(), st.integers(1, 9)))
def test_batches_are_a_partition(count: int, threads: int, most: int | None) -> None:
    with host_algebra(threads) as algebra:
        batches = algebra.batches(count, most=most)
        assert algebra.map(lambda batch: batch.stop - batch.start, batches) == [b.stop - b.start for b in batches]
    assert [i for batch in batches for i in range(batch.start, batch.stop)] == list(range(count))
    assert all(batch.stop - batch.start <= (most or count) for batch in batches)


def test_what_is_not_positive_definite_fails() -> None:
    beside = OffDiagonal(np.array([0, 1]), np.array([0]), np.array([1]), np.array([2.0]))
    with host_algebra() as algebra, pytest.raises(FactorisationFailed):
        algebra.factorise(SymmetricBlocks(np.ones((1, 2)), beside), Links(2))
    with pytest.raises(FactorisationFailed):
        Schur(np.array([[1.0, 2.0], [2.0, 1.0]]))


def test_only_plain_doubles_are_handed_to_lapack() -> None:
    with pytest.raises(ValueError, match="C-ordered doubles"):
        Square(2).factor(np.asfortranarray([[2.0, 1.0], [0.0, 2.0]])[:, ::-1])
