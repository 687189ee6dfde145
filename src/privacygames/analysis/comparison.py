"""Mechanisms side by side: cost, realised ε, what attackers make of them, time to design; one table, one figure."""

import csv
import io
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from time import perf_counter

from privacygames.analysis.adversary_results import HEADINGS as STAND
from privacygames.analysis.adversary_results import aligned, stand_cells
from privacygames.analysis.calibration import Make, calibrated_baselines, matched_at
from privacygames.analysis.evaluation import Report, evaluate
from privacygames.analysis.formatting import percent
from privacygames.atomic_io import write_text
from privacygames.beliefs import Prior
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism
from privacygames.problem import ANY_PAIR, Adversary, Problem, distinguishability_scale
from privacygames.progress import Progress, ProgressCallback
from privacygames.validation import as_list, require_instance

INFORMED, IGNORANT = "knows the prior", "knows nothing"
STAND_HEADINGS = ("mechanism", *STAND)

Whom = Mapping[str, Prior | Adversary] | Iterable[Adversary] | None
"""Adversaries to compare under: beliefs by name, or adversaries."""


@dataclass(frozen=True)
class Row:
    """One mechanism against one adversary.

    Attributes:
        mechanism: its name.
        adversary: the adversary's name.
        asked: the ε or distortion it was matched at, on a trade-off curve.
        matched: what of the two it was.
        seconds: how long making it took; None if it was given ready-made.
        bound: proved: no mechanism with its promises costs less; None if it has no such proof.
        report: everything measured.
        made: the mechanism itself.
    """

    mechanism: str
    adversary: str
    asked: float | None
    seconds: float | None
    bound: float | None
    report: Report
    made: Mechanism = field(repr=False, compare=False)
    matched: str | None = None

    @property
    def name(self) -> str:
        """The mechanism's name, with what it was matched at on a trade-off curve."""
        if self.asked is None or self.matched is None:
            return self.mechanism
        problem, within = self.report.problem, self.report.within
        return f"{self.mechanism} at {matched_at(self.matched, self.asked, problem, within)}"

    def to_dict(self) -> dict[str, str | float | None]:
        """Plain values by name, one level deep."""
        head: dict[str, str | float | None] = {"mechanism": self.mechanism, "adversary": self.adversary}
        rest = {"matched": self.matched, "asked": self.asked, "seconds": self.seconds, "bound": self.bound}
        return head | rest | self.report.to_dict()


@dataclass(frozen=True)
class Comparison:
    """Rows, one for each mechanism and adversary, mechanisms in the order given.

    Attributes:
        problem: what they are judged against.
        rows: the rows.
        matched: on a trade-off curve, what they were matched at: ``"epsilon"`` or ``"distortion"``.
    """

    problem: Problem
    rows: tuple[Row, ...]
    matched: str | None = None

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings of the table, with what ε is counted for."""
        per = distinguishability_scale(self.problem).per(self.rows[0].report.within if self.rows else None)
        own = ("mechanism", "cost", "worst", f"epsilon {per}", ANY_PAIR)
        return (*own, "adversary", "optimal", "Bayesian", "exact", "seconds")

    def _cells(self) -> list[tuple[str, ...]]:
        """The table as texts under ``headings``; what does not depend on the adversary is said once."""
        lines: list[tuple[str, ...]] = []
        before: Row | None = None
        for row in self.rows:
            again = before is not None and before.made is row.made
            report = row.report
            epsilon = report.epsilon if report.epsilon_within is None else report.epsilon_within
            shown = (f"{epsilon:.4f}", f"{report.any_pair:.4f}") if report.epsilon_promised else ("none", "")
            own = (row.name, f"{report.cost:.4f}", f"{report.worst_cost:.4f}", *shown)
            seen = (
                row.adversary,
                f"{report.distortion:.4f}",
                f"{report.distortion_bayesian:.4f}",
                percent(report.exact),
            )
            time = "" if again or row.seconds is None else f"{row.seconds:.2f}"
            lines.append((*(("",) * len(own) if again else own), *seen, time))
            before = row
        return lines

    def table(self) -> str:
        """The comparison as text: costs, realised ε, the error of the optimal and the Bayesian attack, seconds."""
        first = aligned([self.headings, *self._cells()], texts=(0, 5))
        adversary_results = self._stand_cells()
        return (
            first
            if not adversary_results
            else f"{first}\n\n{aligned([STAND_HEADINGS, *adversary_results], texts=(0, 1))}"
        )

    def _stand_cells(self) -> list[tuple[str, ...]]:
        """Mechanism × adversary × (promised, realised, best possible), where adversaries were given."""
        lines: list[tuple[str, ...]] = []
        seen: Mechanism | None = None
        for row in self.rows:
            if row.made is not seen:
                names = [row.name] + [""] * len(row.report.against)
                lines += [(name, *stand_cells(stand)) for name, stand in zip(names, row.report.against, strict=False)]
            seen = row.made
        return lines

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {"rows": [row.to_dict() for row in self.rows]}

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write every number to a CSV file, one line a row."""
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, fieldnames=list(self.rows[0].to_dict()))
        writer.writeheader()
        writer.writerows(row.to_dict() for row in self.rows)
        write_text(path, text.getvalue())

    def __str__(self) -> str:
        return self.table()


def compare(
    problem: Problem,
    mechanisms: Mapping[str, Mechanism | Make],
    *,
    adversaries: Whom = None,
    within: float | None = None,
    progress: ProgressCallback | None = None,
) -> Comparison:
    """Mechanisms side by side, against the same adversaries.

    Args:
        problem: what they are judged against.
        mechanisms: by name: a mechanism, or a function without arguments that makes one (and is timed), such as
            :func:`privacygames.calibrated_baselines` returns.
        adversaries: what each believes, by name; by default one who knows the prior and one who knows nothing
            (believes every secret equally likely). Costs and errors are averaged over the problem's prior. Or a list of
            :class:`privacygames.Adversary` (or some of them among those given by name): where each of them stands, as
            she sees it, beside the others or the default two.
        within: state ε in the threshold form.
        progress: called with a :class:`privacygames.Progress` before each mechanism is made; its message is the name.
    """
    require_instance(problem, Problem, "the problem")
    if not isinstance(mechanisms, Mapping):
        raise InvalidProblem("mechanisms are given by name: a dict from names to mechanisms")
    if not mechanisms:
        raise InvalidProblem("there is nothing to compare: give at least one mechanism")
    beliefs, crowd = _adversaries(problem, adversaries)
    rows: list[Row] = []
    for done, (name, given) in enumerate(mechanisms.items()):
        if progress is not None:
            progress(Progress(job="compare", done=done, total=len(mechanisms), message=name))
        rows += _rows(problem, name, given, beliefs, crowd=crowd, within=within)
    return Comparison(problem, tuple(rows))


def trade_off(
    problem: Problem,
    *,
    epsilons: Iterable[float] = (),
    distortions: Iterable[float] = (),
    names: Iterable[str] = ("optimal",),
    adversaries: Whom = None,
    within: float | None = None,
    progress: ProgressCallback | None = None,
) -> Comparison:
    """What privacy costs: mechanisms matched at each of several ε, or at each of several distortions.

    Args:
        problem: what they are for.
        epsilons: the ε to match at; or
        distortions: the distortion privacy to match at.
        names: which mechanisms, as in :func:`privacygames.calibrated_baselines`.
        adversaries: as in :func:`compare`.
        within: the threshold form of ε, as in :func:`privacygames.calibrated_baselines`.
        progress: called with a :class:`privacygames.Progress` before each mechanism is made; its message says which.
    """
    require_instance(problem, Problem, "the problem")
    points = [("epsilon", each) for each in epsilons] + [("distortion", each) for each in distortions]
    if len({kind for kind, _ in points}) != 1:
        raise InvalidProblem("a trade-off curve needs a list of epsilons, or one of distortions")
    beliefs, crowd = _adversaries(problem, adversaries)
    rows: list[Row] = []
    wanted = [(name, kind, value) for name in names for kind, value in points]
    for done, (name, kind, value) in enumerate(wanted):
        if progress is not None:
            message = f"{name} at {matched_at(kind, value, problem, within)}"
            progress(Progress(job="compare", done=done, total=len(wanted), message=message))
        made = calibrated_baselines(problem, **{kind: value}, within=within, names=[name], progress=progress)
        rows += _rows(problem, name, made[name], beliefs, crowd=crowd, within=within, asked=value, matched=kind)
    return Comparison(problem, tuple(rows), matched=points[0][0])


def usual_adversaries(prior: Prior) -> dict[str, Prior]:
    """One who knows the prior, and one to whom every secret is equally likely."""
    return {INFORMED: prior, IGNORANT: Prior.uniform(prior.space)}


def _adversaries(problem: Problem, given: Whom) -> tuple[Mapping[str, Prior], list[Adversary]]:
    """Beliefs by name, whose errors are averaged over the problem's prior; and adversaries, each as she sees it."""
    if given is None:
        return usual_adversaries(problem.prior), []
    if not isinstance(given, Mapping):
        crowd = as_list(given, "adversaries")
        if not all(isinstance(each, Adversary) for each in crowd):
            raise InvalidProblem("adversaries are a list of Adversary, or given by name: a dict from names to priors")
        return usual_adversaries(problem.prior), crowd
    if not given:
        raise InvalidProblem("adversaries is empty; give at least one prior by name, or None for the usual two")
    priors = {name: each for name, each in given.items() if isinstance(each, Prior)}
    crowd = [each for each in given.values() if isinstance(each, Adversary)]
    if len(priors) + len(crowd) < len(given):
        raise InvalidProblem("adversaries given by name must be priors, or of type Adversary")
    if any(isinstance(each, Adversary) and each.name != name for name, each in given.items()):
        raise InvalidProblem("an Adversary among adversaries given by name goes by her own name: give that one")
    return priors or usual_adversaries(problem.prior), crowd


def _rows(
    problem: Problem,
    name: str,
    given: Mechanism | Make,
    adversaries: Mapping[str, Prior],
    *,
    crowd: list[Adversary],
    within: float | None,
    asked: float | None = None,
    matched: str | None = None,
) -> list[Row]:
    """One mechanism, made and timed once, against each adversary."""
    start = perf_counter()
    made = _made(name, given)
    seconds = perf_counter() - start if callable(given) else None
    return [
        Row(
            name,
            adversary,
            asked,
            seconds,
            made.certificate.bound,
            evaluate(made, problem, adversary_prior=belief, within=within, adversaries=crowd),
            made,
            matched,
        )
        for adversary, belief in adversaries.items()
    ]


def _made(name: str, given: Mechanism | Make) -> Mechanism:
    if callable(given):
        return require_instance(given(), Mechanism, f"what {name!r} makes")
    if not isinstance(given, Mechanism):
        raise InvalidProblem(f"{name!r} must be a mechanism, or a function without arguments that makes one")
    return given
