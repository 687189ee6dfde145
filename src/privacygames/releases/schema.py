"""The tables of a ledger: created, and compared with what a file holds."""

import secrets
import sqlite3

from privacygames.errors import InvalidFile
from privacygames.releases.entries import genesis
from privacygames.releases.event_log import set_head
from privacygames.releases.old_ledgers import OLD_TABLES, upgrade

APPLICATION = 0x50474C31
"""Written into the file's header: it is a ledger of ours."""

TABLES = (
    "CREATE TABLE head (id INTEGER PRIMARY KEY CHECK (id = 1), identity TEXT NOT NULL, events INTEGER NOT NULL, "
    "chain TEXT NOT NULL) STRICT",
    "CREATE TABLE events (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT, time REAL, clocked INTEGER, "
    "observable INTEGER, mechanism TEXT, place TEXT, report TEXT NOT NULL, likelihood BLOB, belief TEXT, "
    "chain TEXT NOT NULL, UNIQUE (kind, key)) STRICT",
    "CREATE TABLE charges (event INTEGER NOT NULL REFERENCES events (id), position INTEGER NOT NULL, "
    "account TEXT NOT NULL, amount TEXT NOT NULL, total TEXT NOT NULL, PRIMARY KEY (event, position)) STRICT",
    "CREATE TABLE beliefs (id INTEGER PRIMARY KEY CHECK (id = 1), logarithms BLOB NOT NULL) STRICT",
    "CREATE INDEX events_by_mechanism ON events (mechanism)",
)
"""The tables of this version."""

VERSION = 3


def prepare(connection: sqlite3.Connection, name: str) -> None:
    """Create the tables of a new file, bring an older one up to date, and refuse what is not a ledger."""
    if _version(connection, name) == VERSION and _objects(connection) == set(TABLES):
        return
    connection.execute("BEGIN EXCLUSIVE")  # two processes may find the same new file at once
    try:
        version = _version(connection, name)
        expected = set(TABLES) if version == VERSION else OLD_TABLES[version]
        if _objects(connection) != expected:
            raise InvalidFile(f"{name} has other tables than a ledger of version {version}: it was altered")
        if version < VERSION:
            _create(connection, name, version)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _create(connection: sqlite3.Connection, name: str, version: int) -> None:
    """Write the tables of this version, with what an older one holds."""
    identity = secrets.token_hex(16)

    def create() -> None:
        for statement in TABLES:
            connection.execute(statement)
        set_head(connection, identity, 0, genesis(identity))

    if version:
        upgrade(connection, name, identity, create)
    else:
        create()
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _version(connection: sqlite3.Connection, name: str) -> int:
    """The version of a ledger; 0 of an empty database."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application == 0 and version == 0 and not _objects(connection):
        return 0
    if application != APPLICATION:
        raise InvalidFile(f"{name} is a database of another program, not a ledger")
    if version > VERSION:
        raise InvalidFile(f"{name} is a ledger of version {version}, and this release reads up to {VERSION}: upgrade")
    if version not in OLD_TABLES and version != VERSION:
        raise InvalidFile(f"{name} says that it is a ledger of version {version}: it was altered")
    return int(version)


def _objects(connection: sqlite3.Connection) -> set[str]:
    """How every table, index, trigger and view was made: a file from strangers may have some of its own."""
    rows = connection.execute("SELECT sql, type FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'")
    return {sql or kind for sql, kind in rows}
