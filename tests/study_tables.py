"""Small tables of a study, made by hand: two users, round numbers, so that captions can be checked by eye."""

from dataclasses import replace
from math import inf

from privacygames.jobs import Table, Value
from privacygames_study.manifest import StudyManifest

ABOUT = StudyManifest(
    data="Tiny town",
    format="synthetic",
    users=2,
    columns=4,
    rows=3,
    width_km=6.0,
    height_km=4.5,
    window=None,
    epsilons=(0.3, 0.6),
    epsilons_2=(0.6,),
    epsilons_3=(0.6,),
    step_km=0.5,
    shares=(0.5,),
    strengths=(10.0,),
    places=2,
    epsilons_approximation=(0.6,),
    share_approximation=0.5,
    radii_km=(1.0, 2.0),
    approximation_columns=3,
    approximation_rows=2,
    parts=("scenario-1",),
    quick=False,
    designs=20,
    design_seconds=4000.0,
    wall_seconds=100.0,
    cores=2,
    versions={"privacygames": "0"},
)


def manifest(**changes: object) -> StudyManifest:
    """The setting, changed here and there."""
    return replace(ABOUT, **changes)  # type: ignore[arg-type]


def design(user: str, epsilon: float, d_m: float, mechanism: str, *, cost: float, privacy: float) -> dict[str, Value]:
    """One row of a scenario: the Bayesian attack errs by a quarter more than the optimal one."""
    return {
        "user": user,
        "epsilon": epsilon,
        "d_m_km": d_m,
        "mechanism": mechanism,
        "reused": mechanism == "joint" and privacy > d_m,
        "status": "done",
        "cost": cost,
        "privacy_km": privacy,
        "bayesian_km": privacy * (1.0 if mechanism == "distortion" else 1.25),
        "realised_epsilon": inf if mechanism == "distortion" else epsilon,
        "seconds": 0.5,
    }


def scenario_1() -> Table:
    """Privacy 2 and 1 km for the first user, 3 and 0.8 km for the second; differential costs 0.25 more."""
    reached = {("user 1", 0.3): 2.0, ("user 1", 0.6): 1.0, ("user 2", 0.3): 3.0, ("user 2", 0.6): 0.8}
    costs = {"differential": 0.75, "distortion": 0.5, "joint": 0.75}
    return [
        design(user, epsilon, privacy, mechanism, cost=cost, privacy=privacy)
        for (user, epsilon), privacy in reached.items()
        for mechanism, cost in costs.items()
    ]


def scenario_3() -> Table:
    """Joint is the larger of the two, except once, where it costs 0.125 more."""
    table = []
    for place, d_m in enumerate((0.5, 1.0, 1.5)):
        table += [
            design("user 1", 0.6, d_m, "differential", cost=0.5, privacy=1.0),
            design("user 1", 0.6, d_m, "distortion", cost=0.25, privacy=d_m),
            design("user 1", 0.6, d_m, "joint", cost=0.625 if place == 2 else 0.5, privacy=max(1.0, d_m)),
        ]
    return table


def prior() -> Table:
    """With evidence, differential falls from 1 to 0.75 km and distortion to 0.5 km."""
    left = {
        ("differential", 1.0): 1.0,
        ("distortion", 1.0): 1.0,
        ("differential", 10.0): 0.75,
        ("distortion", 10.0): 0.5,
    }
    return [
        {
            "user": user,
            "epsilon": 0.6,
            "mechanism": mechanism,
            "strength": strength,
            "prior_entropy_bits": 2.0,
            "entropy_bits": 2.0 / strength,
            "privacy_km": privacy,
        }
        for user in ("user 1", "user 2")
        for (mechanism, strength), privacy in left.items()
    ]


def robust() -> Table:
    """Promised against everybody, distortion keeps what differential does, for a fifth more than for one only."""
    costs = {"differential": 0.75, "distortion": 0.5, "robust": 0.6}
    return [
        {
            "user": row["user"],
            "epsilon": 0.6,
            "mechanism": mechanism,
            "strength": row["strength"],
            "promised_km": row["privacy_km"] if mechanism == "robust" else None,
            "status": "done",
            "privacy_km": row["privacy_km"],
            "cost": costs[mechanism],
        }
        for row in prior()
        for mechanism in (["differential", "robust"] if row["mechanism"] == "differential" else ["distortion"])
    ]


def approximation(*, users: int = 2, grids: tuple[tuple[int, int], ...] = ((3, 2),)) -> Table:
    """Pruning ratio and guess constraints at 1 km realises no ε at all; times differ by a factor of a hundred."""
    return [
        {
            "user": f"user {user}",
            "epsilon": 0.5,
            "d_m_km": 1.0,
            "columns": columns,
            "rows": rows,
            "kind": kind,
            "radius_km": radius,
            "status": "done",
            "error_km": 0.5 / radius,
            "realised_epsilon": inf if kind == "both" and radius == 1.0 else 0.5 + 0.5 / radius,
            "exact_epsilon": 0.5,
            "seconds": 0.2 * radius**2,
            "processor_seconds": 0.1 * radius**2,
            "exact_processor_seconds": 0.4 if kind == "secrets" else 10.0,
            "solver": "blocks" if kind == "secrets" else "HiGHS",
            "exact_solver": "blocks" if kind == "secrets" else "HiGHS",
        }
        for columns, rows in grids
        for kind in ("secrets", "ratios", "both")
        for radius in (1.0, 2.0)
        for user in range(1, users + 1)
    ]


def tables() -> dict[str, Table]:
    """All tables of a small study."""
    users: Table = [
        {"user": f"user {place}", "visits": 50, "cells": 4, "entropy_bits": float(place), "blind_km": 3.5}
        for place in (1, 2)
    ]
    return {
        "users": users,
        "scenario-1": scenario_1(),
        "scenario-2": scenario_3()[-3:],
        "scenario-3": scenario_3(),
        "prior": prior(),
        "robust": robust(),
        "approximation": approximation(),
    }


def failed(table: Table) -> Table:
    """The same designs, none of which a solver managed."""
    kept = ("user", "epsilon", "d_m_km", "mechanism", "columns", "rows", "kind", "radius_km")
    return [{name: row.get(name) if name in kept else None for name in row} | {"status": "time limit"} for row in table]
