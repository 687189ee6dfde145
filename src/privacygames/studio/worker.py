"""The worker process: it takes jobs from a pipe, one at a time, and sends back progress, parts and the result."""

import sys
import warnings
from dataclasses import fields
from io import BytesIO
from itertools import product
from math import floor, log, log10
from multiprocessing.connection import Connection
from time import monotonic
from typing import TYPE_CHECKING, Any

from privacygames.errors import Infeasible, InvalidProblem, PrivacyGamesError, SolveFailed, TooLarge
from privacygames.jobs import bind_to_parent
from privacygames.progress import Progress
from privacygames.studio.limits import bytes_of

if TYPE_CHECKING:
    from privacygames.mechanism import Mechanism
    from privacygames.policy_comparison import PolicyComparison
    from privacygames.problem import Problem
    from privacygames.traces import Visits

PROGRESS_SECONDS = 0.1
"""Least time between two reports of progress: what people can follow."""

FRONTIER_SHARES = (0.15, 0.35, 0.55, 0.75, 0.9, 0.98)
"""Shares of the largest distortion at which the frontier is drawn; the last ones are where it is steepest."""

BASELINES = ("planar-laplace", "exponential", "geometric", "randomised-response", "uniform")
"""Known mechanisms that are drawn beside the frontier, where they suit the problem."""

TOLERANCE = 1e-6
"""Relative gap at which a design for cells or labels counts as optimal."""

POINT_TOLERANCE = 1e-4
"""Relative gap to the best mechanism for points on its mesh: far below the gap to all mechanisms, which is told."""

REPEATS = 25
"""Repetitions of each policy: ten seconds in all, and shares of homes with a standard error below ten points."""

Spec = dict[str, Any]
"""What a job is to do: its kind, and the arguments of the function of that kind in ``JOBS``."""


def work(pipe: Connection, memory: int) -> None:
    """Run jobs until the pipe is closed or the parent process is gone.

    Args:
        pipe: jobs come in; progress, parts and results go out.
        memory: bytes of data that this process may have.
    """
    bind_to_parent()
    _limit_memory(memory)
    warnings.simplefilter("ignore")  # warnings are findings of the result
    while True:
        try:
            spec = pipe.recv()
        except EOFError:
            return
        pipe.send(_outcome(spec, pipe))


def _outcome(spec: Spec, pipe: Connection) -> tuple[str, Any]:
    try:
        return "done", JOBS[spec["kind"]](spec, _Reporter(pipe))
    except PrivacyGamesError as error:
        return "failed", error.to_dict()
    except MemoryError:
        return "failed", TooLarge("the job needs more memory than one may have: use fewer secrets").to_dict()
    except Exception as error:  # the text of an unknown error may contain a secret: its kind does not
        print(f"a job ended with {type(error).__name__}", file=sys.stderr)
        return "failed", SolveFailed("the job failed for a reason that was not foreseen").to_dict()


def share_of_gap(gap: float | None, tolerance: float) -> float:
    """How far a design is, from 0 to 1: the digits of its gap that are closed, of those that will be.

    >>> share_of_gap(1.0, 1e-6), round(share_of_gap(1e-3, 1e-6), 3), share_of_gap(1e-9, 1e-6), share_of_gap(None, 1e-6)
    (0.0, 0.5, 1.0, 0.0)
    """
    if gap is None or gap >= 1:
        return 0.0
    return min(1.0, log(max(gap, tolerance)) / log(tolerance))


class _Reporter:
    """Sends progress to the server, no more often than somebody looks."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe, self.last = pipe, 0.0
        self.tolerance = TOLERANCE
        self.total: int | None = None
        self.finished = 0
        self.share = 0.0

    def __call__(self, now: Progress) -> None:
        self.share = max(self.share, self._share(now))  # a refined design starts again with a large gap
        if monotonic() - self.last >= PROGRESS_SECONDS:
            self.last = monotonic()
            values = {"done": now.done, "gap": now.gap, "value": now.value, "message": now.message}
            self.pipe.send(("progress", values | {"share": self.share}))

    def _share(self, now: Progress) -> float:
        """The share of the work that is done: of several designs where there are, otherwise of one design's gap."""
        if self.total is not None:
            return self.finished / self.total
        return now.share if now.share is not None else share_of_gap(now.gap, self.tolerance)

    def part(self, part: Spec) -> None:
        self.pipe.send(("part", part))


def _design(spec: Spec, report: _Reporter) -> Spec:
    from privacygames.designer import design
    from privacygames.problem import parse_problem
    from privacygames.spaces import is_region
    from privacygames.studio.point_source import parse_point_problem

    tables, limits = spec["tables"], {"time_limit": spec["time_limit"], "progress": report}
    if is_region(tables["space"]):
        points = parse_point_problem(tables)
        report.tolerance = POINT_TOLERANCE
        between_points = design(points, **tables["bounds"], **limits, tolerance=POINT_TOLERANCE)
        return {"mechanism": between_points.to_bytes(), "seconds": None}
    problem, bounds = parse_problem(tables)
    mechanism = design(problem, **bounds, **limits)
    return {"mechanism": mechanism.to_bytes(), "seconds": None}


def _frontier(spec: Spec, report: _Reporter) -> Spec:
    """The least cost at several distortions, the other bounds unchanged, and the baselines; each point when ready."""
    from privacygames.designer import design
    from privacygames.problem import max_distortion, parse_problem

    tables = spec["tables"]
    bounds = tables["bounds"]
    fixed = {key: value for key, value in bounds.items() if key not in ("distortion", "cost_at_most")}
    problem, _ = parse_problem(tables | {"bounds": fixed})
    most = max_distortion(problem)
    limit = spec["time_limit"] / (2 * len(FRONTIER_SHARES) + len(BASELINES))
    curves = {"optimal": fixed}
    if "epsilon" in fixed:
        curves["free"] = {key: value for key, value in fixed.items() if key not in ("epsilon", "within")}
    left_out = 0
    report.total = len(curves) * len(FRONTIER_SHARES) + len(BASELINES)
    for number, ((name, curve), share) in enumerate(product(curves.items(), FRONTIER_SHARES)):
        report.finished = number
        distortion = _two_digits(share * most)
        point_bounds = curve | {"distortion": distortion}
        _, guarantees = parse_problem(tables | {"bounds": point_bounds})  # with those against every other adversary
        try:
            mechanism = design(problem, **guarantees, time_limit=limit, progress=report)
        except (Infeasible, SolveFailed):
            left_out += 1
            continue
        report.part(_point(name, distortion, mechanism, problem) | {"bounds": point_bounds})
    target = {"epsilon": bounds["epsilon"]} if "epsilon" in bounds else {"distortion": most / 2}
    for name in BASELINES:
        point = _baseline(name, problem, target, bounds.get("within"))
        if point is not None:
            report.part(point)
    return {"left_out": left_out}


def _two_digits(value: float) -> float:
    """A bound rounded down to two significant digits, so that it says little of the prior that it was computed from."""
    if value == 0:
        return 0.0
    digits = 1 - floor(log10(value))
    return floor(value * 10.0**digits) / 10.0**digits


def _baseline(name: str, problem: "Problem", target: dict[str, float], within: float | None) -> Spec | None:
    from privacygames.analysis import calibrated_baselines

    epsilon, distortion = target.get("epsilon"), target.get("distortion")
    form = None if epsilon is None else within
    try:
        baselines = calibrated_baselines(problem, epsilon=epsilon, distortion=distortion, within=form, names=[name])
        mechanism = baselines[name]()
    except (InvalidProblem, Infeasible, SolveFailed):  # made for other secrets, or cannot be matched
        return None
    return _point(name, None, mechanism, problem)


def _point(name: str, distortion: float | None, mechanism: "Mechanism", problem: "Problem") -> Spec:
    from privacygames.analysis import evaluate

    report = evaluate(mechanism, problem)
    return {
        "name": name,
        "asked": distortion,
        "cost": report.cost,
        "worst_cost": report.worst_cost,
        "distortion": report.distortion,
        "epsilon": report.epsilon if report.epsilon_guaranteed else None,
        "any_pair": report.any_pair if report.epsilon_guaranteed else None,
        "bound": mechanism.certificate.bound,
        "mechanism": mechanism.to_bytes(dual_solution=name in ("optimal", "free")),
    }


def _compare(spec: Spec, report: _Reporter) -> Spec:
    from privacygames.analysis import calibrated_baselines, compare
    from privacygames.problem import parse_problem

    problem, _ = parse_problem(spec["tables"])
    baselines = calibrated_baselines(problem, **spec["at"], names=spec["names"], progress=report)
    comparison = compare(problem, baselines, progress=report)
    return {"rows": [row.to_dict() for row in comparison.rows], "table": comparison.table()}


def _read(spec: Spec, _: _Reporter) -> Spec:
    from privacygames.studio.trace_uploads import read_traces

    return _values_of_visits(read_traces(spec["content"], spec["form"], rows=spec["rows"]), spec)


def _values_of_visits(visits: "Visits", spec: Spec) -> Spec:
    """Visits as plain values, unless they take more memory than the server keeps."""
    values = {each.name: getattr(visits, each.name) for each in fields(visits)}
    values |= {name: dict(values[name]) for name in ("skipped", "skipped_lines")}
    if bytes_of(values) > spec["bytes"]:
        raise TooLarge("the visits take more memory than this server allows: leave some out, or use the command line")
    return values


def _open(spec: Spec, _: _Reporter) -> Spec:
    """What a file holds: visits, or a table and its preview."""
    from privacygames.studio.table_uploads import open_file

    opened = open_file(spec["content"], header=spec["header"], rows=spec["rows"])
    return opened | {"visits": _values_of_visits(opened["visits"], spec)} if "visits" in opened else opened


def _columns(spec: Spec, _: _Reporter) -> Spec:
    """The visits, numbers or categories in the columns of a table."""
    from privacygames.studio.table_uploads import read_columns

    columns = read_columns(spec["table"], spec["reading"], rows=spec["rows"])
    return columns | {"visits": _values_of_visits(columns["visits"], spec)} if "visits" in columns else columns


def _check(spec: Spec, _: _Reporter) -> Spec:
    from privacygames.studio.file_protection import check_rows

    return check_rows(spec["mechanism"], spec["table"], spec["request"])


def _protect(spec: Spec, report: _Reporter) -> Spec:
    from privacygames.studio.file_protection import protect

    return protect(spec["mechanism"], spec["table"], spec["request"], report)


def _policies(spec: Spec, report: _Reporter) -> Spec:
    """All policies on one person's visits; the result has no positions in it, no times and no names."""
    from privacygames.policy_comparison import MATTERS, compare_policies
    from privacygames.spaces import Grid
    from privacygames.traces import Visits

    latitude, longitude = spec["points"]
    nobody = [0] * len(spec["times"])
    visits = Visits(nobody, spec["times"], latitude, longitude, ("",), spec["slot"])  # type: ignore[arg-type]
    box, columns, rows = spec["grid"]
    compared = compare_policies(
        visits,
        Grid.over(box, columns=columns, rows=rows),
        [""],
        budget=spec["budget"],
        repeats=REPEATS,
        progress=report,
    )
    chosen = {matters: compared.when(matters) for matters in MATTERS}  # type: ignore[arg-type]
    rules = {matters: {"policy": each.recommended, "reason": each.reason} for matters, each in chosen.items()}
    return {**compared.to_dict(), "recommendations": rules, "figure": _svg(compared)}


def _svg(compared: "PolicyComparison") -> str:
    """The figure of a comparison, with its texts as texts."""
    import matplotlib as mpl

    from privacygames.plots import policies

    picture = BytesIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        policies(compared).savefig(picture, format="svg", metadata={"Date": None})
    return picture.getvalue().decode()


JOBS = {
    "policies": _policies,
    "read": _read,
    "open": _open,
    "columns": _columns,
    "check": _check,
    "protect": _protect,
    "design": _design,
    "frontier": _frontier,
    "compare": _compare,
}
"""The kinds of jobs."""


def _limit_memory(memory: int) -> None:
    try:
        import resource
    except ImportError:  # not on every system
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
