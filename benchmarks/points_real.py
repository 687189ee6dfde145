"""Points against cells for real people, at the same ε: cost, distance to the best possible, and attacks.

``python benchmarks/points_real.py [--data FOLDER] [--users 10] [--sets geolife_beijing,…]`` writes
docs/study/points.json, the table in docs/study/points.md and its figure; sets that are not measured keep their numbers.
``--page`` draws all again from the numbers that are there. The data is not part of this project: without its folder the
script says so and changes nothing.
"""

import argparse
import csv
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

import privacygames as pg
from marked_tables import STUDY, replace_table
from privacygames import Area, Grid, PointPrior, PointProblem
from privacygames.points import best_guesses
from privacygames.points.problem import norms

Array = NDArray[np.float64]

EPSILON = 0.6
COLUMNS, ROWS = 20, 15
SETS = {
    "geolife_beijing": "GeoLife, Beijing",
    "foursquare_nyc": "Foursquare, New York",
    "usp_saopaulo": "phones, São Paulo",
}
RECORDED = "usp_saopaulo"
"""The set whose coordinates are there as they were recorded; of the others there are counts per cell."""

COLOURS = {"cells": "#999999", "points": "#0072b2", "bound": "#d55e00"}


@dataclass(frozen=True)
class Person:
    """What the adversary knows about a person.

    Attributes:
        grid: the cells, whose centres are the outputs.
        prior: over points.
    """

    grid: Grid
    prior: PointPrior


def data_folder(given: Path | None) -> Path | None:
    """The folder of the data, if there is one."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = given or Path(os.environ.get("PRIVACYGAMES_DATA", beside))
    return folder if folder.is_dir() else None


def people(folder: Path, name: str, count: int) -> Iterator[Person]:
    """The recommended people of a set.

    A visited cell stands for one place, at a random position that is the same for everybody: people return to places,
    and places are not the centres of cells.
    """
    window = json.loads((folder / "windows.json").read_text())[name]
    box = tuple(window["bounds_west_south_east_north"])
    grid, area = Grid.over(box, columns=COLUMNS, rows=ROWS), Area.over(box)
    low, high = np.array(box[:2]), np.array(box[2:])
    inside = np.random.default_rng(30).random((COLUMNS * ROWS, 2))
    corner = np.stack(np.divmod(np.arange(COLUMNS * ROWS), COLUMNS)[::-1], axis=1)
    places = low + (corner + inside) / (COLUMNS, ROWS) * (high - low)
    for user in window["users10"][:count]:
        if name == RECORDED:
            with (folder / f"{name}_window.csv").open() as file:
                visits = [(float(row["lon"]), float(row["lat"])) for row in csv.DictReader(file) if row["user"] == user]
            yield Person(grid, PointPrior(area, visits))
            continue
        with (folder / f"{name}_cell_counts.csv").open() as file:
            counts = {int(row["cell"]): float(row["visits"]) for row in csv.DictReader(file) if row["user"] == user}
        yield Person(grid, PointPrior(area, places[list(counts)], list(counts.values())))


def cell_mechanism(person: Person, area: Area) -> tuple[pg.Mechanism, NDArray[np.int64]]:
    """The optimal mechanism of cells, and the cell of each point of the prior; costs are means over a cell's points."""
    centres = area.project(person.grid.degrees)
    cell = person.grid.locate(person.prior.points, outside="nearest")
    share = np.bincount(cell, person.prior.probabilities, minlength=len(centres))
    costs = norms(centres, centres)
    away = norms(centres, person.prior.xy) * person.prior.probabilities
    for number in np.flatnonzero(share).tolist():
        costs[:, number] = away[:, cell == number].sum(axis=1) / share[number]
    problem = pg.Problem(pg.Prior(person.grid, share), costs, distance="euclidean")
    return pg.design(problem, epsilon=EPSILON), cell


def border_ratio(mechanism: pg.Mechanism) -> float:
    """The largest log-ratio of two points on both sides of a border of cells."""
    given = mechanism.probabilities[:, mechanism.probabilities.max(axis=0) > 0]
    with np.errstate(divide="ignore"):
        table = np.log(given).reshape(ROWS, COLUMNS, -1)
    return max(float(np.abs(np.diff(table, axis=axis)).max()) for axis in (0, 1))


def error(masses: Array, prior: PointPrior) -> float:
    """The expected error of the best attack after an output, whose guess may be any point."""
    return best_guesses(masses, prior.xy).total_lower


def measured(person: Person) -> dict[str, float]:
    """Both mechanisms of one person, in km."""
    prior, area = person.prior, person.prior.region
    assert isinstance(area, Area)
    began = perf_counter()
    problem = PointProblem(prior, pg.Places(person.grid.degrees, degrees=True))
    points = pg.design(problem, epsilon=EPSILON)
    middle = perf_counter()
    cells, cell = cell_mechanism(person, area)
    certificate = points.certificate
    assert certificate.bound is not None
    assert certificate.gap is not None
    rows = cells.probabilities[cell]
    return {
        "places": len(prior),
        "blind": error(prior.probabilities[None], prior),
        "controls": points.mesh.controls,
        "cost_points": certificate.cost,
        "bound": certificate.bound,
        "gap": certificate.gap,
        "error_points": certificate.verification.distortion,
        "seconds_points": round(middle - began, 1),
        "cost_cells": float((rows * norms(prior.xy, problem.outputs) * prior.probabilities[:, None]).sum()),
        "error_cells": error(rows.T * prior.probabilities, prior),
        "border_ratio": border_ratio(cells),
        "seconds_cells": round(perf_counter() - middle, 1),
    }


def table(results: dict[str, Any]) -> list[str]:
    """Medians over the people of each set, and the range where it says something."""
    lines = [
        "| | places | cost, cells | cost, points | points / cells | gap to every mechanism | "
        "error after an output, cells | points | without one | largest log-ratio one metre apart, cells | points |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, rows in results["people"].items():
        column = {key: np.array([row[key] for row in rows]) for key in rows[0]}
        ratio = column["cost_points"] / column["cost_cells"]
        middle = {key: float(np.median(values)) for key, values in column.items()}
        lines.append(
            f"| {SETS[name]} ({len(rows)}) | {middle['places']:.0f} | {middle['cost_cells']:.2f} | "
            f"{middle['cost_points']:.2f} | {np.median(ratio):.3f} ({ratio.min():.3f} to {ratio.max():.3f}) | "
            f"{middle['gap']:.1%} ({column['gap'].min():.1%} to {column['gap'].max():.1%}) | "
            f"{middle['error_cells']:.2f} | {middle['error_points']:.2f} | {middle['blind']:.2f} | "
            f"{column['border_ratio'].max():.2f} | {EPSILON / 1000:.4f} |"
        )
    return lines


def draw(results: dict[str, Any]) -> None:
    """For every person the cost of points, and what any mechanism for points costs at least, relative to cells."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MultipleLocator, PercentFormatter

    sets = results["people"]
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    axes = figure.subplots(1, len(sets), sharey=True, squeeze=False)[0]
    for axis, (name, rows) in zip(axes, sets.items(), strict=True):
        values = {key: np.array([row[key] / row["cost_cells"] - 1 for row in rows]) for key in ("cost_points", "bound")}
        order, at = np.argsort(values["cost_points"]), np.arange(1, len(rows) + 1)
        points, bound = values["cost_points"][order], values["bound"][order]
        axis.axhline(0.0, color=COLOURS["cells"], linewidth=2, label="cells: guaranteed between centres only", zorder=1)
        axis.vlines(at, bound, points, color="#cccccc", linewidth=3, zorder=2)
        axis.scatter(at, points, s=30, color=COLOURS["points"], label="points: guaranteed between any two", zorder=3)
        axis.scatter(
            at, bound, marker="_", s=60, color=COLOURS["bound"], label="no mechanism for points costs less", zorder=3
        )
        axis.set_title(SETS[name], fontsize=10)
        axis.set_xticks(at)
        axis.set_xlabel("person")
        axis.grid(axis="y", color="#eeeeee")
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("cost compared with cells")
    axes[0].yaxis.set_major_locator(MultipleLocator(0.02))
    axes[0].yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(STUDY / "points.png", dpi=130)


def main() -> None:
    """Measure, or only write the page again."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder of the data; by default ../shared/data")
    parser.add_argument("--users", type=int, default=10, help="people of each set")
    parser.add_argument("--sets", default=",".join(SETS), help="which sets")
    parser.add_argument("--page", action="store_true", help="only write table and figure again")
    given = parser.parse_args()
    numbers = STUDY / "points.json"
    if not given.page:
        folder = data_folder(given.data)
        if folder is None:
            sys.exit("there is no folder of data here: give --data, or set PRIVACYGAMES_DATA")
        before = json.loads(numbers.read_text())["people"] if numbers.exists() else {}
        for name in given.sets.split(","):
            before[name] = []
            for person in people(folder, name, given.users):
                before[name].append(measured(person))
                print(name, len(before[name]), before[name][-1], flush=True)
            ordered = {key: before[key] for key in SETS if key in before}
            content = {"epsilon_per_km": EPSILON, "outputs": COLUMNS * ROWS, "people": ordered}
            numbers.write_text(json.dumps(content, indent=1) + "\n")
    results = json.loads(numbers.read_text())
    replace_table(STUDY / "points.md", "people", table(results))
    draw(results)


if __name__ == "__main__":
    main()
