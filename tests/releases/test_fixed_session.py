"""Releases from one mechanism without a belief: a prior may change, and nobody loses their account."""

from pathlib import Path

import pytest

import privacygames as pg
from privacygames.releases import Budget, Memoised
from sharing import FIXED, PROBLEM, STREET

OTHER = pg.design(PROBLEM.with_prior(pg.Prior(STREET, [0.1, 0.2, 0.7])), epsilon=0.7)
"""The mechanism of the same person with another prior."""


@pytest.mark.parametrize("budget", [[Budget(1.5)], [Budget(3.0, delta=1e-6, within=1.0), Budget(1.5)]])
def test_another_prior_goes_on_with_the_same_account(tmp_path: Path, budget: list[Budget]) -> None:
    assert OTHER.digest != FIXED.digest
    first = pg.FixedReleases(FIXED, budget=budget, ledger=tmp_path / "l.db")
    first.release("cell-0", key="k")
    second = pg.FixedReleases(OTHER, budget=budget, ledger=tmp_path / "l.db")
    assert second.release("cell-0", key="k").already_made
    assert second.release("cell-0").spent == 1.4
    for releases in (first, second):
        with pytest.raises(pg.BudgetExceeded):
            releases.release("cell-0")
    assert first.guarantees() == second.guarantees()
    assert [record.mechanism for record in second.ledger.records()] == [FIXED.digest, OTHER.digest]


def test_charges_and_balances_are_those_of_releases_with_a_belief(tmp_path: Path) -> None:
    budget = [Budget(100.0), Budget(1.5, every=60.0)]
    plain = pg.FixedReleases(FIXED, budget=budget, ledger=tmp_path / "a.db")
    believed = pg.Releases(PROBLEM, pg.Mobility.still(STREET), mechanism=FIXED, budget=budget)
    for at in (0.0, 30.0, 61.0, 95.0):
        one, other = plain.release("cell-1", at=at), believed.release("cell-1", at=at)
        assert one.balances == other.balances
    assert (one.entropy, one.expected_error) == (None, None)
    assert plain.ledger.verify().fullest == believed.ledger.verify().fullest


def test_what_is_released_without_budget_left(tmp_path: Path) -> None:
    releases = pg.FixedReleases(FIXED, budget=0.7, when_spent="repeat", ledger=tmp_path / "l.db")
    first = releases.release("cell-0")
    again = releases.release("cell-2")
    assert (again.observable, again.source, again.epsilon) == (first.observable, "repeated", 0.0)
    empty = pg.FixedReleases(FIXED, budget=0.1, when_spent="repeat")
    with pytest.raises(pg.BudgetExceeded):
        empty.release("cell-0")


def test_a_ledger_about_a_belief_is_another(tmp_path: Path) -> None:
    pg.Releases(PROBLEM, pg.Mobility.still(STREET), mechanism=FIXED, ledger=tmp_path / "l.db")
    with pytest.raises(pg.InvalidProblem, match="different problem"):
        pg.FixedReleases(FIXED, ledger=tmp_path / "l.db")
    with pytest.raises(pg.InvalidProblem, match="a place has a size"):
        pg.FixedReleases(FIXED, memoised=Memoised(b"k" * 16, place=1.0))
    with pytest.raises(pg.InvalidProblem, match="the mechanism"):
        pg.FixedReleases(PROBLEM)  # type: ignore[arg-type]
