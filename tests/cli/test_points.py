"""The commands on mechanisms whose secrets are points, as a user runs them, wrong input included."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import privacygames as pg

TOWN = """
[space]
kind = "area"
box = [6.55, 46.50, 6.68, 46.56]

[prior]
points = [[6.58, 46.52], [6.63, 46.52], [6.63, 46.54]]
weights = [3, 2, 1]

[observables]
columns = 3
rows = 2

[mesh]
columns = 3
rows = 2
degree = 2

[bounds]
epsilon = 0.5
"""

PLAIN = """
[space]
kind = "area"
width = 3.0
height = 2.0
[prior]
points = [[0.5, 0.5], [2.5, 1.25]]
[observables]
points = [[0.5, 0.5], [2.5, 1.25]]
labels = ["home", "work"]
[bounds]
epsilon = 1.0
distortion = 0.3
[[adversary]]
name = "weekday"
share = 0.5
prior = { points = [[2.5, 1.25], [0.6, 0.6]] }
"""

HOURS = """
[space]
kind = "interval"
low = 0
high = 24
unit = "hours"
[prior]
points = [8.5, 17.25]
[observables]
count = 9
[bounds]
epsilon = 0.5
"""

GRID = """
[space]
kind = "grid"
columns = 3
rows = 2
[prior]
uniform = true
[bounds]
epsilon = 1.0
"""


def run(*arguments: object, stdin: str = "", folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "privacygames", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, input=stdin, cwd=folder, check=False)
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with problem files and the mechanisms that the command designs for them."""
    place = tmp_path_factory.mktemp("points")
    for name, text in (("town", TOWN), ("plain", PLAIN), ("hours", HOURS), ("grid", GRID)):
        (place / f"{name}.toml").write_text(text)
        done = run("design", f"{name}.toml", "--out", f"{name}.pgm", folder=place)
        assert done.returncode == 0, done.stderr
    town = pg.load(place / "town.pgm", pg.PointMechanism)
    assert isinstance(town, pg.PointMechanism)
    pg.points.PublicPointMechanism.of(town).save(place / "public.pgm")
    return place


def test_design_says_what_holds_between_points(folder: Path) -> None:
    done = run("design", "town.toml", "--out", "other.pgm", "--epsilon", 0.8, folder=folder)
    assert done.returncode == 0  # there is a gap to mechanisms of every form, and the design is optimal on its mesh
    assert re.search(r"guaranteed epsilon +0.8 per km between any two points", done.stdout)
    assert "Wrote other.pgm (private: contains the prior)" in done.stdout
    again = json.loads(run("design", "town.toml", "--out", "third.pgm", "--json", folder=folder).stdout)
    assert again["certificate"]["bounds"]["epsilon"] == 0.5
    assert again["certificate"]["cost"] >= again["certificate"]["bound"]


def test_bounds_of_a_design_come_from_options_too(folder: Path) -> None:
    given = ("design", "plain.toml", "--force", "--out", "options.pgm")
    certificate = json.loads(run(*given, "--against", "weekday=0.1", "--json", folder=folder).stdout)["certificate"]
    assert {each["adversary"]: each["promised"] for each in certificate["against"]} == {
        "the paper's": 0.3,
        "weekday": 0.1,
    }
    for options, status, message in (
        (("--within", 2), 3, "--within is for secrets that are cells or labels"),
        (("--outputs", 1), 3, "--outputs is for secrets that are cells or labels"),
        (("--distortion", 9), 4, "no mechanism can be certified"),
        (("--epsilon", "nan"), 3, "--epsilon"),
        (("--against", "nobody=1"), 3, "there is no adversary called 'nobody'"),
    ):
        done = run(*given, *options, folder=folder)
        assert (done.returncode, message in done.stderr) == (status, True), done.stderr


def test_a_time_limit_ends_a_design_with_what_there_is(folder: Path) -> None:
    done = run("design", "town.toml", "--out", "hasty.pgm", "--time-limit", 1e-6, folder=folder)
    assert done.returncode == 9
    assert "stopped by --time-limit" in done.stderr
    assert run("verify", folder / "hasty.pgm").returncode == 0


def test_verify_with_prior_and_without(folder: Path) -> None:
    for name in ("town", "public"):
        done = run("verify", f"{name}.pgm", folder=folder)
        assert done.returncode == 0
        assert f"{name}.pgm: every guarantee holds" in done.stdout
        assert "0.5 per km between any two points" in done.stdout
    assert "cannot be verified: prior and cost are withheld" in done.stdout
    assert json.loads(run("verify", "public.pgm", "--json", folder=folder).stdout)["epsilon"] == 0.5


@pytest.mark.parametrize("name", ["town", "public"])
def test_sample_takes_and_prints_the_latitude_first(folder: Path, name: str) -> None:
    done = run("sample", f"{name}.pgm", "--at", "46.52,6.58", "--at", "46.54,6.63", "--count", 3, folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 6
    for line in done.stdout.splitlines():
        latitude, longitude = map(float, line.split(","))
        assert (round(latitude, 3), round(longitude, 4)) in [
            (latitude, longitude) for latitude in (46.515, 46.545) for longitude in (6.5717, 6.615, 6.6583)
        ]
    (answer,) = json.loads(run("sample", f"{name}.pgm", "--json", "--at", "46.52,6.58", folder=folder).stdout)[
        "answers"
    ]
    assert set(answer) == {"latitude", "longitude", "label"}
    assert 46.5 < answer["latitude"] < 46.56
    assert answer["label"] in pg.Grid(3, 2).labels


def test_outputs_are_points_to_sample_at(folder: Path) -> None:
    first = run("sample", "town.pgm", "--at", "46.52,6.58", folder=folder).stdout.strip()
    assert run("sample", "town.pgm", "--at", first, folder=folder).returncode == 0


def test_plain_kilometres_and_numbers(folder: Path) -> None:
    assert run("sample", "plain.pgm", "--at", "0.5,0.5", folder=folder).stdout in ("0.5,0.5\n", "2.5,1.25\n")
    done = run("sample", "plain.pgm", "--at", "0.5,0.5", "--json", folder=folder)
    assert json.loads(done.stdout)["answers"][0] in (
        {"x": 0.5, "y": 0.5, "label": "home"},
        {"x": 2.5, "y": 1.25, "label": "work"},
    )
    assert float(run("sample", "hours.pgm", "--at", 8.5, folder=folder).stdout) in [3.0 * step for step in range(9)]


def test_lines_of_standard_input_are_points(folder: Path) -> None:
    given = "46.52,6.58\n\n  46.54 , 6.63  \n46.55,6.6"
    done = run("sample", "town.pgm", stdin=given, folder=folder)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 3)
    given = "46.52,6.58\nhideout\n6.58,46.52\n46.54,6.63\n"
    stopped = run("sample", "town.pgm", stdin=given, folder=folder)
    assert (stopped.returncode, len(stopped.stdout.splitlines())) == (3, 1)
    assert "line 2: it is not LATITUDE,LONGITUDE" in stopped.stderr
    skipped = run("sample", "town.pgm", "--on-error", "skip", stdin=given, folder=folder)
    assert (skipped.returncode, len(skipped.stdout.splitlines())) == (0, 2)
    assert "warning: line 3: it lies outside the area, and inside with both numbers swapped" in skipped.stderr
    assert not re.search(r"hideout|6\.58|46\.52", stopped.stderr + skipped.stderr)


@pytest.mark.parametrize(
    ("name", "point", "message"),
    [
        ("town", "6.58,46.52", "inside with both numbers swapped"),
        ("town", "nan,6.58", "it is not LATITUDE,LONGITUDE: two numbers of degrees"),
        ("town", "inf,6.58", "it is not LATITUDE,LONGITUDE"),
        ("town", "hideout", "it is not LATITUDE,LONGITUDE"),
        ("town", "46.52", "it is not LATITUDE,LONGITUDE"),
        ("town", "46.52,6.58,370", "it is not LATITUDE,LONGITUDE"),
        ("town", "46.52 6.58", "it is not LATITUDE,LONGITUDE"),
        ("town", "", "it is not LATITUDE,LONGITUDE"),
        ("town", "91,6.58", "it is not on the Earth"),
        ("town", "46.52,181", "it is not on the Earth"),
        ("plain", "0.5", "it is not X,Y: two numbers of kilometres"),
        ("plain", "0.5,nan", "it is not X,Y"),
        ("hours", "8,5", "it is not one number of hours"),
        ("hours", "noon", "it is not one number of hours"),
        ("grid", "46.52,6.58", "--at is for mechanisms whose secrets are points"),
    ],
)
def test_wrong_points_are_refused_and_not_repeated(folder: Path, name: str, point: str, message: str) -> None:
    done = run("sample", f"{name}.pgm", "--at", point, folder=folder)
    assert (done.returncode, done.stdout) == (3, "")
    assert message in done.stderr
    said = done.stderr.replace("39.9,116.4", "").replace("1.5,0.7", "")
    assert not any(part and part in said for part in point.split(",") if part not in ("8", "5"))


def test_a_point_outside_is_moved_and_only_its_number_is_said(folder: Path) -> None:
    done = run("sample", "town.pgm", "--at", "-33.87,151.21", "--at", "46.52,6.58", folder=folder)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2)
    assert done.stderr == "warning: 1 of the points lay outside the region, and were moved to its nearest point\n"


def test_labels_are_no_points_and_points_no_labels(folder: Path) -> None:
    for label in ("cell-3", "-3", "46.52,6.58"):
        done = run("sample", "town.pgm", label, folder=folder)
        assert done.returncode == 3
        assert "the secrets of this mechanism are points, not cells or labels" in done.stderr
        assert label not in done.stderr


def test_files_that_cannot_be_read(folder: Path) -> None:
    (folder / "short.pgm").write_bytes((folder / "town.pgm").read_bytes()[:-100])
    for command in (("sample", "--at", "46.52,6.58"), ("verify",), ("attack",), ("evaluate",)):
        name, *options = command
        assert run(name, "none.pgm", *options, folder=folder).returncode == 8
        done = run(name, "short.pgm", *options, folder=folder)
        assert (done.returncode, "truncated" in done.stderr) == (7, True)


def test_the_optimal_attack_guesses_any_point(folder: Path) -> None:
    printed: dict[str, Any] = json.loads(run("attack", "town.pgm", "--json", folder=folder).stdout)
    town = pg.load(folder / "town.pgm", pg.PointMechanism)
    assert isinstance(town, pg.PointMechanism)
    assert printed["distortion"] == pytest.approx(town.certificate.verification.distortion, rel=1e-9)
    assert printed["proved"] <= printed["distortion"]
    assert sum(row["probability"] for row in printed["estimates"]) == pytest.approx(1.0)
    assert set(printed["estimates"][0]["estimate"]) == {"latitude", "longitude"}
    shown = run("attack", "town.pgm", "--rows", 2, folder=folder).stdout
    assert "The optimal attack errs by" in shown
    assert "km on average" in shown
    assert "4 more outputs" in shown


def test_an_attack_by_others(folder: Path) -> None:
    certificate = json.loads(run("verify", "plain.pgm", "--json", folder=folder).stdout)
    realised = {each["adversary"]: each["realised"] for each in certificate["against"]}
    printed = json.loads(run("attack", "plain.pgm", "--against", "weekday", "--json", folder=folder).stdout)
    assert printed["distortion"] == pytest.approx(realised["weekday"], rel=1e-9)
    (folder / "knows.toml").write_text(PLAIN.replace("[[0.5, 0.5], [2.5, 1.25]]\n[obs", "[[0.5, 0.5]]\n[obs"))
    sure = json.loads(run("attack", "plain.pgm", "--adversary", "knows.toml", "--json", folder=folder).stdout)
    assert sure["distortion"] == pytest.approx(0.0, abs=1e-12)
    for options, message in (
        (("--kind", "minmax"), "on one for points there is --kind optimal"),
        (("--adversary", "grid.toml"), "the secrets of grid.toml are cells or labels, and the mechanism's are points"),
        (("--adversary", "hours.toml"), "[prior]"),
        (("--against", "nobody"), "there is no adversary called 'nobody'"),
    ):
        done = run("attack", "plain.pgm", *options, folder=folder)
        assert (done.returncode, message in done.stderr) == (3, True), done.stderr
    done = run("attack", "grid.pgm", "--adversary", "plain.toml", folder=folder)
    assert (done.returncode, "[space] is a region of points" in done.stderr) == (3, True)


@pytest.mark.parametrize(
    "command",
    [
        ("evaluate", "town.pgm", "--within", "2"),
        ("evaluate", "town.pgm", "--adversary", "grid.toml"),
        ("evaluate", "grid.pgm", "--adversary", "town.toml"),
        ("compare", "town.toml", "--distortion", "0.1"),
        ("compare", "grid.toml", "--epsilon", "1", "--minimum-distance", "1"),
        ("compare", "grid.toml", "--file", "town.pgm", "--mechanism", "uniform"),
        ("find", "town.toml", "epsilon", "--cost-at-most", "1"),
    ],
    ids=" ".join,
)
def test_commands_for_labels_say_so(folder: Path, command: tuple[str, ...]) -> None:
    done = run(*command, folder=folder)
    assert done.returncode == 3
    assert re.search(r"cells or labels", done.stderr)
    assert not (folder / "ledger").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[6.58, 46.52]", "[46.52, 6.58]", "[prior] 1 of 3 points lie outside the region"),
        ("[[6.58, 46.52], [6.63, 46.52], [6.63, 46.54]]", "[[46.52, 6.58]]", "longitude and latitude swapped"),
        ("[6.58, 46.52]", "[6.58, nan]", "[prior] 1 of the points are not finite numbers"),
        ("[6.58, 46.52]", "[6.58, 46.52, 370]", "[prior] the points"),
        ("weights = [3, 2, 1]", "weights = [3, 2]", "[prior] the list of weights has shape (2,)"),
        ("columns = 3\nrows = 2\n\n[mesh]", "columns = 3\n\n[mesh]", "[observables] says what may be released"),
        ("[mesh]", "[mash]", "has no key 'mash'"),
        ("degree = 2", "degree = 0", "[mesh] the degree of a mesh"),
        ("epsilon = 0.5", "epsilon = -1", "p.toml, [bounds] epsilon is -1"),
        ('"area"', '"areas"', "[space] needs a kind: one of area, interval"),
        ("[6.55, 46.50, 6.68, 46.56]", "[170, -10, -170, 10]", "[space] the box must be"),
    ],
)
def test_mistakes_in_the_problem_file(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TOWN
    (tmp_path / "p.toml").write_text(TOWN.replace(old, new))
    done = run("design", "p.toml", "--out", "m.pgm", folder=tmp_path)
    assert (done.returncode, message in done.stderr) == (3, True), done.stderr
    assert not re.search(r"46\.52|6\.58", done.stderr)
    assert not (tmp_path / "m.pgm").exists()


PAGES = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", ["how-to/points.md", "reference/problem-file.md"])
def test_the_problem_files_of_the_documents_are_designed(tmp_path: Path, page: str) -> None:
    documents = re.findall(r"```toml\n(.*?)```", (PAGES / page).read_text(), flags=re.DOTALL)
    of_points = [text for text in documents if 'kind = "area"' in text]
    assert of_points
    for text in of_points:
        (tmp_path / "p.toml").write_text(text)
        problem, bounds = pg.read_problem(tmp_path / "p.toml")
        assert isinstance(problem, pg.PointProblem)
        assert pg.design(problem, **bounds).certificate.bounds.epsilon == bounds["epsilon"]


def test_evaluate_measures_with_any_point_as_a_guess(folder: Path) -> None:
    printed = json.loads(run("evaluate", "plain.pgm", "--json", folder=folder).stdout)
    attacked = json.loads(run("attack", "plain.pgm", "--json", folder=folder).stdout)
    assert printed["attack_error"] == pytest.approx(attacked["distortion"], rel=1e-9)
    assert printed["distortion"] <= printed["attack_error"]
    assert (printed["epsilon"], printed["epsilon_counted"]) == (1.0, "per km between any two points")
    assert printed["epsilon_measured"] <= 1.0
    shown = run("evaluate", "plain.pgm", "--against", "weekday", folder=folder).stdout
    assert re.search(r"guaranteed epsilon +1 per km between any two points", shown)
    assert "weekday" in shown
    elsewhere = run("evaluate", "plain.pgm", "--adversary", "plain.toml", "--json", folder=folder).stdout
    assert json.loads(elsewhere)["cost"] == printed["cost"]
    assert "cells or labels" in run("evaluate", "plain.pgm", "--adversary", "grid.toml", folder=folder).stderr


def test_compare_puts_known_mechanisms_beside_the_optimal_one(folder: Path) -> None:
    names = ("--mechanism", "optimal", "--mechanism", "planar-laplace+remap", "--mechanism", "snapped-grid")
    files = ("--csv", "rows.csv", "--figure", "ratios.png")
    done = run("compare", "town.toml", *names, "--minimum-distance", 0.2, *files, folder=folder)
    assert done.returncode == 0, done.stderr
    assert "town.toml, at epsilon 0.5 per km between any two points" in done.stdout
    assert "between points at least 0.2 km apart epsilon is" in done.stdout
    assert len((folder / "rows.csv").read_text().splitlines()) == 4
    mine = run("compare", "hours.toml", "--file", "hours.pgm", "--mechanism", "constant", "--json", folder=folder)
    rows = json.loads(mine.stdout)["rows"]
    assert [row["mechanism"] for row in rows] == ["constant", "hours.pgm"]
    assert rows[1]["cost"] < rows[0]["cost"]
    for options, message in (
        (("--epsilon", 1, "--epsilon", 2), "one --epsilon"),
        (("--file", "plain.pgm", "--mechanism", "constant"), "different regions"),
    ):
        failed = run("compare", "town.toml", *options, folder=folder)
        assert (failed.returncode, message in failed.stderr) == (3, True), failed.stderr
    assert (folder / "ratios.png").stat().st_size > 10_000
