"""The setting of AIPO (arXiv 2601.09946) for Rome, imitated: a grid, AIPO and mechanisms for points at ε = 1 per km.

``python benchmarks/points_rome.py`` writes the table in docs/study/points.md, which says what is published, what was
assumed and what could not be imitated. AIPO is written anew from the description in its repository: linear programs
at the corners of cells of 4.77 km with half of a share of ε for each axis, and geometric means between them.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array, identity, kron, vstack

import privacygames as pg
from marked_tables import STUDY, replace_table
from privacygames import Area, PointPrior, PointProblem
from privacygames.points import Mesh
from privacygames.points.problem import norms

Array = NDArray[np.float64]
Rows = Callable[[Array], Array]
"""Probabilities of the outputs at points: (points, 2) to (points, outputs)."""

EPSILON = 1.0
UNIFORM_LOSS = 8.59
"""Mean loss in km of an output chosen evenly at random, as published (the row of TEM): it fixes the square's side."""

SIDE = UNIFORM_LOSS / 0.521405
"""Side in km of the square in which two random points are that far apart on average."""

LOCATIONS = 36
"""Locations along each axis: the evenly spread secrets, a multiple of both grids' cells."""

OUTPUTS, REPEATS = 20, 5
GRID, BOUND_GRID, ANCHOR_SIDE, SHARES = 18, 12, 4.77, 5
"""Cells along each axis of the grid and of the bound, AIPO's cells in km and divisions of ε, as in its repository."""

FINE = 11
"""Cells along each axis of the finer mesh for points."""

VIOLATION, SAMPLED = 0.01, 1000
"""Excess of a probability that the repository counts as a violation; how many random points are compared."""

APART = 0.1
"""Distance in km of the pairs whose log-ratios are shown."""


def finite_design(costs: Array, distances: Array, prior: Array) -> pg.Mechanism:
    """The optimal mechanism of cells; costs are (outputs, cells)."""
    space = pg.Space.from_distances([f"cell {number}" for number in range(len(prior))], distances)
    observables = pg.Categories([f"output {number}" for number in range(len(costs))])
    return pg.design(pg.Problem(pg.Prior(space, prior), costs, distances, distances, observables), epsilon=EPSILON)


@dataclass(frozen=True)
class Rome:
    """One draw of the setting: locations, and outputs among them.

    Attributes:
        xy: the locations, evenly spread, (locations, 2).
        outputs: the outputs, (outputs, 2).
    """

    xy: Array
    outputs: Array

    @classmethod
    def draw(cls, seed: int) -> "Rome":
        """Outputs at random locations."""
        xy = Area(SIDE, SIDE).lattice((LOCATIONS, LOCATIONS))
        return cls(xy, xy[np.random.default_rng(seed).choice(len(xy), OUTPUTS, replace=False)])

    @property
    def losses(self) -> Array:
        """The loss of each output at each location, (locations, outputs)."""
        return norms(self.xy, self.outputs)

    def cost(self, rows: Rows) -> float:
        """The mean loss of a mechanism."""
        return float((rows(self.xy) * self.losses).sum() / len(self.xy))


def cells_of(xy: Array, count: int) -> NDArray[np.int64]:
    """The cell of each point in a grid of ``count`` × ``count``."""
    column, row = np.minimum((xy / SIDE * count).astype(np.int64), count - 1).T
    return np.asarray(row * count + column)


def grid_mechanism(rome: Rome) -> Rows:
    """The linear program over cells; each point has the row of its cell."""
    cell = cells_of(rome.xy, GRID)
    weights = csr_array((np.ones(len(cell)), (cell, np.arange(len(cell)))))
    counts = weights.sum(axis=1)
    centres = Area(SIDE, SIDE).lattice((GRID, GRID))
    mechanism = finite_design((weights @ rome.losses / counts[:, None]).T, norms(centres, centres), counts / len(cell))
    return lambda xy: mechanism.probabilities[cells_of(xy, GRID)]


def published_bound(rome: Rome) -> float:
    """AIPO's lower bound: each cell's least loss, and the largest distance between two cells."""
    cell = cells_of(rome.xy, BOUND_GRID)
    least = np.stack([rome.losses[cell == number].min(axis=0) for number in range(BOUND_GRID**2)])
    place = np.stack(np.divmod(np.arange(BOUND_GRID**2), BOUND_GRID), axis=1)
    away = np.hypot(*(np.abs(place[:, None] - place) + 1).transpose(2, 0, 1)) * (SIDE / BOUND_GRID)
    np.fill_diagonal(away, 0.0)
    return finite_design(least.T, away, np.full(len(least), 1 / len(least))).certificate.cost


def corner_weights(xy: Array, count: int) -> Array:
    """Bilinear weights of the corners of AIPO's cells at points, (points, corners)."""
    cell = np.minimum((xy / ANCHOR_SIDE).astype(np.int64), count - 2)
    share = xy / ANCHOR_SIDE - cell
    weights = np.zeros((len(xy), count**2))
    for corner in np.ndindex(2, 2):
        of = np.prod(np.where(corner, share, 1 - share), axis=1)
        weights[np.arange(len(of)), (cell[:, 1] + corner[1]) * count + cell[:, 0] + corner[0]] = of
    return weights


def aipo(rome: Rome) -> Rows:
    """Rows at the corners of cells by a linear program, and normalised geometric means between them."""
    count = int(np.ceil(SIDE / ANCHOR_SIDE)) + 1
    unit = identity(count, format="csr")
    costs = corner_weights(rome.xy, count).T @ rome.losses / len(rome.xy)

    def for_share(number: int) -> Rows:
        first = EPSILON * number / SHARES
        ratios = []
        for axis, epsilon in enumerate((first, np.sqrt(EPSILON**2 - first**2))):
            bound = np.exp(epsilon / 2 * ANCHOR_SIDE)
            for along in (unit[1:] - bound * unit[:-1], unit[:-1] - bound * unit[1:]):
                ratios.append(kron(along, unit) if axis else kron(unit, along))
        solution = linprog(
            costs.ravel(),
            A_ub=csr_array(kron(vstack(ratios), identity(OUTPUTS))),
            b_ub=np.zeros(sum(each.shape[0] for each in ratios) * OUTPUTS),
            A_eq=csr_array(kron(identity(count**2), np.ones((1, OUTPUTS)))),
            b_eq=np.ones(count**2),
            bounds=(1e-6, 1.0),
            method="highs-ipm",
        )
        logarithms = np.log(solution.x.reshape(-1, OUTPUTS))

        def rows(xy: Array) -> Array:
            means = np.exp(corner_weights(xy, count) @ logarithms)
            return np.asarray(means / means.sum(axis=1, keepdims=True))

        return rows

    return min((for_share(number) for number in range(1, SHARES)), key=rome.cost)


def largest_ratio(rows: Rows, rng: np.random.Generator, count: int = 50_000) -> float:
    """The largest log-ratio of two random points :data:`APART` from each other."""
    first, angle = rng.uniform(0, SIDE, (count, 2)), rng.uniform(0, 2 * np.pi, count)
    second = first + APART * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    inside = ((second >= 0) & (second <= SIDE)).all(axis=1)
    return float(np.abs(np.log(rows(first[inside]) / rows(second[inside]))).max())


def violations(rows: Rows, rng: np.random.Generator) -> float:
    """The repository's measure: the share in per cent of pairs and outputs with an excess above 0.01, both ways."""
    xy = rng.uniform(0, SIDE, (SAMPLED, 2))
    probabilities, allowed = rows(xy), np.exp(EPSILON * norms(xy, xy))
    broken = sum(
        int((row - allowed[at][:, None] * probabilities > VIOLATION).sum()) for at, row in enumerate(probabilities)
    )
    return 100 * 2 * broken / (SAMPLED * (SAMPLED - 1) * OUTPUTS)


def measured(name: str, rome: Rome, seed: int, make: Callable[[Rome], Rows]) -> dict[str, float]:
    """One mechanism: its cost, and how it keeps the guarantee."""
    began = perf_counter()
    rows = make(rome)
    values = {
        "cost": rome.cost(rows),
        "seconds": round(perf_counter() - began, 1),
        "largest_ratio": largest_ratio(rows, np.random.default_rng(seed)),
        "violations_percent": violations(rows, np.random.default_rng(seed)),
    }
    print(seed, name, {key: round(value, 3) for key, value in values.items()}, flush=True)
    return values


def one_repeat(seed: int) -> dict[str, dict[str, float]]:
    """All methods on one draw of the outputs."""
    rome, area = Rome.draw(seed), Area(SIDE, SIDE)
    problem = PointProblem(PointPrior(area, rome.xy), rome.outputs)
    mechanisms = []

    def points(_: Rome) -> Rows:
        mechanisms.append(pg.design(problem, epsilon=EPSILON))
        return mechanisms[0].probabilities

    def fine(_: Rome) -> Rows:
        mesh = Mesh(area, FINE, FINE)
        return pg.points.design(problem.with_mesh(mesh), epsilon=EPSILON, prove_bound=False).probabilities

    return {
        "even": {"cost": float(rome.losses.mean())},
        "grid": measured("grid", rome, seed, grid_mechanism),
        "AIPO": measured("AIPO", rome, seed, aipo),
        "points": measured("points", rome, seed, points),
        "fine": measured("points, fine mesh", rome, seed, fine),
        "published bound": {"cost": published_bound(rome)},
        "bound": {"cost": mechanisms[0].certificate.bound or 0.0},
    }


SHOWN = {
    "even": ("an output evenly at random (TEM in the publication)", 8.59, None),
    "grid": (f"linear program over {GRID} × {GRID} cells", 2.12, 1.726),
    "AIPO": ("AIPO", 3.18, 0.0),
    "points": ("**mechanism for points**, default mesh", None, None),
    "fine": (f"**mechanism for points**, mesh of {FINE} × {FINE} cells", None, None),
    "published bound": ("lower bound of the published kind", 1.73, None),
    "bound": ("lower bound on every mechanism for points (ours)", None, None),
}
"""What a row is called, its published cost and its published violations in per cent."""


def main() -> None:
    """Run the repeats; write the numbers and the table."""
    repeats = [one_repeat(seed) for seed in range(1, REPEATS + 1)]
    (STUDY / "points-rome.json").write_text(json.dumps({"side_km": SIDE, "repeats": repeats}, indent=2) + "\n")

    def mean(name: str, value: str, form: str) -> str:
        values = [repeat[name][value] for repeat in repeats if value in repeat[name]]
        return format(float(np.mean(values)), form) if values else ""

    apart = f"largest log-ratio {APART * 1000:.0f} m apart (allowed: {EPSILON * APART:g})"
    lines = [
        f"| | cost, published | cost, imitated | violations, published | violations, imitated | {apart} |",
        "|---|---|---|---|---|---|",
    ]
    for name, (words, cost, broken) in SHOWN.items():
        published = "" if cost is None else f"{cost:.2f}", "" if broken is None else f"{broken:.2f} %"
        violated = mean(name, "violations_percent", ".2f")
        values = published[0], mean(name, "cost", ".2f"), published[1], violated and f"{violated} %"
        lines.append(f"| {' | '.join([words, *values, mean(name, 'largest_ratio', '.3f')])} |")
    replace_table(STUDY / "points.md", "rome", lines)


if __name__ == "__main__":
    main()
