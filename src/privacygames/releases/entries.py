"""What a ledger writes and reads: entries, records, where it stands, and the chain of hashes over them."""

import json
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256

import numpy as np

from privacygames.arrays import FloatArray

GENESIS = "0" * 64
NO_BELIEF: FloatArray = np.zeros(0)


@dataclass(frozen=True, eq=False)
class Entry:
    """A release about to be written.

    Attributes:
        key: the caller's name for it, unique; or None.
        time: seconds by the clock, or steps counted.
        clocked: which of the two.
        observable: the position of the answer.
        mechanism: the digest of what answered; None where nothing looked at the secret.
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
    report: dict[str, object]
    charges: tuple[Decimal, ...]
    likelihood: FloatArray | None
    belief: FloatArray


@dataclass(frozen=True, eq=False)
class Head:
    """Where a ledger stands: how many releases, when the last was, what it answered, what is believed since."""

    count: int
    time: float
    clocked: bool
    observable: int
    belief: FloatArray
    chain: str

    @classmethod
    def start(cls) -> "Head":
        """Before the first release."""
        return cls(0, 0.0, clocked=False, observable=-1, belief=NO_BELIEF, chain=GENESIS)


@dataclass(frozen=True, eq=False)
class Record:
    """A release as it stands in a ledger.

    Attributes:
        number: its place, from 1.
        key: the caller's name for it.
        time: unix seconds; None where steps are counted.
        observable: the position of the answer.
        mechanism: the digest of what answered.
        report: plain values about it.
        charges: what it cost in each account, and
        totals: what each account had spent after it.
    """

    number: int
    key: str | None
    time: float | None
    observable: int
    mechanism: str | None
    report: dict[str, object]
    charges: tuple[Decimal, ...]
    totals: tuple[Decimal, ...]


@dataclass(frozen=True)
class Verified:
    """What was found of a ledger that is in order.

    Attributes:
        releases: how many.
        spent: by account, in all.
        fullest: by account, the most any window (or all time) holds.
        limits: by account; None where nothing limits it.
    """

    releases: int
    spent: dict[str, str]
    fullest: dict[str, str]
    limits: dict[str, str | None]

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {"releases": self.releases, "spent": self.spent, "fullest": self.fullest, "limits": self.limits}


def chained(before: str, row: tuple[object, ...], likelihood: bytes | None, belief: str, charges: list[str]) -> str:
    """The hash of a release and of all before it: what was altered afterwards does not fit any more."""
    mark = None if likelihood is None else sha256(likelihood).hexdigest()
    return sha256(json.dumps([before, list(row), mark, belief, charges]).encode()).hexdigest()
