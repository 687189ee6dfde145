"""The store: the ledgers of many people in one database, with one transaction for several people's releases."""

import os
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import time
from typing import Self

from privacygames.errors import GuaranteeViolated, InvalidProblem, PrivacyGamesError, StoreUnavailable, UnknownLabel
from privacygames.releases.ledger import BaseLedger, Event, LedgerRows, initial_chain_hash
from privacygames.releases.store.database import Database, Row
from privacygames.releases.store.postgresql import PostgreSQLDatabase
from privacygames.releases.store.rows import (
    INSERT_EVENT,
    INSERT_KEY,
    UPDATE_PERSON,
    PersonHead,
    StoreRows,
)
from privacygames.releases.store.sqlite import SQLiteDatabase

KEY_SECONDS = 7 * 24 * 3600.0
"""Seconds that a key is kept: a retry comes within minutes, and one after a long outage within days."""

MAX_NAME_LENGTH = 200
"""Characters of a person's name."""

PEOPLE_PER_PAGE = 1000
"""People that are listed by one query."""

INSERT_PERSON = "INSERT INTO people (name, identity, events, chain) VALUES (?, ?, 0, ?)"
PEOPLE_PER_TRANSACTION = 50
"""People whose ledgers are pruned in one transaction, for which their releases wait."""

SELECT_HEADS = (
    "SELECT name, id, identity, events, chain, belief, "
    "coalesce((SELECT max(e.id) FROM events e WHERE e.person = people.id), 0) FROM people WHERE name IN ({})"
)


class LedgerStore:
    """Ledgers of many people in one database: an SQLite file, or PostgreSQL by its URL.

    Each person has a ledger as :class:`Ledger` is one, with the same rules and a hash chain of its own. Any number of
    threads and processes may use one store at once; with PostgreSQL, of machines, too.

    Args:
        url: the path of an SQLite file, created if necessary; or ``postgresql://user@host/database``.
        key_seconds: how long the keys of releases are kept. A retry within that time returns the stored output.
        migrate: whether tables of an older version are brought to the present one.

    >>> city = pg.Grid(3, 1, 3.0, 1.0)
    >>> problem = pg.Problem(pg.Prior.uniform(city))
    >>> with pg.LedgerStore("people.db") as store:
    ...     ledger = store.ledger("ada")
    ...     releases = pg.Releases(problem, pg.Mobility.still(city), epsilon=0.5, budget=1.0, ledger=ledger)
    ...     first = releases.release("cell-1", key="monday")
    ...     again = releases.release("cell-1", key="monday")
    ...     len(store), first.observable == again.observable, again.already_made, again.spent
    (1, True, True, 0.5)
    """

    def __init__(self, url: str | os.PathLike[str], *, key_seconds: float = KEY_SECONDS, migrate: bool = False) -> None:
        self._database = _database(url)
        self.name, self.key_seconds = self._database.name, key_seconds
        self._lock = threading.RLock()
        self._rows: dict[str, StoreRows] = {}
        self._ledgers: dict[str, list[StoredLedger]] = {}
        self._open = False
        try:
            with self._connected():
                self._database.prepare(migrate=migrate)
        except BaseException:
            self._database.close()
            raise

    def close(self) -> None:
        """End the connection."""
        with self._lock:
            self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return int(self._query("SELECT count(*) FROM people")[0][0])

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(self._query("SELECT 1 FROM people WHERE name = ?", (name,)))

    def __iter__(self) -> Iterator[str]:
        last = 0
        while True:
            rows = self._query("SELECT id, name FROM people WHERE id > ? ORDER BY id LIMIT ?", (last, PEOPLE_PER_PAGE))
            yield from (str(name) for _, name in rows)
            if not rows:
                return
            last = int(rows[-1][0])

    def ledger(self, name: str, *, create: bool = True) -> "StoredLedger":
        """The ledger of a person.

        Args:
            name: of the person: 1 to 200 printable characters.
            create: whether a person who is not in the store gets an empty one; otherwise that is an error.

        Raises:
            UnknownLabel: there is no such person.
        """
        if create:
            self.create([name])
        elif self._require_name(name) not in self:
            raise _unknown()
        return StoredLedger(self, name)

    def create(self, names: Iterable[str]) -> None:
        """Give people empty ledgers, except for those who have one."""
        wanted = sorted({self._require_name(name) for name in names})
        with self._connected():
            known = self._known(wanted)
            rows = []
            for name in wanted:
                if name not in known:
                    identity = secrets.token_hex(16)
                    rows.append((name, identity, initial_chain_hash(identity)))
            if rows:
                with self._committing():
                    self._database.write_many(f"{INSERT_PERSON} ON CONFLICT (name) DO NOTHING", rows)

    @contextmanager
    def transaction(self, names: Sequence[str], keys: Iterable[tuple[str, str]] = ()) -> Iterator[None]:
        """One transaction for the releases of several people: all of them are committed when the block ends.

        The outputs of releases inside it must not be used before the block has ended without an exception. A release
        that is refused inside it leaves the others as they are.

        Args:
            names: the people whose ledgers may be written.
            keys: people with the keys of their releases, which are looked up all at once.
        """
        with self._connected():
            if self._open:
                raise InvalidProblem("there is a transaction already")
            with self._committing():
                self._database.lock(sorted(names))
                self._begin(names)
                self._look_up(keys)
                yield
                self._flush()

    def erase(self, name: str) -> None:
        """Delete everything about a person, and remove the bytes from the database's files as far as it can.

        The person's account goes, too: a person of that name who comes back has not spent anything. Backups and other
        copies are beyond this program, and what PostgreSQL keeps is in docs/how-to/store.md.

        Raises:
            UnknownLabel: there is no such person.
        """
        self._require_name(name)
        with self._connected():
            with self._committing():
                self._database.lock([name])
                rows = self._database.rows("SELECT id FROM people WHERE name = ?", (name,))
                if not rows:
                    raise _unknown()
                for table, column in (("keys", "person"), ("events", "person"), ("people", "id")):
                    self._database.rows(f"DELETE FROM {table} WHERE {column} = ?", rows[0])  # noqa: S608
            self._database.scrub()

    def scrub(self) -> None:
        """Remove the bytes of deleted rows from the database's files, as far as it can."""
        with self._connected():
            self._database.scrub()

    def forget_keys(self, now: float | None = None) -> int:
        """Delete keys that have expired, and return how many these were.

        Args:
            now: unix seconds; by default this machine's clock.
        """
        moment = time() if now is None else now
        with self._connected(), self._committing():
            count = int(self._database.rows("SELECT count(*) FROM keys WHERE expires <= ?", (moment,))[0][0])
            self._database.rows("DELETE FROM keys WHERE expires <= ?", (moment,))
            return count

    def prune(self, before: float, progress: Callable[[int], None] = lambda _: None) -> int:
        """Delete everybody's releases before a time, once an event with the balances that they led to is written.

        Nothing that was spent is forgotten: totals, the charges that a window may still hold, and memoised secrets are
        part of that event. The last release of each person stays. So does every ledger that is about a belief, which
        depends on all outputs.

        Args:
            before: unix seconds.
            progress: called with the number of people so far.

        Returns:
            The number of events that were deleted.
        """
        deleted, names = 0, list(self)
        for start in range(0, len(names), PEOPLE_PER_TRANSACTION):
            chunk = names[start : start + PEOPLE_PER_TRANSACTION]
            with self.transaction(chunk):
                for name in chunk:
                    with suppress(UnknownLabel, InvalidProblem):  # erased meanwhile; or about a belief
                        deleted += StoredLedger(self, name).prune(before)
            progress(start + len(chunk))
        if deleted:
            self.scrub()
        return deleted

    def verify(self, progress: Callable[[int], None] = lambda _: None) -> int:
        """Recompute every balance, window and hash chain of everybody.

        Args:
            progress: called with the number of people verified so far.

        Returns:
            The number of people.

        Raises:
            GuaranteeViolated: how many ledgers are not in order, and what is wrong with the first.
        """
        with self._connected():
            self._database.require_intact()
        failures: list[str] = []
        count = 0
        for count, name in enumerate(self, start=1):
            try:
                StoredLedger(self, name).verify()
            except UnknownLabel:
                continue  # erased meanwhile
            except StoreUnavailable:
                raise
            except PrivacyGamesError as error:
                failures.append(str(error))
            progress(count)
        if failures:
            raise GuaranteeViolated(f"{len(failures)} of {count} ledgers are not in order: {failures[0]}")
        return count

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of an SQLite store while it is in use; PostgreSQL has its own ``pg_dump``."""
        with self._connected():
            self._database.backup(Path(path))

    def copy_to(self, other: "LedgerStore", progress: Callable[[int], None] = lambda _: None) -> int:
        """Copy everybody to another store, whichever database each has, and verify what arrived.

        Stop what releases from this store first: releases after a person was copied would be missing. A person who is
        in the other store already must have the same ledger there, which lets an interrupted copy go on.

        Args:
            other: the other store.
            progress: called with the number of people copied so far.

        Returns:
            The number of people.
        """
        count = 0
        for count, name in enumerate(self, start=1):
            with self._reading_people([name]):
                rows = self._rows[name]
                events, head, belief = list(rows.events()), rows.head(), rows.belief()
                keys = self._database.rows(
                    "SELECT k.digest, k.event, k.expires FROM keys k JOIN people p ON p.id = k.person WHERE p.name = ?",
                    (name,),
                )
            StoredLedger(self, name).verify()
            if head is not None and name not in other:
                other._receive(name, head[0], events, belief, keys)
            arrived = StoredLedger(other, name).verify().head
            if head is None or arrived != head[2]:
                raise InvalidProblem(f"person {count} has another ledger in {other.name}: choose an empty store")
            progress(count)
        return count

    def ready(self) -> None:
        """Raise an error unless the database can be reached and holds a store of this version."""
        with self._connected():
            self._database.prepare(migrate=False)

    def _receive(self, name: str, identity: str, events: list[Event], belief: bytes | None, keys: list[Row]) -> None:
        """Insert a person's ledger as another store holds it."""
        with self._connected(), self._committing():
            self._database.rows(INSERT_PERSON, (name, identity, initial_chain_hash(identity)))
            self._begin([name])
            rows = self._rows[name]
            for event in events:
                rows.insert(event)
                rows.set_head(identity, event.number, event.chain_hash)
            if belief is not None:
                rows.set_belief(belief)
            self._flush(with_keys=False)
            number = rows.person_row()[-1]
            self._database.write_many(INSERT_KEY, [(number, *key) for key in keys])

    def _query(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        with self._connected():
            return self._database.rows(sql, values)

    def _known(self, names: Sequence[str]) -> set[str]:
        if not names:
            return set()
        marks = ",".join("?" * len(names))
        return {row[0] for row in self._database.rows(f"SELECT name FROM people WHERE name IN ({marks})", names)}  # noqa: S608

    @contextmanager
    def _connected(self) -> Iterator[None]:
        with self._lock, self._database.translated():
            if not self._open:
                self._database.connect()
            yield

    @contextmanager
    def _committing(self) -> Iterator[None]:
        """A transaction that writes."""
        self._database.begin_writing()
        self._open = True
        try:
            yield
            self._database.commit()
        except BaseException:
            self._database.rollback()
            self._end(committed=False)
            raise
        self._end(committed=True)

    def _end(self, *, committed: bool) -> None:
        ledgers = [ledger for each in self._ledgers.values() for ledger in each]
        self._open, self._rows, self._ledgers = False, {}, {}
        for ledger in ledgers:
            ledger.finish(committed=committed)

    @contextmanager
    def _reading_people(self, names: Sequence[str]) -> Iterator[None]:
        """A transaction that reads these people's ledgers."""
        with self._connected():
            self._database.begin_reading()
            self._open = True
            try:
                self._begin(names)
                yield
            finally:
                self._database.rollback()
                self._end(committed=False)

    def _begin(self, names: Sequence[str]) -> None:
        """Read where these people's ledgers end."""
        now = time()
        marks = ",".join("?" * len(names))
        for name, *columns in self._database.rows(SELECT_HEADS.format(marks), names):
            self._rows[name] = StoreRows(self._database, PersonHead(*columns), now, self.key_seconds)

    def _look_up(self, keys: Iterable[tuple[str, str]]) -> None:
        """Look up the events of several people's keys in one query."""
        wanted: dict[int, dict[str, int | None]] = {}
        now = time()
        for name, key in keys:
            head = self._rows[name].head() if name in self._rows else None
            if head is not None:
                rows = self._rows[name]
                wanted.setdefault(rows.person, {})[rows.stored_key(head[0], key)] = None
        if not wanted:
            return
        digests = [digest for each in wanted.values() for digest in each]
        people, marks = ",".join("?" * len(wanted)), ",".join("?" * len(digests))
        query = f"SELECT person, digest, event FROM keys WHERE person IN ({people}) AND digest IN ({marks})"  # noqa: S608
        for person, digest, event in self._database.rows(f"{query} AND expires > ?", (*wanted, *digests, now)):
            wanted[person][digest] = event
        for rows in self._rows.values():
            rows.know_keys(wanted.get(rows.person, {}))

    def _flush(self, *, with_keys: bool = True) -> None:
        """Send what was written."""
        written = [rows for rows in self._rows.values() if rows.pending]
        if written:
            self._database.write_many(INSERT_EVENT, [row for rows in written for row in rows.event_rows()])
            self._database.write_many(UPDATE_PERSON, [rows.person_row() for rows in written])
            keys = [row for rows in written for row in rows.key_rows()] if with_keys else []
            if keys:
                self._database.write_many(INSERT_KEY, keys)
            for rows in written:
                if rows.delete_to:
                    for table, column in (("keys", "event"), ("events", "id")):
                        statement = f"DELETE FROM {table} WHERE person = ? AND {column} <= ?"  # noqa: S608
                        self._database.rows(statement, (rows.person, rows.delete_to))

    @contextmanager
    def use(self, ledger: "StoredLedger", *, write: bool) -> Iterator[StoreRows]:
        """The rows of a ledger in a transaction: the one that is open, or one of its own."""
        with self._lock:
            if self._open:
                rows = self._rows.get(ledger.person)
                if rows is None:
                    raise _unknown()
                self._ledgers.setdefault(ledger.person, []).append(ledger)
                savepoint = rows.savepoint()
                try:
                    yield rows
                except BaseException:
                    if rows.restore(savepoint):
                        ledger.undo()
                    raise
                return
            opened = self.transaction([ledger.person]) if write else self._reading_people([ledger.person])
            with opened, self.use(ledger, write=write) as rows:
                yield rows

    @staticmethod
    def _require_name(name: str) -> str:
        if not (isinstance(name, str) and 0 < len(name) <= MAX_NAME_LENGTH and name.isprintable()):
            raise InvalidProblem(f"a person's name must be a text of 1 to {MAX_NAME_LENGTH} printable characters")
        return name

    def __repr__(self) -> str:
        return f"LedgerStore({self.name!r})"


class StoredLedger(BaseLedger):
    """The ledger of one person in a store; :meth:`LedgerStore.ledger` makes one.

    >>> with pg.LedgerStore("ledgers.db") as store:
    ...     store.ledger("ada").verify().releases
    0
    """

    def __init__(self, store: LedgerStore, person: str) -> None:
        super().__init__("a ledger of the store")  # not whose: this is part of messages
        self.store, self.person = store, person

    def close(self) -> None:
        """Nothing: the store is closed."""

    def finish(self, *, committed: bool) -> None:
        """Take note that the transaction was committed, or that what was written in it was undone."""
        if committed:
            self._committed()
        elif self._wrote:
            self._rolled_back()
        self._wrote = False

    def undo(self) -> None:
        """Take note that a part of the transaction was undone: the balances are to be read again."""
        self._rolled_back()

    @contextmanager
    def _transaction(self) -> Iterator[LedgerRows]:
        with self.store.use(self, write=True) as rows:
            yield rows

    @contextmanager
    def _reading(self) -> Iterator[LedgerRows]:
        with self.store.use(self, write=False) as rows:
            yield rows

    def __repr__(self) -> str:
        return f"StoredLedger({self.store!r})"


def _database(url: str | os.PathLike[str]) -> Database:
    """The database that a URL or a path names."""
    if isinstance(url, str) and url.startswith(("postgresql://", "postgres://")):
        try:
            import psycopg  # noqa: F401
        except ModuleNotFoundError:
            raise InvalidProblem(
                "a store in PostgreSQL needs psycopg: pip install 'privacygames[postgresql]'"
            ) from None
        return PostgreSQLDatabase(url)
    if isinstance(url, str) and "://" in url:
        if not url.startswith("sqlite:///"):
            raise InvalidProblem("a store is the path of an SQLite file, or postgresql://user@host/database")
        url = url.removeprefix("sqlite:///")
    return SQLiteDatabase(Path(url))


def _unknown() -> UnknownLabel:
    return UnknownLabel("there is no such person in the store")
