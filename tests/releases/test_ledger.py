"""The ledger: foreign, damaged and altered files are refused; processes that die leave it in order."""

import multiprocessing
import os
import random
import signal
import sqlite3
import stat
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

import privacygames as pg
from privacygames.releases import Budget, Ledger, Memoised, Releases
from privacygames.releases.schema import STEPS, VERSION
from sharing import PROBLEM, STREET, WALK

FIXED = pg.design(PROBLEM, epsilon=0.7)
STILL = pg.Mobility.still(STREET)
TRIGGER = "CREATE TRIGGER t AFTER INSERT ON releases BEGIN DELETE FROM charges; END"


def filled(path: Path, count: int = 4) -> Path:
    with Ledger(path) as ledger:
        budget = [Budget(100.0), Budget(2.5, every=60.0)]
        releases = Releases(PROBLEM, STILL, mechanism=FIXED, budget=budget, ledger=ledger)
        for number in range(count):
            releases.release("cell-0", at=50.0 * number, key=f"k{number}")
    return path


def altered(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_ledger_in_order_is_verified(tmp_path: Path) -> None:
    path = filled(tmp_path / "l.db")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = Ledger.existing(path).verify()
    assert found.releases == 4
    assert found.spent == {"total": "2.8", "every 1 min": "2.8"}
    assert found.fullest == {"total": "2.8", "every 1 min": "1.4"}


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("UPDATE charges SET amount = '0' WHERE release = 2", pg.InvalidFile, "release 2"),
        ("UPDATE charges SET total = '0.7' WHERE release = 4", pg.BrokenPromise, "adds up to 2.8"),
        ("UPDATE charges SET charged = 1 WHERE release = 4", pg.BrokenPromise, "adds up to 2.8 in 4"),
        ("UPDATE releases SET observable = (observable + 1) % 3 WHERE id = 1", pg.InvalidFile, "release 1"),
        ("UPDATE releases SET likelihood = zeroblob(24) WHERE id = 3", pg.InvalidFile, "release 3"),
        ("DELETE FROM charges WHERE release = 3", pg.InvalidFile, "not charged"),
        ("UPDATE accounts SET amount = '1.0' WHERE id = 1", pg.BrokenPromise, "above its 1.0"),
        ("UPDATE accounts SET amount = 'lots' WHERE id = 1", pg.InvalidFile, "altered"),
    ],
)
def test_what_was_altered_is_found(tmp_path: Path, statement: str, error: type[Exception], message: str) -> None:
    path = filled(tmp_path / "l.db")
    altered(path, statement)
    with pytest.raises(error, match=message):
        Ledger(path).verify()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM charges", "release 4"),  # nothing would be spent yet
        ("DELETE FROM charges WHERE release = 3", "release 3 is not charged"),
        ("UPDATE charges SET total = '0.7'", "do not add up"),
        ("UPDATE charges SET total = '-9'", "no number"),
        ("UPDATE charges SET total = 'NaN'", "no number"),
        ("UPDATE charges SET charged = charged - 1 WHERE release = 4", "do not add up"),
        ("UPDATE releases SET time = 0", "release 4"),
        ("UPDATE releases SET observable = -1", "release 4"),
        ("UPDATE releases SET report = CAST(x'7bff' AS TEXT)", "damaged or altered"),
        ("DELETE FROM settings", "does not say of what"),
        ("DELETE FROM releases WHERE id < 4", "release 1 is missing"),
    ],
)
def test_what_was_altered_is_not_gone_on_with(tmp_path: Path, statement: str, message: str) -> None:
    """Where it would matter for what is left, without reading the whole ledger."""
    path = filled(tmp_path / "l.db")
    altered(path, statement)
    budget = [Budget(100.0), Budget(2.5, every=60.0)]
    with pytest.raises((pg.InvalidFile, pg.BrokenPromise), match=message):
        Releases(PROBLEM, STILL, mechanism=FIXED, budget=budget, ledger=path).release("cell-0", at=200.0)


@pytest.mark.parametrize("change", ["observable = -1", "observable = 99", "report = '{}'", "report = '[]'"])
def test_an_altered_answer_is_not_given_again(tmp_path: Path, change: str) -> None:
    path = filled(tmp_path / "l.db")
    altered(path, f"UPDATE releases SET {change} WHERE id = 2")
    budget = [Budget(100.0), Budget(2.5, every=60.0)]
    releases = Releases(PROBLEM, STILL, mechanism=FIXED, budget=budget, ledger=path)
    with pytest.raises(pg.InvalidFile, match="release 2"):
        releases.release("cell-0", at=200.0, key="k1")


@pytest.mark.parametrize("change", ["likelihood = NULL", "likelihood = x'00'", "likelihood = zeroblob(8)"])
def test_altered_likelihoods_are_not_tracked_with(tmp_path: Path, change: str) -> None:
    path = filled(tmp_path / "l.db")
    altered(path, f"UPDATE releases SET {change} WHERE id = 2")
    budget = [Budget(100.0), Budget(2.5, every=60.0)]
    with pytest.raises(pg.InvalidFile, match="likelihood"):
        Releases(PROBLEM, STILL, mechanism=FIXED, budget=budget, ledger=path).observations()


def test_an_altered_belief_is_not_gone_on_with(tmp_path: Path) -> None:
    path = filled(tmp_path / "l.db")
    altered(path, "UPDATE beliefs SET logarithms = zeroblob(24)")
    with pytest.raises(pg.InvalidFile, match="another belief"):
        Ledger(path).head()


def test_a_release_taken_out_is_found(tmp_path: Path) -> None:
    path = filled(tmp_path / "l.db")
    altered(path, "DELETE FROM charges WHERE release = 2")
    altered(path, "DELETE FROM releases WHERE id = 2")
    with pytest.raises(pg.InvalidFile, match="release 2 is missing"):
        Ledger(path).verify()


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda path: path.write_bytes(b"hello, this is no database at all"), "no SQLite database"),
        (lambda path: altered(path, "CREATE TABLE mine (x)"), "another program"),
        (lambda path: path.write_bytes(filled(path.parent / "o").read_bytes()[:700] + b"x" * 3000), "ledger|damaged"),
        (lambda path: altered(filled(path), "CREATE TABLE more (x)"), "other tables"),
        (lambda path: altered(filled(path), TRIGGER), "other tables"),
        (lambda path: altered(filled(path), f"PRAGMA user_version = {VERSION + 1}"), "upgrade"),
        (lambda path: path.mkdir(), "cannot be read"),
    ],
)  # fmt: skip
def test_foreign_and_damaged_files_are_refused(tmp_path: Path, prepare: Callable[[Path], object], message: str) -> None:
    path = tmp_path / "l.db"
    prepare(path)
    with pytest.raises(pg.InvalidFile, match=message):
        Ledger(path)


def test_pages_that_were_overwritten_are_noticed(tmp_path: Path) -> None:
    path = filled(tmp_path / "l.db", count=40)
    content = bytearray(path.read_bytes())
    assert len(content) > 30_000
    content[8192:20480] = os.urandom(12288)
    path.write_bytes(content)
    with pytest.raises(pg.InvalidFile):
        Ledger(path).verify()


def test_an_empty_file_is_a_new_ledger(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    path.touch()
    with pytest.raises(pg.InvalidFile, match="is empty"):  # a ledger that was cut off must not verify
        Ledger.existing(path)
    assert path.stat().st_size == 0
    assert Ledger(path).head().count == 0
    with pytest.raises(pg.UnreadableFile, match="no such ledger"):
        Ledger.existing(tmp_path / "other.db")


def test_a_new_file_is_there_for_good_before_anything_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from privacygames.releases import ledger_store

    kept: list[tuple[Path, int]] = []
    path = tmp_path / "l.db"
    monkeypatch.setattr(ledger_store, "keep_the_name", lambda folder: kept.append((folder, path.stat().st_size)))
    Ledger(path).close()
    Ledger(path).close()
    assert kept == [(tmp_path, 0)]


def test_a_closed_ledger_says_so() -> None:
    releases = Releases(PROBLEM, STILL, mechanism=FIXED)
    releases.ledger.close()
    with pytest.raises(pg.InvalidProblem, match="was closed"):
        releases.release("cell-0")
    assert "closed" in repr(releases)


def test_older_ledgers_are_brought_up_to_date(tmp_path: Path) -> None:
    """A file as version 1 wrote it: the same without the indices."""
    path = filled(tmp_path / "l.db")
    for statement in STEPS[1]:
        altered(path, f"DROP INDEX {statement.split()[2]}")
    altered(path, "PRAGMA user_version = 1")
    with Ledger(path) as ledger:
        assert ledger.verify().releases == 4
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    indices = connection.execute("SELECT count(*) FROM sqlite_master WHERE sql LIKE 'CREATE INDEX%'").fetchone()
    connection.close()
    assert indices == (len(STEPS[1]),)


def test_one_ledger_is_about_one_case(tmp_path: Path) -> None:
    path = filled(tmp_path / "l.db")
    budget = [Budget(100.0), Budget(2.5, every=60.0)]
    other = PROBLEM.with_prior(pg.Prior.uniform(STREET))
    with pytest.raises(pg.InvalidProblem, match="the prior or the mobility"):
        Releases(other, STILL, mechanism=FIXED, budget=budget, ledger=path)
    with pytest.raises(pg.InvalidProblem, match="the prior or the mobility"):
        Releases(PROBLEM, WALK, mechanism=FIXED, budget=budget, ledger=path)
    with pytest.raises(pg.InvalidProblem, match="what is counted"):
        Releases(PROBLEM, STILL, mechanism=FIXED, policy=Memoised(b"x" * 16), budget=budget, ledger=path)
    for wrong in (None, 100.0, [Budget(101.0), Budget(2.5, every=60.0)], [*budget, Budget(5, every=7)]):
        with pytest.raises(pg.InvalidProblem, match="other budgets"):
            Releases(PROBLEM, STILL, mechanism=FIXED, budget=wrong, ledger=path)
    assert Releases(PROBLEM, STILL, epsilon=0.3, budget=budget, ledger=path).ledger.head().count == 4


def test_a_release_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from privacygames.releases import ledger_store

    releases = Releases(PROBLEM, STILL, mechanism=FIXED, ledger=tmp_path / "l.db")
    releases.release("cell-0")

    def broken(*_: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ledger_store, "chained", broken)
        with pytest.raises(KeyboardInterrupt):
            releases.release("cell-0")
    assert releases.ledger.verify().releases == 1
    assert releases.release("cell-0").number == 2


def test_a_ledger_that_moved_on_under_a_long_design_is_chosen_for_anew(tmp_path: Path) -> None:
    """Another process spends the rest while this one designs."""
    path = tmp_path / "l.db"
    rival = Releases(PROBLEM, STILL, mechanism=FIXED, budget=1.0, ledger=path)

    class Slow(pg.policies.Fixed):
        def choose(self, now: object) -> object:  # type: ignore[override]
            if rival.ledger.head().count == 0:
                rival.release("cell-1")
            return super().choose(now)  # type: ignore[arg-type]

    slow = Releases(PROBLEM, STILL, mechanism=FIXED, policy=Slow(), budget=1.0, ledger=path)
    with pytest.raises(pg.BudgetSpent):
        slow.release("cell-0")
    assert slow.ledger.verify().spent == {"total": "0.7"}


KILLS, WORKERS = 12, 3


def share_until_killed(path: Path, log: Path, budget: float) -> None:
    """Release again and again; note each answer only once it was returned."""
    releases = Releases(PROBLEM, STILL, mechanism=FIXED, budget=budget, ledger=path)
    with log.open("a") as file:
        number = 0
        while True:
            key = f"{os.getpid()}-{number}"
            try:
                release = releases.release("cell-0", key=key)
            except pg.BudgetSpent:
                time.sleep(0.005)
                continue
            file.write(f"{key} {release.observable}\n")
            file.flush()
            number += 1


def kill_and_check(folder: Path, kills: int, workers: int, budget: float) -> int:
    """Kill processes at random instants while they release on one ledger; says how many answers were returned."""
    path, chance = folder / "l.db", random.Random(15)
    context = multiprocessing.get_context("fork")

    def start(number: int) -> multiprocessing.process.BaseProcess:
        process = context.Process(target=share_until_killed, args=(path, folder / f"log-{number}", budget), daemon=True)
        process.start()
        return process

    running = [start(number) for number in range(workers)]
    for _ in range(kills):
        time.sleep(chance.uniform(0.0, 0.12))
        number = chance.randrange(workers)
        os.kill(running[number].pid or 0, signal.SIGKILL)
        running[number].join()
        running[number] = start(number)
    time.sleep(0.3)
    for process in running:
        process.kill()
        process.join()
    with Ledger.existing(path) as ledger:
        found, records = ledger.verify(), {record.key: record for record in ledger.records()}
    lines = [line.split() for log in folder.glob("log-*") for line in log.read_text().splitlines()]
    for key, observable in lines:
        record = records[key]
        assert STREET.labels[record.observable] == observable
        assert record.charges == (Decimal("0.7"),)
    assert Decimal(found.spent["total"]) == Decimal("0.7") * len(records) <= Decimal(str(budget))
    assert len({key for key, _ in lines}) == len(lines)
    assert len(records) - len(lines) <= kills + workers  # at most the one each was about to return
    return len(lines)


@pytest.mark.parametrize("budget", [1e6, 14.1])
def test_processes_killed_at_random_instants_leave_the_ledger_in_order(tmp_path: Path, budget: float) -> None:
    returned = kill_and_check(tmp_path, KILLS, WORKERS, budget)
    assert returned > 0 if budget > 100 else returned <= 20


@pytest.mark.slow
def test_two_hundred_kills(tmp_path: Path) -> None:
    assert kill_and_check(tmp_path, 200, 4, 1e6) > 100
