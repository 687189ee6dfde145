"""Ratios against what a user would use instead, both sides in one run; prints and writes benchmarks/results/.

Run with ``make bench``; ``--quick`` leaves out what takes minutes, ``--data DIR`` adds the paper's setting on the
GeoLife counts there (columns user, cell, visits; windows.json names the users).
"""

import argparse
import csv
import importlib.util
import json
import platform
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from math import exp
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, kron

import loops
import privacygames as pg
from peak import peak_mebibytes
from privacygames.solvers import implied_pairs
from privacygames.solvers.linalg import CouplingRows, SymmetricBlocks, host_algebra
from privacygames.threads import available_processors

RESULTS = Path(__file__).parent / "results"


SHORT = 5.0
"""Jobs that take less than so many seconds are run three times, and the median counts."""


def timed(job: Callable[[], float]) -> tuple[float, float]:
    """Seconds, the median of three where they are few, and the value a job returns."""
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


def ours(problem: pg.Problem, **bounds: float) -> float:
    """The certified cost of our design."""
    return pg.design(problem, **bounds).certificate.cost  # type: ignore[arg-type]


def scipy_pruned(problem: pg.Problem) -> float:
    """SciPy's HiGHS interior-point method on the written-out program without chained pairs.

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
    found = linprog(cost, ratios, np.zeros(len(o)), sums, np.ones(n), method="highs-ipm")
    return float(found.fun)


def qif_optimum(problem: pg.Problem) -> float:
    """qif's optimal d-private mechanism (a benchmark-only extra), told which ratios follow from others."""
    import qif

    _, m = problem.shape
    exponents = problem.distinguishability.copy()
    np.fill_diagonal(exponents, np.inf)
    d, cost, chained = problem.distinguishability.tolist(), problem.cost.tolist(), implied_pairs(exponents).tolist()
    found = qif.mechanism.d_privacy.min_loss_given_d(
        np.array(problem.prior.probabilities),
        m,
        lambda a, b: d[a][b],
        lambda s, o: cost[o][s],
        d_priv_ch=lambda a, b: chained[a][b],
    )
    return float(problem.prior.probabilities @ (np.asarray(found) * problem.cost.T).sum(axis=1))


def against_others(side: int, rows: list[dict[str, object]]) -> None:
    """One size, every engine there is."""
    problem = euclidean(side)
    engines: list[tuple[str, Callable[[], float]]] = [
        ("privacygames", lambda: ours(problem, epsilon=1.0)),
        ("SciPy HiGHS-IPM, chain-pruned", lambda: scipy_pruned(problem)),
    ]
    if importlib.util.find_spec("qif"):
        engines.append(("qif", lambda: qif_optimum(problem)))
    base = 0.0
    for name, job in engines:
        seconds, value = timed(job)
        base = base or seconds
        report(rows, f"{side}×{side} Euclidean, ε = 1", name, seconds, value, f"{seconds / base:.1f}×")


def growth(sides: list[int], rows: list[dict[str, object]]) -> None:
    """How time grows with the number of cells."""
    sizes, times = [], []
    for side in sides:
        problem = euclidean(side)
        seconds, value = timed(lambda problem=problem: ours(problem, epsilon=1.0))  # type: ignore[misc]
        sizes.append(side * side)
        times.append(seconds)
        report(rows, f"{side}×{side} Euclidean, ε = 1", "privacygames", seconds, value, "")
    slope = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
    report(
        rows, f"growth from {sizes[0]} to {sizes[-1]} cells", "privacygames", sum(times), slope, f"time ~ n^{slope:.1f}"
    )


def doubled() -> list[int]:
    """One, two, four and so on, up to the number of processors."""
    counts = [1]
    while counts[-1] < available_processors():
        counts.append(min(2 * counts[-1], available_processors()))
    return counts


def by_threads(side: int, rows: list[dict[str, object]], counts: list[int]) -> None:
    """The same design with so many threads; and its blocks' factorisations alone, which have nothing to wait for."""
    problem = euclidean(side)
    kinds: dict[str, Callable[[int], float]] = {
        f"{side}×{side} Euclidean, ε = 1": lambda count: (
            pg.design(problem, epsilon=1.0, solver=pg.Interior(threads=count)).certificate.cost
        ),
        f"20 factorisations of all blocks of {side}×{side}": lambda count: factorised(side * side, count),
    }
    for kind, work in kinds.items():
        first = 0.0
        for count in counts:
            seconds, value = timed(lambda work=work, count=count: work(count))  # type: ignore[misc]
            first = first or seconds
            note = f"{first / seconds:.1f} times as fast as with {counts[0]}"
            report(rows, f"{kind}, threads: {count}", "privacygames", seconds, value, note)


def factorised(size: int, threads: int) -> float:
    """Factorise as many blocks as they have rows, twenty times; an entry of what they add up to."""
    blocks, links = SymmetricBlocks(np.ones((size, size))), CouplingRows(size)
    with host_algebra(threads, compiled=True) as algebra:
        return float([algebra.factorise(blocks, links)[1] for _ in range(20)][-1][0, 0])


def with_peak_memory(side: int) -> tuple[float, float, float]:
    """Seconds, cost and the process' peak memory in GiB."""
    seconds, value = timed(lambda: ours(euclidean(side), epsilon=1.0))
    return seconds, value, peak_mebibytes() / 1024


def paper_setting(data: Path, rows: list[dict[str, object]]) -> None:
    """20 × 15 cells, Hamming cost, ten GeoLife users, ε = 0.6, alone and with a joint distortion bound."""
    with (data / "geolife_beijing_cell_counts.csv").open() as file:
        counts = list(csv.DictReader(file))
    users = json.loads((data / "windows.json").read_text())["geolife_beijing"]["users10"]
    grid = pg.Grid(20, 15, 15.0, 8.0)
    for name, share in (("ε = 0.6", None), ("ε = 0.6 and 95 % of d_m^max", 0.95)):
        times = []
        for user in users:
            visits = {f"cell-{row['cell']}": float(row["visits"]) for row in counts if row["user"] == user}
            problem = pg.Problem(pg.Prior.from_visits(grid, visits))
            bounds = {"epsilon": 0.6} | ({} if share is None else {"distortion": share * pg.max_distortion(problem)})
            seconds, value = timed(lambda p=problem, b=bounds: ours(p, **b))  # type: ignore[misc]
            times.append(seconds)
            report(rows, f"GeoLife user {user} ({len(visits)} cells), {name}", "privacygames", seconds, value, "")
        summary = f"median {median(times):.1f} s, worst {max(times):.1f} s"
        report(rows, f"ten GeoLife users, {name}", "privacygames", median(times), max(times), summary)


def report(rows: list[dict[str, object]], what: str, engine: str, seconds: float, value: float, note: str) -> None:  # noqa: PLR0917
    """Print a row and keep it."""
    rows.append({"what": what, "engine": engine, "seconds": round(seconds, 3), "value": value, "note": note})
    print(f"{what:<58}{engine:<32}{seconds:>9.2f} s  {value:.6f}  {note}", flush=True)


def as_markdown(rows: list[dict[str, object]], machine: str) -> str:
    """The table for reading."""
    lines = [f"Measured on {machine}; medians of three below {SHORT:g} s.", ""]
    lines += ["| what | engine | seconds | value | |", "|---|---|---:|---:|---|"]
    lines += [f"| {r['what']} | {r['engine']} | {r['seconds']:.2f} | {r['value']:.6f} | {r['note']} |" for r in rows]
    return "\n".join(lines) + "\n"


def write(rows: list[dict[str, object]], machine: str, name: str) -> None:
    """Keep a table."""
    RESULTS.mkdir(exist_ok=True)
    kept = {"machine": machine, "rows": rows}
    (RESULTS / f"{name}.json").write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    (RESULTS / f"{name}.md").write_text(as_markdown(rows, machine))


def main() -> None:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out what takes minutes")
    parser.add_argument("--data", type=Path, help="a folder with GeoLife counts")
    parser.add_argument("--threads", default="", help="only how threads help, for grids of these sides, with commas")
    parser.add_argument("--counts", default="1,2", help="with --threads: how many, with commas")
    options = parser.parse_args()
    rows: list[dict[str, object]] = []
    machine = f"{platform.machine()}, {available_processors()} cores, Python {platform.python_version()}"
    with loops.at_once():
        pg.design(euclidean(10), epsilon=1.0)
    if options.threads:
        for side in map(int, options.threads.split(",")):
            by_threads(side, rows, [int(count) for count in options.counts.split(",")])
            write(rows, machine, "threads")
        return
    print(f"{machine}; closed form check: {1 / (1 + exp(1)):.6f}")
    against_others(5, rows)
    against_others(7, rows)
    growth([5, 7, 10] if options.quick else [5, 7, 10, 12, 15], rows)
    by_threads(7 if options.quick else 15, rows, doubled())
    if not options.quick:
        against_others(10, rows)
        with ProcessPoolExecutor(1, get_context("spawn")) as alone:
            seconds, value, peak = alone.submit(with_peak_memory, 20).result()
        report(rows, "20×20 Euclidean, ε = 1", "privacygames", seconds, value, f"peak memory {peak:.1f} GiB")
    if options.data is not None:
        paper_setting(options.data, rows)
    if options.quick:
        return  # what is kept is a whole run
    write(rows, machine, "latest")


if __name__ == "__main__":
    main()
