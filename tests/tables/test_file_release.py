"""Files and folders: streamed, there whole or not at all, gone on with when killed, on this machine or a cluster."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privacygames as pg
from privacygames.atomic_io import file_lock
from privacygames.tables import ReleaseKey, Rule, apply, apply_files, file_release
from support import two_workers

AGES = pg.Numbers(range(20, 32), unit="years")
AGE = pg.baselines.geometric(pg.Problem(pg.Prior.uniform(AGES)), epsilon=0.4)
FILMS = pg.Sets([{"Alien"}, {"Brazil"}, {"Alien", "Brazil"}])
FILM = pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(FILMS)), epsilon=1.0)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def ages(rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"id": [f"{i:06d}" for i in range(rows)], "age": rng.integers(20, 32, rows), "who": rng.integers(0, 50, rows)}
    )


def test_a_csv_file_keeps_its_texts(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(
        'id;age;note;films\n007;25;"a;b";Alien;\n'.replace(";Alien;", ';"Alien;Brazil"') + "008; 30 ;1.10;Brazil\n"
    )
    key = ReleaseKey()
    manifest = apply_files(
        tmp_path / "in.csv", tmp_path / "out.csv", {"age": AGE, "films": FILM}, key=key, key_columns="id"
    )
    lines = (tmp_path / "out.csv").read_text().splitlines()
    found = pd.read_csv(tmp_path / "out.csv", sep=";", dtype=str)
    assert lines[0] == "id;age;note;films"
    assert found["id"].tolist() == ["007", "008"]
    assert found["note"].tolist() == ["a;b", "1.10"]
    expected, _ = apply(pa.table({"age": [25, 30], "id": [7, 8]}), {"age": AGE}, key=key, key_columns="id")
    assert found["age"].tolist() == [str(each) for each in expected["age"].to_pylist()]
    assert all(frozenset(each.split(";")) in FILMS.labels for each in found["films"])
    assert manifest.rows_in == 2
    assert json.loads((tmp_path / "out.csv.manifest.json").read_text())["rows"]["out"] == 2
    assert names_in(tmp_path) == ["in.csv", "out.csv", "out.csv.manifest.json"]


def test_odd_fields_of_a_csv_file(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("age,n\n25,0\n,1\nold,2\n99,3\n")
    with pytest.raises(pg.InvalidProblem, match="rows have no value") as raised:
        apply_files(tmp_path / "in.csv", tmp_path / "out.csv", {"age": AGE})
    assert "old" not in str(raised.value)
    assert names_in(tmp_path) == ["in.csv"]
    manifest = apply_files(tmp_path / "in.csv", tmp_path / "out.csv", {"age": Rule(mechanism=AGE, invalid="drop")})
    assert pd.read_csv(tmp_path / "out.csv")["n"].tolist() == [0]
    assert dict(manifest.counts.invalid) == {("age", "missing"): 1, ("age", "unknown"): 2}
    near = Rule(mechanism=AGE, invalid="nearest", missing="drop")
    with pytest.raises(pg.InvalidProblem, match="1 of 4 rows hold what is no secret"):  # a text is near to no number
        apply_files(tmp_path / "in.csv", tmp_path / "near.csv", {"age": near})


def test_an_empty_field_of_a_csv_file_names_nobody(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("age,who\n25,\n26,\n27,ann\n")
    with pytest.raises(pg.InvalidProblem, match="'who' is empty in 2 rows"):
        apply_files(tmp_path / "in.csv", tmp_path / "out.csv", {"age": AGE}, user="who")


def test_a_parquet_file_keeps_types_and_metadata(tmp_path: Path) -> None:
    table = pa.table({"when": pa.array([1, 2], pa.timestamp("ms")), "age": pa.array([25, 30], pa.uint8())})
    pq.write_table(table.replace_schema_metadata({"made": "by hand"}), tmp_path / "in.parquet")
    apply_files(tmp_path / "in.parquet", tmp_path / "out.parquet", {"age": AGE})
    made = pq.read_table(tmp_path / "out.parquet")
    assert made.schema.equals(pq.read_schema(tmp_path / "in.parquet"), check_metadata=True)
    assert made["when"].equals(table["when"])


def folder_of(tmp_path: Path, files: int = 4, rows: int = 300) -> Path:
    folder = tmp_path / "in"
    (folder / "more").mkdir(parents=True)
    for number in range(files):
        ages(rows, number).assign(file=number).to_parquet(
            folder / ("more" if number % 2 else ".") / f"{number}.parquet"
        )
    (folder / "_SUCCESS").touch()
    (folder / ".hidden.parquet").write_bytes(b"no table")
    return folder


def contents(folder: Path) -> dict[str, pa.Table]:
    return {str(path.relative_to(folder)): pq.read_table(path) for path in sorted(folder.rglob("*.parquet"))}


def test_a_folder_keeps_its_shape(tmp_path: Path) -> None:
    source = folder_of(tmp_path)
    manifest = apply_files(source, tmp_path / "out", {"age": AGE}, user="who")
    made = contents(tmp_path / "out")
    assert sorted(made) == ["0.parquet", "2.parquet", "more/1.parquet", "more/3.parquet"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "0.parquet",
        "2.parquet",
        "_manifest.json",
        "more",
    ]
    for name, table in made.items():
        assert table.schema.equals(pq.read_schema(source / name), check_metadata=True)
        assert table.select(["id", "who"]).equals(pq.read_table(source / name).select(["id", "who"]))
    assert manifest.rows_in == 1200
    whole = pd.concat([pd.read_parquet(source / name) for name in made])
    assert manifest.account.rows == whole["who"].value_counts().max()  # a person's rows in all files
    assert names_in(tmp_path) == ["in", "out"]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_parts_are_joined_to_what_one_run_gives(tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, key = ages(400_000), ReleaseKey()
    path = tmp_path / f"in{ending}"
    data.to_csv(path, index=False) if ending == ".csv" else data.to_parquet(path, row_group_size=50_000)
    apply_files(path, tmp_path / f"one{ending}", {"age": AGE}, key=key, key_columns="id")
    monkeypatch.setattr(file_release, "PART_ROWS", 100_000)
    apply_files(path, tmp_path / f"parts{ending}", {"age": AGE}, key=key, key_columns="id")
    one, parts = (
        pd.read_csv(tmp_path / f"{name}{ending}", dtype=str)
        if ending == ".csv"
        else pd.read_parquet(tmp_path / f"{name}{ending}")
        for name in ("one", "parts")
    )
    pd.testing.assert_frame_equal(one, parts)


KILLED = """
import sys
from privacygames import load
from privacygames.tables import ReleaseKey, apply_files, file_release
file_release.PART_ROWS = 60_000
key = ReleaseKey.load(sys.argv[3]) if len(sys.argv) > 3 else None
rules = {"age": load("age.pgm")}
stop = int(sys.argv[4]) if len(sys.argv) > 4 else None

def tell(now):
    print(now.done, flush=True)
    if stop is not None and now.done >= stop:
        sys.stdin.read()  # until this process is killed

apply_files(sys.argv[1], sys.argv[2], rules, key=key, key_columns="id", progress=tell)
"""


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_a_killed_run_leaves_nothing_that_looks_complete_and_goes_on(tmp_path: Path, ending: str) -> None:
    data, key = ages(600_000), ReleaseKey.create(tmp_path / "release.key")
    source, out = tmp_path / f"in{ending}", tmp_path / f"out{ending}"
    data.to_csv(source, index=False) if ending == ".csv" else data.to_parquet(source, row_group_size=30_000)
    AGE.save(tmp_path / "age.pgm")
    command = [sys.executable, "-c", KILLED, str(source), str(out), str(tmp_path / "release.key")]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([*command, "250000"], cwd=tmp_path, **pipes) as running:
        assert running.stdout is not None
        for line in running.stdout:
            if int(line) >= 250_000:
                running.kill()
                break
    assert running.returncode == -signal.SIGKILL
    assert not out.exists()
    assert not out.with_name(out.name + ".manifest.json").exists()
    parts = list((tmp_path / f".out{ending}.unfinished").rglob("*.tally"))
    assert len(parts) >= 1
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    told = [int(line) for line in done.stdout.split()]
    assert told[0] >= 60_000  # it went on, and did not start anew
    assert told[-1] == 600_000
    expected, _ = apply(data, {"age": AGE}, key=key, key_columns="id")
    made = pd.read_csv(out, dtype={"id": str}) if ending == ".csv" else pd.read_parquet(out)
    assert made["age"].tolist() == expected["age"].tolist()
    assert made["id"].tolist() == data["id"].tolist()
    left = names_in(tmp_path)
    assert left == sorted(["age.pgm", source.name, out.name, f"{out.name}.manifest.json", "release.key"])


def test_parts_of_other_work_are_not_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ages(300_000).to_parquet(tmp_path / "in.parquet", row_group_size=50_000)
    monkeypatch.setattr(file_release, "PART_ROWS", 50_000)

    def stop(now: pg.Progress) -> None:
        if now.done > 150_000:
            raise pg.Cancelled("enough")

    one, other = ReleaseKey(), ReleaseKey()
    with pytest.raises(pg.Cancelled):
        apply_files(
            tmp_path / "in.parquet", tmp_path / "out.parquet", {"age": AGE}, key=one, key_columns="id", progress=stop
        )
    assert (tmp_path / ".out.parquet.unfinished").exists()
    apply_files(tmp_path / "in.parquet", tmp_path / "out.parquet", {"age": AGE}, key=other, key_columns="id")
    expected, _ = apply(pq.read_table(tmp_path / "in.parquet"), {"age": AGE}, key=other, key_columns="id")
    assert pq.read_table(tmp_path / "out.parquet")["age"].equals(expected["age"])


def test_a_changed_input_is_not_mixed_even_if_its_time_was_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two runs, and in the middle of one."""
    source, out = tmp_path / "in.parquet", tmp_path / "out.parquet"
    options: dict[str, Any] = {"key": ReleaseKey(), "key_columns": "id"}
    monkeypatch.setattr(file_release, "PART_ROWS", 50_000)
    data = ages(300_000)
    other = data.assign(age=51 - data["age"])

    def store(frame: pd.DataFrame) -> None:
        new = source.with_suffix(".new")
        frame.to_parquet(new, row_group_size=50_000, compression="none")
        os.utime(new, ns=(0, 0))
        new.replace(source)

    def stop(now: pg.Progress) -> None:
        if now.done > 150_000:
            raise pg.Cancelled("enough")

    def change(now: pg.Progress) -> None:
        if 0 < now.done < 300_000:
            store(data)

    store(data)
    size = source.stat().st_size
    with pytest.raises(pg.Cancelled):
        apply_files(source, out, {"age": AGE}, progress=stop, **options)
    store(other)
    assert source.stat().st_size == size
    with pytest.raises(pg.InvalidProblem, match="changed while it was read"):
        apply_files(source, out, {"age": AGE}, progress=change, **options)
    assert names_in(tmp_path) == ["in.parquet"]
    store(other)
    apply_files(source, out, {"age": AGE}, **options)
    expected, _ = apply(other, {"age": AGE}, **options)
    assert pd.read_parquet(out)["age"].tolist() == expected["age"].tolist()


def test_an_output_that_came_meanwhile_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process finished between our first look and our turn: what it released stays the only release."""
    ages(10).to_csv(tmp_path / "in.csv", index=False)

    def our_turn(path: Path) -> Any:
        (tmp_path / "out.csv").write_text("released")
        return file_lock(path)

    monkeypatch.setattr(file_release, "file_lock", our_turn)
    with pytest.raises(pg.InvalidProblem, match="exists already"):
        apply_files(tmp_path / "in.csv", tmp_path / "out.csv", {"age": AGE})
    assert names_in(tmp_path) == ["in.csv", "out.csv"]
    assert (tmp_path / "out.csv").read_text() == "released"


@pytest.fixture
def cluster() -> Iterator[Any]:
    with two_workers() as made:
        yield made


@pytest.mark.filterwarnings("ignore")
def test_a_dask_worker_killed_in_its_work_loses_nothing_and_draws_nothing_twice(tmp_path: Path, cluster: Any) -> None:
    distributed: Any = pytest.importorskip("distributed")
    source, key = folder_of(tmp_path, files=24, rows=20_000), ReleaseKey()
    expected = tmp_path / "expected"
    options: dict[str, Any] = {"key": key, "key_columns": ["file", "id"]}
    apply_files(source, expected, {"age": AGE}, **options)
    killed: list[int] = []

    def kill_one(_: pg.Progress) -> None:
        if not killed:
            with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
                pids = client.run(os.getpid)
            killed.append(min(pids.values()))
            os.kill(killed[0], signal.SIGKILL)

    manifest = apply_files(
        source, tmp_path / "out", {"age": AGE}, scheduler=cluster.scheduler_address, progress=kill_one, **options
    )
    assert len(killed) == 1
    assert manifest.rows_in == 24 * 20_000
    made, wanted = contents(tmp_path / "out"), contents(expected)
    assert sorted(made) == sorted(wanted)
    assert all(made[name].equals(wanted[name]) for name in wanted)


@pytest.mark.filterwarnings("ignore")
def test_two_runs_on_one_cluster_do_not_take_each_other_s_files(tmp_path: Path, cluster: Any) -> None:
    """Files of the same names in two folders, at the same time."""
    rows = {"one": 50_000, "other": 5_000}
    for name, count in rows.items():
        folder_of(tmp_path / name, files=6, rows=count)

    def run(name: str) -> pg.tables.Manifest:
        folder = tmp_path / name
        return apply_files(folder / "in", folder / "out", {"age": AGE}, scheduler=cluster.scheduler_address)

    with ThreadPoolExecutor(2) as pool:
        manifests = dict(zip(rows, pool.map(run, rows), strict=True))
    for name, count in rows.items():
        assert manifests[name].rows_in == 6 * count
        assert [table.num_rows for table in contents(tmp_path / name / "out").values()] == [count] * 6


def test_several_processes_give_what_one_gives(tmp_path: Path) -> None:
    source = folder_of(tmp_path)
    options: dict[str, Any] = {"key": ReleaseKey(), "key_columns": ["file", "id"]}
    apply_files(source, tmp_path / "one", {"age": AGE}, **options)
    apply_files(source, tmp_path / "two", {"age": AGE}, jobs=2, **options)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_what_cannot_be_done_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    ages(50).to_csv(tmp_path / "in.csv", index=False)
    (tmp_path / "there.csv").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.csv").write_text("")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no table PAR1")
    rules: dict[Any, Any] = {"age": AGE}
    for source, out, options, message in (
        ("none.csv", "o.csv", {}, "no such file"),
        ("in.csv", "there.csv", {}, "exists already"),
        ("in.csv", "o.parquet", {}, "must end alike"),
        ("in.csv", "none/o.csv", {}, "there is no folder"),
        ("empty", "o", {}, "no files that end in .csv"),
        ("empty", "empty/o", {}, "cannot be inside"),
        ("text.csv", "o.csv", {}, "must name the columns"),
        ("bad.parquet", "o.parquet", {}, "damaged"),
        ("in.csv", "o.csv", {"user": "who", "per_unit_limit": 0.5}, "above per_unit_limit"),
        ("in.csv", "o.csv", {"key_columns": "who"}, "do not tell"),
        ("in.csv", "o.csv", {"user": "who", "repeat": "same"}, "needs a key"),
    ):
        before = names_in(tmp_path)
        with pytest.raises(pg.PrivacyGamesError, match=message):
            apply_files(tmp_path / source, tmp_path / out, rules, **options)
        assert names_in(tmp_path) == before


def test_two_runs_do_not_write_one_output(tmp_path: Path) -> None:
    ages(10).to_csv(tmp_path / "in.csv", index=False)
    with file_lock(tmp_path / ".out.csv.lock") as ours:
        assert ours
        with pytest.raises(pg.InvalidProblem, match="another process"):
            apply_files(tmp_path / "in.csv", tmp_path / "out.csv", {"age": AGE})
    apply_files(tmp_path / "in.csv", tmp_path / "out.csv", {"age": AGE})


def test_files_of_a_folder_must_be_alike(tmp_path: Path) -> None:
    source = folder_of(tmp_path, files=2)
    ages(5).assign(file=9, more=1).to_parquet(source / "9.parquet")
    with pytest.raises(pg.InvalidProblem, match="other columns than"):
        apply_files(source, tmp_path / "out", {"age": AGE})


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak memory is read from /proc")
def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Ten times the rows, hardly more memory: measured in processes of their own."""
    code = (
        "import re, sys\nfrom pathlib import Path\n"
        "from privacygames import load\nfrom privacygames.tables import apply_files\n"
        "apply_files(sys.argv[1], sys.argv[2], {'age': load('age.pgm')})\n"
        # Not ru_maxrss: it starts from what the process that started this one had.
        "print(re.search(r'VmHWM:\\s*(\\d+)', Path('/proc/self/status').read_text())[1])"
    )
    AGE.save(tmp_path / "age.pgm")
    peaks = []
    for rows in (400_000, 4_000_000):
        pq.write_table(
            pa.table({"age": np.full(rows, 25), "n": np.arange(rows)}),
            tmp_path / f"{rows}.parquet",
            row_group_size=100_000,
        )
        command = [sys.executable, "-c", code, f"{rows}.parquet", f"out-{rows}.parquet"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout) * 1024)
    assert peaks[1] - peaks[0] < 3_600_000 * 16  # less than the rows themselves would take
