"""Compiled loops against NumPy, one by one, and whole designs with and without them."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from privacygames.solvers.interior import elementwise
from privacygames.solvers.interior.compiled_working_set import CompiledWorkingSet
from privacygames.solvers.interior.constraint_families import HessianParts
from privacygames.solvers.interior.working_set import RatioBounds, WorkingSet
from privacygames.solvers.linalg import HOST, Kernels, compiled_extension, host
from privacygames.solvers.linalg.backend import HostBackend

needs_compiler = pytest.mark.skipif(compiled_extension() is None, reason="built without a C compiler")
sizes = st.tuples(st.integers(0, 10_000), st.integers(1, 5), st.integers(2, 20))


def compiled_backend(threads: int = 1) -> HostBackend:
    return HostBackend(Kernels(compiled_extension(), threads))


def working_sets(seed: int, blocks: int, size: int) -> tuple[WorkingSet, CompiledWorkingSet, np.random.Generator]:
    """The same random working set for both backends."""
    generator = np.random.default_rng(seed)
    places = generator.uniform(0, 3, (size, 2))
    exponents = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    exponents[np.eye(size, dtype=bool) | (generator.random((size, size)) < 0.1)] = inf
    pairs = np.broadcast_to(exponents < inf, (blocks, size, size)) & (generator.random((blocks, size, size)) < 0.4)
    keys = np.flatnonzero(pairs)
    plain = WorkingSet(RatioBounds(exponents, HOST), blocks, keys)
    return plain, CompiledWorkingSet(RatioBounds(exponents, compiled_backend()), blocks, keys), generator


@needs_compiler
@given(sizes)
@settings(deadline=None)
def test_slacks_their_transpose_and_hessians(given_sizes: tuple[int, int, int]) -> None:
    plain, compiled, generator = working_sets(*given_sizes)
    u = generator.uniform(0.1, 2.0, (plain.blocks, plain.bounds.size + 1))
    values = generator.uniform(0.0, 2.0, len(plain))
    assert compiled.forward(u) == pytest.approx(plain.forward(u), rel=1e-12, abs=1e-14)
    assert compiled.adjoint(values) == pytest.approx(plain.adjoint(values), rel=1e-12, abs=1e-12)
    assert compiled.cancel_opposites(values) == pytest.approx(plain.cancel_opposites(values), rel=1e-12, abs=1e-15)
    parts = [HessianParts(np.zeros((plain.blocks, plain.bounds.size + 1))) for _ in range(2)]
    plain.add_hessian(parts[0], values)
    compiled.add_hessian(parts[1], values)
    assert parts[1].diagonal == pytest.approx(parts[0].diagonal, rel=1e-12)
    first, second = parts[0].off_diagonal, parts[1].off_diagonal
    assert first is not None
    assert second is not None
    for name in ("starts", "row", "column", "value"):
        assert np.array_equal(getattr(first, name), getattr(second, name))


@needs_compiler
@given(sizes, st.floats(0.3, 1.3), st.booleans())
@settings(deadline=None)
def test_feasible_part_of_a_step(given_sizes: tuple[int, int, int], spread: float, keep_all: bool) -> None:
    plain, compiled, generator = working_sets(*given_sizes)
    before = np.full((plain.blocks, plain.bounds.size), 1.0)
    after = np.exp(spread * generator.uniform(-0.5, 0.5, before.shape))
    expected_step, expected = plain.max_feasible_step(before, after, keep_all=keep_all)
    step, updated = compiled.max_feasible_step(before, after, keep_all=keep_all)
    assert isinstance(updated, CompiledWorkingSet)
    assert step == pytest.approx(expected_step, rel=1e-12)
    assert np.array_equal(updated.keys, expected.keys)
    computed_anew = replace(updated)  # what was computed on the way is what the keys say
    for name in ("block_starts", "i", "j", "root"):
        assert np.array_equal(getattr(computed_anew, name), getattr(expected, name))
    for index in range(4):
        assert np.array_equal(updated.pairs[index], computed_anew.pairs[index])
    duals, slacks = generator.uniform(0.5, 1.0, len(plain)), generator.uniform(0.5, 1.0, len(expected))
    assert np.array_equal(
        updated.inherit_duals(compiled, duals, slacks, 0.3), expected.inherit_duals(plain, duals, slacks, 0.3)
    )


@needs_compiler
@given(st.integers(0, 10_000), st.sampled_from([0, 1, 7, 8, 100, 1000]), st.booleans())
@settings(deadline=None)
def test_elementwise_operations(seed: int, count: int, with_base: bool) -> None:
    compare_elementwise_operations(seed, count, with_base, threads=1)


@needs_compiler
def test_elementwise_operations_in_threads() -> None:
    compare_elementwise_operations(0, 300_000, with_base=True, threads=3)


def compare_elementwise_operations(seed: int, count: int, with_base: bool, threads: int) -> None:
    generator, compiled = np.random.default_rng(seed), compiled_backend(threads)
    slack_dual = generator.uniform(0.1, 2.0, count), generator.uniform(0.1, 2.0, count)
    change, base = ((generator.normal(size=count), generator.normal(size=count)) for _ in range(2))
    wanted = generator.normal(size=count)
    results = [
        elementwise.direction_change(backend, wanted, slack_dual, change[0].copy(), base if with_base else None)
        for backend in (HOST, compiled)
    ]
    expected, actual = (np.concatenate([*pair, growth]) for pair, growth in results)
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)
    expected, actual = (
        np.concatenate(elementwise.shifted_change(backend, base, slack_dual, change[0].copy()))
        for backend in (HOST, compiled)
    )
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)
    for operation, arguments in (
        (elementwise.least_growth, ()),
        (elementwise.complementarity_after, ((0.3, 0.7),)),
        (elementwise.mehrotra_change, (0.5, 0.4)),
        (elementwise.gondzio_change, ((0.3, 0.7), (0.5, 10.0))),
    ):
        plain, fast = (np.asarray(operation(on, slack_dual, change, *arguments)) for on in (HOST, compiled))
        np.testing.assert_allclose(fast, plain, rtol=1e-12, atol=1e-12)
    for most in (3, count + 1):
        blocking = [elementwise.blocking_ratios(on, slack_dual, change, 1.5, most) for on in (HOST, compiled)]
        np.testing.assert_allclose(np.sort(blocking[1][0]), np.sort(blocking[0][0]), rtol=1e-12)
        assert set(blocking[1][1].tolist()) == set(blocking[0][1].tolist())
        ratios = [elementwise.step_ratios(on, slack_dual, change, most) for on in (HOST, compiled)]
        for one, other in zip(*ratios, strict=True):
            np.testing.assert_allclose(np.sort(other), np.sort(one), rtol=1e-12)


@needs_compiler
def test_kernels_refuse_arrays_of_another_kind() -> None:
    extension = compiled_extension()
    floats, out = np.ones(3), np.zeros(3)
    with pytest.raises(TypeError, match="kind 'd' was expected"):
        extension.step_ratios(np.ones(3, np.float32), floats, 1.0, out, 1)
    with pytest.raises((BufferError, ValueError)):
        extension.step_ratios(np.ones(6)[::2], floats, 1.0, out, 1)
    out.setflags(write=False)
    with pytest.raises((BufferError, ValueError)):
        extension.step_ratios(floats, floats, 1.0, out, 1)
    with pytest.raises(TypeError, match="5 arguments were expected, not 3"):
        extension.step_ratios(floats, floats, 1.0)


def city() -> pg.Problem:
    generator = np.random.default_rng(3)
    visits = generator.gamma(0.3, size=30) * (generator.random(30) < 0.7)
    return pg.Problem(pg.Prior(pg.Grid(6, 5), visits / visits.sum()))


@pytest.mark.parametrize(
    "bounds",
    [
        {"epsilon": 0.8},
        {"distortion": 0.6},
        {"epsilon": 0.8, "distortion": 0.9},
        {"epsilon": 0.8, "worst_case": True},
        {"epsilon": 0.8, "cost_at_most": 0.5},
        {"epsilon": 0.8, "distortion": 0.5, "worst_cost_at_most": 0.95},
    ],
)
def test_a_design_is_the_same_with_and_without(bounds: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = pg.design(city(), **bounds, solver=pg.Interior(threads=2))
    monkeypatch.setattr(host, "compiled_extension", lambda: None)
    plain = pg.design(city(), **bounds, solver=pg.Interior(threads=2))
    assert compiled.certificate.cost == pytest.approx(plain.certificate.cost, rel=1e-6)
    assert compiled.certificate.achieved == pytest.approx(plain.certificate.achieved, rel=1e-4)
    assert (compiled.certificate.gap or 0.0) <= 1e-6


def test_second_order_changes_count_up_to_a_multiple_of_the_target() -> None:
    now, change = (np.ones(4), np.ones(4)), (np.array([0.0, 2.0, 1e3, 1e3]), np.array([5.0, -3.0, 1e3, -1e3]))
    most = pg.InteriorSettings().second_order_limit * 0.5
    wanted = elementwise.mehrotra_change(HOST, now, change, 0.5, most)
    assert wanted.tolist() == [0.5 - 1 - 0, 0.5 - 1 + 6, 0.5 - 1 - most, 0.5 - 1 + most]


@pytest.mark.parametrize("backend", [HOST, pytest.param(None, marks=needs_compiler)])
@pytest.mark.parametrize("which", [0, 1])
def test_what_is_not_a_number_is_not_lost(backend: HostBackend | None, which: int) -> None:
    change = np.zeros(3), np.zeros(3)
    change[which][1] = np.nan
    growth = elementwise.least_growth(backend or compiled_backend(), (np.ones(3), np.ones(3)), change)
    assert np.isnan(growth[which])
    assert growth[1 - which] == -1.0


def test_designs_in_several_threads_do_not_disturb_each_other() -> None:
    solver = pg.Interior(threads=2, settings=pg.InteriorSettings(linear_only_below=0))
    problem, alone = city(), pg.design(city(), epsilon=0.8, solver=solver)
    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(pg.design, problem, epsilon=0.8, solver=solver) for _ in range(3)]
        assert {future.result().certificate.cost for future in futures} == {alone.certificate.cost}


FORKING = """
import os
import privacygames as pg
problem = pg.Problem(pg.Prior.uniform(pg.Grid(9, 9)), cost="euclidean")
before = pg.design(problem, epsilon=1.0, solver=pg.Interior(threads=2)).certificate.cost
child = os.fork()
if child == 0:
    after = pg.design(problem, epsilon=1.0, solver=pg.Interior(threads=2)).certificate.cost
    os._exit(0 if abs(after - before) < 1e-6 else 1)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_of_a_process_that_used_them_designs_all_the_same() -> None:
    result = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKING], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "0", result.stderr
