"""The tables of a study from the results of its tasks: one function per table."""

from collections.abc import Iterable

from privacygames.jobs import Row, Table, Value, number
from privacygames.spaces import Grid
from privacygames_study.people import informed_prior
from privacygames_study.plan import Plan, Results
from privacygames_study.tasks import DONE, Task, privacy_column

MEASURED = (
    "status",
    "cost",
    "worst_cost",
    "privacy_km",
    "bayesian_km",
    "realised_epsilon",
    "entropy_bits",
    "gap",
    "seconds",
    "processor_seconds",
    "solver",
)
COLUMNS: dict[str, tuple[str, ...]] = {
    "users": ("user", "visits", "cells", "entropy_bits", "commonest_share", "blind_km"),
    **dict.fromkeys(
        ("scenario-1", "scenario-2", "scenario-3"),
        ("user", "epsilon", "d_m_km", "share", "mechanism", "reused", *MEASURED),
    ),
    "prior": (
        "user",
        "epsilon",
        "mechanism",
        "strength",
        "prior_entropy_bits",
        "entropy_bits",
        "privacy_km",
        "blind_km",
    ),
    "robust": (
        "user",
        "epsilon",
        "mechanism",
        "strength",
        "promised_km",
        "status",
        "privacy_km",
        "blind_km",
        "cost",
        "gap",
        "seconds",
    ),
    "approximation": (
        "user",
        "epsilon",
        "d_m_km",
        "columns",
        "rows",
        "kind",
        "radius_km",
        "status",
        "privacy_km",
        "exact_privacy_km",
        "error_km",
        "cost",
        "exact_cost",
        "realised_epsilon",
        "exact_epsilon",
        "seconds",
        "processor_seconds",
        "exact_processor_seconds",
        "solver",
        "exact_solver",
    ),
}
"""The columns of every table."""


def result_tables(plans: list[Plan], results: Results) -> dict[str, Table]:
    """The tables of all requested parts, by name."""
    rows = {"prior": _prior_rows, "approximation": _approximation_rows, "robust": _robust_rows}
    made: dict[str, list[Row]] = {"users": [_user(plan) for plan in plans]}
    for part in plans[0].settings.parts:
        made[part] = [
            row
            for plan in plans
            for row in (rows[part](plan, results) if part in rows else _compared_rows(plan, part, results))
        ]
    return {
        name: [{column: row.get(column) for column in COLUMNS[name]} for row in listed] for name, listed in made.items()
    }


def _user(plan: Plan) -> Row:
    prior = plan.person.prior
    return {
        "user": plan.person.label,
        "visits": plan.person.visits,
        "cells": int((prior.probabilities > 0).sum()),
        "entropy_bits": prior.entropy(),
        "commonest_share": float(prior.probabilities.max()),
        "blind_km": plan.most,
    }


def _compared_rows(plan: Plan, part: str, results: Results) -> Iterable[Row]:
    """Scenarios 1, 2 and 3: three mechanisms per comparison, or one row if the differential design failed."""
    for comparison in plan.comparisons(part, results):
        for mechanism, task in comparison.tasks().items():
            yield {
                "user": plan.person.label,
                "epsilon": comparison.epsilon,
                "d_m_km": comparison.distortion,
                "share": comparison.share,
                "mechanism": mechanism,
                "reused": mechanism == "joint" and comparison.reused,
                **results[task.key],
            }
    for epsilon, measured in plan.failed(part, results):
        yield {"user": plan.person.label, "epsilon": epsilon, "mechanism": "differential", **measured}


def _prior_rows(plan: Plan, results: Results) -> Iterable[Row]:
    """Scenario 1's mechanisms against increasingly informed adversaries."""
    for comparison in plan.comparisons("prior", results):
        for mechanism, task in comparison.tasks().items():
            measured = results[task.key]
            for strength in (1.0, *plan.settings.strengths) if measured["status"] == DONE else ():
                belief = informed_prior(plan.person.prior, strength, plan.settings.places)
                yield {
                    "user": plan.person.label,
                    "epsilon": comparison.epsilon,
                    "mechanism": mechanism,
                    "strength": strength,
                    "prior_entropy_bits": plan.person.prior.entropy(),
                    "entropy_bits": belief.entropy(),
                    "privacy_km": measured["privacy_km" if strength == 1.0 else privacy_column(strength)],
                    "blind_km": blind(task, strength),
                }


def _robust_rows(plan: Plan, results: Results) -> Iterable[Row]:
    """Privacy and cost of mechanisms with and without guarantees against better informed adversaries."""
    for comparison in plan.comparisons("robust", results):
        robust = plan.robust(comparison, results)
        tasks = {**comparison.tasks(), "robust": robust}
        guaranteed = {1.0: comparison.distortion, **dict(robust.promised)}
        for mechanism in ("differential", "distortion", "robust"):
            task = tasks[mechanism]
            measured = results[task.key]
            quality = {name: measured.get(name) for name in ("status", "cost", "gap", "seconds")}
            for strength in (1.0, *plan.settings.strengths):
                own = mechanism == "robust" or (mechanism == "distortion" and strength == 1.0)
                yield {
                    "user": plan.person.label,
                    "epsilon": comparison.epsilon,
                    "mechanism": mechanism,
                    "strength": strength,
                    "promised_km": guaranteed[strength] if own else None,
                    "privacy_km": measured.get("privacy_km" if strength == 1.0 else privacy_column(strength)),
                    "blind_km": blind(task, strength),
                    **quality,
                }


def blind(task: Task, strength: float) -> float:
    """The expected error of the best guess under an adversary's belief alone, if the belief is true."""
    grid = task.prior.space
    belief = informed_prior(task.prior, strength, task.places)
    return float((grid.distance("euclidean") @ belief.probabilities).min())


def _approximation_rows(plan: Plan, results: Results) -> Iterable[Row]:
    """Appendix C: each approximation and the exact design, timed with the same solver.

    The interior-point method can solve approximations that leave out pairs of secrets only; the others, and the exact
    design they are compared with, are solved by HiGHS.
    """
    grid = plan.coarse.space
    for comparison in plan.comparisons("approximation", results):
        exact = results[comparison.tasks()["joint"].key]
        for kind, tasks in plan.approximation_tasks(comparison).items():
            timed = exact if kind == "secrets" else results[plan.exact_highs_task(comparison).key]
            for task in tasks:
                measured = results[task.key]
                yield {
                    "user": plan.person.label,
                    "epsilon": task.epsilon,
                    "d_m_km": task.distortion,
                    "columns": grid.columns if isinstance(grid, Grid) else None,
                    "rows": grid.rows if isinstance(grid, Grid) else None,
                    "kind": kind,
                    "radius_km": task.radius,
                    **measured,
                    "exact_privacy_km": exact.get("privacy_km"),
                    "error_km": _difference(exact, measured, "privacy_km"),
                    "exact_cost": exact.get("cost"),
                    "exact_epsilon": exact.get("realised_epsilon"),
                    "exact_processor_seconds": timed.get("processor_seconds"),
                    "exact_solver": timed.get("solver"),
                }


def _difference(first: Row, second: Row, column: str) -> Value:
    if first["status"] != DONE or second["status"] != DONE:
        return None
    return number(first, column) - number(second, column)
