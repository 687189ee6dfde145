"""The commands ``tightest_bound`` and ``compare`` as a user runs them, wrong input included."""

import csv
import json
from math import log
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from privacygames.cli.app import app

PROBLEM = """
[space]
kind = "numbers"
from = 20
to = 23
unit = "years"

[prior]
counts = [3, 4, 2, 1]

[problem]
cost = "absolute"

[bounds]
epsilon = 1.0
"""

TWO = """
[space]
kind = "categories"
labels = ["yes", "no"]
[prior]
uniform = true
"""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(each) for each in arguments])


@pytest.fixture
def ages(tmp_path: Path) -> Path:
    (tmp_path / "ages.toml").write_text(PROBLEM)
    return tmp_path / "ages.toml"


@pytest.fixture
def two(tmp_path: Path) -> Path:
    (tmp_path / "two.toml").write_text(TWO)
    return tmp_path / "two.toml"


def test_find_epsilon_writes_the_mechanism_and_proves_it(two: Path, tmp_path: Path) -> None:
    out = tmp_path / "two.pgm"
    done = run("find", two, "epsilon", "--cost-at-most", 0.25, "--out", out)
    assert done.exit_code == 0, done.stderr
    for expected in ("smallest epsilon", "impossible", "wrong in 25 % of cases", "The mechanism is in"):
        assert expected in done.stdout
    assert run("verify", out).exit_code == 0
    again = run("find", two, "epsilon", "--cost-at-most", 0.25, "--out", out)
    assert again.exit_code == 3
    assert "--force" in again.stderr
    found = json.loads(run("find", two, "epsilon", "--cost-at-most", 0.25, "--precision", 1e-5, "--json").stdout)
    assert found["limit"] < log(3) <= found["value"] <= found["limit"] * 1.000011
    assert found["refutation"]["bound"] > 0.25 >= found["certificate"]["cost"]


def test_find_uses_the_bounds_of_the_file(ages: Path) -> None:
    most = json.loads(run("find", ages, "distortion", "--cost-at-most", 0.8, "--json").stdout)
    assert most["certificate"]["bounds"]["epsilon"] == 1.0
    least = run("find", ages, "cost")
    assert "lowest cost" in least.stdout
    assert "years on average" in least.stdout
    smallest = json.loads(
        run("find", ages, "epsilon", "--cost-at-most", 0.6, "--json").stdout
    )  # the file's ε is left out
    assert smallest["value"] != 1.0


def test_find_explains_what_is_wrong(two: Path) -> None:
    assert run("find", two).exit_code == 2
    assert run("find", two, "speed").exit_code == 2
    for arguments, status, message in (
        (("epsilon",), 3, "give --cost-at-most"),
        (("epsilon", "--cost-at-most", 0.2, "--epsilon", 1), 3, "leave it out"),
        (("epsilon", "--cost-at-most", 0.2, "--precision", 0), 3, "precision is 0.0"),
        (("epsilon", "--cost-at-most", -1), 3, "--cost-at-most is -1.0"),
        (("epsilon", "--cost-at-most", 0.2, "--distortion", 0.3), 4, "least possible"),
        (("epsilon", "--cost-at-most", 0.2, "--out", two.parent), 8, "is a folder"),
    ):
        done = run("find", two, *arguments)
        assert done.exit_code == status, done.stderr
        assert message in done.stderr
        assert "Traceback" not in done.stderr


def test_compare_prints_draws_and_writes(ages: Path, tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text(PROBLEM.replace("[3, 4, 2, 1]", "[1, 0, 0, 9]"))
    figure, table, own = tmp_path / "new" / "c.png", tmp_path / "c.csv", tmp_path / "own.pgm"
    assert run("design", ages, "--out", own, "--epsilon", 0.5).exit_code == 0
    done = run(
        "compare", ages, "--figure", figure, "--csv", table, "--file", own, "--adversary", tmp_path / "other.toml"
    )
    assert done.exit_code == 0, done.stderr
    for expected in (
        "matched at epsilon 1 per year",
        "geometric+remap",
        "own.pgm",
        "knows nothing",
        "years on average",
    ):
        assert expected in done.stdout
    assert figure.read_bytes().startswith(b"\x89PNG")
    with table.open() as file:
        rows = list(csv.DictReader(file))
    assert {row["adversary"] for row in rows} == {"knows the prior", "knows nothing", "other"}
    costs = {row["mechanism"]: float(row["cost"]) for row in rows}
    assert costs["optimal"] == pytest.approx(costs["geometric+remap"], rel=2e-3)
    assert costs["optimal"] < costs["own.pgm"]


def test_compare_at_several_values_is_the_trade_off(ages: Path, tmp_path: Path) -> None:
    figure = tmp_path / "curve.svg"
    done = run(
        "compare", ages, "--epsilon", 0.5, "--epsilon", 2, "--mechanism", "geometric", "--figure", figure, "--json"
    )
    printed = json.loads(done.stdout)
    assert printed["matched"] == {"epsilon": [0.5, 2.0]}
    assert [(row["mechanism"], row["asked"]) for row in printed["rows"][::2]] == [
        ("geometric", 0.5),
        ("geometric", 2.0),
    ]
    assert printed["rows"][0]["cost"] > printed["rows"][2]["cost"]
    assert "<svg" in figure.read_text()


def test_compare_in_several_processes_prints_the_same(ages: Path) -> None:
    options = ("--mechanism", "optimal", "--mechanism", "geometric", "--json")
    for at in (("--epsilon", 0.5, "--epsilon", 2), ("--epsilon", 0.5)):
        here, there = (json.loads(run("compare", ages, *at, *options, *more).stdout) for more in ((), ("--jobs", 2)))
        for printed in (here, there):
            for row in printed["rows"]:
                del row["seconds"]
        assert there == here


def test_compare_at_both_bounds_of_a_file(ages: Path, tmp_path: Path) -> None:
    both = tmp_path / "both.toml"
    both.write_text(ages.read_text().replace("[bounds]", "[bounds]\ndistortion = 0.3"))
    names = ("--mechanism", "optimal", "--mechanism", "exponential", "--mechanism", "constant")
    done = run("compare", both, *names, "--json", "--figure", tmp_path / "both.png")
    assert done.exit_code == 0, done.stderr
    made = json.loads(done.stdout)
    assert set(made["matched"]) == {"epsilon", "distortion"}
    rows = {row["mechanism"]: row for row in made["rows"] if row["adversary"] == "knows the prior"}
    epsilon = made["matched"]["epsilon"][0]
    assert list(rows) == [
        "optimal for both",
        f"optimal at epsilon {epsilon:g} per year",
        f"exponential at epsilon {epsilon:g} per year",
        "constant",
        "optimal at distortion 0.3 years",
        "exponential at distortion 0.3 years",
    ]
    assert rows["optimal for both"]["epsilon"] <= epsilon * (1 + 1e-9)
    assert rows["optimal for both"]["distortion"] >= 0.3 * (1 - 1e-9)
    assert rows["optimal at distortion 0.3 years"]["epsilon_promised"] is False
    assert (tmp_path / "both.png").stat().st_size > 10_000


def test_compare_explains_what_is_wrong(ages: Path, two: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text(PROBLEM.replace("[3, 4, 2, 1]", "[3, 4]"))
    for arguments, status, message in (
        ((two,), 3, "give --epsilon or --distortion"),
        ((ages, "--epsilon", 1, "--epsilon", 2, "--distortion", 0.2), 3, "several values of one bound"),
        ((ages, "--mechanism", "laplace"), 3, "no mechanism 'laplace'"),
        ((ages, "--mechanism", "planar-laplace"), 3, "cells of a Grid"),
        ((ages, "--epsilon", -1), 3, "epsilon is -1.0"),
        ((ages, "--distortion", 99), 4, "the most is"),
        ((ages, "--figure", "c.docx"), 3, ".png, .pdf or .svg"),
        ((ages, "--file", two), 7, "mechanism file"),
        ((ages, "--adversary", tmp_path / "broken.toml"), 3, "counts"),
        ((ages, "--epsilon", 1, "--epsilon", 2, "--file", two), 3, "several values of one bound"),
        ((tmp_path / "none.toml",), 8, "none.toml cannot be read"),
        ((ages, "--csv", tmp_path, "--mechanism", "uniform"), 8, "it is a folder"),
        ((ages, "--figure", ages / "c.png", "--mechanism", "uniform"), 8, "c.png"),
    ):
        done = run("compare", *arguments)
        assert done.exit_code == status, (arguments, done.stdout, done.stderr)
        assert message in done.stderr
        assert "Traceback" not in done.stderr


def test_evaluate_ends_with_words(two: Path, tmp_path: Path) -> None:
    assert run("design", two, "--epsilon", log(3), "--out", tmp_path / "m.pgm").exit_code == 0
    assert "wrong in 25 % of cases, and exact in 75 %" in run("evaluate", tmp_path / "m.pgm").stdout
    assert "best guess" in json.loads(run("evaluate", tmp_path / "m.pgm", "--json").stdout)["in_words"]
