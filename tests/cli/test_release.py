"""The commands release, ledger and replay, as a new user would try them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import privacygames as pg
from privacygames.cli.app import app

ROOT = Path(__file__).parents[2]
HOME = (ROOT / "examples" / "home.toml").read_text()


def run(*arguments: object, folder: Path, text: str = "") -> Result:
    """The command in this process: starting a new one for each takes longer than what it does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return CliRunner().invoke(app, [str(each) for each in arguments], input=text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "home.toml").write_text(HOME)
    return tmp_path


def test_release_show_and_verify(folder: Path) -> None:
    options = ("home.toml", "--ledger", "me.db", "--budget", 2, "--budget", "1/24h")
    first = run("release", *options, "--key", "noon", "--json", folder=folder, text="cell-7\n")
    assert first.exit_code == 0, first.stderr
    told = json.loads(first.stdout)
    assert (told["epsilon"], told["left"]) == (0.9, 0.1)  # the bounds of the problem file
    assert told["expected_error"] >= 0.6 - 1e-9
    again = json.loads(run("release", *options, "--key", "noon", "--json", folder=folder, text="cell-2\n").stdout)
    assert again["already_made"]
    assert again["observable"] == told["observable"]
    spent = run("release", *options, folder=folder, text="cell-7\n")
    assert spent.exit_code == 10
    assert "nothing was released" in spent.stderr
    other = run("release", "home.toml", "--ledger", "me.db", "--budget", 3, folder=folder, text="cell-7\n")
    assert other.exit_code == 3
    assert "was created with different budgets" in other.stderr
    shown = run("ledger", "show", "me.db", folder=folder)
    assert "every 24 h" in shown.stdout
    assert told["observable"] in shown.stdout
    as_json = json.loads(run("ledger", "show", "me.db", "--json", folder=folder).stdout)
    assert as_json["releases"][0]["charged"] == ["0.9", "0.9"]
    assert "every balance adds up" in run("ledger", "verify", "me.db", folder=folder).stdout
    assert run("ledger", "verify", "home.toml", folder=folder).exit_code == 7
    assert run("ledger", "verify", "none.db", folder=folder).exit_code == 8


def test_a_budget_with_a_delta(folder: Path) -> None:
    assert run("design", "home.toml", "--out", "home.pgm", folder=folder).exit_code == 0
    terms = ("--budget", "4/24h", "--delta", 1e-6, "--within", 1)
    plan = json.loads(run("ledger", "plan", "home.pgm", *terms, "--json", folder=folder).stdout)
    assert plan["added"] <= plan["ledger"] <= plan["composed"]
    shown = run("ledger", "plan", "home.pgm", "--budget", "4,delta=1e-6,within=1", folder=folder)
    assert str(plan["ledger"]) in shown.stdout
    options = ("home.pgm", "--ledger", "me.db")
    name = "every 24 h within 1 km, delta 1e-06"
    for number in range(plan["ledger"]):
        made = json.loads(run("release", *options, *terms, "--json", folder=folder, text="cell-7\n").stdout)
        balance = made["balances"][1]
        assert (balance["name"], balance["releases_left"]) == (name, plan["ledger"] - number - 1)
    spent = run("release", *options, *terms, folder=folder, text="cell-7\n")
    assert spent.exit_code == 10
    assert "% left of epsilon 4.0 with delta 1e-06 between secrets at most 1 km apart" in spent.stderr
    other = run("release", *options, "--budget", "4/24h", folder=folder, text="cell-7\n")
    assert other.exit_code == 3
    assert "do not add up" in other.stderr
    for command in ("show", "verify"):
        table = " ".join(run("ledger", command, "me.db", folder=folder).stdout.split())
        assert "With a delta, for all releases together" in table
    account = json.loads(run("ledger", "show", "me.db", "--json", folder=folder).stdout)["accounts"][1]
    assert account["approximate"]["delta"] == 1e-6
    assert account["releases_left"] == 0


def test_a_changed_problem_keeps_what_was_charged(folder: Path) -> None:
    options = ("--ledger", "me.db", "--budget", 1.5)
    assert run("release", "home.toml", *options, folder=folder, text="cell-7\n").exit_code == 0
    (folder / "moves.txt").write_text("cell-7\ncell-8\n\ncell-13\ncell-13\ncell-7\n")
    moving = ("home.toml", *options, "--trace", "moves.txt", "--step", 600)
    refused = run("release", *moving, folder=folder, text="cell-7\n")
    assert refused.exit_code == 3
    assert "--when-changed record" in refused.stderr
    spent = run("release", *moving, "--when-changed", "record", folder=folder, text="cell-7\n")
    assert spent.exit_code == 10  # 0.9 of 1.5 was charged before the change
    assert json.loads(run("ledger", "verify", "me.db", "--json", folder=folder).stdout)["events"] == 3


def test_a_ledger_keeps_its_head_and_its_clock(folder: Path) -> None:
    ahead = ("home.toml", "--ledger", "me.db", "--at", 9e9)
    refused = run("release", *ahead, folder=folder, text="cell-7\n")
    assert refused.exit_code == 3
    assert "ahead of this machine's clock" in refused.stderr
    head = json.loads(run("ledger", "verify", "me.db", "--json", folder=folder).stdout)["head"]
    assert run("release", *ahead, "--clock-tolerance", "inf", folder=folder, text="cell-7\n").exit_code == 0
    shown = run("ledger", "verify", "me.db", "--head", head, folder=folder)
    assert shown.exit_code == 0
    after = json.loads(run("ledger", "verify", "me.db", "--json", folder=folder).stdout)["head"]
    assert after in shown.stdout
    assert run("ledger", "verify", "me.db", "--head", "0" * 64, folder=folder).exit_code == 7
    assert json.loads(run("ledger", "correct-clock", "me.db", "--json", folder=folder).stdout)["ahead"] > 1e9
    assert "nothing: unchanged" in run("ledger", "correct-clock", "me.db", folder=folder).stdout


def test_a_fixed_mechanism_a_moving_secret_and_other_ways(folder: Path) -> None:
    assert run("design", "home.toml", "--out", "home.pgm", folder=folder).exit_code == 0
    (folder / "moves.txt").write_text("cell-7\ncell-8\n\ncell-13\ncell-13\ncell-7\n")
    (folder / "key").write_bytes(b"0123456789abcdef")
    moving = ("--trace", "moves.txt", "--step", 600, "--toward", "neighbours")
    ways: list[tuple[object, ...]] = [
        ("home.pgm", *moving, "--at", "2024-05-01T12:00:00Z"),
        ("home.pgm", "--test", 0.2, "--within", 1),
        ("home.pgm", "--memoised", "key"),
        ("home.toml", *moving, "--distortion", 0.1, "--at", 0),
        ("home.toml", "--trace", "moves.txt"),
    ]
    for number, way in enumerate(ways):
        done = run("release", *way, "--ledger", f"{number}.db", "--json", folder=folder, text="cell-7\n")
        assert done.exit_code == 0, done.stderr
        assert json.loads(done.stdout)["spent"] <= 0.9
    spread = HOME.replace("epsilon = 0.9", "#").replace("distortion = 0.6", "#")
    (folder / "plain.toml").write_text(spread)
    options = ("plain.toml", "--spread", 2, "--budget", 4, "--ledger", "s.db", "--json")
    done = run("release", *options, folder=folder, text="cell-7\n")
    assert json.loads(done.stdout)["epsilon"] == 2.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--budget", "abc"), "--budget takes"),
        (("--budget", "1/2w"), "--budget takes"),
        (("--budget", "-1"), "positive"),
        (("--budget", "4,delta=2"), "between 0 and 1"),
        (("--budget", "4,delta=x"), "--budget takes"),
        (("--budget", "4,delta=1e-6,delta=1e-6"), "--budget takes"),
        (("--budget", "4,epsilon=1"), "--budget takes"),
        (("--budget", "4,delta=1e-6", "--delta", "1e-6"), "leave --delta out"),
        (("--delta", "1e-6"), "--delta goes with --budget"),
        (("--within", "1"), "--within goes with --delta"),
        (("--budget", "4", "--delta", "1e-6", "--test", "1"), "--budget 4,delta=1e-6,within=1"),
        (("--budget", "4", "--delta", "1e-6", "--within", "-1"), "0 or more"),
        (("--at", "noon"), "--at takes"),
        (("--at", "2024-05-01T12:00:00"), "offset"),
        (("--step", "5"), "--step goes with --trace"),
        (("--trace", "none.txt"), "cannot be read"),
        (("--memoised", "none"), "cannot be read"),
        (("--test", "1"), "go together"),
        (("--spread", "2", "--epsilon", "1"), "leave --epsilon out"),
        (("--spread", "2", "--memoised", "x"), "give one of them"),
        (("--when-spent", "cry"), "--when-spent is 'cry'"),
        (("--memoised", "home.toml"), "distortion cannot be guaranteed"),
    ],
)
def test_wrong_options_are_told(folder: Path, options: tuple[str, ...], message: str) -> None:
    done = run("release", "home.toml", "--ledger", "x.db", *options, folder=folder, text="cell-7\n")
    assert done.exit_code in (3, 8), done.stdout
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_secrets_are_never_repeated(folder: Path) -> None:
    for text, given in (("hideout\n", ()), ("", ("hideout",)), ("", ("-3",))):
        done = run("release", "home.toml", "--ledger", "x.db", *given, folder=folder, text=text)
        assert done.exit_code == 3
        assert "hideout" not in done.stderr
        assert "-3" not in done.stderr
    assert "no secret" in run("release", "home.toml", "--ledger", "x.db", folder=folder).stderr
    (folder / "moves.txt").write_text("cell-7\nhideout\n")
    options = ("--ledger", "x.db", "--trace", "moves.txt")
    done = run("release", "home.toml", *options, folder=folder, text="cell-7\n")
    assert "moves.txt, line 2" in done.stderr
    assert "hideout" not in done.stderr
    assert not (folder / "x.db").exists()


BOX = (116.30, 39.90, 116.34, 39.92)
TOWN_FILE = """
[space]
kind = "area"
box = [116.30, 39.90, 116.34, 39.92]

[prior]
points = [[116.31, 39.905], [116.33, 39.915]]

[observables]
columns = 3
rows = 2

[bounds]
epsilon = 0.5
"""


@pytest.fixture
def town(folder: Path) -> Path:
    """A folder with a mechanism for points, one without its prior, one on a line, and a problem file."""
    area = pg.Area.over(BOX)
    prior = pg.PointPrior(area, [(116.31, 39.905), (116.33, 39.915)])
    mechanism = pg.points.design(pg.PointProblem(prior, [(116.31, 39.905), (116.33, 39.915)]), epsilon=1.0)
    mechanism.save(folder / "town.pgm")
    pg.points.PublicPointMechanism.of(mechanism).save(folder / "public.pgm")
    line = pg.PointProblem(pg.PointPrior(pg.Interval(0.0, 4.0, unit="hours"), [1.0]), [1.0, 2.0])
    pg.points.design(line, epsilon=1.0, prove_bound=False).save(folder / "line.pgm")
    (folder / "town.toml").write_text(TOWN_FILE)
    return folder


@pytest.mark.parametrize("file", ["town.pgm", "public.pgm"])
def test_points_are_released_and_charged(town: Path, file: str) -> None:
    options = (file, "--ledger", "me.db", "--budget", "2/24h")
    first = run("release", *options, "--key", "noon", "--json", folder=town, text="39.9054321,116.3123457\n")
    assert first.exit_code == 0, first.stderr
    told = json.loads(first.stdout)
    assert told["observable"] in [
        {"latitude": 39.905, "longitude": 116.31},
        {"latitude": 39.915, "longitude": 116.33},
    ]
    assert (told["epsilon"], told["counted"], told["left"]) == (1.0, "per km", 1.0)
    plain = run("release", *options, folder=town, text="39.9054321,116.3123457\n")
    assert "39.905,116.31" in plain.stdout or "39.915,116.33" in plain.stdout
    assert run("release", *options, folder=town, text="39.91,116.31\n").exit_code == 10
    shown = json.loads(run("ledger", "show", "me.db", "--json", folder=town).stdout)
    assert {each["answer"] for each in shown["releases"]} <= {"39.905,116.31", "39.915,116.33"}
    assert "releases made: 2" in run("ledger", "verify", "me.db", folder=town).stdout
    for digits in (b"9054321", b"3123457"):
        assert digits not in (town / "me.db").read_bytes()


def test_points_of_a_problem_file_on_a_line_and_at_places(town: Path) -> None:
    of_file = run("release", "town.toml", "--ledger", "a.db", "--json", folder=town, text="39.91,116.31\n")
    assert of_file.exit_code == 0, of_file.stderr
    assert json.loads(of_file.stdout)["epsilon"] == 0.5
    evenly = ("town.toml", "--ledger", "b.db", "--spread", 4, "--budget", 1, "--json")
    assert json.loads(run("release", *evenly, folder=town, text="39.91,116.31\n").stdout)["epsilon"] == 0.25
    on_line = run("release", "line.pgm", "--ledger", "c.db", "--json", folder=town, text="1.25\n")
    assert on_line.exit_code == 0, on_line.stderr
    assert json.loads(on_line.stdout)["observable"] in (1.0, 2.0)
    tested = ("town.pgm", "--ledger", "f.db", "--test", 0.5, "--within", 9, "--json")
    predicted = [json.loads(run("release", *tested, folder=town, text="39.91,116.31\n").stdout) for _ in range(2)]
    assert [each["epsilon"] for each in predicted] in ([1.0, 0.5], [1.0, 1.5])
    (town / "key").write_bytes(bytes(range(32)))
    places = ("town.pgm", "--ledger", "d.db", "--memoised", "key", "--place", 0.5, "--json")
    told = [json.loads(run("release", *places, folder=town, text="39.9021,116.3021\n").stdout) for _ in range(2)]
    assert [each["epsilon"] for each in told] == [1.0, 0.0]
    assert told[0]["observable"] == told[1]["observable"]
    (town / "places").write_text("39.9021,116.3021\n\n39.918,116.338\n")
    frequent = ("town.pgm", "--ledger", "e.db", "--memoised", "key", "--places", "places", "--radius", 0.1, "--json")
    fixes = ("39.9022,116.3020\n", "39.9020,116.3022\n", "39.91,116.32\n", "39.918,116.338\n")
    week = [json.loads(run("release", *frequent, folder=town, text=fix).stdout) for fix in fixes]
    assert [each["epsilon"] for each in week] == [1.0, 0.0, 0.0, 1.0]
    assert [each["source"] for each in week] == ["memoised", "memoised", "away", "memoised"]


@pytest.mark.parametrize(
    ("options", "text", "message"),
    [
        (("town.pgm", "--distortion", 1), "39.91,116.31", "--distortion: between points there is no belief"),
        (("town.pgm", "--test", 1), "39.91,116.31", "--test and --within go together"),
        (("town.pgm", "--trace", "home.toml"), "39.91,116.31", "--trace: between points"),
        (("town.pgm", "--epsilon", 1), "39.91,116.31", "leave epsilon out"),
        (("town.pgm", "--when-spent", "belief"), "39.91,116.31", "--when-spent"),
        (("town.pgm", "--memoised", "town.toml"), "39.91,116.31", "--place must say how large a place is"),
        (("town.pgm", "--place", 1), "39.91,116.31", "--place goes with --memoised"),
        (("home.toml", "--memoised", "town.toml", "--place", 1), "cell-7", "leave it out"),
        (("home.toml", "--memoised", "town.toml", "--places", "x", "--radius", 1), "cell-7", "secrets that are points"),
        (("town.pgm", "--memoised", "town.toml", "--places", "x"), "39.91,116.31", "--places and --radius go together"),
        (("town.pgm", "--radius", 1), "39.91,116.31", "--places and --radius go together"),
        (
            ("town.pgm", "--memoised", "town.toml", "--places", "town.toml", "--radius", 1),
            "39.91,116.31",
            "line 2 of town.toml: it is not LATITUDE",
        ),
        (("town.pgm",), "116.31,39.91", "the latitude first"),
        (("town.pgm",), "39.91", "the secret: it is not LATITUDE,LONGITUDE"),
        (("town.pgm",), "nan,116.31", "the secret: it is not LATITUDE,LONGITUDE"),
        (("town.pgm",), "", "there is no secret"),
    ],
)
def test_what_does_not_work_for_points_is_told(
    town: Path, options: tuple[object, ...], text: str, message: str
) -> None:
    result = run("release", *options, "--ledger", "l.db", folder=town, text=text + "\n")
    assert result.exit_code == 3
    assert message in " ".join(result.stderr.split())
    assert "116.31" not in result.stderr
    assert "39.91" not in result.stderr


def test_replay(folder: Path) -> None:
    options = (
        "--out",
        "replayed",
        "--quick",
        "--users",
        1,
        "--strategies",
        "noise,memoised",
        "--learn",
        0.95,
        "--jobs",
        1,
    )
    done = run("replay", *options, folder=folder)
    assert done.exit_code == 0, done.stderr
    assert "memoised" in done.stdout
    assert "no figure of home" in done.stderr
    for name in ("day.png", "ways.csv", "people.csv", "hours.csv"):
        assert (folder / "replayed" / name).stat().st_size > 50
    again = json.loads(run("replay", *options, "--json", folder=folder).stdout)
    assert again["made"] == 0
    assert run("replay", "--out", "r", "--strategies", "best", "--quick", folder=folder).exit_code == 3


def test_choosing_a_policy_writes_tables_and_a_figure_without_positions(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    options = ("--out", "chosen", "--choose", "home", "--users", "1", "--quick", "--seeds", "1", "--budget", "60")
    done = run("replay", *options, folder=folder)
    assert done.exit_code == 0
    assert "The cheapest policy that keeps home" in done.stdout
    assert "Noise was drawn exactly" in " ".join(done.stdout.split())
    assert {path.name for path in (folder / "chosen").iterdir()} == {"policies.json", "policies.csv", "policies.png"}
    written = json.loads((folder / "chosen" / "policies.json").read_text())
    assert [row["policy"] for row in written["rows"]][-1] == written["recommended"] == "frequent places"
    exported = (folder / "chosen" / "policies.json").read_text() + (folder / "chosen" / "policies.csv").read_text()
    assert "person-" not in exported
    assert not {"latitude", "longitude", "times", "xy"} & set(json.dumps(written).replace('"', " ").split())
    assert json.loads(run("replay", *options, "--json", folder=folder).stdout)["matters"] == "home"


HABITS = """[home]
latitude = 52.07
longitude = 5.08

[[habit]]
latitude = 52.10
longitude = 5.14
start = 8.5
end = 17
"""


def test_choosing_a_policy_for_habits(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    (folder / "me.toml").write_text("days = 6\n" + HABITS)
    options = ("--out", "chosen", "--choose", "home", "--habits", "me.toml", "--quick", "--seeds", 1, "--budget", 60)
    done = run("replay", *options, "--json", folder=folder)
    assert done.exit_code == 0, done.stderr
    written = json.loads(done.stdout)
    assert (written["people"], written["days"], written["requests"]) == (1, 3, 3 * 144)
    assert written["recommended"] == "frequent places"
    ways = ("--out", "ways", "--habits", "me.toml", "--quick", "--strategies", "memoised", "--jobs", 1, "--json")
    replayed = run("replay", *ways, folder=folder)
    assert replayed.exit_code == 0, replayed.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--data", "home.toml"), "leave --data out"),
        (("--users", "2"), "leave --users out"),
        (("--slot", "600"), "--slot is for traces"),
        (("--timezone", "Europe/Zurich"), "--timezone is for traces"),
        (("--format", "gpx"), "--format says how to read --data"),
        (("--window", "0,0,1,1"), "neither home nor habits are inside --window"),
    ],
)
def test_what_does_not_go_with_habits_is_refused(folder: Path, options: tuple[str, ...], said: str) -> None:
    (folder / "me.toml").write_text(HABITS)
    done = run("replay", "--out", "r", "--choose", "home", "--habits", "me.toml", *options, folder=folder)
    assert done.exit_code == 3
    assert said in done.stderr
    assert "52.07" not in done.stderr
    assert not (folder / "r").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--choose", "work"), "--choose takes trips, presence, home"),
        (("--choose", "home", "--jobs", "2"), "--jobs goes with replays of strategies"),
        (("--choose", "home", "--when-spent", "refuse"), "leave --when-spent out"),
    ],
)
def test_what_does_not_go_with_a_choice_is_refused(folder: Path, options: tuple[str, ...], said: str) -> None:
    done = run("replay", "--out", "r", "--quick", *options, folder=folder)
    assert done.exit_code == 3
    assert said in done.stderr
    assert not (folder / "r").exists()
