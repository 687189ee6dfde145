"""The ledger: every release and its charges, in one SQLite file that neither crashes nor other processes upset."""

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
from privacygames.beliefs import Moment, moment
from privacygames.errors import InvalidFile, InvalidProblem, PrivacyGamesError, UnreadableFile
from privacygames.releases.budgets import Account, Spent
from privacygames.releases.entries import NO_BELIEF, Entry, Event, Head, Kind, Record, Verified, genesis
from privacygames.releases.event_log import last_event, read_events, read_head, record_of, stored_event, write_event
from privacygames.releases.ledger_file import LedgerFile, require_sound
from privacygames.releases.ledger_state import LedgerBalances, follow, running_total
from privacygames.releases.ledger_terms import Wanted, WhenChanged, changed_terms, terms_of


class Ledger(LedgerFile):
    """What was released, what was charged, and what is left: one file for one person.

    Answer and charges of a release are committed together, with full synchronisation, before the answer is returned.
    Any number of processes may use one file at once. No true secret is ever written to it; what is in it (answers,
    times and what an observer may believe) concerns the owner, who alone may read the file.

    Everything is an event in one chain of hashes. All of them are checked when the ledger is opened for the first
    question, and each later one before it counts; sums are recomputed from them, never read.

    Args:
        path: the file; made if need be. None keeps the ledger in memory: it ends with the process.

    >>> ledger = Ledger()
    >>> ledger.verify().releases
    0
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self._state: LedgerBalances | None = None
        self._trouble: PrivacyGamesError | None = None
        self._seen: tuple[str, int, str] | None = None  # identity, events and chain, as last committed
        super().__init__(path)

    @classmethod
    def existing(cls, path: str | os.PathLike[str]) -> "Ledger":
        """A ledger that must be there already."""
        file = Path(path)
        if not file.is_file():
            raise UnreadableFile(path, "there is no such ledger")
        if file.stat().st_size == 0:
            raise InvalidFile(f"{file.name} is empty: it is no ledger, or what was in it is lost")
        return cls(path)

    def setup(
        self,
        about: Mapping[str, str],
        accounts: tuple[Account, ...],
        when_changed: WhenChanged = "refuse",
        first: tuple[Mapping[str, str], tuple[Account, ...]] | None = None,
    ) -> int:
        """Say what the ledger is about, and give the number of the event that says so.

        Where it is about something else already, that is refused, or recorded as a change that keeps all charges.

        Args:
            about: digests by name.
            accounts: the accounts that releases are charged to.
            when_changed: what becomes of a ledger that is about something else.
            first: both as older releases wrote them, with digests of format 1; None where that cannot be told.
        """
        wanted = Wanted(about, terms_of(accounts))
        older = None if first is None else Wanted(first[0], terms_of(first[1]))
        with self._transaction() as connection:
            state = self._synced(connection)
            terms = changed_terms(state.change, wanted, older, when_changed, self.name)
            if terms is None:
                return state.change.number
            report = {"about": dict(about), "accounts": [each.to_dict() for each in terms], "how": when_changed}
            return self._write(connection, Event(state.events + 1, "change", report=_json(report))).number

    def head(self) -> Head:
        """Where the ledger stands."""
        with self._reading() as connection:
            return self._head(connection)

    def spent(self, accounts: tuple[Account, ...], at: float) -> tuple[Spent, ...]:
        """What counts against each account at a time: everything, or what its window holds."""
        with self._reading() as connection:
            known = self._synced(connection).accounts
            return tuple(known[each.name].spent(at) for each in accounts)

    def due(self, place: str | None, costs: tuple[Decimal, ...], at: float) -> tuple[Decimal, ...]:
        """What a release at a time is charged in each account, given its costs: a memoised place counts once."""
        with self._reading() as connection:
            state = self._synced(connection)
            pairs = zip(state.change.terms, costs, strict=True)
            return tuple(state.accounts[each.name].due(state.place(place), cost, at) for each, cost in pairs)

    def find(self, key: str) -> Record | None:
        """The release made with a key before."""
        with self._reading() as connection:
            self._synced(connection)
            event = self._stored(connection, "release", key)
            if event is None:
                return None
            query = "SELECT count(*) FROM events WHERE kind = 'release' AND id <= ?"
            number = connection.execute(query, (event.number,)).fetchone()[0]
            query = "SELECT max(id) FROM events WHERE kind = 'change' AND id < ?"
            return record_of(event, number, connection.execute(query, (event.number,)).fetchone()[0])

    def knows(self, mechanism: str) -> bool:
        """Whether a mechanism, or a function drawn from one, was used before."""
        with self._reading() as connection:
            return connection.execute("SELECT 1 FROM events WHERE mechanism = ?", (mechanism,)).fetchone() is not None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Exclusive lock, held while a release is chosen again after a concurrent write."""
        with self._transaction():
            yield

    def append(self, head: Head, draw: Callable[[], Entry]) -> Record | None:
        """Commit one release: draw, write answer and charges, synchronise. None if the ledger moved on meanwhile."""
        with self._transaction() as connection:
            state = self._synced(connection)
            if state.chain != head.chain:
                return None
            entry = draw()
            event = self._write(connection, self._release(state, entry))
            connection.execute("INSERT OR REPLACE INTO beliefs VALUES (1, ?)", (_bytes(entry.belief),))
            return record_of(event, state.releases, state.change.number)

    def correct_clock(self, to: Moment | None = None) -> float:
        """Set the ledger's clock back to the present, after a release that was made at a time in the future.

        Whatever was charged at later times counts as charged now, so windows hold it for the longest that is possible.

        Args:
            to: the right time; by default that of this machine's clock.

        Returns:
            by how many seconds the ledger was ahead; 0: it was not, and nothing was written.
        """
        at = moment(time() if to is None else to)
        with self._transaction() as connection:
            state = self._synced(connection)
            ahead = state.time - at
            if not state.releases or ahead <= 0:
                return 0.0
            if not state.clocked:
                raise InvalidProblem(f"{self.name} counts steps, not seconds: there is no clock to correct")
            report = _json({"from": state.time})
            self._write(connection, Event(state.events + 1, "clock", time=at, clocked=1, report=report))
            return ahead

    def records(self) -> list[Record]:
        """Every release, the first first."""
        found: list[Record] = []
        with self._reading() as connection:
            self._synced(connection)
            change = 0
            for event in read_events(connection):
                change = event.number if event.kind == "change" else change
                if event.kind == "release":
                    found.append(record_of(event, len(found) + 1, change))
        return found

    def accounts(self) -> list[dict[str, object]]:
        """Every account: its name, limit, window, what was spent in all, and what that is counted for."""
        with self._reading() as connection:
            state = self._synced(connection)
            counted = {each.name: each for each in state.change.terms}
            return [
                {
                    "name": name,
                    "limit": each.limit and str(each.limit),
                    "every": each.every,
                    "spent": str(each.charged),
                    "counted": counted[name].scale.per(),
                    "any_pair": state.any_pair(name, each.charged),
                }
                for name, each in state.accounts.items()
            ]

    def likelihoods(self) -> tuple[list[float], list[bool], list[FloatArray | None]]:
        """For each release about the present problem its time, whether by the clock, and its log-likelihoods."""
        with self._reading() as connection:
            state = self._synced(connection)
            rows = connection.execute(
                "SELECT likelihood FROM events WHERE kind = 'release' AND id > ? ORDER BY id", (state.change.number,)
            ).fetchall()
            columns = [None if blob is None else _vector(blob, self.name) for (blob,) in rows]
            return list(state.times), [bool(state.clocked)] * len(rows), columns

    def state(self) -> LedgerBalances:
        """What all events add up to: for reading only."""
        with self._reading() as connection:
            return self._synced(connection)

    def verify(self, head: str | None = None) -> Verified:
        """Recompute every balance and every window, and the chain of hashes over all events.

        Args:
            head: the head of an earlier :meth:`verify`, kept elsewhere: the ledger must still have it in its chain.
                Only this tells whether the whole file is an older copy.

        Raises:
            GuaranteeViolated: a balance does not add up, a budget or one of its windows is exceeded, or time goes back.
            InvalidFile: the file is damaged, an event was altered after it was written, or it is an older copy.
        """
        with self._reading() as connection:
            require_sound(connection, self.name, "integrity_check")
            state = self._synced(connection, from_start=True)
            self._belief(connection, state)
            known = connection.execute("SELECT 1 FROM events WHERE chain = ?", (head,)).fetchone()
            if head not in (None, genesis(state.identity)) and known is None:
                raise InvalidFile(
                    f"{self.name} does not have the head that was given: it is an older copy, or another ledger"
                )
            return state.verified()

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        held = "closed" if self._closed else f"{self.head().count} releases"
        return f"Ledger({self.name!r}, {held})"

    def _forget(self) -> None:
        self._state = None

    def _remember(self) -> None:
        if self._state is not None:
            self._seen = self._state.identity, self._state.events, self._state.chain

    def _synced(self, connection: sqlite3.Connection, *, from_start: bool = False) -> LedgerBalances:
        """What all events add up to, those written since the last look checked; trouble is final."""
        if self._trouble is not None:
            raise self._trouble
        try:
            self._state = self._followed(connection, None if from_start else self._state)
        except PrivacyGamesError as error:
            self._trouble = error
            raise
        if not self._wrote:
            self._remember()
        return self._state

    def _followed(self, connection: sqlite3.Connection, known: LedgerBalances | None) -> LedgerBalances:
        head = read_head(connection)
        if head is None:
            raise InvalidFile(f"{self.name} does not say which event is its last: it was altered")
        identity, events, chain = head
        if last_event(connection) != events:
            raise InvalidFile(f"{self.name} does not end with event {events}, as it says: it was altered")
        state = LedgerBalances(identity, self.name) if known is None else known
        self._require_descendant(connection, identity)
        if (state.events, state.chain) != (events, chain) or known is None:
            follow(state, read_events(connection, state.events))
            if (state.events, state.chain) != (events, chain):
                raise InvalidFile(f"{self.name} has another last event than it says: it was altered")
            charges = connection.execute("SELECT count(*) FROM charges").fetchone()[0]
            if charges != state.charges:
                raise InvalidFile(f"{self.name} holds charges of no event: it was altered")
        return state

    def _require_descendant(self, connection: sqlite3.Connection, identity: str) -> None:
        """Refuse a file that does not go on from what this handle has seen of it."""
        if self._seen is None:
            return
        own, events, chain = self._seen
        row = connection.execute("SELECT chain FROM events WHERE id = ?", (events,)).fetchone()
        if identity != own or (events and (row is None or row[0] != chain)):
            raise InvalidFile(f"{self.name} was replaced by an older copy, or altered, while it was open")

    def _head(self, connection: sqlite3.Connection) -> Head:
        state = self._synced(connection)
        belief, last = self._belief(connection, state), state.last
        observable = -1 if last is None or last.observable is None else last.observable
        current, change = len(state.times), state.change.number
        return Head(state.releases, current, change, state.time, bool(state.clocked), observable, belief, state.chain)

    def _belief(self, connection: sqlite3.Connection, state: LedgerBalances) -> FloatArray:
        """The logarithms of the belief that the last release left."""
        row = connection.execute("SELECT logarithms FROM beliefs").fetchone()
        mark = None if state.last is None else state.last.belief
        if (None if row is None else sha256(row[0]).hexdigest()) != mark:
            raise InvalidFile(f"{self.name} holds another belief than its last release left: it was altered")
        return NO_BELIEF if row is None else _vector(row[0], self.name)

    def _stored(self, connection: sqlite3.Connection, kind: Kind, key: str) -> Event | None:
        """The event with a key, if it is as it was written."""
        return stored_event(connection, kind, key, self.name)

    def _write(self, connection: sqlite3.Connection, event: Event) -> Event:
        state = self._synced(connection)
        self._wrote = True
        written = write_event(connection, state, event)
        self._synced(connection)
        return written

    def _release(self, state: LedgerBalances, entry: Entry) -> Event:
        charges = tuple(
            (each.name, str(amount), running_total(state.accounts[each.name], amount))
            for each, amount in zip(state.change.terms, entry.charges, strict=True)
        )
        return Event(
            number=state.events + 1,
            kind="release",
            key=entry.key,
            time=entry.time,
            clocked=int(entry.clocked),
            observable=entry.observable,
            mechanism=entry.mechanism,
            place=entry.place,
            report=_json(entry.report),
            likelihood=None if entry.likelihood is None else _bytes(entry.likelihood),
            belief=sha256(_bytes(entry.belief)).hexdigest(),
            charges=charges,
        )


def _json(report: Mapping[str, object]) -> str:
    return json.dumps(report, sort_keys=True, allow_nan=False)


def _bytes(values: FloatArray) -> bytes:
    return values.astype("<f8").tobytes()


def _vector(blob: bytes, name: str) -> FloatArray:
    if len(blob) % 8:
        raise InvalidFile(f"{name} holds a likelihood that is cut off: it was altered or is damaged")
    return np.frombuffer(blob, dtype="<f8")
