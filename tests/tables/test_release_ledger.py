"""The ledger of a table's releases: nothing is seen before it is charged, nothing is charged twice, nothing is lost."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import privacygames as pg
from privacygames.tables import ANY_PAIR, ReleaseKey, ReleaseLedger, Rule, apply, apply_files
from privacygames.tables.file_release import FileJob

AGES = pg.Numbers(range(20, 30), unit="years")
AGE = pg.baselines.geometric(pg.Problem(pg.Prior.uniform(AGES)), epsilon=0.25)
OTHER_AGE = pg.baselines.geometric(pg.Problem(pg.Prior.uniform(AGES)), epsilon=0.5)
ILLS = pg.Categories(["asthma", "flu", "none"])
ILL = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(ILLS)), epsilon=1.0)
YEARS, ANY_AGES = AGE.bounds.epsilon or 0.0, 2.25  # nine years apart
SECRET = bytes(range(32))


def frame(rows: int = 40, shift: int = 0) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "id": range(rows),
            "who": [f"p{i % 10}" for i in range(rows)],
            "age": [20 + (i + shift) % 10 for i in range(rows)],
            "ill": [ILLS.labels[i % 3] for i in range(rows)],
        }
    )


def charged(ledger: ReleaseLedger) -> dict[str, float]:
    return {name: round(value, 6) for name, value in ledger.state().spent.items()}


def test_releases_add_up_by_unit_and_between_any_two_secrets() -> None:
    ledger = ReleaseLedger()
    _, first = apply(frame(), {"age": AGE}, user="who", ledger=ledger)
    assert charged(ledger) == {ANY_PAIR: round(4 * ANY_AGES, 6), "per year": round(4 * YEARS, 6)}  # four rows each
    _, second = apply(frame(), {"age": AGE, "ill": ILL}, user="who", ledger=ledger)
    assert charged(ledger) == {
        ANY_PAIR: round(8 * ANY_AGES + 4 * 1.0, 6),
        "per year": round(8 * YEARS, 6),
        **{name: 4.0 for name in charged(ledger) if name not in (ANY_PAIR, "per year")},
    }
    assert first.charge is not None
    assert second.charge is not None
    assert second.charge.spent["per year"] == pytest.approx(2 * first.charge.amounts["per year"])
    told = second.to_dict()["ledger"]
    assert set(told) == {"charged", "spent", "limits", "chain"}
    assert [len(entry["rules"]) for entry in ledger.entries()] == [1, 2]


def test_without_people_a_row_is_charged_and_the_two_do_not_mix() -> None:
    ledger = ReleaseLedger()
    apply(frame(), {"age": AGE}, ledger=ledger)
    assert charged(ledger)["per year"] == round(YEARS, 6)
    with pytest.raises(pg.InvalidProblem, match=r"counts what a row is charged, .* for a person \(column 'who'\)"):
        apply(frame(), {"age": AGE}, user="who", ledger=ledger)
    assert ledger.state().releases == 1


def test_the_same_release_is_charged_once_and_any_other_again() -> None:
    ledger = ReleaseLedger()

    def spent(data: pd.DataFrame, rules: dict[Any, Any], **options: Any) -> int:
        before = ledger.state().releases
        given: dict[str, Any] = {"key": ReleaseKey(SECRET), "key_columns": "id", "ledger": ledger} | options
        apply(data, rules, **given)
        return ledger.state().releases - before

    assert spent(frame(), {"age": AGE}) == 1
    assert spent(frame(), {"age": AGE}) == 0
    assert spent(frame().sample(frac=1, random_state=0), {"age": AGE}) == 0  # another order
    assert spent(frame(), {"age": Rule(mechanism=AGE, into="x", original="drop")}) == 0  # the same answers
    assert spent(frame(), {"age": AGE, "ill": ILL}) == 1  # the illness alone
    assert spent(frame(), {"age": OTHER_AGE}) == 1
    assert spent(frame(), {"age": AGE}, key_columns=["id", "who"]) == 1
    assert spent(frame(shift=1), {"age": AGE}) == 1  # the same rows with other secrets
    assert spent(frame(rows=39), {"age": AGE}) == 1
    assert spent(frame(), {"age": AGE}, key=ReleaseKey()) == 1
    assert spent(frame(), {"age": AGE}, key=None) == 1
    assert spent(frame(), {"age": AGE}, key=None, key_columns=None) == 1


def test_a_budget_is_never_exceeded(tmp_path: Path) -> None:
    path = tmp_path / "t.ledger"
    ledger = ReleaseLedger.create(path, budget={"per year": 2 * YEARS})
    for _ in range(2):
        apply(frame(), {"age": AGE}, ledger=path)
    for table in (frame(), frame(0)):
        with pytest.raises(pg.BudgetExceeded, match="there is no room for it"):
            apply(table, {"age": AGE}, ledger=path)
    frame().to_csv(tmp_path / "in.csv", index=False)
    with pytest.raises(pg.BudgetExceeded):
        apply_files(tmp_path / "in.csv", tmp_path / "out.csv", {"age": AGE}, ledger=path)
    options: dict[str, Any] = {"key": ReleaseKey(), "key_columns": "id"}
    with pytest.raises(pg.BudgetExceeded):
        apply_files(tmp_path / "in.csv", tmp_path / "out.csv", {"age": AGE}, ledger=path, **options)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.csv", "t.ledger"]
    assert ledger.verify().spent["per year"] == pytest.approx(2 * YEARS)
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(pg.InvalidProblem, match="exists already"):
        ReleaseLedger.create(path)


def test_a_budget_limits_every_rule_or_says_so() -> None:
    with pytest.raises(pg.InvalidProblem, match="nothing would limit it"):
        apply(frame(), {"age": AGE}, ledger=ReleaseLedger(budget={"years": 9.0}))  # it is "per year"
    with pytest.raises(pg.BudgetExceeded, match="any two secrets"):
        apply(frame(), {"age": AGE}, ledger=ReleaseLedger(budget=1.0))
    apply(frame(), {"age": AGE}, ledger=ReleaseLedger(budget=2.26))
    for wrong in (0, -1.0, float("inf"), float("nan"), {"": 1.0}, {"km": "2"}, "2", True):
        with pytest.raises(pg.InvalidProblem, match="budget must be"):
            ReleaseLedger(budget=wrong)  # type: ignore[arg-type]
    with pytest.raises(pg.InvalidProblem, match="must be a ReleaseLedger"):
        apply(frame(), {"age": AGE}, ledger=5)  # type: ignore[arg-type]


def test_what_promises_nothing_fits_no_budget() -> None:
    weights = np.diag(np.full(10, 2**62))
    exact = pg.Mechanism.from_weights(pg.Problem(pg.Prior.uniform(AGES)), weights)
    ledger = ReleaseLedger()
    apply(frame(), {"age": exact}, ledger=ledger)
    assert ledger.state().spent[ANY_PAIR] == float("inf")
    with pytest.raises(pg.BudgetExceeded, match="costs inf"):
        apply(frame(), {"age": exact}, ledger=ReleaseLedger(budget=1e9))


def test_a_ledger_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(pg.UnreadableFile, match="there is no such ledger"):
        apply(frame(), {"age": AGE}, ledger=tmp_path / "none.ledger")
    (tmp_path / "other").write_text("privacygames release key 2\n")
    with pytest.raises(pg.InvalidFile, match="not a ledger of table releases"):
        ReleaseLedger(tmp_path / "other")
    assert not (tmp_path / "none.ledger").exists()
    for wrong in (ReleaseLedger, ReleaseLedger.create):
        with pytest.raises(pg.InvalidProblem, match="give its path"):
            wrong(5)  # type: ignore[arg-type]
    with pytest.raises(pg.InvalidProblem, match="a ledger's file has its budget"):
        ReleaseLedger(tmp_path / "other", budget=3.0)


def crash(*_: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("key", [ReleaseKey(SECRET), None], ids=["key", "no key"])
def test_a_crash_between_charge_and_output_charges_once(
    tmp_path: Path, key: ReleaseKey | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame().to_csv(tmp_path / "in.csv", index=False)
    ledger = ReleaseLedger.create(tmp_path / "t.ledger", budget={"per year": YEARS})
    work = tmp_path / "in.csv", tmp_path / "out.csv", {"age": AGE}
    options: dict[str, Any] = {"key": key, "key_columns": "id", "ledger": ledger}
    with monkeypatch.context() as patch:
        patch.setattr(FileJob, "publish", crash)
        with pytest.raises(KeyboardInterrupt):
            apply_files(*work, **options)
    assert ledger.state().releases == 1  # charged before anything could be seen
    assert not (tmp_path / "out.csv").exists()
    apply_files(*work, **options)
    assert ledger.state().releases == 1
    assert (tmp_path / "out.csv").exists()


def test_nothing_is_returned_that_could_not_be_charged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = ReleaseLedger.create(tmp_path / "t.ledger")
    frame().to_csv(tmp_path / "in.csv", index=False)

    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    before = (tmp_path / "t.ledger").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(OSError, match="No space"):
            apply(frame(), {"age": AGE}, ledger=ledger)
    assert (tmp_path / "t.ledger").read_bytes() == before
    with (tmp_path / "t.ledger").open("ab") as file:
        file.write(b'{"time": "2026", "rules": [{"rel')  # what a crash leaves of a charge nobody relied on
    assert ledger.state().releases == 0
    apply(frame(), {"age": AGE}, ledger=ledger)
    assert ledger.verify().releases == 1


def test_no_secret_is_in_a_ledger(tmp_path: Path) -> None:
    key, path = ReleaseKey.create(tmp_path / "k.key"), tmp_path / "t.ledger"
    data = frame().assign(who="Xanthippe", ill="asthma")
    ledger = ReleaseLedger.create(path)
    made, _ = apply(data, {"ill": ILL}, key=key, key_columns="id", user="who", ledger=ledger)
    text = path.read_text() + repr(ledger) + repr(key)
    for secret in ("asthma", "flu", "Xanthippe", (tmp_path / "k.key").read_text().splitlines()[1], key.check_value()):
        assert secret not in text
    assert len(made) == 40


FILLED: list[bytes] = []


def filled(folder: Path) -> bytes:
    if not FILLED:
        ledger = ReleaseLedger.create(folder / "filled.ledger", budget={ANY_PAIR: 90.0, "per year": 5.0})
        for rules in ({"age": AGE}, {"ill": ILL}, {"age": OTHER_AGE}):
            apply(frame(), rules, ledger=ledger)
        FILLED.append((folder / "filled.ledger").read_bytes())
    return FILLED[0]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_altered_byte_goes_unnoticed(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(filled(tmp_path))
    path = tmp_path / "altered.ledger"
    path.write_bytes(content)
    before = ReleaseLedger(path).state()
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] = data.draw(st.integers(0, 255).filter(lambda byte: byte != content[at]))
    path.write_bytes(content)
    try:
        after = ReleaseLedger(path).state()
    except pg.InvalidFile:
        return
    assert after == before  # a blank between two values, say


LINES: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "removed": lambda lines: [*lines[:2], *lines[3:]],
    "swapped": lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]],
    "repeated": lambda lines: [*lines[:3], *lines[2:]],
    "budget raised": lambda lines: [lines[0], lines[1].replace(b"90.0", b"99.0"), *lines[2:]],
    "amount lowered": lambda lines: [line.replace(b'"per year": 0.', b'"per year": 0.0') for line in lines],
    "no budget": lambda lines: lines[:1],
    "nested": lambda lines: [*lines, b"[" * 100_000 + b"\n"],
    "no text": lambda lines: [*lines, b"\xff\xfe\n"],
}


@pytest.mark.parametrize("change", LINES)
def test_altered_entries_are_refused(tmp_path: Path, change: str) -> None:
    path = tmp_path / "altered.ledger"
    path.write_bytes(b"".join(LINES[change](filled(tmp_path).splitlines(keepends=True))))
    with pytest.raises(pg.InvalidFile):
        ReleaseLedger(path)


def test_a_last_entry_without_its_line_break_counts(tmp_path: Path) -> None:
    path = tmp_path / "t.ledger"
    path.write_bytes(filled(tmp_path)[:-1])
    before = ReleaseLedger(path).verify()
    assert before.releases == 3
    _, manifest = apply(frame(), {"ill": ILL}, ledger=path)
    assert manifest.charge is not None
    assert path.read_bytes().startswith(filled(tmp_path))
    assert ReleaseLedger(path).verify(before.head).releases == 4


@pytest.mark.parametrize("ending", [b"x", b"\x00", b" {", b"}"])
def test_an_entry_with_something_behind_it_is_refused(tmp_path: Path, ending: bytes) -> None:
    path = tmp_path / "t.ledger"
    path.write_bytes(filled(tmp_path)[:-1] + ending)
    with pytest.raises(pg.InvalidFile, match="altered"):
        ReleaseLedger(path)


def test_a_head_tells_whether_entries_were_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "t.ledger"
    ReleaseLedger.create(path, budget=90.0)
    empty = ReleaseLedger(path).verify()
    _, manifest = apply(frame(), {"age": AGE}, ledger=path)
    assert manifest.charge is not None
    assert ReleaseLedger(path).verify(empty.head).head == manifest.charge.chain
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    assert ReleaseLedger(path).verify().head == empty.head  # in order in itself
    with pytest.raises(pg.InvalidFile, match="does not have the head"):
        ReleaseLedger(path).verify(manifest.charge.chain)
    path.write_bytes(whole)
    ReleaseLedger(path).verify(manifest.charge.chain)


def test_a_manifest_says_whether_entries_were_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "t.ledger"
    ReleaseLedger.create(path)
    _, manifest = apply(frame(), {"age": AGE}, ledger=path)
    assert manifest.charge is not None
    last = json.loads(path.read_text().splitlines()[-1])
    assert last["chain"] == manifest.charge.chain


SPEND = """
import sys
from privacygames import BudgetExceeded
from privacygames.tables import ReleaseLedger
from privacygames.tables.release_ledger import RuleCharge
ledger, done = ReleaseLedger(sys.argv[1]), 0
for turn in range(20):
    try:
        ledger.charge([RuleCharge(f"{sys.argv[2]}-{turn}", "age", "m", {"per year": 0.1})], "a row")
        done += 1
    except BudgetExceeded:
        pass
print(done)
"""


def test_processes_that_charge_at_once_do_not_overspend(tmp_path: Path) -> None:
    path = tmp_path / "t.ledger"
    ReleaseLedger.create(path, budget={"per year": 3.0})
    running = [
        subprocess.Popen([sys.executable, "-c", SPEND, str(path), str(number)], stdout=subprocess.PIPE, text=True)
        for number in range(3)
    ]
    assert sum(int(each.communicate()[0]) for each in running) == 30
    found = ReleaseLedger(path).verify()
    assert (found.releases, found.spent["per year"]) == (30, 3.0)  # thirty tenths are three
