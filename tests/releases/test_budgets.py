"""What is charged, against an accountant who knows only the history and the definitions of docs/theory/sharing.md."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import privacygames as pg
from privacygames.arrays import FloatArray
from privacygames.releases import Budget, EvenSpread, Fixed, Memoised, Policy, Predictive, Releases
from privacygames.releases.budgets import FiniteAccount
from sharing import PROBLEM, STREET, WALK

ANY_TWO = np.where(np.eye(3) > 0, 0.0, 1.0)
FIXED = pg.design(PROBLEM, epsilon=0.7)
NOISY = pg.baselines.exponential(PROBLEM, 0.5)
KEY = b"0123456789abcdef"
STILL = pg.Mobility.still(STREET)

POLICIES: dict[str, Any] = {
    "one mechanism": lambda: {"mechanism": FIXED},
    "noise": lambda: {"mechanism": NOISY},
    "fixed ε": lambda: {"policy": Fixed(0.4), "reuse": 1.0},
    "even spread": lambda: {"policy": EvenSpread(4), "reuse": 1.0},
    "predictive": lambda: {"policy": Predictive(test=0.2, within=0.5), "mechanism": FIXED},
    "predictive from the belief": lambda: {
        "policy": Predictive(test=0.2, within=0.5, prediction="belief"),
        "mechanism": NOISY,
    },
    "memoised": lambda: {"policy": Memoised(KEY), "mechanism": FIXED},
    "memoised noise": lambda: {"policy": Memoised(KEY), "mechanism": NOISY},
    "memoised design": lambda: {"policy": Memoised(KEY, 0.4)},
}
WINDOWS: dict[str, list[Budget]] = {
    "in all": [Budget(2.0)],
    "an hour": [Budget(0.8, every=3600)],
    "in all, an hour and a day": [Budget(6.0), Budget(1.5, every=3600), Budget(3.0, every=86_400)],
    "any two secrets": [
        Budget(4.0, every=7200),
        Budget(3.0, every=3600, distinguishability=ANY_TWO, name="any two"),
        Budget(5.0, distinguishability=ANY_TWO, name="any two, in all"),
    ],
    "with a delta": [
        Budget(2.4),
        Budget(2.0, every=3600, delta=1e-2, within=1.0),
        Budget(4.0, delta=1e-2),
        Budget(4.0, every=7200, delta=1e-2, within=1.0, distinguishability=ANY_TWO, name="any two"),
    ],
    "a tenth of a second": [Budget(1.5, every=0.1), Budget(1.5, every=0.3)],
}


@dataclass
class Release:
    """A release as the accountant notes it: when, from where, and what came of it."""

    time: Fraction
    place: int
    source: str
    costs: list[Fraction]


def costs_of(releases: Releases, mechanism: pg.Mechanism) -> list[Fraction]:
    """The least ε of a mechanism in every account, from its probabilities, less a last digit or so."""
    table = mechanism.probabilities[:, mechanism.probabilities.any(axis=0)]
    found = []
    for account in releases.accounts:
        assert isinstance(account, FiniteAccount)
        largest, guarantee = 0.0, account.approximate
        for a in range(3):
            for b in range(3):
                distance = account.distinguishability[a, b]
                if a != b and guarantee is None:
                    largest = max(largest, float(np.log(table[a] / table[b]).max()) / distance)
                elif a != b and guarantee is not None and (guarantee.within is None or distance <= guarantee.within):
                    largest = max(largest, divergence(table[a], table[b], guarantee.order))
        found.append(Fraction(largest) * (1 - Fraction(1, 10**9)))
    return found


def divergence(one: FloatArray, other: FloatArray, order: float) -> float:
    """The Rényi divergence of two rows of probabilities."""
    losses = np.log(one / other)
    if order == np.inf:
        return float(losses.max())
    return float(np.log(one @ np.exp((order - 1) * losses)) / (order - 1))


def truth(history: list[Release], account: int, every: float | None, start: Fraction) -> Fraction:
    """What a window from a time on holds: each draw, each test, and each distinct memoised place once."""
    end = None if every is None else start + Fraction(every)
    inside = [each for each in history if every is None or (start <= each.time and each.time <= (end or 0))]
    drawn = sum((each.costs[account] for each in inside if each.source != "memoised"), Fraction(0))
    places = {each.place: each.costs[account] for each in inside if each.source == "memoised"}
    return drawn + sum(places.values(), Fraction(0))


def moments(chance: np.random.Generator, every: float) -> Iterator[float]:
    """Times that are irregular, equal, in bursts, exactly a window apart, and sometimes earlier."""
    at = 1_700_000_000.0 + float(chance.random())
    while True:
        kind = chance.integers(6)
        waits = (0.0, every, every / 7, float(chance.exponential(every / 3)), 2.5 * every, -every / 5)
        at += waits[kind]
        yield at


@pytest.mark.parametrize("windows", WINDOWS)
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("seed", range(3))
def test_what_is_charged_is_what_was_told(name: str, windows: str, seed: int) -> None:
    """For every window and account: never below what the definitions say, never above the budget, and left is exact."""
    chance = np.random.default_rng([seed, *name.encode(), *windows.encode()])
    budgets = WINDOWS[windows]
    when_spent: Any = ("refuse", "repeat", "belief")[seed]
    mobility = STILL if seed == 2 and "design" not in name else WALK
    releases = Releases(PROBLEM, mobility, budget=budgets, when_spent=when_spent, generator=chance, **POLICIES[name]())
    times = moments(chance, min(each.every or 3600.0 for each in budgets))
    history: list[Release] = []
    stored: list[list[Fraction]] = []
    for _ in range(40):
        at, place = next(times), int(chance.integers(3))
        choice = releases.preview(at=at).choice
        try:
            release = releases.release(STREET.labels[place], at=at)
        except pg.BudgetExceeded:
            continue
        costs = [Fraction(0)] * len(releases.accounts)
        if choice is not None and release.source in ("drawn", "kept", "memoised"):
            if choice.test is not None:
                costs = costs_of(releases, choice.test)
            if release.source != "kept":
                costs = [a + b for a, b in zip(costs, costs_of(releases, choice.mechanism), strict=True)]
        assert release.time is not None
        history.append(Release(Fraction(release.time), place, release.source, costs))
        stored.append([Fraction(each) for each in releases.ledger.records()[-1].charges])
        for number, (account, balance) in enumerate(zip(releases.accounts, release.balances, strict=True)):
            last = Fraction(release.time) - Fraction(account.every or 0)
            held = truth(history, number, account.every, last)
            spent = Fraction(releases.ledger.spent((account,), release.time)[0].amount)
            assert held <= spent
            if account.approximate is None:  # a dominating pair covers all pairs of secrets, and may exceed each
                assert spent <= held * (1 + Fraction(3, 10**6))
            assert account.limit is None or spent <= Fraction(account.limit)
            assert balance.left == (None if account.limit is None else float(Fraction(account.limit) - spent))
    for number, account in enumerate(releases.accounts):
        for start in {each.time for each in history}:
            held = truth(history, number, account.every, start)
            assert account.limit is None or held <= Fraction(account.limit)
        assert Fraction(releases.ledger.verify().spent[account.name]) == sum(each[number] for each in stored)
    assert len(history) > 3 or when_spent == "refuse"


def test_a_new_place_every_two_hours_is_charged_every_time() -> None:
    releases = Releases(
        PROBLEM, WALK, mechanism=FIXED, policy=Memoised(KEY), budget=[Budget(5.0), Budget(0.7, every=3600)]
    )
    found = [releases.release(STREET.labels[hour % 3], at=7200.0 * hour) for hour in range(6)]
    assert [each.balances[1].charged for each in found] == [0.7] * 6
    assert [each.balances[1].left for each in found] == [0.0] * 6
    assert [each.epsilon for each in found] == [0.7] * 3 + [0.0] * 3  # three places in all
    other = Releases(
        *(PROBLEM, WALK), policy=Memoised(b"x" * 16), mechanism=FIXED, budget=[Budget(5.0), Budget(0.7, every=3600)],
        ledger=releases.ledger,
    )  # fmt: skip
    with pytest.raises(pg.BudgetExceeded):  # another function, in a window that holds a place already
        other.release("cell-0", at=36_001.0)


def test_a_place_answered_again_stays_in_the_windows_that_hold_it() -> None:
    """Charged at 0 and answered again at 50: the window from 40 on holds it."""
    releases = Releases(PROBLEM, WALK, mechanism=FIXED, policy=Memoised(KEY), budget=Budget(0.7, every=60))
    assert releases.release("cell-1", at=0.0).balances[1].charged == 0.7
    assert releases.release("cell-1", at=50.0).balances[1].charged == 0.0
    with pytest.raises(pg.BudgetExceeded):
        releases.release("cell-0", at=61.0)
    assert releases.release("cell-0", at=110.1).balances[1].charged == 0.7


class Greedy(Policy):
    """A policy that ignores what is left."""

    def choose(self, public_state: Any) -> Any:
        from privacygames.releases.policies import Choice

        return Choice(public_state.mechanism_for(None), None)


def test_a_window_is_closed_at_both_ends_without_rounding() -> None:
    """0.3 s after a large time is not 0.3 s after it in floats: the boundary is decided exactly."""
    start = 1_700_000_000.0
    for every in (0.1, 0.3, 0.7, 1 / 3):
        for steps in range(-2, 3):
            at = start + every
            for _ in range(abs(steps)):
                at = float(np.nextafter(at, np.inf if steps > 0 else 0.0))
            releases = Releases(PROBLEM, WALK, mechanism=FIXED, policy=Greedy(), budget=Budget(0.7, every=every))
            releases.release("cell-0", at=start)
            if Fraction(at) - Fraction(start) <= Fraction(every):
                with pytest.raises(pg.BudgetExceeded):
                    releases.release("cell-0", at=at)
            else:
                releases.release("cell-0", at=at)
