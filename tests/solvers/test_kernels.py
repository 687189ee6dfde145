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
import privacygames.solvers.solve_estimate as effort_module
from privacygames.solvers.interior.compiled_working_set import CompiledWorkingSet
from privacygames.solvers.interior.constraint_families import HessianParts
from privacygames.solvers.interior.elementwise import (
    mehrotra_change,
    min_growth,
)
from privacygames.solvers.interior.working_set import RatioBounds, WorkingSet
from privacygames.solvers.linalg import HOST
from privacygames.solvers.linalg.backend import HostBackend
from privacygames.solvers.linalg.host import compiled_loops, imported_loops

numba = pytest.importorskip("numba", reason="Numba is not installed")
kernels = pytest.importorskip("privacygames.solvers.linalg.kernels", reason="Numba is not installed")
COMPILED = HostBackend(kernels)

sizes = st.tuples(st.integers(0, 10_000), st.integers(1, 5), st.integers(2, 20))


def working_sets(seed: int, blocks: int, size: int) -> tuple[WorkingSet, WorkingSet, np.random.Generator]:
    """The same random working set for both backends."""
    generator = np.random.default_rng(seed)
    places = generator.uniform(0, 3, (size, 2))
    exponents = np.hypot(*(places[:, None] - places[None]).transpose(2, 0, 1))
    exponents[np.eye(size, dtype=bool) | (generator.random((size, size)) < 0.1)] = inf
    there = np.broadcast_to(exponents < inf, (blocks, size, size)) & (generator.random((blocks, size, size)) < 0.4)
    keys = np.flatnonzero(there)
    plain = WorkingSet(RatioBounds(exponents, HOST), blocks, keys)
    return plain, CompiledWorkingSet(RatioBounds(exponents, COMPILED), blocks, keys), generator


def kernel_arguments(pairs: WorkingSet) -> tuple[Any, ...]:
    assert isinstance(pairs, CompiledWorkingSet)
    return pairs.kernel_arguments


@given(sizes)
@settings(deadline=None)
def test_slacks_their_transpose_and_hessians(given_sizes: tuple[int, int, int]) -> None:
    plain, compiled, generator = working_sets(*given_sizes)
    u = generator.uniform(0.1, 2.0, (plain.blocks, plain.bounds.size + 1))
    values = generator.uniform(0.0, 2.0, len(plain))
    assert compiled.forward(u) == pytest.approx(plain.forward(u), rel=1e-12, abs=1e-14)
    assert compiled.adjoint(values) == pytest.approx(plain.adjoint(values), rel=1e-12, abs=1e-12)
    parts = [HessianParts(np.zeros((plain.blocks, plain.bounds.size + 1))) for _ in range(2)]
    plain.add_hessian(parts[0], values)
    compiled.add_hessian(parts[1], values)
    assert parts[1].diagonal == pytest.approx(parts[0].diagonal, rel=1e-12)
    first, second = parts[0].off_diagonal, parts[1].off_diagonal
    assert first is not None
    assert second is not None
    for name in ("starts", "row", "column", "value"):
        assert np.array_equal(getattr(first, name), getattr(second, name))


@given(sizes, st.floats(0.3, 1.3), st.booleans())
@settings(deadline=None)
def test_following_a_step(given_sizes: tuple[int, int, int], spread: float, keep_all: bool) -> None:
    plain, compiled, generator = working_sets(*given_sizes)
    before = np.full((plain.blocks, plain.bounds.size), 1.0)
    after = np.exp(spread * generator.uniform(-0.5, 0.5, before.shape))
    allowed, expected = plain.max_feasible_step(before, after, keep_all=keep_all)
    found, pairs = compiled.max_feasible_step(before, after, keep_all=keep_all)
    assert found == pytest.approx(allowed, rel=1e-12)
    assert np.array_equal(pairs.keys, expected.keys)
    anew = replace(pairs)  # what was found on the way is what the keys say
    for name in ("block_starts", "i", "j", "root"):
        assert np.array_equal(getattr(anew, name), getattr(expected, name))
    for kept, found_again in zip(kernel_arguments(pairs), kernel_arguments(anew), strict=True):
        assert np.array_equal(kept, found_again)


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
    found = []
    monkeypatch.setattr(effort_module, "compiled_loops_loaded", lambda: False)
    for least in (inf, 0):
        monkeypatch.setattr(effort_module, "LOADING_ENTRIES", least)
        monkeypatch.setattr(effort_module, "COMPILING_ENTRIES", least)
        found.append(pg.design(city(), **bounds, solver=pg.Interior(threads=2)))
    plain, compiled = found
    assert compiled.certificate.cost == pytest.approx(plain.certificate.cost, rel=1e-6)
    assert compiled.certificate.achieved == pytest.approx(plain.certificate.achieved, rel=1e-4)
    assert (compiled.certificate.gap or 0.0) <= 1e-6


def test_without_numba_a_design_is_only_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, kernels.__name__, None)
    imported_loops.cache_clear()
    monkeypatch.setattr(effort_module, "LOADING_ENTRIES", 0)
    try:
        assert compiled_loops() is None
        assert pg.design(city(), epsilon=0.8, solver=pg.Interior()).certificate.gap == pytest.approx(0.0, abs=1e-6)
    finally:
        monkeypatch.undo()
        imported_loops.cache_clear()
    assert compiled_loops() is kernels


def test_second_order_changes_count_up_to_a_multiple_of_the_target() -> None:
    now, change = (np.ones(4), np.ones(4)), (np.array([0.0, 2.0, 1e3, 1e3]), np.array([5.0, -3.0, 1e3, -1e3]))
    most = pg.InteriorSettings().second_order_limit * 0.5
    wanted = mehrotra_change(HOST, now, change, 0.5, most)
    assert wanted.tolist() == [0.5 - 1 - 0, 0.5 - 1 + 6, 0.5 - 1 - most, 0.5 - 1 + most]


def test_what_is_not_a_number_is_not_lost() -> None:
    assert np.isnan(min_growth(np.ones(3), np.array([0.0, np.nan, 1.0])))


def test_a_process_that_was_forked_does_without(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled_loops() is kernels
    monkeypatch.setattr(kernels.os, "getpid", lambda: -1)
    assert compiled_loops() is None


def test_designs_in_several_threads_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effort_module, "COMPILED_ENTRIES", 0)
    solver = pg.Interior(threads=2, settings=pg.InteriorSettings(linear_only_below=0))
    problem, alone = city(), pg.design(city(), epsilon=0.8, solver=solver)
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(pg.design, problem, epsilon=0.8, solver=solver) for _ in range(3)]
        assert {each.result().certificate.cost for each in asked} == {alone.certificate.cost}


def test_threads_are_as_many_as_were_asked_for_and_only_meanwhile() -> None:
    before = numba.get_num_threads()
    with kernels.threads(1):
        assert numba.get_num_threads() == 1
    with kernels.threads(10_000):
        assert numba.get_num_threads() == numba.config.NUMBA_NUM_THREADS
    assert numba.get_num_threads() == before


@pytest.mark.parametrize("told", [{}, {"OMP_WAIT_POLICY": "active"}])
def test_the_environment_is_left_as_it_was(told: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    environment, seen = dict(told), []
    monkeypatch.setattr(kernels, "get_num_threads", lambda: seen.append(dict(environment)))
    kernels.launch(environment)
    assert environment == told
    assert [each["GOMP_SPINCOUNT"] for each in seen] == ([] if told else ["300"])


def test_where_numba_is_told_not_to_compile_there_are_no_loops() -> None:
    script = "from privacygames.solvers.linalg.host import compiled_loops; print(compiled_loops())"
    told = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    answer = subprocess.run([sys.executable, "-c", script], env=told, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "None"


FORKING = """
import os
import privacygames as pg
from privacygames.solvers import solve_estimate
solve_estimate.COMPILED_ENTRIES = solve_estimate.LOADING_ENTRIES = solve_estimate.COMPILING_ENTRIES = 0
problem = pg.Problem(pg.Prior.uniform(pg.Grid(5, 5)), cost="euclidean")
before = pg.design(problem, epsilon=1.0, solver=pg.Interior(threads=2)).certificate.cost
child = os.fork()
if child == 0:
    after = pg.design(problem, epsilon=1.0, solver=pg.Interior(threads=2)).certificate.cost
    os._exit(0 if abs(after - before) < 1e-6 else 1)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_of_a_process_that_used_them_designs_all_the_same() -> None:
    answer = subprocess.run([sys.executable, "-W", "ignore", "-c", FORKING], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "0", answer.stderr
