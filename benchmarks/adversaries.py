"""Designs against three adversaries and against one, at the paper's size: time, cost and realised errors.

    python benchmarks/adversaries.py --data FOLDER

The ten busiest users of GeoLife (``geolife_beijing_cell_counts.csv`` in the folder), 20 × 15 cells, Hamming cost,
ε = 0.6 per km. One adversary knows the prior, two have 2 and 5 times the evidence on the likeliest places; the design
guarantees a fraction of the largest possible error of each. It is compared with the design whose guarantee is against
the first only. Times are processor times of all threads together. Result files contain numbers only, no visits.
"""

import argparse
import json
import platform
from pathlib import Path
from time import process_time

import numpy as np

import privacygames as pg

RESULTS = Path(__file__).parent / "results"
GRID = pg.Grid(20, 15, 15.0, 8.0)
EPSILON, STRENGTHS = 0.6, (2.0, 5.0)
Record = dict[str, float | int | str]


def measure_user(prior: pg.Prior, label: str, share: float) -> Record:
    """Measure both designs for one user, and the error of every adversary under each."""
    problem = pg.Problem(prior)
    adversaries = [pg.Adversary("1"), *(pg.Adversary(f"{k:g}", prior=prior.sharpen(k)) for k in STRENGTHS)]
    guarantees = {adversary: share * pg.max_distortion(problem, adversary) for adversary in adversaries}
    start = process_time()  # not wall time: the machine may run other work
    single = pg.design(problem, epsilon=EPSILON, distortion=guarantees[adversaries[0]])
    middle = process_time()
    joint = pg.design(problem, epsilon=EPSILON, distortion=guarantees)
    end = process_time()
    record: Record = {
        "user": label,
        "cells": int((prior.probabilities > 0).sum()),
        "share": share,
        "one_seconds": middle - start,
        "three_seconds": end - middle,
        "one_cost": single.certificate.cost,
        "three_cost": joint.certificate.cost,
        "gap": joint.certificate.gap or 0.0,
        "engine": joint.certificate.provenance.solver.split(":", maxsplit=1)[0],
    }
    for adversary in adversaries:
        for name, mechanism in (("one", single), ("three", joint)):
            record[f"{name}_kept_{adversary.name}"] = (
                pg.metrics.adversary_error(mechanism, problem, adversary) / guarantees[adversary]
            )
    return record


def table(records: list[Record]) -> str:
    """Format the records as a Markdown table."""
    columns = [f"{name}_kept_{k:g}" for name in ("one", "three") for k in STRENGTHS]
    headings = [
        "user",
        "cells",
        "share",
        "one, processor s",
        "three, processor s",
        "times",
        "cost, one",
        "extra cost, %",
    ]
    headings += [name.replace("_kept_", ", kept against ") for name in columns]
    rows = [
        [
            str(record["user"]),
            str(record["cells"]),
            f"{record['share']:g}",
            f"{record['one_seconds']:.1f}",
            f"{record['three_seconds']:.1f}",
            f"{float(record['three_seconds']) / float(record['one_seconds']):.2f}",
            f"{record['one_cost']:.4f}",
            f"{round(100 * (float(record['three_cost']) / float(record['one_cost']) - 1), 2) + 0.0:.2f}",
            *(f"{100 * float(record[name]):.0f} %" for name in columns),
        ]
        for record in records
    ]
    table_lines = [
        f"| {' | '.join(headings)} |",
        "|---" * len(headings) + "|",
        *(f"| {' | '.join(row)} |" for row in rows),
    ]
    return "\n".join(table_lines)


def _summary(share: float, records: list[Record]) -> str:
    """Format the ratio of times for three adversaries and one, in the median and over all users."""
    one, three = (np.array([float(record[f"{name}_seconds"]) for record in records]) for name in ("one", "three"))
    return (
        f"at {share:g} of the largest {np.median(three / one):.2f} in the median, {three.sum() / one.sum():.2f} in all"
    )


def main() -> None:
    """Measure all users, and write the table in JSON and Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the counts")
    parser.add_argument("--users", type=int, default=10)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.8])
    parser.add_argument("--note", default="", help="what else the machine did")
    options = parser.parse_args()
    counts = pg.traces.read_counts(options.data / "geolife_beijing_cell_counts.csv")
    users = counts.busiest(options.users, GRID)
    path = RESULTS / "adversaries.json"
    records: list[Record] = json.loads(path.read_text())["lines"] if path.is_file() else []
    records = [
        record for record in records if record["share"] not in options.shares
    ]  # keep those of other shares from earlier runs
    for share in options.shares:
        for rank, user in enumerate(users, start=1):
            records.append(measure_user(counts.prior(GRID, user), f"user {rank}", share))
            print(table(records[-1:]).splitlines()[-1], flush=True)
    description = f"Measured on {platform.machine()}, Python {platform.python_version()}. {options.note}".strip()
    medians = "; ".join(
        _summary(share, [record for record in records if record["share"] == share])
        for share in sorted({float(record["share"]) for record in records})
    )
    text = f"{description}\n\nProcessor time as a multiple of that for one adversary: {medians}.\n\n{table(records)}\n"
    (RESULTS / "adversaries.md").write_text(text)
    path.write_text(json.dumps({"about": description, "lines": records}, indent=1) + "\n")
    print(text)


if __name__ == "__main__":
    main()
