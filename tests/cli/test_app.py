"""Every command as a user runs it, wrong input included."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from privacygames.mechanism_files import load_finite
from waiting import GUARD

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
        "required",
        "between any two points",
        "cost, average",
        "planar-laplace",
        "snapped-grid",
        "synthetic",
    ):
        assert expected in done.stdout
    assert (tmp_path / "new" / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_demo_as_json() -> None:
    printed = json.loads(run("demo", "--json").stdout)
    assert printed["report"]["distortion"] >= 0.9
    assert printed["certificate"]["gap"] < 0.03
    optimal, *others = printed["comparison"]["rows"]
    at_equal_epsilon = [row for row in others if row["epsilon"] == optimal["epsilon"]]
    assert len(at_equal_epsilon) == 3
    assert all(optimal["cost"] < row["cost"] for row in at_equal_epsilon)


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
    assert "every guarantee holds" in done.stdout
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
        ("epsilon = 1.0", "epsilon = -1.0", "p.toml, [bounds] epsilon is -1.0"),
        ("epsilon = 1.0", "epsilon = nan", "p.toml, [bounds] epsilon is nan"),
        ("distortion = 0.5", "cost_at_most = -1", "[bounds] cost_at_most is -1"),
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
    """A missing file is 8, whatever it should have been, and the message names it; nothing is designed first."""
    for arguments, named in (
        (("design", tmp_path / "none.toml", "--out", tmp_path / "m.pgm"), "none.toml"),
        (("design", problem, "--out", tmp_path / "no" / "folder.pgm"), "folder.pgm"),
        (("design", problem, "--out", tmp_path), str(tmp_path)),
        (("design", problem, "--out", problem / "m.pgm"), "m.pgm"),
        (("verify", tmp_path / "none.pgm"), "none.pgm"),
        (("evaluate", tmp_path / "none.pgm"), "none.pgm"),
        (("sample", tmp_path, "cell-0"), str(tmp_path)),
        (("demo", "--figure", problem / "demo.png"), "demo.png"),
    ):
        done = run(*arguments)
        assert done.returncode == 8, (arguments, done.stderr)
        assert named in done.stderr
        assert "Traceback" not in done.stderr
    assert run("sample", problem, "cell-0").returncode == 7


def test_a_csv_file_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(
        PROBLEM.replace("counts = { cell-0 = 5, cell-1 = 2, cell-4 = 3 }", 'csv = "v.csv"')
    )
    done = run("design", "p.toml", "--out", "m.pgm", folder=tmp_path)
    assert done.returncode == 8
    assert "v.csv cannot be read" in done.stderr


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


LONG = """
[space]
kind = "grid"
columns = 20
rows = 15
[prior]
uniform = true
[problem]
cost = "euclidean"
[bounds]
epsilon = 1.0
"""


HELD_IMPORT = """
print("held", flush=True)
input()
"""

HELD_DESIGN = """
import os
import privacygames as pg
from privacygames.cli import main

solve, parent = pg.Interior.solve, os.getppid()

def endless(*given, **options):
    print("held", flush=True)
    while os.getppid() == parent:  # whatever becomes of the tests, nothing is left running
        solve(*given, **options)

pg.Interior.solve = endless
main()
"""


@pytest.mark.parametrize(
    ("when", "status", "said"), [("importing", -signal.SIGINT, ""), ("at work", 130, "interrupted\n")]
)
def test_interrupting_ends_quietly_and_leaves_nothing(tmp_path: Path, when: str, status: int, said: str) -> None:
    """From the moment our code runs: while libraries are imported the signal itself ends it, later a message does.

    The process says when it is there, and stays there until the signal comes.
    """
    work, stand_ins = tmp_path / "work", tmp_path / "stand-ins"
    for folder in (work, stand_ins):
        folder.mkdir()
    (work / "p.toml").write_text(LONG)
    (stand_ins / "typer.py").write_text(HELD_IMPORT)
    program = ["-m", "privacygames"] if when == "importing" else ["-c", HELD_DESIGN]
    path = [str(stand_ins)] if when == "importing" else []
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([*path, *sys.path])}
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, *program, "design", "p.toml", "--out", "m.pgm"]
    with subprocess.Popen(command, cwd=work, text=True, env=environment, **pipes) as started:
        try:
            assert started.stdout is not None
            assert started.stdout.readline() == "held\n"
            started.send_signal(signal.SIGINT)
            _, printed = started.communicate(timeout=GUARD)
        finally:
            started.kill()  # else the guard would wait for it, too
    assert (started.returncode, printed) == (status, said)
    assert sorted(path.name for path in work.iterdir()) == ["p.toml"]


ON_THE_WAY = """
import os, signal
from privacygames.cli import app, main

def interrupted():
    os.kill(os.getpid(), signal.SIGINT)

app.run = interrupted
main()
"""


def test_between_importing_and_the_command_an_interrupt_is_quiet_too(tmp_path: Path) -> None:
    """While options are read, nobody is there yet to turn an exception into a message."""
    done = subprocess.run([sys.executable, "-c", ON_THE_WAY], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_a_time_limit_has_an_exit_status_and_a_warning_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text(LONG)
    done = run("design", "p.toml", "--out", "m.pgm", "--time-limit", "0.5", folder=tmp_path)
    assert done.returncode == 9
    assert "warning: stopped by --time-limit" in done.stderr
    assert "lower bound on the cost" in done.stdout
    assert run("verify", tmp_path / "m.pgm").returncode == 0


ILLNESSES = """
[space]
kind = "categories"
labels = ["cancer", "flu", "hiv", "none"]
[prior]
weights = [0.08, 0.2, 0.02, 0.7]
[bounds]
epsilon = 1.0
"""


def test_answers_that_say_nothing_are_said_to(tmp_path: Path) -> None:
    """The optimum answers "none" for everybody: a table handed over like this shows nobody ill."""
    (tmp_path / "p.toml").write_text(ILLNESSES)
    done = run("design", "p.toml", "--out", "m.pgm", folder=tmp_path)
    assert done.returncode == 0
    assert "warning: The outputs do not depend on the secret at all" in done.stderr
    assert "What helps: a larger epsilon" in done.stderr
    assert "nothing: the outputs do not depend on the secret" in done.stdout
    for command in ("evaluate", "verify"):
        assert "do not depend on the secret" in run(command, tmp_path / "m.pgm").stdout
    answered = run("sample", tmp_path / "m.pgm", stdin="flu\n")
    assert answered.stdout == "none\n"
    assert "warning: The outputs do not depend" in answered.stderr
    done = run("design", "p.toml", "--out", "m.pgm", "--force", "--epsilon", "1e9", folder=tmp_path)
    assert "warning: The guaranteed epsilon is so large that it limits nothing" in done.stderr


def test_from_positions_to_a_mechanism_in_one_command(tmp_path: Path) -> None:
    rows = [
        f"ann,{1709280000 + 900 * step},{46.50 + 0.01 * (step % 7)},{6.60 + 0.02 * (step % 5)}" for step in range(60)
    ]
    rows += [f"ben,{1709280000 + 900 * step},46.55,6.65" for step in range(5)]
    (tmp_path / "fixes.csv").write_text("\n".join(["user,time,lat,lng", *rows]))
    given = ("--traces", "fixes.csv", "--columns", 4, "--rows", 3, "--out", "ann.pgm", "--epsilon", 0.8)
    done = run("design", *given, folder=tmp_path)
    assert done.returncode == 3
    assert "2 people in fixes.csv: say whose" in done.stderr
    done = run("design", *given, "--user", "ann", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "rows read as table" in done.stderr
    assert "guaranteed epsilon" in done.stdout
    assert "Wrote ann.pgm (private: contains the prior)" in done.stdout
    assert run("verify", tmp_path / "ann.pgm").returncode == 0
    box = load_finite(tmp_path / "ann.pgm").secrets.box  # type: ignore[attr-defined]
    assert box == (6.6, 46.5, 6.7, 46.58)  # lines of the public lattice, not the farthest positions and a margin
    for wrong, message in (
        (("--user", "eve"), "holds no visits"),
        (("--user", "ann", "--window", "1,2,3"), "four numbers"),
        (("--user", "ann", "--columns", 1, "--rows", 1), "nothing to hide"),
        (("--user", "ann", "--cost", "taxi"), "knows no distance 'taxi'"),
    ):
        done = run("design", *given, "--force", *wrong, folder=tmp_path)
        assert done.returncode == 3, done.stderr
        assert message in done.stderr
    (tmp_path / "p.toml").write_text(PROBLEM)
    for options, message in (
        (("--out", "m.pgm"), "give a problem file, or positions"),
        (("p.toml", "--out", "m.pgm", "--user", "ann"), "--user goes with --traces"),
        (("p.toml", "--out", "m.pgm", "--traces", "fixes.csv"), "not both"),
    ):
        done = run("design", *options, folder=tmp_path)
        assert done.returncode == 3
        assert message in done.stderr


def test_samples_are_answered_line_by_line(mechanism: Path) -> None:
    command = [sys.executable, "-m", "privacygames", "sample", str(mechanism)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as asked:
        assert asked.stdin is not None
        assert asked.stdout is not None
        for secret in ("cell-0", "cell-4", "cell-1"):
            asked.stdin.write(f"{secret}\n")
            asked.stdin.flush()
            assert asked.stdout.readline().startswith("cell-")  # before the next one is sent
        asked.stdin.close()
    assert asked.returncode == 0


@pytest.mark.parametrize(
    ("given", "answers"),
    [
        ("\ufeffcell-0\ncell-1\n", 2),
        ("cell-0  \n  cell-1\t\n", 2),
        ("cell-0\n\n   \ncell-1\n\n", 2),
        ("cell-0\r\ncell-1\r\n", 2),
        ("cell-0\ncell-1", 2),
        ("", 0),
        ("\n", 0),
    ],
)
def test_input_as_editors_write_it(mechanism: Path, given: str, answers: int) -> None:
    done = run("sample", mechanism, stdin=given)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == answers


def test_a_line_that_is_no_secret_is_reported_by_its_number(mechanism: Path) -> None:
    given = "cell-0\nnot-a-cell\ncell-1\n"
    stopped = run("sample", mechanism, stdin=given)
    assert stopped.returncode == 3
    assert "line 2:" in stopped.stderr
    assert len(stopped.stdout.splitlines()) == 1
    skipped = run("sample", mechanism, "--on-error", "skip", stdin=given)
    assert skipped.returncode == 0
    assert "warning: line 2:" in skipped.stderr
    assert len(skipped.stdout.splitlines()) == 2
    assert "not-a-cell" not in stopped.stderr + skipped.stderr


@pytest.mark.parametrize(
    "line",
    [
        "yes cell-0 | head -100000 | {} sample home.pgm | head -1",
        "{} evaluate home.pgm | true",
        "{} sample home.pgm <&-",
        "{} verify home.pgm >&-",
        "{} --help | head -1",
        "{} compare problem.toml --mechanism constant --epsilon 1 | head -1",
    ],
)
def test_pipes_end_quietly(mechanism: Path, line: str) -> None:
    script = line.format(f"{sys.executable} -m privacygames")
    done = subprocess.run(["sh", "-c", script], cwd=mechanism.parent, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "error" not in done.stderr.lower()
    assert "pipe" not in done.stderr.lower()


def test_help_shows_no_placeholders(mechanism: Path) -> None:
    for command in ("design", "find", "compare", "sample", "attack", "evaluate", "verify", "study", "demo"):
        shown = run(command, "--help").stdout
        assert "<bool>" not in shown
        assert "{" not in shown
