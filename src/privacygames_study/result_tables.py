"""From the results of tasks to the tables of a study: one function per table."""

from collections.abc import Iterable

from privacygames.jobs import Row, Table, Value, number
from privacygames.spaces import Grid
from privacygames_study.people import informed
from privacygames_study.plan import Plan, Results
from privacygames_study.tasks import DONE, Task, against

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


def tables_of(plans: list[Plan], results: Results) -> dict[str, Table]:
    """Every table that was asked for, by name."""
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
    """Scenarios 1, 2 and 3: three mechanisms in every setting; one row where even the differential one failed."""
    for setting in plan.compared(part, results):
        for mechanism, task in setting.tasks().items():
            yield {
                "user": plan.person.label,
                "epsilon": setting.epsilon,
                "d_m_km": setting.distortion,
                "share": setting.share,
                "mechanism": mechanism,
                "reused": mechanism == "joint" and setting.reused,
                **results[task.key],
            }
    for epsilon, found in plan.failed(part, results):
        yield {"user": plan.person.label, "epsilon": epsilon, "mechanism": "differential", **found}


def _prior_rows(plan: Plan, results: Results) -> Iterable[Row]:
    """Scenario 1's mechanisms against adversaries who know more and more."""
    for setting in plan.compared("prior", results):
        for mechanism, task in setting.tasks().items():
            found = results[task.key]
            for strength in (1.0, *plan.settings.strengths) if found["status"] == DONE else ():
                belief = informed(plan.person.prior, strength, plan.settings.places)
                yield {
                    "user": plan.person.label,
                    "epsilon": setting.epsilon,
                    "mechanism": mechanism,
                    "strength": strength,
                    "prior_entropy_bits": plan.person.prior.entropy(),
                    "entropy_bits": belief.entropy(),
                    "privacy_km": found["privacy_km" if strength == 1.0 else against(strength)],
                    "blind_km": blind(task, strength),
                }


def _robust_rows(plan: Plan, results: Results) -> Iterable[Row]:
    """The effect of the prior once better informed adversaries are promised something, too: privacy and cost."""
    for setting in plan.compared("robust", results):
        robust = plan.robust(setting, results)
        made = {**setting.tasks(), "robust": robust}
        promised = {1.0: setting.distortion, **dict(robust.promised)}
        for mechanism in ("differential", "distortion", "robust"):
            task = made[mechanism]
            found = results[task.key]
            kept = {name: found.get(name) for name in ("status", "cost", "gap", "seconds")}
            for strength in (1.0, *plan.settings.strengths):
                own = mechanism == "robust" or (mechanism == "distortion" and strength == 1.0)
                yield {
                    "user": plan.person.label,
                    "epsilon": setting.epsilon,
                    "mechanism": mechanism,
                    "strength": strength,
                    "promised_km": promised[strength] if own else None,
                    "privacy_km": found.get("privacy_km" if strength == 1.0 else against(strength)),
                    "blind_km": blind(task, strength),
                    **kept,
                }


def blind(task: Task, strength: float) -> float:
    """What guessing by an adversary's belief alone errs by, where the belief is the truth."""
    grid = task.prior.space
    belief = informed(task.prior, strength, task.places)
    return float((grid.distance("euclidean") @ belief.probabilities).min())


def _approximation_rows(plan: Plan, results: Results) -> Iterable[Row]:
    """Appendix C: each approximation beside the exact design; times beside those of the exact design by HiGHS.

    Only with pairs of secrets left out can the block method, which designs exactly, solve the approximation, too.
    """
    grid = plan.coarse.space
    for setting in plan.compared("approximation", results):
        exact = results[setting.tasks()["joint"].key]
        for kind, tasks in plan.pruned(setting).items():
            timed = exact if kind == "secrets" else results[plan.written_out(setting).key]
            for task in tasks:
                found = results[task.key]
                yield {
                    "user": plan.person.label,
                    "epsilon": task.epsilon,
                    "d_m_km": task.distortion,
                    "columns": grid.columns if isinstance(grid, Grid) else None,
                    "rows": grid.rows if isinstance(grid, Grid) else None,
                    "kind": kind,
                    "radius_km": task.radius,
                    **found,
                    "exact_privacy_km": exact.get("privacy_km"),
                    "error_km": _difference(exact, found, "privacy_km"),
                    "exact_cost": exact.get("cost"),
                    "exact_epsilon": exact.get("realised_epsilon"),
                    "exact_processor_seconds": timed.get("processor_seconds"),
                    "exact_solver": timed.get("solver"),
                }


def _difference(first: Row, second: Row, column: str) -> Value:
    if first["status"] != DONE or second["status"] != DONE:
        return None
    return number(first, column) - number(second, column)
