"""Releases of points: charged between any two points, and no coordinate is ever written."""

from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import privacygames as pg
from privacygames.releases import Budget, EvenSpread, Fixed, Ledger, Memoised, PointReleases, Predictive, Releases
from privacygames.releases.decimal_epsilon import float_rounded_down
from privacygames.releases.policies import distance_test
from privacygames.releases.sampling import MemoisedPlaces
from sharing import LINE, ON_LINE, POINT_PROBLEM, PROBLEM, STREET

KEY = b"0123456789abcdef"
TOWN = pg.Area.over((116.30, 39.90, 116.34, 39.92))
HOME, WORK = (116.3123457, 39.9054321), (116.3345678, 39.9165432)
OUTPUTS = [(116.31, 39.905), (116.33, 39.905), (116.32, 39.915)]
TOWN_PROBLEM = pg.PointProblem(pg.PointPrior(TOWN, [HOME, WORK]), OUTPUTS)
IN_TOWN = pg.points.design(TOWN_PROBLEM, epsilon=1.0, prove_bound=False)


def test_each_release_is_charged_what_is_certified_between_any_two_points() -> None:
    releases = PointReleases(IN_TOWN, budget=[Budget(2.5), Budget(2.0, every=3600)])
    noon = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
    first, second = releases.release(HOME, at=noon), releases.release(WORK, at=noon)
    assert {first.observable, second.observable} <= set(OUTPUTS)
    assert (first.epsilon, second.spent, second.counted, second.left) == (1.0, 2.0, "per km", 0.0)
    assert second.spent_any_pair == pytest.approx(2 * np.hypot(*TOWN.lengths))
    assert (first.source, first.entropy, first.expected_error, first.gap) == ("drawn", None, None, None)
    with pytest.raises(pg.BudgetExceeded, match="every 1 h"):
        releases.release(HOME, at=noon)
    guarantees = releases.guarantees()
    assert (guarantees.trace_epsilon, guarantees.charging, guarantees.added_distance) == (2.0, "releases", 0.0)
    assert guarantees.moment_exponent == guarantees.trace_any_pair == pytest.approx(2 * np.hypot(*TOWN.lengths))
    assert releases.ledger.verify().counted == {"total": "per km", "every 1 h": "per km"}


def test_without_the_prior_it_is_the_same() -> None:
    public = pg.points.PublicPointMechanism.of(IN_TOWN)
    releases = PointReleases(public, budget=1.5)
    assert releases.release(HOME).spent == 1.0
    with pytest.raises(pg.BudgetExceeded):
        releases.release(HOME)


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.7, 1.1])
def test_a_charge_is_never_below_what_is_verified(epsilon: float) -> None:
    """0.1 is a little less than the float nearest to it, which the mechanism was designed for."""
    mechanism = pg.points.design(POINT_PROBLEM, epsilon=epsilon, prove_bound=False)
    releases = PointReleases(mechanism)
    charge = releases.preview().charges[0]
    assert float(charge) == pytest.approx(epsilon, rel=1e-12)
    assert mechanism.keeps_epsilon(float_rounded_down(charge))
    designed = PointReleases(POINT_PROBLEM, epsilon=epsilon).preview()
    assert designed.charges == (Decimal(str(epsilon)),)
    assert designed.mechanism is not None
    assert designed.mechanism.keeps_epsilon(float_rounded_down(designed.charges[0]))


def test_a_constant_mechanism_costs_nothing() -> None:
    constant = np.full((4, 2), 2**61)
    line = pg.PointProblem(pg.PointPrior(LINE, [1.0]), [1.0, 3.0])
    mechanism = pg.points.certify_points(
        line,
        pg.Bounds(epsilon=0.1),
        pg.points.Mesh(LINE, 1),
        constant,
        62,
        provenance=ON_LINE.certificate.provenance,
    )
    assert PointReleases(mechanism, budget=1.0).release(0.3).spent == 0.0


def test_policies_choose_from_the_balances_and_designs_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from privacygames.points import design as real
    from privacygames.releases import point_session

    calls: list[float] = []

    def counting(*given_to: Any, **options: Any) -> pg.PointMechanism:
        calls.append(options["epsilon"])
        return real(*given_to, **options)

    monkeypatch.setattr(point_session, "design", counting)
    evenly = PointReleases(POINT_PROBLEM, policy=EvenSpread(3), budget=Budget(1.5, every=60))
    assert [evenly.release(1.0, at=float(second)).epsilon for second in range(3)] == [0.5] * 3
    assert len(calls) == 1
    with pytest.raises(pg.BudgetExceeded):
        evenly.release(1.0, at=59.0)
    assert evenly.release(1.0, at=200.0).epsilon == 0.5
    fixed = PointReleases(POINT_PROBLEM, policy=Fixed(0.5), budget=1.2, when_spent="repeat")
    outputs = [fixed.release(3.1) for _ in range(3)]
    assert [each.source for each in outputs] == ["drawn", "drawn", "repeated"]
    assert (outputs[2].observable, outputs[2].epsilon, outputs[2].left) == (outputs[1].observable, 0.0, 0.2)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 4), st.floats(0, 4)), min_size=2, max_size=2))
def test_two_outputs_tell_two_traces_apart_by_no_more_than_the_charges(traces: list[tuple[float, float]]) -> None:
    """Every pair of outputs, against Σ ε_t · distance at t; ε comes from a ledger that spreads its budget."""
    releases = PointReleases(POINT_PROBLEM, policy=EvenSpread(2), budget=1.0)
    exponent, ratios = 0.0, np.zeros(1)
    for one, other in traces:
        preview = releases.preview()
        assert preview.mechanism is not None
        rows = np.log(preview.mechanism.probabilities([one, other]))
        ratios = np.add.outer(ratios, rows[0] - rows[1]).ravel()
        epsilon = releases.release(one).epsilon
        exponent += epsilon * (abs(one - other) + 2 * preview.mechanism.mesh.resolution)
    assert releases.guarantees().trace_epsilon == 1.0
    assert ratios.max() <= exponent + 1e-12


def dump(path: Path) -> list[Any]:
    """Everything that a ledger holds."""
    import sqlite3

    connection = sqlite3.connect(path)
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    return [(name, connection.execute(f"SELECT * FROM {name}").fetchall()) for (name,) in names]


def test_what_is_stored_follows_from_the_outputs_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two people at different points whose outputs happen to be equal have the same ledger, in every column."""
    monkeypatch.setattr("privacygames.releases.ledger.sqlite_file.secrets.token_hex", lambda size: "0" * 2 * size)

    def outputs(seed: int, trace: list[Any], path: Path) -> list[Any]:
        generator = np.random.default_rng(seed)
        releases = PointReleases(IN_TOWN, generator=generator, ledger=path)
        found = [releases.release(point, key=f"k{number}").observable for number, point in enumerate(trace)]
        releases.ledger.close()
        return found

    first = outputs(0, [HOME, WORK], tmp_path / "first")
    number = next(seed for seed in range(500) if outputs(seed, [WORK, WORK], tmp_path / f"{seed}") == first)
    assert dump(tmp_path / "first") == dump(tmp_path / str(number))
    content = (tmp_path / "first").read_bytes()
    assert b'"answer": "39.905,116.3' in content or b'"answer": "39.915,116.32"' in content
    for digits in (b"3123457", b"9054321", b"3345678", b"9165432"):
        assert digits not in content


def test_points_outside_are_moved_inside_and_wrong_ones_write_nothing(tmp_path: Path) -> None:
    releases = PointReleases(IN_TOWN, ledger=tmp_path / "l.db")
    assert releases.release((116.0, 39.0)).observable in OUTPUTS
    wrong: list[Any] = [(np.nan, 39.9), (39.9, 116.31), 39.9123, [HOME, WORK], "here", (1, 2, 3), None, {"x": 1}]
    for point in wrong:
        with pytest.raises(pg.InvalidProblem) as caught:
            releases.release(point)
        assert "39.9" not in str(caught.value)
        assert "116.31" not in str(caught.value)
    with pytest.raises(pg.InvalidProblem, match="a number on an interval"):
        PointReleases(ON_LINE).release([1.0, 2.0])
    assert releases.ledger.verify().releases == 1


def test_places_keep_their_output_and_are_charged_once() -> None:
    """Points a few metres apart, as of a receiver that stands still; those beyond a border are another place."""
    policy = Memoised(KEY, place=0.2)
    releases = PointReleases(IN_TOWN, policy=policy, budget=[Budget(3.0), Budget(2.0, every=3600)])
    home = TOWN.coordinates(np.array([[1.1, 0.7]]))[0]
    jitter = [tuple(home + 4e-4 * np.array([np.cos(angle), np.sin(angle)])) for angle in range(5)]
    found = [releases.release(point, at=60.0 * number) for number, point in enumerate(jitter)]
    assert len({each.observable for each in found}) == 1
    assert [each.epsilon for each in found] == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert {each.source for each in found} == {"memoised"}
    work = releases.release(WORK, at=400.0)
    assert (work.epsilon, work.spent) == (1.0, 2.0)
    with pytest.raises(pg.BudgetExceeded):  # a third place has no room in this hour, and those known are still released
        releases.release((116.301, 39.919), at=500.0)
    assert releases.release(tuple(home), at=600.0).observable == found[0].observable
    again = releases.release(tuple(home), at=600.0 + 3601.0)
    assert [each.charged for each in again.balances] == [0.0, 1.0]
    assert releases.ledger.verify().fullest == {"total": "2.0", "every 1 h": "2.0"}
    guarantees = releases.guarantees()
    assert (guarantees.charging, guarantees.trace_epsilon, guarantees.moment_exponent) == ("places", 2.0, None)
    assert guarantees.added_distance == pytest.approx(0.2 * np.sqrt(2))
    assert "0.2828 km more" in str(guarantees)
    assert "0123456789" not in repr((releases, releases.policy, releases.preview(at=5000.0), work))


def test_places_are_the_same_in_every_process_and_others_with_another_key_or_size(tmp_path: Path) -> None:
    def outputs(policy: Memoised, name: str) -> list[Any]:
        releases = PointReleases(IN_TOWN, policy=policy, ledger=tmp_path / name)
        rng = np.random.default_rng(3)
        points = rng.uniform((116.30, 39.90), (116.34, 39.92), size=(60, 2)).tolist()
        return [releases.release(tuple(point)).observable for point in points]

    first = outputs(Memoised(KEY, place=0.3), "a")
    assert outputs(Memoised(KEY, place=0.3), "b") == first
    assert outputs(Memoised(b"another key of 16+", place=0.3), "c") != first
    assert outputs(Memoised(KEY, place=0.4), "d") != first
    with Ledger(tmp_path / "a") as ledger:
        assert ledger.verify().releases == 60
    with pytest.raises(pg.InvalidProblem, match="another distinguishability"):
        PointReleases(IN_TOWN, policy=Memoised(KEY, place=0.4), ledger=tmp_path / "a", when_changed="record")
    with pytest.raises(pg.InvalidProblem, match="what is charged"):
        PointReleases(IN_TOWN, ledger=tmp_path / "a")
    fresh = PointReleases(IN_TOWN, ledger=tmp_path / "a", when_changed="same-unit").guarantees()
    assert (fresh.charging, fresh.moment_exponent) == ("places", None)  # returns showed before


@pytest.mark.parametrize("point", [(116.3123457, 39.9054321), (116.34, 39.92), (116.3399, 39.9199)])
def test_the_output_of_a_place_is_drawn_at_its_centre(point: tuple[float, float]) -> None:
    """Over all keys it has the mechanism's distribution there; the centre is within half a diagonal of the point."""
    side = 0.3
    keys = [number.to_bytes(16, "big") for number in range(3000)]
    functions = [MemoisedPlaces(IN_TOWN, key, side) for key in keys]
    cell = functions[0].cell(np.array([point]))
    counts = np.bincount([function.output(cell) for function in functions], minlength=3)
    centre = np.minimum((np.array([cell]) + 0.5) * side, TOWN.lengths)
    assert np.hypot(*(centre - TOWN.clamp([point]))[0]) <= side * np.sqrt(0.5) * (1 + 1e-12)
    expected = IN_TOWN.probabilities(TOWN.coordinates(centre))[0]
    assert chisquare(counts, expected * len(keys)).pvalue > 1e-3
    assert len({function.mark(cell) for function in functions}) == len(keys)


@settings(max_examples=50, deadline=None)
@given(st.floats(0, 4), st.floats(0, 4), st.sampled_from([0.3, 0.7, 1.0, 3.0]))
def test_memoised_points_keep_epsilon_over_the_distance_and_a_cell(one: float, other: float, side: float) -> None:
    function = MemoisedPlaces(ON_LINE, KEY, side)
    centres = [min((function.cell(np.array([point]))[0] + 0.5) * side, 4.0) for point in (one, other)]
    rows = np.log(ON_LINE.probabilities(centres))
    assert (rows[0] - rows[1]).max() <= 0.7 * (abs(one - other) + side + 2 * ON_LINE.mesh.resolution) + 1e-12
    assert (function.cell(np.array([one])) == function.cell(np.array([other]))) == (centres[0] == centres[1])


@settings(max_examples=40, deadline=None)
@given(st.floats(0.001, 100.0), st.floats(0.0, 50.0), st.floats(0.0, 100.0), st.floats(0.0, 5.0))
def test_the_test_of_a_prediction_is_near_the_noisy_threshold(
    epsilon: float, within: float, distance: float, further: float
) -> None:
    """P(Laplace(1/ε) ≥ distance − within), but for one per cent of ε; certified for every ε and threshold."""
    test = distance_test(epsilon, within)
    assert test.bounds.epsilon == epsilon
    keep = float(test.probabilities([distance])[0, 0])
    beyond = epsilon * (distance - within)
    expected = np.exp(-abs(beyond)) / 2 if beyond > 0 else 1 - np.exp(-abs(beyond)) / 2
    assert keep == pytest.approx(expected, abs=0.005)
    rows = np.log(test.probabilities([distance, distance + further / epsilon]))
    assert np.abs(rows[0] - rows[1]).max() <= further * (1 + 1e-9) + 1e-9


def test_predictions_are_charged_what_was_run() -> None:
    policy = Predictive(test=0.25, within=1.0)
    releases = PointReleases(ON_LINE, policy=policy, budget=100.0, generator=np.random.default_rng(3))
    assert releases.preview().charges == (Decimal("0.7"),)
    assert releases.preview().test is None  # nothing to predict from
    made = [releases.release(1.2) for _ in range(60)]
    assert releases.preview().charges == (Decimal("0.95"),)
    assert (made[0].source, made[0].epsilon) == ("drawn", 0.7)
    assert {(each.source, each.epsilon) for each in made[1:]} == {("kept", 0.25), ("drawn", 0.95)}
    for before, after in pairwise(made):
        assert after.source == "drawn" or after.observable == before.observable
    assert made[-1].spent == pytest.approx(sum(each.epsilon for each in made))
    assert releases.guarantees().trace_epsilon == made[-1].spent
    releases.ledger.verify()


def test_predictions_with_a_delta_are_charged_for_both() -> None:
    budget = Budget(6.0, delta=1e-6, within=1.0)
    releases = PointReleases(ON_LINE, policy=Predictive(test=0.25, within=1.0), budget=budget)
    first = releases.release(1.2)
    second = releases.preview()
    assert all(float(after) > each.charged for each, after in zip(first.balances, second.charges, strict=True))
    assert releases.release(1.2).source in ("kept", "drawn")
    releases.ledger.verify()


def test_the_room_for_a_new_output_is_asked_for_before_the_test() -> None:
    """A refusal after the test would reveal its result."""
    releases = PointReleases(ON_LINE, policy=Predictive(test=0.25, within=1e6), budget=1.5)
    assert releases.release(1.2).source == "drawn"
    with pytest.raises(pg.BudgetExceeded):  # 0.8 is left, and a kept prediction would cost 0.25
        releases.release(1.2)
    repeating = PointReleases(ON_LINE, policy=Predictive(test=0.25, within=4.0), budget=1.5, when_spent="repeat")
    assert [repeating.release(1.2).source for _ in range(2)] == ["drawn", "repeated"]


def test_predictions_keep_their_epsilon_for_any_two_traces() -> None:
    """All sequences of three releases: the log-ratio is at most the charges times the distances, and comes near it."""
    policy = Predictive(test=0.25, within=1.0)
    outputs = ON_LINE.outputs[:, 0]
    traces = [(0.0, 0.0, 0.0), (0.7, 0.9, 0.1), (4.0, 4.0, 4.0), (2.0, 1.0, 3.5)]

    def likelihoods(trace: tuple[float, ...]) -> dict[tuple[int, ...], float]:
        """P of each transcript: an output's index where one was drawn, −1 where the prediction was kept."""
        rows = ON_LINE.probabilities(list(trace))
        known: dict[tuple[int, ...], float] = {(first,): float(rows[0, first]) for first in range(len(outputs))}
        for at in (1, 2):
            longer = {}
            for seen, probability in known.items():
                last = outputs[[each for each in seen if each >= 0][-1]]
                keep, renew = policy.distance_test.probabilities([abs(trace[at] - last)])[0]
                longer[(*seen, -1)] = probability * float(keep)
                for drawn in range(len(outputs)):
                    longer[(*seen, drawn)] = probability * float(renew * rows[at, drawn])
            known = longer
        return known

    closest = 0.0
    for one in traces:
        for other in traces:
            first, second = likelihoods(one), likelihoods(other)
            assert sum(first.values()) == pytest.approx(1.0)
            for seen, probability in first.items():
                charges = [0.7] + [0.25 if each == -1 else 0.95 for each in seen[1:]]
                apart = sum(charge * abs(a - b) for charge, a, b in zip(charges, one, other, strict=True))
                ratio = np.log(probability / second[seen])
                assert ratio <= apart + 1e-6
                closest = max(closest, ratio / apart if apart else 0.0)
    assert closest > 0.6


def test_predictions_are_drawn_with_these_probabilities() -> None:
    policy, rng = Predictive(test=0.9, within=0.5), np.random.default_rng(11)
    town = PointReleases(IN_TOWN, policy=policy, generator=rng)
    town.release(HOME)
    kept, expected, variance = 0, 0.0, 0.0
    for _ in range(400):
        preview = town.preview()
        assert preview.last_output is not None
        distance = np.linalg.norm(TOWN.project([HOME]) - TOWN.project([OUTPUTS[preview.last_output]]))
        chance = float(policy.distance_test.probabilities([distance])[0, 0])
        expected, variance = expected + chance, variance + chance * (1 - chance)
        kept += town.release(HOME).source == "kept"
    assert kept == pytest.approx(expected, abs=4 * np.sqrt(variance))


class OnBeliefs(pg.policies.Policy):
    """A policy that looks at the belief."""

    def choose(self, public_state: pg.policies.PublicState) -> None:
        raise AssertionError("never asked")


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (ON_LINE, {"policy": Predictive(test=0.1, within=1.0, prediction="belief")}, "use prediction='last'"),
        (ON_LINE, {"policy": Predictive(1.0, test=0.1, within=1.0)}, "its own epsilon"),
        (ON_LINE, {"policy": OnBeliefs()}, "OnBeliefs needs a belief"),
        (ON_LINE, {"policy": Memoised(KEY)}, "how large a place is"),
        (ON_LINE, {"policy": Memoised(KEY, place=5.0)}, "to 4 hours"),
        (ON_LINE, {"policy": Memoised(KEY, place=1e-9)}, "how large a place is"),
        (ON_LINE, {"policy": Fixed(0.1)}, "its own epsilon"),
        (ON_LINE, {"policy": "fixed"}, "must be a Policy"),
        (ON_LINE, {"epsilon": 0.1}, "its own epsilon"),
        (ON_LINE, {"budget": Budget(1.0, distinguishability="hamming")}, "distance between points"),
        (ON_LINE, {"budget": [Budget(1.0), Budget(2.0)]}, "two budgets"),
        (ON_LINE, {"when_spent": "belief"}, "when_spent"),
        (ON_LINE, {"when_changed": "never"}, "when_changed"),
        (ON_LINE, {"clock_tolerance": -1}, "clock_tolerance"),
        (ON_LINE, {"ledger": 5}, "path"),
        (POINT_PROBLEM, {}, "epsilon, a policy, or a mechanism"),
        (POINT_PROBLEM, {"policy": EvenSpread(3)}, "needs a budget"),
        (PROBLEM, {"epsilon": 1.0}, "use Releases"),
        (
            pg.points.design(POINT_PROBLEM, distortion=0.5, prove_bound=False),
            {},
            "guarantees no epsilon",
        ),
    ],
)
def test_what_does_not_work_for_points_is_refused(source: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(pg.InvalidProblem) as caught:
        PointReleases(source, **options).preview()
    assert message in str(caught.value)


def test_sessions_of_cells_refuse_what_is_for_points() -> None:
    still = pg.Mobility.still(STREET)
    with pytest.raises(pg.InvalidProblem, match="use PointReleases"):
        Releases(POINT_PROBLEM, still, epsilon=1.0)  # type: ignore[arg-type]
    with pytest.raises(pg.InvalidProblem) as caught:
        Releases(PROBLEM, still, policy=Memoised(KEY, 1.0, place=0.2))
    assert "place says how large" in str(caught.value)
    with pytest.raises(pg.InvalidProblem) as caught:
        Memoised(KEY, place=-1.0)
    assert "positive" in str(caught.value)


def test_a_ledger_of_cells_goes_on_between_points(tmp_path: Path) -> None:
    """ε per km adds up, whatever the secrets are; the largest distance of all times counts between any two."""
    grid = pg.Grid.over((116.30, 39.90, 116.34, 39.92), columns=2, rows=1)
    problem = pg.Problem(pg.Prior.uniform(grid), cost="euclidean")
    path, still = tmp_path / "l.db", pg.Mobility.still(grid)
    cells = Releases(problem, still, epsilon=0.5, budget=2.0, ledger=path)
    cells.release(grid.labels[0])
    with pytest.raises(pg.InvalidProblem, match="different problem"):
        PointReleases(IN_TOWN, budget=2.0, ledger=path)
    points = PointReleases(IN_TOWN, budget=2.0, ledger=path, when_changed="same-unit")
    assert points.release(HOME).spent == 1.5
    with pytest.raises(pg.BudgetExceeded):
        points.release(HOME)
    with pytest.raises(pg.InvalidProblem, match="switched to a different problem"):
        cells.release(grid.labels[0])
    assert points.guarantees().trace_any_pair == pytest.approx(1.5 * np.hypot(*TOWN.lengths))
    with pytest.raises(pg.InvalidProblem, match="different units"):
        PointReleases(ON_LINE, budget=2.0, ledger=path, when_changed="same-unit")
    other = TOWN_PROBLEM.with_prior(pg.PointPrior.uniform(TOWN, points=4))
    again = pg.points.design(other, epsilon=0.5, prove_bound=False)
    assert PointReleases(again, budget=2.0, ledger=path).release(WORK).spent == 2.0  # another prior is no change


def test_charges_are_exact_sums() -> None:
    mechanism = pg.points.design(POINT_PROBLEM, epsilon=np.nextafter(0.1, 0), prove_bound=False)
    releases = PointReleases(POINT_PROBLEM, epsilon=0.1, budget=1.0)
    assert [releases.release(2.0).epsilon for _ in range(10)] == [0.1] * 10
    with pytest.raises(pg.BudgetExceeded):
        releases.release(2.0)
    assert Decimal(releases.ledger.verify().spent["total"]) == 1
    charge = PointReleases(mechanism).preview().charges[0]
    assert Fraction(charge) >= Fraction(float_rounded_down(charge))
