"""The rows of a comparison, and the jobs that make them, in this process, in several or on a cluster."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from time import perf_counter

from privacygames.analysis.calibration import MechanismFactory, calibrated_factory, target_text
from privacygames.analysis.evaluation import Metric, Report, evaluate
from privacygames.baselines import Baseline
from privacygames.beliefs import Prior
from privacygames.errors import InvalidProblem
from privacygames.jobs import Scheduler, SerialExecutor, executor_for, require_sendable
from privacygames.mechanism import Mechanism
from privacygames.problem import Adversary, Bounds, Problem
from privacygames.progress import Progress, ProgressCallback
from privacygames.validation import require_instance


@dataclass(frozen=True)
class ComparisonRow:
    """One mechanism against one adversary.

    Attributes:
        mechanism_name: the name of the mechanism.
        adversary: the name of the adversary.
        target: the ε or distortion it was calibrated to, on a trade-off curve.
        target_kind: the kind of the target: ``"epsilon"`` or ``"distortion"``.
        seconds: the time to make the mechanism; None if it was made before.
        bound: proved lower bound on the cost of every mechanism with the same guarantees; None without a proof.
        report: its cost and privacy.
        mechanism: the mechanism itself.
    """

    mechanism_name: str
    adversary: str
    target: float | None
    seconds: float | None
    bound: float | None
    report: Report
    mechanism: Mechanism = field(repr=False, compare=False)
    target_kind: str | None = None

    @property
    def label(self) -> str:
        """The mechanism's name; on a trade-off curve, with the ε or distortion it was calibrated to."""
        if self.target is None or self.target_kind is None:
            return self.mechanism_name
        problem, within = self.report.problem, self.report.within
        return f"{self.mechanism_name} at {target_text(self.target_kind, self.target, problem, within)}"

    def to_dict(self) -> dict[str, str | float | None]:
        """Plain values by name, one level deep."""
        head: dict[str, str | float | None] = {"mechanism": self.mechanism_name, "adversary": self.adversary}
        rest = {"matched": self.target_kind, "asked": self.target, "seconds": self.seconds, "bound": self.bound}
        return head | rest | self.report.to_dict()


@dataclass(frozen=True)
class Target:
    """A point of a trade-off curve: what a mechanism is calibrated to.

    Attributes:
        kind: ``"epsilon"`` or ``"distortion"``.
        value: its value.
        baseline: the baseline that is calibrated, which no other process need have registered; None for designs.
    """

    kind: str
    value: float
    baseline: Baseline | None


@dataclass(frozen=True, eq=False)
class ComparisonJob:
    """The job of making one mechanism and measuring it against all adversaries.

    Attributes:
        number: its position in the comparison.
        problem: the problem.
        name: the name of the mechanism.
        source: the mechanism, or a function that makes it; None for the one of this name, calibrated to the target.
        target: on a trade-off curve, the point of it.
        priors: the prior of each adversary by name.
        individuals: adversaries with their own priors and errors.
        within: the threshold form of ε.
        metrics: further metrics by name.
    """

    number: int
    problem: Problem
    name: str
    source: Mechanism | MechanismFactory | None
    target: Target | None
    priors: Mapping[str, Prior]
    individuals: list[Adversary]
    within: float | None
    metrics: Mapping[str, Metric] | None

    @property
    def key(self) -> str:
        """Identifies the work within one comparison."""
        return f"mechanism-{self.number}"

    @property
    def label(self) -> str:
        """The mechanism's name; on a trade-off curve, with what it is calibrated to."""
        if self.target is None:
            return self.name
        return f"{self.name} at {target_text(self.target.kind, self.target.value, self.problem, self.within)}"

    def run(self) -> list[ComparisonRow]:
        """The rows of the mechanism, one for each prior."""
        return self.rows(None)

    def rows(self, progress: ProgressCallback | None) -> list[ComparisonRow]:
        """The rows of the mechanism, one for each prior; a function that makes it is called and timed once."""
        source, target = self.source, self.target
        if target is not None:
            epsilon, distortion = (target.value if target.kind == kind else None for kind in ("epsilon", "distortion"))
            bounds = Bounds(epsilon=epsilon, distortion=distortion, within=self.within)
            source = calibrated_factory(self.problem, self.name, target.baseline, bounds, progress=progress)
        start = perf_counter()
        mechanism = _make(self.name, source)
        seconds = perf_counter() - start if callable(source) else None
        return [
            ComparisonRow(
                self.name,
                adversary,
                None if target is None else target.value,
                seconds,
                mechanism.certificate.bound,
                evaluate(
                    mechanism,
                    self.problem,
                    adversary_prior=prior,
                    within=self.within,
                    adversaries=self.individuals,
                    metrics=self.metrics,
                ),
                mechanism,
                None if target is None else target.kind,
            )
            for adversary, prior in self.priors.items()
        ]


def compare_in_jobs(
    jobs: Sequence[ComparisonJob], processes: int | None, scheduler: Scheduler | None, progress: ProgressCallback | None
) -> tuple[ComparisonRow, ...]:
    """The rows of all jobs, in their order.

    In this process progress is reported before each mechanism is made, and while it is; elsewhere after each.
    """
    executor = executor_for(processes, scheduler)
    rows: dict[str, list[ComparisonRow]] = {}
    if isinstance(executor, SerialExecutor):
        for job in jobs:
            if progress is not None:
                progress(Progress(job="compare", done=len(rows), total=len(jobs), message=job.label))
            rows[job.key] = job.rows(progress)
    else:
        labels = {job.key: job.label for job in jobs}
        for job in jobs:
            require_sendable(executor, job, f"{job.name!r}, or a metric,")
        with closing(executor.run(jobs)) as results:
            for key, made in results:
                rows[key] = made
                if progress is not None:
                    progress(Progress(job="compare", done=len(rows), total=len(jobs), message=labels[key]))
    return tuple(row for job in jobs for row in rows[job.key])


def _make(name: str, source: Mechanism | MechanismFactory | None) -> Mechanism:
    if callable(source):
        return require_instance(source(), Mechanism, f"what {name!r} makes")
    if not isinstance(source, Mechanism):
        raise InvalidProblem(f"{name!r} must be a mechanism, or a function without arguments that makes one")
    return source
