"""The tables of a store, and the migrations from each version of them to the next."""

VERSION = 2
"""The version of the tables that this release of privacygames reads and writes."""

MIGRATIONS = {
    1: (
        "CREATE TABLE store (id INTEGER PRIMARY KEY CHECK (id = 1), version INTEGER NOT NULL){strict}",
        "CREATE TABLE people (id {identity}, name TEXT NOT NULL UNIQUE, identity TEXT NOT NULL, "
        "events {integer} NOT NULL, chain TEXT NOT NULL, belief {blob}){strict}",
        "CREATE TABLE events (person {integer} NOT NULL REFERENCES people (id), id {integer} NOT NULL, "
        "kind TEXT NOT NULL, key TEXT, time {real}, clocked INTEGER, observable INTEGER, mechanism TEXT, place TEXT, "
        "report TEXT NOT NULL, likelihood {blob}, belief TEXT, charges TEXT NOT NULL, chain TEXT NOT NULL, "
        "PRIMARY KEY (person, id)){strict}",
        "CREATE TABLE keys (person {integer} NOT NULL REFERENCES people (id), digest TEXT NOT NULL, "
        "event {integer} NOT NULL, expires {real} NOT NULL, PRIMARY KEY (person, digest)){strict}",
        "INSERT INTO store VALUES (1, 1)",
    ),
    2: (
        "CREATE INDEX keys_by_expiry ON keys (expires)",
        "UPDATE store SET version = 2",
    ),
}
"""The statements that make each version from the one before it; a new store runs all of them in order.

``{integer}`` and the other types are the database's. The charges of an event are one JSON text in its row, because a
row for each would be a round trip for each.
"""

TABLES = ("keys", "events", "people", "store")
"""The tables, each before those that it refers to."""


def statements(version: int, types: dict[str, str]) -> list[str]:
    """The statements that bring tables of a version to the present one.

    Args:
        version: of the tables; 0 where there are none.
        types: the database's types, by the names used in :data:`MIGRATIONS`.
    """
    return [text.format(**types) for number in range(version + 1, VERSION + 1) for text in MIGRATIONS[number]]
