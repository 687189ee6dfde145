"""A fleet is what its folder holds: whatever is replaced, rewritten or mixed up under it is noticed."""

import pickle
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import privacygames as pg
from fleets import GRID, payloads_in, people
from privacygames.certificates import check
from privacygames.fleet import Fleet, add, compact, remove, update
from privacygames.fleet import design as design_fleet
from privacygames.tables import apply

FORMAT_1 = Path(__file__).parent / "format-1"


def realised_epsilon(mechanism: pg.Mechanism) -> float:
    """The largest logarithm of a ratio by the distance between its secrets, by hand."""
    given = mechanism.weights[:, mechanism.weights.any(axis=0)].astype(float)
    exponents = np.log(given[:, None, :] / given[None, :, :]).max(axis=2)
    apart = mechanism.distinguishability
    return float((exponents[apart > 0] / apart[apart > 0]).max())


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_path_that_is_used_again_is_another_fleet(tmp_path: Path, jobs: int) -> None:
    """Designed for ε = 2, removed, and designed for ε = 0.5 in the same place: by the same process."""
    for epsilon in (2.0, 0.5, 1.0):
        fleet = design_fleet(people(2), out=tmp_path / "f", epsilon=epsilon, jobs=jobs)
        assert fleet.verify(jobs=jobs) == 2
        for name in people(2):
            assert fleet[name].certificate.bounds.epsilon == epsilon
            assert epsilon * 0.9 < realised_epsilon(fleet[name]) <= epsilon * (1 + 1e-9)
        shutil.rmtree(tmp_path / "f")


def test_an_open_fleet_of_a_folder_that_is_used_again_says_so(tmp_path: Path) -> None:
    opened = design_fleet(people(2), out=tmp_path / "f", epsilon=2.0, jobs=1)
    opened.sample("user-0", "cell-1")  # whatever is kept in memory
    shutil.rmtree(tmp_path / "f")
    for use in uses(opened):
        with pytest.raises((pg.StaleFleet, pg.UnreadableFile)):
            use()
    design_fleet(people(2), out=tmp_path / "f", epsilon=0.5, jobs=1)
    for use in uses(opened):
        with pytest.raises(pg.StaleFleet, match="not the one that was opened"):
            use()
    assert opened.reopen().bounds.epsilon == 0.5


def uses(fleet: Fleet) -> list:  # type: ignore[type-arg]
    """Everything that is asked of a fleet."""
    data = pd.DataFrame({"who": ["user-0"], "cell": ["cell-1"]})
    return [
        lambda: fleet["user-0"],
        lambda: fleet.sample("user-0", "cell-1"),
        lambda: fleet.prior_source("user-0"),
        lambda: "user-0" in fleet,
        lambda: len(fleet),
        lambda: list(fleet),
        lambda: fleet.bounds,
        lambda: fleet.digest,
        lambda: fleet.records_digest,
        lambda: fleet.has_default,
        lambda: apply(data, {"cell": fleet}, user="who"),
        lambda: pickle.loads(pickle.dumps(fleet)).sample("user-0", "cell-1"),
    ]


@pytest.mark.parametrize("verb", ["add", "update", "remove"])
def test_an_open_fleet_says_that_people_changed(tmp_path: Path, verb: str) -> None:
    opened = design_fleet(people(3), out=tmp_path / "f", epsilon=0.8, default="pooled", jobs=1)
    lenient, packed = Fleet(tmp_path / "f", unknown="default"), pickle.dumps(opened)
    lenient.sample("user-2", "cell-1")
    {
        "add": lambda: add(opened, people(4), jobs=1),
        "update": lambda: update(opened, {"user-2": pg.Prior.uniform(GRID)}, jobs=1),
        "remove": lambda: remove(opened, ["user-2"], jobs=1),
    }[verb]()
    for use in (*uses(opened), lambda: lenient.sample("user-2", "cell-1"), lambda: pickle.loads(packed)["user-0"]):
        with pytest.raises(pg.StaleFleet, match="Open it again"):
            use()
    assert opened.reopen().verify() == {"add": 4, "update": 3, "remove": 2}[verb]
    assert lenient.reopen().unknown == "default"


def test_a_release_that_is_computed_later_is_of_the_fleet_it_was_set_up_with(tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    fleet = design_fleet(people(2), out=tmp_path / "f", epsilon=0.8, jobs=1)
    data = pl.LazyFrame({"who": ["user-0", "user-1"], "cell": ["cell-1", "cell-2"]})
    later, _ = apply(data, {"cell": fleet}, user="who", key_columns=["who"])
    assert later.collect().height == 2
    compact(fleet)
    assert later.collect().height == 2
    remove(fleet, ["user-1"], jobs=1)
    with pytest.raises(pg.StaleFleet):
        later.collect()


@pytest.mark.parametrize("name", ["people.dat", "people.idx", "shared.pgm"])
@pytest.mark.parametrize("in_place", [True, False])
def test_files_replaced_under_an_open_fleet_are_noticed(tmp_path: Path, name: str, in_place: bool) -> None:
    """By those of a fleet with the same people and a weaker guarantee."""
    fleet = design_fleet(people(2), out=tmp_path / "f", epsilon=0.5, jobs=1)
    weaker = design_fleet(people(2), out=tmp_path / "w", epsilon=2.0, jobs=1)
    content = (weaker.folder / name).read_bytes()
    if not in_place:
        (fleet.folder / name).unlink()
    (fleet.folder / name).write_bytes(content)
    with pytest.raises((pg.InvalidFile, pg.GuaranteeViolated, pg.StaleFleet)):
        fleet.verify()
    with pytest.raises((pg.InvalidFile, pg.GuaranteeViolated, pg.StaleFleet)):
        Fleet(fleet.folder)["user-0"]
    with suppress(pg.InvalidFile, pg.StaleFleet):  # what was opened is still there, or it is refused
        assert realised_epsilon(fleet["user-0"]) <= 0.5 * (1 + 1e-9)


def test_all_files_replaced_by_those_of_another_fleet(tmp_path: Path) -> None:
    fleet = design_fleet(people(2), out=tmp_path / "f", epsilon=0.5, jobs=1)
    weaker = design_fleet(people(2), out=tmp_path / "w", epsilon=2.0, jobs=1)
    for path in weaker.folder.iterdir():
        shutil.copy(path, fleet.folder)
    for use in (*uses(fleet), fleet.verify):
        with pytest.raises(pg.StaleFleet):
            use()
    assert Fleet(fleet.folder)["user-0"].certificate.bounds.epsilon == 2.0  # which is what it says


def test_a_file_that_is_cut_short_under_an_open_fleet_is_refused(tmp_path: Path) -> None:
    fleet = design_fleet(people(2), out=tmp_path / "f", epsilon=0.5, jobs=1)
    with (fleet.folder / "people.dat").open("r+b") as file:
        file.truncate(100)
    with pytest.raises(pg.InvalidFile, match="does not match its checksum"):
        fleet["user-0"]
    with pytest.raises(pg.InvalidFile, match="cut short"):
        fleet.verify()


def test_a_damaged_record_is_designed_again(tmp_path: Path) -> None:
    design_fleet(people(2), out=tmp_path / "f", epsilon=0.5, jobs=1)
    before = payloads_in(tmp_path / "f")
    content = bytearray((tmp_path / "f" / "people.dat").read_bytes())
    content[-1] ^= 1
    (tmp_path / "f" / "people.dat").write_bytes(content)
    with pytest.raises(pg.GuaranteeViolated, match="1 of 2 mechanisms"):
        Fleet(tmp_path / "f").verify()
    assert design_fleet(people(2), out=tmp_path / "f", epsilon=0.5, jobs=1).verify() == 2
    assert payloads_in(tmp_path / "f").keys() == before.keys()


def test_fleets_of_the_last_release_are_read_and_then_written_as_this_one_does(tmp_path: Path) -> None:
    """Same records, so same answers under a key; and what nobody could read again is private again."""
    folder = Path(shutil.copytree(FORMAT_1, tmp_path / "f"))
    fleet = Fleet(folder, unknown="default")
    assert sorted(fleet) == ["user-0", "user-1", "user-2"]
    assert fleet.verify() == 3
    assert check(fleet["user-1"].statement).largest_ratio <= 1
    records, before = fleet.records_digest, payloads_in(folder)
    grid = pg.Grid(2, 2)
    rng = np.random.default_rng(0)
    priors = {f"user-{k}": pg.Prior.from_counts(grid, rng.integers(1, 9, 4)) for k in range(3)}
    again = design_fleet(priors, out=folder, epsilon=0.8, default="pooled", jobs=1)
    assert (again.records_digest, payloads_in(folder)) == (records, before)
    assert (folder / "people.idx").read_bytes()[:4] == b"PGI2"
    assert fleet.sample("user-1", "cell-1") in grid.labels  # the same fleet, in other files
    assert len(add(again, {"ann": priors["user-0"]}, jobs=1)) == 4


def test_a_fleet_of_the_last_release_that_keeps_no_guarantee_is_refused(tmp_path: Path) -> None:
    """What its fault made: records designed for another ε, beside a shared part that says 0.8."""
    folder = Path(shutil.copytree(FORMAT_1, tmp_path / "f"))
    stricter = design_fleet({"x": pg.Prior.uniform(pg.Grid(2, 2))}, out=tmp_path / "strict", epsilon=0.1, jobs=1)
    shutil.copy(stricter.folder / "shared.pgm", folder)
    fleet = Fleet(folder)
    assert fleet.bounds.epsilon == 0.1
    with pytest.raises(pg.GuaranteeViolated, match="4 of 4 mechanisms"):
        fleet.verify()
    for use in (lambda: fleet["user-1"], lambda: fleet.sample("user-1", "cell-1")):
        with pytest.raises(pg.GuaranteeViolated, match="exceeds what is allowed"):
            use()
