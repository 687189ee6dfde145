"""The OpenAPI document is kept: whatever fits it gets one of the answers that it lists."""

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import CHECKS

from privacygames.studio import Limits, create_app

CHOSEN = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
)


@pytest.fixture(scope="module")
def document() -> schemathesis.BaseSchema:
    app = create_app(limits=Limits(queue=2, secrets=30, job_seconds=1.0), page=False)
    return schemathesis.openapi.from_asgi("/api/openapi.json", app)


schema = schemathesis.pytest.from_fixture("document")


@schema.parametrize()
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_answers_are_those_of_the_document(case: schemathesis.Case) -> None:
    case.call_and_validate(checks=[CHECKS.get_one(name) for name in CHOSEN])
