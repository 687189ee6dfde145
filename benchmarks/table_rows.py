"""Rows per second and peak memory of releasing tables, compared with other libraries; and a fleet of 10,000 people.

Run with ``make bench TABLES=1``; ``--quick`` takes a hundredth of the rows and people. Every measurement has its own
process, so that peaks of memory are its own. Rates are per second of processor time, so other programs do not matter.
"""

import argparse
import json
import platform
import secrets
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import privacygames as pg
from peak import peak_mebibytes
from privacygames.fleet import Fleet
from privacygames.fleet import design as design_fleet
from privacygames.tables import Rule, apply, apply_files

RESULTS = Path(__file__).parent / "results"
BATCH = 1 << 17
KINDS, EPSILON = 50, 2.0
CODES = pg.Numbers(range(KINDS))
Measurements = dict[str, Any]


def response() -> pg.Mechanism:
    """Randomised response over fifty codes, which all compared libraries offer."""
    return pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(CODES), distance="hamming"), epsilon=EPSILON)


def place() -> pg.Mechanism:
    """A dense mechanism over the paper's 300 cells."""
    return pg.baselines.exponential(pg.Problem(pg.Prior.uniform(pg.Grid(20, 15, 15.0, 8.0))), epsilon=0.6)


def batches(rows: int, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the same rows again and again, so that only the release is measured."""
    for start in range(0, rows, BATCH):
        yield batch.slice(0, min(BATCH, rows - start))


def release_stream(rows: int, batch: pa.RecordBatch, rules: dict[Any, Any]) -> None:
    """Release a stream of batches and discard the outputs."""
    reader = pa.RecordBatchReader.from_batches(batch.schema, batches(rows, batch))
    released, _ = apply(reader, rules)
    assert sum(batch.num_rows for batch in released) == rows


def codes() -> pa.RecordBatch:
    return pa.record_batch({"code": np.random.default_rng(0).integers(0, KINDS, BATCH), "n": np.arange(BATCH)})


def kernel_codes(rows: int) -> None:
    release_stream(rows, codes(), {"code": response()})


def kernel_texts(rows: int) -> None:
    labels = [f"ICD-{kind:02d}" for kind in range(KINDS)]
    space = pg.Categories(labels)
    mechanism = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(space)), epsilon=EPSILON)
    texts = pa.array(np.array(labels)[codes()["code"].to_numpy()])
    release_stream(rows, pa.record_batch({"code": texts}), {"code": mechanism})


def kernel_places(rows: int, output_form: Any = "label") -> None:
    rng = np.random.default_rng(0)
    batch = pa.record_batch({"x": rng.uniform(0, 15, BATCH), "y": rng.uniform(0, 8, BATCH)})
    rule = Rule(mechanism=place(), output_form=output_form, into="cell" if output_form == "label" else None)
    release_stream(rows, batch, {("x", "y"): rule})


def kernel_points(rows: int) -> None:
    kernel_places(rows, "point")


def numpy_by_hand(rows: int) -> None:
    """A straightforward NumPy version: floating-point probabilities, and a generator that is not cryptographic."""
    generator = np.random.default_rng(secrets.randbits(128))
    keep = np.exp(EPSILON) / (np.exp(EPSILON) + KINDS - 1)
    for batch in batches(rows, codes()):
        code = batch.column("code").to_numpy()
        other = (code + generator.integers(1, KINDS, len(code))) % KINDS
        pa.array(np.where(generator.random(len(code)) < keep, code, other))


def files(rows: int) -> float:
    """Seconds from Parquet to Parquet, with other columns and a manifest; writing the input does not count."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        with pq.ParquetWriter(path / "in.parquet", codes().schema) as writer:
            for batch in batches(rows, codes()):
                writer.write_batch(batch)
        started = process_time()
        apply_files(path / "in.parquet", path / "out.parquet", {"code": response()})
        return process_time() - started


def opendp(rows: int) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    keep = float(np.exp(EPSILON) / (np.exp(EPSILON) + KINDS - 1))
    measurement = dp.m.make_randomized_response(list(range(KINDS)), keep)
    for code in codes()["code"].to_pylist()[:rows]:
        measurement(code)


def pure_ldp(rows: int) -> None:
    from pure_ldp.frequency_oracles.direct_encoding import DEClient

    client = DEClient(epsilon=EPSILON, d=KINDS, index_mapper=lambda code: code)
    for code in codes()["code"].to_pylist()[:rows]:
        client.privatise(code)


def multi_freq_ldpy(rows: int) -> None:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client

    GRR_Client(1, KINDS, EPSILON)  # compiled on its first call
    for code in codes()["code"].to_pylist()[:rows]:
        GRR_Client(code, KINDS, EPSILON)


def measure(name: str, rows: int) -> Measurements:
    """Rows a second of processor time, and the peak memory of the process."""
    job: Callable[[int], float | None] = globals()[name]  # some return the seconds of the part that counts
    job(min(rows, 1000))  # imports and compilation before the clock starts
    started, wall = process_time(), perf_counter()
    own_seconds = job(rows)
    seconds = process_time() - started if own_seconds is None else own_seconds
    peak = peak_mebibytes()
    return {
        "job": name,
        "rows": rows,
        "rows_per_second": rows / seconds,
        "wall": perf_counter() - wall,
        "peak_mb": peak,
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the rows and people")
    parser.add_argument("--jobs", type=int, default=2, help="processes for the design of the fleet")
    options = parser.parse_args()
    small, large, people = (10**5, 10**6, 100) if options.quick else (10**7, 10**8, 10**4)
    rates = [
        run_in_new_process(measure, name, rows)
        for name in ("kernel_codes", "numpy_by_hand", "kernel_texts", "kernel_places", "kernel_points", "files")
        for rows in ((small, large) if name in ("kernel_codes", "numpy_by_hand") else (small,))
    ]
    for name in ("opendp", "pure_ldp", "multi_freq_ldpy"):
        try:
            rates.append(run_in_new_process(measure, name, min(small, BATCH)))
        except ImportError:
            print(f"{name} is not installed, or lacks a library it needs: left out")
    print(rates_table(rates), flush=True)
    results: dict[str, Any] = {"machine": platform.machine(), "python": platform.python_version(), "rates": rates}
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
    return REPORT.format(table=rates_table(results["rates"]), **fleet, **large)


REPORT = """# Tables and people

Written by `make bench TABLES=1`, in one run. Rates count processor time, so that other programs on the machine do not
matter much; all jobs but `files` stream the same batches and let the answers go.

{table}

`kernel_codes`, `numpy_by_hand` and the three libraries do the same job: randomised response over 50 codes. By hand
means floats and a generator that is not made for secrets; ours draws exact integer weights with AES. The libraries'
randomised response takes one value at a time from Python; they are measured on fewer rows. `files` reads and writes
Parquet, with another column.

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
