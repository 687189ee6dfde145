"""Times of designs relative to alternative solvers, all in one run; prints a table and writes benchmarks/results/.

Run with ``make bench``; ``--quick`` leaves out what takes minutes, ``--data DIR`` adds the paper's setting on the
GeoLife counts there (columns user, cell, visits; windows.json names the users).
"""

import argparse
import csv
import importlib.util
import json
import platform
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from math import exp
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, kron

import privacygames as pg
from peak import peak_mebibytes
from privacygames.solvers import implied_pairs
from privacygames.solvers.linalg import CouplingRows, SymmetricBlocks, host_algebra
from privacygames.threads import available_processors

RESULTS = Path(__file__).parent / "results"


SHORT = 5.0
"""Seconds below which a job is run three times, and the median counts."""


def measure(job: Callable[[], float]) -> tuple[float, float]:
    """Measure a job's time in seconds (the median of three for short jobs) and the value it returns."""
    times: list[float] = []
    value = 0.0
    while not times or (times[0] < SHORT and len(times) < 3):
        started = perf_counter()
        value = job()
        times.append(perf_counter() - started)
    return median(times), value


def euclidean(side: int) -> pg.Problem:
    """The standard problem: a square grid, Euclidean cost, uniform prior, to be solved at ε = 1 a cell."""
    return pg.Problem(pg.Prior.uniform(pg.Grid(side, side)), cost="euclidean")


def design_cost(problem: pg.Problem, **bounds: Any) -> float:
    """The certified cost of the optimal mechanism."""
    return pg.design(problem, **bounds).certificate.cost


def scipy_pruned(problem: pg.Problem) -> float:
    """The least cost by SciPy's HiGHS interior-point method, without constraints that others imply.

    The variables are ordered observable by observable, which is where HiGHS is fastest.
    """
    n, m = problem.shape
    exponents = problem.distinguishability.copy()
    np.fill_diagonal(exponents, np.inf)
    i, j = np.nonzero(np.isfinite(exponents) & ~implied_pairs(exponents))
    gamma = np.tile(np.exp(exponents[i, j]), m)
    o = np.repeat(np.arange(m), len(i))
    rows = np.arange(len(o))
    entries = np.concatenate([np.ones(len(o)), -gamma])
    columns = np.concatenate([o * n + np.tile(i, m), o * n + np.tile(j, m)])
    ratios = coo_array((entries, (np.concatenate([rows, rows]), columns)), shape=(len(o), n * m)).tocsr()
    sums = kron(csr_array(np.ones((1, m))), csr_array(np.eye(n))).tocsr()
    cost = (problem.cost * problem.prior.probabilities).ravel()
    solution = linprog(cost, ratios, np.zeros(len(o)), sums, np.ones(n), method="highs-ipm")
    return float(solution.fun)


def qif_optimum(problem: pg.Problem) -> float:
    """The least cost by qif (a benchmark-only dependency), without constraints that others imply."""
    import qif

    _, m = problem.shape
    exponents = problem.distinguishability.copy()
    np.fill_diagonal(exponents, np.inf)
    d, cost, implied = problem.distinguishability.tolist(), problem.cost.tolist(), implied_pairs(exponents).tolist()
    mechanism = qif.mechanism.d_privacy.min_loss_given_d(
        np.array(problem.prior.probabilities),
        m,
        lambda a, b: d[a][b],
        lambda s, o: cost[o][s],
        d_priv_ch=lambda a, b: implied[a][b],
    )
    return float(problem.prior.probabilities @ (np.asarray(mechanism) * problem.cost.T).sum(axis=1))


def compare_engines(side: int, rows: list[dict[str, object]]) -> None:
    """Compare all installed engines at one size."""
    problem = euclidean(side)
    engines: list[tuple[str, Callable[[], float]]] = [
        ("privacygames", lambda: design_cost(problem, epsilon=1.0)),
        ("SciPy HiGHS-IPM, chain-pruned", lambda: scipy_pruned(problem)),
    ]
    if importlib.util.find_spec("qif"):
        engines.append(("qif", lambda: qif_optimum(problem)))
    reference_seconds = 0.0
    for name, job in engines:
        seconds, value = measure(job)
        reference_seconds = reference_seconds or seconds
        report(rows, f"{side}×{side} Euclidean, ε = 1", name, seconds, value, f"{seconds / reference_seconds:.1f}×")


def measure_growth(sides: list[int], rows: list[dict[str, object]]) -> None:
    """Measure how time grows with the number of cells."""
    sizes, times = [], []
    for side in sides:
        problem = euclidean(side)
        seconds, value = measure(lambda problem=problem: design_cost(problem, epsilon=1.0))  # type: ignore[misc]
        sizes.append(side * side)
        times.append(seconds)
        report(rows, f"{side}×{side} Euclidean, ε = 1", "privacygames", seconds, value, "")
    slope = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
    report(
        rows, f"growth from {sizes[0]} to {sizes[-1]} cells", "privacygames", sum(times), slope, f"time ~ n^{slope:.1f}"
    )


FRESH = """
import statistics, sys, time
import privacygames as pg
columns, rows, times = int(sys.argv[1]), int(sys.argv[2]), []
for _ in range(6):
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(columns, rows)), cost="euclidean")
    started = time.perf_counter()
    cost = pg.design(problem, epsilon=1.0).certificate.cost
    times.append(time.perf_counter() - started)
    if sum(times) > 10 and len(times) > 1:
        break
print(times[0], statistics.median(times[1:]), cost)
"""
"""The first design of a fresh process, after the import of the package, and the median of those after it."""


def measure_first_and_later(rows: list[dict[str, object]], *, quick: bool) -> None:
    """Measure designs as a user meets them: the first of a fresh process, and later ones."""
    grids = [(4, 3), (5, 4), (5, 5), (7, 7), (10, 10)] + ([] if quick else [(15, 15)])
    for columns, lines in grids:
        runs = [
            subprocess.run(
                [sys.executable, "-c", FRESH, str(columns), str(lines)], capture_output=True, text=True, check=True
            ).stdout.split()
            for _ in range(3)
        ]
        what, value = f"{columns}×{lines} Euclidean, ε = 1", float(runs[0][2])
        report(rows, f"{what}, first", "privacygames", median(float(run[0]) for run in runs), value, "fresh process")
        report(rows, f"{what}, later", "privacygames", median(float(run[1]) for run in runs), value, "")


def thread_counts() -> list[int]:
    """Powers of two below the number of processors, and that number."""
    counts = [1]
    while counts[-1] < available_processors():
        counts.append(min(2 * counts[-1], available_processors()))
    return counts


def measure_threads(side: int, rows: list[dict[str, object]], counts: list[int]) -> None:
    """Measure one design, and the factorisations of its blocks alone, with different numbers of threads."""
    problem = euclidean(side)
    jobs: dict[str, Callable[[int], float]] = {
        f"{side}×{side} Euclidean, ε = 1": lambda count: (
            pg.design(problem, epsilon=1.0, solver=pg.Interior(threads=count)).certificate.cost
        ),
        f"20 factorisations of all blocks of {side}×{side}": lambda count: factorise_blocks(side * side, count),
    }
    for name, job in jobs.items():
        first_seconds = 0.0
        for count in counts:
            seconds, value = measure(lambda job=job, count=count: job(count))  # type: ignore[misc]
            first_seconds = first_seconds or seconds
            note = f"{first_seconds / seconds:.1f} times as fast as with {counts[0]}"
            report(rows, f"{name}, threads: {count}", "privacygames", seconds, value, note)


def factorise_blocks(size: int, threads: int) -> float:
    """Factorise ``size`` blocks with as many rows twenty times; return an entry of their Schur complement."""
    blocks, links = SymmetricBlocks(np.ones((size, size))), CouplingRows(size)
    with host_algebra(threads) as algebra:
        return float([algebra.factorise(blocks, links)[1] for _ in range(20)][-1][0, 0])


def design_with_peak_memory(side: int) -> tuple[float, float, float]:
    """The time in seconds and cost of one design, and the process's peak memory in GiB."""
    seconds, value = measure(lambda: design_cost(euclidean(side), epsilon=1.0))
    return seconds, value, peak_mebibytes() / 1024


def measure_paper_setting(data: Path, rows: list[dict[str, object]]) -> None:
    """20 × 15 cells, Hamming cost, ten GeoLife users, ε = 0.6, alone and with a joint distortion bound."""
    people = visits_of_people(data)
    grid = pg.Grid(20, 15, 15.0, 8.0)
    for name, share in (("ε = 0.6", None), ("ε = 0.6 and 95 % of d_m^max", 0.95)):
        times = []
        for user, visits in people.items():
            problem = pg.Problem(pg.Prior.from_visits(grid, visits))
            bounds = {"epsilon": 0.6} | ({} if share is None else {"distortion": share * pg.max_distortion(problem)})
            seconds, value = measure(lambda p=problem, b=bounds: design_cost(p, **b))  # type: ignore[misc]
            times.append(seconds)
            report(rows, f"GeoLife user {user} ({len(visits)} cells), {name}", "privacygames", seconds, value, "")
        summary = f"median {median(times):.1f} s, worst {max(times):.1f} s"
        report(rows, f"ten GeoLife users, {name}", "privacygames", median(times), max(times), summary)


def visits_of_people(data: Path) -> dict[str, dict[str, float]]:
    """The visits of the ten GeoLife users to each cell."""
    with (data / "geolife_beijing_cell_counts.csv").open() as file:
        counts = list(csv.DictReader(file))
    users = json.loads((data / "windows.json").read_text())["geolife_beijing"]["users10"]
    return {
        user: {f"cell-{row['cell']}": float(row["visits"]) for row in counts if row["user"] == user} for user in users
    }


def compare_points(people: dict[str, dict[str, float]], rows: list[dict[str, object]]) -> None:
    """Guarantees between any two points against those between the cells of a grid: 15 × 8 km, 300 outputs, ε = 0.6.

    Both have the visited cells' centres as the prior and the Euclidean cost, and both prove a bound on the optimum.
    """
    grid, area = pg.Grid(20, 15, 15.0, 8.0), pg.Area(15.0, 8.0)
    ratios = []
    for name, visits in people.items():
        prior = pg.Prior.from_visits(grid, visits)
        between_cells = pg.Problem(prior, cost="euclidean", distance="euclidean")
        visited = prior.probabilities > 0
        weights = prior.probabilities[visited]
        points = pg.PointProblem(pg.PointPrior(area, grid.centres[visited], weights), grid.centres)
        cells = measure(lambda p=between_cells: design_cost(p, epsilon=0.6))  # type: ignore[misc]
        gaps: list[float] = []

        def design_points(problem: pg.PointProblem = points, gaps: list[float] = gaps) -> float:
            certificate = pg.design(problem, epsilon=0.6).certificate
            gaps.append(certificate.gap or 0.0)
            return certificate.cost

        seconds, value = measure(design_points)
        ratios.append(seconds / cells[0])
        report(rows, f"{name}, 300 cells", "privacygames", *cells, "")
        report(
            rows,
            f"{name}, any two points",
            "privacygames",
            seconds,
            value,
            f"{ratios[-1]:.1f}×, gap to every mechanism {gaps[0]:.1%}",
        )
    if len(ratios) > 1:
        summary = f"median {median(ratios):.1f}× the time of cells, worst {max(ratios):.1f}×"
        report(rows, "points against cells", "privacygames", median(ratios), max(ratios), summary)


def report(rows: list[dict[str, object]], what: str, engine: str, seconds: float, value: float, note: str) -> None:  # noqa: PLR0917
    """Print a row and add it to the table."""
    rows.append({"what": what, "engine": engine, "seconds": round(seconds, 4), "value": value, "note": note})
    print(f"{what:<58}{engine:<32}{seconds:>10.3f} s  {value:.6f}  {note}", flush=True)


def as_markdown(rows: list[dict[str, object]], machine: str) -> str:
    """Format the table in Markdown."""
    lines = [f"Measured on {machine}; medians of three below {SHORT:g} s.", ""]
    lines += ["| what | engine | seconds | value | |", "|---|---|---:|---:|---|"]
    lines += [f"| {r['what']} | {r['engine']} | {r['seconds']:.3f} | {r['value']:.6f} | {r['note']} |" for r in rows]
    return "\n".join(lines) + "\n"


def write(rows: list[dict[str, object]], machine: str, name: str) -> None:
    """Write a table in JSON and Markdown."""
    RESULTS.mkdir(exist_ok=True)
    content = {"machine": machine, "rows": rows}
    (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    (RESULTS / f"{name}.md").write_text(as_markdown(rows, machine))


def main() -> None:
    """Run the benchmarks that the options select."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out what takes minutes")
    parser.add_argument("--data", type=Path, help="a folder with GeoLife counts")
    parser.add_argument("--threads", default="", help="only how threads help, for grids of these sides, with commas")
    parser.add_argument("--counts", default="1,2", help="with --threads: how many, with commas")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    machine = f"{platform.machine()}, {available_processors()} cores, Python {platform.python_version()}"
    pg.design(euclidean(3), epsilon=1.0)  # later rows are not about imports
    if options.threads:
        for side in map(int, options.threads.split(",")):
            measure_threads(side, rows, [int(count) for count in options.counts.split(",")])
            write(rows, machine, "threads")
        return
    print(f"{machine}; closed form check: {1 / (1 + exp(1)):.6f}")
    measure_first_and_later(rows, quick=options.quick)
    compare_engines(5, rows)
    compare_engines(7, rows)
    measure_growth([5, 7, 10] if options.quick else [5, 7, 10, 12, 15], rows)
    measure_threads(7 if options.quick else 15, rows, thread_counts())
    if not options.quick:
        compare_engines(10, rows)
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            seconds, value, peak = pool.submit(design_with_peak_memory, 20).result()
        report(rows, "20×20 Euclidean, ε = 1", "privacygames", seconds, value, f"peak memory {peak:.1f} GiB")
    compare_points({"evenly visited": {f"cell-{cell}": 1.0 for cell in range(300)}}, rows)
    if options.data is not None:
        measure_paper_setting(options.data, rows)
        people = visits_of_people(options.data)
        compare_points({f"GeoLife user {user}": visits for user, visits in people.items()}, rows)
    if options.quick:
        return  # only complete runs are written
    write(rows, machine, "latest")


if __name__ == "__main__":
    main()
