"""The OpenAPI document of the service is kept: whatever fits it gets one of the answers that it lists."""

import tempfile
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, settings
from schemathesis.checks import CHECKS

from people_service import HOSTS, fleet_of_cells
from privacygames.releases import Budget
from privacygames.service import ServiceSettings, create_service

CHOSEN = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
)
FOLDER = Path(tempfile.mkdtemp(prefix="privacygames-openapi-"))


class Lasting:
    """The application, which is started once and not stopped after each request as Schemathesis would."""

    def __init__(self) -> None:
        self.app: Any = None
        self.client: Any = None

    def start(self) -> None:
        """Start it."""
        fleet = fleet_of_cells(FOLDER / "people")
        service = ServiceSettings(fleet, str(FOLDER / "s.db"), budgets=(Budget(40.0),))
        self.app = create_service(service, hosts=HOSTS)
        self.client = TestClient(self.app, base_url="http://localhost")
        self.client.__enter__()

    def stop(self) -> None:
        """Stop it."""
        if self.client is not None:
            self.client.__exit__(None, None, None)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            if self.app is None:
                self.start()
            await self.app(scope, receive, send)
            return
        while (await receive())["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
        await send({"type": "lifespan.shutdown.complete"})


lasting = Lasting()
document = create_service(ServiceSettings(".", "never opened"), hosts=HOSTS)


async def described(scope: Any, receive: Any, send: Any) -> None:
    """The document's own address needs no fleet; every other one does."""
    await (document if scope.get("path") == "/openapi.json" else lasting)(scope, receive, send)


schema = schemathesis.openapi.from_asgi("/openapi.json", described)


@pytest.fixture(scope="module", autouse=True)
def ended() -> Any:
    yield
    lasting.stop()


@schema.parametrize()
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_answers_are_those_of_the_document(case: Any) -> None:
    """Half of the time about a person who is there, with a secret that is one."""
    checks: list[Any] = [CHECKS.get_one(name) for name in CHOSEN]
    if case.path_parameters and len(str(case.path_parameters.get("person", ""))) % 2:
        case.path_parameters["person"] = "bob" if case.method == "DELETE" else "ada"
        if isinstance(case.body, dict) and "secret" in case.body:
            case.body["secret"], case.body["point"] = "cell-1", None
    case.call_and_validate(checks=checks)


def test_every_success_is_a_named_schema_whose_fields_are_described() -> None:
    api = TestClient(document, base_url="http://localhost")
    described_by = api.get("/openapi.json").json()
    schemas = described_by["components"]["schemas"]
    for address, methods in described_by["paths"].items():
        for method, operation in methods.items():
            for status, response in operation["responses"].items():
                for kind, content in response.get("content", {}).items():
                    if status.startswith("2") and kind == "application/json":
                        name = content["schema"]["$ref"].rpartition("/")[2]
                        fields = schemas[name]["properties"]
                        assert all("description" in field for field in fields.values()), f"{method} {address}: {name}"
