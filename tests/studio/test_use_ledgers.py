"""Outputs day after day: charged before they are seen, safe with two programs at once, and silent about secrets."""

import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from math import exp
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient

import privacygames as pg
from privacygames.releases import Ledger
from studio_server import AGES, client, command, described, designed

SECRET = {"latitude": 39.912345, "longitude": 116.387654}
GRID = {
    "space": {"kind": "grid", "columns": 3, "rows": 2, "box": [116.3, 39.88, 116.42, 39.96]},
    "prior": {"counts": [5, 3, 1, 1, 4, 2]},
    "problem": {"cost": "euclidean", "distance": "euclidean"},
}
POINTS = {
    "space": {"kind": "area", "box": [116.3, 39.88, 116.42, 39.96]},
    "prior": {"points": [[116.33, 39.9], [116.39, 39.92]], "weights": [2, 1]},
    "observables": {"columns": 3, "rows": 2},
    "problem": {"cost": "euclidean", "distance": "euclidean"},
}
Json = dict[str, Any]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with client(ledgers=tmp_path_factory.mktemp("data") / "ledgers") as made:
        yield made


@pytest.fixture(scope="module")
def mechanisms(api: TestClient) -> dict[str, str]:
    """Names of mechanisms for ages, cells and points."""
    asked = {"ages": (AGES, {"epsilon": 0.8}), "cells": (GRID, {"epsilon": 0.5}), "points": (POINTS, {"epsilon": 0.5})}
    made = {}
    for name, (document, bounds) in asked.items():
        job = designed(api, described(api, document), bounds=bounds)
        assert job["state"] == "done", job["error"]
        made[name] = str(job["result"]["mechanism"])
    return made


def created(api: TestClient, name: str, mechanism: str, **settings: Any) -> Json:
    answer = api.post("/api/ledgers", json={"name": name, "mechanism": mechanism} | settings)
    assert answer.status_code == 201, answer.text
    view: Json = answer.json()
    return view


def told(view: Json) -> float:
    """The factor in the sentence about the guarantee."""
    return float(view["guarantee"].partition("at most ")[2].split()[0])


def released(api: Any, name: str, body: Json, **more: Any) -> Any:
    return api.post(f"/api/ledgers/{name}/release", json=body | more)


def test_a_day_of_outputs(api: TestClient, mechanisms: dict[str, str]) -> None:
    view = created(api, "my day", mechanisms["cells"], epsilon=1.2)
    assert (view["releases_left"], view["total"], view["share_left"]) == (2, 0, 1.0)
    assert view["secrets"]["box"] == GRID["space"]["box"]  # type: ignore[index]
    assert "per km" in view["unit"]
    assert "1 km apart by at most 3.33 times" in view["guarantee"]  # exp(1.2), rounded up
    for number in (1, 2):
        view = released(api, "my day", {"at": SECRET}).json()
        assert view["released"]["number"] == number
        assert view["history"][0] == view["released"]
        assert {"latitude", "longitude", "width", "height", "text"} <= set(view["released"]["output"])
    assert view["releases_left"] == 0
    assert view["next"] > view["history"][0]["time"] + 23 * 3600
    refused = released(api, "my day", {"at": SECRET})
    assert refused.status_code == 409
    assert refused.json()["error"]["status"] == "SPENT"
    assert api.get("/api/ledgers/my day").json()["total"] == 2


def test_the_same_request_is_answered_once(api: TestClient, mechanisms: dict[str, str]) -> None:
    created(api, "once", mechanisms["ages"], epsilon=10.0)
    first = released(api, "once", {"secret": 22}, key="a press of the button").json()
    again = released(api, "once", {"secret": 22}, key="a press of the button").json()
    assert again["total"] == first["total"] == 1
    assert again["released"] == first["released"]


def test_pausing(api: TestClient, mechanisms: dict[str, str]) -> None:
    created(api, "paused", mechanisms["ages"], epsilon=10.0)
    assert api.post("/api/ledgers/paused/pause", json={"paused": True}).json()["paused"]
    refused = released(api, "paused", {"secret": 22})
    assert (refused.status_code, refused.json()["error"]["status"]) == (409, "PAUSED")
    assert not api.post("/api/ledgers/paused/pause", json={"paused": False}).json()["paused"]
    assert released(api, "paused", {"secret": 22}).json()["total"] == 1


def test_same_place_same_output(api: TestClient, mechanisms: dict[str, str]) -> None:
    view = created(api, "same", mechanisms["points"], epsilon=1.0, policy="same", place=0.2)
    centres = exp(1 + 0.2 * 2**0.5)  # points count as the centres of their squares
    assert centres <= told(view) < 1.01 * centres
    outputs = [released(api, "same", {"at": SECRET}).json()["released"] for _ in range(6)]
    assert len({each["output"]["text"] for each in outputs}) == 1
    assert [each["charged"] for each in outputs] == [True] + 5 * [False]
    created(api, "same cell", mechanisms["cells"], epsilon=1.0, policy="same")
    assert len({released(api, "same cell", {"at": SECRET}).json()["released"]["output"]["text"] for _ in range(6)}) == 1


def test_frequent_places(api: TestClient, mechanisms: dict[str, str]) -> None:
    view = created(api, "places", mechanisms["points"], epsilon=1.0, policy="places", places=[SECRET], radius=0.3)
    assert view["places"] == 1
    assert exp(1 + 2 * 0.3) <= told(view) < 1.01 * exp(1 + 2 * 0.3)
    away = {"latitude": 39.89, "longitude": 116.31}
    assert "first release must be at one of the places" in released(api, "places", {"at": away}).text
    home = released(api, "places", {"at": SECRET | {"latitude": 39.9125}}).json()["released"]
    road = released(api, "places", {"at": away}).json()["released"]
    assert (road["source"], road["charged"], road["output"]) == ("away", False, home["output"])


def test_a_budget_with_a_delta(api: TestClient, mechanisms: dict[str, str]) -> None:
    view = created(api, "delta", mechanisms["points"], epsilon=4.0, delta=1e-6, within=1.0)
    assert view["releases_left"] > 4
    assert view["charge"] is None  # it is no ε
    assert "1e-06" in view["guarantee"]
    after = released(api, "delta", {"at": SECRET}).json()
    assert after["releases_left"] == view["releases_left"] - 1
    assert after["share_left"] < 1


@pytest.mark.parametrize(
    ("settings", "code", "said"),
    [
        ({"epsilon": 0.1}, 422, "costs more than this budget"),
        ({"epsilon": -1.0}, 422, "greater than 0"),
        ({"epsilon": 1.0, "policy": "places"}, 422, "places and a radius"),
        ({"epsilon": 1.0, "policy": "places", "places": [SECRET], "radius": 0.2}, 422, "for coordinates"),
        ({"epsilon": 1.0, "policy": "same", "place": 0.2}, 422, "leave the size"),
        ({"epsilon": 1.0, "within": 0.2}, 422, "goes with delta"),
        ({"epsilon": 1.0, "name": "../up"}, 422, "name"),
        ({"epsilon": 1.0, "name": ".hidden"}, 422, "name"),
        ({"epsilon": 1.0, "mechanism": "unknown"}, 404, "no such mechanism"),
    ],
)
def test_what_cannot_be_made_is_refused(
    api: TestClient, mechanisms: dict[str, str], settings: Json, code: int, said: str
) -> None:
    body = {"name": "refused", "mechanism": mechanisms["cells"]} | settings
    answer = api.post("/api/ledgers", json=body)
    assert (answer.status_code, said in answer.text) == (code, True), answer.text
    assert "39.9" not in answer.text
    assert "refused" not in api.get("/api/ledgers").json()["ledgers"]


def test_names_are_taken_once(api: TestClient, mechanisms: dict[str, str]) -> None:
    created(api, "twice", mechanisms["ages"], epsilon=5.0)
    answer = api.post("/api/ledgers", json={"name": "twice", "mechanism": mechanisms["ages"], "epsilon": 9.0})
    assert (answer.status_code, answer.json()["error"]["status"]) == (409, "EXISTS")
    assert api.get("/api/ledgers/twice").json()["epsilon"] == 5.0
    assert api.get("/api/ledgers/nobody").status_code == 404
    assert api.get("/api/ledgers/..").status_code == 404


def test_without_a_limit_of_epsilon_there_is_no_ledger(api: TestClient) -> None:
    job = designed(api, described(api), bounds={"distortion": 0.5})
    answer = api.post("/api/ledgers", json={"name": "any", "mechanism": job["result"]["mechanism"], "epsilon": 1.0})
    assert answer.status_code == 422
    assert "limit of ε" in answer.text


@pytest.mark.parametrize("kind", ["cells", "points"])
def test_outside_of_the_map(api: TestClient, mechanisms: dict[str, str], kind: str) -> None:
    """Refused by ledgers and for one output alike, without a word of where it was."""
    created(api, f"outside {kind}", mechanisms[kind], epsilon=5.0)
    far = {"at": {"latitude": 48.1374, "longitude": 11.5755}}
    for answer in (
        released(api, f"outside {kind}", far),
        api.post(f"/api/mechanisms/{mechanisms[kind]}/sample", json=far),
    ):
        assert answer.status_code == 422
        assert "outside of the map" in answer.text
        assert "48.1" not in answer.text
    assert api.get(f"/api/ledgers/outside {kind}").json()["total"] == 0


def test_a_cell_by_its_position(api: TestClient, mechanisms: dict[str, str]) -> None:
    """The cell that a position lies in is the secret: where nothing is hidden, the answer is its own cell."""
    job = designed(api, described(api, GRID), bounds={"distortion": 0.0})
    answer = api.post(f"/api/mechanisms/{job['result']['mechanism']}/sample", json={"at": SECRET}).json()
    assert answer == {"answers": ["cell-2"]}  # the south-east one


def test_files_hold_no_secret_and_belong_to_their_owner(api: TestClient, mechanisms: dict[str, str]) -> None:
    """Nothing that is written after a ledger was made depends on the secret but through the outputs."""
    folder = Path(created(api, "silent", mechanisms["points"], epsilon=9.0, policy="same", place=0.2)["folder"])
    for _ in range(3):
        released(api, "silent", {"at": SECRET})
    content = b"".join(each.read_bytes() for each in folder.iterdir())
    for digits in (b"39.9123", b"116.3876"):
        assert digits not in content
    modes = {stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}
    assert modes == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    with Ledger.open_existing(folder / "ledger.sqlite") as ledger:
        assert ledger.verify().releases == 3
    assert pg.verify(folder / "mechanism.pgm").bounds.epsilon == 0.5


@pytest.mark.slow
def test_two_programs_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two servers and four tabs on one ledger: never more outputs than the budget has room for, and none unrecorded."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with command() as (one, _), command() as (other, _), httpx2.Client(timeout=60.0) as web:

        def ask(home: str, path: str, body: Json) -> Any:
            return web.post(f"{home}api/{path}", json=body)

        problem = ask(one, "problems", {"document": AGES}).json()["id"]
        job = ask(one, "jobs", {"problem": problem, "bounds": {"epsilon": 0.5}}).json()["id"]
        while (state := web.get(f"{one}api/jobs/{job}").json())["state"] in ("queued", "running"):
            pass
        body = {"name": "shared", "mechanism": state["result"]["mechanism"], "epsilon": 3.2}
        assert ask(one, "ledgers", body).status_code == 201
        assert web.get(f"{other}api/ledgers").json()["ledgers"] == ["shared"]
        with ThreadPoolExecutor(4) as pool:
            homes = [one, other] * 8
            answers = list(pool.map(lambda home: ask(home, "ledgers/shared/release", {"secret": 22}), homes))
        made = [each.json()["released"]["number"] for each in answers if each.status_code == 200]
        assert sorted(made) == [1, 2, 3, 4, 5, 6]
        assert {each.json()["error"]["status"] for each in answers if each.status_code != 200} == {"SPENT"}
        assert web.get(f"{other}api/ledgers/shared").json()["total"] == 6
    with Ledger.open_existing(tmp_path / "privacygames" / "ledgers" / "shared" / "ledger.sqlite") as ledger:
        assert ledger.verify().releases == 6


def test_nothing_is_made_before_it_is_asked_for(tmp_path: Path) -> None:
    with client(ledgers=tmp_path / "ledgers") as api:
        assert api.get("/api/ledgers").json() == {"folder": str(tmp_path / "ledgers"), "ledgers": []}
        assert api.get("/api/about").json()["ledgers"] is True
    assert not (tmp_path / "ledgers").exists()
    with client() as api:
        assert api.get("/api/about").json()["ledgers"] is False
        assert api.get("/api/ledgers").status_code == 404


def test_altered_files_are_said(api: TestClient, mechanisms: dict[str, str]) -> None:
    folder = Path(created(api, "altered", mechanisms["ages"], epsilon=5.0)["folder"])
    settings = folder / "settings.json"
    settings.write_text(re.sub(r'"key":"\w+"', '"key":"short"', settings.read_text()))
    answer = api.get("/api/ledgers/altered")
    assert answer.status_code == 422
    assert "altered" in answer.text


ASK = "import sys, urllib.error, urllib.request as web\ntry:\n print(web.urlopen(sys.argv[1]).status)\n"
ASK += "except urllib.error.HTTPError as error:\n print(error.code, error.read().decode())"


@pytest.mark.skipif(os.name != "posix" or os.getuid() != 0, reason="only root can be another user for a moment")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_other_users_of_this_machine_are_refused(host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever may connect to the loopback address could spend the budget, and try places out."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with command("--host", host) as (url, _):
        ask = [shutil.which("python3", path="/usr/bin:/bin") or sys.executable, "-c", ASK]
        for path, user, said in (("ledgers", 0, "200"), ("ledgers", 65534, "403"), ("about", 65534, "200")):
            answer = subprocess.run([*ask, f"{url}api/{path}"], user=user, capture_output=True, text=True, check=True)
            assert answer.stdout.startswith(said)
