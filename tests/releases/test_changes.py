"""A ledger goes on over a change of prior, mobility, problem or policy, and what was charged stays charged."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privacygames as pg
from privacygames import tracking
from privacygames.releases import Budget, Ledger, Memoised, Releases
from sharing import PROBLEM, STREET, WALK

FIXED = pg.design(PROBLEM, epsilon=0.7)
UNIFORM = PROBLEM.with_prior(pg.Prior.uniform(STREET))
FINER = pg.Grid(6, 1, 3.0, 1.0)
FINE = pg.Problem(pg.Prior.uniform(FINER), cost="euclidean")
FINE_WALK = pg.Mobility.still(FINER)
KEY = b"0123456789abcdef"
OTHER_ANSWERS = pg.Problem(PROBLEM.prior, cost=np.ones((2, 3)), observables=pg.Categories(["a", "b"]))


def any_two(size: int) -> Any:
    return np.where(np.eye(size) > 0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("problem", "mobility", "options"),
    [
        (UNIFORM, WALK, {"mechanism": FIXED}),
        (PROBLEM, pg.Mobility.still(STREET), {"mechanism": FIXED}),
        (UNIFORM, WALK, {"mechanism": FIXED, "policy": Memoised(KEY)}),
        (OTHER_ANSWERS, WALK, {"epsilon": 0.7}),
    ],
)
def test_a_change_keeps_what_was_charged(tmp_path: Path, problem: Any, mobility: Any, options: dict[str, Any]) -> None:
    path = tmp_path / "l.db"
    budget = [Budget(1.5), Budget(1.4, every=60)]
    before = Releases(PROBLEM, WALK, mechanism=FIXED, budget=budget, ledger=path)
    before.release("cell-0", at=0.0)
    with pytest.raises(pg.InvalidProblem, match="when_changed='record'") as caught:
        Releases(problem, mobility, budget=budget, ledger=path, **options)
    assert "forget what was released" in str(caught.value)
    after = Releases(problem, mobility, budget=budget, ledger=path, when_changed="record", **options)
    assert after.belief == problem.prior if "policy" not in options else True
    preview = after.preview(at=1.0)
    assert preview.belief.probabilities == pytest.approx(problem.prior.probabilities)
    spent = [float(each.amount) for each in after.ledger.spent(after.accounts, 1.0)]
    assert spent == [0.7, 0.7]
    with pytest.raises(pg.InvalidProblem, match="switched to a different problem"):
        before.release("cell-0", at=2.0)
    again = Releases(problem, mobility, budget=budget, ledger=path, when_changed="record", **options)
    assert again.ledger.verify().events == 3  # the same again is no change
    if "mechanism" in options:
        release = after.release("cell-0", at=2.0)
        assert (release.number, release.spent) == (2, 1.4)
        with pytest.raises(pg.BudgetExceeded):
            after.release("cell-1", at=200.0)
    with pytest.raises(pg.InvalidProblem, match="different budgets"):
        Releases(PROBLEM, WALK, mechanism=FIXED, budget=9.0, ledger=path, when_changed="record")


def test_beliefs_and_attacks_begin_anew_with_a_change() -> None:
    ledger = Ledger()
    before = Releases(PROBLEM, WALK, mechanism=FIXED, ledger=ledger)
    for _ in range(4):
        before.release("cell-0")
    after = Releases(UNIFORM, WALK, mechanism=FIXED, ledger=ledger, when_changed="record")
    with pytest.raises(pg.InvalidProblem, match="nothing was released"):
        after.observations()
    assert after.guarantees().trace_epsilon == pytest.approx(2.8)
    release = after.release("cell-2")
    assert after.belief.probabilities == pytest.approx(FIXED.posterior(release.observable, UNIFORM.prior).probabilities)
    assert len(after.observations()) == 1
    track = tracking.filtering_attack(UNIFORM, WALK, after.observations())
    assert track.beliefs[-1] == pytest.approx(after.belief.probabilities)
    repeat = Releases(PROBLEM, WALK, mechanism=FIXED, ledger=ledger, when_changed="record", when_spent="repeat")
    assert repeat.preview().expected_error == pytest.approx(pg.attacks.optimal(FIXED, PROBLEM).error)
    assert [each.number for each in ledger.records()] == [1, 2, 3, 4, 5]


def test_other_secrets_need_the_same_unit() -> None:
    """A finer grid in km goes on in an account per km if somebody says so; any two secrets are any two secrets."""
    fine = pg.design(FINE, epsilon=0.5)
    ledger = Ledger()
    Releases(PROBLEM, WALK, mechanism=FIXED, budget=2.0, ledger=ledger).release("cell-0")
    hows: list[Any] = ["refuse", "record"]
    for how in hows:
        with pytest.raises(pg.InvalidProblem, match="distinguishability"):
            Releases(FINE, FINE_WALK, mechanism=fine, budget=2.0, ledger=ledger, when_changed=how)
    after = Releases(FINE, FINE_WALK, mechanism=fine, budget=2.0, ledger=ledger, when_changed="same-unit")
    assert after.release("cell-5").spent == 1.2
    assert after.guarantees().moment_exponent == pytest.approx(1.2 * 2.5)
    back = Releases(PROBLEM, WALK, mechanism=FIXED, budget=2.0, ledger=ledger, when_changed="same-unit")
    assert back.guarantees().moment_exponent == pytest.approx(1.2 * 2.5)  # the farthest of all that was released about
    street = pg.Problem(PROBLEM.prior, distinguishability=any_two(3))
    finer = pg.Problem(FINE.prior, distinguishability=any_two(6))
    both = Ledger()
    noise, finer_noise = pg.baselines.exponential(street, 0.5), pg.baselines.exponential(finer, 0.5)
    first = Releases(street, WALK, mechanism=noise, budget=2.0, ledger=both).release("cell-0")
    recorded = Releases(finer, FINE_WALK, mechanism=finer_noise, budget=2.0, ledger=both, when_changed="record")
    second = recorded.release("cell-5")
    assert second.spent == pytest.approx(first.spent + second.epsilon)
    assert min(first.epsilon, second.epsilon) > 0


def test_a_key_of_before_a_change_is_not_read_as_another_answer() -> None:
    ledger = Ledger()
    Releases(PROBLEM, WALK, mechanism=FIXED, ledger=ledger).release("cell-0", key="k")
    same = Releases(UNIFORM, WALK, mechanism=FIXED, ledger=ledger, when_changed="record")
    assert same.release("cell-2", key="k").already_made
    with pytest.raises(pg.InvalidProblem, match="before the problem changed"):
        Releases(OTHER_ANSWERS, WALK, epsilon=0.7, ledger=ledger, when_changed="record").release("cell-0", key="k")


def test_what_is_claimed_says_that_places_were_counted() -> None:
    """Once memoised, a ledger claims nothing between traces with other returns."""
    ledger, still = Ledger(), pg.Mobility.still(STREET)
    memoised = Releases(PROBLEM, still, mechanism=FIXED, policy=Memoised(KEY), ledger=ledger)
    memoised.release("cell-0")
    assert memoised.guarantees().charging == "places"
    assert memoised.guarantees().moment_exponent == pytest.approx(1.4)
    plain = Releases(PROBLEM, still, mechanism=FIXED, ledger=ledger, when_changed="record")
    plain.release("cell-0")
    assert (plain.guarantees().charging, plain.guarantees().moment_exponent) == ("places", None)
    assert plain.guarantees().trace_epsilon == pytest.approx(1.4)


def test_a_place_counts_again_in_another_distinguishability() -> None:
    ledger = Ledger()
    thirds = pg.Problem(PROBLEM.prior, distinguishability=PROBLEM.distance, cost="euclidean")
    half = Budget(9.0, distinguishability=PROBLEM.distance / 2, name="x")
    whole = Budget(9.0, distinguishability=PROBLEM.distance / 4, name="x")
    options: dict[str, Any] = {"mechanism": FIXED, "policy": Memoised(KEY), "ledger": ledger}
    Releases(thirds, WALK, budget=half, **options).release("cell-0")
    after = Releases(thirds, WALK, budget=whole, when_changed="same-unit", **options)
    assert after.release("cell-0").balances[1].charged == pytest.approx(2.8)


def test_the_terms_of_an_account_are_stored_under_the_keys_of_the_file_format(tmp_path: Path) -> None:
    """Names of attributes may change, the keys in a ledger may not; a key that is not of the format is refused."""
    releases = Releases(PROBLEM, WALK, mechanism=FIXED, budget=2.0, ledger=tmp_path / "l.db")
    terms = releases.ledger.balances().scope_period.terms[0]
    connection = sqlite3.connect(tmp_path / "l.db")
    (report,) = connection.execute("SELECT report FROM events WHERE kind = 'change'").fetchone()
    connection.close()
    (stored,) = json.loads(report)["accounts"]
    assert set(stored) == {"name", "limit", "every", "subject", "largest", "any_two", "measure", "unit"}
    assert type(terms).from_dict(stored) == terms
    with pytest.raises(KeyError):
        type(terms).from_dict({**stored, "max_distance": 1.0})
    assert "counts" in releases.guarantees().to_dict()
