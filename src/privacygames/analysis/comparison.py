"""``compare`` and ``trade_off``: cost, privacy and design time of several mechanisms in one table."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, overload

from privacygames.analysis.adversary_results import ADVERSARY_HEADINGS, adversary_cells, aligned
from privacygames.analysis.calibration import MechanismFactory, named_baseline
from privacygames.analysis.comparison_rows import ComparisonJob, ComparisonRow, Target, compare_in_jobs
from privacygames.analysis.csv_rows import write_csv
from privacygames.analysis.evaluation import Metric
from privacygames.analysis.formatting import format_percent
from privacygames.analysis.point_comparison import ComparedMechanism, PointComparison, compare_points
from privacygames.analysis.point_evaluation import PointMetric
from privacygames.beliefs import Prior
from privacygames.display import Displayed, ShownTable
from privacygames.errors import InvalidProblem
from privacygames.jobs import Scheduler
from privacygames.mechanism import Mechanism
from privacygames.points import PointProblem
from privacygames.problem import ANY_PAIR, Adversary, Problem, distinguishability_scale
from privacygames.progress import ProgressCallback
from privacygames.validation import as_list, require_instance

INFORMED, IGNORANT = "knows the prior", "knows nothing"
"""Names of the default adversaries."""

TABLE_HEADINGS = ("mechanism", *ADVERSARY_HEADINGS)

Adversaries = Mapping[str, Prior | Adversary] | Iterable[Adversary] | None
"""Adversaries to compare under: priors by name, or adversaries of type ``Adversary``."""


@dataclass(frozen=True)
class Comparison(Displayed):
    """A comparison of mechanisms: one row for each mechanism and adversary, in the order of the call.

    Attributes:
        problem: the problem they are measured against.
        rows: the rows.
        target_kind: on a trade-off curve, what the mechanisms were calibrated to: ``"epsilon"`` or ``"distortion"``.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> comparison = pg.compare(problem, {"constant": pg.baselines.constant(problem)})
    >>> [row.adversary for row in comparison.rows]
    ['knows the prior', 'knows nothing']
    """

    problem: Problem
    rows: tuple[ComparisonRow, ...]
    target_kind: str | None = None

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings of the table, with the unit of ε."""
        per = distinguishability_scale(self.problem).per(self.rows[0].report.within if self.rows else None)
        mechanism_headings = ("mechanism", "cost", "worst", f"epsilon {per}", ANY_PAIR)
        return (*mechanism_headings, "adversary", "optimal", "Bayesian", "exact", "seconds")

    def _cells(self) -> list[tuple[str, ...]]:
        """The cells of the table; those that do not depend on the adversary are in a mechanism's first row only."""
        lines: list[tuple[str, ...]] = []
        previous: ComparisonRow | None = None
        for row in self.rows:
            repeated = previous is not None and previous.mechanism is row.mechanism
            report = row.report
            epsilon = report.epsilon if report.epsilon_within is None else report.epsilon_within
            epsilons = (f"{epsilon:.4f}", f"{report.any_pair:.4f}") if report.epsilon_guaranteed else ("none", "")
            mechanism_cells = (row.label, f"{report.cost:.4f}", f"{report.worst_cost:.4f}", *epsilons)
            attack_cells = (
                row.adversary,
                f"{report.distortion:.4f}",
                f"{report.distortion_bayesian:.4f}",
                format_percent(report.accuracy),
            )
            time = "" if repeated or row.seconds is None else f"{row.seconds:.2f}"
            lines.append((*(("",) * len(mechanism_cells) if repeated else mechanism_cells), *attack_cells, time))
            previous = row
        return lines

    def table(self) -> str:
        """The comparison as text: costs, realised ε, errors of the optimal and the Bayesian attack, seconds."""
        first = aligned([self.headings, *self._cells()], texts=(0, 5))
        adversary_results = self._adversary_cells()
        return (
            first
            if not adversary_results
            else f"{first}\n\n{aligned([TABLE_HEADINGS, *adversary_results], texts=(0, 1))}"
        )

    def _adversary_cells(self) -> list[tuple[str, ...]]:
        """Mechanism × adversary × (guaranteed, realised, best possible), for individual adversaries."""
        lines: list[tuple[str, ...]] = []
        previous: Mechanism | None = None
        for row in self.rows:
            if row.mechanism is not previous:
                names = [row.label] + [""] * len(row.report.adversary_results)
                lines += [
                    (name, *adversary_cells(result))
                    for name, result in zip(names, row.report.adversary_results, strict=False)
                ]
            previous = row.mechanism
        return lines

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {"rows": [row.to_dict() for row in self.rows]}

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write all values to a CSV file, one line for each row."""
        write_csv(path, [row.to_dict() for row in self.rows])

    def shown(self) -> ShownTable:
        """The table that people see."""
        caption = f"Mechanisms for {self.problem.shape[0]} secrets"
        return ShownTable(caption, self.headings, self._cells(), texts=(5,))

    def _records(self) -> list[dict[str, str | float | None]]:
        return [row.to_dict() for row in self.rows]

    def __str__(self) -> str:
        return self.table()


@overload
def compare(
    problem: Problem,
    mechanisms: Mapping[str, Mechanism | MechanismFactory],
    *,
    adversaries: Adversaries = None,
    within: float | None = None,
    metrics: Mapping[str, Metric] | None = None,
    jobs: int | None = 1,
    scheduler: Scheduler | None = None,
    progress: ProgressCallback | None = None,
) -> Comparison: ...
@overload
def compare(
    problem: PointProblem,
    mechanisms: Mapping[str, ComparedMechanism | Callable[[], ComparedMechanism]] | None = None,
    *,
    epsilon: float | None = None,
    names: Iterable[str] | None = None,
    minimum_distance: float | None = None,
    metrics: Mapping[str, PointMetric] | None = None,
    progress: ProgressCallback | None = None,
) -> PointComparison: ...
def compare(
    problem: Problem | PointProblem,
    mechanisms: Mapping[str, Any] | None = None,
    *,
    adversaries: Adversaries = None,
    within: float | None = None,
    metrics: Mapping[str, Any] | None = None,
    jobs: int | None = 1,
    scheduler: Scheduler | None = None,
    progress: ProgressCallback | None = None,
    epsilon: float | None = None,
    names: Iterable[str] | None = None,
    minimum_distance: float | None = None,
) -> Comparison | PointComparison:
    """Compare the cost, privacy and design time of mechanisms against the same adversaries.

    For a :class:`privacygames.PointProblem` give ``epsilon``: the optimal mechanism and known ones are compared, all
    with this guarantee between any two points; and a mechanism for the cells of a grid, which has it between cells.

    Args:
        problem: the problem that defines their cost and privacy.
        mechanisms: by name, a mechanism, or a function without arguments that makes one and is timed, such as
            :func:`privacygames.calibrated_baselines` returns.
        adversaries: the prior of each adversary by name; by default one who knows the problem's prior, and one to whom
            every secret is equally likely. Costs and errors are averaged over the problem's prior. Adversaries of type
            :class:`privacygames.Adversary`, in a list or among those given by name, are measured as well, each with
            their own prior and errors.
        within: report ε in the threshold form.
        metrics: further metrics by name, as in :func:`privacygames.evaluate`.
        jobs: number of processes that make and measure mechanisms; None for one for each processor.
        scheduler: a Dask cluster to do so on instead: the address of its scheduler, a ``dask.distributed.Client``, or a
            cluster such as ``LocalCluster``.
        progress: called with a :class:`privacygames.Progress` before each mechanism is made (after, in other
            processes); its message is the name.
        epsilon: for points: ε per unit of distance of the known mechanisms.
        names: for points: only these: ``"optimal"``, ``"planar-laplace"`` (the noisy point is rounded to the nearest
            output), ``"planar-laplace+remap"`` (to the best one), ``"exponential"``, ``"exponential+remap"``,
            ``"snapped-grid"`` (optimal between the cells of a grid), ``"planar-laplace-any-point"`` (the noisy point
            itself), ``"planar-laplace-any-point+remap"`` (the best of all points), ``"uniform"``, ``"constant"``.
        minimum_distance: for points: for a snapped grid, which guarantees no ε between close points, its ε between
            points at least this far apart is stated; by default 0.1/ε.

    >>> problem = pg.Problem(pg.Prior.from_counts(pg.Categories(["flu", "cold", "none"]), [1, 2, 3]))
    >>> mechanisms = {"optimal": pg.design(problem, epsilon=1.0), "uniform": pg.baselines.uniform(problem)}
    >>> for row in pg.compare(problem, mechanisms, adversaries={"informed": problem.prior}).rows:
    ...     print(f"{row.label}: cost {row.report.cost:.2f}")
    optimal: cost 0.39
    uniform: cost 0.67
    """
    if isinstance(problem, PointProblem):
        if adversaries is not None or within is not None:
            raise InvalidProblem("adversaries and within are for secrets that are cells or labels, not for points")
        if jobs != 1 or scheduler is not None:
            raise InvalidProblem("jobs and scheduler are for secrets that are cells or labels, not for points")
        return compare_points(
            problem,
            mechanisms,
            epsilon=epsilon,
            names=names,
            minimum_distance=minimum_distance,
            metrics=metrics,
            progress=progress,
        )
    if not (epsilon is None and names is None and minimum_distance is None):
        raise InvalidProblem(
            "epsilon, names and minimum_distance are for points: give the mechanisms that calibrated_baselines returns"
        )
    require_instance(problem, Problem, "the problem")
    if not isinstance(mechanisms, Mapping):
        raise InvalidProblem("mechanisms are given by name: a dict from names to mechanisms")
    if not mechanisms:
        raise InvalidProblem("there is nothing to compare: give at least one mechanism")
    priors, individuals = _split_adversaries(problem, adversaries)
    made = [
        ComparisonJob(number, problem, name, source, None, priors, individuals, within, metrics)
        for number, (name, source) in enumerate(mechanisms.items())
    ]
    return Comparison(problem, compare_in_jobs(made, jobs, scheduler, progress))


def trade_off(
    problem: Problem,
    *,
    epsilons: Iterable[float] = (),
    distortions: Iterable[float] = (),
    names: Iterable[str] = ("optimal",),
    adversaries: Adversaries = None,
    within: float | None = None,
    metrics: Mapping[str, Metric] | None = None,
    jobs: int | None = 1,
    scheduler: Scheduler | None = None,
    progress: ProgressCallback | None = None,
) -> Comparison:
    """The trade-off between privacy and cost, of mechanisms calibrated to each of several ε or distortions.

    Args:
        problem: the problem of all the mechanisms.
        epsilons: the ε to calibrate to; or
        distortions: the distortion privacy to calibrate to.
        names: the mechanisms, as in :func:`privacygames.calibrated_baselines`.
        adversaries: as in :func:`compare`.
        within: the threshold form of ε, as in :func:`privacygames.calibrated_baselines`.
        metrics: as in :func:`compare`.
        jobs: as in :func:`compare`.
        scheduler: as in :func:`compare`.
        progress: called with a :class:`privacygames.Progress` before each mechanism is made (after, in other
            processes); its message names it.

    >>> ages = pg.Numbers([20, 30, 40], unit="years")
    >>> problem = pg.Problem(pg.Prior.uniform(ages), cost="absolute")
    >>> curve = pg.trade_off(problem, epsilons=[0.1, 0.2], names=["geometric"])
    >>> [row.label for row in curve.rows if row.adversary == "knows the prior"]
    ['geometric at epsilon 0.1 per year', 'geometric at epsilon 0.2 per year']
    """
    require_instance(problem, Problem, "the problem")
    targets = [("epsilon", epsilon) for epsilon in epsilons] + [("distortion", error) for error in distortions]
    if len({kind for kind, _ in targets}) != 1:
        raise InvalidProblem("a trade-off curve needs a list of epsilons, or one of distortions")
    priors, individuals = _split_adversaries(problem, adversaries)
    points = [(name, Target(kind, value, named_baseline(name))) for name in names for kind, value in targets]
    made = [
        ComparisonJob(number, problem, name, None, target, priors, individuals, within, metrics)
        for number, (name, target) in enumerate(points)
    ]
    return Comparison(problem, compare_in_jobs(made, jobs, scheduler, progress), target_kind=targets[0][0])


def default_adversaries(prior: Prior) -> dict[str, Prior]:
    """The priors of two adversaries: one who knows this prior, and one to whom every secret is equally likely."""
    return {INFORMED: prior, IGNORANT: Prior.uniform(prior.space)}


def _split_adversaries(problem: Problem, adversaries: Adversaries) -> tuple[Mapping[str, Prior], list[Adversary]]:
    """The priors by name, whose errors are averaged over the problem's prior; and the adversaries with their own."""
    if adversaries is None:
        return default_adversaries(problem.prior), []
    if not isinstance(adversaries, Mapping):
        individuals = as_list(adversaries, "adversaries")
        if not all(isinstance(each, Adversary) for each in individuals):
            raise InvalidProblem("adversaries are a list of Adversary, or given by name: a dict from names to priors")
        return default_adversaries(problem.prior), individuals
    if not adversaries:
        raise InvalidProblem("adversaries is empty; give at least one prior by name, or None for the two default ones")
    priors = {name: each for name, each in adversaries.items() if isinstance(each, Prior)}
    individuals = [each for each in adversaries.values() if isinstance(each, Adversary)]
    if len(priors) + len(individuals) < len(adversaries):
        raise InvalidProblem("adversaries given by name must be priors, or of type Adversary")
    if any(isinstance(each, Adversary) and each.name != name for name, each in adversaries.items()):
        raise InvalidProblem("an Adversary among adversaries given by name must have its own name as the key")
    return priors or default_adversaries(problem.prior), individuals
