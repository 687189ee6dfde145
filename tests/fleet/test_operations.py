"""Who is in a fleet: nobody is lost, whoever is removed is gone, and no crash leaves anything half-done."""

import os
import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privacygames as pg
from fleets import GRID, payloads_in, people
from privacygames.fleet import Fleet, add, compact, remove, update
from privacygames.fleet import design as design_fleet
from privacygames.fleet.person_record import name_hash
from privacygames.jobs import SerialExecutor


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet") / "people"
    design_fleet(people(5), out=folder, epsilon=0.8, default="pooled", jobs=1)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "fleet"))


def content_of(folder: Path) -> bytes:
    """Every byte of every file, names included."""
    return b"".join(path.name.encode() + path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


def new(*names: str) -> dict[str, pg.Prior]:
    """People whom the fleet does not know."""
    rng = np.random.default_rng(len(names))
    return {name: pg.Prior.from_counts(GRID, rng.integers(1, 9, 12)) for name in names}


def test_designing_for_fewer_loses_nobody(folder: Path) -> None:
    before = content_of(folder)
    one = {"user-0": people(5)["user-0"]}
    with pytest.raises(pg.InvalidProblem, match=r"4 of the 5 people .* would be lost: use fleet\.add .* fleet\.remove"):
        design_fleet(one, out=folder, epsilon=0.8, jobs=1)
    with pytest.raises(pg.InvalidProblem, match="5 of the 5 people"):
        design_fleet(new("ann"), out=folder, epsilon=0.8, default="pooled", jobs=1)
    assert content_of(folder) == before
    assert sorted(Fleet(folder, unknown="default")) == sorted(people(5))


def test_the_same_design_again_changes_nothing(folder: Path) -> None:
    before, opened = content_of(folder), Fleet(folder)
    assert len(design_fleet(people(5), out=folder, epsilon=0.8, default="pooled", jobs=1)) == 5
    assert content_of(folder) == before
    assert opened.sample("user-1", "cell-2") in GRID.labels


def test_people_are_added_and_nobody_else_changes(folder: Path) -> None:
    before = payloads_in(folder)
    fleet = add(folder, new("ann", "bob"), jobs=1)
    assert len(fleet) == 7
    assert fleet["ann"].problem.prior == new("ann", "bob")["ann"]
    after = payloads_in(folder)
    assert {hashed: after[hashed] for hashed in before} == before
    assert len(add(fleet, new("ann", "bob"), jobs=1)) == 7  # twice is once
    assert payloads_in(folder) == after
    with pytest.raises(pg.InvalidProblem, match=r"1 of 2 people are in the fleet already, with another prior"):
        add(folder, {"ann": pg.Prior.uniform(GRID), "cy": pg.Prior.uniform(GRID)}, jobs=1)
    assert payloads_in(folder) == after
    assert fleet.verify() == 7


def test_people_are_updated_and_nobody_else_changes(folder: Path) -> None:
    before = payloads_in(folder)
    fleet = update(folder, {"user-1": pg.Prior.uniform(GRID)}, jobs=1)
    assert fleet["user-1"].problem.prior == pg.Prior.uniform(GRID)
    after = payloads_in(folder)
    assert {hashed for hashed in before if before[hashed] != after[hashed]} == {name_hash("user-1")}
    with pytest.raises(pg.UnknownLabel, match=r"1 of 2 people are not in this fleet: use fleet\.add") as raised:
        update(folder, {"user-1": pg.Prior.uniform(GRID), "somebody": pg.Prior.uniform(GRID)}, jobs=1)
    assert "somebody" not in str(raised.value)
    with pytest.raises(pg.UnknownLabel):  # the default's own name is nobody's
        remove(folder, [""])
    assert payloads_in(folder) == after


@pytest.mark.parametrize("verb", [add, update])
def test_people_must_fit_the_fleet(folder: Path, verb: Callable[..., Fleet]) -> None:
    other = pg.Grid(2, 2)
    with pytest.raises(pg.InvalidProblem, match="share one space"):
        verb(folder, {"user-1": pg.Prior.uniform(other)}, jobs=1)
    with pytest.raises(pg.InvalidProblem, match="differ in the prior only"):
        verb(folder, {"user-1": pg.Problem(pg.Prior.uniform(GRID), cost="euclidean")}, jobs=1)
    with pytest.raises(pg.InvalidProblem, match="from visits, or from a mapping"):
        verb(folder, {}, jobs=1)
    with pytest.raises(pg.UnreadableFile):
        verb(folder / "nowhere", people(1), jobs=1)
    (folder / "people.idx").unlink()
    with pytest.raises(pg.InvalidProblem, match="no finished fleet"):
        verb(folder, people(1), jobs=1)


def test_visits_are_added_over_the_fleets_own_grid(tmp_path: Path) -> None:
    grid = pg.Grid.over((13.0, 52.0, 13.4, 52.2), columns=3, rows=2)
    first = pg.traces.VisitCounts({"ann": {0: 30, 4: 20}})
    design_fleet(first, grid=grid, out=tmp_path / "f", epsilon=0.5, jobs=1)
    second = pg.traces.VisitCounts({"bob": {1: 25, 5: 5}, "new": {2: 1}})
    with pytest.raises(pg.InvalidProblem, match="1 of 2 people have fewer than 10 visits"):
        add(tmp_path / "f", second, min_visits=10, jobs=1)
    fleet = add(tmp_path / "f", second, min_visits=10, little_data="pooled", jobs=1)
    assert fleet.prior_source("bob") == {"visits": 30, "prior_from": "own"}
    assert fleet.prior_source("new") == {"visits": 1, "prior_from": "pooled"}


def test_whoever_is_removed_is_gone_from_the_bytes(folder: Path) -> None:
    update(folder, {"user-1": pg.Prior.uniform(GRID)}, jobs=1)  # an earlier record of theirs is in the file, too
    gone = [fleet["user-1"].problem.prior.probabilities.tobytes() for fleet in (Fleet(folder),)]
    gone += [people(5)["user-1"].probabilities[people(5)["user-1"].probabilities > 0].tobytes()]
    gone += [b'"user-1"', name_hash("user-1")]
    assert all(each in content_of(folder) for each in gone)
    fleet = remove(folder, ["user-1"], jobs=1)
    assert not any(each in content_of(folder) for each in gone)
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "people.dat", "people.idx", "shared.pgm"]
    assert sorted(fleet) == ["user-0", "user-2", "user-3", "user-4"]
    assert fleet.verify() == 4
    with pytest.raises(pg.UnknownLabel, match="1 of 2 people are not in this fleet: nobody was removed"):
        remove(folder, ["user-1", "user-2"], jobs=1)
    assert "user-2" in Fleet(folder)


def test_the_pooled_prior_keeps_no_share_of_whoever_is_removed(folder: Path) -> None:
    def default_of(fleet: Fleet) -> Any:
        return Fleet(fleet.folder, unknown="default")["stranger"].problem.prior.probabilities

    everybody = np.mean([prior.probabilities for prior in people(5).values()], axis=0)
    assert np.allclose(default_of(Fleet(folder)), everybody)
    assert np.allclose(default_of(remove(folder, "user-4", pooled_priors="keep", jobs=1)), everybody)
    left = [people(5)[name].probabilities for name in ("user-0", "user-1", "user-2")]
    assert np.allclose(default_of(remove(folder, ["user-3"], jobs=1)), np.mean(left, axis=0))
    with pytest.raises(pg.InvalidProblem, match="nobody with a prior of their own would be left"):
        remove(folder, ["user-0", "user-1", "user-2"], jobs=1)
    empty = remove(folder, ["user-0", "user-1", "user-2"], pooled_priors="keep", jobs=1)
    assert (len(empty), list(empty), empty.verify()) == (0, [], 0)


def test_the_last_person_can_be_removed(tmp_path: Path) -> None:
    design_fleet(people(1), out=tmp_path / "f", epsilon=0.8, jobs=1)
    assert len(remove(tmp_path / "f", ["user-0"], jobs=1)) == 0
    assert len(add(tmp_path / "f", people(2), jobs=1)) == 2


def test_compacting_leaves_what_counts_and_open_fleets_go_on(folder: Path) -> None:
    opened = Fleet(folder)
    before = opened.digest, opened.records_digest, payloads_in(folder)
    update(folder, {"user-1": pg.Prior.uniform(GRID)}, jobs=1)
    update(folder, {"user-1": people(5)["user-1"]}, jobs=1)
    size = (folder / "people.dat").stat().st_size
    again = Fleet(folder)
    fleet = compact(folder)
    assert (folder / "people.dat").stat().st_size < size
    assert (fleet.digest, fleet.records_digest, payloads_in(folder)) == before
    assert again.sample("user-1", "cell-2") in GRID.labels  # the same fleet, in other files
    assert again.verify() == 5


def test_files_are_their_owners_alone(folder: Path) -> None:
    def modes() -> set[int]:
        return {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}

    assert modes() == {0o600}
    add(folder, new("ann"), jobs=1)
    assert modes() == {0o600}
    remove(folder, ["ann"], jobs=1)
    assert modes() == {0o600}


def test_one_process_changes_a_fleet_at_a_time(folder: Path) -> None:
    refused: list[str] = []

    def meanwhile(_: pg.Progress) -> None:
        others: list[Callable[[], Fleet]] = [
            lambda: add(folder, new("bob"), jobs=1),
            lambda: update(folder, {"user-1": pg.Prior.uniform(GRID)}, jobs=1),
            lambda: remove(folder, ["user-2"]),
            lambda: compact(folder),
            lambda: design_fleet(people(6), out=folder, epsilon=0.8, jobs=1),
        ]
        for verb in others:
            with pytest.raises(pg.InvalidProblem, match="another process is changing the fleet") as raised:
                verb()
            refused.append(str(raised.value))

    fleet = add(folder, new("ann"), jobs=1, progress=meanwhile)
    assert len(refused) == 5
    assert sorted(fleet) == ["ann", *sorted(people(5))]
    readers = [threading.Thread(target=Fleet(folder).verify) for _ in range(3)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()


def verbs(folder: Path) -> dict[str, Callable[[], Fleet]]:
    return {
        "design": lambda: design_fleet(people(6), out=folder, epsilon=0.8, default="pooled", jobs=1),
        "add": lambda: add(folder, new("ann"), jobs=1),
        "update": lambda: update(folder, {"user-1": pg.Prior.uniform(GRID)}, jobs=1),
        "remove": lambda: remove(folder, ["user-1"], jobs=1),
        "compact": lambda: compact(folder),
    }


FILES = {".lock", "people.dat", "people.idx", "shared.pgm"}
STEPS = [(os, "fsync"), (os, "replace"), (Path, "replace"), (Path, "unlink"), (os, "open")]
"""What a process asks of the system when it changes a folder."""


@pytest.mark.parametrize("verb", ["design", "add", "update", "remove", "compact"])
def test_a_crash_at_any_step_leaves_one_generation_or_the_next(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """The disk as it is before each step is what a crash there leaves; the same call then goes on."""
    before = payloads_in(folder)
    (folder / "people-next.dat").write_bytes(b"left by a crash")
    (folder / ".people.dat.x.part").write_bytes(b"left by a crash")
    crashes: list[Path] = []

    def watched(original: Callable[..., Any]) -> Callable[..., Any]:
        def step(*given: Any, **options: Any) -> Any:
            crashes.append(Path(shutil.copytree(folder, tmp_path / f"crash-{len(crashes)}")))
            return original(*given, **options)

        return step

    with monkeypatch.context() as patched:
        for place, name in STEPS:
            patched.setattr(place, name, watched(getattr(place, name)))
        verbs(folder)[verb]()
    after = payloads_in(folder)
    assert (after == before) == (verb == "compact")
    assert len(crashes) > 5
    for crash in crashes:
        assert payloads_in(crash) in (before, after)
        assert Fleet(crash).verify() in (len(before) - 1, len(after) - 1)
        removed = verb == "remove" and {path.name for path in crash.iterdir()} == FILES and payloads_in(crash) == after
        if removed:  # and all of it is done: there is nobody to remove
            with pytest.raises(pg.UnknownLabel):
                verbs(crash)[verb]()
        else:
            verbs(crash)[verb]()
        assert verb != "remove" or b'"user-1"' not in content_of(crash)
        assert payloads_in(crash) == after
        assert {path.name for path in crash.iterdir()} == FILES


@pytest.mark.parametrize("verb", ["design", "add", "update", "remove"])
def test_interrupting_changes_nothing_and_loses_no_work(folder: Path, verb: str) -> None:
    before, done = payloads_in(folder), []

    def interrupt(now: pg.Progress) -> None:
        done.append(now.done)
        raise KeyboardInterrupt

    changed = people(7) | {"user-1": pg.Prior.uniform(GRID)}
    calls: dict[str, Callable[..., Fleet]] = {
        "design": lambda **more: design_fleet(people(7), out=folder, epsilon=0.8, jobs=1, **more),
        "add": lambda **more: add(folder, {name: changed[name] for name in ("user-5", "user-6")}, jobs=1, **more),
        "update": lambda **more: update(
            folder, {name: pg.Prior.uniform(GRID) for name in ("user-0", "user-1")}, jobs=1, **more
        ),
        "remove": lambda **more: remove(folder, ["user-1"], jobs=1, **more),
    }
    with pytest.raises(KeyboardInterrupt):
        calls[verb](progress=interrupt)
    assert payloads_in(folder) == before
    assert Fleet(folder).verify() == 5
    calls[verb](progress=lambda now: done.append(now.done))
    assert done == ([1] if verb == "remove" else [done[0], done[0] + 1])  # nothing is designed twice
    assert payloads_in(folder) != before


class Careless:
    """Workers that return another record than was asked for."""

    def __init__(self, returned: bytes) -> None:
        self.returned = returned

    def run(self, tasks: Any) -> Any:
        for key, _ in SerialExecutor().run(tasks):
            yield key, [self.returned]


def test_no_record_is_stored_that_was_not_certified_here(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers may be of another release, see another folder, or be wrong."""
    from privacygames.fleet import operations

    weaker = design_fleet(new("ann"), out=tmp_path / "weaker", epsilon=3.0, jobs=1)
    other = add(Path(shutil.copytree(folder, tmp_path / "other")), new("bob"), jobs=1)
    for returned, error, message in (
        (payloads_in(weaker.folder)[name_hash("ann")], pg.GuaranteeViolated, "a ratio between two secrets"),
        (payloads_in(other.folder)[name_hash("bob")], pg.InvalidFile, "another person's"),
        (b"", pg.InvalidFile, "cut short"),
    ):
        monkeypatch.setattr(operations, "executor_for", lambda *_, returned=returned: Careless(returned))
        before = payloads_in(folder)
        with pytest.raises(error, match=message):
            add(folder, new("ann"), jobs=1)
        assert payloads_in(folder) == before


def test_a_folder_that_is_replaced_meanwhile_is_not_written_to(folder: Path, tmp_path: Path) -> None:
    def replaced(_: pg.Progress) -> None:
        shutil.rmtree(folder)
        design_fleet(people(2), out=folder, epsilon=0.3, jobs=1)

    with pytest.raises(pg.InvalidFile, match="was replaced while its fleet was being changed"):
        add(folder, new("ann"), jobs=1, progress=replaced)
    fleet = Fleet(folder)
    assert (fleet.bounds.epsilon, sorted(fleet), fleet.verify()) == (0.3, ["user-0", "user-1"], 2)
