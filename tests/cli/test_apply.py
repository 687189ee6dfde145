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
    pd.DataFrame(data).to_csv(tmp_path / "in.csv", index=False)
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
    for out in ("one.csv", "two.csv"):
        done = run("apply", "age.pgm", "in.csv", out, "--columns", "age", "--key", "k.key", folder=folder)
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
    assert json.loads(done.stdout)["epsilon"]["per_row"]["epsilon"] == pytest.approx(1.4, rel=1e-6)
    assert pd.read_csv(folder / "out.csv").columns.tolist() == ["who", "ill", "age_released"]


def test_a_fleet(folder: Path) -> None:
    priors = {str(who): pg.Prior.from_counts(AGES, np.arange(12) + who + 1) for who in range(5)}
    design_fleet(priors, out=folder / "fleet", epsilon=0.5, jobs=1)
    options = ("--fleet", "fleet", "--user", "who", "--columns", "age")
    done = run("apply", *options, "in.csv", "out.csv", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "epsilon of a person" in done.stdout
    assert run("verify", "fleet", folder=folder).stdout == "fleet: every promise of 5 people's mechanisms holds\n"
    pg.fleet.Fleet(folder / "fleet").export("3", folder / "three.pgm")
    shown = run("verify", "three.pgm", folder=folder)
    assert "nothing can be said: prior and cost are withheld" in shown.stdout
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
        (("age.pgm", "in.csv"), 3, "MECHANISM IN OUT are wanted"),
        (("age.pgm", "in.csv", "out.csv"), 3, "say with --columns"),
        (("age.pgm", "in.csv", "out.csv", "--columns", "height"), 3, "no column 'height'; it has who, age, ill"),
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
            ("age.pgm", "in.csv", "out.csv", "--columns", "age", "--user", "who", "--epsilon-limit", "1"),
            3,
            "above the limit",
        ),
        (("age.pgm", "in.csv", "out.csv", "--columns", "age", "--answer", "map"), 3, "answer is 'map'"),
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
        ('[[rule]]\ncolumns = ["age"]\n', "needs a mechanism or a fleet"),
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
