"""Claims on tables made by hand: ones that bear them out, and ones that do not."""

import re
from math import inf
from typing import Any

import pytest

from privacygames.jobs import Table, Value
from privacygames_study.claims import CLAIM_COLUMNS, CLAIMS, OURS, READINGS, check_claims
from privacygames_study.claims.evidence import Evidence, summary
from study_tables import robust
from support import shared

USERS = ("user 1", "user 2")


def triple(epsilon: float, d_m: float, *, user: str = "user 1", reused: bool = False, **changed: Any) -> Table:
    """A setting in which everything the paper says is so; ``joint_cost=…`` and the like change it."""
    usual = {
        "differential": {"cost": 0.6 - epsilon / 4, "privacy_km": 1.2 - epsilon, "bayesian_km": 1.6 - epsilon},
        "distortion": {"cost": 0.3 - epsilon / 4, "privacy_km": d_m, "bayesian_km": d_m + 0.1},
        "joint": {"cost": 0.6 - epsilon / 4, "privacy_km": max(d_m, 1.2 - epsilon), "bayesian_km": d_m + 0.5},
    }
    for name, value in changed.items():
        mechanism, column = name.split("_", 1)
        usual[mechanism][column] = value
    return [
        {
            "user": user,
            "epsilon": epsilon,
            "d_m_km": d_m,
            "mechanism": mechanism,
            "reused": reused and mechanism == "joint",
            "status": "done",
            **values,
        }
        for mechanism, values in usual.items()
    ]


def scenario(**changed: Any) -> Table:
    """Two users, three ε, d_m as the differential mechanism gives it; the last setting may be changed."""
    rows = [row for user in USERS for epsilon in (0.3, 0.6) for row in triple(epsilon, 1.2 - epsilon, user=user)]
    return rows + triple(0.9, 1.2 - 0.9, **changed)


def known(*, differential: float = 0.5, distortion: float = 0.4) -> Table:
    """Adversaries without and with evidence."""
    privacy = {1.0: (0.9, 0.9), 5.0: (differential, distortion)}
    return [
        {"user": "user 1", "epsilon": 0.3, "mechanism": name, "strength": strength, "privacy_km": values[place]}
        for strength, values in privacy.items()
        for place, name in enumerate(("differential", "distortion"))
    ]


def pruned(errors: tuple[float, float], seconds: tuple[float, float], epsilon: float = 0.5) -> Table:
    """Two radii, every reading of appendix C, times by the solver of the exact design."""
    return [
        {
            "user": "user 1",
            "epsilon": 0.5,
            "kind": kind,
            "radius_km": radius,
            "status": "done",
            "exact_privacy_km": 1.0,
            "error_km": error,
            "processor_seconds": time,
            "exact_processor_seconds": 10.0,
            "solver": "blocks" if kind == "secrets" else "HiGHS",
            "exact_solver": "blocks" if kind == "secrets" else "HiGHS",
            "realised_epsilon": epsilon,
        }
        for kind in READINGS
        for radius, error, time in zip((2.0, 4.0), errors, seconds, strict=True)
    ]


def tables(**replaced: Table) -> dict[str, Table]:
    good = {
        "scenario_1": scenario(),
        "scenario_2": [row for user in USERS for row in triple(0.6, 0.8, user=user)],
        "scenario_3": [*triple(0.6, 0.8), *triple(0.6, 0.5, distortion_privacy_km=0.5)],
        "prior": known(),
        "approximation": pruned((0.05, 0.0), (1.0, 2.0)),
        "robust": robust(),
    }
    return {name.replace("_", "-"): table for name, table in (good | replaced).items()}


def verdicts(**replaced: Table) -> dict[str, str]:
    return {str(row["claim"]): str(row["verdict"]) for row in check_claims(tables(**replaced))}


def test_every_claim_holds_where_everything_is_as_the_paper_says() -> None:
    found = verdicts()
    assert len(found) == len(CLAIMS) + len(OURS)
    found.pop("best-for-its-cost")  # at the same privacy the distortion mechanism is cheaper: both cannot hold
    assert set(found.values()) == {"holds"}


@pytest.mark.parametrize(
    ("claim", "table", "changed"),
    [
        ("privacy-falls", "scenario_1", scenario(differential_privacy_km=0.7)),
        ("below-1-km", "scenario_1", scenario(differential_privacy_km=1.01)),
        ("distortion-cheaper", "scenario_1", scenario(distortion_cost=0.5)),
        ("much-higher", "scenario_1", scenario(distortion_cost=0.36)),
        ("joint-as-differential", "scenario_1", scenario(joint_cost=0.4)),
        ("privacy-costs", "scenario_1", scenario(differential_cost=0.9)),
        ("best-for-its-cost", "scenario_1", scenario()),
        ("bayesian-robust", "scenario_1", scenario(differential_bayesian_km=0.35)),
        ("optimal-stronger", "scenario_1", scenario(joint_bayesian_km=0.29)),
        ("attacks-differ", "scenario_1", scenario(joint_bayesian_km=0.35)),
        ("joint-at-least-both", "scenario_2", triple(0.6, 0.8, joint_privacy_km=0.7)),
        ("joint-equals-distortion", "scenario_2", triple(0.6, 0.8, joint_privacy_km=0.9)),
        ("joint-same-cost", "scenario_2", triple(0.6, 0.8, joint_cost=0.5)),
        ("joint-privacy-least", "scenario_3", triple(0.6, 0.8, joint_privacy_km=0.7)),
        ("joint-privacy-max", "scenario_3", triple(0.6, 0.8, joint_privacy_km=0.9)),
        ("joint-cost-max", "scenario_3", triple(0.6, 0.8, joint_cost=0.5)),
        ("differential-dearer", "scenario_3", triple(0.6, 0.8, distortion_cost=0.5)),
        ("cost-not-additive", "scenario_3", triple(0.6, 0.8, joint_cost=0.9)),
        ("knowledge-helps", "prior", known(distortion=1.0)),
        ("equal-without-evidence", "prior", [row | {"strength": 1.0} for row in known()]),
        ("differential-robust", "prior", known(differential=0.39)),
        ("robust-kept", "robust", [row | {"promised_km": 2.0} for row in robust()]),
        ("robust-cost", "robust", [row | {"cost": 0.9 if row["mechanism"] == "robust" else 0.5} for row in robust()]),
        *(
            (f"{claim}-{kind}", "approximation", pruned(*changed))
            for kind in READINGS
            for claim, changed in (
                ("error-falls", ((0.05, 0.2), (1.0, 2.0))),
                ("error-vanishes", ((0.05, 0.02), (1.0, 2.0))),
                ("small-radius", ((0.2, 0.0), (1.0, 2.0))),
                ("time-grows", ((0.05, 0.0), (2.0, 1.0))),
                ("approximation-faster", ((0.05, 0.0), (1.0, 11.0))),
                ("epsilon-kept", ((0.05, 0.0), (1.0, 2.0), inf)),
            )
        ),
    ],
)
def test_a_claim_does_not_hold_where_numbers_say_otherwise(claim: str, table: str, changed: Table) -> None:
    assert verdicts(**{table: changed})[claim].startswith(("does not hold in ", "holds except in "))


def test_every_claim_has_such_a_test() -> None:
    marks = test_a_claim_does_not_hold_where_numbers_say_otherwise.pytestmark  # type: ignore[attr-defined]
    assert {case[0] for case in marks[0].args[1]} == {claim.name for claim in (*CLAIMS, *OURS)}


def test_a_few_exceptions_are_counted() -> None:
    assert Evidence([True] * 19 + [False], "", "").verdict == "holds except in 1 of 20"
    assert Evidence([True] * 8 + [False] * 2, "", "").verdict == "does not hold in 2 of 10"
    assert Evidence([], "", "").columns()["share"] is None


def test_numbers_are_brief_and_rounding_noise_is_none() -> None:
    assert summary([-6e-10, 0.07061, 12.34567], " km") == "median 0.0706 km, between 0 and 12.3"
    assert summary([]) == "no cases"


def test_failed_designs_are_no_evidence_and_nothing_at_all_is_not_tested() -> None:
    failed: dict[str, Value] = {"status": "failed: NUMERICAL"}
    empty = {name: [row | failed for row in table] for name, table in tables().items() if name != "prior"}
    assert {row["verdict"] for row in check_claims(empty)} == {"not tested"}
    assert check_claims({"users": []}) == []


def test_somebody_always_in_one_place_has_no_privacy_to_lose() -> None:
    still = [row | {"exact_privacy_km": 0.0, "error_km": 0.0} for row in pruned((0.0, 0.0), (1.0, 2.0))]
    assert verdicts(approximation=still)["small-radius-both"] == "not tested"


def test_the_readings_of_appendix_c_are_judged_apart() -> None:
    """Leaving out ratio constraints loses no privacy; leaving out guess constraints, too, loses a lot."""
    mixed = [row | {"error_km": 0.5} if row["kind"] == "both" else row for row in pruned((0.0, 0.0), (1.0, 2.0))]
    found = verdicts(approximation=mixed)
    assert found["small-radius-secrets"] == found["small-radius-ratios"] == "holds"
    assert found["small-radius-both"].startswith("does not hold")


def test_times_of_different_solvers_are_not_compared() -> None:
    """An exact design by the block method says nothing about an approximation by HiGHS."""
    rows = pruned((0.05, 0.0), (1.0, 2.0))
    mixed = [row | {"exact_solver": "blocks"} if row["kind"] == "both" else row for row in rows]
    found = {str(row["claim"]): row for row in check_claims(tables(approximation=mixed))}
    assert found["approximation-faster-both"]["verdict"] == "not tested"
    assert found["approximation-faster-ratios"]["cases"] == 2
    assert "both by HiGHS, in processor time" in str(found["approximation-faster-ratios"]["evidence"])
    assert "both by blocks, in processor time" in str(found["approximation-faster-secrets"]["evidence"])


def test_a_median_of_realised_epsilons_counts_the_infinite_ones() -> None:
    """A constant mechanism among three that keep no ε at all does not make the median 0."""
    rows = [row | {"realised_epsilon": inf} for row in pruned((0.0, 0.0), (1.0, 2.0)) if row["kind"] == "both"]
    rows = [*rows, rows[0], rows[0] | {"realised_epsilon": 0.0}]
    found = {str(row["claim"]): row for row in check_claims({"approximation": rows})}
    evidence = str(found["epsilon-kept-both"]["evidence"])
    assert "median infinite, between 0 and infinite; infinite in 3 of 4" in evidence


def test_what_the_paper_claims_is_in_the_paper() -> None:
    """Each claim said to be the paper's quotes it, word by word; all others are ours."""
    paper = " ".join(shared("paper", "privacy-games.tex").read_text(encoding="utf-8").split())
    for claim in CLAIMS:
        assert len(claim.quote) > 30, claim.name
        assert claim.quote in paper, claim.name
    assert {claim.source for claim in OURS} == {"ours"}


def test_every_statement_can_be_read_alone() -> None:
    for claim in CLAIMS:
        assert not re.match(r"(There|It|Its|The larger|This)\b", claim.statement), claim.statement
        assert len(claim.statement) > 50
    assert len({claim.statement for claim in CLAIMS}) == len(CLAIMS)


def test_the_table_has_its_columns_and_numbers() -> None:
    for row in check_claims(tables()):
        assert tuple(row) == CLAIM_COLUMNS
        assert row["evidence"]
        assert row["tolerance"]
