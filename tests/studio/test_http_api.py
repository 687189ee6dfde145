"""The HTTP API does what the library does, and says what was wrong in one shape."""

import gzip
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import privacygames as pg
from privacygames.mechanism_files import load_bytes, load_finite
from privacygames.problem import parse_problem
from privacygames.studio import Limits
from privacygames.studio.expiring_store import ExpiringStore
from studio_server import AGES, client, described, designed, over
from waiting import wait_until

CATEGORIES = {
    "space": {"kind": "categories", "labels": ["none", "cold", "asthma", "HIV"]},
    "prior": {"counts": [60, 20, 9, 1]},
    "problem": {"cost": "hamming", "distance": "hamming"},
}
GRID = {
    "space": {"kind": "grid", "columns": 3, "rows": 2, "width": 3.0, "height": 2.0},
    "prior": {"counts": [5, 3, 1, 1, 4, 2]},
    "problem": {"cost": "hamming", "distance": "euclidean"},
}


@pytest.fixture(scope="module")
def api() -> Iterator[TestClient]:
    with client() as made:
        yield made


@pytest.fixture(scope="module")
def made(api: TestClient) -> str:
    """The name of a mechanism for six ages."""
    job = designed(api, described(api))
    assert job["state"] == "done", job["error"]
    return str(job["result"]["mechanism"])


def test_a_design_is_the_librarys(api: TestClient, made: str) -> None:
    problem, _ = parse_problem(AGES)
    own = pg.design(problem, epsilon=0.8, distortion=0.5)
    view = api.get(f"/api/mechanisms/{made}").json()
    assert view["cost"] == pytest.approx(own.certificate.cost, rel=1e-6)
    assert view["bound"] <= view["cost"]
    assert view["gap"] < 1e-6
    report = api.post(f"/api/mechanisms/{made}/evaluate", json={}).json()
    assert report["distortion"] >= 0.5 - 1e-12
    assert report["epsilon"] <= 0.8 + 1e-9


def test_the_file_verifies_here_and_there(api: TestClient, made: str, tmp_path: Path) -> None:
    content = api.get(f"/api/mechanisms/{made}/file").content
    (tmp_path / "mechanism.pgm").write_bytes(content)
    certificate = pg.verify(tmp_path / "mechanism.pgm")
    answer = api.post("/api/verify", content=content)
    assert answer.json()["cost"] == pytest.approx(certificate.cost)
    broken = api.post("/api/verify", content=content[:-9] + b"somethin\n")
    assert broken.status_code == 422
    assert broken.json()["error"]["kind"] == "InvalidFile"


def test_samples_follow_the_mechanism(api: TestClient, made: str) -> None:
    shares = api.post(f"/api/mechanisms/{made}/answers", json={"secret": 22}).json()["probabilities"]
    drawn = api.post(f"/api/mechanisms/{made}/sample", json={"secret": 22, "count": 4000}).json()["answers"]
    for label, share in zip(range(20, 26), shares, strict=True):
        assert abs(drawn.count(label) / 4000 - share) < 6 * (share * (1 - share) / 4000) ** 0.5 + 1e-9
    table = api.get(f"/api/mechanisms/{made}/table").json()["probabilities"]
    assert table[2] == shares


def test_beliefs_are_bayes_rule(api: TestClient, made: str, tmp_path: Path) -> None:
    (tmp_path / "m.pgm").write_bytes(api.get(f"/api/mechanisms/{made}/file").content)
    mechanism = load_finite(tmp_path / "m.pgm")
    attacked = api.post(f"/api/mechanisms/{made}/attack", json={"observable": 23}).json()["attackers"][0]
    assert attacked["belief"] == pytest.approx(mechanism.posterior(23).probabilities, abs=1e-6)
    assert attacked["guess"] == pg.attacks.optimal(mechanism, mechanism.problem).estimate(23)


def test_sending_twice_costs_twice(api: TestClient, made: str) -> None:
    steps = api.post(f"/api/mechanisms/{made}/send", json={"secret": 22, "times": 2}).json()["steps"]
    assert [step["epsilon"] for step in steps] == pytest.approx([0.8, 1.6])
    no_day = api.post(f"/api/mechanisms/{made}/send", json={})
    assert no_day.status_code == 422
    assert "there is no typical day" in no_day.json()["error"]["message"]


def test_an_invented_person_has_a_day(api: TestClient) -> None:
    answer = api.post("/api/problems", json={"invented": {"columns": 5, "rows": 4}}).json()
    job = designed(
        api, answer["id"], bounds={"epsilon": 1.0, "distortion": 0.4}, adversaries={"home": 0.5, "side": 0.25}
    )
    name = job["result"]["mechanism"]
    adversary_results = {each["name"]: each for each in api.get(f"/api/mechanisms/{name}").json()["against"]}
    for who, share in (("knows home and work", 0.5), ("wants the side of town", 0.25)):
        assert adversary_results[who]["realised"] >= share * adversary_results[who]["possible"] * (1 - 1e-9)
    view = api.get(f"/api/mechanisms/{name}").json()
    assert [each["text"] for each in view["findings"]] == [*view["warnings"], *view["words"], *view["not_promised"]]
    errors = {each["adversary"]: each["realised"] for each in view["findings"] if each["kind"] == "adversary_error"}
    assert errors["wants the side of town"]["unit"] == "share"
    words = " ".join(view["words"])
    assert re.search(r"Against “knows your habits” the best guesses after an output err by [\d.]+ k?m", words)
    assert re.search(r"Against “wants the side of town” the best guesses after an output are wrong in \d+ %", words)
    steps = api.post(f"/api/mechanisms/{name}/send", json={}).json()["steps"]
    assert len(steps) == 24
    cells = [f"cell-{number}" for number in range(20)]
    seen = [api.post(f"/api/mechanisms/{name}/attack", json={"observable": cell}).json() for cell in cells]
    assert {len(each["attackers"]) for each in seen} == {3}
    given = [each["attackers"][2] for each in seen if each["possible"]]
    never = [each["attackers"][2] for each in seen if not each["possible"]]
    assert {each["guess"] for each in given} <= {"west", "east"}
    assert len(never) > 0
    assert all(each["guess"] is None and each["belief"] is None for each in never)


@pytest.mark.parametrize(
    ("document", "bounds", "shares"),
    [
        (GRID, {"epsilon": 0.9, "distortion": 0.3}, {"home": 0.5, "side": 0.5}),
        (AGES, {"cost_at_most": 0.6, "epsilon": 1.5}, {"half": 0.25}),
        (CATEGORIES, {"epsilon": 2.0, "worst_case": True}, {}),
        (
            {"space": {"kind": "sets", "sets": [["a"], ["b"], ["a", "b"]]}, "prior": {"uniform": True}},
            {"epsilon": 1},
            {},
        ),
    ],
    ids=["grid", "numbers", "categories", "sets"],
)
def test_what_is_taken_away_makes_it_again(
    api: TestClient, tmp_path: Path, document: Any, bounds: Any, shares: Any
) -> None:
    job = designed(api, described(api, document), bounds=bounds, adversaries=shares)
    assert job["state"] == "done", job["error"]
    name = job["result"]["mechanism"]
    cost = api.get(f"/api/mechanisms/{name}").json()["cost"]
    recipe = api.get(f"/api/mechanisms/{name}/recipe").json()
    (tmp_path / recipe["file"]).write_text(recipe["toml"])
    assert not re.search(r"^\s*\[?[\d.]+,", recipe["toml"], re.MULTILINE)  # no table fills a page with a number a line
    subprocess.run([sys.executable, "-c", recipe["python"]], cwd=tmp_path, check=True, capture_output=True)
    by_python = pg.verify(tmp_path / "private-mechanism.pgm")
    (tmp_path / "private-mechanism.pgm").unlink()
    command = [sys.executable, "-m", *recipe["command"].split()]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    by_command = pg.verify(tmp_path / "private-mechanism.pgm")
    assert by_python.verification.expected_cost == pytest.approx(cost, rel=1e-5, abs=1e-9)
    assert by_command.bounds == by_python.bounds
    report = api.get(f"/api/mechanisms/{name}/report").text
    assert "What it does not mean" in report
    assert "http" not in report


@pytest.mark.parametrize("secrets", ["cells", "points"])
def test_policies_of_a_synthetic_person_without_a_position(api: TestClient, secrets: str) -> None:
    body = {"invented": {"person": 3, "columns": 6, "rows": 4, "secrets": secrets}}
    problem = api.post("/api/problems", json=body).json()
    assert problem["has_visits"]
    started = api.post("/api/jobs", json={"kind": "policies", "problem": problem["id"], "budget": 60.0})
    result = over(api, started.json()["id"])["result"]
    assert [row["policy"] for row in result["rows"]][-1] == "frequent places"
    assert set(result["recommendations"]) == {"trips", "presence", "home"}
    assert {"latitude", "longitude", "times", "points", "xy"}.isdisjoint({*result, *result["rows"][0]})
    assert "52." not in str([row | {"cost": 0, "error_now": 0} for row in result["rows"]])  # no latitude


def test_policies_need_visits_and_a_budget(api: TestClient) -> None:
    refused = api.post("/api/jobs", json={"kind": "policies", "problem": described(api), "budget": 60.0})
    assert "visits with times" in refused.json()["error"]["message"]
    body = {"kind": "policies", "problem": described(api)}
    assert api.post("/api/jobs", json=body).json()["error"]["field"] == "budget"
    with_bounds = body | {"budget": 1.0, "bounds": {"epsilon": 0.5}}
    assert "a budget only" in api.post("/api/jobs", json=with_bounds).json()["error"]["message"]
    without = api.post("/api/jobs", json={"problem": described(api), "budget": 1.0, "bounds": {"epsilon": 0.5}})
    assert "for policies" in without.json()["error"]["message"]


def test_compare_and_frontier(api: TestClient) -> None:
    problem = described(api)
    started = api.post(
        "/api/jobs",
        json={"kind": "compare", "problem": problem, "bounds": {"epsilon": 0.8}, "names": ["optimal", "geometric"]},
    )
    job = over(api, started.json()["id"])
    costs = {row["mechanism"]: row["cost"] for row in job["result"]["rows"]}
    assert costs["optimal"] <= costs["geometric"] + 1e-9
    started = api.post("/api/jobs", json={"kind": "frontier", "problem": problem, "bounds": {"epsilon": 0.8}})
    parts = over(api, started.json()["id"])["parts"]
    best = sorted((part["distortion"], part["cost"]) for part in parts if part["name"] == "optimal")
    assert [cost for _, cost in best] == sorted(cost for _, cost in best)
    for part in parts:
        view = api.get(f"/api/mechanisms/{part['mechanism']}").json()
        assert view["cost"] == pytest.approx(part["cost"], abs=1e-9)
        if part["name"] not in ("optimal", "free"):  # nothing others use is below what was proved
            above = [cost for error, cost in best if error <= part["distortion"]]
            assert not above or part["cost"] >= above[-1] - 1e-9


CSV = "user,time,lat,lon\n" + "".join(f"ann,2024-05-01T{h:02}:00:00Z,52.{h % 5}1,5.{h % 3}2\n" for h in range(24))
PLT = "a\nb\nc\nd\ne\nf\n" + "".join(
    f"39.9{h % 4},116.3{h % 3},0,50,39000.5,2009-01-{h + 1:02},0{h % 9}:00:00\n" for h in range(9)
)
GPX = (
    '<gpx xmlns="http://www.topografix.com/GPX/1/1"><trk><trkseg>'
    + "".join(f'<trkpt lat="52.1{h}" lon="5.2{h}"><time>2024-05-01T0{h}:00:00Z</time></trkpt>' for h in range(9))
    + "</trkseg></trk></gpx>"
)


def parquet() -> bytes:
    import io

    import pyarrow as pa
    from pyarrow import csv, parquet

    buffer = io.BytesIO()
    parquet.write_table(csv.read_csv(pa.BufferReader(CSV.encode())), buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("form", "content"),
    [("csv", CSV.encode()), ("parquet", parquet()), ("gpx", GPX.encode()), ("geolife", PLT.encode())],
)
def test_own_traces(api: TestClient, form: str, content: bytes) -> None:
    sent = api.post(f"/api/traces?form={form}", content=content)
    assert sent.status_code == 201, sent.text
    user = sent.json()["users"][0]["name"]
    body = {"traces": {"id": sent.json()["id"], "user": user, "columns": 4, "rows": 3}}
    found = api.post("/api/problems", json=body).json()
    assert sum(found["prior"]) == pytest.approx(1.0, abs=1e-4)
    assert found["has_day"]
    assert found["left_out"] < sent.json()["rows"] / 10  # told, where the farthest are outside the window
    assert api.post("/api/forget", json={"ids": [sent.json()["id"]]}).json() == {"forgotten": 1}
    assert api.post("/api/problems", json=body).status_code == 404


def test_a_gzipped_table_is_read(api: TestClient) -> None:
    """The page offers to; the name of the file is not sent."""
    sent = api.post("/api/traces?form=csv", content=gzip.compress(CSV.encode()))
    assert sent.status_code == 201, sent.text
    assert sent.json()["rows"] == 24


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_rows_are_limited_however_small_they_are_packed(form: str) -> None:
    content = gzip.compress(CSV.encode()) if form == "csv" else parquet()
    with client(Limits(rows=20)) as small:
        answer = small.post(f"/api/traces?form={form}", content=content)
        assert answer.status_code == 413, answer.text
        assert "more than 20 rows" in answer.json()["error"]["message"]


def test_places_at_the_edge_of_the_world(api: TestClient) -> None:
    rows = "".join(f"ann,2024-05-01T{h:02}:00:00Z,{90 - 180 * (h % 2)},{180 - 360 * (h % 2)}\n" for h in range(8))
    sent = api.post("/api/traces?form=csv", content=f"user,time,lat,lon\n{rows}").json()
    body = {"traces": {"id": sent["id"], "user": "ann", "columns": 4, "rows": 3}}
    answer = api.post("/api/problems", json=body)
    assert answer.status_code == 201, answer.text
    assert answer.json()["left_out"] == 0


ASKING = GRID | {
    "bounds": {"epsilon": 0.95, "within": 2.0, "distortion": 0.3123, "worst_case": True},
    "adversary": [
        {"name": "knows home", "distortion": 0.2, "sharpened": {"strength": 4.0, "places": 2}},
        {"name": "hears", "sharpened": {"strength": 2.0, "places": 2}},
    ],
}


def test_what_a_problem_file_asks_is_told_and_kept(api: TestClient) -> None:
    """Every bound, and what is promised against each adversary: nothing is rounded to where a knob stands."""
    found = api.post("/api/problems", json={"document": ASKING}).json()
    assert found["asked"] == ASKING["bounds"]
    assert {each["key"]: each["asked"] for each in found["adversaries"]} == {
        "file-1": {"distortion": 0.2}, "file-2": {}, "home": {}, "side": {},
    }  # fmt: skip
    job = designed(api, found["id"], bounds=ASKING["bounds"], adversaries={"file-1": None})
    view = api.get(f"/api/mechanisms/{job['result']['mechanism']}").json()
    assert {each["name"]: each["promised"] for each in view["against"]} == {"the paper's": 0.3123, "knows home": 0.2}
    none = api.post(
        "/api/jobs", json={"problem": found["id"], "bounds": {"epsilon": 1.0}, "adversaries": {"home": None}}
    )
    assert none.status_code == 422
    assert "guarantees nothing" in none.json()["error"]["message"]
    assert none.json()["error"]["pointer"] == "/adversaries"


def test_an_error_points_to_its_field(api: TestClient) -> None:
    """Where the request is wrong in itself, and where the library finds a bound wrong, at once or in a job."""
    problem = described(api)
    wrong = api.post("/api/jobs", json={"problem": problem, "bounds": {"epsilon": -1.0}}).json()["error"]
    assert (wrong["field"], wrong["pointer"]) == ("epsilon", "/bounds/epsilon")
    failed = designed(api, problem, bounds={"within": 1.0})["error"]
    assert (failed["kind"], failed["field"], failed["pointer"]) == ("InvalidProblem", "within", "/bounds/within")
    infeasible = designed(api, problem, bounds={"distortion": 1e6})["error"]
    assert (infeasible["bound"], infeasible["pointer"]) == ("distortion", "/bounds/distortion")
    other = api.post("/api/jobs", json={"problem": problem, "kind": "compare", "bounds": {"worst_case": True}}).json()
    assert other["error"]["pointer"] == "/bounds/worst_case"


def test_the_frontier_keeps_every_other_promise(api: TestClient) -> None:
    found = api.post("/api/problems", json={"document": ASKING}).json()
    body = {"kind": "frontier", "problem": found["id"], "bounds": {"epsilon": 0.95}, "adversaries": {"file-1": None}}
    parts = over(api, api.post("/api/jobs", json=body).json()["id"])["parts"]
    curves = [part for part in parts if part["name"] in ("optimal", "free")]
    assert curves
    for part in curves:
        promised = {
            each["name"]: each["promised"] for each in api.get(f"/api/mechanisms/{part['mechanism']}").json()["against"]
        }
        assert promised["knows home"] == 0.2
        assert "knows home" in api.get(f"/api/mechanisms/{part['mechanism']}/recipe").json()["toml"]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"kind": "compare", "bounds": {"epsilon": 0.8, "worst_case": True}}, "takes no worst_case"),
        ({"kind": "compare", "bounds": {"epsilon": 0.8}, "adversaries": {"half": 0.5}}, "takes no adversaries"),
        ({"bounds": {"epsilon": 0.8}, "names": ["optimal"]}, "names says which mechanisms to compare"),
    ],
)
def test_what_would_have_no_effect_is_refused(api: TestClient, asked: Any, words: str) -> None:
    answer = api.post("/api/jobs", json={"problem": described(api)} | asked)
    assert answer.status_code == 422
    assert words in answer.json()["error"]["message"]


def test_a_comparison_within(api: TestClient) -> None:
    problem = described(api)

    def cost(bounds: Any) -> float:
        body = {"kind": "compare", "problem": problem, "bounds": bounds, "names": ["optimal"]}
        job = over(api, api.post("/api/jobs", json=body).json()["id"])
        return float(job["result"]["rows"][0]["cost"])

    assert cost({"epsilon": 0.8, "within": 2.0}) > cost({"epsilon": 0.8}) + 1e-3


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "exactly one of"),
        ({"document": {}}, r"\[space\] needs a kind"),
        ({"document": AGES | {"prior": {"csv": "/etc/passwd", "label": "x"}}}, "files are not read here"),
        (
            {"document": AGES | {"adversary": [{"name": "x", "prior": {"csv": "../x.csv", "label": "l"}}]}},
            "files are not read",
        ),
        ({"toml": "[space"}, "not valid TOML"),
        ({"invented": {"columns": 60, "rows": 60}}, "at most 400"),
        (
            {"document": AGES | {"space": {"kind": "numbers", "from": 0, "to": 900}, "prior": {"uniform": True}}},
            "at most 400",
        ),
        ({"nonsense": 1}, "unknown field"),
        ({"document": AGES | {"bounds": {"epsilonn": 1.0}}}, r"\[bounds\] has no key"),
        ({"document": AGES | {"bounds": {"epsilon": "much"}}}, r"\[bounds\] epsilon must be a number"),
        ({"document": AGES | {"bounds": {"epsilon": True}}}, r"\[bounds\] epsilon must be a number"),
        ({"document": AGES | {"bounds": {"worst_case": 1}}}, r"\[bounds\] worst_case must be true or false"),
        ({"document": AGES | {"prior": {"counts": [1e999, 2, 3, 3, 2, 1]}}}, "prior"),
    ],
)
def test_wrong_problems_are_refused_in_one_shape(api: TestClient, body: Any, words: str) -> None:
    answer = api.post("/api/problems", content=json.dumps(body), headers={"content-type": "application/json"})
    assert answer.status_code in (413, 422)
    assert set(answer.json()) == {"error"}
    assert {"kind", "status", "message"} <= set(answer.json()["error"])
    assert re.search(words, answer.json()["error"]["message"]), answer.text


def test_no_message_repeats_a_secret(api: TestClient, made: str) -> None:
    for path, body in (
        ("sample", {"secret": "hunter2-secret"}),
        ("sample", {"secret": {"hunter2-secret": 1}}),
        ("sample", {"hunter2-secret": 1}),
        ("attack", {"observable": ["hunter2-secret"]}),
        ("send", {"secret": "hunter2-secret"}),
    ):
        answer = api.post(f"/api/mechanisms/{made}/{path}", json=body)
        assert answer.status_code == 422
        assert "hunter2" not in answer.text
    assert "hunter2" not in api.post("/api/traces?form=csv", content=b"user,time,lat,lon\nhunter2,hunter2,1,2\n").text


def test_what_is_impossible_says_the_limit(api: TestClient) -> None:
    job = designed(api, described(api), bounds={"epsilon": 0.1, "cost_at_most": 0.01})
    assert job["state"] == "failed"
    assert job["error"]["kind"] == "Infeasible"
    assert 0.01 < job["error"]["limit"] < 1
    assert job["error"]["bound"] == "cost_at_most"
    both = {"epsilon": 0.1, "cost_at_most": 0.9, "worst_cost_at_most": 0.01}
    assert designed(api, described(api), bounds=both)["error"]["bound"] == "worst_cost_at_most"


def test_addresses_that_are_not_there(api: TestClient) -> None:
    for path in ("/api/nothing", "/page/../serving.py", "/page/%2e%2e/serving.py", "/page/", "/api/mechanisms/none"):
        answer = api.get(path)
        assert answer.status_code == 404
        assert "error" in answer.json()
    assert api.put("/api/jobs").status_code == 405


def test_only_so_much_is_kept() -> None:
    with client(Limits(kept=3)) as small:
        names = [described(small) for _ in range(5)]
        codes = [small.get(f"/api/problems/{name}").status_code for name in names]
        assert codes == [404, 404, 200, 200, 200]
    with client(Limits(idle_seconds=0.0)) as short:
        assert short.get(f"/api/problems/{described(short)}").status_code == 404


def test_what_is_idle_is_forgotten_though_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[str] = []
    store = ExpiringStore("thing", most=9, seconds=0.0, size=len, most_bytes=99, on_drop=dropped.append)
    store.put("secret")
    store.expire()
    assert dropped == ["secret"]
    expired: list[str] = []
    monkeypatch.setattr(ExpiringStore, "expire", lambda self: expired.append(self.kind))
    with client(Limits(idle_seconds=0.1)):
        wait_until(lambda: len(set(expired)) >= 6)
    assert set(expired) == {"problem", "file of traces", "table", "protected file", "mechanism", "job"}


POINTS = {
    "town": (pg.Area.over((6.55, 46.50, 6.68, 46.56)), [(6.58, 46.52), (6.63, 46.54)]),
    "plain": (pg.Area(3.0, 2.0), [(0.5, 0.5), (2.5, 1.25)]),
    "hours": (pg.Interval(0.0, 24.0, unit="hours"), [8.5, 17.25]),
}


@pytest.fixture(scope="module")
def points(api: TestClient) -> dict[str, dict[str, Any]]:
    """Mechanisms for points, sent as files."""
    views = {}
    for name, (region, visited) in POINTS.items():
        problem = pg.PointProblem(pg.PointPrior(region, visited), visited)  # type: ignore[arg-type]
        sent = api.post("/api/verify", content=pg.design(problem, epsilon=0.5).to_bytes())
        assert sent.status_code == 200, sent.text
        views[name] = sent.json()
    return views


def test_a_mechanism_for_points_can_be_sent_and_sampled(api: TestClient, points: dict[str, dict[str, Any]]) -> None:
    for name, at in (("town", {"latitude": 46.52, "longitude": 6.58}), ("plain", {"x": 0.5, "y": 0.5}), ("hours", 8.5)):
        view = points[name]
        assert (view["kind"], view["certificate"]["bounds"]["epsilon"]) == ("points", 0.5)
        drawn = api.post(f"/api/mechanisms/{view['id']}/sample", json={"at": at, "count": 20})
        assert drawn.status_code == 200, drawn.text
        assert len(drawn.json()["answers"]) == 20
        assert all(answer in view["answers"] for answer in drawn.json()["answers"])
        again = api.get(f"/api/mechanisms/{view['id']}").json()
        assert again["certificate_rows"] == view["certificate_rows"]
        file = api.get(f"/api/mechanisms/{view['id']}/file")
        assert api.post("/api/verify", content=file.content).json()["certificate"] == view["certificate"]
    assert points["town"]["answers"][0] == {"latitude": 46.52, "longitude": 6.58, "label": "6.58, 46.52"}


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("town", {"at": {"latitude": 6.58, "longitude": 46.52}}, "inside with latitude and longitude swapped"),
        ("town", {"at": {"x": 6.58, "y": 46.52}}, "latitude and longitude for an area over degrees"),
        ("town", {"at": 6.58}, "latitude and longitude for an area over degrees"),
        ("town", {"secret": "cell-0"}, "the secrets of this mechanism are points"),
        ("town", {"at": {"latitude": 46.52, "longitude": 6.58}, "secret": "cell-0"}, "and no secret"),
        ("town", {}, "the secrets of this mechanism are points"),
        ("town", {"at": {"latitude": 146.52, "longitude": 6.58}}, "less than or equal to 90"),
        ("town", {"at": {"latitude": "46.52", "longitude": 6.58}}, "valid number"),
        ("town", {"at": [46.52, 6.58]}, "body.at"),
        ("plain", {"at": {"latitude": 46.52, "longitude": 6.58}}, "x and y for one in kilometres"),
        ("hours", {"at": True}, "body.at"),
    ],
)
def test_wrong_points_are_refused_without_showing_them(
    api: TestClient, points: dict[str, dict[str, Any]], name: str, body: dict[str, Any], message: str
) -> None:
    refused = api.post(f"/api/mechanisms/{points[name]['id']}/sample", json=body)
    assert refused.status_code == 422
    assert message in refused.json()["error"]["message"]
    assert not re.search(r"46\.52|6\.58", refused.text)


def test_what_is_about_labels_refuses_points(api: TestClient, points: dict[str, dict[str, Any]], made: str) -> None:
    name = points["town"]["id"]
    for route, body in (
        ("answers", {"secret": "cell-0"}),
        ("evaluate", {"adversary_prior": [0.5, 0.5]}),
        ("send", {"secret": "cell-0"}),
    ):
        refused = api.post(f"/api/mechanisms/{name}/{route}", json=body)
        assert refused.status_code == 422
        assert "the secrets of this mechanism are points" in refused.json()["error"]["message"]
    assert api.post(f"/api/mechanisms/{name}/attack", json={"observable": "cell-0"}).status_code == 422
    for route in ("table", "recipe", "shareable/problem", "shareable/report"):
        assert api.get(f"/api/mechanisms/{name}/{route}").status_code == 422
    for route in ("sample", "answers"):
        refused = api.post(f"/api/mechanisms/{made}/{route}", json={"at": 3.5})
        assert (refused.status_code, "give a secret" in refused.json()["error"]["message"]) == (422, True)


def test_what_a_mechanism_for_points_does(api: TestClient, points: dict[str, dict[str, Any]]) -> None:
    """The numbers of the library, computed here from the file that the server returns."""
    name = points["town"]["id"]
    mechanism = load_bytes(api.get(f"/api/mechanisms/{name}/file").content)
    assert isinstance(mechanism, pg.PointMechanism)
    at = {"latitude": 46.53, "longitude": 6.6}
    outputs = api.post(f"/api/mechanisms/{name}/answers", json={"at": at}).json()["probabilities"]
    assert outputs == pytest.approx(mechanism.probabilities([(6.6, 46.53)])[0], abs=1e-6)
    (adversary,) = api.post(f"/api/mechanisms/{name}/attack", json={"observable": "6.58, 46.52"}).json()["attackers"]
    joint = mechanism.problem.prior.probabilities * mechanism.probabilities(mechanism.problem.prior.points)[:, 0]
    assert adversary["belief"] == pytest.approx(joint / joint.sum(), abs=1e-6)
    report = api.post(f"/api/mechanisms/{name}/evaluate", json={}).json()
    assert report["cost"] == pytest.approx(pg.evaluate(mechanism).cost)
    assert "between any two points" in api.get(f"/api/mechanisms/{name}/report").text
    assert points["town"]["problem"]["map"]["box"] == [6.55, 46.5, 6.68, 46.56]
    assert "problem" not in points["hours"]


def test_points_are_designed_for(api: TestClient) -> None:
    """A synthetic person's visits become a problem for points, and the document designs the same mechanism again."""
    body = {"invented": {"person": 7, "columns": 3, "rows": 2, "secrets": "points"}}
    problem = api.post("/api/problems", json=body).json()
    assert (problem["kind"], problem["shape"][1]) == ("points", 6)
    assert len(problem["places"]) == len(problem["prior"]) == problem["shape"][0]
    assert problem["epsilon"]["low"] < problem["epsilon"]["high"]
    started = api.post("/api/jobs", json={"problem": problem["id"], "bounds": {"epsilon": 0.2, "distortion": 0.5}})
    job = over(api, started.json()["id"])
    assert job["state"] == "done", job["error"]
    view = api.get(f"/api/mechanisms/{job['result']['mechanism']}").json()
    assert (view["epsilon"], view["certificate"]["bounds"]["distortion"]) == (0.2, 0.5)
    assert view["distortion"] >= 0.5
    assert any("between any two points" in finding["text"] for finding in view["findings"])
    recipe = api.get(f"/api/mechanisms/{view['id']}/recipe").json()
    tables = tomllib.loads(recipe["toml"])
    again = api.post("/api/problems", json={"document": tables}).json()
    assert (again["prior"], again["outputs"], again["asked"]) == (
        problem["prior"],
        problem["outputs"],
        {"epsilon": 0.2, "distortion": 0.5},
    )
    for kind in ("frontier", "compare"):
        refused = api.post("/api/jobs", json={"kind": kind, "problem": problem["id"], "bounds": {"epsilon": 0.2}})
        assert (refused.status_code, "for points" in refused.json()["error"]["message"]) == (422, True)


@pytest.mark.parametrize(
    ("tables", "status", "message"),
    [
        ({"observables": {"columns": 1000, "rows": 1000}}, 413, "1000000 outputs"),
        ({"observables": {"kind": "grid", "columns": 1000, "rows": 1000}}, 413, "1000000 outputs"),
        ({"observables": {"kind": "numbers", "from": 0, "to": 999_999}}, 422, "one of grid, places"),
        ({"prior": {"cells": {"columns": 1000, "rows": 1000}, "counts": {}}}, 413, "1000000 counted cells"),
        ({"prior": {"cells": {"columns": 9, "rows": 9, "points": 10_000}, "counts": {}}}, 413, "810000 counted cells"),
        ({"prior": {"csv": "/etc/passwd"}}, 422, "files are not read here"),
        ({"adversary": [{"name": "x", "distortion": 0.1}]}, 422, "use the command line"),
        ({"mesh": {"columns": 60, "rows": 60}}, 422, "use the command line"),
        ({"space": {"kind": "interval", "low": 0.0, "high": 24.0}, "observables": {"count": 9}}, 422, "interval"),
        ({"bounds": {"epsilon": "1"}}, 422, "must be a number"),
        ({"bounds": {"eps": 1.0}}, 422, "eps"),
        ({"prior": {"points": [[9.5, 9.25]]}}, 422, "outside the region"),
    ],
)
def test_point_documents_that_are_refused(api: TestClient, tables: dict[str, Any], status: int, message: str) -> None:
    document = {
        "space": {"kind": "area", "width": 3.0, "height": 2.0},
        "prior": {"uniform": True},
        "observables": {"columns": 3, "rows": 2},
    }
    refused = api.post("/api/problems", json={"document": document | tables})
    assert refused.status_code == status
    assert message in refused.json()["error"]["message"]
    assert "9.25" not in refused.text
