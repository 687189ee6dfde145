"""A studio to test: in this process for its answers, as a command of its own for sockets and browsers."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi.testclient import TestClient

from privacygames.studio import Limits, create_app
from waiting import GUARD, wait_until

HOME = "http://127.0.0.1:8642"
AGES = {
    "space": {"kind": "numbers", "from": 20, "to": 25, "unit": "years"},
    "prior": {"counts": [1, 2, 3, 3, 2, 1]},
    "problem": {"cost": "hamming", "distance": "absolute"},
}
Json = dict[str, Any]


@contextmanager
def client(limits: Limits | None = None, **options: Any) -> Iterator[TestClient]:
    """The application, asked directly."""
    with TestClient(create_app(limits=limits, **options), base_url=HOME) as made:
        yield made


@contextmanager
def command(*options: str, token: str | None = None) -> Iterator[tuple[str, int]]:
    """``privacygames studio`` as a process; gives its address and its process id. It must end quietly."""
    env = {**os.environ, "PRIVACYGAMES_THREADS": "1"} | ({} if token is None else {"PRIVACYGAMES_TOKEN": token})
    arguments = [sys.executable, "-m", "privacygames", "studio", "--no-browser", "--port", "0", *options]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    try:
        found = re.search(r"http://\S+/", process.stdout.readline())
        assert found is not None
        yield found[0], process.pid
    finally:
        process.terminate()
        _, complaints = process.communicate(timeout=GUARD)
    assert complaints == ""


def described(made: TestClient, document: Json | None = None) -> str:
    """The name of a problem, by default of six ages."""
    answer = made.post("/api/problems", json={"document": document or AGES})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def over(made: TestClient, name: str) -> Json:
    """A job, once it is over."""

    def ended() -> Json | None:
        found: Json = made.get(f"/api/jobs/{name}").json()
        return found if found["state"] in ("done", "failed", "cancelled") else None

    return wait_until(ended) or {}


def designed(made: TestClient, problem: str, **asked: Any) -> Json:
    """The job of a design, once it is over."""
    body = {"problem": problem, "bounds": {"epsilon": 0.8, "distortion": 0.5}} | asked
    answer = made.post("/api/jobs", json=body)
    assert answer.status_code == 202, answer.text
    return over(made, answer.json()["id"])
