"""``privacygames apply`` as an analyst runs it, wrong input included."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import privacygames as pg
from privacygames.cli.app import app
from privacygames.fleet import design as design_fleet

AGES = pg.Numbers(range(20, 32), unit="years")
ILLS = pg.Categories(["asthma", "flu", "none"])


def run(*arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "privacygames", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    data = {"who": rng.integers(0, 5, 200), "age": rng.integers(20, 32, 200), "ill": rng.choice(["asthma", "flu"], 200)}
    pd.DataFrame(data | {"id": range(200)}).to_csv(tmp_path / "in.csv", index=False)
    pg.baselines.geometric(pg.Problem(pg.Prior.uniform(AGES)), epsilon=0.4).save(tmp_path / "age.pgm")
    pg.baselines.randomised_response(pg.Problem(pg.Prior.uniform(ILLS)), epsilon=1.0).save(tmp_path / "ill.pgm")
    return tmp_path


def test_one_column(folder: Path) -> None:
    done = run("apply", "age.pgm", "in.csv", "out.csv", "--columns", "age", "--user", "who", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "200, 200, 0" in done.stdout
    assert "5 people" in done.stdout
    before, after = pd.read_csv(folder / "in.csv"), pd.read_csv(folder / "out.csv")
    assert after.columns.tolist() == before.columns.tolist()
    assert after["ill"].equals(before["ill"])
    assert not after["age"].equals(before["age"])
    manifest = json.loads((folder / "out.csv.manifest.json").read_text())
    assert manifest["epsilon"]["per_user"]["people"] == 5


def test_the_same_key_gives_the_same_answers(folder: Path) -> None:
    for out, new in (("one.csv", ["--new-key"]), ("two.csv", [])):
        options = ["--columns", "age", "--key", "k.key", *new, "--key-columns", "id"]
        done = run("apply", "age.pgm", "in.csv", out, *options, folder=folder)
        assert done.returncode == 0, done.stderr
    assert (folder / "one.csv").read_bytes() == (folder / "two.csv").read_bytes()
    assert (folder / "k.key").stat().st_mode & 0o777 == 0o600
    secret = (folder / "k.key").read_text().splitlines()[1]
    assert secret not in (folder / "one.csv.manifest.json").read_text() + done.stdout + done.stderr


def test_a_file_of_rules(folder: Path) -> None:
    (folder / "rules.toml").write_text(
        '[[rule]]\ncolumns = ["age"]\nmechanism = "age.pgm"\noriginal = "drop"\n\n'
        '[[rule]]\ncolumns = ["ill"]\nmechanism = "ill.pgm"\n'
    )
    done = run("apply", "rules.toml", "in.csv", "out.csv", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    costs = json.loads(done.stdout)["epsilon"]["per_row"]["epsilon"]
    assert {each["counted"]: each["epsilon"] for each in costs} == pytest.approx(
        {"per year": 0.4, "per unit of the hamming distance": 1.0}, rel=1e-6
    )
    assert pd.read_csv(folder / "out.csv").columns.tolist() == ["who", "ill", "id", "age_released"]


def test_a_fleet(folder: Path) -> None:
    priors = {str(who): pg.Prior.from_counts(AGES, np.arange(12) + who + 1) for who in range(5)}
    design_fleet(priors, out=folder / "fleet", epsilon=0.5, jobs=1)
    options = ("--fleet", "fleet", "--user", "who", "--columns", "age")
    done = run("apply", *options, "in.csv", "out.csv", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "a person, in all" in done.stdout
    assert run("verify", "fleet", folder=folder).stdout == "fleet: every guarantee of 5 people's mechanisms holds\n"
    pg.fleet.Fleet(folder / "fleet").export("3", folder / "three.pgm")
    shown = run("verify", "three.pgm", folder=folder)
    assert "cannot be verified: prior and cost are withheld" in shown.stdout
    refused = run("apply", *options, "--unknown", "default", "in.csv", "other.csv", folder=folder)
    assert refused.returncode == 3
    assert "no default mechanism" in refused.stderr


def test_a_preview_writes_nothing(folder: Path) -> None:
    before = sorted(path.name for path in folder.iterdir())
    done = run("apply", "age.pgm", "in.csv", "--columns", "age", "--preview", folder=folder)
    assert done.returncode == 0, done.stderr
    for expected in ("mean", "50% quantile", "histogram", "as released", "estimated"):
        assert expected in done.stdout
    assert sorted(path.name for path in folder.iterdir()) == before
    as_json = json.loads(
        run("apply", "age.pgm", "in.csv", "--columns", "age", "--preview", "--json", folder=folder).stdout
    )
    assert as_json[0]["rows_read"] == 200


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("age.pgm", "in.csv"), 3, "MECHANISM IN OUT are needed"),
        (("age.pgm", "in.csv", "out.csv"), 3, "--columns is missing"),
        (("age.pgm", "in.csv", "out.csv", "--columns", "height"), 3, "no column 'height'; it has who, age, ill, id"),
        (
            ("age.pgm", "in.csv", "out.csv", "--columns", "ill"),
            3,
            "rows hold what is no secret of the mechanism, the first at row 0 (from 0); say --invalid='drop'",
        ),
        (("age.pgm", "in.csv", "in.csv", "--columns", "age"), 3, "exists already"),
        (("none.pgm", "in.csv", "out.csv", "--columns", "age"), 8, "none.pgm cannot be read"),
        (("in.csv", "in.csv", "out.csv", "--columns", "age"), 7, "not a privacygames mechanism file"),
        (("age.pgm", "none.csv", "out.csv", "--columns", "age"), 8, "no such file"),
        (
            ("age.pgm", "in.csv", "out.csv", "--columns", "age", "--user", "who", "--per-unit-limit", "1"),
            3,
            "ε = 19.2 per year, above --per-unit-limit=1",
        ),
        (
            ("age.pgm", "in.csv", "out.csv", "--columns", "age", "--any-pair-limit", "2"),
            3,
            "between any two secrets, above --any-pair-limit=2",
        ),
        (
            ("age.pgm", "in.csv", "out.csv", "--columns", "age", "--epsilon-limit", "2"),
            3,
            "give --any-pair-limit for the largest log-ratio",
        ),
        (("age.pgm", "in.csv", "out.csv", "--columns", "age", "--per-unit-limit", "per km"), 3, "takes a number"),
        (("age.pgm", "in.csv", "out.csv", "--columns", "age", "--per-unit-limit", "per km=2"), 3, "names 'per km'"),
        (("age.pgm", "in.csv", "out.csv", "--columns", "age", "--output-form", "map"), 3, "--output-form is 'map'"),
        (("age.pgm", "in.csv", "out.csv", "--columns", "age", "--repeat", "same", "--user", "who"), 3, "needs a key"),
        (("age.pgm", "in.csv", "out.csv", "--columns", "age", "--unknown", "default"), 3, "goes with --fleet"),
    ],
)
def test_what_does_not_fit_is_said(
    folder: Path, arguments: tuple[str, ...], status: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, ["apply", *arguments])
    assert done.exit_code == status, done.stderr
    assert message in done.stderr
    assert not (folder / "out.csv").exists()


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ('[[rule]]\ncolumns = ["age"]\n', "needs either a mechanism or a fleet"),
        ('[[rule]]\ncolumns = ["age"]\nmechanism = "age.pgm"\ncolour = "red"\n', "no key 'colour'"),
        ("[[rule]\n", "not valid TOML"),
        ('[[rule]]\nmechanism = "age.pgm"\n', "needs 'columns'"),
    ],
)
def test_wrong_rules_are_said(folder: Path, rules: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    Path("rules.toml").write_text(rules)
    done = CliRunner().invoke(app, ["apply", "rules.toml", "in.csv", "out.csv"])
    assert done.exit_code == 3, done.stderr
    assert message in done.stderr


def test_a_key_or_ledger_that_is_not_there_is_an_error_unless_it_is_new(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    key, ledger = ("--key", "k.key", "--key-columns", "id"), ("--ledger", "t.ledger")
    for options, status, message in (
        (key, 8, "there is no such release key; --new-key creates one"),
        (ledger, 8, "there is no such ledger; --new-ledger starts one"),
        ((*ledger, "--budget", "5"), 3, "leave --budget out"),
        (("--new-key",), 3, "--new-key goes with --key"),
        (("--new-ledger",), 3, "go with --ledger"),
        (("--budget", "5"), 3, "go with --ledger"),
        ((*ledger, "--new-ledger", "--budget", "much"), 3, "--budget takes an epsilon such as 60"),
        ((*ledger, "--new-ledger", "--budget", "per km=-1"), 3, "budget must be a positive number"),
        (("--key", "age.pgm", "--key-columns", "id"), 7, "is not a release key"),
        (("--ledger", "age.pgm"), 7, "is not a ledger of table releases"),
    ):
        before = sorted(folder.iterdir())
        done = CliRunner().invoke(app, ["apply", "age.pgm", "in.csv", "out.csv", "--columns", "age", *options])
        assert (done.exit_code, sorted(folder.iterdir())) == (status, before), done.output
        assert message in done.stderr


def test_releases_are_charged_to_a_ledger(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)

    def release(out: str, *options: str) -> str:
        arguments = ["age.pgm", "in.csv", out, "--columns", "age", "--ledger", "t.ledger", *options]
        done = CliRunner().invoke(app, ["apply", *arguments])
        assert done.exit_code == 0, done.stderr
        return done.stdout

    key = ("--key", "k.key", "--key-columns", "id")
    shown = release("one.csv", *key, "--new-key", "--new-ledger", "--budget", "per year=0.9", "--budget", "99")
    assert "spent, per year" in shown
    release("two.csv", *key)  # the same again, free of charge
    release("three.csv")
    spent = CliRunner().invoke(app, ["apply", "age.pgm", "in.csv", "o.csv", "--columns", "age", "--ledger", "t.ledger"])
    assert spent.exit_code == 10
    assert "0.8 of 0.9 are spent" in spent.stderr
    assert not (folder / "o.csv").exists()
    assert json.loads((folder / "two.csv.manifest.json").read_text())["ledger"]["charged"] == {}
    show = CliRunner().invoke(app, ["ledger", "show", "t.ledger"])
    for expected in (
        "releases of tables: 2, counted for a row",
        "between any two secrets",
        "per year",
        "0.8",
        "0.9",
        "99",
    ):
        assert expected in show.stdout
    listed = json.loads(CliRunner().invoke(app, ["ledger", "show", "t.ledger", "--json"]).stdout)
    assert listed["total"] == 2
    assert listed["accounts"]["spent"]["per year"] == pytest.approx(0.8)
    head = json.loads((folder / "two.csv.manifest.json").read_text())["ledger"]["chain"]
    for given, status in ((head, 0), ("0" * 64, 7)):
        told = CliRunner().invoke(app, ["ledger", "verify", "t.ledger", "--head", given])
        assert (told.exit_code, "To detect an older copy" in told.stdout) == (status, status == 0)
    verified = CliRunner().invoke(app, ["ledger", "verify", "t.ledger"])
    assert "no account above its limit" in verified.stdout
    content = (folder / "t.ledger").read_text()
    (folder / "t.ledger").write_text(content.replace('"per year": 0.9', '"per year": 1.9'))
    altered = CliRunner().invoke(app, ["ledger", "verify", "t.ledger"])
    assert altered.exit_code == 7
    assert "was altered" in altered.stderr


def test_a_key_is_not_used_for_another_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    key = ("--columns", "age", "--key", "k.key", "--key-columns", "id")
    assert CliRunner().invoke(app, ["apply", "age.pgm", "in.csv", "one.csv", *key, "--new-key"]).exit_code == 0
    pd.read_csv("in.csv").assign(age=25).to_csv("next.csv", index=False)
    refused = CliRunner().invoke(app, ["apply", "age.pgm", "next.csv", "two.csv", *key])
    assert refused.exit_code == 3
    assert "of other rows or other values" in refused.stderr
    assert not (folder / "two.csv").exists()
    pd.read_csv("in.csv").to_parquet("in.parquet")
    assert CliRunner().invoke(app, ["apply", "age.pgm", "in.parquet", "same.parquet", *key]).exit_code == 0
    assert pd.read_parquet("same.parquet")["age"].tolist() == pd.read_csv("one.csv")["age"].tolist()
