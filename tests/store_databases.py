"""Both databases of a store."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from postgresql_server import Server, running_server, why_not

_numbers = count()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL server; tests that need it are skipped where there is none."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with running_server() as started:
        yield started


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty database of each kind."""
    if request.param == "sqlite":
        yield str(tmp_path / "store.db")
        return
    server = request.getfixturevalue("server")
    name = f"store_{next(_numbers)}"
    yield server.create(name)
    server.drop(name)
