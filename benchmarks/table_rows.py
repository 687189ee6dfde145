"""Rows a second and peak memory of releasing tables, beside what others do; and ten thousand people. One run.

Run with ``make bench TABLES=1``; ``--quick`` takes a hundredth of the rows and people. Every measurement has a process
of its own, so that peaks are its own. Rates are per second of processor time: other programs do not count.
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
Measured = dict[str, Any]


def response() -> pg.Mechanism:
    """Randomised response over fifty codes: the job that all libraries here can do."""
    return pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(CODES), distance="hamming"), epsilon=EPSILON)


def place() -> pg.Mechanism:
    """A dense mechanism over the paper's 300 cells."""
    return pg.baselines.exponential(pg.Problem(pg.Prior.uniform(pg.Grid(20, 15, 15.0, 8.0))), epsilon=0.6)


def batches(rows: int, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The same rows again and again, so that nothing but the release is measured."""
    for start in range(0, rows, BATCH):
        yield batch.slice(0, min(BATCH, rows - start))


def drained(rows: int, batch: pa.RecordBatch, rules: dict[Any, Any]) -> None:
    """Release a stream of batches and let the answers go."""
    reader = pa.RecordBatchReader.from_batches(batch.schema, batches(rows, batch))
    released, _ = apply(reader, rules)
    assert sum(each.num_rows for each in released) == rows


def codes() -> pa.RecordBatch:
    return pa.record_batch({"code": np.random.default_rng(0).integers(0, KINDS, BATCH), "n": np.arange(BATCH)})


def kernel_codes(rows: int) -> None:
    drained(rows, codes(), {"code": response()})


def kernel_texts(rows: int) -> None:
    labels = [f"ICD-{kind:02d}" for kind in range(KINDS)]
    space = pg.Categories(labels)
    mechanism = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(space)), epsilon=EPSILON)
    texts = pa.array(np.array(labels)[codes()["code"].to_numpy()])
    drained(rows, pa.record_batch({"code": texts}), {"code": mechanism})


def kernel_places(rows: int, answer: Any = "label") -> None:
    rng = np.random.default_rng(0)
    batch = pa.record_batch({"x": rng.uniform(0, 15, BATCH), "y": rng.uniform(0, 8, BATCH)})
    rule = Rule(mechanism=place(), output_form=answer, into="cell" if answer == "label" else None)
    drained(rows, batch, {("x", "y"): rule})


def kernel_points(rows: int) -> None:
    kernel_places(rows, "point")


def numpy_by_hand(rows: int) -> None:
    """What one would write oneself: floats, and a generator that is not made for secrets."""
    generator = np.random.default_rng(secrets.randbits(128))
    keep = np.exp(EPSILON) / (np.exp(EPSILON) + KINDS - 1)
    for batch in batches(rows, codes()):
        code = batch.column("code").to_numpy()
        other = (code + generator.integers(1, KINDS, len(code))) % KINDS
        pa.array(np.where(generator.random(len(code)) < keep, code, other))


def files(rows: int) -> float:
    """Parquet to Parquet, other columns and manifest included; the input is written first."""
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

    GRR_Client(1, KINDS, EPSILON)  # it is compiled on its first call
    for code in codes()["code"].to_pylist()[:rows]:
        GRR_Client(code, KINDS, EPSILON)


def measured(name: str, rows: int) -> Measured:
    """Rows a second of processor time, and the peak memory of the process."""
    job: Callable[[int], float | None] = globals()[name]  # some say themselves how long the part that counts took
    job(min(rows, 1000))  # imports and compilation are over
    started, wall = process_time(), perf_counter()
    told = job(rows)
    seconds = process_time() - started if told is None else told
    peak = peak_mebibytes()
    return {
        "job": name,
        "rows": rows,
        "rows_per_second": rows / seconds,
        "wall": perf_counter() - wall,
        "peak_mb": peak,
    }


def fleet_of(people: int, folder: str, jobs: int) -> Measured:
    """People with habits over twelve cells: designed and stored; what packing costs, against twenty plain designs."""
    grid = pg.Grid(4, 3, 4.0, 3.0)
    counts = np.random.default_rng(0).integers(0, 30, (people, 12)) + 1
    priors = {f"user-{number}": pg.Prior.from_counts(grid, seen) for number, seen in enumerate(counts)}
    started = perf_counter()
    fleet = design_fleet(priors, out=folder, epsilon=1.0, jobs=jobs)
    seconds = perf_counter() - started
    size = (Path(folder) / "people.dat").stat().st_size
    some = list(priors)[:20]
    best = [pg.design(pg.Problem(priors[name]), epsilon=1.0).certificate.cost for name in some]
    extra = max(fleet[name].certificate.cost / cost - 1 for name, cost in zip(some, best, strict=True))
    return {
        "people": people,
        "cells": 12,
        "jobs": jobs,
        "seconds": seconds,
        "kb_a_person": size / people / 1000,
        "extra_cost": extra,
    }


def fleet_opened(people: int, folder: str) -> Measured:
    """A new process: from nothing to the first answer of each of a thousand people."""
    started = perf_counter()
    fleet = Fleet(folder)
    opened = perf_counter() - started
    before = peak_mebibytes()
    firsts = []
    for number in np.random.default_rng(1).choice(people, min(people, 1000), replace=False):
        started = perf_counter()
        fleet.sample(f"user-{number}", "cell-3")
        firsts.append(1000 * (perf_counter() - started))
    grown = peak_mebibytes() - before
    return {"open_ms": 1000 * opened, "first_ms": median(firsts), "slowest_ms": max(firsts), "grown_mb": grown}


def fleet_of_300_cells(folder: str) -> Measured:
    """Over the paper's 300 cells: somebody who may be anywhere, then somebody with thirty places."""
    grid = pg.Grid(20, 15, 15.0, 8.0)
    rng = np.random.default_rng(1)
    counts = np.zeros(300)
    counts[rng.choice(300, 30, replace=False)] = rng.integers(1, 50, 30)
    priors = {
        "anywhere": pg.Prior.from_counts(grid, counts, smoothing=0.1),
        "places": pg.Prior.from_counts(grid, counts),
    }
    found: Measured = {}
    before = 0
    for name in priors:
        design_fleet(
            {each: priors[each] for each in list(priors)[: len(found) // 2 + 1]}, out=folder, epsilon=0.6, jobs=1
        )
        size = (Path(folder) / "people.dat").stat().st_size
        fleet = Fleet(folder)
        started = perf_counter()
        fleet[name].sample("cell-3")
        found |= {f"{name}_mb": (size - before) / 1e6, f"{name}_first_ms": 1000 * (perf_counter() - started)}
        before = size
    return found


def in_its_own_process(job: Callable[..., Measured], *arguments: Any) -> Measured:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(job, *arguments).result()


def table_of(rates: list[Measured]) -> str:
    lines = ["| job | rows | million rows/s (processor time) | peak MB |", "|---|---|---|---|"]
    for each in rates:
        rate = f"{each['rows_per_second'] / 1e6:.3g}"
        lines.append(f"| {each['job']} | {each['rows']:.0e} | {rate} | {each['peak_mb']:.0f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the rows and people")
    parser.add_argument("--jobs", type=int, default=2, help="processes for the design of the fleet")
    asked = parser.parse_args()
    small, large, people = (10**5, 10**6, 100) if asked.quick else (10**7, 10**8, 10**4)
    rates = [
        in_its_own_process(measured, name, rows)
        for name in ("kernel_codes", "numpy_by_hand", "kernel_texts", "kernel_places", "kernel_points", "files")
        for rows in ((small, large) if name in ("kernel_codes", "numpy_by_hand") else (small,))
    ]
    for name in ("opendp", "pure_ldp", "multi_freq_ldpy"):
        try:
            rates.append(in_its_own_process(measured, name, min(small, BATCH)))
        except ImportError:
            print(f"{name} is not installed, or lacks a library it needs: left out")
    print(table_of(rates), flush=True)
    found: dict[str, Any] = {"machine": platform.machine(), "python": platform.python_version(), "rates": rates}
    with tempfile.TemporaryDirectory() as folder:
        found["fleet"] = in_its_own_process(fleet_of, people, f"{folder}/fleet", asked.jobs)
        found["fleet"] |= in_its_own_process(fleet_opened, people, f"{folder}/fleet")
        print(json.dumps(found["fleet"], indent=1), flush=True)
        found["fleet_300_cells"] = in_its_own_process(fleet_of_300_cells, f"{folder}/large")
        print(json.dumps(found["fleet_300_cells"], indent=1))
    if not asked.quick:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "tables.json").write_text(json.dumps(found, indent=1) + "\n")
        (RESULTS / "tables.md").write_text(report(found))


def report(found: dict[str, Any]) -> str:
    fleet, large = found["fleet"], found["fleet_300_cells"]
    return REPORT.format(table=table_of(found["rates"]), **fleet, **large)


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
