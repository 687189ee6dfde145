"""The comparison of policies: leaks are reported, the recommendation follows the rule, and no position is exported."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import privacygames as pg
from privacygames import place_attacks
from privacygames.policy_comparison import MATTERS
from privacygames.policy_comparison.comparison import best_share
from privacygames.policy_comparison.day_budget import DAY, DayAccount, DayBudget
from privacygames.policy_comparison.replayed_policies import (
    POLICIES,
    Fixes,
    HomeTarget,
    dense_places,
    frequent_centres,
    keep_probability,
    nearest_place,
)

BOX = (5.0, 52.0, 5.1461, 52.0899)
CITY = pg.Grid.over(BOX, columns=20, rows=20)
AREA = pg.Area.over(BOX)
HOME, WORK = np.array([3.05, 3.05]), np.array([7.55, 6.55])
SLOT = 1800
ON_MAP = HomeTarget(0.25, (10.0, 10.0))


def commuter(days: int = 14) -> pg.traces.Visits:
    """At home from 18 to 8, at work from 9 to 17, and between them on the way; fixes every half hour, a few m off."""
    rng = np.random.default_rng(7)
    times = np.arange(0, days * 86_400, SLOT)
    hour = times % 86_400 / 3600
    at_work, on_way = (hour >= 9) & (hour < 17), ((hour >= 8) & (hour < 9)) | ((hour >= 17) & (hour < 18))
    xy = np.where(at_work[:, None], WORK, HOME) + rng.normal(0, 0.005, (len(times), 2))
    xy[on_way] = (HOME + WORK) / 2 + rng.normal(0, 0.5, (int(on_way.sum()), 2))
    points = AREA.coordinates(xy)
    user = np.zeros(len(times), dtype=np.int64)
    return pg.traces.Visits(user, times, points[:, 1], points[:, 0], ("commuter",), slot=SLOT)


@pytest.fixture(scope="module")
def compared() -> pg.PolicyComparison:
    return pg.compare_policies(commuter(), CITY, 1, budget=150.0, repeats=4, generator=np.random.default_rng(1))


def fixes(xy: list[tuple[float, float]], step: float = SLOT) -> Fixes:
    times = np.arange(len(xy), dtype=np.float64) * step
    return Fixes(np.array(xy, dtype=float), np.zeros(len(xy), dtype=np.int64), times, times)


def test_a_policy_that_leaks_home_is_reported_as_such(compared: pg.PolicyComparison) -> None:
    fresh, places = compared.row("fresh"), compared.row("frequent places")
    assert (fresh.home_200_m, "home" in fresh.keeps) == (1.0, False)
    assert fresh.home_bound == 1.0
    assert "home" in places.keeps
    assert places.home_bound == pytest.approx(0.25)
    assert places.home_200_m is not None
    assert places.home_200_m < 1.0
    assert "does not keep home" in compared.when("trips").reason


def test_who_was_never_home_is_told_of_the_nights_to_come() -> None:
    """Independent draws keep no home, however few of them there were; one draw keeps it from the first night on."""
    visits = commuter(6)
    away = (visits.time < 3 * 86_400) | (visits.time % 86_400 >= 9 * 3600) & (visits.time % 86_400 < 17 * 3600)
    at_work = {name: getattr(visits, name)[away] for name in ("user", "time", "latitude", "longitude")}
    compared = pg.compare_policies(replace(visits, **at_work), CITY, 1, budget=20.0, repeats=1)
    assert compared.row("fresh").home_bound == 1.0
    assert [row.policy for row in compared.rows if "home" in row.keeps] == ["frequent places"]
    assert compared.row("frequent places").home_bound == pytest.approx(0.25)


def test_the_recommendation_changes_with_what_matters(compared: pg.PolicyComparison) -> None:
    by_matter: dict[str, Any] = {matter: compared.when(matter) for matter in MATTERS}  # type: ignore[arg-type]
    assert by_matter["home"].recommended == "frequent places"
    assert "Noise was drawn exactly" in str(compared)
    assert "Noise was drawn exactly" in compared.to_dict()["replayed"]
    assert by_matter["trips"].recommended in ("fresh", "fresh, with δ", "predictive", "predictive, with δ")
    for matter, comparison in by_matter.items():
        cheapest = min((row for row in compared.rows if matter in row.keeps), key=lambda row: row.cost, default=None)
        assert comparison.recommended == (None if cheapest is None else cheapest.policy)
        assert MATTERS[matter].split(",")[0].replace("the stated chance", "a chance of 25%") in comparison.reason
        assert all(row.policy in str(comparison) for row in compared.rows)  # none is hidden


def test_nothing_is_recommended_where_nothing_keeps_it(compared: pg.PolicyComparison) -> None:
    none = replace(compared, rows=tuple(replace(row, keeps=()) for row in compared.rows))
    assert none.recommended is None
    assert "None of these" in none.reason


def test_one_repetition_decides_nothing_that_is_measured() -> None:
    city = pg.Grid.over(pg.traces.SYNTHETIC_WINDOW, columns=5, rows=4)
    compared = pg.compare_policies(pg.traces.synthetic(users=1, days=6), city, 1, budget=20.0, repeats=1)
    assert compared.habits_known < 0.9  # otherwise 10 points more are more than all
    for row in compared.rows:
        assert (row.presence_low, row.presence_high) == (0.0, 1.0)
        assert row.undecided == ("presence",)
        assert "presence" not in row.keeps
    asked = compared.when("presence")
    assert asked.recommended is None
    assert "None of these is known to" in asked.reason
    assert "Undecided after one repetition," in asked.reason
    assert "undecided" in str(compared)


def test_verdicts_on_presence_follow_the_bounds(compared: pg.PolicyComparison) -> None:
    threshold = compared.habits_known + 0.1
    for row in compared.rows:
        assert row.presence_low <= row.presence_known <= row.presence_high
        assert ("presence" in row.keeps) == (row.presence_high <= threshold)
        assert ("presence" in row.undecided) == (row.presence_low <= threshold < row.presence_high)


@pytest.mark.parametrize("people", [1, 5])
def test_a_share_on_the_threshold_is_hardly_ever_decided(people: int) -> None:
    """The best of two attacks whose expected shares are known: either verdict would be wrong, or lucky."""
    rng, decided, missed = np.random.default_rng(3), 0, 0
    levels = rng.uniform(-0.2, 0.2, size=(people, 1, 1))
    expected = float(levels.mean()) + 0.5
    for _ in range(1000):
        shares = 0.5 + levels + rng.normal(0, 0.05, size=(people, 6, 2))
        low, known, high = best_share(shares)
        assert low <= known <= high
        decided += high <= expected or low > expected
        missed += not low <= expected <= high
    assert decided <= 40  # one per cent above and one below, and chance
    assert missed == decided


def test_a_share_that_is_clear_is_decided() -> None:
    rng = np.random.default_rng(4)
    low, _, high = best_share(np.array([0.3, 0.5]) + rng.normal(0, 0.01, size=(1, 5, 2)))
    assert 0.45 < low < high < 0.55


def test_exports_hold_no_positions_times_or_names(compared: pg.PolicyComparison) -> None:
    exported = json.dumps(compared.to_dict()) + str(compared) + repr(compared)
    assert "commuter" not in exported
    for secret in (*AREA.coordinates(np.stack([HOME, WORK])).ravel(), *HOME, *WORK):
        assert f"{secret:.3f}" not in exported
    numbers = [value for row in compared.to_dict()["rows"] for value in row.values() if isinstance(value, float)]
    assert not any(abs(value - secret) < 1e-4 for value in numbers for secret in (*HOME, *WORK))


def test_it_is_reproducible_with_a_generator_and_random_without() -> None:
    visits = commuter(4)
    arguments: dict[str, Any] = {"budget": 30.0, "repeats": 1}
    one, again = (
        pg.compare_policies(visits, CITY, 1, generator=np.random.default_rng(5), **arguments) for _ in range(2)
    )
    assert one == again
    assert pg.compare_policies(visits, CITY, 1, **arguments).row("fresh").cost != one.row("fresh").cost


@pytest.mark.parametrize("name", POLICIES)
def test_no_policy_spends_more_than_a_day_has(name: str) -> None:
    """In every 24 hours, added up here again."""
    person = fixes([(float(at % 5), float(at // 5 % 4)) for at in range(120)])
    day = DayBudget(8.0, 1e-6 if POLICIES[name].delta else None, 1.0)
    shown = POLICIES[name].show(person, person, day, ON_MAP, np.random.default_rng(3))
    for at, time in enumerate(person.times):
        window = (person.times > time - DAY) & (np.arange(len(person.times)) <= at)
        assert shown.charged[window].sum() <= 1 + 1e-9
    assert not np.isnan(shown.xy[shown.epsilon > 0]).any()
    assert (shown.epsilon[shown.refused] == 0).all()


def test_frequent_places_keep_one_output_each() -> None:
    at = [(1.0, 1.0), (1.01, 1.0), (1.0, 1.01), (1.0, 1.02), (4.0, 4.0), (4.01, 4.0), (4.0, 4.01), (4.0, 4.02)]
    earlier, later = fixes(at * 12), fixes([(1.005, 1.0), (4.0, 4.005), (2.5, 2.5), (1.0, 1.01)])
    places = frequent_centres(earlier)
    assert sorted(places.round(1).tolist()) == [[1.0, 1.0], [4.0, 4.0]]
    home, work = nearest_place(np.array([[1.0, 1.0], [4.0, 4.0]]), places)
    assert {home, work} == {0, 1}
    shown = POLICIES["frequent places"].show(
        earlier, later, DayBudget(10.0, None, 1.0), ON_MAP, np.random.default_rng(2)
    )
    assert shown.place.tolist() == [home, work, work, home]
    assert shown.xy[0].tolist() == shown.xy[3].tolist()
    assert (shown.epsilon > 0).tolist() == [True, True, False, False]


def test_a_road_that_is_taken_every_day_joins_no_places() -> None:
    road = [(0.1 * at, 0.0) for at in range(1, 30)] * 2
    places = dense_places(np.array([(0.0, 0.0)] * 40 + road + [(3.0, 0.0)] * 20, dtype=float))
    assert np.linalg.norm(places[0] - (0.0, 0.0)) < 0.1
    assert np.linalg.norm(places[1] - (3.0, 0.0)) < 0.1
    assert len(dense_places(np.zeros((4, 2)))) == 1
    assert len(dense_places(np.zeros((3, 2)))) == 0


def test_a_prediction_can_be_tested_on_the_quietest_of_days() -> None:
    person = fixes([(1.0, 1.0)] * 4, step=DAY)
    shown = POLICIES["predictive"].show(person, person, DayBudget(9.0, None, 1.0), ON_MAP, np.random.default_rng(1))
    assert not shown.refused.any()


def test_a_delta_buys_more_where_releases_are_many() -> None:
    pure, with_delta = DayBudget(4.0, None, 1.0), DayBudget(4.0, 1e-6, 1.0)
    few, _ = with_delta.even_share(2)
    assert few == pure.even_share(2)[0] == 2.0  # never less
    many, order = with_delta.even_share(200)
    assert many > 2 * pure.even_share(200)[0]
    assert 200 * with_delta.charge(many, order) <= with_delta.limit(order)
    released = [(pg.composition.randomised_response_pair(many * 1.0), 200)]
    assert pg.composition.Composition(released).delta(4.0).upper <= 1e-6


def test_a_day_account_forgets_what_is_older_than_a_day() -> None:
    account = DayAccount(1.0)
    account.add(1.0, 0.0)
    assert not account.has_room(0.1, DAY - 1)
    assert account.has_room(1.0, DAY)


def test_the_likelihoods_are_those_of_what_wasshown() -> None:
    """A prediction's test by the tail of Laplace noise; a draw by its density."""
    assert keep_probability(np.array([1.0, 2.0]), 1.5, 1.0).tolist() == pytest.approx([0.5, math.exp(-1.5) / 2])
    person = fixes([(1.0, 1.0)] * 40)
    shown = POLICIES["predictive"].show(person, person, DayBudget(30.0, None, 1.0), ON_MAP, np.random.default_rng(1))
    points = np.array([[1.0, 1.0], [2.0, 1.0]])
    first = shown.log_likelihoods(points, np.array([0]))[0]
    distances = np.linalg.norm(points - shown.xy[0], axis=1)
    assert first[0] - first[1] == pytest.approx(-shown.noise.epsilon * (distances[0] - distances[1]))
    (tested,) = np.flatnonzero(~np.isnan(shown.predicted[:, 0]))[:1]
    keep = keep_probability(np.linalg.norm(points - shown.predicted[tested], axis=1), *shown.test)
    expected = np.log(keep if shown.passed[tested] else 1 - keep)
    if shown.drawn[tested]:
        expected = expected + shown.noise.log_density(np.linalg.norm(points - shown.xy[tested], axis=1))
    assert shown.log_likelihoods(points, np.array([tested]))[0] == pytest.approx(expected)


def test_the_bound_on_home_holds_where_it_is_promised() -> None:
    """Frequent places: homes found over many draws are as many as the noise allows, and no more."""
    person = fixes([(5.0, 5.0)] * 48)
    hits = []
    for seed in range(300):
        shown = POLICIES["frequent places"].show(
            person, person, DayBudget(10.0, None, 1.0), ON_MAP, np.random.default_rng(seed)
        )
        hits.append(np.linalg.norm(shown.xy[0] - (5.0, 5.0)) <= 0.2)
    allowed = shown.noise.probability_within(0.2)
    assert np.mean(hits) == pytest.approx(allowed, abs=4 * np.sqrt(allowed / 300))
    assert allowed < shown.noise.largest_chance(0.2, ON_MAP.sides) <= 0.25
    assert place_attacks.disk_bound(10.0, 0.2) > 0.5  # what its ε alone would allow


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": 0.0}, "budget is 0.0"),
        ({"budget": 1.0, "delta": 1.0}, "between 0 and 1"),
        ({"budget": 1.0, "home_chance": 2.0}, "home_chance is 2.0"),
        ({"budget": 1.0, "home_chance": 0.001}, "that of a blind guess on this map"),
        ({"budget": 1.0, "repeats": 0}, "repeats must be a whole number"),
        ({"budget": 1.0, "matters": "work"}, "matters is 'work'"),
        ({"budget": 1.0, "users": "commuter"}, "a list of names"),
        ({"budget": 1.0, "users": ["nobody"]}, "none of the 1 users"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(pg.PrivacyGamesError, match=message):
        pg.compare_policies(commuter(3), CITY, **arguments)
    with pytest.raises(pg.InvalidProblem, match="2 days or more"):
        pg.compare_policies(commuter(1), CITY, budget=1.0)


def test_progress_is_told_and_an_exception_from_it_ends_the_replays() -> None:
    told: list[pg.Progress] = []

    def stop(now: pg.Progress) -> None:
        told.append(now)
        if now.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pg.compare_policies(commuter(3), CITY, budget=10.0, repeats=1, progress=stop)
    assert [now.done for now in told] == [1, 2]
    assert told[0].total == len(POLICIES)
