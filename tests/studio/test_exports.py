"""Every export says whether it is private; what is shareable does not depend on any single visit."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import privacygames as pg
from privacygames.mechanism import read_container
from privacygames.mechanism_files import load_finite
from privacygames.studio.exports import private_toml, report, shareable_problem, shareable_report
from privacygames.studio.problem_source import ProblemSource, tables_from_visits
from privacygames.studio.stored_mechanism import StoredMechanism
from privacygames.studio.views import mechanism_view

from studio_server import AGES, client, described as made_problem, designed  # isort: skip

BOUNDS: dict[str, Any] = {"epsilon": 1.0, "distortion": 0.2}
PRIVATE_ROUTES = ("file", "device", "report", "report?counts=true")
SHAREABLE_ROUTES = ("shareable/problem", "shareable/report")


@pytest.fixture(scope="module")
def api() -> Iterator[TestClient]:
    with client() as made:
        yield made


@pytest.fixture(scope="module")
def mechanism(api: TestClient) -> str:
    problem = made_problem(api, AGES | {"prior": {"counts": [7771, 4000, 9000, 8000, 3000, 2000]}})
    return str(designed(api, problem, bounds=BOUNDS)["result"]["mechanism"])


def test_every_export_says_what_it_is(api: TestClient, mechanism: str, tmp_path: Path) -> None:
    for routes, word in ((PRIVATE_ROUTES, "private"), (SHAREABLE_ROUTES, "shareable")):
        for route in routes:
            answer = api.get(f"/api/mechanisms/{mechanism}/{route}")
            assert answer.status_code == 200, answer.text
            assert f'filename="{word}-' in answer.headers["content-disposition"]
            assert answer.headers["x-disclosure"].startswith(f"{word}: ")
            assert answer.headers["cache-control"] == "no-store"
            if route not in ("file", "device"):
                assert f"{word}: " in answer.text
                assert ("private" in answer.text) == (word == "private")
    (tmp_path / "m.pgm").write_bytes(api.get(f"/api/mechanisms/{mechanism}/file").content)
    assert read_container(tmp_path / "m.pgm")[0]["disclosure"] == "private: contains the prior"
    recipe = api.get(f"/api/mechanisms/{mechanism}/recipe").json()
    for text in (recipe["toml"], recipe["python"]):
        assert text.splitlines()[0] == "# private: contains the prior"
    exports = api.get(f"/api/mechanisms/{mechanism}").json()["exports"]
    for each in exports.values():
        assert each["name"].split("-")[0] == each["disclosure"].split(":")[0]
    pg.PublicMechanism.of(load_finite(tmp_path / "m.pgm")).save(tmp_path / "p.pgm")
    assert read_container(tmp_path / "p.pgm")[0]["disclosure"] == "private: computed from the prior"


def test_the_file_for_a_device_is_verified_and_says_that_it_is_private(api: TestClient, mechanism: str) -> None:
    content = api.get(f"/api/mechanisms/{mechanism}/device").content
    on_device = pg.device.decode(content)
    assert on_device.disclosure.is_private
    assert (on_device.kind, on_device.epsilon) == ("numbers", BOUNDS["epsilon"])


def test_the_report_has_counts_only_when_asked(api: TestClient, mechanism: str) -> None:
    report = api.get(f"/api/mechanisms/{mechanism}/report").text
    assert "7771" not in report
    assert "problem.toml" not in report
    assert "7771" in api.get(f"/api/mechanisms/{mechanism}/report?counts=true").text


def test_a_shareable_problem_is_a_problem(api: TestClient, mechanism: str) -> None:
    tables = tomllib.loads(api.get(f"/api/mechanisms/{mechanism}/shareable/problem").text)
    assert tables["prior"] == {"uniform": True}
    assert tables["bounds"] == BOUNDS
    again = designed(api, made_problem(api, tables), bounds=tables["bounds"])
    assert again["state"] == "done"


def test_what_may_have_been_computed_from_visits_is_not_shareable(api: TestClient, mechanism: str) -> None:
    odd = {"kind": "grid", "columns": 3, "rows": 2, "box": [6.5321, 46.4951, 6.7281, 46.5671]}
    matrix = {"cost": np.ones((6, 6)).tolist()}
    for document, words in (
        ({"space": odd, "prior": {"uniform": True}}, "public lattice"),
        (AGES | {"problem": matrix}, "given as tables"),
    ):
        job = designed(api, made_problem(api, document), bounds={"epsilon": 1.0})
        for route in SHAREABLE_ROUTES:
            answer = api.get(f"/api/mechanisms/{job['result']['mechanism']}/{route}")
            assert answer.status_code == 422
            assert words in answer.json()["error"]["message"]
    content = api.get(f"/api/mechanisms/{mechanism}/file").content
    opened = api.post("/api/verify", content=content).json()["id"]
    assert "not designed here" in api.get(f"/api/mechanisms/{opened}/shareable/report").json()["error"]["message"]


def test_the_frontier_asks_for_round_bounds(api: TestClient) -> None:
    """Its steps are shares of an error that was computed from the prior: to the last digit they would tell it."""
    from studio_server import over

    body = {"kind": "frontier", "problem": made_problem(api), "bounds": {"epsilon": 0.8}}
    parts = over(api, api.post("/api/jobs", json=body).json()["id"])["parts"]
    asked = [part["asked"] for part in parts if part["asked"] is not None]
    for part in parts:
        for route in SHAREABLE_ROUTES:  # two digits change with a single visit, too
            answer = api.get(f"/api/mechanisms/{part['mechanism']}/{route}")
            assert answer.status_code == 422
            words = "not designed here" if part["asked"] is None else "computed from the prior"
            assert words in answer.json()["error"]["message"]
    assert asked
    assert all(len(re.sub(r"^0\.0*|\.", "", f"{each:.10g}").rstrip("0")) <= 2 for each in asked)


def stored(visits: pg.traces.Visits) -> StoredMechanism:
    """A mechanism as the studio designs it from somebody's visits."""
    tables = tables_from_visits(visits, "ann", 3, 2, "hamming") | {"bounds": BOUNDS}
    source = ProblemSource.validated(tables, most=100, visits=visits, user="ann")
    return StoredMechanism(pg.design(source.problem, **BOUNDS), tables, source)


def visits_at(longitude: Any, latitude: Any) -> pg.traces.Visits:
    times = 600 * np.arange(len(longitude))
    return pg.traces.Visits(np.zeros(len(times), dtype=np.int64), times, latitude, longitude, users=("ann",), slot=600)


def shareable_files(kept: StoredMechanism) -> tuple[str, str]:
    return shareable_problem(kept), shareable_report(kept)


def test_no_single_visit_changes_a_shareable_file(tmp_path: Path) -> None:
    """Each of forty visits is left out, and each is moved within its strips of 0.02°: not a byte changes.

    The prior does change, and with it what is private: that is what the word is for.
    """
    generator = np.random.default_rng(28)
    longitude, latitude = generator.uniform(6.601, 6.679, 40), generator.uniform(46.501, 46.559, 40)
    whole = stored(visits_at(longitude, latitude))
    files = shareable_files(whole)
    assert any(private_toml(whole.tables or {}) != text for text in files)
    for left_out in range(0, 40, 4):
        kept = stored(visits_at(np.delete(longitude, left_out), np.delete(latitude, left_out)))
        assert shareable_files(kept) == files
        assert private_toml(kept.tables or {}) != private_toml(whole.tables or {})
    for moved in range(0, 40, 8):
        other = [values.copy() for values in (longitude, latitude)]
        for values in other:
            values[moved] = np.floor(values[moved] * 50) / 50 + generator.uniform(0.001, 0.019)
        kept = stored(visits_at(*other))
        assert shareable_files(kept) == files
        kept.mechanism.save(tmp_path / "moved.pgm")
        whole.mechanism.save(tmp_path / "whole.pgm")
        headers = [read_container(tmp_path / f"{name}.pgm")[0] for name in ("moved", "whole")]
        assert headers[0]["secrets"] == headers[1]["secrets"]


def test_no_number_of_the_certificate_is_in_a_shareable_file() -> None:
    generator = np.random.default_rng(7)
    kept = stored(visits_at(generator.uniform(6.601, 6.679, 40), generator.uniform(46.501, 46.559, 40)))
    view = mechanism_view("name", kept)
    assert f"{view['cost']:.3g}" in report(kept, view)  # what is measured is in the private one
    numbers = re.findall(r"\d+\.\d{3,}", json.dumps([view["certificate"], view["report"]]))
    assert len(numbers) > 10
    for text in shareable_files(kept):
        assert not any(number in text for number in numbers)
        assert kept.mechanism.certificate.hashes.prior not in text
