"""The ledger: every release and its charges in one SQLite file, safe against crashes and concurrent processes."""

import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from time import time

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.beliefs import Timestamp, to_seconds
from privacygames.errors import InvalidFile, InvalidProblem, PrivacyGamesError, UnreadableFile
from privacygames.releases.budgets import Account, Spent, more_releases, releases_left, share_text
from privacygames.releases.decimal_epsilon import minus, read_amount
from privacygames.releases.ledger.balances import AccountTerms, LedgerBalances, VerifiedLedger
from privacygames.releases.ledger.events import (
    NO_BELIEF,
    Event,
    LedgerHead,
    ReleaseEntry,
    ReleaseRecord,
    initial_chain_hash,
    last_event,
    read_event,
    read_events,
    read_head,
    release_record,
    write_event,
)
from privacygames.releases.ledger.scope import LedgerScope, WhenChanged, changed_terms
from privacygames.releases.ledger.sqlite_file import LedgerFile, require_intact


class Ledger(LedgerFile):
    """The releases of one person's secret, with their charges and what each budget has left, in one file.

    The output and the charges of a release are committed together, with full synchronisation, before the output is
    returned. Any number of processes may use one file at once. No true secret is ever written to it. Its outputs, times
    and beliefs concern the owner, who alone may read the file.

    The file is one hash chain of events. All events are checked on the first query after opening, and later ones before
    they count. Sums are recomputed from the events, never read.

    Args:
        path: the file, created if necessary. None keeps the ledger in memory until the process ends.

    >>> with pg.Ledger("ada.ledger") as ledger:
    ...     ledger.verify().releases
    0
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._state: LedgerBalances | None = None
        self._error: PrivacyGamesError | None = None
        self._seen: tuple[str, int, str] | None = None  # identity, events and chain hash, as last committed
        super().__init__(path)

    @classmethod
    def open_existing(cls, path: str | os.PathLike[str]) -> "Ledger":
        """The ledger in a file that must exist already."""
        file = Path(path)
        if not file.is_file():
            raise UnreadableFile(path, "there is no such ledger")
        if file.stat().st_size == 0:
            raise InvalidFile(f"{file.name} is empty: it is not a ledger, or its contents were lost")
        return cls(path)

    def set_scope(
        self, wanted: LedgerScope, when_changed: WhenChanged = "refuse", format_1: LedgerScope | None = None
    ) -> int:
        """Set the scope of the ledger, and return the number of the event that records it.

        A scope that differs from the present one is refused, or recorded as a change that keeps all charges.

        Args:
            wanted: the problem, mobility and accounts of the caller's releases.
            when_changed: how another scope is treated.
            format_1: the same with digests as versions of privacygames up to 0.2 wrote them; None if they cannot be
                computed.
        """
        with self._transaction() as connection:
            state = self._synchronise(connection)
            terms = changed_terms(state.scope_period, wanted, format_1, when_changed, self.name)
            if terms is None:
                return state.scope_period.scope_event
            report = {"about": dict(wanted.about), "accounts": [each.to_dict() for each in terms], "how": when_changed}
            return self._write(connection, Event(state.events + 1, "change", report=_json(report))).number

    def head(self) -> LedgerHead:
        """The state after the last event."""
        with self._reading() as connection:
            return self._head(connection)

    def spent(self, accounts: tuple[Account, ...], at: float) -> tuple[Spent, ...]:
        """The charges that count against each account at a time: all, or those within its window."""
        with self._reading() as connection:
            balances = self._synchronise(connection).accounts
            return tuple(balances[each.name].spent(at) for each in accounts)

    def due(self, secret_mark: str | None, costs: tuple[Decimal, ...], at: float) -> tuple[Decimal, ...]:
        """The charge of a release to each account, given its costs: a memoised secret counts once per window."""
        with self._reading() as connection:
            state = self._synchronise(connection)
            pairs = zip(state.scope_period.terms, costs, strict=True)
            mark = state.scoped_mark(secret_mark)
            return tuple(state.accounts[each.name].due(mark, cost, at) for each, cost in pairs)

    def find(self, key: str) -> ReleaseRecord | None:
        """The earlier release with a key; None if there is none."""
        with self._reading() as connection:
            self._synchronise(connection)
            event = read_event(connection, "release", key, self.name)
            if event is None:
                return None
            query = "SELECT count(*) FROM events WHERE kind = 'release' AND id <= ?"
            number = connection.execute(query, (event.number,)).fetchone()[0]
            query = "SELECT max(id) FROM events WHERE kind = 'change' AND id < ?"
            return release_record(event, number, connection.execute(query, (event.number,)).fetchone()[0])

    def has_used(self, mechanism: str) -> bool:
        """Whether a mechanism, or a memoised function drawn from one, was used before."""
        with self._reading() as connection:
            return connection.execute("SELECT 1 FROM events WHERE mechanism = ?", (mechanism,)).fetchone() is not None

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Exclusive lock, held while a release is chosen again after a concurrent write."""
        with self._transaction():
            yield

    def append(self, head: LedgerHead, draw: Callable[[], ReleaseEntry]) -> ReleaseRecord | None:
        """Draw one release and commit it with its charges; None if the ledger changed since ``head`` was read."""
        with self._transaction() as connection:
            state = self._synchronise(connection)
            if state.chain_hash != head.chain_hash:
                return None
            entry = draw()
            event = self._write(connection, _release_event(state, entry))
            connection.execute("INSERT OR REPLACE INTO beliefs VALUES (1, ?)", (_bytes(entry.log_belief),))
            return release_record(event, state.releases, state.scope_period.scope_event)

    def correct_clock(self, to: Timestamp | None = None) -> float:
        """Set the ledger's clock back to the present, after a release with a time in the future.

        Charges at later times then count as charged now, so that windows hold them for as long as possible.

        Args:
            to: the right time; by default that of this machine's clock.

        Returns:
            The seconds by which the ledger was ahead; 0 if it was not, and nothing was written.
        """
        at = to_seconds(time() if to is None else to)
        with self._transaction() as connection:
            state = self._synchronise(connection)
            ahead = state.time - at
            if not state.releases or ahead <= 0:
                return 0.0
            if not state.clocked:
                raise InvalidProblem(f"{self.name} counts steps, not seconds: there is no clock to correct")
            report = _json({"from": state.time})
            self._write(connection, Event(state.events + 1, "clock", time=at, clocked=1, report=report))
            return ahead

    def records(self) -> list[ReleaseRecord]:
        """All releases, in order."""
        records: list[ReleaseRecord] = []
        with self._reading() as connection:
            self._synchronise(connection)
            scope_event = 0
            for event in read_events(connection):
                scope_event = event.number if event.kind == "change" else scope_event
                if event.kind == "release":
                    records.append(release_record(event, len(records) + 1, scope_event))
        return records

    def accounts(self) -> list[dict[str, object]]:
        """All accounts: name, limit, window, total charge, what is counted, and what is left by now."""
        with self._reading() as connection:
            state = self._synchronise(connection)
            now = max(state.time, time()) if state.clocked else state.time
            return [_account_row(state, terms, now) for terms in state.scope_period.terms]

    def likelihoods(self) -> tuple[list[float], list[bool], list[FloatArray | None]]:
        """Times, whether these are by the clock, and log-likelihoods of the releases about the present problem."""
        with self._reading() as connection:
            state = self._synchronise(connection)
            query = "SELECT likelihood FROM events WHERE kind = 'release' AND id > ? ORDER BY id"
            rows = connection.execute(query, (state.scope_period.scope_event,)).fetchall()
            columns = [None if blob is None else _vector(blob, self.name) for (blob,) in rows]
            return list(state.times), [bool(state.clocked)] * len(rows), columns

    def balances(self) -> LedgerBalances:
        """All balances; for reading only."""
        with self._reading() as connection:
            return self._synchronise(connection)

    def verify(self, head: str | None = None) -> VerifiedLedger:
        """Recompute every balance, every window and the hash chain over all events.

        Args:
            head: the head that an earlier :meth:`verify` returned and you stored; it must still be in the hash
                chain. Only this detects that the whole file was replaced by an older copy.

        Raises:
            GuaranteeViolated: a balance does not add up, a budget or one of its windows is exceeded, or time goes back.
            InvalidFile: the file is damaged, an event was altered after it was written, or it is an older copy.
        """
        with self._reading() as connection:
            require_intact(connection, self.name, "integrity_check")
            state = self._synchronise(connection, from_start=True)
            self._log_belief(connection, state)
            in_chain = connection.execute("SELECT 1 FROM events WHERE chain = ?", (head,)).fetchone()
            if head not in (None, initial_chain_hash(state.identity)) and in_chain is None:
                raise InvalidFile(
                    f"{self.name} does not have the head that was given: it is an older copy, or another ledger"
                )
            return state.verified()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        contents = "closed" if self._closed else f"{self.head().release_count} releases"
        return f"Ledger({self.name!r}, {contents})"

    def _rolled_back(self) -> None:
        self._state = None

    def _committed(self) -> None:
        if self._state is not None:
            self._seen = self._state.identity, self._state.events, self._state.chain_hash

    def _synchronise(self, connection: sqlite3.Connection, *, from_start: bool = False) -> LedgerBalances:
        """The balances after checking the events written since the last call; an error is final."""
        if self._error is not None:
            raise self._error
        try:
            self._state = self._read_balances(connection, None if from_start else self._state)
        except PrivacyGamesError as error:
            self._error = error
            raise
        if not self._wrote:
            self._committed()
        return self._state

    def _read_balances(self, connection: sqlite3.Connection, known: LedgerBalances | None) -> LedgerBalances:
        head = read_head(connection)
        if head is None:
            raise InvalidFile(f"{self.name} has no record of its last event: it was altered")
        identity, events, chain_hash = head
        if last_event(connection) != events:
            raise InvalidFile(f"{self.name} does not end with event {events}, as it says: it was altered")
        state = LedgerBalances(identity, self.name) if known is None else known
        self._require_descendant(connection, identity)
        if (state.events, state.chain_hash) != (events, chain_hash) or known is None:
            state.add_all(read_events(connection, state.events))
            if (state.events, state.chain_hash) != (events, chain_hash):
                raise InvalidFile(f"{self.name} was altered: its last event does not match its header")
            charges = connection.execute("SELECT count(*) FROM charges").fetchone()[0]
            if charges != state.charges:
                raise InvalidFile(f"{self.name} contains charges that belong to no event: it was altered")
        return state

    def _require_descendant(self, connection: sqlite3.Connection, identity: str) -> None:
        """Refuse a file that is not a continuation of the events that this handle has seen."""
        if self._seen is None:
            return
        own, events, chain_hash = self._seen
        row = connection.execute("SELECT chain FROM events WHERE id = ?", (events,)).fetchone()
        if identity != own or (events and (row is None or row[0] != chain_hash)):
            raise InvalidFile(f"{self.name} was replaced by an older copy, or altered, while it was open")

    def _head(self, connection: sqlite3.Connection) -> LedgerHead:
        state = self._synchronise(connection)
        return LedgerHead(
            release_count=state.releases,
            releases_in_scope=len(state.times),
            scope_event=state.scope_period.scope_event,
            time=state.time,
            clocked=bool(state.clocked),
            output_index=-1 if state.last is None or state.last.output_index is None else state.last.output_index,
            log_belief=self._log_belief(connection, state),
            chain_hash=state.chain_hash,
        )

    def _log_belief(self, connection: sqlite3.Connection, state: LedgerBalances) -> FloatArray:
        """The logarithms of the belief after the last release."""
        row = connection.execute("SELECT logarithms FROM beliefs").fetchone()
        expected = None if state.last is None else state.last.belief
        if (None if row is None else sha256(row[0]).hexdigest()) != expected:
            raise InvalidFile(f"{self.name} was altered: its stored belief does not match its last release")
        return NO_BELIEF if row is None else _vector(row[0], self.name)

    def _write(self, connection: sqlite3.Connection, event: Event) -> Event:
        state = self._synchronise(connection)
        self._wrote = True
        written = write_event(connection, state.identity, state.chain_hash, event)
        self._synchronise(connection)
        return written


def _release_event(state: LedgerBalances, entry: ReleaseEntry) -> Event:
    charges = tuple(
        (terms.name, str(amount), state.total_with(terms.name, amount))
        for terms, amount in zip(state.scope_period.terms, entry.charges, strict=True)
    )
    return Event(
        number=state.events + 1,
        kind="release",
        key=entry.key,
        time=entry.time,
        clocked=int(entry.clocked),
        output_index=entry.output_index,
        mechanism=entry.mechanism,
        secret_mark=entry.secret_mark,
        report=_json(entry.report),
        likelihood=None if entry.likelihood is None else _bytes(entry.likelihood),
        belief=sha256(_bytes(entry.log_belief)).hexdigest(),
        charges=charges,
    )


def _account_row(state: LedgerBalances, terms: AccountTerms, now: float) -> dict[str, object]:
    """An account in plain values, with what is left in the window that ends now."""
    account, guarantee = state.accounts[terms.name], terms.approximate
    left = None if account.limit is None else minus(account.limit, account.spent(now).amount)
    count = None
    if state.last is not None:
        charges = {name: read_amount(amount) for name, amount, _ in state.last.charges}
        count = releases_left(left, charges[terms.name], json.loads(state.last.report).get("source"))
    if left is None or account.limit is None:
        in_words = "no limit"
    else:
        in_words = str(left) if guarantee is None else share_text(left, account.limit)
        in_words += "" if count is None else f"; {more_releases(count)}"
    return {
        "name": terms.name,
        "limit": account.limit and str(account.limit),
        "limit_in_words": terms.limit_text,
        "every": account.every,
        "spent": str(account.charged),
        "counted": terms.counted,
        "any_pair": state.max_log_ratio(terms.name, account.charged),
        "approximate": None if guarantee is None else guarantee.to_dict(),
        "left": None if left is None else str(left),
        "left_in_words": in_words,
        "releases_left": count,
    }


def _json(report: Mapping[str, object]) -> str:
    return json.dumps(report, sort_keys=True, allow_nan=False)


def _bytes(values: FloatArray) -> bytes:
    return values.astype("<f8").tobytes()


def _vector(blob: bytes, name: str) -> FloatArray:
    if len(blob) % 8:
        raise InvalidFile(f"{name} holds a likelihood that is cut off: it was altered or is damaged")
    return np.frombuffer(blob, dtype="<f8")
