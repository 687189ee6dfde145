"""The ledger: foreign, damaged and altered files are refused; processes that die leave it in order."""

import multiprocessing
import os
import random
import sqlite3
import stat
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest

import privacygames as pg
from privacygames.releases import Budget, Ledger, Memoised, Releases
from privacygames.releases.ledger.sqlite_file import VERSION
from sharing import ANSWERS, FIXED, KINDS, PROBLEM, SECRETS, STREET, WALK, WITH_DELTA, session
from waiting import wait_until

STILL = pg.Mobility.still(STREET)
TRIGGER = "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM charges; END"


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
    found = Ledger.open_existing(path).verify()
    assert found.releases == 4
    assert found.spent == {"total": "2.8", "every 1 min": "2.8"}
    assert found.fullest == {"total": "2.8", "every 1 min": "1.4"}


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda path: path.write_bytes(b"hello, this is no database at all"), "not an SQLite database"),
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
        Ledger.open_existing(path)
    assert path.stat().st_size == 0
    assert Ledger(path).head().release_count == 0
    with pytest.raises(pg.UnreadableFile, match="no such ledger"):
        Ledger.open_existing(tmp_path / "other.db")


def test_a_new_file_is_there_for_good_before_anything_is_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from privacygames.releases.ledger import sqlite_file

    kept: list[tuple[Path, int]] = []
    path = tmp_path / "l.db"
    monkeypatch.setattr(sqlite_file, "fsync_directory", lambda folder: kept.append((folder, path.stat().st_size)))
    Ledger(path).close()
    Ledger(path).close()
    assert kept == [(tmp_path, 0)]


def open_and_close(path: Path) -> None:
    Ledger(path).close()


def test_a_ledger_opened_twice_stays_locked(tmp_path: Path) -> None:
    """A second handle in this process leaves the first one's locks: another process that leaves is not the last one.

    Whoever closes a ledger last removes the log of what is not in the file yet. A process that took itself for the last
    removed the log of the others, and what they charged was lost.
    """
    path = tmp_path / "twice.ledger"
    with Ledger(path) as first, Ledger(path) as second:
        log = (tmp_path / "twice.ledger-wal").stat().st_ino
        process = multiprocessing.get_context("spawn").Process(target=open_and_close, args=(path,))
        process.start()
        process.join()
        assert process.exitcode == 0
        assert (tmp_path / "twice.ledger-wal").stat().st_ino == log
        assert first.records() == second.records() == []


def test_a_closed_ledger_says_so() -> None:
    releases = Releases(PROBLEM, STILL, mechanism=FIXED)
    releases.ledger.close()
    with pytest.raises(pg.InvalidProblem, match="was closed"):
        releases.release("cell-0")
    assert "closed" in repr(releases)


def test_one_ledger_is_about_one_case(tmp_path: Path) -> None:
    path = filled(tmp_path / "l.db")
    budget = [Budget(100.0), Budget(2.5, every=60.0)]
    other = PROBLEM.with_prior(pg.Prior.uniform(STREET))
    with pytest.raises(pg.InvalidProblem, match="the prior or the mobility"):
        Releases(other, STILL, mechanism=FIXED, budget=budget, ledger=path)
    with pytest.raises(pg.InvalidProblem, match="the prior or the mobility"):
        Releases(PROBLEM, WALK, mechanism=FIXED, budget=budget, ledger=path)
    with pytest.raises(pg.InvalidProblem, match="what is charged"):
        Releases(PROBLEM, STILL, mechanism=FIXED, policy=Memoised(b"x" * 16), budget=budget, ledger=path)
    for wrong in (None, 100.0, [Budget(101.0), Budget(2.5, every=60.0)], [*budget, Budget(5, every=7)]):
        with pytest.raises(pg.InvalidProblem, match="different budgets"):
            Releases(PROBLEM, STILL, mechanism=FIXED, budget=wrong, ledger=path)
    assert Releases(PROBLEM, STILL, epsilon=0.3, budget=budget, ledger=path).ledger.head().release_count == 4


@pytest.mark.parametrize("kind", [*KINDS, *WITH_DELTA])
def test_a_release_that_fails_leaves_nothing(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from privacygames.releases.ledger import file_rows

    releases, secret = session(kind, ledger=tmp_path / "l.db"), SECRETS[kind][0]
    releases.release(secret)

    def broken(*_: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(file_rows, "write_head", broken)
        with pytest.raises(KeyboardInterrupt):
            releases.release(secret)
    assert releases.ledger.verify().releases == 1
    assert releases.release(secret).number == 2


@pytest.mark.parametrize("kind", [*KINDS, *WITH_DELTA])
def test_a_ledger_that_moved_on_under_a_long_design_is_chosen_for_anew(kind: str, tmp_path: Path) -> None:
    """Another process spends the rest while this one designs."""
    path = tmp_path / "l.db"
    rival = session(kind, budget=1.0, ledger=path)

    class Slow(pg.policies.Fixed):
        def next_epsilon(self, *balances: object) -> Decimal | None:
            if rival.ledger.head().release_count == 0:
                rival.release(SECRETS[kind][1])
            return super().next_epsilon(*balances)  # type: ignore[arg-type]

    slow = session(kind, policy=Slow(), budget=1.0, ledger=path)
    with pytest.raises(pg.BudgetExceeded):
        slow.release(SECRETS[kind][0])
    assert slow.ledger.verify().spent["total"] == "0.7"


def in_child(target: Callable[..., object], *arguments: object) -> int | None:
    """Run a function in another process, and give its exit status."""
    process = multiprocessing.get_context("fork").Process(target=target, args=arguments)
    process.start()
    process.join()
    return process.exitcode


def die(*_: object, **__: object) -> None:
    os._exit(9)


def release_and_die(kind: str, path: Path, module: str, name: str) -> None:
    """Die where a function is called for the first time."""
    with pytest.MonkeyPatch.context() as patch:
        releases = session(kind, budget=1.4, ledger=path)
        patch.setattr(f"privacygames.releases.{module}.{name}", die)
        releases.release(SECRETS[kind][1], key="k")


@pytest.mark.parametrize(
    ("kind", "module", "name", "paid"),
    [
        ("cells", "session", "draw_output", False),  # before the draw
        ("cells", "ledger.file_rows", "write_head", False),  # drawn and written, but not committed
        ("cells", "ledger_session", "release_from_record", True),  # committed, but not returned
        ("cells with a delta", "session", "draw_output", False),
        ("cells with a delta", "ledger.file_rows", "write_head", False),
        ("points with a delta", "ledger_session", "release_from_record", True),
        ("points", "point_session", "draw_point_output", False),
        ("points", "ledger.file_rows", "write_head", False),
        ("points", "ledger_session", "release_from_record", True),
    ],
)
def test_a_process_that_dies_has_paid_or_released_nothing(
    tmp_path: Path, kind: str, module: str, name: str, paid: bool
) -> None:
    """What anybody could have seen is on the disk, and asking again for it with its key is free."""
    path = tmp_path / "l.db"
    session(kind, budget=1.4, ledger=path).ledger.close()
    assert in_child(release_and_die, kind, path, module, name) == 9
    with Ledger.open_existing(path) as ledger:
        assert ledger.verify().releases == int(paid)
    releases = session(kind, budget=1.4, ledger=path)
    assert releases.release(SECRETS[kind][1], key="k").already_made == paid
    assert releases.ledger.verify().spent["total"] == "0.7"


KILLS, WORKERS = 12, 3


def share_until_killed(kind: str, path: Path, log: Path, budget: float) -> None:
    """Release again and again until the budget is spent; note each answer only once it was returned."""
    releases = session(kind, budget=budget, ledger=path)
    with log.open("a") as file:
        number = 0
        while True:
            key = f"{os.getpid()}-{number}"
            try:
                release = releases.release(SECRETS[kind][0], key=key)
            except pg.BudgetExceeded:
                return
            file.write(f"{key} {release.observable}\n")
            file.flush()
            number += 1


def kill_and_check(kind: str, folder: Path, kills: int, workers: int, budget: float) -> int:
    """Kill processes at random instants while they release on one ledger; says how many answers were returned."""
    path, chance = folder / "l.db", random.Random(15)
    context = multiprocessing.get_context("fork")

    def start(number: int) -> multiprocessing.process.BaseProcess:
        arguments = (kind, path, folder / f"log-{number}", budget)
        process = context.Process(target=share_until_killed, args=arguments, daemon=True)
        process.start()
        return process

    def returned(number: int) -> int:
        log = folder / f"log-{number}"
        return log.stat().st_size if log.exists() else 0

    def answered(number: int, before: int) -> bool:
        return returned(number) > before or not running[number].is_alive()

    running = [start(number) for number in range(workers)]
    for _ in range(kills):
        number = chance.randrange(workers)
        wait_until(partial(answered, number, returned(number)))  # or the budget is spent
        for _ in range(chance.randrange(100_000)):  # the next answer is somewhere on its way
            pass
        running[number].kill()
        running[number].join()
        running[number] = start(number)
    for process in running:
        process.kill()
        process.join()
    with Ledger.open_existing(path) as ledger:
        found, records = ledger.verify(), {record.key: record for record in ledger.records()}
    lines = [line.split() for log in folder.glob("log-*") for line in log.read_text().splitlines()]
    for key, observable in lines:
        record = records[key]
        assert str(ANSWERS[kind][record.output_index]) == observable
        assert record.charges[0] == Decimal("0.7")
    assert Decimal(found.spent["total"]) == Decimal("0.7") * len(records)
    for name, limit in found.limits.items():
        charge = next(iter(records.values())).charges[list(found.limits).index(name)]
        assert Decimal(found.spent[name]) == charge * len(records)
        assert limit is None or Decimal(found.spent[name]) <= Decimal(limit)
    assert len({key for key, _ in lines}) == len(lines)
    assert len(records) - len(lines) <= kills + workers  # at most the one each was about to return
    return len(lines)


@pytest.mark.parametrize("kind", [*KINDS, *WITH_DELTA])
@pytest.mark.parametrize("budget", [1e6, 14.1])
def test_processes_killed_at_random_instants_leave_the_ledger_in_order(
    tmp_path: Path, budget: float, kind: str
) -> None:
    returned = kill_and_check(kind, tmp_path, KILLS, WORKERS, budget)
    assert returned > 0 if budget > 100 else returned <= 20


@pytest.mark.slow
def test_two_hundred_kills(tmp_path: Path) -> None:
    assert kill_and_check("cells", tmp_path, 200, 4, 1e6) > 100
