"""Reports and comparisons of mechanisms for points, against simulation and a finite mechanism."""

from pathlib import Path

import numpy as np
import pytest

import privacygames as pg
from privacygames import points

AREA = pg.Area(4.0, 3.0)


def prior(count: int = 6, seed: int = 7) -> pg.PointPrior:
    rng = np.random.default_rng(seed)
    return pg.PointPrior(AREA, rng.uniform(0.2, (3.8, 2.8), (count, 2)), rng.uniform(1, 4, count))


@pytest.fixture(scope="module")
def mechanism() -> pg.PointMechanism:
    problem = pg.PointProblem(prior(), AREA.lattice((4, 3)), mesh=points.Mesh(AREA, 3, 2))
    return points.design(problem, epsilon=1.0, prove_bound=False)


@pytest.fixture(scope="module")
def report(mechanism: pg.PointMechanism) -> pg.PointReport:
    return pg.evaluate(mechanism)


def test_what_is_about_the_prior_agrees_with_the_finite_mechanism(
    mechanism: pg.PointMechanism, report: pg.PointReport
) -> None:
    finite = pg.evaluate(mechanism.at_points(), points.finite_problem(mechanism.problem))
    for name in ("cost", "prior_entropy", "posterior_entropy", "mutual_information", "vulnerability"):
        assert getattr(report, name) == pytest.approx(getattr(finite, name), abs=1e-9)
    assert report.attack_error <= finite.distortion + 1e-9  # more guesses are allowed
    assert report.distortion_from_prior <= finite.distortion_from_prior + 1e-9


def test_cost_and_attack_agree_with_simulation(mechanism: pg.PointMechanism, report: pg.PointReport) -> None:
    rng = np.random.default_rng(11)
    problem, count = mechanism.problem, 200_000
    secrets = problem.prior.xy[rng.choice(len(problem.prior), count, p=problem.prior.probabilities)]
    drawn = mechanism.draw(secrets, rng)
    guesses = points.optimal_attack(mechanism, problem).guesses
    assert guesses is not None
    for values, expected in [
        (np.hypot(*(secrets - problem.outputs[drawn]).T), report.cost),
        (np.hypot(*(secrets - guesses[drawn]).T), report.attack_error),
    ]:
        assert abs(values.mean() - expected) < 5 * values.std() / np.sqrt(count)


def test_no_guess_of_a_fine_lattice_errs_less_than_the_bound(
    mechanism: pg.PointMechanism, report: pg.PointReport
) -> None:
    problem = mechanism.problem
    masses = mechanism.probabilities(problem.prior.points) * problem.prior.probabilities[:, None]
    errors = problem.distances(AREA.lattice((120, 90)), problem.prior.xy) @ masses
    assert report.distortion is not None
    assert report.distortion <= report.attack_error <= errors.min(axis=0).sum()
    assert errors.min(axis=0).sum() - report.distortion < 0.02
    assert report.attack_error - report.distortion < 1e-9


def test_costs_at_points_and_their_bound(mechanism: pg.PointMechanism, report: pg.PointReport) -> None:
    lattice = AREA.lattice((41, 31), edges=True)
    costs = points.cost_per_point(mechanism, mechanism.problem, lattice)
    assert report.worst_cost is not None
    assert costs.max() <= report.worst_cost < costs.max() * 1.01
    assert report.cost < report.worst_cost_seen <= report.worst_cost
    squared = pg.PointProblem(prior(), AREA.lattice((4, 3)), cost="squared")
    other = pg.evaluate(mechanism, squared)
    assert other.worst_cost is not None
    assert other.worst_cost >= points.cost_per_point(mechanism, squared, lattice).max()


def test_measured_log_ratios_are_below_the_guarantee(mechanism: pg.PointMechanism, report: pg.PointReport) -> None:
    assert report.epsilon == 1.0
    assert 0.9 < report.epsilon_measured <= 1.0
    assert report.any_pair == mechanism.any_pair


def test_an_adversary_with_another_belief_errs_more(mechanism: pg.PointMechanism, report: pg.PointReport) -> None:
    elsewhere = pg.evaluate(mechanism, adversary_prior=prior(4, seed=1))
    assert elsewhere.distortion == report.distortion  # of an adversary who knows the truth
    assert elsewhere.attack_error > report.attack_error
    assert elsewhere.prior_entropy < 2.0
    knows = pg.evaluate(mechanism, adversary_prior=prior(4, seed=1), truth=prior(4, seed=1))
    assert knows.attack_error - (knows.distortion or 0.0) < 1e-9
    same = pg.evaluate(mechanism, mechanism.problem.with_prior(prior(4, seed=1)))
    assert knows.attack_error == same.attack_error
    assert knows.cost == pytest.approx(same.cost)


def test_named_adversaries_are_measured() -> None:
    problem = pg.PointProblem(prior(), AREA.lattice((3, 2)), mesh=points.Mesh(AREA, 2, 1))
    side = pg.Adversary("side", errors=(problem.prior.xy[:, 0] < 2.0) == np.array([[False], [True]]))
    limit = 0.5 * points.optimal_attack(points.uniform(problem), problem, adversary=side).error
    mechanism = points.design(problem, epsilon=2.0, distortion={side: limit}, prove_bound=False)
    (result,) = pg.evaluate(mechanism).adversary_results
    assert (result.adversary, result.guaranteed) == ("side", limit)
    assert limit <= result.realised <= result.maximum
    assert "side" in str(pg.evaluate(mechanism))
    assert pg.evaluate(mechanism, adversaries=()).adversary_results == ()


def test_a_report_as_text_and_as_plain_values(mechanism: pg.PointMechanism) -> None:
    report = pg.evaluate(mechanism, metrics={"outputs": lambda mechanism, _: len(mechanism.outputs)})
    text = str(report)
    assert "1 per km between any two points" in text
    assert "pairs of points" in text
    assert "prior's points" in text
    assert dict(report.rows())["outputs"] == "12.0000"
    plain = report.to_dict()
    assert plain["outputs"] == 12.0
    assert plain["epsilon_counted"] == "per km between any two points"
    assert all(value is None or isinstance(value, str | float | int) for value in plain.values())


def test_what_cannot_be_evaluated(mechanism: pg.PointMechanism) -> None:
    public = points.PublicPointMechanism.of(mechanism)
    assert pg.evaluate(public, mechanism.problem).cost == pytest.approx(pg.evaluate(mechanism).cost)
    with pytest.raises(pg.InvalidProblem, match="give the problem"):
        pg.evaluate(public)
    with pytest.raises(pg.InvalidProblem, match="different regions"):
        pg.evaluate(mechanism, pg.PointProblem(pg.PointPrior(pg.Area(1.0, 1.0), [(0.5, 0.5)]), [(0.5, 0.5)]))
    with pytest.raises(pg.InvalidProblem, match="not for points"):
        pg.evaluate(mechanism, within=1.0)  # type: ignore[call-overload]
    with pytest.raises(pg.InvalidProblem, match="uses already"):
        pg.evaluate(mechanism, metrics={"cost": lambda *_: 0.0})
    with pytest.raises(pg.InvalidProblem, match="another region"):
        pg.evaluate(mechanism, truth=pg.PointPrior(pg.Area(1.0, 1.0), [(0.5, 0.5)]))


@pytest.fixture(scope="module")
def comparison() -> pg.PointComparison:
    rng = np.random.default_rng(3)
    believed = pg.PointPrior(AREA, rng.uniform(0, (4.0, 3.0), (30, 2)))
    return pg.compare(pg.PointProblem(believed, AREA.lattice((4, 3))), epsilon=1.0, minimum_distance=0.1)


def test_all_contenders_have_the_same_epsilon(comparison: pg.PointComparison) -> None:
    reports = {row.mechanism_name: row.report for row in comparison.rows}
    assert len(reports) == 10
    for name, report in reports.items():
        expected = {"uniform": 0.0, "constant": 0.0, "snapped-grid": np.inf}.get(name, 1.0)
        assert report.epsilon == expected
        assert report.epsilon_measured <= expected * (1 + 1e-6)
    given = {name for name in reports if "any-point" not in name and name != "snapped-grid"}
    assert min(given, key=lambda name: reports[name].cost) == "optimal"
    assert reports["planar-laplace+remap"].cost < reports["planar-laplace"].cost
    raw, best = (reports[f"planar-laplace-any-point{ending}"] for ending in ("", "+remap"))
    assert raw.cost == 2.0 > best.cost
    assert best.cost == pytest.approx(best.attack_error, rel=1e-6)  # the output is itself the best guess
    assert raw.distortion is None


def test_the_bound_on_all_mechanisms_holds_for_those_with_its_outputs(comparison: pg.PointComparison) -> None:
    (optimal,) = (row for row in comparison.rows if row.mechanism_name == "optimal")
    assert optimal.bound is not None
    for row in comparison.rows:
        if "any-point" not in row.mechanism_name and row.report.epsilon == 1.0:
            assert row.report.cost >= optimal.bound


def test_a_comparison_says_what_a_snapped_grid_does_not_guarantee(
    comparison: pg.PointComparison, tmp_path: Path
) -> None:
    (snapped,) = (row for row in comparison.rows if row.mechanism_name == "snapped-grid")
    assert isinstance(snapped.mechanism, points.SnappedGrid)
    stated = snapped.mechanism.epsilon_apart(0.1)
    assert f"at least 0.1 km apart epsilon is {stated:.4g} per km" in snapped.note
    assert snapped.note in str(comparison)
    assert stated > 5.0
    comparison.to_csv(tmp_path / "compared.csv")
    lines = (tmp_path / "compared.csv").read_text().splitlines()
    assert len(lines) == 11
    assert lines[0].startswith("mechanism,note,seconds,bound,cost")
    assert comparison.to_dict()["rows"]


def test_mechanisms_for_cells_are_snapped_when_they_are_compared(mechanism: pg.PointMechanism) -> None:
    grid = pg.Grid(4, 3, width=4.0, height=3.0)
    finite = pg.baselines.planar_laplace(pg.Problem(pg.Prior.uniform(grid), cost="euclidean"), 1.0)
    rows = pg.compare(mechanism.problem, {"mine": mechanism, "cells": lambda: finite}).rows
    assert [row.report.epsilon for row in rows] == [1.0, np.inf]
    assert rows[0].seconds is None
    assert rows[1].seconds is not None


def test_costs_that_are_functions_and_intervals_are_compared() -> None:
    line = pg.Interval(0.0, 4.0)
    given = pg.PointProblem(
        pg.PointPrior(line, [0.5, 3.0, 3.2]), [1.0, 2.0, 3.0], cost=lambda x, outputs: np.abs(x - outputs.T)
    )
    names = ["optimal", "planar-laplace", "planar-laplace+remap", "exponential+remap", "snapped-grid", "constant"]
    named = pg.PointProblem(given.prior, [1.0, 2.0, 3.0])
    for one, other in zip(
        pg.compare(given, epsilon=0.8, names=names).rows, pg.compare(named, epsilon=0.8, names=names).rows, strict=True
    ):
        assert one.report.cost == pytest.approx(other.report.cost, rel=1e-4)
    assert len(pg.compare(given, epsilon=0.8).rows) == 8


def test_what_cannot_be_compared(mechanism: pg.PointMechanism) -> None:
    problem = mechanism.problem
    with pytest.raises(pg.InvalidProblem, match="at an epsilon"):
        pg.compare(problem)
    with pytest.raises(pg.InvalidProblem, match="no mechanism 'best'"):
        pg.compare(problem, epsilon=1.0, names=["best"])
    with pytest.raises(pg.InvalidProblem, match="minimum_distance"):
        pg.compare(problem, {"mine": mechanism}, minimum_distance=0.0)
    with pytest.raises(pg.InvalidProblem, match="for points"):
        pg.compare(pg.Problem(pg.Prior.uniform(pg.Categories("ab"))), {}, epsilon=1.0)  # type: ignore[call-overload]
    with pytest.raises(pg.InvalidProblem, match="mechanism for points"):
        pg.compare(problem, {"mine": 3})  # type: ignore[dict-item]


def test_a_figure_of_log_ratios(mechanism: pg.PointMechanism) -> None:
    grid = pg.Grid(4, 3, width=4.0, height=3.0)
    finite = pg.baselines.planar_laplace(pg.Problem(pg.Prior.uniform(grid), cost="euclidean"), 1.0)
    figure = pg.plots.ratio_against_distance({"cells": finite, "points": mechanism}, pairs=300)
    cells, ours = figure.axes
    above = []
    for axes in (cells, ours):
        distance, ratio = axes.collections[0].get_offsets().T
        above.append(int((ratio > distance).sum()))
        (line,) = axes.get_lines()
        assert (line.get_ydata() == line.get_xdata()).all()
    assert above[0] > 50
    assert above[1] == 0
    with pytest.raises(pg.InvalidProblem, match="by name"):
        pg.plots.ratio_against_distance({})


def test_a_figure_of_one_release(mechanism: pg.PointMechanism) -> None:
    """What is drawn is Bayes' rule, computed here by hand, and every mark is where it is said to be."""
    problem, place = mechanism.problem, (1.3, 2.1)
    attack = points.optimal_attack(mechanism, problem)
    before, outputs, after = pg.plots.story(mechanism, problem, attack, place).axes[:3]
    assert len(before.collections[0].get_offsets()) == len(problem.prior)
    likely = mechanism.probabilities([place])[0]
    assert np.sort(np.asarray(outputs.collections[0].get_array())) == pytest.approx(np.sort(likely))
    joint = problem.prior.probabilities * mechanism.probabilities(problem.prior.points)[:, likely.argmax()]
    assert np.sort(np.asarray(after.collections[0].get_array())) == pytest.approx(np.sort(joint / joint.sum()))
    marks = [collection.get_offsets().data[0] for collection in after.collections[1:]]
    assert attack.guesses is not None
    released, guess = mechanism.outputs[likely.argmax()], attack.guesses[likely.argmax()]
    assert np.asarray(marks) == pytest.approx(np.array([place, released, guess]))
    line = pg.PointProblem(pg.PointPrior(pg.Interval(0.0, 4.0), [1.0, 3.0]), [1.0, 3.0])
    with pytest.raises(pg.InvalidProblem, match="Area"):
        pg.plots.story(mechanism, line, attack, place)
