"""A bounded load on the real server: everybody gets an answer, and nobody an error."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from studio_server import AGES, command
from waiting import GUARD, wait_until

REQUESTS = 400


def ask(connection: HTTPConnection, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    content = None if body is None else json.dumps(body)
    connection.request(method, path, content, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def mechanism(connection: HTTPConnection) -> str:
    _, problem = ask(connection, "POST", "/api/problems", {"document": AGES})
    _, job = ask(connection, "POST", "/api/jobs", {"problem": problem["id"], "bounds": {"epsilon": 1.0}})

    def result() -> Any:
        _, now = ask(connection, "GET", f"/api/jobs/{job['id']}")
        assert now["state"] in ("queued", "running", "done")
        return now["result"]

    return str(wait_until(result)["mechanism"])


@pytest.mark.slow
def test_sampling_with_one_ten_and_a_hundred_clients() -> None:
    with command() as (url, _):
        host = urlsplit(url).netloc
        with closing(HTTPConnection(host, timeout=GUARD)) as first:
            name = mechanism(first)

        def client(requests: int) -> int:
            with closing(HTTPConnection(host, timeout=GUARD)) as connection:
                for _ in range(requests):
                    code, found = ask(connection, "POST", f"/api/mechanisms/{name}/sample", {"secret": 22})
                    assert code == 200
                    assert found["answers"][0] in range(20, 26)
            return requests

        for clients in (1, 10, 100):
            with ThreadPoolExecutor(clients) as pool:
                each = max(2, REQUESTS // clients)
                assert sum(pool.map(client, [each] * clients)) == each * clients
