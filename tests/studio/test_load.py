"""A bounded load on the real server: everybody gets an answer, and nobody an error. Times are printed, not judged."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from statistics import quantiles
from typing import Any
from urllib.parse import urlsplit

import pytest

from studio_server import AGES, command

REQUESTS = 400


def ask(connection: HTTPConnection, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    content = None if body is None else json.dumps(body)
    connection.request(method, path, content, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def mechanism(connection: HTTPConnection) -> str:
    _, problem = ask(connection, "POST", "/api/problems", {"document": AGES})
    _, job = ask(connection, "POST", "/api/jobs", {"problem": problem["id"], "bounds": {"epsilon": 1.0}})
    while job["state"] in ("queued", "running"):
        time.sleep(0.1)
        _, job = ask(connection, "GET", f"/api/jobs/{job['id']}")
    return str(job["result"]["mechanism"])


@pytest.mark.slow
def test_sampling_with_one_ten_and_a_hundred_clients(capsys: pytest.CaptureFixture[str]) -> None:
    with command() as (url, _):
        host = urlsplit(url).netloc
        with closing(HTTPConnection(host, timeout=60)) as first:
            name = mechanism(first)

        def client(requests: int) -> list[float]:
            seconds = []
            with closing(HTTPConnection(host, timeout=60)) as connection:
                for _ in range(requests):
                    started = time.perf_counter()
                    code, found = ask(connection, "POST", f"/api/mechanisms/{name}/sample", {"secret": 22})
                    seconds.append(time.perf_counter() - started)
                    assert code == 200
                    assert found["answers"][0] in range(20, 26)
            return seconds

        for clients in (1, 10, 100):
            with ThreadPoolExecutor(clients) as pool:
                each = max(2, REQUESTS // clients)
                times = [one for many in pool.map(client, [each] * clients) for one in many]
            assert len(times) == each * clients
            cuts = quantiles(times, n=20)
            with capsys.disabled():
                print(f"\nsampling, {clients} clients: median {1000 * cuts[9]:.1f} ms, 95 % {1000 * cuts[18]:.1f} ms")
