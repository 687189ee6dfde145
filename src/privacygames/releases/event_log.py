"""Events in the file: read and written as they stand, with their charges, and the head that says which is the last."""

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace

from privacygames.errors import InvalidFile
from privacygames.releases.decimal_epsilon import read_amount
from privacygames.releases.entries import Event, Kind, Record, chained, genesis
from privacygames.releases.ledger_state import LedgerBalances

COLUMNS = (
    *("number", "kind", "key", "time", "clocked", "observable", "mechanism", "place", "report", "likelihood", "belief"),
    "chain",
)
"""The attributes of an event, in the order of the table's columns."""

SELECT = (
    "SELECT id, kind, key, time, clocked, observable, mechanism, place, report, likelihood, belief, chain FROM events "
    "WHERE id > ? ORDER BY id"
)


def read_events(connection: sqlite3.Connection, after: int = 0) -> Iterator[Event]:
    """Every event after one, the first first."""
    rows = connection.execute(SELECT, (after,))
    query = "SELECT account, amount, total, position FROM charges WHERE event = ? ORDER BY position"
    for row in rows:
        found = connection.execute(query, (row[0],)).fetchall()
        if [position for *_, position in found] != list(range(len(found))):
            raise InvalidFile(f"the charges of event {row[0]} of a ledger are out of order: it was altered")
        charges = tuple((account, amount, total) for account, amount, total, _ in found)
        yield Event(**dict(zip(COLUMNS, row, strict=True)), charges=charges)


def stored_event(connection: sqlite3.Connection, kind: Kind, key: str, name: str) -> Event | None:
    """The event with a key, if it fits the event before it as it stands."""
    row = connection.execute("SELECT id FROM events WHERE kind = ? AND key = ?", (kind, key)).fetchone()
    if row is None:
        return None
    event = next(read_events(connection, row[0] - 1))
    before = connection.execute("SELECT chain FROM events WHERE id = ?", (row[0] - 1,)).fetchone()
    head = read_head(connection)
    chain = before[0] if before is not None else genesis("" if head is None else head[0])
    if chained(chain, event) != event.chain:
        raise InvalidFile(f"{name}: event {event.number}, or one before it, was altered after it was written")
    return event


def last_event(connection: sqlite3.Connection) -> int:
    """The number of the last event that is there; 0 where there is none."""
    return int(connection.execute("SELECT coalesce(max(id), 0) FROM events").fetchone()[0])


def write_event(connection: sqlite3.Connection, state: LedgerBalances, event: Event) -> Event:
    """Chain an event to those before it, and write it; the state takes it in when it is read back."""
    linked = replace(event, chain=chained(state.chain, event))
    row = (linked.number, linked.kind, linked.key, linked.time, linked.clocked, linked.observable, linked.mechanism)
    rest = (linked.place, linked.report, linked.likelihood, linked.belief, linked.chain)
    connection.execute("INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?,?,?)", (*row, *rest))
    charges = [(linked.number, position, *charge) for position, charge in enumerate(linked.charges)]
    connection.executemany("INSERT INTO charges VALUES (?,?,?,?,?)", charges)
    set_head(connection, state.identity, linked.number, linked.chain)
    return linked


def set_head(connection: sqlite3.Connection, identity: str, events: int, chain: str) -> None:
    """Say which event is the last."""
    connection.execute("INSERT OR REPLACE INTO head VALUES (1, ?, ?, ?)", (identity, events, chain))


def read_head(connection: sqlite3.Connection) -> tuple[str, int, str] | None:
    """The ledger's identity, how many events it has, and the chain over them; None where that is missing."""
    found = connection.execute("SELECT identity, events, chain FROM head").fetchone()
    return None if found is None else (found[0], found[1], found[2])


def record_of(event: Event, number: int, change: int) -> Record:
    """A release, from the event that it is."""
    return Record(
        number=number,
        change=change,
        key=event.key,
        time=event.time if event.clocked else None,
        observable=-1 if event.observable is None else event.observable,
        mechanism=event.mechanism,
        report=json.loads(event.report),
        charges=tuple(read_amount(amount) for _, amount, _ in event.charges),
        totals=tuple(read_amount(so_far) for _, _, so_far in event.charges),
    )
