"""What a ledger writes and reads: entries, events, records, its head, and the chain of hashes over all events."""

import json
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from typing import Literal

import numpy as np

from privacygames.arrays import FloatArray

NO_BELIEF: FloatArray = np.zeros(0)

Kind = Literal["change", "release", "clock"]
"""What an event is: a change of what the ledger is about, a release, or a correction of the clock."""


@dataclass(frozen=True, eq=False)
class Entry:
    """A release about to be written.

    Attributes:
        key: the caller's name for it, unique; or None.
        time: seconds by the clock, or steps counted.
        clocked: which of the two.
        observable: the position of the answer.
        mechanism: the digest of what answered; None where nothing looked at the secret.
        place: the keyed mark of the secret that a memoised function answered for; None for other policies.
        report: plain values about it.
        charges: what it costs in each account.
        likelihood: ln p(o|s) for every secret; None where that is not a function of the answer alone.
        belief: the logarithms of the belief after it.
    """

    key: str | None
    time: float
    clocked: bool
    observable: int
    mechanism: str | None
    place: str | None
    report: dict[str, object]
    charges: tuple[Decimal, ...]
    likelihood: FloatArray | None
    belief: FloatArray


@dataclass(frozen=True)
class Event:
    """One event as it stands in the file; everything in it is hashed into ``chain``.

    Attributes:
        number: its place among all events, from 1.
        kind: what it is.
        key: the caller's name for a release; unique.
        time: when a release was made, in seconds or steps; the corrected time of a clock.
        clocked: 1 where the time is by the clock.
        observable: the position of a release's answer.
        mechanism: the digest of what answered.
        place: the keyed mark of a memoised place.
        report: JSON: plain values about the event.
        likelihood: the logarithms of the answer's likelihood, as bytes.
        belief: SHA-256 of the belief that a release left.
        charges: the account's name, the amount, and the account's running total after it.
        chain: SHA-256 over this event and the chain of the event before it.
    """

    number: int
    kind: Kind
    key: str | None = None
    time: float | None = None
    clocked: int | None = None
    observable: int | None = None
    mechanism: str | None = None
    place: str | None = None
    report: str = "{}"
    likelihood: bytes | None = field(default=None, repr=False)
    belief: str | None = None
    charges: tuple[tuple[str, str, str], ...] = ()
    chain: str = ""


@dataclass(frozen=True, eq=False)
class Head:
    """Where a ledger stands.

    Attributes:
        count: releases in all.
        current: releases since the ledger is about the present problem.
        change: the number of the event that said so.
        time: of the last release, or what the clock was corrected to since.
        clocked: whether that is by the clock.
        observable: the position of the last answer.
        belief: the logarithms of what is believed since.
        chain: the hash over all events.
    """

    count: int
    current: int
    change: int
    time: float
    clocked: bool
    observable: int
    belief: FloatArray
    chain: str


@dataclass(frozen=True, eq=False)
class Record:
    """A release as it stands in a ledger.

    Attributes:
        number: its place, from 1.
        change: the number of the event that said what the ledger was about when it was made.
        key: the caller's name for it.
        time: unix seconds; None where steps are counted.
        observable: the position of the answer.
        mechanism: the digest of what answered.
        report: plain values about it.
        charges: what it cost in each account, and
        totals: what each account had been charged after it.
    """

    number: int
    change: int
    key: str | None
    time: float | None
    observable: int
    mechanism: str | None
    report: dict[str, object]
    charges: tuple[Decimal, ...]
    totals: tuple[Decimal, ...]


@dataclass(frozen=True)
class Verified:
    """What a ledger that is in order adds up to.

    Attributes:
        releases: how many.
        spent: by account, in all.
        fullest: by account, the most any window (or all time) holds.
        limits: by account; None where nothing limits it.
        counted: by account, what ε is counted for: ``"per km"``.
        farthest: by account, the largest distinguishability between any two secrets; None: unknown, or infinite.
        events: how many events there are: releases, changes and corrections of the clock.
        head: the hash over all of them. Keep it somewhere else: ``verify(head=...)`` then tells whether the file is an
            older copy.
    """

    releases: int
    spent: dict[str, str]
    fullest: dict[str, str]
    limits: dict[str, str | None]
    counted: dict[str, str]
    farthest: dict[str, float | None]
    events: int
    head: str

    def any_pair(self, account: str) -> float | None:
        """What was spent allows between any two secrets; None: unknown, or without limit."""
        farthest = self.farthest[account]
        return None if farthest is None else float(self.spent[account]) * farthest

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def genesis(identity: str) -> str:
    """The hash before the first event: another one in every ledger, so that no event fits into two of them."""
    return sha256(json.dumps(["privacygames ledger", identity]).encode()).hexdigest()


def chained(before: str, event: Event) -> str:
    """The hash of an event and of all before it: an event that was altered afterwards does not fit any more."""
    likelihood = None if event.likelihood is None else sha256(event.likelihood).hexdigest()
    content = (event.number, event.kind, event.key, event.time, event.clocked, event.observable, event.mechanism)
    rest = (event.place, event.report, likelihood, event.belief, event.charges)
    return sha256(json.dumps([before, *content, *rest]).encode()).hexdigest()
