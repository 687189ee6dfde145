"""The events of a ledger: what one contains, and the hash chain over all of them."""

import json
from dataclasses import dataclass, field, replace
from decimal import Decimal
from hashlib import sha256
from typing import Literal

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.releases.decimal_epsilon import read_amount

NO_BELIEF: FloatArray = np.zeros(0)
"""The log-belief of a ledger without releases."""

EventKind = Literal["change", "release", "clock", "summary"]
"""A change of the ledger's scope, a release, a correction of the clock, or the balances before events were deleted."""


@dataclass(frozen=True, eq=False)
class ReleaseEntry:
    """A release that is about to be written.

    Attributes:
        key: the caller's name for it, unique; or None.
        time: seconds by the clock, or time steps of the mobility model.
        clocked: whether ``time`` is by the clock.
        output_index: the index of the output.
        mechanism: the digest of the mechanism that drew it; None if the secret was not used.
        secret_mark: the keyed mark of the secret, for memoised outputs; None for other policies.
        report: plain values about the release.
        charges: the charge to each account.
        likelihood: ln p(o|s) for every secret; None if that is not a function of the output alone.
        log_belief: the logarithms of the belief after it.
    """

    key: str | None
    time: float
    clocked: bool
    output_index: int
    mechanism: str | None
    secret_mark: str | None
    report: dict[str, object]
    charges: tuple[Decimal, ...]
    likelihood: FloatArray | None
    log_belief: FloatArray


@dataclass(frozen=True)
class Event:
    """One event as the file holds it; everything in it is hashed into ``chain_hash``.

    Attributes:
        number: its number among all events, from 1.
        kind: change, release, clock or summary.
        key: the caller's name for a release; unique.
        time: of a release, in seconds or steps; the corrected time of a clock.
        clocked: 1 if the time is by the clock.
        output_index: the index of a release's output.
        mechanism: the digest of the mechanism that drew it.
        secret_mark: the keyed mark of a memoised secret.
        report: JSON: plain values about the event.
        likelihood: the logarithms of the output's likelihood, as bytes.
        belief: SHA-256 of the log-belief after a release.
        charges: for each account its name, the amount, and its running total.
        chain_hash: SHA-256 over this event and the chain hash of the event before it.
    """

    number: int
    kind: EventKind
    key: str | None = None
    time: float | None = None
    clocked: int | None = None
    output_index: int | None = None
    mechanism: str | None = None
    secret_mark: str | None = None
    report: str = "{}"
    likelihood: bytes | None = field(default=None, repr=False)
    belief: str | None = None
    charges: tuple[tuple[str, str, str], ...] = ()
    chain_hash: str = ""


@dataclass(frozen=True, eq=False)
class LedgerHead:
    """The state of a ledger after its last event.

    Attributes:
        release_count: number of releases in all.
        releases_in_scope: number of releases since the last change of the ledger's scope.
        scope_event: the number of the event that set the present scope.
        time: of the last release, or the corrected clock.
        clocked: whether ``time`` is by the clock.
        output_index: the index of the last output; -1 before the first.
        log_belief: the logarithms of the belief after the last release.
        chain_hash: the hash over all events.
    """

    release_count: int
    releases_in_scope: int
    scope_event: int
    time: float
    clocked: bool
    output_index: int
    log_belief: FloatArray
    chain_hash: str


@dataclass(frozen=True, eq=False)
class ReleaseRecord:
    """A release as a ledger holds it.

    Attributes:
        number: its number among the releases, from 1.
        scope_event: the number of the event that set the scope in force when it was made.
        key: the caller's name for it.
        time: unix seconds; None if the ledger counts steps.
        output_index: the index of the output.
        mechanism: the digest of the mechanism that drew it.
        secret_mark: the keyed mark of a memoised secret: equal marks are one draw.
        report: plain values about it.
        charges: the charge to each account.
        totals: the running total of each account after it.
    """

    number: int
    scope_event: int
    key: str | None
    time: float | None
    output_index: int
    mechanism: str | None
    secret_mark: str | None
    report: dict[str, object]
    charges: tuple[Decimal, ...]
    totals: tuple[Decimal, ...]


def initial_chain_hash(identity: str) -> str:
    """The hash before the first event. It differs between ledgers, so that no event fits into two of them."""
    return sha256(json.dumps(["privacygames ledger", identity]).encode()).hexdigest()


def next_chain_hash(previous: str, event: Event) -> str:
    """The hash of an event and all before it, which an event altered later does not match."""
    likelihood = None if event.likelihood is None else sha256(event.likelihood).hexdigest()
    content = (event.number, event.kind, event.key, event.time, event.clocked, event.output_index, event.mechanism)
    rest = (event.secret_mark, event.report, likelihood, event.belief, event.charges)
    return sha256(json.dumps([previous, *content, *rest]).encode()).hexdigest()


def linked(previous: str, event: Event) -> Event:
    """An event with its chain hash.

    Args:
        previous: the chain hash of the event before it.
        event: without its chain hash.
    """
    return replace(event, chain_hash=next_chain_hash(previous, event))


def release_record(event: Event, number: int, scope_event: int) -> ReleaseRecord:
    """A release from its event.

    Args:
        event: the release's.
        number: its number among the releases.
        scope_event: the number of the event that set the scope in force.
    """
    return ReleaseRecord(
        number=number,
        scope_event=scope_event,
        key=event.key,
        time=event.time if event.clocked else None,
        output_index=-1 if event.output_index is None else event.output_index,
        mechanism=event.mechanism,
        secret_mark=event.secret_mark,
        report=json.loads(event.report),
        charges=tuple(read_amount(amount) for _, amount, _ in event.charges),
        totals=tuple(read_amount(so_far) for _, _, so_far in event.charges),
    )
