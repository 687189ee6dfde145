"""Pruning: what was released before a time is deleted, and later releases are charged as if nothing had been."""

import sqlite3
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import privacygames as pg
from privacygames.releases import Budget, Memoised, PointReleases
from sharing import FIXED, ON_LINE, SECRETS, session

START = 1.7e9
BUDGETS = [Budget(4.3), Budget(1.5, every=60.0)]


def releases_of(store: pg.LedgerStore, kind: str, person: str = "ada") -> Any:
    """A session without a belief; its outputs may be memoised."""
    options: dict[str, Any] = {"budget": BUDGETS, "ledger": store.ledger(person)}
    if kind == "points":
        return PointReleases(ON_LINE, **options)
    memoised = Memoised(b"k" * 32) if kind == "memoised" else None
    return pg.FixedReleases(FIXED, memoised=memoised, **options)


def outcome(releases: Any, secret: object, at: float, key: str | None = None) -> object:
    """What a release is charged and leaves, or why there is none; the output is random."""
    try:
        release = releases.release(secret, at=at, key=key)
    except pg.BudgetExceeded as error:
        return str(error)
    return release.number, release.spent, [(each.charged, each.left) for each in release.balances]


STEPS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from([0.0, 10.0, 30.0, 61.0]), st.sampled_from([None, 0.0, 50.0, 100.0])),
    min_size=1,
    max_size=12,
)


@pytest.mark.parametrize("kind", ["drawn", "memoised", "points"])
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=STEPS)
def test_later_releases_are_charged_as_if_nothing_had_been_deleted(
    kind: str, tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, float, float | None]]
) -> None:
    """Three handles: of a store that is never pruned, of one that is, and of the latter opened anew each time."""
    folder, at = tmp_path_factory.mktemp("stores"), START
    secrets = SECRETS["points" if kind == "points" else "cells"]
    with pg.LedgerStore(folder / "whole") as whole, pg.LedgerStore(folder / "pruned") as pruned:
        one, other = releases_of(whole, kind), releases_of(pruned, kind)
        for number, (secret, seconds, age) in enumerate(steps):
            at += seconds
            if age is not None:
                pruned.prune(at - age)
            handle = other if number % 2 else releases_of(pruned, kind)
            assert outcome(one, secrets[secret], at) == outcome(handle, secrets[secret], at)
        before, after = one.ledger.verify(), pruned.ledger("ada").verify()
        assert (before.releases, before.spent, before.fullest) == (after.releases, after.spent, after.fullest)
        numbers = [record.number for record in pruned.ledger("ada").records()]
        assert all(second == first + 1 for first, second in pairwise(numbers))
        assert not numbers or numbers[-1] == before.releases


def filled(store: pg.LedgerStore, count: int = 5) -> Any:
    releases = releases_of(store, "drawn")
    for number in range(count):
        releases.release("cell-0", at=START + 70 * number, key=f"k{number}")
    return releases


def test_what_is_deleted_and_what_stays(url: str) -> None:
    with pg.LedgerStore(url) as store, pg.LedgerStore(url) as another:
        releases = filled(store)
        idle = releases_of(another, "drawn")  # has seen the first releases only, once these are gone
        releases.release("cell-0", at=START + 350)
        head = releases.ledger.verify().head
        assert store.prune(START + 210) == 4  # the scope and three releases
        assert store.prune(START + 210) == 0
        assert [record.number for record in releases.ledger.records()] == [4, 5, 6]
        assert releases.ledger.verify(head).releases == 6
        assert releases.release("cell-1", at=START + 350, key="k3").already_made  # the first that stays
        assert idle.release("cell-1", at=START + 350, key="k4").already_made
        with pytest.raises(pg.BudgetExceeded):
            idle.release("cell-0", at=START + 420, key="k0")  # it was forgotten, so this is a seventh release
        assert store.prune(START + 1e6) == 2
        assert [record.number for record in releases.ledger.records()] == [6]  # the last release stays
        assert releases_of(another, "drawn").ledger.verify().spent == {"total": "4.2", "every 1 min": "4.2"}
        assert store.verify() == 1


def test_a_pruned_ledger_moves_to_another_store(url: str, tmp_path: Path) -> None:
    with pg.LedgerStore(url) as store, pg.LedgerStore(tmp_path / "other.db") as other:
        filled(store)
        store.prune(START + 140)
        assert store.copy_to(other) == 1
        assert releases_of(other, "drawn").release("cell-0", at=START + 420).number == 6


@pytest.mark.parametrize(
    "alteration",
    [
        """UPDATE events SET report = replace(report, '"charged": "3.5"', '"charged": "0.5"') WHERE kind = 'summary'""",
        "UPDATE events SET observable = observable + 1 WHERE id = 5",
        "DELETE FROM events WHERE id = 5",
        "DELETE FROM events WHERE kind = 'summary'",
        "DELETE FROM events WHERE id < 6",
    ],
)
def test_a_pruned_ledger_that_was_altered_is_noticed(tmp_path: Path, alteration: str) -> None:
    with pg.LedgerStore(tmp_path / "s.db") as store:
        filled(store)
        assert store.prune(START + 200) == 3 + 1
        connection = sqlite3.connect(tmp_path / "s.db")
        assert connection.execute(alteration).rowcount > 0
        connection.commit()
        connection.close()
        with pytest.raises((pg.InvalidFile, pg.GuaranteeViolated)):
            store.ledger("ada").verify()


def test_the_clock_is_not_set_back_before_deleted_charges(tmp_path: Path) -> None:
    """Their window would be open again, and nobody knows them any more."""
    with pg.LedgerStore(tmp_path / "s.db") as store:
        ledger = filled(store).ledger
        store.prune(START + 200)
        with pytest.raises(pg.InvalidProblem, match="pruned since"):
            ledger.correct_clock(START + 100)


def test_ledgers_that_need_every_event_are_not_pruned(tmp_path: Path) -> None:
    with pg.LedgerStore(tmp_path / "s.db") as store:
        belief = session("cells", ledger=store.ledger("ada"))
        for number in range(3):
            belief.release("cell-0", at=START + number)
        with pytest.raises(pg.InvalidProblem, match="belief"):
            belief.ledger.prune(START + 10)
    with pg.Ledger(tmp_path / "l.db") as ledger:
        releases = pg.FixedReleases(FIXED, ledger=ledger)
        for number in range(3):
            releases.release("cell-0", at=START + number)
        with pytest.raises(pg.InvalidProblem, match="only a store"):
            ledger.prune(START + 10)
        assert ledger.verify().releases == 3
