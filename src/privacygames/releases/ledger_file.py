"""The file of a ledger: opened, shared with other processes and threads, and written in whole transactions."""

import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from privacygames.atomic_io import fsync_directory
from privacygames.errors import InvalidFile, InvalidProblem, SolveFailed, Status, UnreadableFile
from privacygames.releases.schema import prepare

MAGIC = b"SQLite format 3\x00"
PATIENCE = 60.0
"""Seconds to wait for another process that is writing."""

SETTINGS = ("trusted_schema = OFF", "cell_size_check = ON", "foreign_keys = ON", "fullfsync = ON", "synchronous = FULL")
"""Nothing in a file from strangers is executed; what is committed is on the disk before anybody sees it."""


class LedgerFile:
    """An SQLite file that any number of processes and threads use at once; None: in memory.

    Args:
        path: the file; made if need be, for its owner alone.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        if path is not None and not isinstance(path, str | os.PathLike):
            raise InvalidProblem("a ledger is a file: give its path, or None to keep it in memory")
        self.path = None if path is None else Path(path)
        self.name = "the ledger" if self.path is None else self.path.name
        self._lock = threading.RLock()
        self._process, self._closed, self._wrote = os.getpid(), False, False
        self._connection = self._open()
        self._inherited: list[sqlite3.Connection] = []

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()
            self._closed = True

    def _open(self) -> sqlite3.Connection:
        if self.path is not None:
            _check_file(self.path)
        target = ":memory:" if self.path is None else str(self.path)
        try:
            connection = sqlite3.connect(target, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
        except sqlite3.Error:
            raise UnreadableFile(target, "SQLite cannot open it") from None
        try:
            with _translated(self.name):
                for setting in (*SETTINGS, "journal_mode = WAL"):
                    connection.execute(f"PRAGMA {setting}")
                prepare(connection, self.name)
                require_sound(connection, self.name, "quick_check")
            self._file_id = self._current_file_id()
        except BaseException:
            connection.close()
            raise
        return connection

    def _current_file_id(self) -> tuple[int, int] | None:
        """Which file the path names now: another one may have been put in its place."""
        if self.path is None:
            return None
        try:
            found = self.path.stat()
        except OSError:
            return (0, 0)
        return found.st_dev, found.st_ino

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _translated(self.name):
            if self._closed:
                raise InvalidProblem(f"{self.name} was closed: open it again")
            if self._process != os.getpid():  # a connection must not be carried into a forked process
                if self.path is None:
                    raise InvalidProblem("a ledger in memory belongs to the process that made it: give it a file")
                self._inherited.append(self._connection)  # nor closed there
                self._process, self._connection = os.getpid(), self._open()
            if self._current_file_id() != self._file_id:
                raise InvalidFile(f"{self.name} was moved or replaced since it was opened: open it again")
            yield self._connection

    @contextmanager
    def _transaction(self, kind: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        """Alone on the ledger; all or nothing. Within another transaction of ours, part of it."""
        with self._connected() as connection:
            if connection.in_transaction:
                yield connection
                return
            connection.execute(f"BEGIN {kind}")
            try:
                yield connection
                connection.execute("COMMIT")
                self._remember()
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                if self._wrote:
                    self._forget()
                raise
            finally:
                self._wrote = False

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """All that is read here is of one moment, whoever writes meanwhile."""
        with self._transaction("DEFERRED") as connection:
            yield connection

    def _remember(self) -> None:
        """Note what was committed."""

    def _forget(self) -> None:
        """Forget what was known of the file: a transaction that wrote was rolled back."""


def require_sound(connection: sqlite3.Connection, name: str, check: str) -> None:
    """Refuse a file whose pages are damaged."""
    trouble = connection.execute(f"PRAGMA {check}(1)").fetchone()[0]
    if trouble != "ok":
        raise InvalidFile(f"{name} is damaged: {trouble[:200]}")


def _check_file(path: Path) -> None:
    """Refuse what is not a database; make a new one that only its owner can read."""
    try:
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            fsync_directory(path.parent)  # or a power cut might take the file, and what is paid, with it
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
    except OSError as error:
        raise UnreadableFile(path, error.strerror) from None
    except ValueError:  # a zero byte
        raise UnreadableFile("the ledger", "that is no file name") from None
    if start not in (b"", MAGIC):  # empty: new, or a crash came before its first page
        raise InvalidFile(f"{path.name} is not a ledger: it is no SQLite database")


@contextmanager
def _translated(name: str) -> Iterator[None]:
    """SQLite's errors in our words."""
    try:
        yield
    except sqlite3.OperationalError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise SolveFailed(
                f"{name} was being written by another process for {PATIENCE:g} seconds: try again",
                status=Status.TIME_LIMIT,
            ) from None
        if code:
            raise UnreadableFile(name, f"SQLite says {error}") from None
        raise InvalidFile(f"{name} holds what is no text: it is damaged or altered") from None  # which it would show
    except (sqlite3.DatabaseError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InvalidFile(
            f"{name} is not a readable ledger ({type(error).__name__}): it is damaged or altered"
        ) from None
