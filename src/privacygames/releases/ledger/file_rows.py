"""The rows of a ledger that has an SQLite file of its own."""

import sqlite3
from collections.abc import Iterator

from privacygames.errors import InvalidFile, InvalidProblem
from privacygames.releases.ledger.events import Event
from privacygames.releases.ledger.rows import LedgerRows

COLUMNS = (
    *("number", "kind", "key", "time", "clocked", "output_index", "mechanism", "secret_mark", "report"),
    *("likelihood", "belief", "chain_hash"),
)
"""The attributes of an event, in the order of the table's columns."""

SELECT_AFTER = (
    "SELECT id, kind, key, time, clocked, observable, mechanism, place, report, likelihood, belief, chain FROM events "
    "WHERE id > ? ORDER BY id"
)


class FileRows(LedgerRows):
    """The rows of a ledger in a file of its own.

    Args:
        connection: with an open transaction.
        name: of the ledger, for messages.
    """

    def __init__(self, connection: sqlite3.Connection, name: str = "the ledger") -> None:
        self.connection, self._name = connection, name

    def head(self) -> tuple[str, int, str] | None:
        """The ledger's identity, the number of its events and the hash over them; None if that row is missing."""
        row = self.connection.execute("SELECT identity, events, chain FROM head").fetchone()
        return None if row is None else (row[0], row[1], row[2])

    def last_number(self) -> int:
        """The number of the last event; 0 if there is none."""
        return int(self.connection.execute("SELECT coalesce(max(id), 0) FROM events").fetchone()[0])

    def events(self, after: int = 0) -> Iterator[Event]:
        """The events after a given one, in order."""
        query = "SELECT account, amount, total, position FROM charges WHERE event = ? ORDER BY position"
        for row in self.connection.execute(SELECT_AFTER, (after,)):
            charges = self.connection.execute(query, (row[0],)).fetchall()
            if [position for *_, position in charges] != list(range(len(charges))):
                raise InvalidFile(f"the charges of event {row[0]} of a ledger are out of order: it was altered")
            listed = tuple((account, amount, total) for account, amount, total, _ in charges)
            yield Event(**dict(zip(COLUMNS, row, strict=True)), charges=listed)

    def stored_key(self, identity: str, key: str) -> str:  # noqa: ARG002 - of a store's
        """The key itself: the file is its owner's."""
        return key

    def number_of(self, stored_key: str) -> int | None:
        """The number of the event of the release with a key; None if there is none."""
        query = "SELECT id FROM events WHERE kind = 'release' AND key = ?"
        row = self.connection.execute(query, (stored_key,)).fetchone()
        return None if row is None else int(row[0])

    def chain_at(self, number: int) -> str | None:
        """The chain hash of an event; None if it does not exist."""
        row = self.connection.execute("SELECT chain FROM events WHERE id = ?", (number,)).fetchone()
        return None if row is None else str(row[0])

    def has_chain(self, chain_hash: str) -> bool:
        """Whether an event has this chain hash."""
        return self.connection.execute("SELECT 1 FROM events WHERE chain = ?", (chain_hash,)).fetchone() is not None

    def releases_after(self, number: int) -> int:
        """How many releases there are after an event."""
        query = "SELECT count(*) FROM events WHERE kind = 'release' AND id > ?"
        return int(self.connection.execute(query, (number,)).fetchone()[0])

    def first_number(self) -> int:
        """1: no event of a file is ever deleted."""
        return 1

    def last_summary(self) -> int:
        """0: a file has every event."""
        return 0

    def first_release_since(self, time: float) -> int | None:
        """The number of the first release at or after a time; None if there is none."""
        query = "SELECT min(id) FROM events WHERE kind = 'release' AND time >= ?"
        number: int | None = self.connection.execute(query, (time,)).fetchone()[0]
        return number

    def delete_up_to(self, number: int) -> None:
        """Refuse: a file is one person's own, and keeps every event."""
        raise InvalidProblem(f"{self._name} is a file, which keeps every event up to {number}: only a store is pruned")

    def likelihoods(self, after: int) -> list[bytes | None]:
        """The stored likelihoods of the releases after an event, in order."""
        query = "SELECT likelihood FROM events WHERE kind = 'release' AND id > ? ORDER BY id"
        return [blob for (blob,) in self.connection.execute(query, (after,))]

    def belief(self) -> bytes | None:
        """The stored logarithms of the belief after the last release; None before the first."""
        row = self.connection.execute("SELECT logarithms FROM beliefs").fetchone()
        return None if row is None else bytes(row[0])

    def require_charges(self, count: int) -> None:
        """Refuse charges that belong to no event."""
        if self.connection.execute("SELECT count(*) FROM charges").fetchone()[0] != count:
            raise InvalidFile(f"{self._name} contains charges that belong to no event: it was altered")

    def require_intact(self) -> None:
        """Refuse a file whose pages are damaged."""
        require_intact(self.connection, self._name, "integrity_check")

    def insert(self, event: Event) -> None:
        """Store an event with its charges."""
        row = (event.number, event.kind, event.key, event.time, event.clocked, event.output_index, event.mechanism)
        rest = (event.secret_mark, event.report, event.likelihood, event.belief, event.chain_hash)
        self.connection.execute("INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", (*row, *rest))
        charges = [(event.number, position, *charge) for position, charge in enumerate(event.charges)]
        self.connection.executemany("INSERT INTO charges VALUES (?,?,?,?,?)", charges)

    def set_head(self, identity: str, events: int, chain_hash: str) -> None:
        """Record which event is the last."""
        write_head(self.connection, identity, events, chain_hash)

    def set_belief(self, logarithms: bytes) -> None:
        """Replace the belief."""
        self.connection.execute("INSERT OR REPLACE INTO beliefs VALUES (1, ?)", (logarithms,))


def write_head(connection: sqlite3.Connection, identity: str, events: int, chain_hash: str) -> None:
    """Record which event is the last."""
    connection.execute("INSERT OR REPLACE INTO head VALUES (1, ?, ?, ?)", (identity, events, chain_hash))


def require_intact(connection: sqlite3.Connection, name: str, check: str) -> None:
    """Refuse a file whose pages are damaged."""
    report = connection.execute(f"PRAGMA {check}(1)").fetchone()[0]
    if report != "ok":
        raise InvalidFile(f"{name} is damaged: {report[:200]}")
