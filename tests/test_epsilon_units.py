"""Wherever ε is shown to a person, its unit is beside it, and the largest log-ratio between any two secrets."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import privacygames as pg
from privacygames.cli.app import app
from privacygames.mechanism_files import load_finite
from privacygames.problem import Scale
from privacygames.releases import Budget, Ledger, Memoised, Releases

CITY = pg.Problem(pg.Prior.uniform(pg.Grid(columns=2, rows=1, width=4.0, height=1.0)))  # cells 2 km apart
AGES = pg.Problem(pg.Prior.uniform(pg.Numbers([20, 30], unit="years")))
PLACES = pg.design(CITY, epsilon=0.5)
YEARS = pg.design(AGES, epsilon=0.1)
TOLD = "0.5 per km; 1 between any two secrets"
EPSILON = re.compile(r"(?:ε|[Ee]psilon)(?: spent| charged)?\s*[=≤]?\s*(\d[\d.e-]*+)(?!\s*(?:per |between ))")
"""An ε with a number and without a unit after it."""

TOML = """
[space]
kind = "grid"
columns = 2
rows = 1
width = 4.0
height = 1.0
[prior]
counts = [1, 1]
[bounds]
epsilon = 0.5
"""


def run(*arguments: object) -> str:
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, [str(each) for each in arguments])
    assert done.exit_code == 0, done.output
    return done.output


def test_an_amount_names_its_unit() -> None:
    assert Scale("euclidean", "km").epsilon("0.5", 1.0) == TOLD
    assert Scale("absolute", "years").epsilon("0.1") == "0.1 per year"
    assert Scale("", "").epsilon("2") == "2 per unit of distinguishability"
    near = Scale("euclidean", "km").epsilon("2", np.inf, within=3.0)
    assert near == "2 between secrets at most 3 km apart; inf between any two secrets"


def test_certificates_name_the_unit() -> None:
    for mechanism in (PLACES, pg.PublicMechanism.of(PLACES)):
        certificate = mechanism.certificate
        assert dict(certificate.rows())["guaranteed epsilon"] == TOLD
        assert certificate.to_dict()["counted"] == "per km"
        assert certificate.any_pair == pytest.approx(np.log(PLACES.probabilities[0, 0] / PLACES.probabilities[1, 0]))
    assert "0.1 per year; 1 between any two secrets" in str(YEARS.certificate)
    assert TOLD in repr(pg.PublicMechanism.of(PLACES))
    near = pg.design(CITY, epsilon=0.7, within=2.5).certificate
    assert "0.7 between secrets at most 2.5 km apart; 0.7 between any two secrets" in str(near)


def test_what_is_said_of_a_grid_says_that_epsilon_is_between_cells() -> None:
    """Once, in each certificate and report; not of numbers, nor where outputs reveal nothing."""
    for rows in (PLACES.certificate.rows(), pg.PublicMechanism.of(PLACES).certificate.rows()):
        assert [name for name, _ in rows].count("between coordinates") == 1
    report = pg.evaluate(PLACES, CITY)
    assert dict(report.rows())["between coordinates"].startswith("infinite")
    assert "privacygames.points" in str(report)
    for mechanism in (YEARS, pg.baselines.constant(CITY)):
        assert "between coordinates" not in str(mechanism.certificate)
        assert "between coordinates" not in str(pg.evaluate(mechanism, mechanism.problem))


def test_reports_and_comparisons_name_the_unit() -> None:
    report = pg.evaluate(PLACES, CITY, within=2.5)
    assert dict(report.rows())["realised epsilon"] == "0.5000 per km; 1 between any two secrets"
    near = "1.0000 between secrets at most 2.5 km apart; 1 between any two secrets"
    assert dict(report.rows())["realised epsilon, within"] == near
    assert report.to_dict()["epsilon_counted"] == "per km"
    assert report.any_pair == pytest.approx(1.0)
    assert "or between any two secrets by more than 2.72" in str(pg.explain(report, CITY))
    compared = pg.compare(CITY, {"mine": PLACES})
    assert "epsilon per km  between any two secrets" in str(compared).splitlines()[0]
    assert re.search(r"0\.5000\s+1\.0000", str(compared).splitlines()[1])
    curve = pg.trade_off(CITY, epsilons=[0.25, 0.5])
    assert [row.label for row in curve.rows[::2]] == ["optimal at epsilon 0.25 per km", "optimal at epsilon 0.5 per km"]
    assert pg.trade_off(AGES, distortions=[2.0]).rows[0].label == "optimal at distortion 2 years"


def test_baselines_and_approximations_name_the_unit() -> None:
    names = [
        pg.baselines.exponential(AGES, 0.1),
        pg.baselines.geometric(AGES, 0.1),
        pg.baselines.staircase(AGES, 0.1),
        pg.baselines.randomised_response(AGES, 0.1),
        pg.baselines.planar_laplace(CITY, 0.1),
    ]
    told = [each.certificate.provenance.solver for each in names]
    assert [text.split("ε = ")[1] for text in told] == [
        "0.1 per year",
        "0.1 per year",
        "0.1 between secrets at most 10 years apart",
        "0.1 between any two secrets",
        "0.1 per km in the plane",
    ]


def sharing(ledger: Path | None = None) -> Releases:
    budget = [Budget(1.2), Budget(3.0, every=3600.0, distinguishability="hamming", name="any two")]
    return Releases(CITY, pg.Mobility.still(CITY.space), mechanism=PLACES, budget=budget, ledger=ledger)


def test_a_release_names_the_unit_of_every_budget() -> None:
    releases = sharing()
    releases.release("cell-0", at=0.0)
    release = releases.release("cell-0", at=1.0)
    rows = dict(release.rows())
    assert rows["epsilon charged"] == TOLD
    assert rows["epsilon spent"] == "1 per km; 2 between any two secrets"
    assert (
        rows["left: total"] == "0.2 per km; 0.4 between any two secrets; no room for another release of this mechanism"
    )
    assert rows["left: any two"].startswith("1 per unit of the hamming distance; 1 between any two secrets")
    assert (release.counted, release.any_pair, release.spent_any_pair) == ("per km", 1.0, 2.0)
    with pytest.raises(pg.BudgetExceeded, match=r"total: 0\.2 of 1\.2 per km; 2\.4 between any two secrets left"):
        releases.release("cell-0", at=2.0)
    said = releases.guarantees()
    assert str(said).splitlines()[0].endswith("epsilon 1 per km; 2 between any two secrets")
    assert said.trace_any_pair == 2.0
    assert said.moment_epsilon_under_chain is not None
    assert said.moment_any_pair_under_chain == pytest.approx(
        2 * said.moment_epsilon_under_chain
    )  # the two cells are 2 km apart


def test_memoised_claims_name_the_unit() -> None:
    policy = Memoised(b"0123456789abcdef", 0.5)
    releases = Releases(CITY, pg.Mobility.still(CITY.space), policy=policy)
    releases.release("cell-0", at=0.0)
    assert f"epsilon {TOLD}, between traces with the same returns only" in str(releases.guarantees())


def test_ledgers_and_commands_name_the_unit(tmp_path: Path) -> None:
    path, problem, mechanism = tmp_path / "l.db", tmp_path / "city.toml", tmp_path / "m.pgm"
    sharing(path).release("cell-0", at=0.0)
    shown = run("ledger", "show", path)
    assert "epsilon is counted" in shown
    assert re.search(r"total\s+per km\s+0\.5\s+1\s+1\.2", shown)
    assert re.search(r"0\.5 per km\s+0\.5 per km\s+1", shown)
    assert re.search(r"any two\s+per unit of the hamming distance", run("ledger", "verify", path))
    verified = Ledger(path).verify()
    assert (verified.counted["total"], verified.farthest["total"]) == ("per km", 2.0)
    problem.write_text(TOML)
    assert TOLD in run("design", problem, "--out", mechanism)
    assert TOLD in run("verify", mechanism)
    assert "0.5000 per km; 1 between any two secrets" in run("evaluate", mechanism)
    assert "matched at epsilon 0.5 per km" in run("compare", problem, "--mechanism", "optimal")
    released = run("release", problem, "cell-0", "--ledger", tmp_path / "n.db", "--budget", 2, "--at", 0)
    assert re.search(r"left: total\s+1\.5 per km; 3 between any two secrets", released)
    public = tmp_path / "public.pgm"
    pg.PublicMechanism.of(load_finite(mechanism)).save(public)
    assert TOLD in run("verify", public)
    assert run("sample", public, "cell-0").strip() in ("cell-0", "cell-1")
    for text in (shown, released, run("demo"), run("find", problem, "epsilon", "--cost-at-most", 0.4)):
        assert not EPSILON.findall(text)


@pytest.mark.parametrize("when_changed", ["record", "same-unit"])
def test_a_ledger_never_adds_kilometres_to_years(tmp_path: Path, when_changed: Any) -> None:
    """Also where the caller states that the unit is the same: it is known not to be."""
    path = tmp_path / "l.db"
    Releases(CITY, pg.Mobility.still(CITY.space), mechanism=PLACES, ledger=path).release("cell-0", at=0.0)
    still = pg.Mobility.still(AGES.space)
    with pytest.raises(pg.InvalidProblem, match=r"per km, and here it would count per year"):
        Releases(AGES, still, mechanism=YEARS, ledger=path, when_changed=when_changed)
    with Ledger(path) as ledger:
        assert ledger.verify().spent == {"total": "0.5"}


def test_a_total_over_two_problems_uses_the_larger_distances(tmp_path: Path) -> None:
    """Ten times the distances: what was spent allows up to ten times the log-ratio between any two secrets."""
    path, wide = tmp_path / "l.db", pg.Problem(pg.Prior.uniform(pg.Grid(2, 1, 40.0, 1.0)))
    Releases(CITY, pg.Mobility.still(CITY.space), mechanism=PLACES, ledger=path).release("cell-0", at=0.0)
    fixed = pg.design(wide, epsilon=0.5)
    still = pg.Mobility.still(wide.space)
    after = Releases(wide, still, mechanism=fixed, ledger=path, when_changed="same-unit")
    release = after.release("cell-0", at=1.0)
    assert (release.any_pair, release.spent_any_pair) == (10.0, 20.0)
    first, second = Ledger(path).records()
    state = Ledger(path).balances()
    assert state.max_log_ratio("total", first.totals[0], first.scope_event) == 1.0
    assert state.max_log_ratio("total", second.totals[0], second.scope_event) == 20.0


def test_an_unlimited_distinguishability_has_no_largest_ratio() -> None:
    apart = np.array([[0.0, 1.0, np.inf], [1.0, 0.0, np.inf], [np.inf, np.inf, 0.0]])
    problem = pg.Problem(pg.Prior.uniform(pg.Categories("abc")), distinguishability=apart)
    releases = Releases(problem, pg.Mobility.still(problem.space), epsilon=1.0)
    release = releases.release("a", at=0.0)
    assert release.any_pair is None
    assert dict(release.rows())["epsilon charged"].startswith("1 per unit of distinguishability")
    assert releases.guarantees().trace_any_pair == np.inf
