"""Block algebra by PyTorch, on its CPU device: against NumPy, the host's engine, and programs written out by hand."""

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import privacygames as pg
from privacygames.arrays import FloatArray
from privacygames.errors import TooLarge
from privacygames.solvers.linalg import (
    HOST,
    CouplingRows,
    FactorisationFailed,
    OffDiagonal,
    SymmetricBlocks,
    device_algebra,
    factorise_in_batches,
)
from privacygames.solvers.linalg import device as device_module
from privacygames.solvers.linalg import device_backend as device_backend_module
from privacygames.solvers.linalg import device_triangles as device_triangles_module
from privacygames.solvers.linalg.device_triangles import stripe_edges
from privacygames.solvers.linalg.schur import Schur
from random_blocks import links_of, random_blocks
from support import Case, cases, optimum_by_hand

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'privacygames[gpu]'")

DEVICE = pg.Interior(device="cpu", threads=1)
LITTLE = 2_000
"""Bytes: so little memory that batches are of few blocks, and nearly no factor is kept."""


def use_stripes(patched: pytest.MonkeyPatch, columns: int, leaf: int = 2) -> None:
    """As large blocks are factorised: in stripes of so many columns."""
    patched.setattr(device_module, "HOST_BOUND", 0)
    patched.setattr(device_module, "STRIPE", columns)
    patched.setattr(device_module, "LEAF", leaf)
    patched.setattr(device_triangles_module, "ALIGNMENT", 1)


def value_of(found: pg.Mechanism) -> float:
    certificate = found.certificate
    return certificate.verification.distortion if certificate.bounds.maximises_distortion else certificate.cost


@given(
    seed=st.integers(0, 1000),
    count=st.integers(1, 6),
    width=st.integers(1, 12),
    kind=st.sampled_from(["none", "average", "each"]),
    memory=st.sampled_from([None, 10 * LITTLE, 4 * LITTLE, LITTLE]),
    leaf=st.integers(1, 5),
    stripe=st.sampled_from([None, 1, 2, 3, 5]),
)
@settings(max_examples=160)
def test_solutions_and_schur_complements(
    seed: int, count: int, width: int, kind: str, memory: int | None, leaf: int, stripe: int | None
) -> None:
    blocks, dense = random_blocks(seed, count, width)
    links, written_out = links_of(kind, seed, count, width)
    right = np.random.default_rng(seed + 1).normal(size=(count, width))
    with device_algebra("cpu", threads=1, memory=memory) as algebra, pytest.MonkeyPatch.context() as patched:
        patched.setattr(device_module, "LARGEST_LEAF", leaf)
        if stripe is not None:
            use_stripes(patched, stripe, leaf)
        factors, schur = factorise_in_batches(algebra, blocks, links)
        found = factors.solve(right)
    inverses = np.linalg.inv(dense)
    expected = (written_out @ inverses @ written_out.transpose(0, 2, 1)).sum(axis=0)
    assert np.abs(schur - expected).max() <= 1e-9 * np.abs(expected).max()
    solved = np.linalg.solve(dense, right[..., None])[..., 0]
    assert np.abs(found - solved).max() <= 1e-9 * np.abs(solved).max()


@given(
    seed=st.integers(0, 1000),
    count=st.integers(1, 6),
    width=st.integers(1, 12),
    rows=st.integers(0, 9),
    memory=st.sampled_from([None, 10 * LITTLE, 4 * LITTLE, LITTLE]),
    gathered=st.sampled_from([1, 300, device_module.GATHERED]),
    stripe=st.sampled_from([None, 1, 3]),
)
@settings(max_examples=80)
def test_single_right_hand_sides(
    seed: int, count: int, width: int, rows: int, memory: int | None, gathered: int, stripe: int | None
) -> None:
    """Each with its own block, of which several may be the same; with factors kept or computed anew."""
    blocks, dense = random_blocks(seed, count, width)
    generator = np.random.default_rng(seed + 1)
    which, right = generator.integers(0, count, rows), generator.normal(size=(rows, width))
    with device_algebra("cpu", threads=1, memory=memory) as algebra, pytest.MonkeyPatch.context() as patched:
        patched.setattr(device_module, "GATHERED", gathered)
        if stripe is not None:
            use_stripes(patched, stripe)
        factors, _ = algebra.factorise(blocks, CouplingRows(width))
        found = algebra.backend.to_numpy(factors.solve_rows(which, right))
    solved = np.array([np.linalg.solve(dense[block], each) for block, each in zip(which, right, strict=True)])
    assert found.shape == right.shape
    assert np.abs(found - solved.reshape(found.shape)).max(initial=0.0) <= 1e-9 * np.abs(solved).max(initial=1.0)


@given(
    seed=st.integers(0, 1000),
    size=st.integers(1, 14),
    rows=st.integers(1, 4),
    apart=st.sampled_from([0.0, 3.0, 8.0]),
    leaf=st.sampled_from([1, 4, 512]),
)
@settings(max_examples=60)
def test_the_schur_complement_is_as_accurate_as_on_the_host(
    seed: int, size: int, rows: int, apart: float, leaf: int
) -> None:
    """Badly scaled, and with a condition of up to 10⁸ once it is scaled: refined residuals are what the host's are."""
    generator = np.random.default_rng(seed)
    turned, _ = np.linalg.qr(generator.normal(size=(size, size)))
    matrix = (turned * 10.0 ** -generator.uniform(0, apart, size)) @ turned.T
    scale = 10.0 ** generator.uniform(-5, 5, size)
    matrix = scale[:, None] * (matrix + matrix.T) / 2 * scale
    right = (generator.normal(size=(rows, size)) @ matrix) if seed % 2 else scale * generator.normal(size=(rows, size))
    reference = Schur(matrix, HOST).solve_rows(right)
    with device_algebra("cpu", threads=1) as algebra, pytest.MonkeyPatch.context() as patched:
        patched.setattr(device_backend_module, "MATRIX_LEAF", leaf)
        schur = algebra.schur(algebra.backend.to_device(matrix))
        found = algebra.backend.to_numpy(schur.solve_rows(algebra.backend.to_device(right)))
        alone = algebra.backend.to_numpy(schur.solve(algebra.backend.to_device(right[0])))

    def missed(solutions: FloatArray, wanted: FloatArray) -> float:
        return float(np.linalg.norm((solutions @ matrix - wanted) / np.sqrt(matrix.diagonal())))

    # Residuals, not solutions: of these the host's own are off by 10⁻⁴ where unknowns are far apart.
    allowed = 1e-13 * float(np.linalg.norm(right / np.sqrt(matrix.diagonal())))
    assert missed(found, right) <= 10 * missed(reference, right) + allowed
    assert missed(alone, right[0]) <= 10 * missed(Schur(matrix, HOST).solve(right[0]), right[0]) + allowed


def test_a_schur_complement_that_is_not_positive_definite_fails() -> None:
    with device_algebra("cpu", threads=1) as algebra:
        for matrix in ([[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.0], [0.0, np.inf]], [[0.0]], [[np.nan]]):
            with pytest.raises(FactorisationFailed):
                algebra.schur(algebra.backend.to_device(np.array(matrix)))


@given(st.integers(1, 5000), st.integers(1, 700))
def test_stripes_are_a_partition_of_about_equal_widths(width: int, largest: int) -> None:
    edges = stripe_edges(width, largest)
    widths = np.diff(edges)
    assert edges[0] == 0
    assert edges[-1] == width
    assert (widths > 0).all()
    assert (widths[:-1] == widths[0]).all()
    assert widths.max() <= 1.5 * max(largest, 1) + device_triangles_module.ALIGNMENT


@given(st.integers(0, 30), st.integers(1, 40), st.sampled_from([None, LITTLE, 100 * LITTLE]))
def test_batches_are_a_partition_that_fits(count: int, width: int, memory: int | None) -> None:
    with device_algebra("cpu", threads=1, memory=memory) as algebra:
        batches = algebra.batch_slices(count, width=width)
    assert [i for batch in batches for i in range(batch.start, batch.stop)] == list(range(count))
    room = device_module.BATCH_SHARE * memory if memory else np.inf
    needed = 8 * device_module.TEMPORARIES * width**2
    assert all((batch.stop - batch.start) * needed <= max(room, needed) for batch in batches)


def test_what_is_not_positive_definite_fails() -> None:
    beside = OffDiagonal(np.array([0, 1, 1]), np.array([0]), np.array([1]), np.array([2.0]))
    with device_algebra("cpu", threads=1) as algebra, pytest.raises(FactorisationFailed):
        algebra.factorise(SymmetricBlocks(np.ones((2, 2)), beside), CouplingRows(2))
    with device_algebra("cpu", threads=1) as algebra, pytest.raises(FactorisationFailed):
        algebra.factorise(SymmetricBlocks(np.zeros((1, 2))), CouplingRows(2))


@pytest.mark.parametrize("stripe", [None, 1])
def test_a_block_that_needs_it_is_regularised_and_the_others_are_not(
    stripe: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block that is not quite positive definite beside a plain one: 10⁻¹² more on its diagonal, and it is."""
    if stripe is not None:
        use_stripes(monkeypatch, stripe)
    beside = OffDiagonal(np.array([0, 1, 2]), np.array([0, 0]), np.array([1, 1]), np.array([1.0 + 1e-13, 0.5]))
    with device_algebra("cpu", threads=1) as algebra:
        factors, _ = algebra.factorise(SymmetricBlocks(np.ones((2, 2)), beside), CouplingRows(2))
        found = algebra.backend.to_numpy(factors.solve(np.array([[1.0, 1.0], [1.0, 0.0]])))
    assert found[0] == pytest.approx([0.5, 0.5], rel=1e-3)
    assert found[1] == pytest.approx([4 / 3, -2 / 3], rel=1e-12)


@given(st.integers(0, 10_000))
@settings(max_examples=30)
def test_the_backends_agree(seed: int) -> None:
    generator = np.random.default_rng(seed)
    first, second = (np.unique(generator.integers(0, 50, generator.integers(0, 20))) for _ in range(2))
    values = generator.uniform(0.1, 1.0, len(first))
    mask = generator.random((4, 5)) < 0.5
    table, columns = generator.uniform(0.1, 1.0, (3, 5)), generator.integers(0, 5, 7)
    with device_algebra("cpu", threads=1) as algebra:
        there = algebra.backend
        at, more = there.indices_to_device(first), there.indices_to_device(second)
        assert there.indices_to_numpy(there.union1d(at, more)).tolist() == HOST.union1d(first, second).tolist()
        assert (
            there.indices_to_numpy(there.searchsorted(at, more)).tolist() == HOST.searchsorted(first, second).tolist()
        )
        assert (
            there.indices_to_numpy(there.tile_indices(at, 3, 50)).tolist() == HOST.tile_indices(first, 3, 50).tolist()
        )
        assert (
            there.indices_to_numpy(there.flatnonzero(there.mask_to_device(mask))).tolist()
            == HOST.flatnonzero(mask).tolist()
        )
        totals = there.to_numpy(there.scatter_add(at, there.to_device(values), 50))
        assert totals == pytest.approx(HOST.scatter_add(first, values, 50))
        rows = there.to_numpy(there.scatter_add(there.indices_to_device(columns), there.to_device(table.T[columns]), 5))
        assert rows == pytest.approx(HOST.scatter_add(columns, table.T[columns], 5))
        assert there.to_numpy(there.min(there.to_device(table))) == pytest.approx(HOST.min(table))
        flat = table.ravel()
        for most in (2, 20):
            here, away = (
                HOST.top_k(flat, 0.5, most)[1],
                there.indices_to_numpy(there.top_k(there.to_device(flat), 0.5, most)[1]),
            )
            assert sorted(here.tolist()) == sorted(at for at in away.tolist() if flat[at] > 0.5)
            pairs = (
                HOST.top_k_values([flat, -flat], 0.5, most),
                there.top_k_values([there.to_device(flat)] * 2, 0.5, most),
            )
            assert sorted(pairs[0][0].tolist()) == sorted(pairs[1][0].tolist())
            assert not len(pairs[0][1])
        one, other = there.all_to_numpy([there.to_device(table), there.to_device(flat).sum()])
        assert one.tolist() == table.tolist()
        assert float(other) == pytest.approx(flat.sum())
        total, at = np.zeros(50), np.unique(columns)
        held_total = there.to_device(total)
        HOST.index_add(total, at, flat[: len(at)])
        there.index_add(held_total, there.indices_to_device(at), there.to_device(flat[: len(at)]))
        assert there.to_numpy(held_total).tolist() == total.tolist()
        assert there.to_floats([there.to_device(table).sum(), there.to_device(table).max()]) == pytest.approx(
            HOST.to_floats([table.sum(), table.max()])
        )
        assert (
            there.stack_to_numpy([there.to_device(table)] * 2).tolist() == HOST.stack_to_numpy([table, table]).tolist()
        )
        added, sums = there.to_device(np.zeros((3, 5))), np.zeros((3, 5))
        there.index_add_columns(added, there.indices_to_device(columns), there.to_device(table[:, columns]))
        HOST.index_add_columns(sums, columns, table[:, columns])
        assert there.to_numpy(added) == pytest.approx(sums)


def test_what_is_held_is_a_copy() -> None:
    """Tensors may be written to, and what the host has must not change with them."""
    given = np.ones(3)
    with device_algebra("cpu", threads=1) as algebra:
        held = algebra.backend.to_device(given)
        fetched = algebra.backend.to_numpy(held)
        held += 1
    assert given.tolist() == fetched.tolist() == [1.0, 1.0, 1.0]


@given(cases(largest=6))
@settings(max_examples=60)
def test_same_optimum_as_the_program_written_out(case: Case) -> None:
    assume(DEVICE.can_solve(case.problem, pg.Bounds(**case.bounds)))
    found = pg.design(case.problem, solver=DEVICE, **case.bounds)
    best = optimum_by_hand(case.problem, **case.bounds)
    assert value_of(found) == pytest.approx(best, rel=1e-6, abs=1e-8)
    assert found.certificate.gap is not None
    assert found.certificate.gap <= 1e-6


def city() -> pg.Problem:
    """A small grid where half the cells are never visited."""
    generator = np.random.default_rng(1)
    visits = generator.gamma(0.3, size=30) * (generator.random(30) < 0.6)
    return pg.Problem(pg.Prior(pg.Grid(6, 5), visits / visits.sum()))


@pytest.mark.parametrize("memory", [None, 200_000])
@pytest.mark.parametrize(
    "bounds",
    [
        {"epsilon": 0.7},
        {"distortion": 1.0},
        {"epsilon": 0.7, "distortion": 1.2},
        {"epsilon": 1.0, "within": 1.5},
        {"epsilon": 1.0, "worst_case": True},
        {"epsilon": 0.7, "cost_at_most": 0.28},
        {"epsilon": 0.7, "worst_cost_at_most": 0.9},
    ],
)
def test_the_same_as_on_the_host(bounds: dict[str, Any], memory: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """With much memory; and as large problems are: many batches, factors computed anew, in stripes and by halves."""
    problem = city()
    if memory is not None:
        use_stripes(monkeypatch, 7, 3)
        monkeypatch.setattr(device_module, "device_free", lambda _: (memory, memory))
        monkeypatch.setattr(device_module, "LARGEST_LEAF", 4)
    same = pg.InteriorSettings(admit_with_on_device=pg.InteriorSettings().admit_with)  # by default, more join at a time
    found = pg.design(problem, solver=replace(DEVICE, settings=same), **bounds)
    reference = pg.design(problem, solver=pg.Interior(threads=1), **bounds)
    assert value_of(found) == pytest.approx(value_of(reference), rel=1e-6)
    assert found.certificate.provenance.solver.startswith("blocks")
    ours, theirs = (each.certificate.provenance.solver for each in (found, reference))
    assert ours == f"{theirs}, on cpu"  # the same reductions, secrets, ratios and iterations


def test_several_adversaries() -> None:
    problem = city()
    nosy = pg.Adversary("in which half", errors=(np.arange(30) < 15)[None, :] != np.array([[True], [False]]))
    plain = pg.Adversary("where")
    asked: dict[str, Any] = {"epsilon": 0.7, "distortion": {plain: 1.2, nosy: 0.2}}
    found = pg.design(problem, solver=DEVICE, **asked)
    reference = pg.design(problem, solver=pg.Highs(), **asked)
    assert found.certificate.cost == pytest.approx(reference.certificate.cost, rel=1e-6)


def test_without_pytorch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(pg.InvalidProblem, match=r"needs PyTorch: pip install 'privacygames\[gpu\]'"):
        pg.Interior(device="cuda")


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "", "mps", 3, None])
def test_devices_there_are_none_of(device: Any) -> None:
    with pytest.raises(pg.InvalidProblem, match="device is"):
        pg.Interior(device=device)


def test_a_device_that_is_not_here_is_named() -> None:
    with pytest.raises(pg.InvalidProblem, match="device='cuda:99' is not here"):
        pg.Interior(device="cuda:99")


def test_memory_that_runs_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(device_module.DeviceAlgebra, "factorise", full)
    with pytest.raises(TooLarge, match="ran out of memory"):
        pg.design(city(), epsilon=0.7, solver=DEVICE)
