"""Fleets: packed exactly, designed once, verified, found at once; and what unknown people get."""

import os
import pickle
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import privacygames as pg
from fleets import GRID, forge, people
from privacygames.certificates import check
from privacygames.fleet import Fleet
from privacygames.fleet import design as design_fleet
from privacygames.fleet.packed_weights import pack_weights, round_weights
from privacygames.fleet.person_design import design_packable
from privacygames.fleet.person_record import encode_person
from privacygames.jobs import SerialExecutor, TaskResults
from privacygames.tables import ReleaseKey, apply, apply_files
from support import priors
from waiting import GUARD


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet") / "people"
    design_fleet(people(6), out=folder, epsilon=0.8, default="pooled", jobs=1)
    return folder


@given(data=st.data(), rows=st.integers(1, 5), columns=st.integers(1, 9))
def test_rounded_weights_keep_sums_signs_and_digits(data: st.DataObject, rows: int, columns: int) -> None:
    table = data.draw(
        arrays(np.float64, (rows, columns), elements=st.sampled_from([0.0, 1e-12, 1e-6, 0.1, 0.3, 1.0, 7.0]))
    )
    table[:, 0] += table.sum(axis=1) == 0
    weights = np.floor(table / table.sum(axis=1, keepdims=True) * 2.0**61).astype(np.int64)
    weights[np.arange(rows), weights.argmax(axis=1)] += 2**62 - weights.sum(axis=1)
    made = round_weights(weights)
    assert (made.sum(axis=1) == 2**62).all()
    assert ((made > 0) == (weights > 0)).all()
    used = weights > 0
    assert (np.abs(made - weights)[used] <= weights[used] * 2.0**-15 + 1).all()
    packed = pack_weights(made)
    assert packed is not None
    assert np.array_equal(packed.unpack(), made)
    assert np.array_equal(packed.unpack()[:1], made[:1])
    assert np.array_equal(
        round_weights(np.vstack([weights, weights]))[:rows], round_weights(np.vstack([weights, weights]))[rows:]
    )


def test_weights_with_more_digits_are_not_packed() -> None:
    assert pack_weights(np.array([[2**40 + 1, 2**62 - 2**40 - 1]])) is None


@settings(max_examples=25)
@given(prior=priors(6), epsilon=st.sampled_from([0.05, 0.5, 2.0]), share=st.sampled_from([None, 0.5, 1.0]))
def test_packed_mechanisms_keep_their_guarantees_and_cost_hardly_more(
    prior: Any, epsilon: float, share: float | None
) -> None:
    problem = pg.Problem(pg.Prior(pg.Grid(3, 2), prior))
    distortion = None if share is None else share * pg.max_distortion(problem)
    bounds = pg.Bounds(epsilon=epsilon, distortion=distortion)
    (packable,) = design_packable([problem], bounds)
    assert isinstance(packable, pg.Mechanism)
    assert packable.bounds == bounds
    check(packable.statement)
    best = pg.design(problem, epsilon=epsilon, distortion=distortion)
    assert packable.certificate.cost <= best.certificate.cost * (1 + 5e-3) + 1e-9
    assert packable.certificate.cost >= (best.certificate.bound or 0.0) * (1 - 1e-9)


def test_a_member_is_a_mechanism(made: Path) -> None:
    fleet = Fleet(made)
    given_priors = people(6)
    assert len(fleet) == 6
    assert sorted(fleet) == sorted(given_priors)
    assert "user-3" in fleet
    assert "stranger" not in fleet
    assert "" not in fleet
    mechanism = fleet["user-3"]
    assert isinstance(mechanism, pg.Mechanism)
    assert mechanism.problem.prior == given_priors["user-3"]
    assert mechanism.bounds.epsilon == 0.8
    best = pg.design(pg.Problem(given_priors["user-3"]), epsilon=0.8)
    assert mechanism.certificate.cost == pytest.approx(best.certificate.cost, rel=1e-3)
    assert fleet.sample("user-3", "cell-5") in GRID.labels
    assert check(mechanism.statement) == mechanism.certificate.verification
    assert fleet.verify() == 6
    assert pickle.loads(pickle.dumps(fleet)).digest == fleet.digest
    assert fleet.prior_source("user-3") == {"visits": None, "prior_from": "own"}


def test_the_shared_part_is_there_once_and_people_are_small(made: Path) -> None:
    sizes = {path.name: path.stat().st_size for path in made.iterdir()}
    assert sizes["people.dat"] < 7 * (12 * 12 * 3 + 12 * 12 + 12 * 12 + 1500)


def test_draws_of_a_fleet_are_its_members_draws(made: Path) -> None:
    fleet, rows = Fleet(made), 40_000
    secrets = pa.table({"who": ["user-1"] * rows + ["user-2"] * rows, "cell": ["cell-4"] * 2 * rows})
    released, manifest = apply(secrets, {"cell": fleet}, user="who")
    for number, name in enumerate(("user-1", "user-2")):
        answers = released["cell"].to_pylist()[number * rows : (number + 1) * rows]
        expected = fleet[name].probabilities[4]
        counts = np.array([answers.count(label) for label in GRID.labels])
        assert counts[expected == 0].sum() == 0
        used = expected > 0
        assert (((counts - expected * rows) ** 2)[used] / (expected * rows)[used]).sum() < 80  # 11 degrees of freedom
    assert manifest.to_dict()["columns"][0]["people"] == 6
    assert manifest.per_user is not None
    assert list(manifest.per_user.epsilons.values()) == pytest.approx([0.8 * rows])


def test_new_people_do_not_change_what_others_are_answered(made: Path, tmp_path: Path) -> None:
    folder, key, same_key = tmp_path / "fleet", ReleaseKey(bytes(32)), ReleaseKey(bytes(32))
    shutil.copytree(made, folder)
    data = pd.DataFrame({"who": ["user-0", "user-5"] * 50, "cell": [f"cell-{i % 12}" for i in range(100)]})
    before, _ = apply(data, {"cell": Fleet(folder)}, key=key, user="who", repeat="same")
    larger = design_fleet(people(8), out=folder, epsilon=0.8, jobs=1)
    after, _ = apply(data, {"cell": larger}, key=key, user="who", repeat="same")
    pd.testing.assert_frame_equal(before, after)
    assert len(larger) == 8
    changed = design_fleet(people(8) | {"user-5": pg.Prior.uniform(GRID)}, out=folder, epsilon=0.8, jobs=1)
    with pytest.raises(pg.InvalidProblem, match="of other rows or other values"):
        apply(data, {"cell": changed}, key=key, user="who", repeat="same")
    other, _ = apply(data, {"cell": changed}, key=same_key, user="who", repeat="same")
    mine = data["who"] == "user-0"
    assert other[mine].equals(before[mine])
    assert not other[~mine].equals(before[~mine])


def test_strangers_are_refused_unless_said_otherwise(made: Path, tmp_path: Path) -> None:
    fleet = Fleet(made)
    with pytest.raises(pg.UnknownLabel, match="none of the 6") as raised:
        fleet["stranger"]
    assert "stranger" not in str(raised.value)
    data = pd.DataFrame({"who": ["user-0", "stranger"], "cell": ["cell-1", "cell-2"]})
    with pytest.raises(pg.UnknownLabel, match="1 of 2 people are not in this fleet"):
        apply(data, {"cell": fleet}, user="who")
    with pytest.raises(pg.InvalidProblem, match="say with user"):
        apply(data, {"cell": fleet})
    with pytest.raises(pg.UnknownLabel, match="1 of 2 people"):  # when it is set up, not when it is computed
        apply(pl.from_pandas(data).lazy(), {"cell": fleet}, user="who", key_columns="who")
    data.to_csv(tmp_path / "in.csv", index=False)
    with pytest.raises(pg.UnknownLabel, match="1 of 2 people"):
        apply_files(tmp_path / "in.csv", tmp_path / "out.csv", {"cell": fleet}, user="who")
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]
    open_to_all = Fleet(made, unknown="default")
    assert open_to_all["stranger"].bounds == fleet.bounds
    pooled = np.mean([prior.probabilities for prior in people(6).values()], axis=0)
    assert np.allclose(open_to_all["stranger"].problem.prior.probabilities, pooled)
    released, _ = apply(data, {"cell": open_to_all}, user="who")
    assert len(released) == 2


def test_a_fleet_without_a_default_has_none(tmp_path: Path) -> None:
    design_fleet(people(2), out=tmp_path / "f", epsilon=0.8, jobs=1)
    with pytest.raises(pg.UnknownLabel, match="no default mechanism"):
        Fleet(tmp_path / "f", unknown="default")


def test_an_export_tells_no_habits(made: Path, tmp_path: Path) -> None:
    fleet = Fleet(made)
    fleet.export("user-2", tmp_path / "me.pgm")
    public = pg.load_public(tmp_path / "me.pgm")
    assert np.array_equal(public.weights, fleet["user-2"].weights)
    assert public.bounds.epsilon == 0.8
    content = (tmp_path / "me.pgm").read_bytes()
    assert b"user-2" not in content
    assert fleet["user-2"].problem.prior.probabilities.tobytes() not in content


@pytest.mark.parametrize("at", [0.2, 0.6, 0.99])
def test_altered_records_are_noticed(made: Path, tmp_path: Path, at: float) -> None:
    folder = tmp_path / "fleet"
    shutil.copytree(made, folder)
    content = bytearray((folder / "people.dat").read_bytes())
    content[int(len(content) * at)] ^= 1
    (folder / "people.dat").write_bytes(content)
    with pytest.raises(pg.GuaranteeViolated, match="1 of 7 mechanisms"):
        Fleet(folder).verify()


def test_weights_that_break_the_guarantee_are_found_by_verify(made: Path, tmp_path: Path) -> None:
    """A record whose checksums all fit, and weights that do not."""
    folder = tmp_path / "fleet"
    shutil.copytree(made, folder)
    truthful = pg.baselines.cheapest(pg.Problem(people(6)["user-1"]))
    forge(folder, {"user-1": encode_person("user-1", truthful, {"visits": None, "prior_from": "own"})})
    fleet = Fleet(folder)
    with pytest.raises(pg.GuaranteeViolated, match="a ratio between two secrets"):
        fleet.verify(jobs=1)
    for use in (lambda: fleet["user-1"], lambda: fleet.sample("user-1", "cell-3")):
        with pytest.raises(pg.GuaranteeViolated, match="a ratio between two secrets"):
            use()
    assert fleet.sample("user-2", "cell-3") in GRID.labels


INTERRUPTED = """
import sys
import numpy as np
import privacygames as pg
from privacygames.fleet import design

grid = pg.Grid(4, 3)
rng = np.random.default_rng(0)
counts = [rng.integers(0, 9, 12) + (np.arange(12) == number % 12) for number in range(60)]
people = {f"user-{number}": pg.Prior.from_counts(grid, seen) for number, seen in enumerate(counts)}

def tell(now):
    print(now.done, flush=True)
    if len(sys.argv) > 2 and now.done >= int(sys.argv[2]):
        sys.stdin.read()  # until this process is killed

design(people, out=sys.argv[1], epsilon=0.8, jobs=JOBS, progress=tell)
"""


def test_a_killed_design_goes_on(tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED.replace("JOBS", "1"), str(tmp_path / "f")]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([*command, "20"], **pipes) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if int(line) == 20:
                running.kill()
                break
    assert running.returncode == -signal.SIGKILL
    with pytest.raises(pg.InvalidFile):
        Fleet(tmp_path / "f")  # there is no index yet: nothing looks complete
    with (tmp_path / "f" / "people.dat").open("ab") as file:
        file.write(b"PGF1 half a record")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    counts_done = [int(line) for line in done.stdout.split()]
    assert counts_done[0] >= 21
    assert counts_done[-1] == 60
    fleet = Fleet(tmp_path / "f")
    assert fleet.verify() == 60
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    assert again.stdout == ""  # everybody is there


def test_ctrl_c_leaves_no_process_and_nothing_half_written(tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED.replace("JOBS", "2"), str(tmp_path / "f")]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*command, "10"], **pipes, text=True, start_new_session=True) as running:
        assert running.stdout is not None
        assert any(int(line) == 10 for line in running.stdout)
        os.killpg(running.pid, signal.SIGINT)  # to the workers as well, as a terminal does
        _, said = running.communicate(timeout=GUARD)  # ends when the workers are gone: they have its output open
    assert running.returncode == -signal.SIGINT
    assert said.count("Traceback") == 1  # its own; workers say nothing
    assert sorted(path.name for path in (tmp_path / "f").iterdir()) == [".lock", "people.dat", "shared.pgm"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert [int(line) for line in done.stdout.split()] == list(range(11, 61))  # the ten are kept
    assert Fleet(tmp_path / "f").verify() == 60


def test_people_with_the_same_prior_are_designed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handed_out: list[str] = []

    class Watching(SerialExecutor):
        """Notes who is designed."""

        def run(self, tasks: Any) -> TaskResults:
            handed_out.extend(member.name for task in tasks for member in task.members)
            return super().run(tasks)

    monkeypatch.setattr("privacygames.fleet.operations.executor_for", lambda *_: Watching())
    habits = list(people(3).values())
    everybody = {f"person-{number}": habits[number % 3] for number in range(12)}
    fleet = design_fleet(everybody, out=tmp_path / "f", epsilon=0.8, jobs=1)
    assert sorted(handed_out) == ["person-0", "person-1", "person-2"]
    assert sorted(fleet) == sorted(everybody)
    assert fleet.verify() == 12
    for number in range(12):
        assert np.array_equal(fleet[f"person-{number}"].weights, fleet[f"person-{number % 3}"].weights)
        assert fleet[f"person-{number}"].problem.prior == habits[number % 3]


def test_together_people_get_what_each_gets_alone(tmp_path: Path) -> None:
    """Several people are one job, of whom some cannot be served."""
    sure = {f"sure-{number}": pg.Prior(GRID, np.eye(12)[number]) for number in range(3)}
    bounds: dict[str, Any] = {"epsilon": 0.8, "distortion": 0.3}
    with pytest.raises(pg.SolveFailed, match=r"3 of 103 people have no mechanism.*Infeasible"):
        design_fleet(people(100) | sure, out=tmp_path / "f", **bounds, jobs=1)
    fleet = design_fleet(people(100), out=tmp_path / "f", **bounds, jobs=1)
    assert fleet.verify() == 100
    for name, prior in people(5).items():
        (alone,) = design_packable([pg.Problem(prior)], fleet.bounds)
        assert isinstance(alone, pg.Mechanism)
        assert np.array_equal(fleet[name].weights, alone.weights)
        best = pg.design(pg.Problem(prior), **bounds)
        assert fleet[name].certificate.cost == pytest.approx(best.certificate.cost, rel=1e-3)


def test_visits_little_data_and_the_pooled_prior(tmp_path: Path) -> None:
    grid = pg.Grid.over((13.0, 52.0, 13.4, 52.2), columns=3, rows=2)
    visits = pg.traces.VisitCounts({"ann": {0: 30, 4: 20}, "bob": {1: 25, 5: 5}, "new": {2: 1}})
    with pytest.raises(pg.InvalidProblem, match="1 of 3 people have fewer than 10 visits"):
        design_fleet(visits, grid=grid, out=tmp_path / "f", epsilon=0.5, min_visits=10, jobs=1)
    assert not (tmp_path / "f").exists()
    fleet = design_fleet(
        visits, grid=grid, out=tmp_path / "f", epsilon=0.5, min_visits=10, little_data="pooled", jobs=1
    )
    assert fleet.prior_source("new") == {"visits": 1, "prior_from": "pooled"}
    assert fleet.prior_source("ann") == {"visits": 50, "prior_from": "own"}
    assert fleet["new"].problem.prior == visits.pooled_prior(grid)
    assert fleet["ann"].problem.prior == visits.prior(grid, "ann")


def test_two_processes_design_what_one_designs(tmp_path: Path) -> None:
    one = design_fleet(people(4), out=tmp_path / "one", epsilon=0.8, jobs=1)
    two = design_fleet(people(4), out=tmp_path / "two", epsilon=0.8, jobs=2)
    for name in people(4):
        assert np.array_equal(one[name].weights, two[name].weights)


def test_people_who_cannot_be_served_do_not_stop_the_others(tmp_path: Path) -> None:
    sure = pg.Prior(GRID, np.eye(12)[3])
    with pytest.raises(pg.SolveFailed, match=r"1 of 3 people have no mechanism.*Infeasible"):
        design_fleet(people(2) | {"sure": sure}, out=tmp_path / "f", epsilon=0.8, distortion=0.3, jobs=1)
    assert len(design_fleet(people(2), out=tmp_path / "f", epsilon=0.8, distortion=0.3, jobs=1)) == 2


def test_problems_of_a_fleet_share_all_but_the_prior(tmp_path: Path) -> None:
    problems = {name: pg.Problem(prior, cost="euclidean") for name, prior in people(2).items()}
    fleet = design_fleet(problems, out=tmp_path / "f", epsilon=0.8, jobs=1)
    assert fleet["user-1"].problem == problems["user-1"]
    odd = problems | {"user-9": pg.Problem(people(2)["user-0"])}
    for wrong, message in (
        (odd, "differ in the prior only"),
        ({"a": people(1)["user-0"], "b": problems["user-0"]}, "share one space"),
        ({"a": pg.Prior.uniform(GRID), "b": pg.Prior.uniform(pg.Grid(2, 2))}, "share one space"),
        ({}, "from visits, or from a mapping"),
        ({"": pg.Prior.uniform(GRID)}, "not empty"),
        ({"a": 5}, "problems or as priors"),
    ):
        with pytest.raises(pg.InvalidProblem, match=message):
            design_fleet(wrong, out=tmp_path / "g", epsilon=0.8, jobs=1)  # type: ignore[arg-type]
    with pytest.raises(pg.InvalidProblem, match="other spaces, costs, distances or guarantees"):
        design_fleet(problems, out=tmp_path / "f", epsilon=0.9, jobs=1)
    with pytest.raises(pg.InvalidProblem, match="no guarantee is requested"):
        design_fleet(problems, out=tmp_path / "f", jobs=1)


def test_a_folder_that_is_no_fleet_is_refused(tmp_path: Path, made: Path) -> None:
    with pytest.raises(pg.UnreadableFile):
        Fleet(tmp_path)
    folder = tmp_path / "fleet"
    shutil.copytree(made, folder)
    os.truncate(folder / "people.dat", 100)
    with pytest.raises(pg.InvalidFile, match="does not fit the records"):
        Fleet(folder)


def test_a_manifest_pins_everybody_s_mechanism(made: Path, tmp_path: Path) -> None:
    folder = tmp_path / "fleet"
    shutil.copytree(made, folder)
    data = pd.DataFrame({"who": ["user-0"], "cell": ["cell-1"]})

    def named(fleet: Fleet) -> tuple[str, str]:
        entry = apply(data, {"cell": fleet}, user="who")[1].to_dict()["columns"][0]
        return entry["mechanism"], entry["records"]

    before = named(Fleet(folder))
    assert before == named(Fleet(made))
    after = named(design_fleet(people(6) | {"user-5": pg.Prior.uniform(GRID)}, out=folder, epsilon=0.8, jobs=1))
    assert after[0] == before[0]  # what all have in common
    assert after[1] != before[1]
