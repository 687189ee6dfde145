"""Three adversaries instead of one, at the paper's size: time, extra cost, privacy kept.

    python benchmarks/adversaries.py --data FOLDER

The ten busiest users of GeoLife (``geolife_beijing_cell_counts.csv`` in the folder), 20 × 15 cells, Hamming cost,
ε = 0.6 per km. Promised against one who knows the prior and two who have 2 and 5 times the evidence on the two
likeliest places: a share of the most that is possible against each. Beside it, the design that promises it against
the first only. Times are of the processor, all threads together. Results hold numbers only.
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
Line = dict[str, float | int | str]


def measured(prior: pg.Prior, label: str, share: float) -> Line:
    """One user: both designs, and what each leaves every adversary."""
    problem = pg.Problem(prior)
    crowd = [pg.Adversary("1"), *(pg.Adversary(f"{k:g}", prior=prior.sharpen(k)) for k in STRENGTHS)]
    promises = {each: share * pg.max_distortion(problem, each) for each in crowd}
    start = process_time()  # of all threads: the machine may have other work
    one = pg.design(problem, epsilon=EPSILON, distortion=promises[crowd[0]])
    middle = process_time()
    several = pg.design(problem, epsilon=EPSILON, distortion=promises)
    end = process_time()
    line: Line = {
        "user": label,
        "cells": int((prior.probabilities > 0).sum()),
        "share": share,
        "one_seconds": middle - start,
        "three_seconds": end - middle,
        "one_cost": one.certificate.cost,
        "three_cost": several.certificate.cost,
        "gap": several.certificate.gap or 0.0,
        "engine": several.certificate.provenance.solver.split(":", maxsplit=1)[0],
    }
    for each in crowd:
        for name, mechanism in (("one", one), ("three", several)):
            line[f"{name}_kept_{each.name}"] = pg.metrics.adversary_error(mechanism, problem, each) / promises[each]
    return line


def table(lines: list[Line]) -> str:
    """The lines as a table for people."""
    kept = [f"{name}_kept_{k:g}" for name in ("one", "three") for k in STRENGTHS]
    heads = ["user", "cells", "share", "one, processor s", "three, processor s", "times", "cost, one", "extra cost, %"]
    heads += [name.replace("_kept_", ", kept against ") for name in kept]
    rows = [
        [
            str(line["user"]),
            str(line["cells"]),
            f"{line['share']:g}",
            f"{line['one_seconds']:.1f}",
            f"{line['three_seconds']:.1f}",
            f"{float(line['three_seconds']) / float(line['one_seconds']):.2f}",
            f"{line['one_cost']:.4f}",
            f"{round(100 * (float(line['three_cost']) / float(line['one_cost']) - 1), 2) + 0.0:.2f}",
            *(f"{100 * float(line[name]):.0f} %" for name in kept),
        ]
        for line in lines
    ]
    texts = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(texts)


def _summary(share: float, lines: list[Line]) -> str:
    """How much longer three take, in the median and all users together."""
    one, three = (np.array([float(each[f"{name}_seconds"]) for each in lines]) for name in ("one", "three"))
    return (
        f"at {share:g} of the largest {np.median(three / one):.2f} in the median, {three.sum() / one.sum():.2f} in all"
    )


def main() -> None:
    """Measure and write both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the counts")
    parser.add_argument("--users", type=int, default=10)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.8])
    parser.add_argument("--note", default="", help="what else the machine did")
    given = parser.parse_args()
    counts = pg.traces.read_counts(given.data / "geolife_beijing_cell_counts.csv")
    chosen = counts.busiest(given.users, GRID)
    kept = RESULTS / "adversaries.json"
    lines: list[Line] = json.loads(kept.read_text())["lines"] if kept.is_file() else []
    lines = [line for line in lines if line["share"] not in given.shares]  # of other shares, from runs before
    for share in given.shares:
        for rank, user in enumerate(chosen, start=1):
            lines.append(measured(counts.prior(GRID, user), f"user {rank}", share))
            print(table(lines[-1:]).splitlines()[-1], flush=True)
    about = f"Measured on {platform.machine()}, Python {platform.python_version()}. {given.note}".strip()
    medians = "; ".join(
        _summary(share, [each for each in lines if each["share"] == share])
        for share in sorted({float(each["share"]) for each in lines})
    )
    text = f"{about}\n\nProcessor time as a multiple of that for one adversary: {medians}.\n\n{table(lines)}\n"
    (RESULTS / "adversaries.md").write_text(text)
    kept.write_text(json.dumps({"about": about, "lines": lines}, indent=1) + "\n")
    print(text)


if __name__ == "__main__":
    main()
