"""The SQLite file of a ledger: opened or created, shared by processes and threads, written in durable transactions."""

import json
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from privacygames.atomic_io import fsync_directory
from privacygames.errors import InvalidFile, InvalidProblem, SolveFailed, Status, UnreadableFile
from privacygames.releases.ledger.base import BaseLedger
from privacygames.releases.ledger.events import initial_chain_hash
from privacygames.releases.ledger.file_rows import FileRows, require_intact, write_head
from privacygames.releases.ledger.old_versions import OLD_TABLES, upgrade
from privacygames.releases.ledger.rows import LedgerRows

LOCK_TIMEOUT = 60.0
"""Seconds to wait for another process that is writing; a release writes for milliseconds."""

PRAGMAS = ("trusted_schema = OFF", "cell_size_check = ON", "foreign_keys = ON", "fullfsync = ON", "synchronous = FULL")
"""Nothing stored in a file from strangers is executed, and a commit returns once it is on the disk."""

APPLICATION_ID = 0x50474C31
"""In the header of the file: marks it as a ledger of this program."""

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
"""Version of the tables, in the header of the file."""


class LedgerFile(BaseLedger):
    """An SQLite file that any number of processes and threads can use at once.

    Args:
        path: the file; created if necessary, readable by its owner only. None: in memory.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        if path is not None and not isinstance(path, str | os.PathLike):
            raise InvalidProblem("a ledger is a file: give its path, or None to keep it in memory")
        self.path = None if path is None else Path(path)
        super().__init__("the ledger" if self.path is None else self.path.name)
        self._lock = threading.RLock()
        self._process, self._closed = os.getpid(), False
        self._connection = self._open()
        self._inherited: list[sqlite3.Connection] = []

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()
            self._closed = True

    def _open(self) -> sqlite3.Connection:
        if self.path is not None:
            create_missing(self.path)
        target = ":memory:" if self.path is None else str(self.path)
        try:
            connection = sqlite3.connect(target, timeout=LOCK_TIMEOUT, isolation_level=None, check_same_thread=False)
        except sqlite3.Error:
            raise UnreadableFile(target, "SQLite cannot open it") from None
        try:
            with translated(self.name):
                for pragma in (*PRAGMAS, "journal_mode = WAL"):
                    connection.execute(f"PRAGMA {pragma}")
                prepare(connection, self.name)
                require_intact(connection, self.name, "quick_check")
            self._file_id = self._current_file_id()
        except BaseException:
            connection.close()
            raise
        return connection

    def _current_file_id(self) -> tuple[int, int] | None:
        """Device and inode that the path names now, which tell when another file was put in its place."""
        if self.path is None:
            return None
        try:
            status = self.path.stat()
        except OSError:
            return (0, 0)
        return status.st_dev, status.st_ino

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with self._lock, translated(self.name):
            if self._closed:
                raise InvalidProblem(f"{self.name} was closed: open it again")
            if self._process != os.getpid():  # a connection must not be carried into a forked process
                if self.path is None:
                    raise InvalidProblem("a ledger in memory belongs to the process that made it: give it a file")
                # keep a reference, because closing it in the child would also be unsafe
                self._inherited.append(self._connection)
                self._process, self._connection = os.getpid(), self._open()
            if self._current_file_id() != self._file_id:
                raise InvalidFile(f"{self.name} was moved or replaced since it was opened: open it again")
            yield self._connection

    @contextmanager
    def _transaction(self, kind: str = "IMMEDIATE") -> Iterator[LedgerRows]:
        """An atomic transaction; within another transaction of this handle, a part of it."""
        with self._connected() as connection:
            rows = FileRows(connection, self.name)
            if connection.in_transaction:
                yield rows
                return
            connection.execute(f"BEGIN {kind}")
            try:
                yield rows
                connection.execute("COMMIT")
                self._committed()
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if self._wrote:
                    self._rolled_back()
                raise
            finally:
                self._wrote = False

    @contextmanager
    def _reading(self) -> Iterator[LedgerRows]:
        """A read transaction: all reads see one state of the file."""
        with self._transaction("DEFERRED") as rows:
            yield rows


def create_missing(path: Path) -> None:
    """Create a file that is missing, readable by its owner only.

    A file that is there is opened by SQLite alone: to close any other handle of it would drop the locks that this
    process holds on it (a rule of POSIX), and two releases could be charged as one.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        fsync_directory(path.parent)  # so that a power cut cannot undo the creation after a release was charged
    except FileExistsError:
        pass
    except OSError as error:
        raise UnreadableFile(path, error.strerror) from None
    except ValueError:  # a zero byte
        raise UnreadableFile("the ledger", "that is not a file name") from None


@contextmanager
def translated(name: str) -> Iterator[None]:
    """Translate the errors of SQLite into those of the library."""
    try:
        yield
    except sqlite3.OperationalError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise SolveFailed(
                f"{name} was being written by another process for {LOCK_TIMEOUT:g} seconds: try again",
                status=Status.TIME_LIMIT,
            ) from None
        if code:
            raise UnreadableFile(name, f"SQLite says {error}") from None
        raise InvalidFile(
            f"{name} contains data that is not valid text: it is damaged or altered"
        ) from None  # SQLite's message would show it
    except (sqlite3.DatabaseError, json.JSONDecodeError, UnicodeDecodeError) as error:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_NOTADB:
            raise InvalidFile(f"{name} is not a ledger: it is not an SQLite database") from None
        raise InvalidFile(
            f"{name} is not a readable ledger ({type(error).__name__}): it is damaged or altered"
        ) from None


def prepare(connection: sqlite3.Connection, name: str) -> None:
    """Create the tables of a new file, upgrade an older version, and refuse what is not a ledger."""
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
    """Write the tables of this version, with the contents of an older one."""
    identity = secrets.token_hex(16)

    def create() -> None:
        for statement in TABLES:
            connection.execute(statement)
        write_head(connection, identity, 0, initial_chain_hash(identity))

    if version:
        upgrade(connection, name, identity, create)
    else:
        create()
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _version(connection: sqlite3.Connection, name: str) -> int:
    """The version of a ledger; 0 of an empty database."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application == 0 and version == 0 and not _objects(connection):
        return 0
    if application != APPLICATION_ID:
        raise InvalidFile(f"{name} is a database of another program, not a ledger")
    if version > VERSION:
        raise InvalidFile(
            f"{name} is a ledger of version {version}, and this version of privacygames reads up to {VERSION}: upgrade"
        )
    if version not in OLD_TABLES and version != VERSION:
        raise InvalidFile(f"{name} says that it is a ledger of version {version}: it was altered")
    return int(version)


def _objects(connection: sqlite3.Connection) -> set[str]:
    """The SQL of every table, index, trigger and view: a file from strangers may have added some."""
    rows = connection.execute("SELECT sql, type FROM sqlite_master WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'")
    return {sql or kind for sql, kind in rows}
