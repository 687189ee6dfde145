"""Comparisons: every number against a direct computation, matching, and nobody beats the optimum."""

import csv
import re
from collections.abc import Callable
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from privacygames.baselines import RESERVED, baseline_names
from privacygames.presentation import explain_comparison
from support import error_by_hand, optimum_by_hand, priors, two_workers

CITY = pg.Grid(columns=3, rows=2, width=3.0, height=2.4)


def city(weights: object = (0.4, 0.1, 0.0, 0.2, 0.25, 0.05), cost: str = "euclidean") -> pg.Problem:
    return pg.Problem(pg.Prior(CITY, weights), cost=cost)  # type: ignore[arg-type]


def ages() -> pg.Problem:
    return pg.Problem(pg.Prior.from_counts(pg.Numbers(range(6), unit="years"), [1, 4, 6, 3, 2, 1]), cost="absolute")


def test_rows_are_what_direct_computation_gives() -> None:
    problem = city()
    others = {"visitor": pg.Prior(CITY, [0.0, 0.5, 0.5, 0.0, 0.0, 0.0]), "local": problem.prior}
    mechanisms: dict[str, pg.Mechanism | Callable[[], pg.Mechanism]] = {
        "exponential": pg.baselines.exponential(problem, 1.2),
        "uniform": partial(pg.baselines.uniform, problem),
    }
    compared = pg.compare(problem, mechanisms, adversaries=others)
    assert [(row.mechanism_name, row.adversary) for row in compared.rows] == [
        (mechanism, adversary) for mechanism in mechanisms for adversary in others
    ]
    truth = problem.prior.probabilities
    for row in compared.rows:
        p = row.mechanism.probabilities
        costs = [sum(p[s, o] * problem.cost[o, s] for o in range(6)) for s in range(6)]
        assert row.report.cost == pytest.approx(float(truth @ costs))
        assert row.report.worst_cost == pytest.approx(max(costs))
        for attack, error in (
            (pg.attacks.optimal, row.report.distortion),
            (pg.attacks.bayesian, row.report.distortion_bayesian),
        ):
            guesses = attack(row.mechanism, problem, prior=others[row.adversary]).matrix
            assert error == pytest.approx(error_by_hand(p, guesses, problem.distance, truth))
    assert compared.rows[0].seconds is None
    assert (compared.rows[2].seconds or 0) > 0
    assert compared.rows[2].mechanism is compared.rows[3].mechanism


def test_the_usual_adversaries() -> None:
    problem = city()
    informed, ignorant = pg.compare(problem, {"a": pg.baselines.exponential(problem, 1.0)}).rows
    assert informed.adversary == "knows the prior"
    assert ignorant.adversary == "knows nothing"
    assert informed.report.distortion <= ignorant.report.distortion
    assert ignorant.report.prior_entropy == pytest.approx(np.log2(6))


def test_matched_at_epsilon_all_realise_it() -> None:
    epsilon = 0.8
    compared = pg.compare(city(), pg.calibrated_baselines(city(), epsilon=epsilon))
    found = {row.mechanism_name: row.report.epsilon for row in compared.rows}
    assert set(found) == {
        name for name in (*RESERVED, *baseline_names()) if not name.startswith(("geometric", "staircase"))
    }
    for name in ("optimal", "planar-laplace", "exponential", "randomised-response"):
        assert epsilon * (1 - 2e-3) <= found[name] <= epsilon * (1 + 1e-9)
    assert all(value <= epsilon * (1 + 1e-9) for value in found.values())
    assert found["uniform"] == found["constant"] == 0


def test_matched_at_epsilon_within_a_threshold() -> None:
    problem = ages()
    compared = pg.compare(problem, pg.calibrated_baselines(problem, epsilon=1.0, within=2.0), within=2.0)
    found = {row.mechanism_name: row.report.epsilon_within for row in compared.rows}
    assert {"staircase", "staircase+remap", "geometric"} <= set(found)
    for name in ("optimal", "staircase", "geometric", "exponential", "randomised-response"):
        assert found[name] == pytest.approx(1.0, rel=2e-3)
    costs = {row.mechanism_name: row.report.cost for row in compared.rows}
    assert costs["optimal"] <= min(costs.values()) + 1e-6


def test_matched_at_distortion_all_leave_that_error() -> None:
    problem = city(cost="hamming")
    target = 0.6 * pg.max_distortion(problem)
    compared = pg.compare(
        problem, pg.calibrated_baselines(problem, distortion=target), adversaries={"one": problem.prior}
    )
    found = {row.mechanism_name: row.report for row in compared.rows}
    assert "spanner" not in found
    for name in ("optimal", "planar-laplace", "exponential", "randomised-response"):
        assert target * (1 - 1e-6) <= found[name].distortion <= target * 1.01
    least = optimum_by_hand(problem, distortion=target)
    for report in found.values():
        assert report.distortion >= target * (1 - 1e-6)
        assert report.cost >= least - 1e-6


@given(weights=priors(6), epsilon=st.sampled_from([0.4, 1.0, 2.5]), cost=st.sampled_from(["hamming", "euclidean"]))
@settings(max_examples=8)
def test_nobody_beats_the_optimum_at_the_epsilon_it_realises(weights: object, epsilon: float, cost: str) -> None:
    problem = city(weights, cost)
    names = [
        name for name in (*RESERVED, *baseline_names()) if not name.startswith(("planar", "geometric", "staircase"))
    ]
    mechanisms = pg.calibrated_baselines(problem, epsilon=epsilon, names=names)
    mechanisms["planar-laplace"] = partial(pg.baselines.planar_laplace, problem, epsilon)  # not matched: quicker
    for row in pg.compare(problem, mechanisms, adversaries={"one": problem.prior}).rows:
        assert isfinite(row.report.epsilon)
        assert row.report.cost >= optimum_by_hand(problem, epsilon=row.report.epsilon * (1 + 1e-9)) - 1e-7
        if row.mechanism_name == "optimal":
            assert row.bound is not None
            assert row.bound <= row.report.cost + 1e-9


def test_an_epsilon_of_nothing_gives_the_best_constant() -> None:
    problem = city()
    made = pg.calibrated_baselines(problem, epsilon=1e-12, names=["optimal"])["optimal"]()
    assert (made.probabilities == made.probabilities[0]).all()
    assert made.certificate.cost == pytest.approx(float((problem.cost @ problem.prior.probabilities).min()))


def test_the_trade_off_falls_with_epsilon_and_rises_with_distortion() -> None:
    problem = city(cost="hamming")
    curve = pg.trade_off(
        problem, epsilons=[0.5, 1, 2], names=["optimal", "exponential"], adversaries={"a": problem.prior}
    )
    for name in ("optimal", "exponential"):
        costs = [row.report.cost for row in curve.rows if row.mechanism_name == name]
        assert costs == sorted(costs, reverse=True)
    asked = [row.target for row in curve.rows]
    assert asked == [0.5, 1, 2, 0.5, 1, 2]
    assert curve.rows[0].report.cost == pytest.approx(optimum_by_hand(problem, epsilon=0.5), rel=1e-5)
    most = pg.max_distortion(problem)
    rising = pg.trade_off(problem, distortions=[0.2 * most, 0.9 * most]).rows
    assert rising[0].report.cost < rising[2].report.cost


def test_the_table_and_the_csv_say_the_same(tmp_path: Path) -> None:
    compared = pg.compare(ages(), pg.calibrated_baselines(ages(), epsilon=0.5, names=["optimal", "geometric+remap"]))
    lines = str(compared).splitlines()
    assert re.split(r"  +", lines[0]) == [
        *("mechanism", "cost", "worst", "epsilon per year", "between any two secrets"),
        *("adversary", "optimal", "Bayesian", "exact", "seconds"),
    ]
    assert len(lines) == 5
    assert len({line.index("knows") for line in lines[1:]}) == 1
    compared.to_csv(tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open() as file:
        read = list(csv.DictReader(file))
    assert [row["mechanism"] for row in read] == [row.mechanism_name for row in compared.rows]
    assert float(read[0]["cost"]) == compared.rows[0].report.cost
    assert f"{compared.rows[0].report.cost:.4f}" in lines[1]
    assert str(explain_comparison(compared)["optimal"]).startswith("An adversary's best guess is off by ")


def test_the_figures_show_every_row(tmp_path: Path) -> None:
    problem = city(cost="hamming")
    compared = pg.compare(
        problem, pg.calibrated_baselines(problem, distortion=0.5, names=["optimal", "exponential", "uniform"])
    )
    figure = pg.plots.comparison(compared)
    cost, worst, epsilon, attacks, _ = figure.axes
    assert [text.get_text() for text in cost.get_yticklabels()] == ["optimal", "exponential", "uniform"]
    drawn = [line.get_xdata()[0] for line in cost.lines if line.get_marker() == "o"]
    assert drawn == [row.report.cost for row in compared.rows[::2]]
    assert len(attacks.lines) == 5  # two attacks by two adversaries, and the blind guess
    assert attacks.get_xlabel() == "error, km"
    assert worst.get_xlabel() == "share of untrue outputs"
    assert len(epsilon.texts) == 3
    figure.savefig(tmp_path / "comparison.png")
    curve = pg.trade_off(problem, epsilons=[0.5, 1.5], names=["optimal", "exponential"])
    left, right = pg.plots.trade_off(curve).axes
    assert [line.get_label() for line in left.lines] == ["optimal", "exponential"]
    own = [row for row in curve.rows[:4] if row.adversary == "knows the prior"]
    for panel, values in ((left, [row.report.cost for row in own]), (right, [row.report.distortion for row in own])):
        assert list(panel.lines[0].get_xdata()) == [0.5, 1.5]  # what was asked, not what was realised
        assert list(panel.lines[0].get_ydata()) == values
        assert "bound" in panel.get_xlabel()
    assert figure.get_suptitle() == "3 mechanisms for 6 secrets"
    lone = pg.plots.trade_off(pg.trade_off(problem, distortions=[0.2, 0.4]))
    assert len(lone.axes) == 1  # designs for distortion alone bound no epsilon, so none is drawn
    with pytest.raises(pg.InvalidProblem, match="one value only"):
        pg.plots.trade_off(compared)


def test_progress_names_what_is_made() -> None:
    said: list[pg.Progress] = []
    pg.compare(
        ages(), pg.calibrated_baselines(ages(), epsilon=1.0, names=["uniform", "constant"]), progress=said.append
    )
    assert [(now.job, now.message, now.done, now.total) for now in said] == [
        ("compare", "uniform", 0, 2),
        ("compare", "constant", 1, 2),
    ]


def test_matching_and_designing_can_be_cancelled() -> None:
    problem = city()
    switch = pg.Cancellation()
    made = pg.calibrated_baselines(
        problem, epsilon=1.0, names=["optimal", "planar-laplace"], progress=switch.callback()
    )
    switch.cancel()
    with pytest.raises(pg.Cancelled):
        made["optimal"]()
    with pytest.raises(pg.Cancelled):
        pg.calibrated_baselines(problem, epsilon=1.0, names=["exponential"], progress=switch.callback())


def test_wrong_questions() -> None:
    problem = city()
    with pytest.raises(pg.InvalidProblem, match="calibrated to one target"):
        pg.calibrated_baselines(problem)
    with pytest.raises(pg.InvalidProblem, match="calibrated to one target"):
        pg.calibrated_baselines(problem, epsilon=1.0, distortion=0.5)
    with pytest.raises(pg.InvalidProblem, match="no mechanism 'laplace'"):
        pg.calibrated_baselines(problem, epsilon=1.0, names=["laplace"])
    with pytest.raises(pg.InvalidProblem, match="no mechanism 'optimal\\+remap'"):
        pg.calibrated_baselines(problem, epsilon=1.0, names=["optimal+remap"])
    with pytest.raises(pg.InvalidProblem, match="needs secrets that are Numbers"):
        pg.calibrated_baselines(problem, epsilon=1.0, names=["geometric"])
    with pytest.raises(pg.InvalidProblem, match="needs within"):
        pg.calibrated_baselines(ages(), epsilon=1.0, names=["staircase"])
    with pytest.raises(pg.InvalidProblem, match="spanner"):
        pg.calibrated_baselines(problem, distortion=0.1, names=["spanner"])
    with pytest.raises(pg.Infeasible) as caught:
        pg.calibrated_baselines(problem, distortion=9.0)
    assert caught.value.limit == pg.max_distortion(problem)
    with pytest.raises(pg.InvalidProblem, match="nothing to compare"):
        pg.compare(problem, {})
    with pytest.raises(pg.InvalidProblem, match="adversaries is empty"):
        pg.compare(problem, pg.calibrated_baselines(problem, epsilon=1.0, names=["uniform"]), adversaries={})
    with pytest.raises(pg.InvalidProblem, match="other secrets"):
        pg.compare(problem, {"a": pg.baselines.uniform(problem)}, adversaries={"x": ages().prior})
    with pytest.raises(pg.InvalidProblem, match="list of epsilons, or one of distortions"):
        pg.trade_off(problem, epsilons=[1.0], distortions=[0.1])
    with pytest.raises(pg.InvalidProblem, match="list of epsilons"):
        pg.trade_off(problem)


def halved(problem: pg.Problem, epsilon: float) -> pg.Mechanism:
    """A baseline that other processes have not registered: the exponential mechanism with half the parameter."""
    return pg.baselines.exponential(problem, epsilon / 2)


def values_of(comparison: pg.Comparison) -> list[dict[str, Any]]:
    """All values but the times."""
    return [{name: value for name, value in row.to_dict().items() if name != "seconds"} for row in comparison.rows]


def test_a_curve_is_the_same_in_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = pg.Problem(pg.Prior.from_counts(pg.Numbers(range(5)), [1, 2, 3, 2, 1]), cost="absolute")
    monkeypatch.setitem(pg.baselines.BASELINES, "halved", pg.baselines.Baseline(halved))
    options: dict[str, Any] = {"epsilons": [0.4, 0.8], "names": ["optimal", "geometric+remap", "halved"]}
    here = pg.trade_off(problem, **options)
    done: list[pg.Progress] = []
    there = pg.trade_off(problem, **options, jobs=2, progress=done.append)
    assert values_of(there) == [pytest.approx(row) for row in values_of(here)]
    assert [row.label for row in there.rows] == [row.label for row in here.rows]
    assert [now.done for now in done] == [1, 2, 3, 4, 5, 6]
    assert {now.message for now in done} == {row.label for row in here.rows}
    assert there.table().count("optimal at") == 2  # a mechanism's first row only


def test_known_mechanisms_are_compared_in_several_processes() -> None:
    problem = pg.Problem(pg.Prior.from_counts(pg.Numbers(range(4)), [1, 2, 3, 4]), cost="absolute")
    makers = pg.calibrated_baselines(problem, epsilon=0.8, names=["optimal", "geometric", "constant"])
    assert values_of(pg.compare(problem, makers, jobs=2)) == [
        pytest.approx(row) for row in values_of(pg.compare(problem, makers))
    ]
    with pytest.raises(pg.InvalidProblem, match=r"'mine', or a metric, cannot be sent .* leave jobs at 1"):
        pg.compare(problem, {"mine": lambda: pg.baselines.uniform(problem)}, jobs=2)
    line = pg.PointProblem(pg.PointPrior(pg.Interval(0.0, 4.0), [1.0, 3.0]), [1.0, 2.0, 3.0])
    with pytest.raises(pg.InvalidProblem, match="jobs and scheduler are for secrets that are cells"):
        pg.compare(line, epsilon=0.5, jobs=2)  # type: ignore[call-overload]


@pytest.mark.filterwarnings("ignore")
def test_a_curve_is_the_same_on_a_cluster() -> None:
    problem = pg.Problem(pg.Prior.from_counts(pg.Numbers(range(5)), [1, 2, 3, 2, 1]), cost="absolute")
    here = pg.trade_off(problem, epsilons=[0.4, 0.8])
    with two_workers() as cluster:
        there = pg.trade_off(problem, epsilons=[0.4, 0.8], scheduler=cluster)
    assert values_of(there) == [pytest.approx(row) for row in values_of(here)]
