"""Certified gap, time and engine for some fifty kinds of problem at several sizes.

Run with ``make bench ROBUST=1``. Every design has a process of its own, which is killed after ``--limit`` seconds; the
table marks designs that did not finish. ``--kinds`` and ``--sizes`` choose.
"""

import argparse
import json
import os
import platform
import re
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Queue
from time import perf_counter
from typing import Any

import numpy as np

import privacygames as pg

RESULTS = Path(__file__).parent / "results"
Case = tuple[pg.Problem, dict[str, Any]]
Kind = Callable[[int], Case]
KINDS: dict[str, Kind] = {}


def kind(name: str, **bounds: Any) -> Callable[[Callable[[int], pg.Problem]], Callable[[int], pg.Problem]]:
    """Register a kind of problem: a function that makes one of n secrets, and the bounds of its mechanism."""

    def add(make: Callable[[int], pg.Problem]) -> Callable[[int], pg.Problem]:
        def make_case(n: int) -> Case:
            problem = make(n)
            return problem, {key: value(problem) if callable(value) else value for key, value in bounds.items()}

        KINDS[name] = make_case
        return make

    return add


def generator(n: int) -> np.random.Generator:
    """A random generator with a fixed seed."""
    return np.random.default_rng(n)


def space_of_points(points: np.ndarray) -> pg.Space:
    """The space of points in the plane with their Euclidean distances."""
    apart = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))
    np.fill_diagonal(apart, 0.0)
    return pg.Space.from_distances([f"p{i}" for i in range(len(points))], apart)


def scattered(n: int, *, prior: np.ndarray | None = None, cost: Any = "euclidean", **measures: Any) -> pg.Problem:
    """N random points in a square of side √n, with a Dirichlet prior unless one is options."""
    random = generator(n)
    space = space_of_points(random.random((n, 2)) * np.sqrt(n))
    belief = random.dirichlet(np.ones(n)) if prior is None else prior
    return make_problem(space, belief, cost, **measures)


def make_problem(space: pg.Space, belief: np.ndarray, cost: Any = "euclidean", **measures: Any) -> pg.Problem:
    """A problem whose cost is the space's own distance unless another is options."""
    chosen_cost = space.default_distance if isinstance(cost, str) and cost == "euclidean" else cost
    return pg.Problem(pg.Prior(space, belief / belief.sum()), cost=chosen_cost, **measures)


def grid(n: int, cost: str = "euclidean", prior: np.ndarray | None = None) -> pg.Problem:
    """A regular grid of about n cells."""
    columns = round(np.sqrt(n))
    space = pg.Grid(columns, n // columns)
    return pg.Problem(pg.Prior.uniform(space) if prior is None else pg.Prior(space, prior[: len(space)]), cost=cost)


def distortion_share(part: float) -> Callable[[pg.Problem], float]:
    """A fraction of the largest possible distortion."""
    return lambda problem: part * pg.max_distortion(problem)


def cost_between(part: float, **bounds: Any) -> Callable[[pg.Problem], float]:
    """A cost limit between the least cost at these bounds and that of the best constant output."""

    def limit(problem: pg.Problem) -> float:
        prior = problem.prior.probabilities
        constant_cost = float(
            problem.cost.max(axis=1).min() if bounds.get("worst_case") else (problem.cost @ prior).min()
        )
        if "epsilon" not in bounds:
            return part * constant_cost
        least = pg.design(problem, **bounds, tolerance=1e-4).certificate.cost
        return (1 - part) * least + part * constant_cost

    return limit


def heavy_tail(n: int) -> np.ndarray:
    """1/k³, in random order."""
    weights = 1.0 / np.arange(1, n + 1) ** 3
    return generator(n).permutation(weights / weights.sum())


def some_absent(n: int) -> np.ndarray:
    """A Dirichlet prior in which two thirds of the secrets have probability 0."""
    belief = generator(n).dirichlet(np.ones(n))
    belief[generator(n + 1).permutation(n)[n // 3 :]] = 0.0
    return np.asarray(belief / belief.sum())


def clustered(n: int) -> pg.Problem:
    """Ten clusters, 10⁻³ wide and 10³ apart."""
    random = generator(n)
    centres = random.random((10, 2)) * 3e3
    points = centres[np.arange(n) % 10] + random.random((n, 2)) * 1e-3
    return make_problem(space_of_points(points), random.dirichlet(np.ones(n)))


for value in (0.1, 1.0, 5.0):
    kind(f"grid, ε = {value:g}", epsilon=value)(grid)
for value in (1e-5, 0.001, 0.1, 1.0, 2.0, 5.0, 50.0, 1000.0):
    kind(f"scattered, ε = {value:g}", epsilon=value)(scattered)
for value in (0.001, 1.0, 50.0):
    kind(f"ten clusters, ε = {value:g}", epsilon=value)(clustered)
for value in (0.1, 1.0, 5.0):
    kind(f"scattered, worst case, ε = {value:g}", epsilon=value, worst_case=True)(scattered)
for part in (0.5, 0.95, 0.999, 0.999998, 1.0):
    kind(f"scattered, ε = 1 and {part:.7g} of the largest distortion", epsilon=1.0, distortion=distortion_share(part))(
        scattered
    )
for part in (0.5, 0.999):
    kind(f"scattered, {part:.7g} of the largest distortion alone", distortion=distortion_share(part))(scattered)
for part in (0.1, 0.5, 0.9):
    cost_limit = cost_between(part, epsilon=1.0)
    kind(f"scattered, most distortion, ε = 1, cost at {part:g}", epsilon=1.0, cost_at_most=cost_limit)(scattered)
kind("scattered, most distortion without ε", cost_at_most=cost_between(0.5))(scattered)
kind("grid, most distortion, ε = 1", epsilon=1.0, cost_at_most=cost_between(0.3, epsilon=1.0))(grid)
cost_limit = cost_between(0.5, epsilon=1.0, worst_case=True)
kind("scattered, most distortion, worst case", epsilon=1.0, cost_at_most=cost_limit, worst_case=True)(scattered)
kind(
    "scattered, worst case, ε = 1 and 0.8 of distortion", epsilon=1.0, worst_case=True, distortion=distortion_share(0.8)
)(scattered)


@kind("scattered, Hamming, ε = 1", epsilon=1.0)
@kind("scattered, Hamming, 0.999 of distortion alone", distortion=distortion_share(0.999))
@kind("scattered, Hamming, ε = 1 and 0.999 of distortion", epsilon=1.0, distortion=distortion_share(0.999))
@kind("scattered, Hamming, most distortion, ε = 1", epsilon=1.0, cost_at_most=cost_between(0.3, epsilon=1.0))
@kind("scattered, Hamming, worst case, ε = 1", epsilon=1.0, worst_case=True)
def hamming(n: int) -> pg.Problem:
    """Any output other than the secret costs the same."""
    return scattered(n, cost="hamming")


@kind("Hamming, prior 1/k³, ε = 1", epsilon=1.0)
@kind("Hamming, prior 1/k³, ε = 0.1", epsilon=0.1)
def hamming_heavy(n: int) -> pg.Problem:
    """A few secrets hold nearly all of the prior."""
    return scattered(n, prior=heavy_tail(n), cost="hamming")


@kind("distances over six orders of magnitude, ε = 1", epsilon=1.0)
def six_orders(n: int) -> pg.Problem:
    """Points whose distances from a centre go from 10⁻³ to 10³."""
    random = generator(n)
    radius, angle = 10 ** random.uniform(-3, 3, n), random.uniform(0, 2 * np.pi, n)
    return make_problem(
        space_of_points(np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])), random.dirichlet(np.ones(n))
    )


@kind("one pair at distance 0, ε = 1", epsilon=1.0)
@kind("one pair at distance 0, ε = 1 and 0.8 of distortion", epsilon=1.0, distortion=distortion_share(0.8))
@kind("one pair at distance 0, worst case, ε = 1", epsilon=1.0, worst_case=True)
def equal_pair(n: int) -> pg.Problem:
    """Two secrets that must have the same distribution of outputs."""
    return twins(n, 0.0)


@kind("one pair at distance 10⁻⁸, ε = 1", epsilon=1.0)
def near_pair(n: int) -> pg.Problem:
    """Two secrets that must have nearly the same distribution of outputs."""
    return twins(n, 1e-8)


def twins(n: int, apart: float) -> pg.Problem:
    """Scattered points, the last a little beside the first."""
    random = generator(n)
    points = random.random((n, 2)) * np.sqrt(n)
    points[-1] = points[0] + [apart, 0.0]
    space = space_of_points(points)
    distance = space.distance("given").copy()
    distance[[0, -1], [-1, 0]] = apart  # exactly, unlike the difference of the coordinates
    space = pg.Space.from_distances(space.labels, distance)
    return make_problem(space, random.dirichlet(np.ones(n)))


@kind("every secret ten times, ε = 1", epsilon=1.0)
def tenfold(n: int) -> pg.Problem:
    """Groups of ten secrets in one place."""
    random = generator(n)
    points = random.random((n // 10, 2)) * np.sqrt(n)
    return make_problem(
        space_of_points(points[np.arange(n // 10 * 10) % (n // 10)]), random.dirichlet(np.ones(n // 10 * 10))
    )


@kind("prior down to 10⁻¹², ε = 1", epsilon=1.0)
@kind("prior down to 10⁻¹², ε = 1 and 0.8 of distortion", epsilon=1.0, distortion=distortion_share(0.8))
def tiny_prior(n: int) -> pg.Problem:
    """Probabilities over twelve orders of magnitude."""
    return scattered(n, prior=10 ** generator(n).uniform(-12, 0, n))


@kind("two thirds absent, ε = 1", epsilon=1.0)
@kind("two thirds absent, ε = 1 and 0.9 of distortion", epsilon=1.0, distortion=distortion_share(0.9))
@kind("two thirds absent, worst case, ε = 1", epsilon=1.0, worst_case=True)
@kind("two thirds absent, most distortion, ε = 1", epsilon=1.0, cost_at_most=cost_between(0.4, epsilon=1.0))
def absent(n: int) -> pg.Problem:
    """Secrets of prior 0, whose rows the ratio constraints still include."""
    return scattered(n, prior=some_absent(n))


@kind("grid, two thirds absent, Hamming, ε = 0.6", epsilon=0.6)
def absent_grid(n: int) -> pg.Problem:
    """The paper's setting in small."""
    return grid(n, "hamming", some_absent(n) if round(np.sqrt(n)) * (n // round(np.sqrt(n))) == n else None)


@kind("grid, threshold form within 2 cells, ε = 1", epsilon=1.0, within=2.0)
def threshold(n: int) -> pg.Problem:
    """e^ε between cells at most two apart."""
    return grid(n)


@kind("numbers, ε = 0.5", epsilon=0.5)
def numbers(n: int) -> pg.Problem:
    """A line."""
    return make_problem(pg.Numbers(range(n)), generator(n).dirichlet(np.ones(n)))


@kind("random tree, ε = 1", epsilon=1.0)
def tree(n: int) -> pg.Problem:
    """A metric in which nearly every ratio constraint is implied by others."""
    random = generator(n)
    edges = [(str(i), str(random.integers(0, i)), float(random.uniform(0.2, 2.0))) for i in range(1, n)]
    space = pg.Graph(edges)
    return make_problem(space, random.dirichlet(np.ones(n)))


@kind("categories, ε = 1", epsilon=1.0)
@kind("categories, ε = 1, worst case", epsilon=1.0, worst_case=True)
def categories(n: int) -> pg.Problem:
    """All secrets at distance 1."""
    return pg.Problem(pg.Prior(pg.Categories([f"c{i}" for i in range(n)]), generator(n).dirichlet(np.ones(n))))


@kind("scattered, squared distance as cost, ε = 1", epsilon=1.0)
def squared(n: int) -> pg.Problem:
    """Distant outputs cost much more."""
    problem = scattered(n)
    return pg.Problem(problem.prior, cost=problem.cost**2)


@kind("scattered, random cost, ε = 1", epsilon=1.0)
def random_cost(n: int) -> pg.Problem:
    """A cost without any structure."""
    return scattered(n, cost=generator(n).random((n, n)))


@kind("scattered, costs from 10⁻⁴ to 10⁴, ε = 1", epsilon=1.0)
def wide_cost(n: int) -> pg.Problem:
    """A cost over eight orders of magnitude."""
    return scattered(n, cost=10 ** generator(n).uniform(-4, 4, (n, n)))


@kind("random metric, ε = 1", epsilon=1.0)
def random_metric(n: int) -> pg.Problem:
    """Distances between 1 and 2, which any table of such numbers is."""
    table = generator(n).uniform(1, 2, (n, n))
    table = np.triu(table, 1)
    space = pg.Space.from_distances([str(i) for i in range(n)], table + table.T)
    return make_problem(space, generator(n).dirichlet(np.ones(n)))


@kind("distances without the triangle inequality, ε = 1", epsilon=1.0)
def no_triangle(n: int) -> pg.Problem:
    """Squared distances as distinguishability."""
    problem = scattered(n)
    return pg.Problem(problem.prior, cost=problem.cost, distinguishability=problem.cost**2 / 4)


def solve(name: str, n: int, cores: set[int], connection: Connection) -> None:
    """Make one problem and design its mechanism on some cores; send the result."""
    os.sched_setaffinity(0, cores)
    warnings.simplefilter("ignore")
    problem, bounds = KINDS[name](n)
    if n >= 100:
        smaller, smaller_bounds = KINDS[name](81)
        with suppress(pg.PrivacyGamesError):
            pg.design(smaller, **smaller_bounds)
    connection.send(None)
    started = perf_counter()
    try:
        mechanism = pg.design(problem, **bounds)
    except pg.PrivacyGamesError as error:
        connection.send(
            {"seconds": perf_counter() - started, "gap": None, "engine": f"{type(error).__name__}: {error}"}
        )
        return
    origin = mechanism.certificate.provenance.solver
    connection.send({"seconds": perf_counter() - started, "gap": mechanism.certificate.gap, "engine": origin})


def run(name: str, n: int, limit: float, cores: set[int]) -> dict[str, Any]:
    """Design one problem in its own process; making it (some need designs themselves) does not count."""
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=solve, args=(name, n, cores, sender), daemon=True)
    process.start()
    sender.close()
    result: dict[str, Any] = {"seconds": limit, "gap": None, "engine": f"no end within {limit:g} s"}
    try:
        ready = receiver.poll(4 * limit + 60)
        if ready:
            receiver.recv()
        if ready and receiver.poll(limit):
            result = receiver.recv()
    except EOFError:
        result = {"seconds": 0.0, "gap": None, "engine": "the process ended without an answer"}
    process.kill()
    process.join()
    iterations = re.search(r"(\d+) iterations", result["engine"])
    return {"kind": name, "n": n, "iterations": int(iterations[1]) if iterations else None} | result


def run_and_print(name: str, n: int, limit: float, free: "Queue[set[int]]") -> dict[str, Any]:
    """Run one problem on cores of its own, and print the result."""
    cores = free.get()
    try:
        row = run(name, n, limit, cores)
    finally:
        free.put(cores)
    result = f"{row['seconds']:8.2f} s {row['iterations'] or '':>4}  {row['gap'] or ''}  {row['engine'][:60]}"
    print(f"{n:4d}  {name:<60}{result}", flush=True)
    return row


def as_markdown(rows: list[dict[str, Any]], machine: str) -> str:
    """Format the table in Markdown."""
    lines = [
        f"Measured on {machine}.",
        "",
        "| kind | n | seconds | iterations | gap | engine |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for row in rows:
        gap = "" if row["gap"] is None else f"{row['gap']:.1e}"
        engine = row["engine"].split(":")[0] if row["gap"] is not None else f"**{row['engine'][:90]}**"
        lines.append(
            f"| {row['kind']} | {row['n']} | {row['seconds']:.1f} | {row['iterations'] or ''} | {gap} | {engine} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the selected problems, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="30,100,200,300")
    parser.add_argument("--kinds", default="", help="only kinds whose name holds this")
    parser.add_argument("--limit", type=float, default=300.0)
    parser.add_argument("--out", default="robustness", help="the name of the table in benchmarks/results")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)), help="cores for each problem")
    options = parser.parse_args()
    free: Queue[set[int]] = Queue()
    all_cores = sorted(os.sched_getaffinity(0))
    for first in range(0, len(all_cores) - options.cores + 1, options.cores):
        free.put(set(all_cores[first : first + options.cores]))
    cases = [(name, int(n)) for n in options.sizes.split(",") for name in KINDS if options.kinds in name]
    machine = f"{platform.machine()}, {options.cores} cores a problem, Python {platform.python_version()}"
    rows: list[dict[str, Any]] = []
    with ThreadPoolExecutor(free.qsize()) as pool:
        for row in pool.map(lambda case: run_and_print(case[0], case[1], options.limit, free), cases):
            rows.append(row)  # written after every row, so that a killed run loses only unfinished designs
            (RESULTS / f"{options.out}.json").write_text(
                json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n"
            )
            (RESULTS / f"{options.out}.md").write_text(as_markdown(rows, machine))
    unfinished = [row for row in rows if row["gap"] is None or row["gap"] > 1e-6]
    print(f"{len(rows) - len(unfinished)} of {len(rows)} ended certified at 10⁻⁶")


if __name__ == "__main__":
    main()
