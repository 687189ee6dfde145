"""``privacygames study`` as a user runs it."""

import csv
import dataclasses
import json
import signal
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import privacygames as pg
from privacygames.cli.app import app
from privacygames.cli.study import progress_bar
from privacygames.cli.study_input import Input, people_from
from privacygames_study import Person
from waiting import GUARD, wait_until

CITY = ["--columns", "4", "--rows", "3", "--width", "8", "--height", "6"]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "privacygames", "study", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def counts(tmp_path: Path) -> Path:
    path = tmp_path / "counts.csv"
    cells = {"ann": {0: 30, 1: 12, 5: 20, 11: 4}, "bob": {3: 9, 4: 9, 6: 2}, "cat": {2: 50, 7: 30, 9: 10, 0: 20}}
    rows = [f"{user},{cell},{seen}" for user, places in cells.items() for cell, seen in places.items()]
    path.write_text("user,cell,visits\n" + "\n".join(rows) + "\n")
    return path


def rows_of(folder: Path, table: str) -> list[dict[str, str]]:
    with (folder / "tables" / f"{table}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_the_quick_study_of_invented_people_runs_through(tmp_path: Path) -> None:
    done = run("--quick", "--out", tmp_path / "city")
    assert done.returncode == 0, done.stderr
    assert "synthetic city: 3 users, 8 × 6 cells" in done.stdout
    folder = tmp_path / "city"
    assert len(rows_of(folder, "scenario-1")) == 3 * 3 * 3
    assert len(rows_of(folder, "claims")) == 41
    verdicts = {row["claim"]: row["verdict"] for row in rows_of(folder, "claims")}
    for theorem in (
        "optimal-stronger",
        "distortion-cheaper",
        "joint-as-differential",
        "joint-at-least-both",
        "robust-kept",
    ):
        assert verdicts[theorem] == "holds"
    assert {row["status"] for name in ("scenario-2", "scenario-3") for row in rows_of(folder, name)} == {"done"}
    about = json.loads((folder / "study.json").read_text())
    assert (about["quick"], about["failed"], about["users"]) == (True, 0, 3)
    assert "<html" in (folder / "report.html").read_text()
    pictures = {path.stem for path in (folder / "figures").glob("*.png")}
    assert len(pictures) >= 10
    assert pictures == {path.stem for path in (folder / "figures").glob("*.pdf")}


@pytest.mark.slow
def test_counts_of_named_users_and_going_on(tmp_path: Path, counts: Path) -> None:
    given = ("--data", counts, "--format", "counts", "--users", "ann,cat", *CITY, "--jobs", 1, "--quick")
    options = (*given, "--out", tmp_path / "out", "--json")
    first = json.loads(run(*options, "--only", "scenario-1").stdout)
    known = len(list((tmp_path / "out" / "cells").iterdir()))
    assert first["designed"] == known > 0
    assert len(rows_of(tmp_path / "out", "scenario-1")) == 2 * 3 * 3
    assert [row["visits"] for row in rows_of(tmp_path / "out", "users")] == ["110", "66"]
    text = "".join(path.read_text() for path in (tmp_path / "out").rglob("*") if path.suffix in (".csv", ".json"))
    assert not any(name in text for name in ("ann", "cat,"))
    more = json.loads(run(*options, "--only", "scenario-1,prior", "--epsilons", "0.3,0.6,0.9,1.2").stdout)
    assert more["designed"] == len(list((tmp_path / "out" / "cells").iterdir())) - known == 2 * 2


def test_an_interrupted_study_says_how_to_go_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "privacygames", "study", "--users", "2", "--jobs", "2", "--out", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: list(tmp_path.glob("cells/*.json")) or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=GUARD)
    assert process.returncode == 130
    assert "run the same command again to resume" in complaint
    assert "Traceback" not in complaint
    assert list(tmp_path.glob("cells/*.json"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--only", "scenario-9"), "--only takes scenario-1"),
        (("--epsilons", "0.3;0.6"), "--epsilons takes numbers"),
        (("--epsilons", "-1"), "positive"),
        (("--users", "0"), "--users must be 1 or more"),
        (("--users", "ann,bob"), "names go with --data"),
        (("--window", "1,2,3"), "four numbers"),
        (("--jobs", "0"), "jobs is 0"),
        (("--users", ","), "--users must be 1 or more"),
        (("--format", "geolife"), "--format says how to read --data"),
        (
            ("--data", "x", "--format", "table", "--window", "5,52,6,53", "--width", "3"),
            "--width and --height are for counts",
        ),
        (("--data", "x", "--format", "counts", "--window", "5,52,6,53", "--height", "3"), "are for counts without"),
        (("--data", "x", "--format", "gpx", "--window", "5,52,6,53", "--fields", "user=u"), "--fields goes with"),
        (("--data", "x", "--format", "table", "--window", "5,52,6,53", "--fields", "user"), "--fields takes user=NAME"),
        (("--data", "nowhere", "--format", "geolife"), "--window"),
        (("--data", "nowhere", "--format", "xml", "--window", "5,52,6,53"), "no format 'xml'"),
        (("--slot", "300"), "--slot says how times are read"),
        (("--timezone", "Europe/Zurich"), "--timezone says how times are read"),
        (("--data", "x", "--format", "counts", "--slot", "300"), "--slot says how times are read"),
        (("--cells", "3"), "--cells selects among the busiest people"),
        (("--columns", "1", "--rows", "1"), "nothing to hide"),
    ],
)
def test_wrong_options_are_explained(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    done = CliRunner().invoke(app, ["study", "--quick", "--out", str(tmp_path / "out"), *options])
    assert done.exit_code == 3, done.stderr
    assert message in done.stderr
    assert not (tmp_path / "out").exists()


def test_data_that_is_not_there_is_file_trouble(tmp_path: Path) -> None:
    given = ["--data", "nowhere", "--format", "geolife", "--window", "5,52,6,53", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, ["study", "--quick", *given])
    assert done.exit_code == 8
    assert "nowhere cannot be read" in done.stderr
    assert CliRunner().invoke(app, ["study", "--slot", "-5", "--out", str(tmp_path / "out")]).exit_code == 2


def test_traces_are_read_in_their_formats(tmp_path: Path) -> None:
    lines = ["uid,datetime,lat,lng"]
    for day in range(1, 25):
        for hour, (latitude, longitude) in enumerate([(52.06, 5.02), (52.11, 5.2), (52.09, 5.1)]):
            lines.append(f"u{day % 2},2024-03-{day:02} {8 + hour:02}:00:00,{latitude},{longitude}")
    path = tmp_path / "fixes.csv"
    path.write_text("\n".join(lines))
    options = ("--data", path, "--window", "5.0105,52.0541,5.2301,52.126", "--cells", 3, "--only", "scenario-1")
    done = run(*options, "--quick", *CITY[:4], "--jobs", 1, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "Visits(72 visits of 2 users, 72 rows read as table)" in done.stderr
    assert [row["visits"] for row in rows_of(tmp_path / "out", "users")] == ["36", "36"]


@pytest.mark.slow
def test_a_table_calls_its_columns_as_it_likes(tmp_path: Path) -> None:
    path = tmp_path / "fixes.csv"
    lines = [f"ann,2024-03-01 {hour:02}:00:00,52.0{6 + hour % 4},5.{2 * hour % 19:02}" for hour in range(24)]
    path.write_text("\n".join(["who,when,lat,lng", *lines]))
    given = ("--data", path, "--window", "5,52,5.3,52.2", "--only", "scenario-1", "--epsilons", 0.6, "--quick")
    options = (*given, "--columns", 3, "--rows", 2, "--jobs", 1, "--out", tmp_path / "out")
    assert "no column for the user" in run(*options).stderr
    unknown = run(*options, "--fields", "user=who,time=when", "--users", "ann,bob")
    assert "of the 2 users selected, 1 have no visit" in unknown.stderr
    assert "bob" not in unknown.stderr
    done = run(*options, "--fields", "user=who,time=when", "--users", "10", "--cells", 2)
    assert done.returncode == 0, done.stderr
    assert "Visits(24 visits of 1 users, 24 rows read as table)" in done.stderr


def test_the_manifest_tells_the_command_without_names_paths_and_addresses(
    counts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privacygames_study.executor_for", lambda _jobs, _scheduler: None)
    given = ["--data", str(counts), "--format", "counts", "--users", "ann,cat", *CITY, "--only", "scenario-1"]
    secret = ["--scheduler", "tcp://10.0.0.1:8786", "-o", str(tmp_path / "out"), "--epsilons", "0.6", "--quick"]
    done = CliRunner().invoke(app, ["study", *given, *secret])
    assert done.exit_code == 0, done.output
    text = (tmp_path / "out" / "study.json").read_text()
    about = json.loads(text)
    assert about["command"] == (
        "privacygames study --out OUT --data DATA --format counts --width 8.0 --height 6.0 --users NAME,NAME "
        "--columns 4 --rows 3 --epsilons 0.6 --only scenario-1 --scheduler ADDRESS --quick"
    )
    assert about["data_sha256"] == sha256(counts.read_bytes()).hexdigest()
    for told in ("ann", "10.0.0.1", str(tmp_path)):
        assert told not in text
    page = (tmp_path / "out" / "report.html").read_text()
    assert about["data_sha256"] in page
    assert about["processor"] in page
    assert str(tmp_path) not in page


def people(**given: Any) -> list[Person]:
    plain: dict[str, Any] = dict.fromkeys(field.name for field in dataclasses.fields(Input))
    usual: dict[str, Any] = {"size": (None, None), "grid": (None, None), "quick": True}
    return people_from(Input(**(plain | usual | given)), lambda _: None, lambda _: None)


def test_as_many_people_as_asked_for() -> None:
    assert [len(people(users=users)) for users in (None, "2", "5")] == [3, 2, 5]


def test_invented_people_live_in_the_window_asked_for() -> None:
    window = (6.0, 46.0, 6.2, 46.1)
    space = people(window=window)[0].prior.space
    assert isinstance(space, pg.Grid)
    assert space.box == window


def test_counts_take_their_size_from_the_window_or_as_given(counts: Path) -> None:
    window = (5.0, 52.0, 5.1, 52.1)
    grid = pg.Grid.over(window, columns=8, rows=6)
    asked: dict[tuple[float, float], dict[str, Any]] = {
        (grid.width, grid.height): {"window": window},
        (3.0, 8.0): {"size": (3.0, None)},
        (15.0, 8.0): {},
    }
    for size, given in asked.items():
        space = people(data=counts, format="counts", cells=1, **given)[0].prior.space
        assert isinstance(space, pg.Grid)
        assert (space.width, space.height) == size


def test_trouble_with_files_is_json_too(counts: Path) -> None:
    done = run("--quick", "--json", "--out", counts)
    assert done.returncode == 8
    assert json.loads(done.stderr)["error"]["kind"] == "OSError"


def test_the_time_left_is_told_where_a_design_takes_minutes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = [0.0]
    monkeypatch.setattr("rich.console.monotonic", lambda: clock[0])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress_bar() as tick:
        for done in (4, 5, 6):
            clock[0] += 100.0
            tick(pg.Progress(job="study", done=done, total=8))
    assert "0:03:20" in capsys.readouterr().err


def test_help_tells_what_is_taken_where_nothing_is_said() -> None:
    shown = " ".join(CliRunner().invoke(app, ["study", "--help"]).output.split())
    for default in ("(detected)", "(20; quick: 8)", "(one per core)"):
        assert f"default: {default}" in shown
