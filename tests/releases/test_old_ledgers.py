"""Ledgers of versions 1 and 2: verified by the rules of their time, and gone on with as events."""

import json
import sqlite3
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

import privacygames as pg
from privacygames.releases import Budget, Ledger, Releases
from privacygames.releases.ledger.sqlite_file import VERSION
from sharing import PROBLEM, STREET

FIXED = pg.design(PROBLEM, epsilon=0.7)
STILL = pg.Mobility.still(STREET)
BUDGET = [Budget(100.0), Budget(2.5, every=60.0)]

SCHEMA = (
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
INDICES = (
    "CREATE INDEX releases_by_time ON releases (time)",
    "CREATE INDEX releases_by_mechanism ON releases (mechanism)",
)


def old_ledger(path: Path, version: int = 2, counts: str = "releases") -> Path:
    """A ledger as the last version wrote it, with three releases of 0.7."""
    new = Releases(PROBLEM, STILL, mechanism=FIXED, budget=BUDGET)
    for number in range(3):
        new.release("cell-0", at=100.0 * number, key=f"k{number}")
    period, blob = new.ledger.balances().scope_period, np.asarray(new.ledger.head().log_belief).tobytes()
    connection = sqlite3.connect(path)
    for statement in (*SCHEMA, *(INDICES if version == 2 else ())):
        connection.execute(statement)
    connection.executemany("INSERT INTO settings VALUES (?, ?)", {**period.about, "counts": counts}.items())
    rows = [
        (number, each.name, each.limit, each.every, each.distinguishability_digest)
        for number, each in enumerate(period.terms)
    ]
    connection.executemany("INSERT INTO accounts VALUES (?, ?, ?, ?, ?)", rows)
    chain, column = "0" * 64, np.log(FIXED.probabilities[:, 0]).tobytes()
    for record in new.ledger.records():
        mark = sha256(blob).hexdigest()
        report = json.dumps(record.report, sort_keys=True)
        row = [record.number, record.key, record.time, 1, record.output_index, record.mechanism, report]
        amounts = [str(each) for each in record.charges]
        chain = sha256(json.dumps([chain, row, sha256(column).hexdigest(), mark, amounts]).encode()).hexdigest()
        connection.execute("INSERT INTO releases VALUES (?,?,?,?,?,?,?,?,?,?)", (*row, column, mark, chain))
        for account, amount in enumerate(amounts):
            values = (record.number, account, amount, str(record.totals[account]), record.number)
            connection.execute("INSERT INTO charges VALUES (?,?,?,?,?)", values)
    connection.execute("INSERT INTO beliefs VALUES (1, ?)", (blob,))
    connection.execute("PRAGMA application_id = 1346849841")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.commit()
    connection.close()
    return path


def alter(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize("version", [1, 2])
def test_an_older_ledger_is_gone_on_with(tmp_path: Path, version: int) -> None:
    path = old_ledger(tmp_path / "l.db", version)
    with Ledger(path) as ledger:
        found = ledger.verify()
        assert (found.releases, found.events, found.spent["total"]) == (3, 4, "2.1")
        assert found.fullest == {"total": "2.1", "every 1 min": "0.7"}
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    told = json.loads(connection.execute("SELECT report FROM events WHERE id = 1").fetchone()[0])
    assert len(told["earlier chain"]) == 64  # its history is part of the new chain
    connection.close()
    releases = Releases(PROBLEM, STILL, mechanism=FIXED, budget=BUDGET, ledger=path)
    assert releases.release("cell-0", at=999.0, key="k1").already_made
    release = releases.release("cell-0", at=1000.0)
    assert (release.number, release.spent) == (4, 2.8)
    assert Ledger(path).verify().head != found.head


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE charges SET amount = '0' WHERE release = 2",
        "UPDATE charges SET total = '0.7' WHERE release > 1",
        "UPDATE charges SET charged = 1 WHERE release = 3",
        "UPDATE releases SET observable = (observable + 1) % 3 WHERE id = 1",
        "UPDATE releases SET likelihood = zeroblob(24) WHERE id = 3",
        "UPDATE accounts SET amount = '0.1'",
        "UPDATE accounts SET amount = 'lots'",
        "UPDATE beliefs SET logarithms = zeroblob(24)",
        "DELETE FROM charges WHERE release = 3",
        "DELETE FROM releases WHERE id = 1",
        "DELETE FROM settings",
        "CREATE TABLE more (x)",
    ],
)
def test_an_altered_older_ledger_is_refused_and_left_as_it_is(tmp_path: Path, statement: str) -> None:
    path = old_ledger(tmp_path / "l.db")
    alter(path, statement)
    for _ in range(2):
        with pytest.raises((pg.InvalidFile, pg.GuaranteeViolated)):
            Ledger(path)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    connection.close()


def test_memoised_answers_of_an_older_ledger_are_refused(tmp_path: Path) -> None:
    """They were charged once for all places; what each of them cost cannot be told."""
    with pytest.raises(pg.InvalidFile, match="charged once for all places"):
        Ledger(old_ledger(tmp_path / "l.db", counts="places"))


def test_an_older_ledger_that_was_never_used_is_a_new_one(tmp_path: Path) -> None:
    path = old_ledger(tmp_path / "l.db")
    for table in ("charges", "releases", "beliefs", "accounts", "settings"):
        alter(path, f"DELETE FROM {table}")
    assert Ledger(path).verify().events == 0
