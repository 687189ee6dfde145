"""Adversaries in problem files, and the commands that know them by name."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import privacygames as pg
from privacygames.cli.app import app
from privacygames.mechanism_files import load_finite
from privacygames.problem import ProblemFile

PROBLEM = """
[space]
kind = "grid"
columns = 4
rows = 3

[prior]
counts = [9, 3, 0, 1, 2, 12, 5, 0, 1, 4, 2, 7]

[problem]
cost = "euclidean"

[bounds]
epsilon = 2.0
distortion = 0.5

[[adversary]]
name = "habits"
sharpened = { strength = 3.0 }
share = 0.8

[[adversary]]
name = "which side"
attribute = { csv = "sides.csv", label = "cell", value = "side" }
distortion = 0.3

[[adversary]]
name = "vague"
prior = { uniform = true }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    sides = [f"cell-{place},{'west' if place % 4 < 2 else 'east'}" for place in range(12)]
    (tmp_path / "sides.csv").write_text("\n".join(["cell,side", *sides]))
    (tmp_path / "p.toml").write_text(PROBLEM)
    return tmp_path / "p.toml"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def changed(file: Path, old: str, new: str) -> Path:
    assert old in PROBLEM
    file.write_text(PROBLEM.replace(old, new))
    return file


def test_a_file_names_adversaries(file: Path) -> None:
    document = ProblemFile(file)
    problem, bounds = document.problem, document.bounds
    habits, side, vague = ProblemFile(file).adversaries_for(problem)
    assert habits.prior == problem.prior.sharpen(3.0)
    assert side.guess_space(problem.space).labels == ("west", "east")
    assert vague.prior == pg.Prior.uniform(problem.space)
    asked = {who.name: least for who, least in bounds["distortion"].items()}
    share = 0.8 * pg.max_distortion(problem, habits)
    assert asked == {"the paper's": 0.5, "habits": share, "which side": 0.3}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("share = 0.8", "share = 1.8", "[[adversary]] 1 share is between 0 and 1"),
        ("share = 0.8", 'share = 0.8\ndistortion = "most"', "[[adversary]] 1 share is between 0 and 1"),
        ("share = 0.8", "sure = 0.8", "[[adversary]] 1 has no key 'sure'"),
        ('name = "vague"', 'name = "habits"', "two are called 'habits'"),
        ('name = "vague"', 'title = "x"', "has no key 'title'"),
        (PROBLEM[PROBLEM.index("[[") :], "[adversary]\nname='x'", "two brackets"),
        ("strength = 3.0", "strength = 0.5", "[[adversary]] 1 strength is 0.5"),
        ('value = "side"', 'value = "half"', "no column 'half'"),
        ("distortion = 0.3", 'distortion = "most"', "goes with --cost-at-most"),
        ("distortion = 0.3", "distortion = 0.3\nerrors = [[1, 2, 3]]", "2 attributes need"),
        ("prior = { uniform = true }", "errors = [[1, 2, 3]]", "about 3 secrets"),
        (
            "prior = { uniform = true }",
            f"attribute = {{ given = {[[0.5, 0.5]] * 12}, smoothing = 2.0 }}",
            "attribute with given = … has no key 'smoothing'",
        ),
    ],
)
def test_mistakes_in_a_file_are_named(file: Path, old: str, new: str, message: str) -> None:
    file.write_text(PROBLEM.replace(old, new))
    done = run("design", file, "--out", file.with_name("x.pgm"))
    assert done.exit_code == 3
    assert message in done.stderr
    assert not file.with_name("x.pgm").exists()


def test_commands_know_them_by_name(file: Path) -> None:
    out = file.with_name("all.pgm")
    done = run("design", file, "--out", out, "--json")
    assert done.exit_code == 0, done.stderr
    adversary_results = {each["adversary"]: each for each in json.loads(done.stdout)["certificate"]["against"]}
    assert list(adversary_results) == ["the paper's", "habits", "which side"]
    assert all(each["realised"] >= each["promised"] for each in adversary_results.values())
    assert "every guarantee holds" in run("verify", out).stdout
    measured = json.loads(run("evaluate", out, "--json").stdout)
    assert measured["promised against which side"] == 0.3
    more = json.loads(run("evaluate", out, "--adversary", file, "--against", "vague", "--json").stdout)
    assert "realised against vague" in more
    assert "realised against habits" not in more
    found = json.loads(run("attack", out, "--against", "which side", "--json").stdout)
    assert found["distortion"] == pytest.approx(measured["realised against which side"])
    assert {each["estimate"] for each in found["estimates"]} <= {"west", "east"}
    assert json.loads(run("attack", out, "--adversary", file, "--against", "vague", "--json").stdout)["distortion"] > 0
    nobody = run("attack", out, "--against", "nobody")
    assert nobody.exit_code == 3
    assert "there is no adversary called 'nobody'; there is \"the paper's\", 'habits', 'which side'" in nobody.stderr


def test_options_add_to_the_file_and_replace_it(file: Path) -> None:
    out = file.with_name("x.pgm")

    def asked(*options: object) -> dict[str, float | None]:
        done = run("design", file, "--out", out, "--force", "--json", *options)
        assert done.exit_code == 0, done.stderr
        return {each["adversary"]: each["promised"] for each in json.loads(done.stdout)["certificate"]["against"]}

    assert asked("--distortion", 0.6)["the paper's"] == 0.6
    assert asked("--against", "vague=0.7", "--against", "which side=0.2")["which side"] == 0.2
    sought = asked("--cost-at-most", 0.9, "--against", "vague")
    assert next(iter(sought)) == "vague"
    assert sought["vague"] is None
    assert sought["the paper's"] == 0.5
    limited = json.loads(run("design", file, "--out", out, "--force", "--json", "--worst-cost-at-most", 2.0).stdout)
    assert limited["certificate"]["verification"]["worst_cost"] <= 2.0
    for wrong, message in (
        (("--against", "vague"), "goes with --cost-at-most"),
        (("--against", "vague=much"), "--against takes NAME=DISTORTION"),
        (("--against", "nobody=1"), "there is no adversary called 'nobody'"),
        (("--against", "vague=0.7", "--against", "vague=0.2"), "names 'vague' twice"),
        (("--cost-at-most", 0.9, "--against", "habits", "--against", "vague"), "only one can be maximised"),
        (("--worst-case", "--worst-cost-at-most", 1), "give one of them"),
    ):
        done = run("design", file, "--out", out, "--force", *wrong)
        assert done.exit_code == 3
        assert message in done.stderr
    impossible = run("design", file, "--out", out, "--force", "--against", "which side=2")
    assert impossible.exit_code == 4
    assert "'which side'" in impossible.stderr


@pytest.mark.parametrize("kind", ["optimal", "bayesian", "uniform", "minmax"])
def test_an_attack_is_told_with_what_it_errs_by_on_average(file: Path, kind: str) -> None:
    """Not with what it minimised: a sum over secrets, or the worst of them."""
    out = file.with_name("all.pgm")
    assert run("design", file, "--out", out).exit_code == 0
    made = load_finite(out)
    habits = made.certificate.bounds.distortion[1].adversary
    assert habits.prior is not None
    attack = getattr(pg.attacks, kind)(made, made.problem, adversary=habits)
    error = np.einsum(
        "s,so,og,gs->", habits.prior.probabilities, made.probabilities, attack.matrix, made.problem.distance
    )
    told = json.loads(run("attack", out, "--against", "habits", "--kind", kind, "--json").stdout)["distortion"]
    assert told == pytest.approx(error)


def test_a_name_means_one_adversary(file: Path) -> None:
    out, other = file.with_name("all.pgm"), file.with_name("other.toml")
    assert run("design", file, "--out", out).exit_code == 0
    other.write_text(PROBLEM.replace("strength = 3.0", "strength = 9.0"))
    for command in ("evaluate", "attack"):
        done = run(command, out, "--adversary", other, "--against", "habits")
        assert done.exit_code == 3
        assert "'habits' of other.toml is not the 'habits' that the mechanism has a guarantee" in done.stderr
        assert run(command, out, "--adversary", file, "--against", "the paper's").exit_code == 0


def test_find_and_compare_take_them(file: Path) -> None:
    found = json.loads(
        run("find", file, "distortion", "--cost-at-most", 0.9, "--against", "which side", "--json").stdout
    )
    against = found["certificate"]["against"]
    assert [each["adversary"] for each in against] == ["which side", "the paper's", "habits"]
    assert found["value"] == pytest.approx(against[0]["realised"])
    assert found["value"] > 0.3
    plain = json.loads(run("find", file, "distortion", "--cost-at-most", 0.9, "--json").stdout)
    assert plain["certificate"]["against"][0] == plain["certificate"]["against"][0] | {
        "adversary": "the paper's",
        "promised": None,
    }
    options = ("--cost-at-most", 0.9, "--distortion", 0.6, "--json")
    other = json.loads(run("find", file, "distortion", *options, "--against", "habits").stdout)["certificate"][
        "against"
    ]
    assert [(each["adversary"], each["promised"]) for each in other[:2]] == [("habits", None), ("the paper's", 0.6)]
    assert "distortion is the quantity to optimise" in run("find", file, "distortion", *options).stderr
    assert "distortion in find" in run("find", file, "epsilon", "--cost-at-most", 0.9, "--against", "habits").stderr
    least = json.loads(run("find", file, "cost", "--json").stdout)
    assert len(least["certificate"]["against"]) == 3
    figure = file.with_name("all.png")
    done = run("compare", file, "--mechanism", "optimal", "--figure", figure)
    assert done.exit_code == 0, done.stderr
    assert "optimal against all" in done.stdout
    assert "best possible" in done.stdout
    assert figure.with_name("all-adversaries.png").read_bytes().startswith(b"\x89PNG")
    assert "all-adversaries.png" in done.stdout
    document = ProblemFile(file)
    problem, bounds = document.problem, document.bounds
    near = json.loads(run("compare", file, "--mechanism", "constant", "--within", 1.0, "--json").stdout)["rows"][0]
    assert near["mechanism"] == "optimal against all"
    assert near["cost"] == pytest.approx(pg.design(problem, **bounds, within=1.0).certificate.cost, rel=2e-6)
    assert near["cost"] < 0.99 * pg.design(problem, **bounds).certificate.cost
