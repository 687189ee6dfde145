"""Every command as a user runs it, wrong input included."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROBLEM = """
[space]
kind = "grid"
columns = 3
rows = 2

[prior]
counts = { cell-0 = 5, cell-1 = 2, cell-4 = 3 }

[problem]
cost = "hamming"
distance = "euclidean"

[bounds]
epsilon = 1.0
distortion = 0.5
"""


def run(*arguments: object, stdin: str = "", folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "privacygames", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, input=stdin, cwd=folder, check=False)


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    path = tmp_path / "problem.toml"
    path.write_text(PROBLEM)
    return path


@pytest.fixture
def mechanism(tmp_path: Path, problem: Path) -> Path:
    done = run("design", problem, "--out", tmp_path / "home.pgm")
    assert done.returncode == 0, done.stderr
    return tmp_path / "home.pgm"


def test_demo_prints_a_report_and_writes_a_figure(tmp_path: Path) -> None:
    done = run("demo", "--figure", tmp_path / "new" / "demo.png")
    assert done.returncode == 0, done.stderr
    for expected in (
        "asked for",
        "cost, average",
        "optimal attack",
        "Bayesian attack",
        "realised epsilon",
        "synthetic",
    ):
        assert expected in done.stdout
    assert (tmp_path / "new" / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_demo_as_json() -> None:
    printed = json.loads(run("demo", "--json").stdout)
    assert printed["report"]["distortion"] >= 1.2 - 1e-9
    assert printed["certificate"]["gap"] < 1e-6


def test_design_says_what_it_promises(tmp_path: Path, problem: Path) -> None:
    done = run("design", problem, "--out", tmp_path / "m.pgm", "--json")
    certificate = json.loads(done.stdout)["certificate"]
    assert certificate["bounds"]["epsilon"] == 1.0
    assert certificate["bounds"]["distortion"] == 0.5
    assert certificate["cost"] >= certificate["bound"]


def test_options_replace_the_bounds_of_the_file(tmp_path: Path, problem: Path) -> None:
    done = run("design", problem, "--out", tmp_path / "m.pgm", "--epsilon", 2.5, "--worst-case", "--json")
    bounds = json.loads(done.stdout)["certificate"]["bounds"]
    assert bounds["epsilon"] == 2.5
    assert bounds["worst_case"] is True


def test_an_existing_file_is_not_replaced_unasked(mechanism: Path, problem: Path) -> None:
    before = mechanism.read_bytes()
    done = run("design", problem, "--out", mechanism, "--epsilon", 2.0)
    assert done.returncode == 3
    assert "--force" in done.stderr
    assert mechanism.read_bytes() == before
    assert run("design", problem, "--out", mechanism, "--epsilon", 2.0, "--force").returncode == 0
    assert mechanism.read_bytes() != before


def test_sample_from_an_argument_and_from_standard_input(mechanism: Path) -> None:
    done = run("sample", mechanism, "cell-0", "--count", 5)
    assert len(done.stdout.split()) == 5
    assert all(re.fullmatch(r"cell-[0-5]", label) for label in done.stdout.split())
    done = run("sample", mechanism, "--json", stdin="cell-0\ncell-4\n")
    assert len(json.loads(done.stdout)["answers"]) == 2
    assert run("sample", mechanism).stdout == ""
    for arguments in (("-3",), ("--hideout",), ("cell-0", "hideout")):
        done = run("sample", mechanism, *arguments)
        assert done.returncode == 3
        assert "hideout" not in done.stderr
        assert "-3" not in done.stderr


def test_an_unknown_secret_is_refused_and_not_repeated(mechanism: Path) -> None:
    for done in (run("sample", mechanism, "my-hideout"), run("sample", mechanism, stdin="my-hideout\n")):
        assert done.returncode == 3
        assert "not one of the 6 labels" in done.stderr
        assert "hideout" not in done.stderr + done.stdout


@pytest.mark.parametrize("kind", ["optimal", "bayesian", "uniform", "minmax", "minmax-pairs"])
def test_attack(mechanism: Path, kind: str) -> None:
    done = run("attack", mechanism, "--kind", kind)
    assert done.returncode == 0, done.stderr
    assert f"The {kind} attack errs by" in done.stdout
    printed = json.loads(run("attack", mechanism, "--kind", kind, "--json").stdout)
    assert sum(row["probability"] for row in printed["estimates"]) == pytest.approx(1.0)
    assert printed["distortion"] >= 0.5 - 1e-9


def test_evaluate_with_another_adversary(mechanism: Path, tmp_path: Path) -> None:
    plain = json.loads(run("evaluate", mechanism, "--json", "--within", 1).stdout)
    assert plain["epsilon"] <= 1 + 1e-9
    assert plain["epsilon_within"] <= 1 + 1e-9
    other = tmp_path / "other.toml"
    other.write_text(PROBLEM.replace("cell-0 = 5", "cell-0 = 500"))
    known = json.loads(run("evaluate", mechanism, "--json", "--adversary", other).stdout)
    assert known["prior_entropy"] < plain["prior_entropy"]
    assert "realised epsilon" in run("evaluate", mechanism).stdout
    assert run("attack", mechanism, "--adversary", other).returncode == 0
    assert run("attack", mechanism, "--kind", "minmax", "--adversary", other).returncode == 3


def test_verify_and_its_exit_status(mechanism: Path) -> None:
    done = run("verify", mechanism)
    assert done.returncode == 0
    assert "every promise holds" in done.stdout
    assert json.loads(run("verify", mechanism, "--json").stdout)["bounds"]["epsilon"] == 1.0
    content = bytearray(mechanism.read_bytes())
    content[-1] ^= 1
    mechanism.write_bytes(content)
    done = run("verify", mechanism)
    assert done.returncode == 7
    assert "does not match its checksum" in done.stderr


def test_infeasible_bounds_say_the_limit(tmp_path: Path, problem: Path) -> None:
    done = run("design", problem, "--out", tmp_path / "m.pgm", "--distortion", 9, "--json")
    assert done.returncode == 4
    error = json.loads(done.stderr)["error"]
    assert error["kind"] == "Infeasible"
    assert 0 < error["limit"] < 9
    assert list(tmp_path.glob("*.pgm")) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('kind = "grid"', 'kind = "sphere"', "needs a kind: one of grid, numbers"),
        ("columns = 3", "columns = 0", "at least 1 each"),
        ("columns = 3", "colums = 3", "has no key 'colums'"),
        ("[bounds]", "[bound]", "has no key 'bound'"),
        ("epsilon = 1.0", "epsilon = -1.0", "epsilon is -1.0"),
        ("epsilon = 1.0", "epsilon = nan", "epsilon is nan"),
        ("epsilon = 1.0", 'epsilon = "one"', "must be a positive number"),
        ('cost = "hamming"', 'cost = "taxi"', "knows no distance 'taxi'"),
        ("counts = {", "weights = {", "[prior] weights must be a list"),
        ("counts = {", "uniform = true\ncounts = {", "exactly one of"),
        ("counts = {", "csv = 5\ncount = {", "[prior] csv must be a text"),
        ("columns = 3", "columns = [3]", "[space] columns must be a whole number"),
        ("rows = 2", 'rows = 2\nwidth = "x"', "[space] width must be a number"),
        ("cell-0 = 5", "cell-9 = 5", "not one of the 6 labels"),
        ("cell-0 = 5", "cell-0 = -5", "negative"),
        ("rows = 2", "rows = 2\nbox = [1, 2]", "box must be"),
        ("[space]", "[space", "not valid TOML"),
    ],
)
def test_mistakes_in_the_problem_file(tmp_path: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "p.toml").write_text(PROBLEM.replace(old, new))
    done = run("design", "p.toml", "--out", "m.pgm", folder=tmp_path)
    assert done.returncode == 3
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "m.pgm").exists()


def test_files_that_are_not_there(tmp_path: Path, problem: Path) -> None:
    done = run("design", tmp_path / "none.toml", "--out", tmp_path / "m.pgm")
    assert done.returncode == 3
    assert "cannot be read" in done.stderr
    assert run("verify", tmp_path / "none.pgm").returncode == 7
    assert run("sample", problem, "cell-0").returncode == 7
    assert run("design", problem, "--out", tmp_path / "no" / "folder.pgm").returncode == 3


def test_wrong_usage() -> None:
    assert run("design").returncode == 2
    assert run("nonsense").returncode == 2
    assert run("sample", "x", "--count", 0).returncode == 2


def test_every_command_helps_and_is_documented() -> None:
    shown = run("--help").stdout
    commands = re.findall(r"^│ (\w+)  +\w", shown, flags=re.MULTILINE)
    assert set(commands) >= {"demo", "design", "sample", "attack", "evaluate", "verify"}
    documented = (Path(__file__).parents[2] / "docs" / "reference" / "commands.md").read_text()
    for command in commands:
        done = run(command, "--help")
        assert done.returncode == 0
        assert "Exit status" in done.stdout
        assert f"privacygames {command}" in documented
    assert re.fullmatch(r"privacygames \d+\.\d+\.\d+\n", run("--version").stdout)


def test_interrupting_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(
        '[space]\nkind = "grid"\ncolumns = 20\nrows = 15\n[prior]\nuniform = true\n'
        '[problem]\ncost = "euclidean"\n[bounds]\nepsilon = 1.0\n'
    )
    command = [sys.executable, "-m", "privacygames", "design", "p.toml", "--out", "m.pgm"]
    started = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    time.sleep(4)
    started.send_signal(signal.SIGINT)
    _, printed = started.communicate(timeout=20)
    assert started.returncode == 130
    assert "interrupted" in printed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.toml"]
