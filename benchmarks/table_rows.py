"""Rows per second and peak memory of releasing tables, compared with other libraries; and a fleet of 10,000 people.

Run with ``make bench TABLES=1``; ``--quick`` takes a hundredth of the rows and people. Every measurement has its own
process, so that peaks of memory are its own. Rates are per second of processor time on one core, so other programs do
not matter much. Designing a mechanism and making the input do not count; building its tables for the first draw does.
"""

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import combinations
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

import privacygames as pg
from peak import peak_mebibytes
from privacygames.fleet import Fleet
from privacygames.fleet import design as design_fleet
from privacygames.tables import Rule, apply, apply_files

RESULTS = Path(__file__).parent / "results"
BATCH = 1 << 17
KINDS, EPSILON = 50, 2.0
CODES = pg.Numbers(range(KINDS))
FILMS = ("Alien", "Brazil", "Casablanca", "Dune", "Eraserhead", "Fargo")
BOX = (116.2, 39.8, 116.5, 40.0)
PLACE = ("lon", "lat")
MOST_OBJECTS = 2_000_000
"""The most rows of data frames: their sets are Python objects of 200 bytes each."""

AIMS = {
    "places_arrow": 5e6,
    "places_pandas": 3e6,
    "points_arrow": 5e6,
    "points_pandas": 3e6,
    "sets_arrow": 5e6,
    "sets_pandas": 3e6,
}
"""Least rates, in rows a second on one core."""

PAIRS = (
    ("draw_codes", "inverse_cdf_codes", 2.0),
    ("draw_codes", "alias_codes", 2.0),
    ("draw_codes", "alias_system_codes", 2.0),
    ("draw_places", "inverse_cdf_places", 2.0),
    ("draw_places", "alias_places", 2.0),
    ("draw_places", "alias_system_places", 2.0),
    ("kernel_codes", "numpy_by_hand", 2.0),
    ("estimate_codes_arrow", "estimate_codes_list", 1.0),
    ("estimate_texts_arrow", "estimate_texts_list", 1.0),
)
"""Two jobs that do the same, ours or the Arrow column first, and the largest ratio of times aimed at."""

BLAS_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")

Measurements = dict[str, Any]
Job = Callable[[], object]
"""What is measured."""


def response(space: pg.Space = CODES) -> pg.Mechanism:
    """Randomised response, by default over fifty codes, which all compared libraries offer."""
    return pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(space), distance="hamming"), epsilon=EPSILON)


def place() -> pg.Mechanism:
    """A dense mechanism over 300 cells, as many as the paper's."""
    return pg.baselines.exponential(pg.Problem(pg.Prior.uniform(pg.Grid.over(BOX, columns=20, rows=15))), epsilon=0.6)


def point() -> pg.Sampleable:
    """A mechanism whose secrets are coordinates, private between any two points, with four outputs."""
    points = [(116.25, 39.85), (116.45, 39.95), (116.3, 39.9), (116.4, 39.87)]
    return pg.design(pg.PointProblem(pg.PointPrior(pg.Area.over(BOX), points), points), epsilon=0.6)


def batches(rows: int, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the same rows again and again, so that only the release is measured."""
    for start in range(0, rows, BATCH):
        yield batch.slice(0, min(BATCH, rows - start))


def release_stream(rows: int, batch: pa.RecordBatch, rules: dict[Any, Any]) -> None:
    """Release a stream of batches and discard the outputs."""
    reader = pa.RecordBatchReader.from_batches(batch.schema, batches(rows, batch))
    released, _ = apply(reader, rules)
    assert sum(batch.num_rows for batch in released) == rows


def release_frame(frame: pd.DataFrame, rules: dict[Any, Any]) -> None:
    """Release a data frame, and discard it."""
    assert len(apply(frame, rules)[0]) == len(frame)


def codes() -> pa.RecordBatch:
    return pa.record_batch({"code": np.random.default_rng(0).integers(0, KINDS, BATCH), "n": np.arange(BATCH)})


def coordinates(rows: int) -> dict[str, NDArray[np.float64]]:
    rng, (west, south, east, north) = np.random.default_rng(0), BOX
    return {"lon": rng.uniform(west, east, rows), "lat": rng.uniform(south, north, rows)}


def texts() -> pa.Array:
    labels = np.array([f"ICD-{kind:02d}" for kind in range(KINDS)])
    return pa.array(labels[codes()["code"].to_numpy()])


def text_space() -> pg.Space:
    return pg.Categories([f"ICD-{kind:02d}" for kind in range(KINDS)])


def film_space() -> pg.Sets:
    """All 64 sets of six films."""
    return pg.Sets([chosen for size in range(len(FILMS) + 1) for chosen in combinations(FILMS, size)])


def kernel_codes(rows: int) -> Job:
    return partial(release_stream, rows, codes(), {"code": response()})


def kernel_texts(rows: int) -> Job:
    return partial(release_stream, rows, pa.record_batch({"code": texts()}), {"code": response(text_space())})


def places_arrow(rows: int, output_form: Any = "label") -> Job:
    rule = Rule(mechanism=place(), output_form=output_form, into="cell" if output_form == "label" else None)
    return partial(release_stream, rows, pa.record_batch(coordinates(BATCH)), {PLACE: rule})


def random_points_arrow(rows: int) -> Job:
    """A random point of the cell that was drawn."""
    return places_arrow(rows, "point")


def places_pandas(rows: int) -> Job:
    return partial(release_frame, pd.DataFrame(coordinates(rows)), {PLACE: Rule(mechanism=place(), into="cell")})


def points_arrow(rows: int) -> Job:
    return partial(release_stream, rows, pa.record_batch(coordinates(BATCH)), {PLACE: point()})


def points_pandas(rows: int) -> Job:
    return partial(release_frame, pd.DataFrame(coordinates(rows)), {PLACE: point()})


def films(rows: int) -> list[list[str]]:
    labels = [sorted(label) for label in film_space().labels if isinstance(label, frozenset)]
    return [labels[number] for number in np.random.default_rng(0).integers(0, len(labels), rows)]


def sets_arrow(rows: int) -> Job:
    batch = pa.record_batch({"films": pa.array(films(BATCH), pa.list_(pa.string()))})
    return partial(release_stream, rows, batch, {"films": response(film_space())})


def sets_pandas(rows: int) -> Job:
    frame = pd.DataFrame({"films": pd.Series(list(map(set, films(rows))), dtype=object)})
    return partial(release_frame, frame, {"films": response(film_space())})


def numpy_by_hand(rows: int) -> Job:
    """A straightforward NumPy version: floating-point probabilities, and a generator that is not cryptographic."""
    generator = np.random.default_rng()  # from the operating system's seed
    keep, batch = np.exp(EPSILON) / (np.exp(EPSILON) + KINDS - 1), codes()

    def release() -> None:
        for each in batches(rows, batch):
            code = each.column("code").to_numpy()
            other = (code + generator.integers(1, KINDS, len(code))) % KINDS
            pa.array(np.where(generator.random(len(code)) < keep, code, other))

    return release


def secrets_of(mechanism: pg.Mechanism, rows: int) -> NDArray[np.int64]:
    return np.random.default_rng(0).integers(0, len(mechanism.secrets), min(rows, BATCH))


def repeat_draw(rows: int, draw: Callable[[NDArray[np.int64]], object], secrets: NDArray[np.int64]) -> Job:
    """Draw an output for the same encoded secrets, 2¹⁷ at a time, again and again."""

    def run() -> None:
        for start in range(0, rows, BATCH):
            draw(secrets[: rows - start])

    return run


def draw(mechanism: pg.Mechanism, rows: int) -> Job:
    """The plain kernel: encoded secrets to outputs, exact integers, randomness from the operating system."""
    return repeat_draw(rows, mechanism.sampler().draw, secrets_of(mechanism, rows))


def inverse_cdf(mechanism: pg.Mechanism, rows: int) -> Job:
    """By hand: one ``searchsorted`` in the cumulative probabilities of all secrets; floats, and NumPy's generator."""
    generator, count = np.random.default_rng(), len(mechanism.secrets)
    cumulative = (np.cumsum(mechanism.probabilities, axis=1) + np.arange(count)[:, None]).ravel()

    def draw(secrets: NDArray[np.int64]) -> object:
        found = np.searchsorted(cumulative, secrets + generator.random(len(secrets)), side="right")
        return found - secrets * len(mechanism.observables)

    return repeat_draw(rows, draw, secrets_of(mechanism, rows))


def alias(mechanism: pg.Mechanism, rows: int, random: Callable[[int], NDArray[np.float64]]) -> Job:
    """By hand: Walker's alias tables, one for each secret, and floats."""
    tables = [alias_table(row) for row in mechanism.probabilities]
    share, other = (np.concatenate(arrays) for arrays in zip(*tables, strict=True))
    outputs = len(mechanism.observables)

    def draw(secrets: NDArray[np.int64]) -> object:
        scaled = random(len(secrets)) * outputs
        column = scaled.astype(np.int64)
        entry = secrets * outputs + column
        return np.where(scaled - column < share[entry], column, other[entry])

    return repeat_draw(rows, draw, secrets_of(mechanism, rows))


def alias_table(probabilities: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """For each column, the share of draws that stay in it, and where the others go."""
    share = probabilities * len(probabilities)
    other = np.arange(len(share))
    small, large = list(np.flatnonzero(share < 1)), list(np.flatnonzero(share >= 1))
    while small and large:
        column = small.pop()
        other[column] = large[-1]
        share[large[-1]] -= 1 - share[column]
        if share[large[-1]] < 1:
            small.append(large.pop())
    share[small + large] = 1.0
    return share, other


def system_floats(count: int) -> NDArray[np.float64]:
    """Uniform floats below 1 from the operating system, as our draws are."""
    words = np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
    return np.ldexp((words >> np.uint64(11)).astype(np.float64), -53)


def draw_codes(rows: int) -> Job:
    return draw(response(), rows)


def draw_places(rows: int) -> Job:
    return draw(place(), rows)


def inverse_cdf_codes(rows: int) -> Job:
    return inverse_cdf(response(), rows)


def inverse_cdf_places(rows: int) -> Job:
    return inverse_cdf(place(), rows)


def alias_codes(rows: int) -> Job:
    return alias(response(), rows, np.random.default_rng().random)


def alias_places(rows: int) -> Job:
    return alias(place(), rows, np.random.default_rng().random)


def alias_system_codes(rows: int) -> Job:
    return alias(response(), rows, system_floats)


def alias_system_places(rows: int) -> Job:
    return alias(place(), rows, system_floats)


def estimate_codes_arrow(rows: int) -> Job:
    return partial(pg.estimate, response(), pa.array(np.resize(codes()["code"].to_numpy(), rows)))


def estimate_codes_list(rows: int) -> Job:
    return partial(pg.estimate, response(), np.resize(codes()["code"].to_numpy(), rows).tolist())


def estimate_texts_arrow(rows: int) -> Job:
    column = pa.concat_arrays([texts()] * (rows // BATCH + 1)).slice(0, rows)
    return partial(pg.estimate, response(text_space()), column)


def estimate_texts_list(rows: int) -> Job:
    return partial(pg.estimate, response(text_space()), (texts().to_pylist() * (rows // BATCH + 1))[:rows])


def files(rows: int) -> Job:
    """From Parquet to Parquet, with other columns and a manifest; writing the input does not count."""
    folder, rules = tempfile.TemporaryDirectory(), {"code": response()}
    path = Path(folder.name)
    with pq.ParquetWriter(path / "in.parquet", codes().schema) as writer:
        for batch in batches(rows, codes()):
            writer.write_batch(batch)

    def release() -> None:
        with folder:
            apply_files(path / "in.parquet", path / "out.parquet", rules)

    return release


def one_by_one(privatise: Callable[[int], object], rows: int) -> None:
    for code in codes()["code"].to_pylist()[:rows]:
        privatise(code)


def opendp(rows: int) -> Job:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    keep = float(np.exp(EPSILON) / (np.exp(EPSILON) + KINDS - 1))
    measurement = dp.m.make_randomized_response(list(range(KINDS)), keep)
    return partial(one_by_one, measurement, rows)


def pure_ldp(rows: int) -> Job:
    from pure_ldp.frequency_oracles.direct_encoding import DEClient

    client = DEClient(epsilon=EPSILON, d=KINDS, index_mapper=lambda code: code)
    return partial(one_by_one, client.privatise, rows)


def multi_freq_ldpy(rows: int) -> Job:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client

    GRR_Client(1, KINDS, EPSILON)  # compiled on its first call
    return partial(one_by_one, lambda code: GRR_Client(code, KINDS, EPSILON), rows)


def measure(name: str, rows: int) -> Measurements:
    """Rows a second of processor time, and the peak memory of the process."""
    make_job: Callable[[int], Job] = globals()[name]
    make_job(min(rows, 1000))()  # imports and compilation before the clock starts
    job = make_job(rows)
    started, wall = process_time(), perf_counter()
    job()
    seconds = process_time() - started
    return {
        "job": name,
        "rows": rows,
        "rows_per_second": rows / seconds,
        "wall": perf_counter() - wall,
        "peak_mb": peak_mebibytes(),
    }


def measure_fleet(people: int, folder: str, jobs: int) -> Measurements:
    """Design and store a fleet over twelve cells; the cost of packing is relative to twenty unpacked designs."""
    grid = pg.Grid(4, 3, 4.0, 3.0)
    counts = np.random.default_rng(0).integers(0, 30, (people, 12)) + 1
    priors = {f"user-{number}": pg.Prior.from_counts(grid, seen) for number, seen in enumerate(counts)}
    started = perf_counter()
    fleet = design_fleet(priors, out=folder, epsilon=1.0, jobs=jobs)
    seconds = perf_counter() - started
    size = (Path(folder) / "people.dat").stat().st_size
    sample = list(priors)[:20]
    best = [pg.design(pg.Problem(priors[name]), epsilon=1.0).certificate.cost for name in sample]
    extra = max(fleet[name].certificate.cost / cost - 1 for name, cost in zip(sample, best, strict=True))
    return {
        "people": people,
        "cells": 12,
        "jobs": jobs,
        "seconds": seconds,
        "kb_a_person": size / people / 1000,
        "extra_cost": extra,
    }


def measure_opening(people: int, folder: str) -> Measurements:
    """Open the fleet in a new process, and draw the first output of each of a thousand people."""
    started = perf_counter()
    fleet = Fleet(folder)
    opened = perf_counter() - started
    before = peak_mebibytes()
    first_output_ms = []
    for number in np.random.default_rng(1).choice(people, min(people, 1000), replace=False):
        started = perf_counter()
        fleet.sample(f"user-{number}", "cell-3")
        first_output_ms.append(1000 * (perf_counter() - started))
    memory_growth = peak_mebibytes() - before
    return {
        "open_ms": 1000 * opened,
        "first_ms": median(first_output_ms),
        "slowest_ms": max(first_output_ms),
        "grown_mb": memory_growth,
    }


def measure_large_fleet(folder: str) -> Measurements:
    """Two people over the paper's 300 cells: one who may be anywhere, then one with thirty places."""
    grid = pg.Grid(20, 15, 15.0, 8.0)
    rng = np.random.default_rng(1)
    counts = np.zeros(300)
    counts[rng.choice(300, 30, replace=False)] = rng.integers(1, 50, 30)
    priors = {
        "anywhere": pg.Prior.from_counts(grid, counts, smoothing=0.1),
        "places": pg.Prior.from_counts(grid, counts),
    }
    sizes: Measurements = {}
    previous_size = 0
    for name in priors:
        design_fleet(
            {each: priors[each] for each in list(priors)[: len(sizes) // 2 + 1]}, out=folder, epsilon=0.6, jobs=1
        )
        size = (Path(folder) / "people.dat").stat().st_size
        fleet = Fleet(folder)
        started = perf_counter()
        fleet[name].sample("cell-3")
        sizes |= {f"{name}_mb": (size - previous_size) / 1e6, f"{name}_first_ms": 1000 * (perf_counter() - started)}
        previous_size = size
    return sizes


def run_in_new_process(job: Callable[..., Measurements], *arguments: Any) -> Measurements:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(job, *arguments).result()


def rates_table(rates: list[Measurements]) -> str:
    lines = ["| job | rows | million rows/s (processor time) | peak MB |", "|---|---|---|---|"]
    for record in rates:
        rate = f"{record['rows_per_second'] / 1e6:.3g}"
        lines.append(f"| {record['job']} | {record['rows']:.0e} | {rate} | {record['peak_mb']:.0f} |")
    return "\n".join(lines)


def comparisons(rates: list[Measurements]) -> list[Measurements]:
    """What is aimed at, beside what was measured: rates by job, and ratios of times of two jobs."""
    fastest: dict[str, float] = {}
    for record in rates:
        fastest[record["job"]] = max(record["rows_per_second"], fastest.get(record["job"], 0.0))
    aims = [
        {"what": job, "measured": fastest[job] / 1e6, "aim": aim / 1e6, "kind": "million rows/s"}
        for job, aim in AIMS.items()
    ]
    return aims + [
        {"what": f"{ours} / {other}", "measured": fastest[other] / fastest[ours], "aim": aim, "kind": "times as long"}
        for ours, other, aim in PAIRS
    ]


def comparisons_table(compared: list[Measurements]) -> str:
    lines = ["| what | measured | aim |", "|---|---|---|"]
    for record in compared:
        least = "≥" if record["kind"] == "million rows/s" else "≤"
        lines.append(f"| {record['what']} | {record['measured']:.3g} {record['kind']} | {least} {record['aim']:g} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows and a hundredth of the people")
    parser.add_argument("--jobs", type=int, default=2, help="processes for the design of the fleet")
    options = parser.parse_args()
    small, large, people = (10**6, 10**7, 100) if options.quick else (10**7, 10**8, 10**4)
    by_both_sizes = ("kernel_codes", "numpy_by_hand")
    compared_jobs = [job for pair in PAIRS for job in pair[:2] if job not in by_both_sizes]
    jobs = dict.fromkeys([*by_both_sizes, "kernel_texts", *AIMS, "random_points_arrow", "files", *compared_jobs])
    os.environ.update(dict.fromkeys(BLAS_THREADS, "1"))  # of the processes that are started: times of all threads count
    rates = [
        run_in_new_process(measure, name, min(rows, MOST_OBJECTS) if name.endswith("pandas") else rows)
        for name in jobs
        for rows in ((small, large) if name in by_both_sizes else (small,))
    ]
    for name in ("opendp", "pure_ldp", "multi_freq_ldpy"):
        try:
            rates.append(run_in_new_process(measure, name, min(small, BATCH)))
        except ImportError:
            print(f"{name} is not installed, or lacks a library it needs: left out")
    for name in BLAS_THREADS:
        del os.environ[name]
    compared = comparisons(rates)
    print(rates_table(rates), comparisons_table(compared), sep="\n\n", flush=True)
    results: dict[str, Any] = {
        "machine": platform.machine(),
        "python": platform.python_version(),
        "rates": rates,
        "comparisons": compared,
    }
    with tempfile.TemporaryDirectory() as folder:
        results["fleet"] = run_in_new_process(measure_fleet, people, f"{folder}/fleet", options.jobs)
        results["fleet"] |= run_in_new_process(measure_opening, people, f"{folder}/fleet")
        print(json.dumps(results["fleet"], indent=1), flush=True)
        results["fleet_300_cells"] = run_in_new_process(measure_large_fleet, f"{folder}/large")
        print(json.dumps(results["fleet_300_cells"], indent=1))
    if not options.quick:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "tables.json").write_text(json.dumps(results, indent=1) + "\n")
        (RESULTS / "tables.md").write_text(report(results))


def report(results: dict[str, Any]) -> str:
    fleet, large = results["fleet"], results["fleet_300_cells"]
    rates, compared = rates_table(results["rates"]), comparisons_table(results["comparisons"])
    return REPORT.format(table=rates, comparisons=compared, **fleet, **large)


REPORT = """# Tables and people

Written by `make bench TABLES=1`, in one run, one core for each job. Rates count processor time, so that other programs
on the machine do not matter much. Jobs from Arrow stream the same batches and let the outputs go; `…_pandas` release
one data frame. Mechanisms are designed before.

{table}

{comparisons}

- `places_…` are coordinates in degrees over 300 cells, written as the label of a cell (`random_points_arrow`: as a
  random point in it); `points_…` are coordinates that are protected as such; `sets_…` are sets of up to six texts.
- `kernel_codes`, `numpy_by_hand` and the three libraries do the same job: randomised response over 50 codes. By hand
  means floats and a generator that is not made for secrets; ours draws exact integer weights with AES. The libraries'
  randomised response takes one value at a time from Python; they are measured on fewer rows.
- `draw_…` is the plain kernel, from encoded secrets to outputs, with exact integers from the operating system;
  `inverse_cdf_…` and `alias_…` are the same draw written by hand in NumPy, with floats and NumPy's generator, and
  `alias_system_…` with floats from the operating system.
- `files` reads and writes Parquet, with another column.

## People

- {people:,} people over {cells} cells designed and stored in {seconds:.0f} s of wall time with {jobs} processes,
  {kb_a_person:.1f} kB each; packing adds at most {extra_cost:.0e} of the cost (twenty people).
- Opened in {open_ms:.1f} ms; the first answer of a person takes {first_ms:.2f} ms (median of 1,000 people; the slowest
  {slowest_ms:.1f} ms), and memory grows by {grown_mb:.0f} MB meanwhile.
- Over 300 cells: {anywhere_mb:.3f} MB for somebody who may be anywhere, {places_mb:.3f} MB for somebody with thirty
  places; their first answers take {anywhere_first_ms:.1f} and {places_first_ms:.1f} ms.
"""


if __name__ == "__main__":
    main()
