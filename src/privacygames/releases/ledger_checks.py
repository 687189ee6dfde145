"""Checking a ledger: nothing stored is believed that can be recomputed."""

from collections import deque
from collections.abc import Iterable
from decimal import Decimal
from hashlib import sha256
from typing import Any

from privacygames.errors import BrokenPromise, InvalidFile
from privacygames.releases.amounts import NOTHING, minus, read_amount, total
from privacygames.releases.entries import GENESIS, Verified, chained

Raw = tuple[tuple[Any, ...], list[tuple[str, str, int]]]
Limit = tuple[int, str, str | None, float | None]


class _Running:
    """One account, followed from release to release."""

    def __init__(self, limit: Limit) -> None:
        _, self.name, most, self.every = limit
        self.most = None if most is None else read_amount(most)
        self.spent, self.held, self.fullest, self.charged = NOTHING, NOTHING, NOTHING, 0
        self._window: deque[tuple[float, Decimal]] = deque()

    def add(self, time: float, amount: Decimal, stated: tuple[Decimal, int], number: int) -> None:
        """Charge, and check what the ledger says and what the limit allows."""
        self.spent = total([self.spent, amount])
        self.charged += amount > 0
        self.held = total([self.held, amount])
        self._window.append((time, amount))
        while self.every is not None and self._window[0][0] < time - self.every:
            self.held = minus(self.held, self._window.popleft()[1])
        self.fullest = max(self.fullest, self.held)
        if stated != (self.spent, self.charged):
            raise BrokenPromise(
                f"release {number}: the account {self.name!r} says {stated[0]} in {stated[1]} releases and adds up to "
                f"{self.spent} in {self.charged}"
            )
        if self.most is not None and self.held > self.most:
            raise BrokenPromise(f"release {number}: the account {self.name!r} holds {self.held}, above its {self.most}")


def require_last(rows: list[Raw], name: str) -> None:
    """Check that the last release follows from the one before it: its place, its hash and every running total."""
    *earlier, (row, charges) = rows
    number, chain, balances = 0, GENESIS, [("0", "0", 0)] * len(charges)
    for before, held_then in earlier:
        number, chain, balances = before[0], before[9], held_then
    _linked((row, charges), number + 1, chain, name)
    if len(balances) != len(charges):
        raise InvalidFile(f"{name}: release {number} is not charged to every account")
    for (_, held, count), (amount, stated, charged) in zip(balances, charges, strict=True):
        added = read_amount(amount)
        if read_amount(stated) != total([read_amount(held), added]) or charged != count + (added > 0):
            raise BrokenPromise(f"{name}: the balances after release {row[0]} do not add up: it was altered")


def _linked(raw: Raw, number: int, chain: str, name: str) -> str:
    """The hash of a release and all before it, if it is the one it should be and was not altered."""
    row, charges = raw
    if row[0] != number:
        raise InvalidFile(f"{name}: release {number} is missing")
    found = chained(chain, row[:7], row[7], row[8], [amount for amount, _, _ in charges])
    if found != row[9]:
        raise InvalidFile(f"{name}: release {number}, or one before it, was altered after it was written")
    return found


def verified(rows: Iterable[Raw], limits: list[Limit], belief: bytes | None, name: str) -> Verified:
    """Go through every release and recompute the chain, every balance and every window."""
    balances = [_Running(limit) for limit in limits]
    chain, time, mark, count = GENESIS, None, None, 0
    for row, charges in rows:
        number, _, at, clocked, *_ = row
        count += 1
        if number == count and len(charges) != len(balances):
            raise InvalidFile(f"{name}: release {number} is not charged to every account")
        if time is not None and (at < time[0] or clocked != time[1]):
            raise BrokenPromise(f"{name}: release {number} is earlier than the one before it")
        mark, chain = row[8], _linked((row, charges), count, chain, name)
        for balance, (amount, stated, charged) in zip(balances, charges, strict=True):
            balance.add(at, read_amount(amount), (read_amount(stated), charged), number)
        time = at, clocked
    if mark is not None and (belief is None or sha256(belief).hexdigest() != mark):
        raise InvalidFile(f"{name}: the belief is not the one that the last release left")
    return Verified(
        releases=count,
        spent={each.name: str(each.spent) for each in balances},
        fullest={each.name: str(each.fullest) for each in balances},
        limits={each.name: None if each.most is None else str(each.most) for each in balances},
    )
