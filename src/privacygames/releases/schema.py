"""The tables of a ledger: created, brought up to date from older versions, and compared with what a file holds."""

import sqlite3

from privacygames.errors import InvalidFile

APPLICATION = 0x50474C31
"""Written into the file's header: it is a ledger of ours."""

STEPS = (
    (
        "CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
        "CREATE TABLE accounts (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, amount TEXT, every REAL, "
        "subject TEXT NOT NULL) STRICT",
        "CREATE TABLE releases (id INTEGER PRIMARY KEY, key TEXT UNIQUE, time REAL NOT NULL, clocked INTEGER NOT NULL, "
        "observable INTEGER NOT NULL, mechanism TEXT, report TEXT NOT NULL, likelihood BLOB, belief TEXT NOT NULL, "
        "chain TEXT NOT NULL) STRICT",
        "CREATE TABLE charges (release INTEGER NOT NULL REFERENCES releases (id), account INTEGER NOT NULL REFERENCES "
        "accounts (id), amount TEXT NOT NULL, total TEXT NOT NULL, charged INTEGER NOT NULL, "
        "PRIMARY KEY (release, account)) STRICT",
        "CREATE TABLE beliefs (id INTEGER PRIMARY KEY CHECK (id = 1), logarithms BLOB NOT NULL) STRICT",
    ),
    # 2: windows are summed, and functions that were drawn are looked up, without reading every release
    (
        "CREATE INDEX releases_by_time ON releases (time)",
        "CREATE INDEX releases_by_mechanism ON releases (mechanism)",
    ),
)
"""What each version added to the one before it."""

VERSION = len(STEPS)


def prepare(connection: sqlite3.Connection, name: str) -> None:
    """Create the tables of a new file, bring an older one up to date, and refuse what is not a ledger."""
    if _version(connection, name) == VERSION and _objects(connection) == _expected(VERSION):
        return
    connection.execute("BEGIN EXCLUSIVE")  # two processes may find the same new file at once
    try:
        found = _version(connection, name)
        if _objects(connection) != _expected(found):
            raise InvalidFile(f"{name} has other tables than a ledger of version {found}: it was altered")
        for statements in STEPS[found:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


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
    return int(version)


def _objects(connection: sqlite3.Connection) -> set[str]:
    """How every table, index, trigger and view was made: a file from strangers may have some of its own."""
    rows = connection.execute("SELECT sql, type FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'")
    return {sql or kind for sql, kind in rows}


def _expected(version: int) -> set[str]:
    return {statement for statements in STEPS[:version] for statement in statements}
