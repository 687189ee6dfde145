"""Defaults that make sense, warnings in red and honest numbers, over the HTTP API."""

import math
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from privacygames.studio.dangers import with_metres
from privacygames.studio.worker import share_of_gap
from studio_server import Json, client, designed

HILL = [round(10 + 90 * math.exp(-((at / 49 - 0.5) ** 2) / 0.08)) for at in range(50)]
"""The ages that the page starts with: 18 to 67, most in the middle."""

AGES = {
    "space": {"kind": "numbers", "from": 18, "to": 67, "unit": "years"},
    "prior": {"counts": HILL},
    "problem": {"cost": "absolute", "distance": "absolute"},
}
YOUNG = AGES | {"prior": {"counts": [round(5 + 95 * math.exp(-3 * at / 49)) for at in range(50)]}}
ILLNESSES = {
    "space": {"kind": "categories", "labels": ["none", "cold", "asthma", "diabetes", "depression", "HIV"]},
    "prior": {"counts": [60, 20, 9, 6, 4, 1]},
    "problem": {"cost": "hamming", "distance": "hamming"},
}
COLOURS = {
    "space": {"kind": "categories", "labels": ["red", "blue"]},
    "prior": {"counts": [1, 1]},
    "problem": {"cost": "hamming", "distance": "hamming"},
}
SOURCES: dict[str, Json] = {
    "ages": {"document": AGES},
    "young": {"document": YOUNG},
    "illnesses": {"document": ILLNESSES},
    "colours": {"document": COLOURS},
    "city": {"invented": {"person": 7, "columns": 8, "rows": 5}},
    "home": {"invented": {"person": 2, "seed": 3, "columns": 6, "rows": 4}},
    "points": {"invented": {"person": 7, "columns": 6, "rows": 4, "secrets": "points"}},
}


@pytest.fixture(scope="module")
def api() -> Iterator[TestClient]:
    with client() as made:
        yield made


def view_of(api: TestClient, problem: str, bounds: dict[str, Any], **asked: Any) -> Json:
    job = designed(api, problem, bounds=bounds, **asked)
    assert job["state"] == "done", job["error"]
    view: Json = api.get(f"/api/mechanisms/{job['result']['mechanism']}").json()
    return view


def kinds(view: Json, severity: str = "danger") -> list[str]:
    return [finding["kind"] for finding in view["findings"] if finding["severity"] == severity]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("goal", ["privacy", "use"])
def test_every_source_starts_with_something_possible_and_nothing_red(api: TestClient, source: str, goal: str) -> None:
    problem = api.post("/api/problems", json=SOURCES[source]).json()
    start, epsilon = problem["start"], problem["epsilon"]
    assert epsilon["low"] <= start["epsilon"] <= min(epsilon["high"], epsilon["gone"])
    assert 0 < start["error"] <= problem["most_distortion"]
    bound = {"distortion": start["error"]} if goal == "privacy" else {"cost_at_most": start["cost"] * (1 + 1e-3)}
    view = view_of(api, problem["id"], bound | {"epsilon": start["epsilon"]})
    expected = ["false_claims"] if "document" in SOURCES[source] and problem["kind"] == "categories" else []
    assert kinds(view) == expected, source


@pytest.mark.parametrize("source", ["ages", "illnesses", "city"])
def test_known_costs_are_possible_at_their_epsilon(api: TestClient, source: str) -> None:
    """The page uses them so that a limit on the cost is never below what can be met."""
    problem = api.post("/api/problems", json=SOURCES[source]).json()
    known = problem["known"][:: max(1, len(problem["known"]) - 2)]
    assert len(known) >= 2
    for each in known:
        best = view_of(api, problem["id"], {"epsilon": each["epsilon"]})
        assert best["cost"] <= each["cost"] * (1 + 1e-6)
        assert each["cost"] <= each["worst_cost"] + 1e-12


@pytest.mark.parametrize("document", [AGES, YOUNG], ids=["hill", "young"])
def test_at_age_22_untouched_answers_are_close(api: TestClient, document: Json) -> None:
    """When any untrue age cost the same, 70 % of the answers at 22 were 56 to 67."""
    problem = api.post("/api/problems", json={"document": document}).json()
    start = problem["start"]
    view = view_of(api, problem["id"], {"distortion": start["error"], "epsilon": start["epsilon"]})
    row = api.post(f"/api/mechanisms/{view['id']}/answers", json={"secret": 22}).json()["probabilities"]
    ages = dict(zip(problem["answers"], row, strict=True))
    assert sum(share for age, share in ages.items() if age >= 56) < 0.03
    assert sum(share * abs(age - 22) for age, share in ages.items()) < 12


def test_places_cost_their_distance_unless_asked_otherwise(api: TestClient) -> None:
    assert api.post("/api/problems", json=SOURCES["home"]).json()["measures"]["cost"] == "euclidean"
    asked = {"invented": {"columns": 6, "rows": 4, "cost": "hamming"}}
    assert api.post("/api/problems", json=asked).json()["measures"]["cost"] == "hamming"


def test_red_where_an_output_claims_an_illness(api: TestClient) -> None:
    problem = api.post("/api/problems", json=SOURCES["illnesses"]).json()["id"]
    view = view_of(api, problem, {"epsilon": 3.0, "distortion": 0.1})
    claim = next(finding for finding in view["findings"] if finding["kind"] == "false_claims")
    table = api.get(f"/api/mechanisms/{view['id']}/table").json()["probabilities"]
    prior = [count / 100 for count in (60, 20, 9, 6, 4, 1)]
    at = ILLNESSES["space"]["labels"].index(claim["output"])  # type: ignore[index]
    share = sum(prior[secret] * table[secret][at] for secret in range(6))
    assert claim["untrue"] == pytest.approx(1 - prior[at] * table[at][at] / share, abs=1e-3)
    assert claim["text"] in view["warnings"]
    truth = view_of(api, problem, {"epsilon": 30.0})
    assert "false_claims" not in kinds(truth)
    assert "exact_guesses" in kinds(truth)


def test_red_where_privacy_is_gone_or_nothing_is_told(api: TestClient) -> None:
    problem = api.post("/api/problems", json=SOURCES["ages"]).json()
    loose = view_of(api, problem["id"], {"epsilon": 5.0})
    assert {"settled_odds", "exact_guesses"} <= set(kinds(loose))
    assert kinds(view_of(api, problem["id"], {"epsilon": problem["epsilon"]["low"]})) in (
        ["constant_outputs"],
        ["nothing_told"],
    )
    assert "no_use" in kinds(view_of(api, problem["id"], {"distortion": problem["most_distortion"]}))
    near = view_of(api, problem["id"], {"epsilon": 1.0, "within": 2.0})
    assert "settled_odds" in kinds(near)  # ε within two years limits far ages by chains only


def test_exact_is_how_often_the_likeliest_guess_is(api: TestClient) -> None:
    problem = api.post("/api/problems", json=SOURCES["young"]).json()
    view = view_of(api, problem["id"], {"epsilon": 0.2})
    report = view["report"]
    assert report["vulnerability"] > report["exact"] + 0.01  # they are different guesses
    after, before = (finding for finding in view["findings"] if finding["kind"] == "best_guess")
    assert after["exact"] == report["vulnerability"]
    assert before["exact"] == report["prior_vulnerability"]
    assert "their likeliest guess is exact in" in after["text"]


def test_lengths_have_one_unit_each(api: TestClient) -> None:
    problem = api.post("/api/problems", json=SOURCES["home"]).json()
    view = view_of(api, problem["id"], {"distortion": problem["most_distortion"] / 4})
    report = api.get(f"/api/mechanisms/{view['id']}/report").text
    sentences = [finding["text"] for finding in view["findings"]] + [value for _, value in view["report_rows"]]
    assert any(" m" in sentence for sentence in sentences)
    for sentence in [*sentences, report]:
        assert with_metres(sentence) == sentence


def test_a_share_of_the_work_is_told_while_it_runs(api: TestClient) -> None:
    assert [round(share_of_gap(gap, 1e-6), 2) for gap in (3.0, 1.0, 0.1, 1e-3, 1e-6, 0.0)] == [0, 0, 0.17, 0.5, 1, 1]
    problem = api.post("/api/problems", json={"invented": {"columns": 14, "rows": 10}}).json()
    job = designed(api, problem["id"], bounds={"epsilon": 0.7, "distortion": 0.2})
    assert 0 <= job["progress"]["share"] <= 1
