"""A service for a few people: in this process for its answers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

import privacygames as pg
from privacygames.releases import Budget
from privacygames.service import ServiceSettings, create_service

CITY = pg.Grid(3, 1, 3.0, 1.0)
LINE = pg.Interval(0.0, 4.0, unit="hours")
HOSTS = frozenset({"testserver", "localhost"})
BUDGETS = (Budget(8.8), Budget(6.0, every=3600.0))


def fleet_of_cells(folder: Path, *names: str) -> str:
    """A fleet with ε = 2 between three cells."""
    priors = {name: pg.Prior.from_counts(CITY, [3, 3, 2]) for name in names or ("ada", "bob")}
    pg.fleet.design(priors, out=folder, epsilon=2.0, jobs=1)
    return str(folder)


def fleet_of_points(folder: Path) -> str:
    """A fleet with ε = 2 between points of a line."""
    priors = {name: pg.PointPrior(LINE, [1.0, 3.0]) for name in ("ada", "bob")}
    pg.fleet.design(priors, out=folder, observables=[1.0, 2.0, 3.0], epsilon=2.0, jobs=1)
    return str(folder)


@contextmanager
def client(fleet: str, store: str, *, options: Any = None, **settings: Any) -> Iterator[TestClient]:
    """The service, asked directly."""
    service = ServiceSettings(fleet, store, **{"budgets": BUDGETS, **settings})
    app = create_service(service, hosts=HOSTS, **(options or {}))
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as made:
        yield made
