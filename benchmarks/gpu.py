"""The block method on a GPU: agreement with other solvers, time, memory and utilisation.

The table is printed and written to benchmarks/results/ after every row, so that a killed run loses no finished row:

    python benchmarks/gpu.py --device cuda --sizes 10,15,20,30,40 --limit 280 --data DIR

``--device cpu`` runs the same on PyTorch's CPU device. ``--data DIR`` adds the paper's setting on the GeoLife counts
there (columns user, cell, visits; windows.json names the users). ``--peer 10,15`` adds cuPDLPx, where it is installed,
on the full linear program: its solution is repaired and certified in the same way, so that gaps are comparable.
"""

import argparse
import csv
import importlib.util
import json
import platform
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch
from scipy.linalg import lapack

import privacygames as pg
from privacygames.problem import Bounds
from privacygames.programs import design_program
from privacygames.solvers import Solution, SolveOptions
from privacygames.solvers.highs import LinearSolution, read_dual_solution
from privacygames.threads import available_processors, single_threaded_blas

PUBLISHED = {"exact, not finished": (150, 1800.0), "spanner": (300, 929.0), "approximate": (400, 146.0)}
"""Numbers of points and seconds published by Imola et al. (UAI 2022), on their machine."""

RESULTS = Path(__file__).parent / "results"
AGREEMENT_TOLERANCE = 1e-6
"""Relative gap of designs; two solvers' objectives may differ by twice as much."""

REPETITIONS = 3
"""Runs of each user's design, of which the fastest counts: other programs use the machine, too."""


Task = tuple[pg.Problem, dict[str, Any]]
"""A problem and the bounds of its mechanism."""


@dataclass
class Row:
    """One row of the table."""

    problem: str
    seconds: float = 0.0
    engine_seconds: float = 0.0
    iterations: int = 0
    value: float = 0.0
    gap: float = 0.0
    gigabytes: float = 0.0
    share: float = 0.0
    remark: str = ""


@dataclass
class Bench:
    """The device, the time limit and the rows so far."""

    device: str
    threads: int | None
    deadline: float
    target: Path
    rows: list[Row]
    machine: dict[str, Any]

    @property
    def solver(self) -> pg.Interior:
        """The interior-point solver on the device."""
        return pg.Interior(device=self.device, threads=self.threads)

    @property
    def remaining_seconds(self) -> float:
        """Seconds until the time limit."""
        return self.deadline - perf_counter()

    def report(self, row: Row) -> None:
        """Print a row and write the table."""
        self.rows.append(row)
        print(self.line(row), flush=True)
        self.target.parent.mkdir(parents=True, exist_ok=True)
        content = {"machine": self.machine, "rows": [asdict(row) for row in self.rows]}
        self.target.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n")
        self.target.with_suffix(".md").write_text(self.table())

    @staticmethod
    def line(row: Row) -> str:
        """Format a row in Markdown."""
        numbers = f"{row.seconds:.2f} | {row.engine_seconds:.2f} | {row.iterations} | {row.value:.9g} | {row.gap:.1e}"
        return f"| {row.problem} | {numbers} | {row.gigabytes:.1f} | {100 * row.share:.1f} | {row.remark} |"

    def table(self) -> str:
        """Format the whole table in Markdown."""
        rate = {"product rate": f"{self.machine['product rate'] / 1e12:.1f}·10¹² operations a second"}
        machine = "; ".join(f"{name}: {value}" for name, value in {**self.machine, **rate}.items())
        head = "| problem | seconds | of which engine | iterations | value | gap | GiB there | % of products | |"
        lines = ["# The block method on a device", "", machine, "", head, "|" + "---|" * 9, *map(self.line, self.rows)]
        note = (
            "Seconds are of the whole design, with reductions, repair and certificate; the engine's are the "
            "interior-point method alone. The share is m·n³ operations an iteration in the engine's time, of the rate "
            "of plain float64 products."
        )
        return "\n".join([*lines, "", note, ""])


def synchronise(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def product_rate(device: str) -> float:
    """Floating-point operations per second of a float64 matrix product."""
    size = 8192 if device.startswith("cuda") else 512
    a = torch.rand(size, size, dtype=torch.float64, device=device)
    shortest = float("inf")
    for _ in range(3):
        synchronise(device)
        started = perf_counter()
        a @ a
        synchronise(device)
        shortest = min(shortest, perf_counter() - started)
    return 2 * size**3 / shortest


def host_rate() -> str:
    """The speed of one of the host's processors, since hosts differ by a factor of two."""
    matrix = np.random.default_rng(0).normal(size=(240, 240))
    times = []
    with single_threaded_blas():
        for _ in range(50):
            started = perf_counter()
            lapack.dgetrf(matrix)
            times.append(perf_counter() - started)
    return f"{1e3 * median(times):.2f} ms for a 240 × 240 LU"


def measure_design(bench: Bench, name: str, problem: pg.Problem, *, tolerance: float, **bounds: Any) -> Row:
    """Measure one design on the device."""
    progress = {"seconds": 0.0, "done": 0}

    def watch(event: pg.Progress) -> None:
        progress.update(seconds=event.seconds or 0.0, done=event.done)
        print(f"{event.seconds or 0.0:7.1f} s, {event.message}", file=sys.stderr, flush=True)

    if bench.device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats()
    started = perf_counter()
    mechanism = pg.design(
        problem,
        **bounds,
        tolerance=tolerance,
        time_limit=max(bench.remaining_seconds - 20, 10.0),
        progress=watch,
        solver=bench.solver,
    )
    seconds = perf_counter() - started
    memory = torch.cuda.max_memory_allocated() / 2**30 if bench.device.startswith("cuda") else 0.0
    output_count, secret_count = _reduced_sizes(mechanism)
    work = progress["done"] * output_count * float(secret_count) ** 3
    share = work / max(progress["seconds"], 1e-9) / bench.machine["product rate"]
    gap = mechanism.certificate.gap or 0.0
    remark = "" if gap <= tolerance else "stopped by the time limit"
    value = objective_value(mechanism)
    return Row(name, seconds, progress["seconds"], int(progress["done"]), value, gap, memory, share, remark)


def objective_value(mechanism: pg.Mechanism) -> float:
    """The objective: the cost, or the distortion where the cost is bounded."""
    certificate = mechanism.certificate
    return certificate.achieved if certificate.bounds.maximises_distortion else certificate.cost


def _reduced_sizes(mechanism: pg.Mechanism) -> tuple[int, int]:
    """The numbers of outputs and secrets of the reduced problem, from the certificate's text."""
    words = mechanism.certificate.provenance.solver.replace(",", "").split()
    try:
        return int(words[1]), int(words[5])
    except (IndexError, ValueError):
        return 0, 0


def euclidean(side: int) -> pg.Problem:
    """The standard problem: a square grid, Euclidean cost, uniform prior, to be solved at ε = 1 a cell."""
    return pg.Problem(pg.Prior.uniform(pg.Grid(side, side)), cost="euclidean")


def scattered(secrets: int, outputs: int) -> pg.Problem:
    """Many places and few outputs, as in a city whose districts are the outputs."""
    generator = np.random.default_rng(5)
    side = float(np.sqrt(secrets))
    places, districts = generator.uniform(0, side, (secrets, 2)), generator.uniform(0, side, (outputs, 2))
    prior = generator.gamma(1.0, size=secrets)

    def distance(a: Any, b: Any) -> Any:
        return np.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2))

    space = pg.Categories([f"p{i}" for i in range(secrets)])
    observables = pg.Categories([f"d{i}" for i in range(outputs)])
    place_distances = distance(places, places)
    belief = pg.Prior(space, prior / prior.sum())
    return pg.Problem(belief, distance(districts, places), place_distances, place_distances, observables)


def check_agreement(bench: Bench) -> None:
    """Compare every kind of bound on small problems with the host's solver, and with HiGHS where it is installed."""
    generator = np.random.default_rng(1)
    grid = pg.Grid(6, 5)
    weights = generator.gamma(0.3, size=30) * (generator.random(30) < 0.6)
    sparse = pg.Problem(pg.Prior(grid, weights / weights.sum()))
    most = pg.max_distortion(sparse)
    uniform = euclidean(6)
    cases: list[tuple[str, pg.Problem, dict[str, Any]]] = [
        ("ε", uniform, {"epsilon": 1.0}),
        ("ε, absent secrets", sparse, {"epsilon": 0.7}),
        ("distortion", sparse, {"distortion": 0.8 * most}),
        ("joint", sparse, {"epsilon": 0.7, "distortion": 0.9 * most}),
        ("threshold", uniform, {"epsilon": 1.0, "within": 1.5}),
        ("worst case", uniform, {"epsilon": 1.0, "worst_case": True}),
        ("turned round", sparse, {"epsilon": 0.7, "cost_at_most": 0.28}),
        ("limit on each", uniform, {"epsilon": 1.0, "worst_cost_at_most": 1.36}),
    ]
    others: list[tuple[str, Any]] = [("host", pg.Interior(threads=bench.threads))]
    if importlib.util.find_spec("highspy"):
        others.append(("HiGHS", pg.Highs()))
    for name, problem, bounds in cases:
        started = perf_counter()
        mechanism = pg.design(problem, **bounds, solver=bench.solver)
        value, seconds = objective_value(mechanism), perf_counter() - started
        differences = []
        for other, solver in others:
            reference = objective_value(pg.design(problem, **bounds, solver=solver))
            relative = abs(value - reference) / max(abs(reference), 1e-3)
            differences.append(f"{other} {relative:.0e}")
            if relative > 2 * AGREEMENT_TOLERANCE:
                raise SystemExit(f"{name}: {value!r} on {bench.device}, {reference!r} by {other}")
        remark = "differs from " + ", ".join(differences)
        bench.report(
            Row(f"agreement: {name}", seconds, value=value, gap=mechanism.certificate.gap or 0.0, remark=remark)
        )


@dataclass(frozen=True)
class Pdlp:
    """The first-order method of cuPDLPx on the full linear program, on the same device."""

    tolerance: float
    fallbacks: tuple[pg.Highs, ...] = ()

    def solve(self, problem: pg.Problem, bounds: Bounds, *, options: SolveOptions) -> Solution:
        """A mechanism and a dual solution, as accurate as the tolerance."""
        from cupdlpx import Model

        program = design_program(problem, bounds)
        model = Model(
            objective_vector=program.objective,
            constraint_matrix=program.matrix,
            constraint_lower_bound=program.row_lower,
            constraint_upper_bound=program.row_upper,
            variable_lower_bound=program.variable_lower,
        )
        limit = options.time_limit or 3600.0
        model.setParams(OptimalityTol=self.tolerance, FeasibilityTol=self.tolerance, TimeLimit=limit, OutputFlag=False)
        model.optimize()
        description = f"cuPDLPx, {model.Runtime:.2f} s and {model.IterCount} iterations: {model.Status}"
        solution = LinearSolution(program, np.asarray(model.X), np.asarray(model.Pi), pg.Status.OPTIMAL, description)
        dual_solution = read_dual_solution(solution, problem, bounds)
        return Solution(solution.block("p").reshape(problem.shape), dual_solution, pg.Status.OPTIMAL, description)


def measure_cupdlpx(bench: Bench, sides: list[int]) -> None:
    """Measure cuPDLPx on the same grids, at several tolerances."""
    for side in sides:
        for tolerance in (1e-4, 1e-6):
            name = f"{side}×{side} Euclidean, ε = 1: cuPDLPx at {tolerance:g}"
            started = perf_counter()
            try:
                solver = Pdlp(tolerance)
                mechanism = pg.design(
                    euclidean(side),
                    epsilon=1.0,
                    tolerance=1.0,
                    time_limit=max(bench.remaining_seconds / 4, 10.0),
                    solver=solver,
                )
            except pg.PrivacyGamesError as error:
                bench.report(Row(name, perf_counter() - started, remark=str(error)[:100]))
                continue
            remark = mechanism.certificate.provenance.solver
            gap = mechanism.certificate.gap or 0.0
            bench.report(Row(name, perf_counter() - started, value=objective_value(mechanism), gap=gap, remark=remark))


def measure_growth(bench: Bench, sides: list[int]) -> None:
    """Measure how time grows with the number of cells."""
    cells, times = [], []
    for side in sides:
        if bench.remaining_seconds < 30:
            bench.report(Row(f"{side}×{side} Euclidean, ε = 1", remark="left out: the time limit"))
            continue
        row = measure_design(bench, f"{side}×{side} Euclidean, ε = 1", euclidean(side), tolerance=1e-4, epsilon=1.0)
        bench.report(row)
        if row.gap <= 1e-4:
            cells.append(side * side)
            times.append(row.seconds)
    if len(cells) > 1:
        slope = float(np.polyfit(np.log(cells[-3:]), np.log(times[-3:]), 1)[0])
        bench.report(Row(f"growth, the last {len(cells[-3:])} sizes", remark=f"time ~ cells^{slope:.2f}"))


def geolife(data: Path, count: int) -> dict[str, pg.Problem]:
    """The paper's setting: 20 × 15 cells, Hamming cost, GeoLife users."""
    with (data / "geolife_beijing_cell_counts.csv").open() as file:
        counts = list(csv.DictReader(file))
    problems = {}
    for user in json.loads((data / "windows.json").read_text())["geolife_beijing"]["users10"][:count]:
        visits = {f"cell-{row['cell']}": float(row["visits"]) for row in counts if row["user"] == user}
        problems[user] = pg.Problem(pg.Prior.from_visits(pg.Grid(20, 15, 15.0, 8.0), visits))
    return problems


def joint(problem: pg.Problem) -> dict[str, Any]:
    """Bounds: 95 % of the largest distortion."""
    return {"distortion": 0.95 * pg.max_distortion(problem)}


def against_three(problem: pg.Problem) -> dict[str, Any]:
    """Bounds: 80 % of the largest distortion of an adversary with the prior and two with more evidence."""
    prior = problem.prior
    adversaries = [pg.Adversary("1"), *(pg.Adversary(f"{k:g}", prior=prior.sharpen(k)) for k in (2.0, 5.0))]
    return {"distortion": {adversary: 0.8 * pg.max_distortion(problem, adversary) for adversary in adversaries}}


def measure_users(bench: Bench, data: Path, count: int) -> None:
    """Measure one user after the other, each by the fastest of several runs, since the host is shared."""
    settings: list[tuple[str, Callable[[pg.Problem], dict[str, Any]]]] = [
        ("ε = 0.6", lambda _: {}),
        ("ε = 0.6 and 95 % of d_m^max", joint),
        ("ε = 0.6 and three adversaries", against_three),
    ]
    for name, make_bounds in settings:
        times = []
        for user, problem in geolife(data, count).items():
            if bench.remaining_seconds < 20:
                break
            bounds = make_bounds(problem)
            label = f"GeoLife user {user}, {name}"
            rows = [
                measure_design(bench, label, problem, tolerance=1e-6, epsilon=0.6, **bounds) for _ in range(REPETITIONS)
            ]
            bench.report(min(rows, key=lambda row: row.seconds))
            times.append(bench.rows[-1].seconds)
        if times:
            remark = f"median {median(times):.2f} s, worst {max(times):.2f} s, each the best of {REPETITIONS}"
            bench.report(Row(f"GeoLife, {len(times)} users, {name}", sum(times), remark=remark))


def measure_evaluation(bench: Bench, data: Path, jobs: int) -> None:
    """Measure the paper's evaluation (ten users, six ε, three mechanisms), and the same against three adversaries."""
    tasks: list[Task] = []
    against: list[Task] = []
    for problem in geolife(data, 10).values():
        distortion = 0.5 * pg.max_distortion(problem)
        three = against_three(problem)
        for epsilon in (0.15, 0.3, 0.45, 0.6, 0.75, 0.9):
            both = {"epsilon": epsilon, "distortion": distortion}
            tasks += [(problem, {"epsilon": epsilon}), (problem, {"distortion": distortion}), (problem, both)]
            against.append((problem, {"epsilon": epsilon, **three}))
    measure_parallel_designs(bench, f"{len(tasks)} designs: 10 users × 6 ε × 3 mechanisms", tasks, jobs)
    measure_parallel_designs(bench, f"{len(against)} designs: 10 users × 6 ε, three adversaries", against, jobs)


def measure_parallel_designs(bench: Bench, name: str, tasks: list[Task], jobs: int) -> None:
    """Measure designs by several processes that share the device."""
    started = perf_counter()
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        gaps = list(pool.map(design_gap, tasks, [bench.device] * len(tasks)))
    seconds = perf_counter() - started
    remark = f"{jobs} processes, their start included: {seconds / len(tasks):.2f} s each"
    bench.report(Row(name, seconds, gap=max(gaps), remark=remark))


def design_gap(task: Task, device: str) -> float:
    """The certified gap of one design, computed in a worker process."""
    problem, bounds = task
    mechanism = pg.design(problem, **bounds, solver=pg.Interior(device=device, threads=1))
    return mechanism.certificate.gap or 0.0


def profile_design(side: int, device: str) -> None:
    """Print the time spent in each kernel."""
    from torch.profiler import ProfilerActivity, profile

    problem = euclidean(side)
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device.startswith("cuda") else [])
    with profile(activities=activities) as profiler:
        pg.design(problem, epsilon=1.0, tolerance=1e-4, solver=pg.Interior(device=device))
    order = "self_cuda_time_total" if device.startswith("cuda") else "self_cpu_time_total"
    print(profiler.key_averages().table(sort_by=order, row_limit=25, max_name_column_width=60))


def draw_figure(results: Path, target: Path) -> None:
    """Draw time over size: the grids of this table, and those that bench.py measured."""
    import matplotlib.pyplot as plt

    table = json.loads(results.with_suffix(".json").read_text())
    device_label = f"this engine, {table['machine']['device']}, gap 10⁻⁴"
    curves: dict[str, list[tuple[int, float]]] = {}
    for row in table["rows"]:
        label = f"cuPDLPx, {table['machine']['device']}, gap 10⁻⁴" if "cuPDLPx" in row["problem"] else device_label
        _add(curves, label, row["problem"], row["seconds"] if 0 < row["gap"] <= 1e-4 else 0.0)
    for row in json.loads((RESULTS / "latest.json").read_text())["rows"]:
        label = "this engine, two processors, gap 10⁻⁶" if row["engine"] == "privacygames" else row["engine"]
        _add(curves, label, row["what"], row["seconds"])
    figure = plt.figure(figsize=(7, 5.2), layout="constrained")
    axes = figure.add_subplot()
    for (label, points), marker in zip(curves.items(), "osD^v", strict=True):
        cells, seconds = zip(*sorted(dict(points).items()), strict=True)
        axes.loglog(cells, seconds, marker=marker, label=label)
    axes.loglog(
        *zip(*PUBLISHED.values(), strict=True), "x", color="grey", label="as published (Imola et al., UAI 2022)"
    )
    for name, place in PUBLISHED.items():
        axes.annotate(name, place, (6, 4), textcoords="offset points", fontsize="small", color="grey")
    ticks = [25, 49, 100, 225, 400, 900, 1600, 2500]
    axes.set_xticks(ticks, [f"{cells:,}" for cells in ticks])
    axes.minorticks_off()
    axes.set(xlabel="secrets, and as many outputs (a square grid, Euclidean cost, ε = 1)", ylabel="seconds")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    figure.savefig(target, dpi=150)


def _add(curves: dict[str, list[tuple[int, float]]], name: str, problem: str, seconds: float) -> None:
    side = problem.partition("×")[0]
    of_a_square = side.isdecimal() and problem.startswith(f"{side}×{side} Euclidean")
    if of_a_square and seconds and not any(word in problem for word in ("first", "later", "threads")):
        curves.setdefault(name, []).append((int(side) ** 2, seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description="The block method on a GPU.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--threads", type=int, help="threads of the host, and of PyTorch's CPU device")
    parser.add_argument("--sizes", default="10,15,20,30,40,50", help="sides of square grids, with commas")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds for everything together")
    parser.add_argument("--data", type=Path, help="folder with GeoLife counts")
    parser.add_argument("--users", type=int, default=10, help="how many of its users")
    parser.add_argument("--jobs", type=int, default=0, help="run the paper's evaluation, in so many processes")
    parser.add_argument("--wide", default="5000x200", help="secrets x outputs of the scattered problem; empty for none")
    parser.add_argument("--no-agree", dest="agree", action="store_false", help="leave out the small comparisons")
    parser.add_argument("--peer", default="", help="sides of grids that cuPDLPx is to solve, too, with commas")
    parser.add_argument("--profile", type=int, help="print where the time goes for a grid of this side, and stop")
    parser.add_argument("--out", type=Path, default=RESULTS / "gpu", help="the table, without its suffix")
    parser.add_argument("--figure", type=Path, help="draw size against time from the table that is there, and stop")
    options = parser.parse_args()
    if options.figure:
        draw_figure(options.out, options.figure)
        return
    if options.profile:
        profile_design(options.profile, options.device)
        return
    on_gpu = options.device.startswith("cuda")
    machine = {
        "device": torch.cuda.get_device_name() if on_gpu else "PyTorch's CPU device",
        "host": f"{platform.machine()}, {available_processors()} processors, {host_rate()}",
        "PyTorch": torch.__version__,
        "product rate": product_rate(options.device),
    }
    bench = Bench(options.device, options.threads, perf_counter() + options.limit, options.out, [], machine)
    if options.agree:
        check_agreement(bench)
    measure_growth(bench, [int(side) for side in options.sizes.split(",") if side])
    if options.data is not None:
        measure_users(bench, options.data, options.users)
        if options.jobs:
            measure_evaluation(bench, options.data, options.jobs)
    if options.wide and bench.remaining_seconds > 30:
        secrets, outputs = map(int, options.wide.split("x"))
        name = f"{secrets} scattered places × {outputs} outputs, ε = 1"
        bench.report(measure_design(bench, name, scattered(secrets, outputs), tolerance=1e-4, epsilon=1.0))
    if options.peer:
        measure_cupdlpx(bench, [int(side) for side in options.peer.split(",")])


if __name__ == "__main__":
    main()
