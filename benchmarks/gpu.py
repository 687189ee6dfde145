"""The block method on a GPU: does it agree, how long does it take, how much of the card does it use?

One call checks, times and prints a table, and writes it to benchmarks/results/ after every row, so that a time limit
loses nothing:

    python benchmarks/gpu.py --device cuda --sizes 10,15,20,30,40 --limit 280 --data DIR

``--device cpu`` runs the same on PyTorch's CPU device. ``--data DIR`` adds the paper's setting on the GeoLife counts
there (columns user, cell, visits; windows.json names the users). ``--peer 10,15`` adds cuPDLPx, where it is installed,
on the program written out: what it finds is repaired and certified as ours is, so that both gaps mean the same.
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
"""Points and seconds that others have published (Imola et al., UAI 2022), on their machine."""

RESULTS = Path(__file__).parent / "results"
AGREE = 1e-6
TRIES = 3


Task = tuple[pg.Problem, dict[str, Any]]
"""A problem, and what is promised."""


@dataclass
class Row:
    """One line of the table."""

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
    """What is run where, and until when; the rows so far."""

    device: str
    threads: int | None
    deadline: float
    target: Path
    rows: list[Row]
    machine: dict[str, Any]

    @property
    def solver(self) -> pg.Interior:
        """The engine on the device."""
        return pg.Interior(device=self.device, threads=self.threads)

    @property
    def left(self) -> float:
        """Seconds until the limit."""
        return self.deadline - perf_counter()

    def report(self, row: Row) -> None:
        """Print a row and write the table."""
        self.rows.append(row)
        print(self.line(row), flush=True)
        self.target.parent.mkdir(parents=True, exist_ok=True)
        content = {"machine": self.machine, "rows": [asdict(each) for each in self.rows]}
        self.target.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n")
        self.target.with_suffix(".md").write_text(self.table())

    @staticmethod
    def line(row: Row) -> str:
        """A row of the table in Markdown."""
        numbers = f"{row.seconds:.2f} | {row.engine_seconds:.2f} | {row.iterations} | {row.value:.9g} | {row.gap:.1e}"
        return f"| {row.problem} | {numbers} | {row.gigabytes:.1f} | {100 * row.share:.1f} | {row.remark} |"

    def table(self) -> str:
        """The whole table in Markdown."""
        rate = {"product rate": f"{self.machine['product rate'] / 1e12:.1f}·10¹² operations a second"}
        told = "; ".join(f"{name}: {value}" for name, value in {**self.machine, **rate}.items())
        head = "| problem | seconds | of which engine | iterations | value | gap | GiB there | % of products | |"
        lines = ["# The block method on a device", "", told, "", head, "|" + "---|" * 9, *map(self.line, self.rows)]
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
    """Operations a second of a plain float64 product."""
    size = 8192 if device.startswith("cuda") else 512
    a = torch.rand(size, size, dtype=torch.float64, device=device)
    best = float("inf")
    for _ in range(3):
        synchronise(device)
        started = perf_counter()
        a @ a
        synchronise(device)
        best = min(best, perf_counter() - started)
    return 2 * size**3 / best


def host_rate() -> str:
    """How fast one of the host's processors is: machines that are lent differ by a factor of two."""
    matrix = np.random.default_rng(0).normal(size=(240, 240))
    times = []
    with single_threaded_blas():
        for _ in range(50):
            started = perf_counter()
            lapack.dgetrf(matrix)
            times.append(perf_counter() - started)
    return f"{1e3 * median(times):.2f} ms for a 240 × 240 LU"


def timed(bench: Bench, name: str, problem: pg.Problem, *, tolerance: float, **bounds: Any) -> Row:
    """One design on the device, as a row."""
    engine = {"seconds": 0.0, "done": 0}

    def watch(event: pg.Progress) -> None:
        engine.update(seconds=event.seconds or 0.0, done=event.done)
        print(f"{event.seconds or 0.0:7.1f} s, {event.message}", file=sys.stderr, flush=True)

    if bench.device.startswith("cuda"):
        torch.cuda.reset_peak_memory_stats()
    started = perf_counter()
    found = pg.design(
        problem,
        **bounds,
        tolerance=tolerance,
        time_limit=max(bench.left - 20, 10.0),
        progress=watch,
        solver=bench.solver,
    )
    seconds = perf_counter() - started
    memory = torch.cuda.max_memory_allocated() / 2**30 if bench.device.startswith("cuda") else 0.0
    kept, _, present = _sizes(found)
    work = engine["done"] * kept * float(present) ** 3
    share = work / max(engine["seconds"], 1e-9) / bench.machine["product rate"]
    gap = found.certificate.gap or 0.0
    remark = "" if gap <= tolerance else "stopped by the time limit"
    value = valued(found)
    return Row(name, seconds, engine["seconds"], int(engine["done"]), value, gap, memory, share, remark)


def valued(found: pg.Mechanism) -> float:
    """What was optimised: the cost, or the privacy where the cost is limited."""
    certificate = found.certificate
    return certificate.achieved if certificate.bounds.maximises_distortion else certificate.cost


def _sizes(found: pg.Mechanism) -> tuple[int, int, int]:
    """Observables kept, of all, and secrets present, as the certificate tells."""
    words = found.certificate.provenance.solver.replace(",", "").split()
    try:
        return int(words[1]), int(words[3]), int(words[5])
    except (IndexError, ValueError):
        return 0, 0, 0


def euclidean(side: int) -> pg.Problem:
    """The standard problem: a square grid, Euclidean cost, uniform prior, to be solved at ε = 1 a cell."""
    return pg.Problem(pg.Prior.uniform(pg.Grid(side, side)), cost="euclidean")


def scattered(secrets: int, answers: int) -> pg.Problem:
    """Many places, few answers: as in a city whose answers are its districts."""
    generator = np.random.default_rng(5)
    side = float(np.sqrt(secrets))
    places, districts = generator.uniform(0, side, (secrets, 2)), generator.uniform(0, side, (answers, 2))
    prior = generator.gamma(1.0, size=secrets)

    def apart(a: Any, b: Any) -> Any:
        return np.sqrt(((a[:, None, :] - b[None, :, :]) ** 2).sum(axis=2))

    space = pg.Categories([f"p{i}" for i in range(secrets)])
    observables = pg.Categories([f"d{i}" for i in range(answers)])
    between = apart(places, places)
    belief = pg.Prior(space, prior / prior.sum())
    return pg.Problem(belief, apart(districts, places), between, between, observables)


def agreement(bench: Bench) -> None:
    """Every kind of bound on small problems: the device against the host's engine, and HiGHS where it is installed."""
    generator = np.random.default_rng(1)
    grid = pg.Grid(6, 5)
    visited = generator.gamma(0.3, size=30) * (generator.random(30) < 0.6)
    some = pg.Problem(pg.Prior(grid, visited / visited.sum()))
    most = pg.max_distortion(some)
    even = euclidean(6)
    asked: list[tuple[str, pg.Problem, dict[str, Any]]] = [
        ("ε", even, {"epsilon": 1.0}),
        ("ε, absent secrets", some, {"epsilon": 0.7}),
        ("distortion", some, {"distortion": 0.8 * most}),
        ("joint", some, {"epsilon": 0.7, "distortion": 0.9 * most}),
        ("threshold", even, {"epsilon": 1.0, "within": 1.5}),
        ("worst case", even, {"epsilon": 1.0, "worst_case": True}),
        ("turned round", some, {"epsilon": 0.7, "cost_at_most": 0.28}),
        ("limit on each", even, {"epsilon": 1.0, "worst_cost_at_most": 1.36}),
    ]
    others: list[tuple[str, Any]] = [("host", pg.Interior(threads=bench.threads))]
    if importlib.util.find_spec("highspy"):
        others.append(("HiGHS", pg.Highs()))
    for name, problem, bounds in asked:
        started = perf_counter()
        found = pg.design(problem, **bounds, solver=bench.solver)
        value, seconds = valued(found), perf_counter() - started
        differences = []
        for other, solver in others:
            reference = valued(pg.design(problem, **bounds, solver=solver))
            relative = abs(value - reference) / max(abs(reference), 1e-3)
            differences.append(f"{other} {relative:.0e}")
            if relative > 2 * AGREE:
                raise SystemExit(f"{name}: {value!r} on {bench.device}, {reference!r} by {other}")
        remark = "differs from " + ", ".join(differences)
        bench.report(Row(f"agreement: {name}", seconds, value=value, gap=found.certificate.gap or 0.0, remark=remark))


@dataclass(frozen=True)
class Pdlp:
    """The first-order method of cuPDLPx on the program written out, on the same card."""

    tolerance: float
    fallbacks: tuple[pg.Highs, ...] = ()

    def solve(self, problem: pg.Problem, bounds: Bounds, *, options: SolveOptions) -> Solution:
        """A mechanism and dual_solution, as accurate as the tolerance makes them."""
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
        told = f"cuPDLPx, {model.Runtime:.2f} s and {model.IterCount} iterations: {model.Status}"
        found = LinearSolution(program, np.asarray(model.X), np.asarray(model.Pi), pg.Status.OPTIMAL, told)
        dual_solution = read_dual_solution(found, problem, bounds)
        return Solution(found.block("p").reshape(problem.shape), dual_solution, pg.Status.OPTIMAL, told)


def peers(bench: Bench, sides: list[int]) -> None:
    """The same grids by cuPDLPx, at several tolerances."""
    for side in sides:
        for tolerance in (1e-4, 1e-6):
            name = f"{side}×{side} Euclidean, ε = 1: cuPDLPx at {tolerance:g}"
            started = perf_counter()
            try:
                solver = Pdlp(tolerance)
                found = pg.design(
                    euclidean(side), epsilon=1.0, tolerance=1.0, time_limit=max(bench.left / 4, 10.0), solver=solver
                )
            except pg.PrivacyGamesError as error:
                bench.report(Row(name, perf_counter() - started, remark=str(error)[:100]))
                continue
            remark = found.certificate.provenance.solver
            gap = found.certificate.gap or 0.0
            bench.report(Row(name, perf_counter() - started, value=valued(found), gap=gap, remark=remark))


def growth(bench: Bench, sides: list[int]) -> None:
    """How time grows with the number of cells."""
    cells, times = [], []
    for side in sides:
        if bench.left < 30:
            bench.report(Row(f"{side}×{side} Euclidean, ε = 1", remark="left out: the time limit"))
            continue
        row = timed(bench, f"{side}×{side} Euclidean, ε = 1", euclidean(side), tolerance=1e-4, epsilon=1.0)
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
    found = {}
    for user in json.loads((data / "windows.json").read_text())["geolife_beijing"]["users10"][:count]:
        visits = {f"cell-{row['cell']}": float(row["visits"]) for row in counts if row["user"] == user}
        found[user] = pg.Problem(pg.Prior.from_visits(pg.Grid(20, 15, 15.0, 8.0), visits))
    return found


def joint(problem: pg.Problem) -> dict[str, Any]:
    """95 % of the most distortion."""
    return {"distortion": 0.95 * pg.max_distortion(problem)}


def against_three(problem: pg.Problem) -> dict[str, Any]:
    """80 % of the most against one who knows the prior, and two who have more evidence on the likeliest places."""
    prior = problem.prior
    crowd = [pg.Adversary("1"), *(pg.Adversary(f"{k:g}", prior=prior.sharpen(k)) for k in (2.0, 5.0))]
    return {"distortion": {each: 0.8 * pg.max_distortion(problem, each) for each in crowd}}


def people(bench: Bench, data: Path, count: int) -> None:
    """One user after the other; each the best of some tries, for the host's other tenants come and go."""
    asked: list[tuple[str, Callable[[pg.Problem], dict[str, Any]]]] = [
        ("ε = 0.6", lambda _: {}),
        ("ε = 0.6 and 95 % of d_m^max", joint),
        ("ε = 0.6 and three adversaries", against_three),
    ]
    for name, more in asked:
        times = []
        for user, problem in geolife(data, count).items():
            if bench.left < 20:
                break
            bounds = more(problem)
            told = f"GeoLife user {user}, {name}"
            rows = [timed(bench, told, problem, tolerance=1e-6, epsilon=0.6, **bounds) for _ in range(TRIES)]
            bench.report(min(rows, key=lambda row: row.seconds))
            times.append(bench.rows[-1].seconds)
        if times:
            told = f"median {median(times):.2f} s, worst {max(times):.2f} s, each the best of {TRIES}"
            bench.report(Row(f"GeoLife, {len(times)} users, {name}", sum(times), remark=told))


def evaluation(bench: Bench, data: Path, jobs: int) -> None:
    """The paper's evaluation, ten users, six ε, and three mechanisms each; and the same against three adversaries."""
    tasks: list[Task] = []
    against: list[Task] = []
    for problem in geolife(data, 10).values():
        distortion = 0.5 * pg.max_distortion(problem)
        three = against_three(problem)
        for epsilon in (0.15, 0.3, 0.45, 0.6, 0.75, 0.9):
            both = {"epsilon": epsilon, "distortion": distortion}
            tasks += [(problem, {"epsilon": epsilon}), (problem, {"distortion": distortion}), (problem, both)]
            against.append((problem, {"epsilon": epsilon, **three}))
    at_once(bench, f"{len(tasks)} designs: 10 users × 6 ε × 3 mechanisms", tasks, jobs)
    at_once(bench, f"{len(against)} designs: 10 users × 6 ε, three adversaries", against, jobs)


def at_once(bench: Bench, name: str, tasks: list[Task], jobs: int) -> None:
    """Designs by several processes that share the card."""
    started = perf_counter()
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        gaps = list(pool.map(designed_gap, tasks, [bench.device] * len(tasks)))
    seconds = perf_counter() - started
    remark = f"{jobs} processes, their start included: {seconds / len(tasks):.2f} s each"
    bench.report(Row(name, seconds, gap=max(gaps), remark=remark))


def designed_gap(task: Task, device: str) -> float:
    """The certified gap of one design, in a process of its own."""
    problem, bounds = task
    found = pg.design(problem, **bounds, solver=pg.Interior(device=device, threads=1))
    return found.certificate.gap or 0.0


def profiled(side: int, device: str) -> None:
    """Where the time goes, kernel by kernel."""
    from torch.profiler import ProfilerActivity, profile

    problem = euclidean(side)
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device.startswith("cuda") else [])
    with profile(activities=activities) as found:
        pg.design(problem, epsilon=1.0, tolerance=1e-4, solver=pg.Interior(device=device))
    order = "self_cuda_time_total" if device.startswith("cuda") else "self_cpu_time_total"
    print(found.key_averages().table(sort_by=order, row_limit=25, max_name_column_width=60))


def figure(results: Path, target: Path) -> None:
    """Size against time: this table's grids, and those that bench.py measured on its machine."""
    import matplotlib.pyplot as plt

    table = json.loads(results.with_suffix(".json").read_text())
    name = f"this engine, {table['machine']['device']}, gap 10⁻⁴"
    found: dict[str, list[tuple[int, float]]] = {}
    for row in table["rows"]:
        told = f"cuPDLPx, {table['machine']['device']}, gap 10⁻⁴" if "cuPDLPx" in row["problem"] else name
        _add(found, told, row["problem"], row["seconds"] if 0 < row["gap"] <= 1e-4 else 0.0)
    for row in json.loads((RESULTS / "latest.json").read_text())["rows"]:
        told = "this engine, two processors, gap 10⁻⁶" if row["engine"] == "privacygames" else row["engine"]
        _add(found, told, row["what"], row["seconds"])
    drawn = plt.figure(figsize=(7, 5.2), layout="constrained")
    axes = drawn.add_subplot()
    for (label, points), marker in zip(found.items(), "osD^v", strict=True):
        cells, seconds = zip(*sorted(dict(points).items()), strict=True)
        axes.loglog(cells, seconds, marker=marker, label=label)
    axes.loglog(
        *zip(*PUBLISHED.values(), strict=True), "x", color="grey", label="as published (Imola et al., UAI 2022)"
    )
    for told, place in PUBLISHED.items():
        axes.annotate(told, place, (6, 4), textcoords="offset points", fontsize="small", color="grey")
    ticks = [25, 49, 100, 225, 400, 900, 1600, 2500]
    axes.set_xticks(ticks, [f"{cells:,}" for cells in ticks])
    axes.minorticks_off()
    axes.set(xlabel="secrets, and as many answers (a square grid, Euclidean cost, ε = 1)", ylabel="seconds")
    axes.grid(alpha=0.3)
    drawn.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    drawn.savefig(target, dpi=150)


def _add(found: dict[str, list[tuple[int, float]]], name: str, problem: str, seconds: float) -> None:
    side, cross, _ = problem.partition("×")
    if cross and side.isdecimal() and "Euclidean" in problem and seconds:
        found.setdefault(name, []).append((int(side) ** 2, seconds))


def main() -> None:
    parser = argparse.ArgumentParser(description="The block method on a GPU.")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--threads", type=int, help="threads of the host, and of PyTorch's CPU device")
    parser.add_argument("--sizes", default="10,15,20,30,40,50", help="sides of square grids, with commas")
    parser.add_argument("--limit", type=float, default=3600.0, help="seconds for everything together")
    parser.add_argument("--data", type=Path, help="folder with GeoLife counts")
    parser.add_argument("--users", type=int, default=10, help="how many of its users")
    parser.add_argument("--jobs", type=int, default=0, help="run the paper's evaluation, in so many processes")
    parser.add_argument("--wide", default="5000x200", help="secrets x answers of the scattered problem; empty for none")
    parser.add_argument("--no-agree", dest="agree", action="store_false", help="leave out the small comparisons")
    parser.add_argument("--peer", default="", help="sides of grids that cuPDLPx is to solve, too, with commas")
    parser.add_argument("--profile", type=int, help="print where the time goes for a grid of this side, and stop")
    parser.add_argument("--out", type=Path, default=RESULTS / "gpu", help="the table, without its suffix")
    parser.add_argument("--figure", type=Path, help="draw size against time from the table that is there, and stop")
    given = parser.parse_args()
    if given.figure:
        figure(given.out, given.figure)
        return
    if given.profile:
        profiled(given.profile, given.device)
        return
    on_card = given.device.startswith("cuda")
    machine = {
        "device": torch.cuda.get_device_name() if on_card else "PyTorch's CPU device",
        "host": f"{platform.machine()}, {available_processors()} processors, {host_rate()}",
        "PyTorch": torch.__version__,
        "product rate": product_rate(given.device),
    }
    bench = Bench(given.device, given.threads, perf_counter() + given.limit, given.out, [], machine)
    if given.agree:
        agreement(bench)
    growth(bench, [int(side) for side in given.sizes.split(",") if side])
    if given.data is not None:
        people(bench, given.data, given.users)
        if given.jobs:
            evaluation(bench, given.data, given.jobs)
    if given.wide and bench.left > 30:
        secrets, answers = map(int, given.wide.split("x"))
        name = f"{secrets} scattered places × {answers} answers, ε = 1"
        bench.report(timed(bench, name, scattered(secrets, answers), tolerance=1e-4, epsilon=1.0))
    if given.peer:
        peers(bench, [int(side) for side in given.peer.split(",")])


if __name__ == "__main__":
    main()
