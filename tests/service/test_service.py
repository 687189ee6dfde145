"""The service: what is released is charged first, and what is refused says why without a secret or a name."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import privacygames as pg
from people_service import CITY, client, fleet_of_cells, fleet_of_points
from privacygames.service import Tokens, new_token


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> str:
    return fleet_of_cells(tmp_path_factory.mktemp("fleet") / "people")


def about(epsilon: float) -> Any:
    """What a mechanism of a fleet realises: its weights are rounded to 17 bits."""
    return pytest.approx(epsilon, abs=3e-4)


def released(api: Any, person: str = "ada", secret: object = "cell-1", key: str | None = None) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    return api.post(f"/v1/people/{person}/releases", json={"secret": secret}, headers=headers)


def test_releases_are_charged_until_the_window_is_full(people: str, url: str) -> None:
    with client(people, url) as api:
        for number in (1, 2, 3):
            answer = released(api)
            assert answer.status_code == 201
            assert answer.json()["output"] in CITY.labels
            assert answer.json()["spent"] == about(2.0 * number)
            assert answer.headers["location"] == f"/v1/people/ada/releases/{number}"
            assert api.get(answer.headers["location"]).json()["output"] == answer.json()["output"]
        refused = released(api)
        assert (refused.status_code, refused.json()["error"]["status"]) == (409, "SPENT")
        balance = api.get("/v1/people/ada/balance").json()
        assert balance["releases"] == 3
        rows = [(each["name"], float(each["spent"]), float(each["left"])) for each in balance["budgets"]]
        assert rows == [("total", about(6.0), about(2.8)), ("every 1 h", about(6.0), about(0.0))]
        assert api.get("/v1/people/bob/balance").json() == {"releases": 0, "budgets": []}
    with pg.LedgerStore(url) as store:
        assert store.verify() == 1
        assert store.ledger("ada").verify().releases == 3


def test_a_retry_returns_the_same_output(people: str, url: str) -> None:
    with client(people, url) as api:
        first = released(api, key="monday 8:00")
        again = released(api, secret="cell-2", key="monday 8:00")
        assert (first.status_code, again.status_code) == (201, 200)
        assert again.json() == first.json() | {"repeated_key": True}
        assert again.headers["location"] == first.headers["location"]
    with client(people, url) as api:  # after a restart, too
        assert released(api, key="monday 8:00").json() == again.json()
        assert api.get("/v1/people/ada/balance").json()["releases"] == 1


def test_many_clients_at_once_never_exceed_a_budget(people: str, url: str) -> None:
    with client(people, url) as api, ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda number: released(api, ("ada", "bob")[number % 2], key=f"{number // 4}"), range(40))
        )
        for person in ("ada", "bob"):
            assert api.get(f"/v1/people/{person}/balance").json()["releases"] == 3
    numbers = {(each.headers["location"], each.json()["output"]) for each in answers if each.status_code in (200, 201)}
    assert len(numbers) == 6
    assert {each.status_code for each in answers} <= {200, 201, 409}


def test_points_are_released_and_sampled(tmp_path: Path, url: str) -> None:
    with client(fleet_of_points(tmp_path / "people"), url) as api:
        answer = api.post("/v1/people/ada/releases", json={"point": [1.25]})
        assert answer.status_code == 201
        assert answer.json()["output"] in (1.0, 2.0, 3.0)
        assert answer.json()["counted"] == "per hour"
        drawn = api.post("/v1/people/ada/samples", json={"point": [1.25], "count": 5}).json()["outputs"]
        assert len(drawn) == 5
        assert api.get("/v1/people/ada/balance").json()["releases"] == 1
        for wrong in ({"secret": "cell-1"}, {"point": [1.0, 2.0]}, {}):
            assert api.post("/v1/people/ada/releases", json=wrong).status_code == 422


@pytest.mark.parametrize("kind", ["cells", "points"])
def test_a_memoised_secret_has_one_output_and_is_charged_once(kind: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_bytes(b"k" * 32)
    fleet = (fleet_of_cells if kind == "cells" else fleet_of_points)(tmp_path / "people")
    settings: dict[str, Any] = {"memo_key_file": str(tmp_path / "key")} | ({} if kind == "cells" else {"place": 0.5})
    outputs = set()
    for _ in range(2):
        with client(fleet, str(tmp_path / "s.db"), **settings) as api:
            for _ in range(3):
                body = {"secret": "cell-1"} if kind == "cells" else {"point": [1.25]}
                answer = api.post("/v1/people/ada/releases", json=body).json()
                outputs.add(answer["output"])
                assert (answer["spent"], answer["source"]) == (about(2.0), "memoised")
    assert len(outputs) == 1


def test_a_person_is_added_changed_and_erased(tmp_path: Path, url: str) -> None:
    """A new prior is in force at once, also for another worker; the account goes on."""
    fleet = fleet_of_cells(tmp_path / "people")
    with client(fleet, url) as api, client(fleet, url) as worker:
        assert released(worker, "eve").status_code == 404
        weights = {"weights": [{"secret": "cell-2", "weight": 3}, {"secret": "cell-0", "weight": 1}]}
        added = api.put("/v1/people/eve", json=weights)
        assert (added.status_code, added.json()["epsilon"], added.json()["added"]) == (201, 2.0, True)
        assert added.headers["location"] == "/v1/people/eve"
        assert released(worker, "eve").json()["spent"] == about(2.0)
        weights["weights"][0]["weight"] = 1
        changed = api.put("/v1/people/eve", json=weights)
        assert (changed.status_code, changed.json()["added"]) == (200, False)
        assert released(worker, "eve").json()["spent"] == about(4.0)  # another mechanism, the same account
        assert released(worker, "ada").json()["spent"] == about(2.0)
        assert api.delete("/v1/people/eve").status_code == 204
        assert api.delete("/v1/people/eve").status_code == 404
        assert released(worker, "eve").status_code == 404
        assert "generations_total 3" in worker.get("/metrics").text
    with pg.LedgerStore(url) as store:
        assert list(store) == ["ada"]
        assert store.verify() == 1


def test_requests_that_cannot_be_served(people: str, tmp_path: Path) -> None:
    with client(people, str(tmp_path / "s.db")) as api:
        address = "/v1/people/ada/releases"
        json_type = {"content-type": "application/json"}
        assert api.post(address, content="{", headers=json_type).status_code == 400
        assert api.post(address, content="secret=cell-1").status_code == 415
        assert api.post(address, content="{}", headers={"content-type": "text/plain"}).status_code == 415
        assert released(api, secret="the cellar").status_code == 422
        assert released(api, "mallory").status_code == 404
        assert api.get("/v1/people/mallory/balance").status_code == 404
        assert api.get(f"{address}/1").status_code == 404
        assert api.get(address).status_code == 405
        assert api.get("/v1/nothing").status_code == 404
        assert released(api, key="x" * 201).status_code == 422
        for answer in (released(api, secret="the cellar"), released(api, "mallory")):
            assert "cellar" not in answer.text
            assert "mallory" not in answer.text
        assert "budgets" in api.get("/v1/people/ada/balance").json()


def test_a_token_has_scopes_and_can_be_revoked(people: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    tokens = {scope: new_token(file, [scope], label=f"for {scope}") for scope in ("release", "balance", "metrics")}
    assert all(token not in file.read_text() for token in tokens.values())
    assert file.stat().st_mode & 0o777 == 0o600
    with client(people, str(tmp_path / "s.db"), options={"tokens": Tokens(file)}) as api:

        def status(method: str, address: str, scope: str | None) -> int:
            headers = {} if scope is None else {"authorization": f"Bearer {tokens.get(scope, scope)}"}
            body = {"secret": "cell-1"} if method == "POST" else None
            return int(api.request(method, address, json=body, headers=headers).status_code)

        assert [status("GET", each, None) for each in ("/healthz", "/readyz", "/openapi.json", "/metrics")] == [
            200,
            200,
            200,
            401,
        ]
        expected = {"release": (201, 403, 403, 403), "balance": (403, 200, 403, 403), "metrics": (403, 403, 403, 200)}
        requests = [
            ("POST", "/v1/people/ada/releases"),
            ("GET", "/v1/people/ada/balance"),
            ("DELETE", "/v1/people/ada"),
            ("GET", "/metrics"),
        ]
        for scope, codes in expected.items():
            assert tuple(status(*request, scope) for request in requests) == codes
        assert status("POST", "/v1/people/ada/releases", "wrong") == 401
        lines = file.read_text().splitlines()
        file.write_text("\n".join(line for line in lines if "for release" not in line) + "\n")
        assert status("POST", "/v1/people/ada/releases", "release") == 401
        assert status("GET", "/v1/people/ada/balance", "balance") == 200


def test_a_database_that_is_stopped_releases_nothing(people: str, server: Any) -> None:
    url = server.create("service_stopped")
    with client(people, url) as api:
        assert released(api).status_code == 201
        server.stop("immediate")
        try:
            refused = released(api, key="k")
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
            assert refused.json()["error"]["status"] == "UNAVAILABLE"
            assert api.get("/readyz").status_code == 503
            assert api.get("/healthz").status_code == 200
        finally:
            server.start()
        assert api.get("/readyz").status_code == 200
        assert released(api, key="k").json()["number"] == 2


def test_no_secret_and_no_name_is_in_logs_and_metrics(
    people: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with client(people, str(tmp_path / "s.db"), options={"log_requests": True}) as api:
        released(api, key="a private key")
        released(api, secret="the cellar")
        released(api, "mallory")
        metrics = api.get("/metrics").text
    out, err = capfd.readouterr()
    lines = [json.loads(line) for line in err.splitlines()]
    assert [(each["route"], each["status"]) for each in lines] == [
        ("release", 201),
        ("release", 422),
        ("release", 404),
        ("operation", 200),
    ]
    for text in (out, err, metrics):
        assert not any(word in text for word in ("ada", "mallory", "cell", "private"))
    assert 'privacygames_releases_total{outcome="released"} 1\n' in metrics
    assert 'privacygames_requests_total{route="release",class="4xx"} 2\n' in metrics
    assert 'privacygames_commit_releases_bucket{le="+Inf"} 2\n' in metrics
    assert "# TYPE privacygames_release_seconds histogram" in metrics


def test_releases_that_wait_are_one_transaction(people: str, tmp_path: Path) -> None:
    """While a transaction is held up, the releases that come gather, and are committed together."""
    with client(people, str(tmp_path / "s.db"), budgets=()) as api, pg.LedgerStore(tmp_path / "s.db") as other:
        released(api)
        threads = [threading.Thread(target=released, args=(api, ("ada", "bob")[number % 2])) for number in range(8)]
        with other.transaction([]):
            for thread in threads:
                thread.start()
        for thread in threads:
            thread.join()
        assert api.get("/v1/people/bob/balance").json()["releases"] == 4
        metrics = dict(line.rsplit(" ", 1) for line in api.get("/metrics").text.splitlines() if line[0] != "#")
    assert float(metrics["privacygames_commit_releases_sum"]) == 9
    assert float(metrics["privacygames_commit_releases_count"]) <= 9
