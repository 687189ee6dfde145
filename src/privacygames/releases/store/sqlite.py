"""A store in one SQLite file: write-ahead log, one writer at a time, several people's releases in one commit."""

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar

from privacygames.atomic_io import fsync_directory
from privacygames.errors import InvalidFile, InvalidProblem, StoreUnavailable
from privacygames.releases.ledger import LOCK_TIMEOUT, PRAGMAS, create_missing, require_intact, translated
from privacygames.releases.store.database import Database, Row
from privacygames.releases.store.schema import TABLES

APPLICATION_ID = 0x50475354
"""In the header of the file: marks it as a store of this program."""

SCRUB_SECONDS = 5.0
"""Seconds to wait for readers until the write-ahead log can be emptied; they read for milliseconds."""

PAGES_PER_STEP = 256
"""Pages that a backup copies at a time, between which others can write."""


class SQLiteDatabase(Database):
    """A store's SQLite file.

    Args:
        path: the file; created if necessary, readable by its owner only.
    """

    types: ClassVar = {
        "identity": "INTEGER PRIMARY KEY AUTOINCREMENT",  # a number is never used again, also after an erasure
        "integer": "INTEGER",
        "real": "REAL",
        "blob": "BLOB",
        "strict": " STRICT",
    }

    def __init__(self, path: Path) -> None:
        super().__init__(path.name)
        self.path = path
        self._connection: sqlite3.Connection | None = None
        self._process, self._turn = os.getpid(), -1
        self._inherited: list[sqlite3.Connection] = []

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Translate the errors of SQLite into those of the library; a busy file is one to try again."""
        try:
            yield
        except sqlite3.OperationalError as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
                with translated(self.name):
                    raise
            raise StoreUnavailable(f"{self.name} cannot be written now: SQLite says {error}") from None
        except sqlite3.Error:
            with translated(self.name):
                raise

    def connect(self) -> None:
        """Open the file, unless it is open in this process."""
        if self._process != os.getpid() and self._connection is not None:
            self._inherited.append(self._connection)  # closing it in the child would be unsafe, too
            self._connection, self._process = None, os.getpid()
        if self._connection is None:
            create_missing(self.path)
            connection = sqlite3.connect(
                str(self.path), timeout=LOCK_TIMEOUT, isolation_level=None, check_same_thread=False
            )
            for pragma in (*PRAGMAS, "journal_mode = WAL", "secure_delete = ON"):
                connection.execute(f"PRAGMA {pragma}")
            self._connection = connection
            self._require_store(connection)
            require_intact(connection, self.name, "quick_check")
            self._file = self._file_id()
        if self._file_id() != self._file:
            raise InvalidFile(f"{self.name} was moved or replaced since it was opened: open it again")

    def close(self) -> None:
        """Close the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def begin_writing(self) -> None:
        """Wait for this process's turn, and begin a transaction that writes.

        SQLite's own way of waiting is to try again after longer and longer pauses. A lock on a file beside it is handed
        from one process to the next at once.
        """
        self._turn = os.open(f"{self.path}-turn", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            with suppress(ImportError):
                import fcntl

                fcntl.flock(self._turn, fcntl.LOCK_EX)
            self._opened.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._end_turn()
            raise

    def begin_reading(self) -> None:
        """Begin a transaction whose reads all see one state."""
        self._opened.execute("BEGIN DEFERRED")

    def commit(self) -> None:
        """Commit: when this returns, what was written is on the disk."""
        self._opened.execute("COMMIT")
        self._end_turn()

    def rollback(self) -> None:
        """Undo the transaction."""
        try:
            if self._connection is not None and self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        finally:
            self._end_turn()

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """The rows that a statement returns."""
        return self._opened.execute(sql, values).fetchall()

    def write_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement that writes, for each row of values."""
        self._opened.executemany(sql, rows)

    def lock(self, names: Sequence[str]) -> None:
        """Nothing: only one transaction writes at a time."""

    def lock_tables(self) -> None:
        """Mark the file as a store: only one transaction writes at a time."""
        self.rows(f"PRAGMA application_id = {APPLICATION_ID}")

    def has_tables(self) -> bool:
        """Whether the tables of a store exist."""
        return bool(self.rows("SELECT 1 FROM sqlite_schema WHERE name = 'store'"))

    def require_intact(self) -> None:
        """Refuse a file whose pages are damaged."""
        require_intact(self._opened, self.name, "integrity_check")

    def scrub(self) -> None:
        """Rewrite the file without free pages, and empty the write-ahead log.

        Deleted bytes are overwritten with zeros at the deletion (secure_delete); the log and pages that hold older
        copies of them are removed here.
        """
        self.rows(f"PRAGMA busy_timeout = {round(1000 * SCRUB_SECONDS)}")
        try:
            for statement in ("PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
                rows = self.rows(statement)
                if rows and rows[0][0]:
                    raise StoreUnavailable(
                        f"{self.name} is being read, so that its write-ahead log cannot be emptied yet: the rows are "
                        "deleted; run `privacygames store scrub` to remove their bytes as well"
                    )
        finally:
            self.rows(f"PRAGMA busy_timeout = {round(1000 * LOCK_TIMEOUT)}")

    def backup(self, path: Path) -> None:
        """Write a copy of the file while it is in use; it is complete, or it is not there."""
        if path.exists():
            raise InvalidProblem(f"{path.name} exists already: choose another name for the backup")
        part = path.with_name(f".{path.name}.part")
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_CREAT | os.O_RDWR | os.O_EXCL, 0o600))
        try:
            copy = sqlite3.connect(part)
            self._opened.backup(copy, pages=PAGES_PER_STEP)
            copy.execute("PRAGMA journal_mode = DELETE")
            copy.close()
            part.replace(path)
            fsync_directory(path.parent)
        finally:
            part.unlink(missing_ok=True)

    @property
    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            raise InvalidProblem(f"{self.name} was closed: open it again")
        return self._connection

    def _end_turn(self) -> None:
        if self._turn >= 0:
            os.close(self._turn)
            self._turn = -1

    def _file_id(self) -> tuple[int, int]:
        """Device and inode that the path names now, which tell when another file was put in its place."""
        try:
            status = self.path.stat()
        except OSError:
            return (0, 0)
        return status.st_dev, status.st_ino

    def _require_store(self, connection: sqlite3.Connection) -> None:
        """Refuse a database of another program, and objects that a store does not have, such as triggers."""
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        objects = connection.execute("SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'").fetchall()
        if objects and application != APPLICATION_ID:
            raise InvalidFile(f"{self.name} is a database of another program, not a store")
        known = {("table", name) for name in TABLES} | {("index", "keys_by_expiry")}
        if not set(objects) <= known:
            raise InvalidFile(f"{self.name} has other tables than a store: it was altered")
