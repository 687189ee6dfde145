"""Known mechanisms for points at equal ε beside the optimal one: cost, the error of attacks, and information."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import isinf
from time import perf_counter

import numpy as np

from privacygames.analysis.adversary_results import aligned
from privacygames.analysis.csv_rows import write_csv
from privacygames.analysis.point_evaluation import PointMetric, PointReport, evaluate_points
from privacygames.beliefs import Prior
from privacygames.designer import design_bounds
from privacygames.display import Displayed, ShownTable
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism
from privacygames.points import (
    PointBaseline,
    PointDesign,
    PointMechanism,
    PointProblem,
    PointSampleable,
    SnappedGrid,
    constant,
    exponential,
    laplace_cost,
    planar_laplace,
    remap,
    snapped,
    uniform,
)
from privacygames.problem import Bounds, Problem, require_epsilon
from privacygames.progress import Progress, ProgressCallback
from privacygames.solvers import SolveOptions
from privacygames.spaces import Area, Grid, Numbers, Space
from privacygames.validation import as_list, is_number

ComparedMechanism = PointSampleable | PointBaseline | Mechanism
"""A mechanism to compare: for points, a known one, or one for the cells of a grid."""

COMPARED_PAIRS = 400
"""Pairs of points at which the log-ratios of each mechanism are measured."""

FEWEST_CELLS, MOST_CELLS = 16, 300
"""Cells of the snapped grid: as many as there are outputs, within these limits."""

MINIMUM_DISTANCE = 0.1
"""Default of the distance that the ε of a snapped grid is stated for, in units of 1/ε."""

RAW = "planar-laplace-any-point"
"""The name of noise that is released as it is."""

HEADINGS = ("mechanism", "epsilon", "measured", "cost", "worst point", "optimal attack", "bits", "exact", "seconds")


@dataclass(frozen=True)
class PointComparisonRow:
    """One mechanism of a comparison for points.

    Attributes:
        mechanism_name: its name.
        seconds: the time to make it; None if it was made before.
        bound: proved lower bound on the cost of every mechanism with the same guarantees; None without a proof.
        report: its cost and privacy.
        note: what has to be known to read the numbers; empty where nothing has.
        mechanism: the mechanism itself.
    """

    mechanism_name: str
    seconds: float | None
    bound: float | None
    report: PointReport
    note: str
    mechanism: PointSampleable | PointBaseline = field(repr=False, compare=False)

    def to_dict(self) -> dict[str, str | float | None]:
        """Plain values by name, one level deep."""
        head: dict[str, str | float | None] = {"mechanism": self.mechanism_name, "note": self.note}
        return head | {"seconds": self.seconds, "bound": self.bound} | self.report.to_dict()


@dataclass(frozen=True)
class PointComparison(Displayed):
    """A comparison of mechanisms for points, in the order of the call.

    Attributes:
        problem: the problem they are measured against.
        rows: the rows.

    >>> line = pg.Interval(0.0, 4.0)
    >>> problem = pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 2.0, 3.0])
    >>> comparison = pg.compare(problem, epsilon=0.5, names=["optimal", "planar-laplace"])
    >>> first, second = (row.report for row in comparison.rows)
    >>> first.epsilon == second.epsilon, first.cost < second.cost
    (True, True)
    """

    problem: PointProblem
    rows: tuple[PointComparisonRow, ...]

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings of the table, with the unit of ε."""
        per = self.rows[0].report.per if self.rows else ""
        return (*HEADINGS[:1], f"epsilon {per}", *HEADINGS[2:])

    def table(self) -> str:
        """The comparison as text, with notes below it.

        ε is the guarantee between any two points, and "measured" the largest log-ratio per unit of distance of pairs
        that were tried. The attack may guess any point; bits and "exact" are about the prior's points.
        """
        text = aligned([self.headings, *map(_cells, self.rows)], texts=(0,))
        notes = [f"{row.mechanism_name}: {row.note}" for row in self.rows if row.note]
        return "\n\n".join([text, "\n".join(notes)] if notes else [text])

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {"rows": [row.to_dict() for row in self.rows]}

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write all values to a CSV file, one line for each row."""
        write_csv(path, [row.to_dict() for row in self.rows])

    def shown(self) -> ShownTable:
        """The table that people see."""
        return ShownTable("Mechanisms for points", self.headings, [_cells(row) for row in self.rows])

    def _records(self) -> list[dict[str, str | float | None]]:
        return [row.to_dict() for row in self.rows]

    def __str__(self) -> str:
        return self.table()


def _cells(row: PointComparisonRow) -> tuple[str, ...]:
    """The cells of a row of the table."""
    report = row.report
    epsilon = "none" if report.epsilon is None else "∞" if isinf(report.epsilon) else f"{report.epsilon:.4g}"
    return (
        row.mechanism_name,
        epsilon,
        "∞" if isinf(report.epsilon_measured) else f"{report.epsilon_measured:.4f}",
        f"{report.cost:.4f}",
        f"{report.worst_cost_seen if report.worst_cost is None else report.worst_cost:.4f}",
        f"{report.attack_error:.4f}",
        f"{report.mutual_information:.3f}",
        f"{report.vulnerability:.0%}",
        "" if row.seconds is None else f"{row.seconds:.2f}",
    )


def compare_points(
    problem: PointProblem,
    mechanisms: Mapping[str, ComparedMechanism | Callable[[], ComparedMechanism]] | None = None,
    *,
    epsilon: float | None = None,
    names: Iterable[str] | None = None,
    minimum_distance: float | None = None,
    metrics: Mapping[str, PointMetric] | None = None,
    progress: ProgressCallback | None = None,
) -> PointComparison:
    """Compare mechanisms for points; see :func:`privacygames.compare`."""
    if mechanisms is not None and not isinstance(mechanisms, Mapping):
        raise InvalidProblem("mechanisms are given by name: a dict from names to mechanisms")
    contenders: dict[str, ComparedMechanism | Callable[[], ComparedMechanism]] = {}
    if epsilon is not None:
        contenders |= _contenders(problem, require_epsilon(epsilon), names, progress)
    elif names is not None or not mechanisms:
        raise InvalidProblem("mechanisms for points are compared at an epsilon, or those that are given: give either")
    contenders |= mechanisms or {}
    distance = minimum_distance
    if distance is None:
        distance = MINIMUM_DISTANCE / (epsilon or 10 * MINIMUM_DISTANCE / max(problem.region.lengths))
    if not (is_number(distance) and 0 < distance < np.inf):
        raise InvalidProblem("minimum_distance must be a positive number")
    rows = []
    for done, (name, source) in enumerate(contenders.items()):
        if progress is not None:
            progress(Progress(job="compare", done=done, total=len(contenders), message=name))
        start = perf_counter()
        mechanism = _made(name, source, problem)
        seconds = perf_counter() - start if callable(source) else None
        report = evaluate_points(mechanism, problem, adversaries=(), metrics=metrics, pairs=COMPARED_PAIRS)
        if name == RAW and epsilon is not None and name not in (mechanisms or {}):
            report = _of_raw_noise(report, problem, epsilon)
        note = _note(name, mechanism, report, distance)
        bound = mechanism.certificate.bound if isinstance(mechanism, PointMechanism) else None
        rows.append(PointComparisonRow(name, seconds, bound, report, note, mechanism))
    return PointComparison(problem, tuple(rows))


def _contenders(
    problem: PointProblem, epsilon: float, names: Iterable[str] | None, progress: ProgressCallback | None
) -> dict[str, Callable[[], ComparedMechanism]]:
    """The design of each known mechanism by name."""
    noise = partial(planar_laplace, problem, epsilon)

    def remapped(make: Callable[[], PointBaseline], *, any_point: bool = False) -> PointBaseline:
        return remap(make(), problem, any_point=any_point)

    fine = partial(noise, fine=True)
    options = SolveOptions(progress=progress)
    known: dict[str, Callable[[], ComparedMechanism]] = {
        "optimal": lambda: PointDesign(problem, Bounds(epsilon=epsilon), options).mechanism(),
        "planar-laplace": noise,
        "planar-laplace+remap": partial(remapped, fine),
        "exponential": partial(exponential, problem, epsilon),
        "exponential+remap": partial(remapped, partial(exponential, problem, epsilon)),
        "snapped-grid": partial(_snapped_grid, problem, epsilon, options),
        RAW: fine,
        f"{RAW}+remap": partial(remapped, fine, any_point=True),
        "uniform": partial(uniform, problem),
        "constant": partial(constant, problem),
    }
    if names is None:
        return known if problem.cost.is_convex else {name: known[name] for name in known if not name.startswith(RAW)}
    chosen = as_list(names, "names")
    for name in chosen:
        if name not in known:
            raise InvalidProblem(f"there is no mechanism {repr(name)[:40]} for points; choose from {', '.join(known)}")
    return {name: known[name] for name in chosen}


def _snapped_grid(problem: PointProblem, epsilon: float, options: SolveOptions) -> SnappedGrid:
    """The optimal mechanism for the cells of a grid, with ε between their centres, as it is used on points.

    The cost of an output for a cell is its average over the prior's points in the cell.
    """
    region = problem.region
    wanted = min(max(len(problem.outputs), FEWEST_CELLS), MOST_CELLS)
    side = float(np.prod(region.lengths) / wanted) ** (1 / region.dimension)
    counts = tuple(max(1, round(length / side)) for length in region.lengths)
    space: Space
    if isinstance(region, Area):
        space = Grid(counts[0], counts[1], region.width, region.height)
    else:
        space = Numbers(region.coordinates(region.lattice(counts))[:, 0].tolist(), unit=region.unit)
    centres = region.lattice(counts)
    steps = np.minimum((problem.prior.xy / np.divide(region.lengths, counts)).astype(np.int64), np.subtract(counts, 1))
    cells = steps @ np.cumprod([1, *counts[:-1]])
    shares = np.bincount(cells, problem.prior.probabilities, minlength=len(space))
    costs = problem.cost.matrix(centres, problem.outputs) if problem.cost.is_convex else np.zeros((len(space), 1))
    sums = np.zeros((len(space), len(problem.outputs)))
    np.add.at(sums, cells, problem.costs * problem.prior.probabilities[:, None])
    costs = np.where(shares[:, None] > 0, sums / np.where(shares > 0, shares, 1.0)[:, None], costs)
    finite = Problem(
        Prior(space, shares),
        cost=costs.T,
        distance="euclidean" if isinstance(region, Area) else "absolute",
        observables=problem.observables,
    )
    return snapped(design_bounds(finite, Bounds(epsilon=epsilon), options=options), region)


def _made(
    name: str, source: ComparedMechanism | Callable[[], ComparedMechanism], problem: PointProblem
) -> PointSampleable | PointBaseline:
    """A mechanism for points from what was given under a name."""
    made = source() if callable(source) else source
    if isinstance(made, Mechanism):
        made = snapped(made, problem.region)
    if not isinstance(made, PointSampleable | PointBaseline):
        raise InvalidProblem(f"{name!r} must be a mechanism for points, or one for the cells of a grid")
    return made


def _of_raw_noise(report: PointReport, problem: PointProblem, epsilon: float) -> PointReport:
    """The report on noise that is released as it is, from that on noise rounded to a fine lattice."""
    cost = laplace_cost(problem, epsilon)
    if cost is None:
        raise InvalidProblem(f"{RAW!r} needs a named cost: no function of the given outputs says what a point costs")
    return replace(report, cost=cost, worst_cost=cost, worst_cost_seen=cost, distortion=None)


def _note(name: str, mechanism: PointSampleable | PointBaseline, report: PointReport, distance: float) -> str:
    """What has to be known to read a row's numbers."""
    if isinstance(mechanism, PointMechanism) and mechanism.certificate.gap is not None:
        return (
            f"optimal on its mesh; no mechanism with its guarantees costs less than {mechanism.certificate.bound:.4f} "
            f"(gap {mechanism.certificate.gap:.1%})"
        )
    if isinstance(mechanism, SnappedGrid) and isinf(mechanism.epsilon):
        unit = report.problem.region.unit
        apart = f"{distance:.3g} {unit}".rstrip()
        return (
            "the guarantee is between cells. Between points it is infinite, because close points on two sides of a "
            f"border differ as much as their cells; between points at least {apart} apart epsilon is "
            f"{mechanism.epsilon_apart(distance):.4g} {report.per}"
        )
    if name == RAW:
        return (
            "the noisy point itself is released; attack, bits and exact are for an adversary who sees it rounded to "
            f"a lattice of {len(mechanism.outputs)} points, and learn more from the point itself"
        )
    if name == f"{RAW}+remap":
        return "outputs are the best of all points, not the problem's"
    return ""
