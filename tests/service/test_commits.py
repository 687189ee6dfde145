"""Group commit: who leaves before their turn is not charged, and one person's trouble is not that of others."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import privacygames as pg
from people_service import BUDGETS, fleet_of_cells
from privacygames.service import ServiceSettings
from privacygames.service.accounts import Accounts, CurrentFleet
from privacygames.service.commits import GroupCommit, ReleaseRequest
from waiting import GUARD


@pytest.fixture
def settings(tmp_path: Path) -> ServiceSettings:
    return ServiceSettings(fleet_of_cells(tmp_path / "people"), str(tmp_path / "s.db"), budgets=BUDGETS)


@pytest.fixture
def commits(settings: ServiceSettings) -> Iterator[GroupCommit]:
    with pg.LedgerStore(settings.store) as store:
        made = GroupCommit(Accounts(settings, store, CurrentFleet(settings.fleet)), store)
        yield made
        made.close()


def request(person: str = "ada", secret: Any = "cell-1", key: str | None = None) -> ReleaseRequest:
    return ReleaseRequest(person, secret, key, clock=True)


def test_who_leaves_before_their_turn_is_not_charged(settings: ServiceSettings, commits: GroupCommit) -> None:
    """While another transaction holds the store, one of three leaves; the thread goes on."""
    first, leaving, last = (request() for _ in range(3))
    with pg.LedgerStore(settings.store) as other:
        with other.transaction([]):
            commits.submit(first)
            while not first.result.running():  # it is in a batch of its own, which waits for the store
                pass
            commits.submit(leaving)
            commits.submit(last)
            assert leaving.result.cancel()
        assert {first.result.result(GUARD).number, last.result.result(GUARD).number} == {1, 2}
        assert other.ledger("ada").verify().releases == 2


def test_one_persons_trouble_is_not_that_of_others(settings: ServiceSettings, commits: GroupCommit) -> None:
    """A person who is unknown, a secret that is none, and a budget that is spent, in one batch with others."""
    requests = [request("nobody"), request(secret="cellar"), *(request("bob") for _ in range(4)), request()]
    blocker = request()
    with pg.LedgerStore(settings.store) as other, other.transaction([]):
        commits.submit(blocker)
        while not blocker.result.running():
            pass
        for each in requests:
            commits.submit(each)
    errors = [each.result.exception(GUARD) for each in requests]
    assert [type(error).__name__ for error in errors] == [
        *("Refused", "UnknownLabel", "NoneType", "NoneType", "NoneType", "BudgetExceeded", "NoneType")
    ]
    with pg.LedgerStore(settings.store) as store:
        assert store.verify() == 2
        assert [store.ledger(name).verify().releases for name in ("ada", "bob")] == [2, 3]


def test_after_closing_nothing_is_taken(settings: ServiceSettings) -> None:
    with pg.LedgerStore(settings.store) as store:
        made = GroupCommit(Accounts(settings, store, CurrentFleet(settings.fleet)), store)
        waiting = made.submit(request(key="k"))
        made.close()
        assert waiting.result(GUARD).number == 1
        with pytest.raises(pg.StoreUnavailable, match="stopping"):
            made.submit(request())
