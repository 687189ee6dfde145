"""Ledgers of versions 1 and 2: verified by the rules of their version, and rewritten as a hash chain of events."""

import json
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable
from decimal import Decimal
from hashlib import sha256
from typing import Any

from privacygames.errors import GuaranteeViolated, InvalidFile, PrivacyGamesError
from privacygames.releases.decimal_epsilon import NOTHING, minus, read_amount, total
from privacygames.releases.ledger.balances import MEMOISED_CHARGING, AccountTerms, LedgerBalances
from privacygames.releases.ledger.events import Event
from privacygames.releases.ledger.file_rows import FileRows

OldRelease = tuple[tuple[Any, ...], list[tuple[str, str, int]]]
OldAccount = tuple[int, str, str | None, float | None, str]
CHAIN_START = "0" * 64
"""The hash before the first release in versions 1 and 2."""

_TABLES = (
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
)
_INDICES = (
    "CREATE INDEX releases_by_time ON releases (time)",
    "CREATE INDEX releases_by_mechanism ON releases (mechanism)",
)
OLD_TABLES: dict[int, set[str]] = {0: set(), 1: set(_TABLES), 2: {*_TABLES, *_INDICES}}
"""The SQL of every table and index, by version."""


def upgrade(connection: sqlite3.Connection, name: str, identity: str, create: Callable[[], None]) -> None:
    """Verify the tables of an older version, and replace them by equivalent events."""
    about = dict(connection.execute("SELECT name, value FROM settings").fetchall())
    limits = connection.execute("SELECT id, name, amount, every, subject FROM accounts ORDER BY id").fetchall()
    blob = connection.execute("SELECT logarithms FROM beliefs").fetchone()
    rows = _rows(connection)
    try:
        chain_hash = _verify(rows, limits, None if blob is None else blob[0], name)
    except (ValueError, KeyError, TypeError, ArithmeticError) as error:
        if isinstance(error, PrivacyGamesError):
            raise
        raise InvalidFile(f"{name} holds values that a ledger does not: it was altered") from None
    if rows and (not about or not limits):
        raise InvalidFile(f"{name} contains releases but not what they are about: it was altered")
    if rows and about.get("counts") == MEMOISED_CHARGING:
        raise InvalidFile(
            f"{name} holds memoised outputs, charged once for all places together by an earlier version of this "
            "program; it does not record what each place cost. Those releases cannot be undone; allow for them when "
            "you choose the budget of a new ledger"
        )
    for table in ("charges", "releases", "accounts", "settings", "beliefs"):
        connection.execute(f"DROP TABLE {table}")
    create()
    if about:
        terms = [
            AccountTerms(label, limit, every, digest, None, all_distances_one=False)
            for _, label, limit, every, digest in limits
        ]
        report = {"about": about, "accounts": [each.to_dict() for each in terms], "earlier chain": chain_hash}
        state = LedgerBalances(identity, name)
        event = Event(1, "change", report=json.dumps(report, sort_keys=True))
        stored = FileRows(connection, name)
        stored.write(identity, state.chain_hash, event)
        _write(stored, state.add_all(stored.events()), rows)
        if blob is not None:
            connection.execute("INSERT INTO beliefs VALUES (1, ?)", blob)


def _rows(connection: sqlite3.Connection) -> list[OldRelease]:
    """The releases of the file, each with its charges."""
    rows = connection.execute(
        "SELECT id, key, time, clocked, observable, mechanism, report, likelihood, belief, chain FROM releases "
        "ORDER BY id"
    ).fetchall()
    query = "SELECT amount, total, charged FROM charges WHERE release = ? ORDER BY account"
    return [(row, connection.execute(query, (row[0],)).fetchall()) for row in rows]


def _write(stored: FileRows, state: LedgerBalances, rows: list[OldRelease]) -> None:
    """Write every release of an older ledger as an event."""
    for (number, *values, likelihood, belief, _), charges in rows:
        key, time, clocked, observable, mechanism, report = values
        listed = [
            (name, amount, state.total_with(name, read_amount(amount)))
            for name, (amount, _, _) in zip(state.accounts, charges, strict=True)
        ]
        event = Event(
            number=number + 1,
            kind="release",
            key=key,
            time=time,
            clocked=clocked,
            output_index=observable,
            mechanism=mechanism,
            report=report,
            likelihood=likelihood,
            belief=belief,
            charges=tuple(listed),
        )
        stored.write(state.identity, state.chain_hash, event)
        state.add_all(stored.events(after=number))


def _verify(rows: Iterable[OldRelease], limits: list[OldAccount], belief: bytes | None, name: str) -> str:
    """Recompute the hash chain, every balance and every window of all releases, and return the last hash."""
    balances = [_OldBalance(limit) for limit in limits]
    chain_hash, time, mark = CHAIN_START, None, None
    for count, (row, charges) in enumerate(rows, start=1):
        number, _, at, clocked, *_ = row
        if len(charges) != len(balances):
            raise InvalidFile(f"{name}: release {number} is not charged to every account")
        if time is not None and (at < time[0] or clocked != time[1]):
            raise GuaranteeViolated(f"{name}: release {number} is earlier than the one before it")
        mark, chain_hash = row[8], _checked_hash((row, charges), count, chain_hash, name)
        for balance, (amount, stated, charged) in zip(balances, charges, strict=True):
            balance.add(at, read_amount(amount), (read_amount(stated), charged), number)
        time = at, clocked
    if mark is not None and (belief is None or sha256(belief).hexdigest() != mark):
        raise InvalidFile(f"{name}: the stored belief does not match the last release")
    return chain_hash


def _checked_hash(release: OldRelease, number: int, chain_hash: str, name: str) -> str:
    """The hash of a release and all before it, once its number and contents have been checked."""
    row, charges = release
    if row[0] != number:
        raise InvalidFile(f"{name}: release {number} is missing")
    likelihood = None if row[7] is None else sha256(row[7]).hexdigest()
    content = [chain_hash, list(row[:7]), likelihood, row[8], [amount for amount, _, _ in charges]]
    if sha256(json.dumps(content).encode()).hexdigest() != row[9]:
        raise InvalidFile(f"{name}: release {number}, or one before it, was altered after it was written")
    return str(row[9])


class _OldBalance:
    """One account of an older ledger, updated release by release."""

    def __init__(self, limit: OldAccount) -> None:
        _, self.name, most, self.every, _ = limit
        self.most = None if most is None else read_amount(most)
        self.spent, self.held, self.charged = NOTHING, NOTHING, 0
        self._window: deque[tuple[float, Decimal]] = deque()

    def add(self, time: float, amount: Decimal, stated: tuple[Decimal, int], number: int) -> None:
        """Add a charge, and check the stated sums and the limit."""
        self.spent = total([self.spent, amount])
        self.charged += amount > 0
        self.held = total([self.held, amount])
        self._window.append((time, amount))
        while self.every is not None and self._window[0][0] < time - self.every:
            self.held = minus(self.held, self._window.popleft()[1])
        if stated != (self.spent, self.charged):
            raise GuaranteeViolated(
                f"release {number}: the account {self.name!r} states {stated[0]} in {stated[1]} releases, but its "
                f"charges add up to {self.spent} in {self.charged}"
            )
        if self.most is not None and self.held > self.most:
            raise GuaranteeViolated(
                f"release {number}: the account {self.name!r} holds {self.held}, above its {self.most}"
            )
