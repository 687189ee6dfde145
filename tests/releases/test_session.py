"""Releases: beliefs by Bayes and the chain, budgets that are never exceeded, and nothing that is not said."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from privacygames import tracking
from privacygames.releases import Budget, EvenSpread, Ledger, Memoised, Predictive, Releases
from privacygames.releases.decimal_epsilon import decimal_rounded_up, float_rounded_down
from sharing import FIXED, KINDS, PROBLEM, SECRETS, STREET, WALK, scripted, session

NOISY = pg.baselines.exponential(PROBLEM, 1.0)


def test_the_belief_is_bayes_on_the_mechanism_used_then_the_move() -> None:
    releases = Releases(PROBLEM, WALK, epsilon=1.0, distortion=0.3)
    assert releases.belief == PROBLEM.prior
    by_hand = PROBLEM.prior
    for number, secret in enumerate(["cell-0", "cell-1", "cell-1", "cell-2"]):
        before = by_hand if number == 0 else WALK.advance(by_hand)
        choice = releases.preview().choice
        assert choice is not None
        assert choice.mechanism.certificate.bounds.problem_distortion is not None
        designed_for = choice.mechanism.problem.prior.probabilities
        assert designed_for == pytest.approx(before.probabilities)
        release = releases.release(secret)
        by_hand = choice.mechanism.posterior(release.observable, before)
        assert releases.belief.probabilities == pytest.approx(by_hand.probabilities)
        now = PROBLEM.with_prior(before)
        assert release.expected_error == pytest.approx(pg.attacks.optimal(choice.mechanism, now).error)
        assert release.realised_error == pytest.approx(pg.max_distortion(PROBLEM.with_prior(by_hand)))
        assert release.entropy == pytest.approx(by_hand.entropy())
        assert release.mechanism == choice.mechanism.digest
    track = tracking.filtering_attack(PROBLEM, WALK, releases.observations())
    assert track.beliefs[-1] == pytest.approx(releases.belief.probabilities)


def test_elapsed_time_moves_the_belief_by_whole_steps() -> None:
    mobility = pg.Mobility(STREET, WALK.matrices[0], step=600)
    start = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
    releases = Releases(PROBLEM, mobility, mechanism=NOISY)
    first = NOISY.posterior(releases.release("cell-0", at=start).observable, PROBLEM.prior)
    preview = releases.preview(at=start + timedelta(minutes=59))
    assert preview.belief.probabilities == pytest.approx(mobility.advance(first, 5).probabilities)
    second = releases.release("cell-0", at=(start + timedelta(minutes=9)).timestamp())
    twice = NOISY.posterior(second.observable, first)  # the same slot: the secret has not moved
    assert releases.belief.probabilities == pytest.approx(twice.probabilities)
    assert second.time == start.timestamp() + 540


def test_a_tenth_ten_times_is_one() -> None:
    """Although ten times the float nearest to a tenth is more than one."""
    forgetful = pg.Mobility(STREET, np.full((3, 3), 1 / 3))
    releases = Releases(pg.Problem(pg.Prior.uniform(STREET)), forgetful, epsilon=0.1, budget=1.0)
    assert [releases.release("cell-0").epsilon for _ in range(10)] == [0.1] * 10
    with pytest.raises(pg.BudgetExceeded, match="nothing was released"):
        releases.release("cell-0")
    assert Decimal(releases.ledger.verify().spent["total"]) == 1


@given(st.floats(1e-9, 1e9))
def test_amounts_never_fall_below_what_is_certified(value: float) -> None:
    assert Fraction(decimal_rounded_up(value)) >= Fraction(value)
    assert float(decimal_rounded_up(value)) == pytest.approx(value, rel=1e-14)
    written = Decimal(repr(value))
    assert Fraction(float_rounded_down(written)) <= Fraction(written)


@settings(max_examples=60)
@given(
    st.lists(st.integers(-3, 30), min_size=1, max_size=25),
    st.sampled_from([1.0, 1.5, 2.1]),
    st.sampled_from([10.0, 25.0, 60.0]),
    st.sampled_from(
        [("cells", "repeat"), ("cells", "belief"), ("cells", "refuse"), ("points", "repeat"), ("points", "refuse")]
    ),
)
def test_no_window_ever_exceeds_its_budget(
    waits: list[int], most: float, every: float, kind_and_when_spent: tuple[str, str]
) -> None:
    """Whatever the times, the clock going back included."""
    budget, (kind, when_spent) = [Budget(most, every=every), Budget(5.0)], kind_and_when_spent
    releases = session(kind, budget=budget, when_spent=when_spent)
    at, answered = 1000.0, 0
    for wait in waits:
        at += wait
        try:
            releases.release(SECRETS[kind][1], at=at)
            answered += 1
        except pg.BudgetExceeded:
            continue
    records = releases.ledger.records()
    assert len(records) == answered
    times = [record.time or 0.0 for record in records]
    assert times == sorted(times)
    charges = [Fraction(record.charges[1]) for record in records]
    for start in times:
        inside = [charge for time, charge in zip(times, charges, strict=True) if start <= time <= start + every]
        assert sum(inside) <= Fraction(str(most))
    for end in (*times, at):  # also of windows in which nothing, or all of it, lies
        held = [charge for time, charge in zip(times, charges, strict=True) if time >= end - every]
        spent = releases.ledger.spent(releases.accounts, end)[1]
        assert (Fraction(spent.amount), spent.releases) == (sum(held), sum(charge > 0 for charge in held))
    assert sum(charges) <= 5
    assert releases.ledger.verify().releases == answered


@pytest.mark.parametrize("kind", KINDS)
def test_a_window_that_has_passed_is_free_again_and_not_before(kind: str) -> None:
    releases, secret = session(kind, budget=Budget(0.7, every=60)), SECRETS[kind][0]
    assert releases.release(secret, at=0.0).left == 0.0
    for early in (30.0, 60.0):
        with pytest.raises(pg.BudgetExceeded, match="every 1 min"):
            releases.release(secret, at=early)
    assert releases.release(secret, at=60.001).epsilon == 0.7


@pytest.mark.parametrize("kind", [int, np.int64, np.float32])
def test_windows_of_any_kind_of_number(kind: Any, tmp_path: Path) -> None:
    for _ in range(2):
        budget = Budget(5.0, every=kind(60))
        Releases(PROBLEM, WALK, mechanism=FIXED, budget=budget, ledger=tmp_path / "l.db").release("cell-0", at=0.0)
    for wrong in ({"epsilon": 10**400}, {"epsilon": 1.0, "every": 10**400}):
        with pytest.raises(pg.InvalidProblem, match="positive"):
            Budget(**wrong)


def test_when_spent() -> None:
    settings_of: dict[str, Any] = {"mechanism": FIXED, "budget": 0.7}
    repeat = Releases(PROBLEM, WALK, when_spent="repeat", **settings_of)
    first = repeat.release("cell-2")
    second = repeat.release("cell-0")
    assert (second.observable, second.source, second.epsilon) == (first.observable, "repeated", 0.0)
    assert second.mechanism is None
    moved = WALK.advance(FIXED.posterior(first.observable, PROBLEM.prior))
    assert repeat.belief.probabilities == pytest.approx(moved.probabilities)
    blind = Releases(PROBLEM, WALK, when_spent="belief", **settings_of)
    blind.release("cell-2")
    third = blind.release("cell-0")
    assert third.source == "belief"
    assert third.observable == STREET.labels[int((PROBLEM.cost @ blind.belief.probabilities).argmin())]
    nothing = Releases(PROBLEM, WALK, mechanism=FIXED, budget=0.1, when_spent="repeat")
    with pytest.raises(pg.BudgetExceeded):
        nothing.release("cell-0")


def test_a_distortion_that_is_no_longer_possible() -> None:
    sure = pg.Problem(pg.Prior(STREET, [0.98, 0.01, 0.01]), cost="euclidean")
    still = pg.Mobility.still(STREET)
    release = Releases(sure, still, epsilon=2.0, distortion=0.4).release("cell-0")
    assert release.expected_error == pytest.approx(pg.max_distortion(sure), rel=1e-6)
    assert release.remarks == ("the belief allows no such distortion against 'now': 0.03 is guaranteed instead of 0.4",)
    with pytest.raises(pg.Infeasible, match="when_impossible"):
        Releases(sure, still, epsilon=2.0, distortion=0.4, when_impossible="refuse").release("cell-0")


def test_every_budget_is_charged_in_its_own_distinguishability() -> None:
    anywhere = np.where(np.eye(3) > 0, 0.0, 1.0)
    budgets = [Budget(5.0), Budget(3.0, distinguishability=anywhere, name="any two places")]
    releases = Releases(PROBLEM, WALK, mechanism=NOISY, budget=budgets)
    release = releases.release("cell-0")
    per_km, any_two = release.balances
    ratios = np.log(NOISY.probabilities[:, None] / NOISY.probabilities[None]).max(axis=2)
    assert any_two.charged == pytest.approx(ratios.max())
    assert per_km.charged == pytest.approx(pg.metrics.epsilon(NOISY, PROBLEM))
    while True:
        try:
            releases.release("cell-0")
        except pg.BudgetExceeded:
            break
    spent = releases.ledger.verify().spent
    assert Decimal(spent["any two places"]) <= 3
    assert 3 - float(spent["any two places"]) < any_two.charged
    never = np.array([[0, np.inf, 1], [np.inf, 0, 1], [1, 1, 0]])
    lines = pg.Problem(PROBLEM.prior, distinguishability=never)
    split = pg.Mechanism.from_probabilities(lines, [[0.9, 0.0, 0.1], [0.0, 0.9, 0.1], [0.3, 0.3, 0.4]])
    with pytest.raises(pg.InvalidProblem, match="no finite epsilon"):
        Releases(lines, WALK, mechanism=split, budget=1.0).release("cell-0")


def test_an_even_spread_uses_all_of_the_budget() -> None:
    forgetful = pg.Mobility(STREET, np.full((3, 3), 1 / 3))
    releases = Releases(pg.Problem(pg.Prior.uniform(STREET)), forgetful, policy=EvenSpread(3), budget=6.0)
    assert [releases.release("cell-0").epsilon for _ in range(3)] == [2.0] * 3
    with pytest.raises(pg.BudgetExceeded):
        releases.release("cell-0")
    two = Releases(PROBLEM, forgetful, policy=EvenSpread(2), budget=[Budget(6.0), Budget(1.0, every=100)])
    assert two.preview(at=0.0).charges[0] <= Decimal("0.5")  # the tighter of the two
    with pytest.raises(pg.InvalidProblem, match="needs a budget"):
        Releases(PROBLEM, WALK, policy=EvenSpread(3)).release("cell-0")


def test_predictions_that_pass_cost_only_their_test() -> None:
    policy = Predictive(test=0.5, within=0.5)
    releases = Releases(PROBLEM, pg.Mobility.still(STREET), mechanism=NOISY, policy=policy, budget=100.0)
    found = [releases.release("cell-0") for _ in range(40)]
    assert {each.source for each in found[1:]} <= {"kept", "drawn"}
    kept = [each for each in found if each.source == "kept"]
    assert kept
    assert all(0 < each.epsilon <= 0.5 for each in kept)  # less where the middle of the street is tested for
    alone = found[0].epsilon
    assert all(alone < each.epsilon <= alone + 0.5 for each in found[1:] if each.source == "drawn")
    for before, each in pairwise(found):
        if each.source == "kept":
            assert each.observable == before.observable
    first = Releases(PROBLEM, WALK, policy=Predictive(1.0, test=0.5, within=0.5), budget=1.0)
    assert first.release("cell-0").epsilon <= 1.0  # there is nothing to test yet
    tight = Releases(PROBLEM, WALK, mechanism=NOISY, policy=policy, budget=2 * alone + 0.3)
    tight.release("cell-0")
    with pytest.raises(pg.BudgetExceeded):  # room for the test alone is not enough: a failed one could not be answered
        tight.release("cell-0")


def test_designs_are_used_again_for_the_same_or_a_near_belief(monkeypatch: pytest.MonkeyPatch) -> None:
    from privacygames.designer import design_bounds as real
    from privacygames.releases import design_cache

    calls: list[Any] = []

    def counting(*given_to: Any, **options: Any) -> pg.Mechanism:
        calls.append(given_to)
        return real(*given_to, **options)

    monkeypatch.setattr(design_cache, "design_bounds", counting)
    same = Releases(PROBLEM, WALK, epsilon=1.0)
    for _ in range(5):
        same.preview()
    assert len(calls) == 1
    near = Releases(PROBLEM, WALK, epsilon=1.5, reuse=1.0)
    for _ in range(6):
        near.release("cell-1")
    assert len(calls) == 2
    private = Releases(PROBLEM, WALK, epsilon=1.5, distortion=0.2, reuse=1.0)
    for _ in range(6):
        release = private.release("cell-1")
        assert release.expected_error is not None
        assert release.expected_error >= 0.2 - 1e-12 or release.remarks


def test_a_design_that_ran_out_of_time_says_its_gap() -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(6, 5)), cost="euclidean")
    release = Releases(problem, pg.Mobility.still(problem.space), epsilon=0.5, time_limit=1e-6).release("cell-3")
    assert release.gap is not None
    assert release.gap > 1e-3
    assert release.epsilon <= 0.5


@pytest.mark.parametrize("kind", KINDS)
def test_a_repeated_key_returns_the_stored_answer(kind: str) -> None:
    releases = session(kind, budget=10.0)
    first = releases.release(SECRETS[kind][0], key="breakfast")
    again = releases.release(SECRETS[kind][1], key="breakfast")
    assert again.already_made
    assert (again.observable, again.number, again.spent) == (first.observable, 1, first.spent)
    assert len(releases.ledger.records()) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_times_and_steps_do_not_mix_and_windows_need_times(kind: str) -> None:
    timed, secret = session(kind), SECRETS[kind][0]
    timed.release(secret, at=5.0)
    with pytest.raises(pg.InvalidProblem, match="have timestamps"):
        timed.release(secret)
    counted = session(kind)
    counted.release(secret)
    with pytest.raises(pg.InvalidProblem, match="have no timestamps"):
        counted.release(secret, at=5.0)
    with pytest.raises(pg.InvalidProblem, match="per window"):
        session(kind, budget=Budget(1.0, every=60)).release(secret)


@pytest.mark.parametrize("kind", KINDS)
def test_a_clock_that_goes_back_stands_still_and_says_so(kind: str) -> None:
    releases = session(kind)
    releases.release(SECRETS[kind][0], at=100.0)
    late = releases.release(SECRETS[kind][0], at=40.0)
    assert late.time == 100.0
    assert late.remarks == ("the clock went back by 60 s; taken as standing still",)


def test_an_answer_that_the_belief_rules_out_raises_nothing_and_is_said() -> None:
    apart = np.array([[0, np.inf, np.inf], [np.inf, 0, 1], [np.inf, 1, 0]])
    problem = pg.Problem(pg.Prior(STREET, [1, 0, 0]), distinguishability=apart)
    told = pg.Mechanism.from_probabilities(problem, np.array([[1, 0, 0], [0, 0.5, 0.5], [0, 0.4, 0.6]]))
    releases = Releases(problem, pg.Mobility.still(STREET), mechanism=told)
    release = releases.release("cell-1")
    assert "impossible under the belief" in release.remarks[0]
    assert releases.belief == problem.prior


def test_memoised_answers_about_a_secret_that_does_not_change_are_understood() -> None:
    still = pg.Mobility.still(STREET)
    releases = Releases(PROBLEM, still, mechanism=NOISY, policy=Memoised(b"0123456789abcdef"), budget=1.0)
    first = releases.release("cell-2")
    after = NOISY.posterior(first.observable, PROBLEM.prior)
    for _ in range(3):
        assert releases.release("cell-2").spent == first.spent
    assert releases.belief.probabilities == pytest.approx(after.probabilities)
    assert "0123456789" not in repr((releases, releases.policy, releases.preview(), first))
    moving = Releases(PROBLEM, WALK, mechanism=NOISY, policy=Memoised(b"0123456789abcdef"))
    assert moving.release("cell-2").realised_error is None
    with pytest.raises(pg.InvalidProblem, match="not reported"):
        _ = moving.belief


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "epsilon, a policy, or a mechanism"),
        ({"epsilon": 0}, "positive"),
        ({"epsilon": "x"}, "positive"),
        ({"epsilon": 1.0, "mechanism": FIXED}, "its own epsilon"),
        ({"epsilon": 1.0, "policy": EvenSpread(2)}, "leave epsilon out"),
        ({"policy": EvenSpread(2), "mechanism": FIXED}, "its own epsilon"),
        ({"policy": "fixed"}, "must be a Policy"),
        ({"mechanism": FIXED, "distortion": 0.1}, "designs guarantee"),
        ({"policy": Predictive(1.0, test=0.1, within=1.0), "distortion": 0.1}, "cannot be guaranteed"),
        ({"policy": Memoised(b"x" * 16, 1.0), "distortion": 0.1}, "cannot be guaranteed"),
        ({"epsilon": 1.0, "adversaries": ["x"]}, "InferenceTarget"),
        ({"epsilon": 1.0, "adversaries": 5}, "list"),
        ({"epsilon": 1.0, "adversaries": [pg.InferenceTarget("a"), pg.InferenceTarget("a")]}, "must differ"),
        ({"epsilon": 1.0, "when_spent": "never"}, "when_spent"),
        ({"epsilon": 1.0, "when_impossible": "never"}, "when_impossible"),
        ({"epsilon": 1.0, "budget": -1.0}, "positive"),
        ({"epsilon": 1.0, "budget": ["x"]}, "a Budget"),
        ({"epsilon": 1.0, "budget": [Budget(1.0), Budget(2.0)]}, "two budgets"),
        ({"epsilon": 1.0, "budget": [Budget(1, every=5), Budget(2, every=5)]}, "called"),
        ({"epsilon": 1.0, "reuse": 2}, "reuse"),
        ({"epsilon": 1.0, "distortion": -1}, "distortion"),
        ({"epsilon": 1.0, "ledger": 5}, "path"),
    ],
)
def test_wrong_settings_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        Releases(PROBLEM, WALK, **options)


def test_wrong_secrets_keys_and_times_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    releases = Releases(PROBLEM, WALK, mechanism=FIXED, ledger=tmp_path / "l.db")
    for secret in ("nowhere", None, 5):
        with pytest.raises(pg.UnknownLabel) as caught:
            releases.release(secret)  # type: ignore[arg-type]
        assert "nowhere" not in str(caught.value)
    for key in ("", "x" * 201, 5, "\ud800"):
        with pytest.raises(pg.InvalidProblem, match="key"):
            releases.release("cell-0", key=key)  # type: ignore[arg-type]
    for at in ("now", 10**400):
        with pytest.raises(pg.InvalidProblem, match="a time must be"):
            releases.release("cell-0", at=at)  # type: ignore[arg-type]
    assert releases.ledger.records() == []


def test_what_is_stored_follows_from_the_answers_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two people in different places who happened to answer alike have the same ledger, in every column."""
    monkeypatch.setattr(
        "privacygames.releases.ledger.sqlite_file.secrets.token_hex", lambda size: "0" * 2 * size
    )  # its own name
    rows = []
    for name, secrets in (("a", ["cell-0", "cell-1"]), ("b", ["cell-2", "cell-2"])):
        positions = [STREET.index(secret) for secret in secrets]
        draws = [int(NOISY.weights[position, 0]) for position in positions]  # the least draw that gives cell-1
        releases = Releases(PROBLEM, WALK, mechanism=NOISY, generator=scripted(*draws), ledger=tmp_path / name)
        assert [releases.release(secret, key=f"k{n}").observable for n, secret in enumerate(secrets)] == ["cell-1"] * 2
        rows.append(_dump(tmp_path / name))
    assert rows[0] == rows[1]


def _dump(path: Path) -> list[Any]:
    import sqlite3

    connection = sqlite3.connect(path)
    tables = [
        name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    ]
    return [(name, connection.execute(f"SELECT * FROM {name}").fetchall()) for name in tables]


def test_a_ledger_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with Ledger(path) as ledger:
        before = Releases(PROBLEM, WALK, mechanism=FIXED, budget=1.5, ledger=ledger)
        before.release("cell-0")
        belief = before.belief
    after = Releases(PROBLEM, WALK, mechanism=FIXED, budget=1.5, ledger=path)
    assert after.belief == belief
    assert after.release("cell-0").spent == 1.4
    with pytest.raises(pg.BudgetExceeded):
        after.release("cell-0")
