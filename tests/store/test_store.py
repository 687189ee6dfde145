"""A store of many people's ledgers: the rules of a ledger, on both databases."""

import multiprocessing
import sqlite3
import threading
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import privacygames as pg
from privacygames.releases import Budget, Ledger, Memoised
from privacygames.releases.store import VERSION
from sharing import FIXED, KINDS, PROBLEM, SECRETS, STREET, WITH_DELTA, session
from waiting import wait_until

NOW = 1.7e9


@pytest.mark.parametrize("kind", [*KINDS, *WITH_DELTA])
def test_a_person_has_a_ledger_with_the_rules_of_a_file(kind: str, url: str, tmp_path: Path) -> None:
    """The same releases on a file and in a store have the same balances and windows, and end at the same limit."""
    budget = {"budget": 2.2} if kind in WITH_DELTA else {"budget": [Budget(2.2), Budget(1.5, every=60.0)]}
    with pg.LedgerStore(url) as store:
        sessions = [session(kind, ledger=ledger, **budget) for ledger in (tmp_path / "l.db", store.ledger("ada"))]
        for step in range(4):
            outcomes: list[object] = []
            for releases in sessions:
                try:
                    release = releases.release(SECRETS[kind][step % 2], at=NOW + 25 * step)
                    outcomes.append((release.number, release.spent, release.left))
                except pg.BudgetExceeded as error:
                    outcomes.append(str(error))
            assert outcomes[0] == outcomes[1]
        file, stored = (releases.ledger.verify() for releases in sessions)
        assert (file.spent, file.fullest, file.limits) == (stored.spent, stored.fullest, stored.limits)
        assert file.head != stored.head  # each chain starts from its own name
        with pg.LedgerStore(url) as again:
            assert again.ledger("ada").verify(stored.head) == stored
            assert again.verify() == len(again) == 1


def test_a_retry_with_a_key_returns_the_same_output_and_is_charged_once(url: str) -> None:
    with pg.LedgerStore(url) as store:
        first = session("cells", ledger=store.ledger("ada")).release("cell-0", key="a secret key")
        with pg.LedgerStore(url) as another:
            again = session("cells", ledger=another.ledger("ada")).release("cell-1", key="a secret key")
        other = session("cells", ledger=store.ledger("bob")).release("cell-0", key="a secret key")
    assert again.already_made
    assert (again.observable, again.number, again.spent) == (first.observable, 1, first.spent)
    assert not other.already_made
    assert first.key != other.key  # digests, which differ between people
    assert "secret" not in f"{first.key}"


def test_a_key_expires(url: str) -> None:
    with pg.LedgerStore(url, key_seconds=0.0) as store:
        releases = session("cells", ledger=store.ledger("ada"))
        assert [releases.release("cell-0", key="k").number for _ in range(2)] == [1, 2]
        assert (store.forget_keys(), store.forget_keys()) == (1, 0)
        assert store.verify() == 1
    with pg.LedgerStore(url) as store:
        releases = session("cells", ledger=store.ledger("ada"))
        assert [releases.release("cell-0", key="k").number for _ in range(2)] == [3, 3]
        assert store.forget_keys() == 0


def test_memoised_secrets_are_charged_once(url: str) -> None:
    with pg.LedgerStore(url) as store:
        for number, spent in enumerate([0.7, 0.7, 1.4], start=1):
            releases = session("cells", policy=Memoised(b"k" * 32), budget=1.5, ledger=store.ledger("ada"))
            release = releases.release("cell-1" if number == 3 else "cell-0")
            assert (release.number, release.spent, release.source) == (number, spent, "memoised")


def test_releases_of_several_people_are_one_transaction(url: str) -> None:
    with pg.LedgerStore(url) as store:
        sessions = {name: session("cells", budget=1.4, ledger=store.ledger(name)) for name in ("ada", "bob")}
        sessions["bob"].release("cell-0")
        with store.transaction(["ada", "bob"]):
            assert [sessions["ada"].release("cell-0").number for _ in range(2)] == [1, 2]
            with pytest.raises(pg.BudgetExceeded):
                sessions["ada"].release("cell-0")
            assert sessions["bob"].release("cell-0", key="k").spent == 1.4
            with pg.LedgerStore(url) as other:
                assert other.ledger("ada", create=False).head().release_count == 0  # not committed yet
        with pytest.raises(ZeroDivisionError), store.transaction(["ada", "bob"]):
            raise ZeroDivisionError
        assert {name: each.ledger.verify().releases for name, each in sessions.items()} == {"ada": 2, "bob": 2}


def test_a_transaction_that_is_undone_leaves_nothing(url: str) -> None:
    with pg.LedgerStore(url) as store:
        releases = session("cells", budget=1.4, ledger=store.ledger("ada"))
        for _ in range(3):
            with suppress(ZeroDivisionError), store.transaction(["ada"]):
                releases.release("cell-0", key="k")
                raise ZeroDivisionError
        assert releases.ledger.verify().releases == 0
        assert [releases.release("cell-0").number for _ in range(2)] == [1, 2]


def test_only_the_people_of_a_transaction_are_written(url: str) -> None:
    with pg.LedgerStore(url) as store:
        other = session("cells", ledger=store.ledger("bob"))
        with store.transaction(["ada"]), pytest.raises(pg.UnknownLabel):
            other.release("cell-0")
        with pytest.raises(pg.UnknownLabel, match="no such person"):
            store.ledger("nobody", create=False)
        for name in ("", "x" * 201, "a\0b", 3):
            with pytest.raises(pg.InvalidProblem, match="a person's name"):
                store.ledger(name)  # type: ignore[arg-type]
        assert (len(store), list(store), "bob" in store, "ada" in store) == (1, ["bob"], True, False)


def test_threads_on_one_person_never_exceed_the_budget(url: str) -> None:
    """Ten threads with a store each, and room for six releases."""
    with pg.LedgerStore(url) as store:
        session("cells", budget=4.2, ledger=store.ledger("ada"))
    numbers: list[int] = []

    def share() -> None:
        with pg.LedgerStore(url) as own:
            releases = session("cells", budget=4.2, ledger=own.ledger("ada"))
            for _ in range(2):
                try:
                    numbers.append(releases.release("cell-0").number)
                except pg.BudgetExceeded:
                    return

    threads = [threading.Thread(target=share) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with pg.LedgerStore(url) as store:
        assert store.ledger("ada").verify().spent["total"] == "4.2"
    assert sorted(numbers) == list(range(1, 7))


def test_a_forked_process_has_a_connection_of_its_own(url: str) -> None:
    with pg.LedgerStore(url) as store:
        releases = session("cells", ledger=store.ledger("ada"))
        releases.release("cell-0")
        process = multiprocessing.get_context("fork").Process(target=releases.release, args=("cell-0",))
        process.start()
        process.join()
        assert process.exitcode == 0
        assert releases.release("cell-0").number == 3


ALTERATIONS = {
    "a charge": "UPDATE events SET charges = replace(charges, '0.7', '0.1') WHERE id = 2",
    "an output": "UPDATE events SET observable = observable + 1 WHERE id = 2",
    "a missing event": "DELETE FROM events WHERE id = 2",
    "a missing end": "DELETE FROM events WHERE id = 3",
    "the head": "UPDATE people SET events = 2",
    "charges that are none": "UPDATE events SET charges = '{}' WHERE id = 2",
    "a belief": "UPDATE people SET belief = NULL",
}


@pytest.mark.parametrize("alteration", ALTERATIONS)
def test_what_was_altered_is_noticed(url: str, alteration: str) -> None:
    with pg.LedgerStore(url) as store:
        releases = session("cells", ledger=store.ledger("ada"))
        for secret in ("cell-0", "cell-1"):
            releases.release(secret)
        execute(url, ALTERATIONS[alteration])
        with pytest.raises((pg.InvalidFile, pg.GuaranteeViolated)):
            store.ledger("ada").verify()
        with pytest.raises(pg.GuaranteeViolated, match="1 of 1 ledgers"):
            store.verify()


def test_an_index_of_keys_that_was_altered_is_noticed(url: str) -> None:
    with pg.LedgerStore(url) as store:
        releases = session("cells", ledger=store.ledger("ada"))
        for key in ("a", "b"):
            releases.release("cell-0", key=key)
        execute(url, "UPDATE keys SET event = 5 - event")
        with pytest.raises(pg.InvalidFile, match="altered"):
            releases.release("cell-0", key="a")


def test_erasing_a_person_forgets_them_and_leaves_the_others(url: str) -> None:
    with pg.LedgerStore(url) as store:
        for name in ("ada", "bob"):
            session("cells", ledger=store.ledger(name)).release("cell-0", key="k")
        held = session("cells", ledger=store.ledger("ada"))
        store.erase("ada")
        assert list(store) == ["bob"]
        with pytest.raises(pg.UnknownLabel):
            store.erase("ada")
        with pytest.raises(pg.UnknownLabel):
            held.release("cell-0")
        assert session("cells", ledger=store.ledger("ada")).release("cell-0", key="k").number == 1
        with pytest.raises(pg.InvalidFile, match="older copy"):
            held.release("cell-0")  # the ledger it knows is gone
        assert store.verify() == 2


def test_no_byte_of_an_erased_person_is_left_in_sqlite(tmp_path: Path) -> None:
    """Their name, their outputs' report and their chain hashes are in the files before, and in none of them after."""
    path = tmp_path / "store.db"
    with pg.LedgerStore(path) as store:
        for number in range(40):
            session("cells", ledger=store.ledger(f"neighbour-{number}")).release("cell-0")
        releases = session("cells", ledger=store.ledger("Ada of Example"))
        for number in range(30):
            releases.release("cell-0", key=f"k{number}")
        connection = sqlite3.connect(path)
        rows = connection.execute(
            "SELECT events.chain, key FROM events JOIN people ON people.id = person WHERE name LIKE 'Ada%'"
        )
        marks = [each for row in rows for each in row if each] + ["Ada of Example"]
        connection.close()
        assert all(mark in files_of(tmp_path) for mark in marks)
        store.erase("Ada of Example")
        assert not any(mark in files_of(tmp_path) for mark in marks)
        assert store.verify() == 40
    assert not any(mark in files_of(tmp_path) for mark in marks)


def test_what_cannot_be_scrubbed_yet_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privacygames.releases.store.sqlite.SCRUB_SECONDS", 0.0)
    path = tmp_path / "store.db"
    with pg.LedgerStore(path) as store:
        session("cells", ledger=store.ledger("Ada of Example")).release("cell-0")
        reader = sqlite3.connect(path)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM people").fetchone()
        with pytest.raises(pg.StoreUnavailable, match="store scrub"):
            store.erase("Ada of Example")
        assert list(store) == []
        reader.close()
        store.scrub()
    assert "Ada of Example" not in files_of(tmp_path)


def files_of(folder: Path) -> str:
    return "".join(path.read_bytes().decode("latin-1") for path in folder.iterdir())


@pytest.mark.parametrize("other", ["sqlite", "postgresql"])
def test_a_store_moves_to_another_database(
    url: str, other: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    target = str(tmp_path / "other.db")
    if other == "postgresql":
        kind = "postgresql" if url.startswith("postgresql") else "sqlite"
        target = request.getfixturevalue("server").create(f"other_{kind}")
    with pg.LedgerStore(url) as store, pg.LedgerStore(target) as copy:
        for name in ("ada", "bob"):
            releases = session("cells", budget=2.2, ledger=store.ledger(name))
            heads = [releases.release("cell-0", key=key).observable for key in ("a", "b")]
        assert store.copy_to(copy) == 2
        assert store.copy_to(copy) == 2  # again: nothing is to do
        moved = session("cells", budget=2.2, ledger=copy.ledger("bob"))
        assert moved.ledger.verify().head == releases.ledger.verify().head
        again = moved.release("cell-1", key="b")
        assert (again.already_made, again.observable) == (True, heads[1])
        assert moved.release("cell-0").number == 3
        with pytest.raises(pg.BudgetExceeded):
            moved.release("cell-0")
        with pytest.raises(pg.InvalidProblem, match="another ledger"):
            store.copy_to(copy)


def test_a_backup_is_taken_while_others_write(tmp_path: Path) -> None:
    with pg.LedgerStore(tmp_path / "store.db") as store:
        releases = session("cells", ledger=store.ledger("ada"))
        releases.release("cell-0")
        with store.transaction(["ada"]):
            releases.release("cell-0")
            with pg.LedgerStore(tmp_path / "store.db") as other:
                other.backup(tmp_path / "backup.db")
        releases.release("cell-0")
        with pytest.raises(pg.InvalidProblem, match="exists already"):
            store.backup(tmp_path / "backup.db")
    assert (tmp_path / "backup.db").stat().st_mode & 0o777 == 0o600
    with pg.LedgerStore(tmp_path / "backup.db") as backup:
        assert backup.verify() == 1
        assert backup.ledger("ada").verify().releases == 1  # as of the last commit


def test_tables_of_an_older_version_are_migrated_on_request(url: str) -> None:
    with pg.LedgerStore(url) as store:
        session("cells", ledger=store.ledger("ada")).release("cell-0", key="k")
    execute(url, "DROP INDEX keys_by_expiry", "UPDATE store SET version = 1")
    with pytest.raises(pg.InvalidFile, match="privacygames store migrate"):
        pg.LedgerStore(url)
    with pg.LedgerStore(url, migrate=True) as store:
        assert session("cells", ledger=store.ledger("ada")).release("cell-0", key="k").already_made
    execute(url, f"UPDATE store SET version = {VERSION + 1}")
    with pytest.raises(pg.InvalidFile, match="upgrade privacygames"):
        pg.LedgerStore(url, migrate=True)


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    Ledger(tmp_path / "ledger.db").close()
    (tmp_path / "text").write_text("this is no database at all")
    with pytest.raises(pg.InvalidFile, match="another program"):
        pg.LedgerStore(tmp_path / "ledger.db")
    with pytest.raises(pg.InvalidFile, match="not an SQLite database"):
        pg.LedgerStore(tmp_path / "text")
    with pytest.raises(pg.InvalidProblem, match="postgresql://"):
        pg.LedgerStore("mysql://somewhere")
    with pg.LedgerStore(tmp_path / "store.db"):
        pass
    execute(str(tmp_path / "store.db"), "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM keys; END")
    with pytest.raises(pg.InvalidFile, match="other tables"):
        pg.LedgerStore(tmp_path / "store.db")


def test_a_database_that_is_stopped_releases_nothing(server: Any) -> None:
    url = server.create("stopped")
    with pg.LedgerStore(url) as store:
        releases = session("cells", ledger=store.ledger("ada"))
        releases.release("cell-0")
        server.stop("immediate")
        try:
            for _ in range(2):
                with pytest.raises(pg.StoreUnavailable):
                    releases.release("cell-0", key="k")
            with pytest.raises(pg.StoreUnavailable):
                store.ready()
        finally:
            server.start()
        store.ready()
        assert releases.release("cell-0", key="k").number == 2
        assert store.verify() == 1


def test_a_server_that_may_lose_commits_is_refused(server: Any) -> None:
    import psycopg

    url = server.create("unsafe")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET full_page_writes = off")
        connection.execute("SELECT pg_reload_conf()")
    try:
        wait_until(lambda: is_refused(url))  # the server reads its settings again soon
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM RESET full_page_writes")
            connection.execute("SELECT pg_reload_conf()")


def is_refused(url: str) -> bool:
    try:
        pg.LedgerStore(url).close()
    except pg.InvalidProblem as error:
        return "full_page_writes off" in str(error)
    return False


def execute(url: str, *statements: str) -> None:
    """Run statements on the database as somebody else would."""
    if url.startswith("postgresql"):
        import psycopg

        with psycopg.connect(url) as connection:
            connection.execute("SET search_path = privacygames")
            for statement in statements:
                connection.execute(statement)
        return
    other = sqlite3.connect(url)
    for statement in statements:
        other.execute(statement)
    other.commit()
    other.close()


def test_the_amounts_are_those_of_the_mechanism(url: str) -> None:
    with pg.LedgerStore(url) as store:
        releases = pg.Releases(PROBLEM, pg.Mobility.still(STREET), mechanism=FIXED, ledger=store.ledger("ada"))
        releases.release("cell-0")
        assert [record.charges for record in releases.ledger.records()] == [(Decimal("0.7"),)]
