"""What is taken away for a device, and the figure of policies, over HTTP."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

import privacygames as pg
from studio_server import client, described, designed, over


@pytest.fixture(scope="module")
def api() -> Iterator[TestClient]:
    with client() as made:
        yield made


def test_the_file_for_a_device(api: TestClient) -> None:
    made = designed(api, described(api))["result"]["mechanism"]
    answer = api.get(f"/api/mechanisms/{made}/device")
    on_device = pg.device.decode(answer.content)
    assert on_device.epsilon == api.get(f"/api/mechanisms/{made}").json()["certificate"]["bounds"]["epsilon"]
    assert on_device.sample(22) in range(20, 26)
    assert answer.headers["content-disposition"] == 'attachment; filename="private-mechanism.pgd"'
    assert answer.headers["x-disclosure"].startswith("private")
    free = designed(api, described(api), bounds={"distortion": 0.5})["result"]["mechanism"]
    refused = api.get(f"/api/mechanisms/{free}/device")
    assert refused.status_code == 422
    assert "epsilon" in refused.text


@pytest.mark.slow
def test_the_figure_of_policies(api: TestClient) -> None:
    problem = api.post("/api/problems", json={"invented": {"columns": 6, "rows": 4}}).json()["id"]
    started = api.post("/api/jobs", json={"kind": "policies", "problem": problem, "budget": 60.0}).json()["id"]
    result = over(api, started)["result"]
    assert result["figure"].startswith("<?xml")
    assert "<svg" in result["figure"]
    for row in result["rows"]:
        assert row["policy"].capitalize()[:8].lower() in result["figure"].lower()
    assert "script" not in result["figure"].lower().replace("description", "")
