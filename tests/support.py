"""What tests share: random problems, and an independent solver that writes the paper's programs out by hand."""

import csv
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import exp, inf
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

import privacygames as pg
from privacygames.certificates import BITS, Statement
from privacygames.jobs import executors
from waiting import GUARD

Array = NDArray[np.float64]


def shared(*parts: str) -> Path:
    """A file of the folder beside the checkout; the test is skipped, with the reason, where there is no such folder.

    Where the folder is there and the file is not, that is a mistake, and the test fails.
    """
    folder = Path(__file__).parents[2] / "shared"
    path = folder.joinpath(*parts)
    if parts[0] == "data" and "PRIVACYGAMES_DATA" in os.environ:
        path = Path(os.environ["PRIVACYGAMES_DATA"]).joinpath(*parts[1:])
    if not path.parent.is_dir():
        pytest.skip(f"{'/'.join(parts)} is not here: there is no folder shared/ beside this checkout")
    assert path.is_file(), f"{'/'.join(parts)} is missing in the folder beside this checkout"
    return path


def geolife(user: str) -> pg.Problem:
    """The paper's setting with the visits of a real person: 20 × 15 cells over 15 × 8 km, Hamming cost."""
    with shared("data", "geolife_beijing_cell_counts.csv").open() as file:
        visits = {f"cell-{row['cell']}": float(row["visits"]) for row in csv.DictReader(file) if row["user"] == user}
    return pg.Problem(pg.Prior.from_visits(pg.Grid(20, 15, 15.0, 8.0), visits))


def problem_of(prior: Any, cost: Any, distance: Any, distinguishability: Any = None) -> pg.Problem:
    """A problem from plain matrices."""
    cost = np.asarray(cost, dtype=float)
    space = pg.Categories([f"s{i}" for i in range(cost.shape[1])])
    observables = pg.Categories([f"o{i}" for i in range(cost.shape[0])])
    return pg.Problem(pg.Prior(space, prior), cost, distance, distinguishability, observables)


def two_secrets(first: float = 0.5, apart: float = 1.0) -> pg.Problem:
    """Two secrets answered with themselves: Hamming cost, distance ``apart``."""
    return problem_of([first, 1 - first], [[0, 1], [1, 0]], [[0, apart], [apart, 0]])


def draft_statement(problem: pg.Problem, bounds: pg.Bounds) -> Statement:
    """A statement about a problem whose weights are still to come."""
    return Statement(
        weights=np.zeros((0, 0), dtype=np.int64),
        bits=BITS,
        prior=problem.prior.probabilities,
        cost=problem.cost,
        distance=problem.distance,
        distinguishability=problem.distinguishability,
        bounds=bounds,
        dual_solution=None,
    )


@st.composite
def matrices(draw: st.DrawFn, rows: int, columns: int, *, zero_diagonal: bool = False) -> Array:
    """Non-negative matrices of moderate size."""
    number = st.integers(0, 40).map(lambda value: value / 10)
    values = draw(st.lists(number, min_size=rows * columns, max_size=rows * columns))
    matrix = np.array(values).reshape(rows, columns)
    if zero_diagonal:
        np.fill_diagonal(matrix, 0.0)
    return matrix


@st.composite
def priors(draw: st.DrawFn, size: int) -> Array:
    """Distributions, zeros included."""
    counts = draw(st.lists(st.integers(0, 9), min_size=size, max_size=size).filter(lambda given: sum(given) > 0))
    return np.array(counts) / sum(counts)


@st.composite
def problems(draw: st.DrawFn, *, largest: int = 5) -> pg.Problem:
    """Small problems of every shape: asymmetric distances, zeros, observables that are not the secrets."""
    n = draw(st.integers(1, largest))
    m = draw(st.integers(1, largest))
    return problem_of(
        draw(priors(n)),
        draw(matrices(m, n)),
        draw(matrices(n, n, zero_diagonal=True)),
        draw(matrices(n, n, zero_diagonal=True)),
    )


@dataclass(frozen=True)
class Case:
    """A problem and bounds some mechanism meets."""

    problem: pg.Problem
    bounds: dict[str, Any]


@st.composite
def cases(draw: st.DrawFn, *, reverse: bool | None = None, largest: int = 5) -> Case:
    """A random problem with random bounds of every kind, feasible by construction."""
    problem = draw(problems(largest=largest))
    bounds: dict[str, Any] = {"worst_case": draw(st.booleans())}
    turned = draw(st.booleans()) if reverse is None else reverse
    with_epsilon = draw(st.booleans())
    if with_epsilon:
        bounds["epsilon"] = draw(st.sampled_from([0.1, 0.5, 1.0, 2.0]))
        if draw(st.booleans()):
            bounds["within"] = draw(st.sampled_from([0.0, 1.0, 2.0]))
    if turned:
        blind = pg.baselines.constant(problem)
        costs = blind.certificate.verification
        most = costs.worst_cost if bounds["worst_case"] else costs.expected_cost
        bounds["cost_at_most"] = max(most * draw(st.sampled_from([1.001, 1.5])), 0.01)
    elif not with_epsilon or draw(st.booleans()):
        bounds["distortion"] = pg.max_distortion(problem) * draw(st.sampled_from([0.0, 0.3, 0.7, 0.95, 1.0]))
    return Case(problem, bounds)


def optimum_by_hand(problem: pg.Problem, **bounds: Any) -> float:
    """The optimal value of the paper's program, written out constraint by constraint and solved by SciPy.

    Variables: p(o|s) at s·m+o, then x(o), then y. Shares no code with the library.
    """
    epsilon, within = bounds.get("epsilon"), bounds.get("within")
    distortion, limit = bounds.get("distortion"), bounds.get("cost_at_most")
    worst = bounds.get("worst_case", False)
    n, m = problem.shape
    prior, cost, d = problem.prior.probabilities, problem.cost, problem.distance
    separation = problem.distinguishability
    size = n * m + m + 1
    objective = np.zeros(size)
    upper: list[Array] = []
    limits: list[float] = []

    def add(entries: dict[int, float], bound: float) -> None:
        row = np.zeros(size)
        for position, value in entries.items():
            row[position] += value
        upper.append(row)
        limits.append(bound)

    for o in range(m):
        for guess in range(n):
            add({n * m + o: 1.0} | {s * m + o: -prior[s] * d[guess, s] for s in range(n)}, 0.0)
    if epsilon is not None:
        for s in range(n):
            for t in range(n):
                exponent = epsilon * separation[s, t] if within is None else epsilon
                if s != t and (within is None or separation[s, t] <= within) and exponent < inf:
                    for o in range(m):
                        add({s * m + o: 1.0, t * m + o: -exp(exponent)}, 0.0)
    average = {s * m + o: prior[s] * cost[o, s] for s in range(n) for o in range(m)}
    each = [{s * m + o: cost[o, s] for o in range(m)} for s in range(n)]
    if limit is not None:
        objective[n * m : n * m + m] = -1.0
        for entries in each if worst else [average]:
            add(entries, limit)
    else:
        if worst:
            objective[-1] = 1.0
            for entries in each:
                add(entries | {size - 1: -1.0}, 0.0)
        else:
            for position, value in average.items():
                objective[position] = value
        if distortion is not None:
            add({n * m + o: -1.0 for o in range(m)}, -distortion)
    equal = np.zeros((n, size))
    for s in range(n):
        equal[s, s * m : (s + 1) * m] = 1.0
    free = [(0, None)] * (n * m) + [(None, None)] * m + [(0, None)]
    found = linprog(objective, np.array(upper), limits, equal, np.ones(n), free, method="highs-ds")
    assert found.status == 0, found.message
    return float(-found.fun if limit is not None else found.fun)


def error_by_hand(mechanism: Array, attack: Array, distance: Array, weights: Array) -> float:
    """Σ_{s,o,ŝ} w(s) p(o|s) q(ŝ|o) d(ŝ,s), term by term (eq:expectederror)."""
    total = 0.0
    for s in range(mechanism.shape[0]):
        for o in range(mechanism.shape[1]):
            for guess in range(distance.shape[0]):
                total += weights[s] * mechanism[s, o] * attack[o, guess] * distance[guess, s]
    return total


@contextmanager
def two_workers() -> Iterator[Any]:
    """A Dask cluster of two processes on this machine; the test is skipped where Dask is not installed."""
    distributed = pytest.importorskip("distributed")
    import dask

    patient = {f"distributed.comm.timeouts.{name}": f"{GUARD:g}s" for name in ("connect", "tcp")}
    with (
        dask.config.set(patient),
        mock.patch.object(executors, "SCHEDULER_TIMEOUT", GUARD),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as made,
    ):
        yield made


def block_iterations(problem: pg.Problem, settings: pg.InteriorSettings | None = None, **bounds: Any) -> int:
    """How many iterations the block engine takes, on one thread, to a certified gap of 10⁻⁶."""
    solver = pg.Interior(threads=1, settings=settings or pg.InteriorSettings())
    found = pg.design(problem, solver=solver, **bounds).certificate
    assert found.gap is not None
    assert found.gap <= 1e-6
    told = re.fullmatch(r"blocks: .* (\d+) iterations", found.provenance.solver)
    assert told
    return int(told[1])
