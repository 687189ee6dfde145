"""The OpenAPI document is kept: whatever fits it gets one of the answers that it lists."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, settings
from schemathesis.checks import CHECKS

import privacygames as pg
from privacygames.problem import parse_problem
from privacygames.studio import Limits, create_app
from studio_server import AGES, described

CHOSEN = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
)
HOSTS = frozenset({"testserver", "localhost"})

LEDGERS = TemporaryDirectory()

app = create_app(
    limits=Limits(queue=2, secrets=30, job_seconds=1.0), hosts=HOSTS, page=False, ledgers=Path(LEDGERS.name)
)


async def lasting(scope: Any, receive: Any, send: Any) -> None:
    """The application, which is not stopped after each request as Schemathesis would."""
    if scope["type"] != "lifespan":
        await app(scope, receive, send)
        return
    while (await receive())["type"] == "lifespan.startup":
        await send({"type": "lifespan.startup.complete"})
    await send({"type": "lifespan.shutdown.complete"})


schema = schemathesis.openapi.from_asgi("/api/openapi.json", lasting)


@cache
def known() -> dict[str, str]:
    """Names of a mechanism, of a problem and of a ledger that are there."""
    api = TestClient(app, base_url="http://localhost")
    problem, _ = parse_problem(AGES)
    verified = api.post("/api/verify", content=pg.design(problem, epsilon=1.0).to_bytes())
    mechanism = verified.json()["id"]
    made = api.post("/api/ledgers", json={"name": "mine", "mechanism": mechanism, "epsilon": 9.0})
    return {"mechanisms": mechanism, "problems": described(api), "ledgers": made.json()["name"]}


@pytest.fixture(scope="module", autouse=True)
def ended() -> Iterator[None]:
    """No process is left at work for other tests to meet."""
    yield
    with TestClient(app, base_url="http://localhost"):
        pass
    LEDGERS.cleanup()


@schema.parametrize()
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_answers_are_those_of_the_document(case: Any) -> None:
    """Half of the time about a mechanism or a problem that is there."""
    checks: list[Any] = [CHECKS.get_one(name) for name in CHOSEN]
    parts = case.operation.path.split("/")
    if case.path_parameters and parts[2] in known() and len(str(case.path_parameters["name"])) % 2:
        case.path_parameters["name"] = known()[parts[2]]
    if isinstance(case.body, dict) and isinstance(case.body.get("problem"), str):
        case.body["problem"] = known()["problems"]
    if isinstance(case.body, dict) and parts[2] == "ledgers" and isinstance(case.body.get("mechanism"), str):
        case.body["mechanism"] = known()["mechanisms"]
    case.call_and_validate(checks=checks)
