"""The ledger: every release and its charges, in one SQLite file that neither crashes nor other processes upset."""

import json
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.errors import InvalidFile, InvalidProblem, PrivacyGamesError, SolveFailed, Status, UnreadableFile
from privacygames.releases.amounts import minus, read_amount, total
from privacygames.releases.budgets import Account, Spent
from privacygames.releases.entries import Entry, Head, Record, Verified, chained
from privacygames.releases.ledger_checks import Raw, require_last, verified
from privacygames.releases.schema import prepare
from privacygames.storage import keep_the_name

MAGIC = b"SQLite format 3\x00"
LAST = 2**62
PATIENCE = 60.0
"""Seconds to wait for another process that is writing."""

LIMITS = {"counts": "what is counted", "observables": "the observables", "start": "the prior or the mobility"}
"""What a ledger is about, once and for all, and what messages call it."""


class Ledger:
    """What was released, what was charged, and what is left: one file for one person.

    Answer and charges of a release are committed together, with full synchronisation, before the answer is returned.
    Any number of processes may use one file at once. No true secret is ever written to it; what is in it (answers,
    times and what an observer may believe) concerns the owner, who alone may read the file.

    Args:
        path: the file; made if need be. None keeps the ledger in memory: it ends with the process.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        if path is not None and not isinstance(path, str | os.PathLike):
            raise InvalidProblem("a ledger is a file: give its path, or None to keep it in memory")
        self.path = None if path is None else Path(path)
        self.name = "the ledger" if self.path is None else self.path.name
        self._lock = threading.RLock()
        self._process, self._closed = os.getpid(), False
        self._connection = self._open()
        self._inherited: list[sqlite3.Connection] = []

    @classmethod
    def existing(cls, path: str | os.PathLike[str]) -> "Ledger":
        """A ledger that must be there already."""
        file = Path(path)
        if not file.is_file():
            raise UnreadableFile(path, "there is no such ledger")
        if file.stat().st_size == 0:
            raise InvalidFile(f"{file.name} is empty: it is no ledger, or what was in it is lost")
        return cls(path)

    def setup(self, about: dict[str, str], accounts: tuple[Account, ...]) -> None:
        """Say what the ledger is about; refuse if it is about something else already."""
        wanted = [
            (each.name, None if each.limit is None else str(each.limit), each.every, each.subject) for each in accounts
        ]
        with self._transaction() as connection:
            known = dict(connection.execute("SELECT name, value FROM settings"))
            if not known:
                if self._head(connection).count:
                    raise InvalidFile(f"{self.name} holds releases and does not say of what: it was altered")
                connection.executemany("INSERT INTO settings VALUES (?, ?)", about.items())
                rows = [(number, *each) for number, each in enumerate(wanted)]
                connection.executemany("INSERT INTO accounts VALUES (?, ?, ?, ?, ?)", rows)
                return
            for name, words in LIMITS.items():
                if known.get(name) != about[name]:
                    raise InvalidProblem(f"{self.name} is about another case: {words} differ; use a ledger of its own")
            held = connection.execute("SELECT name, amount, every, subject FROM accounts ORDER BY id").fetchall()
            if held != wanted:
                raise InvalidProblem(
                    f"{self.name} keeps other budgets: {_described(held)}; give the same ones (distinguishability "
                    "included), since what was promised may not change on the way"
                )

    def head(self) -> Head:
        """Where the ledger stands."""
        with self._reading() as connection:
            return self._head(connection)

    def spent(self, accounts: tuple[Account, ...], at: float) -> tuple[Spent, ...]:
        """What counts against each account at a time: everything, or what its window holds."""
        with self._reading() as connection:
            return tuple(_spent(connection, number, each.every, at) for number, each in enumerate(accounts))

    def find(self, key: str) -> Record | None:
        """The release made with a key before."""
        with self._reading() as connection:
            row = connection.execute("SELECT id FROM releases WHERE key = ?", (key,)).fetchone()
            return None if row is None else next(_records(connection, row[0], row[0]))

    def knows(self, mechanism: str) -> bool:
        """Whether a mechanism, or a function drawn from one, was used before."""
        with self._reading() as connection:
            return connection.execute("SELECT 1 FROM releases WHERE mechanism = ?", (mechanism,)).fetchone() is not None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else writes while this lasts: for who found the ledger changed under a long design."""
        with self._transaction():
            yield

    def append(self, head: Head, drawn: Callable[[], Entry]) -> Record | None:
        """Commit one release: draw, write answer and charges, synchronise. None if the ledger moved on meanwhile."""
        with self._transaction() as connection:
            now = self._head(connection)
            if now.chain != head.chain:
                return None
            entry = drawn()
            return self._written(connection, now, entry)

    def records(self) -> list[Record]:
        """Every release, the first first."""
        with self._reading() as connection:
            return list(_records(connection, 0, LAST))

    def accounts(self) -> list[dict[str, object]]:
        """Every account: its name, limit, window, and what was spent in all."""
        with self._reading() as connection:
            held = connection.execute("SELECT id, name, amount, every FROM accounts ORDER BY id").fetchall()
            found = []
            for number, name, limit, every in held:
                spent = _spent(connection, number, None, 0.0)
                found.append({"name": name, "limit": limit, "every": every, "spent": str(spent.amount)})
            return found

    def likelihoods(self) -> tuple[list[float], list[bool], list[FloatArray | None]]:
        """For each release its time, whether the clock told it, and the logarithms of its likelihood."""
        with self._reading() as connection:
            rows = connection.execute("SELECT time, clocked, likelihood FROM releases ORDER BY id").fetchall()
            columns = [None if blob is None else _vector(blob, self.name) for _, _, blob in rows]
        return [row[0] for row in rows], [bool(row[1]) for row in rows], columns

    def verify(self) -> Verified:
        """Recompute every balance and every window, and the chain of hashes over all releases.

        Raises:
            BrokenPromise: a balance does not add up, a budget or one of its windows is exceeded, or time goes back.
            InvalidFile: the file is damaged, or a release was altered after it was written.
        """
        with self._reading() as connection:
            trouble = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if trouble != "ok":
                raise InvalidFile(f"{self.name} is damaged: {trouble[:200]}")
            limits = connection.execute("SELECT id, name, amount, every FROM accounts ORDER BY id").fetchall()
            blob = connection.execute("SELECT logarithms FROM beliefs").fetchone()
            try:
                return verified(_raw(connection, 0, LAST), limits, None if blob is None else blob[0], self.name)
            except (ValueError, KeyError, TypeError, ArithmeticError) as error:
                if isinstance(error, PrivacyGamesError):
                    raise
                raise InvalidFile(f"{self.name} holds values that a ledger does not: it was altered") from None

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()
            self._closed = True

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        held = "closed" if self._closed else f"{self.head().count} releases"
        return f"Ledger({self.name!r}, {held})"

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
                for setting in ("trusted_schema = OFF", "cell_size_check = ON", "foreign_keys = ON"):
                    connection.execute(f"PRAGMA {setting}")
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA journal_mode = WAL")
                prepare(connection, self.name)
                trouble = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
                if trouble != "ok":
                    raise InvalidFile(f"{self.name} is damaged: {trouble[:200]}")
        except BaseException:
            connection.close()
            raise
        return connection

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
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """All that is read here is of one moment, whoever writes meanwhile."""
        with self._transaction("DEFERRED") as connection:
            yield connection

    def _head(self, connection: sqlite3.Connection) -> Head:
        last = connection.execute("SELECT max(id) FROM releases").fetchone()[0]
        if last is None:
            return Head.start()
        rows = list(_raw(connection, last - 1, last))
        require_last(rows, self.name)
        count, _, time, clocked, observable, _, _, _, belief, chain = rows[-1][0]
        held = connection.execute("SELECT logarithms FROM beliefs").fetchone()
        if held is None or sha256(held[0]).hexdigest() != belief:
            raise InvalidFile(f"{self.name} holds another belief than its last release left: it was altered")
        return Head(count, time, bool(clocked), observable, np.frombuffer(held[0], dtype="<f8"), chain)

    def _written(self, connection: sqlite3.Connection, head: Head, entry: Entry) -> Record:
        belief = entry.belief.astype("<f8").tobytes()
        likelihood = None if entry.likelihood is None else entry.likelihood.astype("<f8").tobytes()
        number, mark = head.count + 1, sha256(belief).hexdigest()
        charges = [str(each) for each in entry.charges]
        report = json.dumps(entry.report, sort_keys=True, allow_nan=False)
        row = (number, entry.key, entry.time, int(entry.clocked), entry.observable, entry.mechanism, report)
        chain = chained(head.chain, row, likelihood, mark, charges)
        connection.execute("INSERT INTO releases VALUES (?,?,?,?,?,?,?,?,?,?)", (*row, likelihood, mark, chain))
        for account, amount in enumerate(entry.charges):
            before = _spent(connection, account, None, 0.0)
            so_far, charged = total([before.amount, amount]), before.releases + (amount > 0)
            values = (number, account, str(amount), str(so_far), int(charged))
            connection.execute("INSERT INTO charges VALUES (?,?,?,?,?)", values)
        connection.execute("INSERT OR REPLACE INTO beliefs VALUES (1, ?)", (belief,))
        return next(_records(connection, number, number))


def _spent(connection: sqlite3.Connection, account: int, every: float | None, at: float) -> Spent:
    """What was charged to an account: its running total, less what that was before the window that ends at a time.

    Times never decrease, so what lies before a window are the first releases: no window is summed charge by charge.
    """
    query = "SELECT total, charged FROM charges WHERE account = ? ORDER BY release DESC LIMIT 1"
    now = _balance(connection.execute(query, (account,)).fetchone())
    if every is None:
        return now
    query = (
        "SELECT total, charged FROM charges WHERE account = ? AND release = "
        "(SELECT id FROM releases WHERE time < ? ORDER BY time DESC, id DESC LIMIT 1)"
    )
    before = _balance(connection.execute(query, (account, at - every)).fetchone())
    return Spent(minus(now.amount, before.amount), now.releases - before.releases)


def _vector(blob: bytes, name: str) -> FloatArray:
    if len(blob) % 8:
        raise InvalidFile(f"{name} holds a likelihood that is cut off: it was altered or is damaged")
    return np.frombuffer(blob, dtype="<f8")


def _balance(row: tuple[str, int] | None) -> Spent:
    return Spent() if row is None else Spent(read_amount(row[0]), int(row[1]))


def _records(connection: sqlite3.Connection, first: int, last: int) -> Iterator[Record]:
    charges: dict[int, list[tuple[Decimal, Decimal]]] = {}
    query = "SELECT release, amount, total FROM charges WHERE release BETWEEN ? AND ? ORDER BY release, account"
    for release, amount, so_far in connection.execute(query, (first, last)):
        charges.setdefault(release, []).append((read_amount(amount), read_amount(so_far)))
    query = (
        "SELECT id, key, time, clocked, observable, mechanism, report "
        "FROM releases WHERE id BETWEEN ? AND ? ORDER BY id"
    )
    for number, key, time, clocked, observable, mechanism, report in connection.execute(query, (first, last)):
        amounts = charges.get(number, [])
        yield Record(
            number=number,
            key=key,
            time=time if clocked else None,
            observable=observable,
            mechanism=mechanism,
            report=json.loads(report),
            charges=tuple(amount for amount, _ in amounts),
            totals=tuple(so_far for _, so_far in amounts),
        )


def _raw(connection: sqlite3.Connection, first: int, last: int) -> Iterator[Raw]:
    """Releases as they stand in the file, each with its charges."""
    rows = connection.execute(
        "SELECT id, key, time, clocked, observable, mechanism, report, likelihood, belief, chain FROM releases "
        "WHERE id BETWEEN ? AND ? ORDER BY id",
        (first, last),
    )
    for row in rows.fetchall():
        query = "SELECT amount, total, charged FROM charges WHERE release = ? ORDER BY account"
        yield row, connection.execute(query, (row[0],)).fetchall()


def _described(held: list[tuple[object, ...]]) -> str:
    limits = [f"{name}: {'no limit' if limit is None else limit}" for name, limit, _, _ in held]
    return "; ".join(limits)


def _check_file(path: Path) -> None:
    """Refuse what is not a database; make a new one that only its owner can read."""
    try:
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            keep_the_name(path.parent)  # or a power cut might take the file, and what is paid, with it
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
