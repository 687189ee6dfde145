"""The rows of one person's ledger in a store, inside a transaction; what is written is sent at its end."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256

from privacygames.errors import InvalidFile
from privacygames.releases.ledger import Event, LedgerRows
from privacygames.releases.store.database import Database, Row

EVENT_COLUMNS = "id, kind, key, time, clocked, observable, mechanism, place, report, likelihood, belief, charges, chain"
INSERT_EVENT = "INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
INSERT_KEY = (
    "INSERT INTO keys VALUES (?,?,?,?) ON CONFLICT (person, digest) DO UPDATE SET event = excluded.event, "
    "expires = excluded.expires"
)
UPDATE_PERSON = "UPDATE people SET events = ?, chain = ?, belief = ? WHERE id = ?"


@dataclass(frozen=True)
class PersonHead:
    """A person's row: where their ledger ends.

    Attributes:
        number: of the person.
        identity: the ledger's.
        events: the number of its events.
        chain_hash: the hash over them.
        belief: the logarithms of the belief after the last release.
        last_number: the number of the last event that is stored.
    """

    number: int
    identity: str
    events: int
    chain_hash: str
    belief: bytes | None = field(repr=False)
    last_number: int


class StoreRows(LedgerRows):
    """The rows of one person's ledger.

    Args:
        database: with an open transaction.
        head: the person's row, as the transaction read it.
        now: unix seconds, from which keys expire.
        key_seconds: how long a key is kept.
    """

    def __init__(self, database: Database, head: PersonHead, now: float, key_seconds: float) -> None:
        self._database, self._head = database, head
        self._now, self._key_seconds = now, key_seconds
        self._committed = head
        self.pending: list[Event] = []
        self.delete_to = 0
        self._known_keys: dict[str, int | None] = {}

    @property
    def person(self) -> int:
        """The number of the person."""
        return self._head.number

    def know_keys(self, events: Mapping[str, int | None]) -> None:
        """Take note of the events of stored keys, None for those that are not used, which were read all at once."""
        self._known_keys = dict(events)

    def savepoint(self) -> tuple[PersonHead, int]:
        """What :meth:`restore` takes to undo everything written after this moment."""
        return self._head, len(self.pending)

    def restore(self, savepoint: tuple[PersonHead, int]) -> bool:
        """Undo everything written since a savepoint; returns whether that was anything."""
        undone = len(self.pending) > savepoint[1]
        self.delete_to = self.delete_to if not undone else 0
        self._head = savepoint[0]
        del self.pending[savepoint[1] :]
        return undone

    def event_rows(self) -> Iterator[Row]:
        """The rows of the events that are to be inserted."""
        for event in self.pending:
            head = (self._head.number, event.number, event.kind, event.key, event.time, event.clocked)
            rest = (event.output_index, event.mechanism, event.secret_mark, event.report, event.likelihood)
            yield (*head, *rest, event.belief, json.dumps(event.charges), event.chain_hash)

    def key_rows(self) -> Iterator[Row]:
        """The rows of the keys that are to be inserted."""
        expires = self._now + self._key_seconds
        keyed = ((event.key, event.number) for event in self.pending if event.key is not None)
        yield from ((self._head.number, key, number, expires) for key, number in keyed)

    def person_row(self) -> Row:
        """The values of the person's row."""
        return self._head.events, self._head.chain_hash, self._head.belief, self._head.number

    def head(self) -> tuple[str, int, str] | None:
        """The ledger's identity, the number of its events and the hash over them."""
        return self._head.identity, self._head.events, self._head.chain_hash

    def last_number(self) -> int:
        """The number of the last event; 0 if there is none."""
        return self._head.last_number

    def events(self, after: int = 0) -> Iterator[Event]:
        """The events after a given one, in order."""
        if after < self._committed.last_number:
            query = f"SELECT {EVENT_COLUMNS} FROM events WHERE person = ? AND id > ? ORDER BY id"  # noqa: S608
            for row in self._database.rows(query, (self._head.number, after)):
                yield _event(row)
        yield from (event for event in self.pending if event.number > after)

    def stored_key(self, identity: str, key: str) -> str:
        """The digest of a key, which is different in every ledger."""
        return sha256(f"{identity} {key}".encode()).hexdigest()  # identities are of one length

    def number_of(self, stored_key: str) -> int | None:
        """The number of the event of the release with a key that has not expired; None if there is none."""
        for event in self.pending:
            if event.key == stored_key:
                return event.number
        if stored_key in self._known_keys:
            return self._known_keys[stored_key]
        query = "SELECT event FROM keys WHERE person = ? AND digest = ? AND expires > ?"
        rows = self._database.rows(query, (self._head.number, stored_key, self._now))
        return int(rows[0][0]) if rows else None

    def chain_at(self, number: int) -> str | None:
        """The chain hash of an event; None if it does not exist."""
        if number == self._head.events == self._head.last_number:
            return self._head.chain_hash
        for event in self.pending:
            if event.number == number:
                return event.chain_hash
        rows = self._database.rows("SELECT chain FROM events WHERE person = ? AND id = ?", (self._head.number, number))
        return str(rows[0][0]) if rows else None

    def has_chain(self, chain_hash: str) -> bool:
        """Whether an event has this chain hash."""
        query = "SELECT 1 FROM events WHERE person = ? AND chain = ?"
        return bool(self._database.rows(query, (self._head.number, chain_hash)))

    def releases_after(self, number: int) -> int:
        """How many releases there are after an event."""
        query = "SELECT count(*) FROM events WHERE person = ? AND kind = 'release' AND id > ?"
        stored = int(self._database.rows(query, (self._head.number, number))[0][0])
        return stored + sum(event.kind == "release" and event.number > number for event in self.pending)

    def first_number(self) -> int:
        """The number of the first event that was not deleted; 1 if there is none."""
        query = "SELECT coalesce(min(id), 1) FROM events WHERE person = ?"
        return int(self._database.rows(query, (self._head.number,))[0][0])

    def last_summary(self) -> int:
        """The number of the last event that has the balances; 0 if there is none."""
        pending = [event.number for event in self.pending if event.kind == "summary"]
        query = "SELECT coalesce(max(id), 0) FROM events WHERE person = ? AND kind = 'summary'"
        return max([int(self._database.rows(query, (self._head.number,))[0][0]), *pending])

    def first_release_since(self, time: float) -> int | None:
        """The number of the first release at or after a time; None if there is none."""
        query = "SELECT min(id) FROM events WHERE person = ? AND kind = 'release' AND time >= ?"
        number: int | None = self._database.rows(query, (self._head.number, time))[0][0]
        return number

    def delete_up_to(self, number: int) -> None:
        """Delete the events up to this one, and their keys, at the end of the transaction."""
        self.delete_to = number

    def likelihoods(self, after: int) -> list[bytes | None]:
        """The stored likelihoods of the releases after an event, in order."""
        return [event.likelihood for event in self.events(after) if event.kind == "release"]

    def belief(self) -> bytes | None:
        """The stored logarithms of the belief after the last release; None before the first."""
        return self._head.belief

    def require_charges(self, count: int) -> None:
        """Nothing: charges are part of their event's row."""

    def require_intact(self) -> None:
        """Nothing: :meth:`LedgerStore.verify` checks the whole database once."""

    def insert(self, event: Event) -> None:
        """LedgerStore an event with its charges, at the end of the transaction."""
        self.pending.append(event)
        self._head = replace(self._head, last_number=event.number)

    def set_head(self, identity: str, events: int, chain_hash: str) -> None:
        """Record which event is the last."""
        self._head = replace(self._head, identity=identity, events=events, chain_hash=chain_hash)

    def set_belief(self, logarithms: bytes) -> None:
        """Replace the belief."""
        self._head = replace(self._head, belief=logarithms)


def _event(row: Row) -> Event:
    """An event from its row."""
    number, kind, key, time, clocked, observable, mechanism, place, report, likelihood, belief, charges, chain = row
    try:
        listed = tuple((str(name), str(amount), str(total)) for name, amount, total in json.loads(charges))
    except (ValueError, TypeError):
        raise InvalidFile(f"event {number} of a ledger in the store has no charges: it was altered") from None
    return Event(
        number=number,
        kind=kind,
        key=key,
        time=time,
        clocked=clocked,
        output_index=observable,
        mechanism=mechanism,
        secret_mark=place,
        report=report,
        likelihood=likelihood,
        belief=belief,
        charges=listed,
        chain_hash=chain,
    )
