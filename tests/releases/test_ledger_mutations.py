"""Mutations of a ledger: whatever is edited, deleted, doubled, swapped or cut off is refused, by all who look."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import privacygames as pg
from privacygames.releases import Budget, Ledger, Memoised, Releases
from sharing import PROBLEM, STREET, WALK

FIXED = pg.design(PROBLEM, epsilon=0.7)
BUDGET = [Budget(100.0), Budget(2.5, every=60.0)]
OTHER = PROBLEM.with_prior(pg.Prior.uniform(STREET))
REFUSED = (pg.InvalidFile, pg.GuaranteeViolated)


def filled(path: Path, key: bytes = b"0123456789abcdef") -> Path:
    """A ledger with events of every kind."""
    with Ledger(path) as ledger:
        releases = Releases(PROBLEM, WALK, mechanism=FIXED, budget=BUDGET, ledger=ledger)
        for number in range(3):
            releases.release("cell-0", at=50.0 * number, key=f"k{number}")
        memoised: dict[str, Any] = {"policy": Memoised(key), "mechanism": FIXED, "when_changed": "record"}
        again = Releases(OTHER, WALK, budget=BUDGET, ledger=ledger, **memoised)
        again.release("cell-1", at=300.0, key="k3")
        ledger.correct_clock(200.0)
        again.release("cell-2", at=210.0, key="k4")
    return path


def going_on(path: Path) -> None:
    """Everything that somebody does with a ledger who releases."""
    with Ledger.open_existing(path) as ledger:
        releases = Releases(
            OTHER, WALK, mechanism=FIXED, policy=Memoised(b"0123456789abcdef"), budget=BUDGET, ledger=ledger
        )
        releases.release("cell-1", at=1000.0)


def alter(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("ledger") / "l.db")


def cells(path: Path) -> Iterator[tuple[str, int, str, Any]]:
    """Every value in the file."""
    connection = sqlite3.connect(path)
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall():
        names = [column[1] for column in connection.execute(f"PRAGMA table_info({table})")]
        for row in connection.execute(f"SELECT rowid, * FROM {table}").fetchall():
            for name, value in zip(names, row[1:], strict=True):
                yield table, row[0], name, value
    connection.close()


def mutated(value: Any) -> Iterator[Any]:
    """Other values of the same kind, near and far; and none."""
    if isinstance(value, int | float):
        yield from (value + 1, value - 1, 0 if value else 7, 10**9)
    elif isinstance(value, str):
        yield from ("0", value + "0", value[:-1], "9" + value[1:])
    elif isinstance(value, bytes):
        yield from (value[:-8], value[::-1], bytes(len(value)), bytes([value[0] ^ 1]) + value[1:])
    yield None if value is not None else "1"


def verified(path: Path) -> None:
    with Ledger.open_existing(path) as ledger:
        ledger.verify()


def escapes(path: Path) -> list[str]:
    """Who accepts a file, of those who look at it."""
    found = []
    for look in (verified, going_on):
        copy = path.with_name(f"{path.stem} {look.__name__}.db")
        shutil.copy(path, copy)
        try:
            look(copy)
            found.append(look.__name__)
        except REFUSED:
            pass
        copy.unlink()
    return found


@pytest.mark.parametrize("most", [1, pytest.param(10, marks=pytest.mark.slow)])
def test_every_value_of_every_column_is_held_to(original: Path, tmp_path: Path, most: int) -> None:
    """One value changed is found by verify, and by the next who would release."""
    assert escapes(original) == ["verified", "going_on"]  # as it is, it is in order
    changed, escaped = 0, []
    for table, row, name, value in cells(original):
        for other in [each for each in mutated(value) if each != value][:most]:
            path = tmp_path / f"{changed}.db"
            shutil.copy(original, path)
            connection = sqlite3.connect(path)
            try:
                connection.execute(f"UPDATE {table} SET {name} = ? WHERE rowid = ?", (other, row))
                connection.commit()
            except sqlite3.IntegrityError:  # the file itself refuses
                continue
            finally:
                connection.close()
            changed += 1
            if found := escapes(path):
                escaped.append((table, row, name, value, other, found))
            path.unlink()
    assert escaped == []
    assert changed > (300 if most > 1 else 80)


TOTALS = "UPDATE charges SET total = '0.7' WHERE account = 'total' AND event >= 3"
STRUCTURAL: dict[str, list[str]] = {
    "two totals edited alike": [TOTALS],
    "all releases deleted": ["DELETE FROM charges", "DELETE FROM events WHERE kind = 'release'"],
    "all events deleted": ["DELETE FROM charges", "DELETE FROM events"],
    "all events deleted, and the head set back": [
        *("DELETE FROM charges", "DELETE FROM events", "UPDATE head SET events = 0")
    ],
    "the head deleted": ["DELETE FROM head"],
    "everything deleted": [f"DELETE FROM {table}" for table in ("charges", "events", "beliefs", "head")],
    "the last event deleted": [
        "DELETE FROM charges WHERE event = (SELECT max(id) FROM events)",
        "DELETE FROM events WHERE id = (SELECT max(id) FROM events)",
    ],
    "the last two deleted, and the head set back": [
        *("DELETE FROM charges WHERE event > 6", "DELETE FROM events WHERE id > 6"),
        "UPDATE head SET events = 6, chain = (SELECT chain FROM events WHERE id = 6)",
    ],
    "one in the middle deleted": ["DELETE FROM charges WHERE event = 3", "DELETE FROM events WHERE id = 3"],
    "one in the middle deleted, and the others moved up": [
        *("DELETE FROM charges WHERE event = 3", "DELETE FROM events WHERE id = 3"),
        *("UPDATE charges SET event = event - 1 WHERE event > 3", "UPDATE events SET id = id - 1 WHERE id > 3"),
        "UPDATE head SET events = events - 1",
    ],
    "two swapped": [
        *("UPDATE events SET id = 99 WHERE id = 2", "UPDATE events SET id = 2 WHERE id = 3"),
        "UPDATE events SET id = 3 WHERE id = 99",
    ],
    "one doubled at the end": [
        "INSERT INTO events SELECT 99, kind, NULL, time, clocked, observable, mechanism, place, report, likelihood, "
        "belief, chain FROM events WHERE id = 2",
        "UPDATE head SET events = 99",
    ],
    "a charge deleted": ["DELETE FROM charges WHERE event = 3 AND position = 1"],
    "a charge added": ["INSERT INTO charges VALUES (3, 2, 'more', '0', '0')"],
    "a charge of no event": ["INSERT INTO charges VALUES (98, 0, 'total', '0', '0')"],
    "the belief deleted": ["DELETE FROM beliefs"],
}


@pytest.mark.parametrize("name", STRUCTURAL)
def test_rows_deleted_doubled_or_moved_are_found(original: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "l.db"
    shutil.copy(original, path)
    alter(path, *STRUCTURAL[name])
    with pytest.raises(REFUSED):
        going_on(path)
    cut = name == "the last two deleted, and the head set back"
    head = (
        Ledger.open_existing(original).verify().head if cut else None
    )  # as an old copy: only a head kept elsewhere tells
    with pytest.raises(REFUSED):
        Ledger.open_existing(path).verify(head)


@pytest.mark.parametrize("events", [(2,), (2, 3, 4), (5,), tuple(range(1, 9))])
def test_rows_of_another_ledger_do_not_fit(original: Path, tmp_path: Path, events: tuple[int, ...]) -> None:
    """Even of one with the same settings and times."""
    path, other = tmp_path / "l.db", filled(tmp_path / "other.db")
    shutil.copy(original, path)
    numbers = ",".join(map(str, events))
    alter(
        path,
        f"ATTACH '{other}' AS other",
        f"DELETE FROM charges WHERE event IN ({numbers})",
        f"DELETE FROM events WHERE id IN ({numbers})",
        f"INSERT INTO events SELECT * FROM other.events WHERE id IN ({numbers})",
        f"INSERT INTO charges SELECT * FROM other.charges WHERE event IN ({numbers})",
    )
    for look in (Ledger.open_existing(path).verify, lambda: going_on(path)):
        with pytest.raises(REFUSED):
            look()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.35, 0.6, 0.9, 0.999])
def test_a_file_that_was_cut_off_is_refused(original: Path, tmp_path: Path, share: float) -> None:
    path, content = tmp_path / "l.db", original.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(pg.InvalidFile):
        Ledger.open_existing(path).verify()


def test_an_older_copy_is_found_by_who_keeps_the_head(original: Path, tmp_path: Path) -> None:
    path, copy = tmp_path / "l.db", tmp_path / "copy.db"
    shutil.copy(original, path)
    with Ledger.open_existing(path) as ledger:
        before = ledger.verify()
    shutil.copy(path, copy)
    going_on(path)
    with Ledger.open_existing(path) as ledger:
        after = ledger.verify(head=before.head)
        assert after.events == before.events + 1
    with Ledger.open_existing(copy) as ledger:
        assert ledger.verify() == before  # in itself it is in order
        with pytest.raises(pg.InvalidFile, match="older copy"):
            ledger.verify(head=after.head)


def roll_back(path: Path, copy: Path) -> None:
    """Put an older state into the very file that is open."""
    target, source = sqlite3.connect(path), sqlite3.connect(copy)
    source.backup(target)
    target.close()
    source.close()


def replace(path: Path, copy: Path) -> None:
    """Put another file in the place of the one that is open."""
    shutil.copy(copy, path.with_suffix(".new"))
    path.with_suffix(".new").replace(path)


@pytest.mark.parametrize("restore", [roll_back, replace])
def test_an_open_ledger_does_not_go_on_in_an_older_copy(tmp_path: Path, restore: Callable[[Path, Path], None]) -> None:
    path, copy = tmp_path / "l.db", tmp_path / "copy.db"
    releases = Releases(PROBLEM, WALK, mechanism=FIXED, budget=1.4, ledger=path)
    releases.release("cell-0")
    target, source = sqlite3.connect(copy), sqlite3.connect(path)
    source.backup(target)
    target.close()
    source.close()
    releases.release("cell-0")
    restore(path, copy)
    for _ in range(2):  # and not at the second try either
        with pytest.raises(pg.InvalidFile, match=r"older copy|replaced"):
            releases.release("cell-0")


def test_an_edit_under_an_open_ledger_buys_nothing(tmp_path: Path) -> None:
    """Sums are followed from what was verified, and never read."""
    path = tmp_path / "l.db"
    releases = Releases(PROBLEM, WALK, mechanism=FIXED, budget=[Budget(1.4, every=60.0)], ledger=path)
    releases.release("cell-0", at=0.0)
    releases.release("cell-0", at=1.0, key="k")
    releases.preview(at=1.5)
    alter(path, "UPDATE charges SET amount = '0', total = '0'", "UPDATE events SET time = 0 WHERE id = 2")
    with pytest.raises(pg.BudgetExceeded):
        releases.release("cell-0", at=2.0)
    with pytest.raises(pg.InvalidFile, match="altered"):
        releases.release("cell-0", at=2.0, key="k")  # nor is an altered answer given again
    with pytest.raises(REFUSED):
        going_on(path)
