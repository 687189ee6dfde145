"""Budgets with a delta, through the ledger: against enumerations of all sequences of outputs, in exact fractions."""

import json
import sqlite3
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import product
from math import inf, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privacygames as pg
from accounts import enumerated, mechanism_of, worst_policy
from privacygames.composition import DominatingPair, exact_renyi_limit, releases_within, renyi_divergence
from privacygames.composition.exponential import exponential_below
from privacygames.releases import Budget, Ledger, Memoised, PointReleases, Releases
from privacygames.releases.approximate import ApproximateGuarantee
from privacygames.releases.ledger import AccountTerms
from privacygames.releases.policies import Choice, EvenSpread, Policy, Predictive
from sharing import FIXED, ON_LINE, POINT_PROBLEM, PROBLEM, STREET, WALK

STILL = pg.Mobility.still(STREET)
KEY = b"0123456789abcdef"
DAY = Budget(3.0, delta=1e-3, within=1.0, every=86_400)


class Scripted(Policy):
    """Releases from mechanisms that were chosen beforehand."""

    def __init__(self, mechanisms: Sequence[pg.Mechanism]) -> None:
        self.mechanisms = list(mechanisms)

    def choose(self, public_state: Any) -> Choice:
        return Choice(self.mechanisms.pop(0), epsilon=None)


def scripted(mechanisms: Sequence[pg.Mechanism], budget: Budget) -> Releases:
    """A session that releases from these mechanisms, one after the other."""
    problem = mechanisms[0].problem
    return Releases(problem, pg.Mobility.still(problem.space), policy=Scripted(mechanisms), budget=budget)


def accepted(mechanisms: Sequence[pg.Mechanism], budget: Budget) -> int:
    """How many of these mechanisms a ledger lets pass, before it refuses one."""
    releases = scripted(mechanisms, budget)
    for number in range(len(mechanisms)):
        try:
            releases.release(releases.problem.space.labels[0])
        except pg.BudgetExceeded:
            return number
    return len(mechanisms)


def random_weights(chance: np.random.Generator, outputs: int) -> list[list[int]]:
    """Rows of three secrets that sum to 16 and have no zeros, so that they are near each other, or not."""
    spread = float(chance.choice([1.0, 10.0, 100.0]))
    rows = 1 + np.array([chance.multinomial(16 - outputs, share) for share in chance.dirichlet([spread] * outputs, 3)])
    return [list(map(int, row)) for row in rows]


@pytest.mark.parametrize("sequences", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_the_account_is_never_below_that_of_brute_force(sequences: int) -> None:
    """Random sequences of up to six releases: what the ledger lets pass is within (ε, δ), and its charges bound δ."""
    chance = np.random.default_rng(32)
    passed = []
    for number in range(sequences):
        outputs = 8 if number % 100 == 99 else int(chance.integers(2, 5))
        weights = [random_weights(chance, outputs) for _ in range(6)]
        epsilon, delta = float(chance.uniform(0.1, 6)), float(10 ** chance.uniform(-6, -0.5))
        releases = scripted([mechanism_of(each) for each in weights], Budget(epsilon, delta=delta, within=1.0))
        try:
            for _ in weights:
                releases.release(int(chance.integers(3)))
        except pg.BudgetExceeded:
            pass
        count = len(releases.ledger.records())
        passed.append(count)
        pairs = [((0, 1), (1, 0), (1, 2), (2, 1))[int(at)] for at in chance.integers(4, size=count)]
        steps = [(each[s], each[t]) for each, (s, t) in zip(weights, pairs, strict=False)]
        ratio = exponential_below(float(Decimal(str(epsilon))))
        exact = enumerated(steps, ratio)
        assert exact <= Fraction(delta)
        guarantee = releases.accounts[1].approximate
        assert guarantee is not None
        charged = releases.ledger.spent(releases.accounts, 0.0)[1].amount
        left = exact_renyi_limit(guarantee.epsilon, delta, guarantee.order) - charged
        assert left >= 0
        if guarantee.order < inf:  # what is charged bounds δ at every ε, not only at the limit
            log_delta = log(delta) - (guarantee.order - 1) * float(left)
            assert float(exact) <= np.exp(log_delta) * (1 + 1e-9)
    assert {0, 1, 2, 3, 4, 5, 6} == set(passed)


CHOICES = [mechanism_of(each) for each in ([[9, 7, 0], [7, 9, 0]], [[12, 4, 0], [4, 12, 0]], [[1, 7, 8], [2, 6, 8]])]
"""A weak coin, a strong one, and a mechanism that is rarely strong."""


@pytest.mark.parametrize(("epsilon", "delta"), [(0.4, 0.05), (1.0, 0.05), (1.5, 0.3), (2.0, 0.3)])
def test_no_policy_gets_more_past_the_ledger(epsilon: float, delta: float) -> None:
    """All adaptive policies, which choose mechanism and secrets from all outputs so far: exhaustive search."""
    budget = Budget(epsilon, delta=delta, within=1.0)
    passes = {
        chosen: accepted([CHOICES[each] for each in chosen], budget) == len(chosen)
        for length in (1, 2, 3)
        for chosen in product(range(len(CHOICES)), repeat=length)
    }
    rows = [each.weights for each in CHOICES]
    pairs = [DominatingPair(each[order[0]], each[order[1]], 62) for each in rows for order in ([0, 1], [1, 0])]
    worst = worst_policy(
        pairs, lambda chosen: passes[tuple(each // 2 for each in chosen)], exponential_below(epsilon), 3
    )
    assert 0 < worst <= delta
    assert any(passes.values())
    assert not all(passes.values())


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (3.0, 1e-4)])
def test_google_dp_accounting_finds_no_more_in_what_a_ledger_lets_pass(epsilon: float, delta: float) -> None:
    """Different mechanisms, one after the other until the ledger refuses: its pessimistic estimate is within (ε, δ)."""
    library = pytest.importorskip(
        "dp_accounting.pld.privacy_loss_distribution", reason="Google's dp-accounting is not installed"
    )
    city = pg.Grid(4, 3, 4.0, 3.0)
    problem = pg.Problem(pg.Prior.uniform(city))
    cycle = [pg.baselines.exponential(problem, epsilon=each) for each in (0.2, 0.05, 0.4)]
    count = accepted([cycle[number % 3] for number in range(500)], Budget(epsilon, delta=delta, within=1.0))
    assert 6 <= count < 500
    exact = None
    for number, mechanism in enumerate(cycle):
        pair = pg.composition.dominating_pair(mechanism, 1.0)
        upper, lower = (
            {at: log(weight) - pair.bits * log(2) for at, weight in enumerate(row.tolist())}
            for row in (pair.first, pair.second)
        )
        one = library.from_two_probability_mass_functions(lower, upper, value_discretization_interval=1e-4)
        several = one.self_compose(len(range(number, count, 3)))
        exact = several if exact is None else exact.compose(several)
    assert exact is not None
    assert exact.get_delta_for_epsilon(epsilon) <= delta


def test_a_budget_with_a_delta_buys_more_of_a_smooth_mechanism() -> None:
    city = pg.Grid(5, 4, 5.0, 4.0)
    problem = pg.Problem(pg.Prior.uniform(city))
    noise = pg.baselines.exponential(problem, epsilon=0.2)
    for epsilon, delta, within in [(2.0, 1e-6, 1.0), (1.0, 1e-4, 2.0), (0.3, 1e-9, 1.0), (4.0, 1e-6, None)]:
        counts = releases_within(noise, epsilon, delta, within)
        assert counts.added <= counts.ledger <= counts.composed
        budget = Budget(epsilon, delta=delta, within=within)
        releases = Releases(problem, pg.Mobility.still(city), mechanism=noise, budget=budget)
        for number in range(counts.ledger):
            left = releases.release("cell-0").balances[1].releases_left
            assert left == counts.ledger - number - 1
        with pytest.raises(pg.BudgetExceeded, match="% left of epsilon"):
            releases.release("cell-0")
    assert releases_within(noise, 2.0, 1e-6, 1.0).gain > 1.5


def test_every_kind_of_mechanism_is_counted() -> None:
    ages = pg.Problem(pg.Prior.uniform(pg.Numbers([20, 30, 40])))
    illnesses = pg.Problem(pg.Prior.uniform(pg.Categories(["flu", "cold", "none"])))
    films = pg.Problem(pg.Prior.uniform(pg.Sets([{"a"}, {"b"}, {"a", "b"}])))
    for problem, within in [(ages, 10.0), (illnesses, 1.0), (films, 1.0), (PROBLEM, 1.0)]:
        mechanism = pg.baselines.exponential(problem, epsilon=0.3 / within)
        counts = releases_within(mechanism, 3.0, 1e-6, within)
        public, private = (
            pg.composition.dominating_pair(each, within) for each in (pg.PublicMechanism.of(mechanism), mechanism)
        )
        assert public.digest == private.digest
        assert counts.ledger > counts.added
        releases = Releases(
            *(problem, pg.Mobility.still(problem.space)),
            mechanism=mechanism,
            budget=Budget(3.0, delta=1e-6, within=within),
        )
        assert releases.release(problem.space.labels[0]).balances[1].releases_left == counts.ledger - 1
    counts = releases_within(ON_LINE, 2.0, 1e-6, 0.1)
    of_points = PointReleases(ON_LINE, budget=Budget(2.0, delta=1e-6, within=0.1))
    assert of_points.release(1.23).balances[1].releases_left == counts.ledger - 1
    shared = pg.points.PublicPointMechanism.of(ON_LINE)
    assert PointReleases(shared, budget=Budget(2.0, delta=1e-6, within=0.1)).preview().charges == (
        of_points.preview().charges
    )


def test_a_window_with_a_delta_is_free_again_when_it_has_passed() -> None:
    releases = Releases(PROBLEM, WALK, mechanism=FIXED, budget=DAY)
    made = releases_within(FIXED, 3.0, 1e-3, 1.0).ledger
    assert made >= 3
    for number in range(made):
        releases.release("cell-0", at=1000.0 + number)
    with pytest.raises(pg.BudgetExceeded, match="every 24 h within 1 km"):
        releases.release("cell-0", at=1000.0 + made)
    releases.release("cell-1", at=1000.0 + 86_400.0 + 0.5)  # the first is out of the window
    with pytest.raises(pg.BudgetExceeded):
        releases.release("cell-1", at=1000.0 + 86_400.0 + 0.6)
    assert releases.ledger.verify().releases == made + 1


def test_a_ledger_goes_on_with_the_order_that_it_chose(tmp_path: Path) -> None:
    """Whatever a later session is planned for."""
    path, budget = tmp_path / "l.db", Budget(4.0, delta=1e-6, within=1.0)
    weak, strong = (pg.baselines.exponential(PROBLEM, epsilon=each) for each in (0.05, 3.0))
    first = Releases(PROBLEM, STILL, mechanism=weak, budget=budget, ledger=path)
    first.release("cell-0")
    second = Releases(PROBLEM, STILL, mechanism=strong, budget=budget, ledger=path)
    alone = Releases(PROBLEM, STILL, mechanism=strong, budget=budget)
    orders = [each.accounts[1].approximate for each in (first, second, alone)]
    assert orders[0] == orders[1] != orders[2]
    assert [each.stated for each in orders if each] == [(Decimal("4.0"), 1e-6, 1.0)] * 3
    assert orders[0] is not None
    pairs = [pg.composition.dominating_pair(each, 1.0) for each in (weak, strong)]
    expected = sum(renyi_divergence(pair, orders[0].order) for pair in pairs)
    second.release("cell-0")
    assert float(second.ledger.verify().spent[second.accounts[1].name]) == pytest.approx(expected, rel=1e-12)
    recorded = Releases(
        PROBLEM.with_prior(pg.Prior.uniform(STREET)), STILL, mechanism=strong, budget=budget, ledger=path,
        when_changed="record",
    )  # fmt: skip
    assert recorded.accounts[1].approximate == orders[0]
    assert recorded.ledger.verify().releases == 2


def test_charges_of_one_kind_are_refused_in_a_ledger_of_the_other(tmp_path: Path) -> None:
    for held, wanted in [(Budget(4.0, name="b"), Budget(4.0, delta=1e-6, name="b")), (DAY, Budget(3.0, every=86_400))]:
        for number, (one, other) in enumerate([(held, wanted), (wanted, held)]):
            path = tmp_path / f"{held.epsilon}-{number}.db"
            Releases(PROBLEM, STILL, mechanism=FIXED, budget=one, ledger=path)
            with pytest.raises(pg.InvalidProblem, match=r"do not add up|different budgets"):
                Releases(PROBLEM, STILL, mechanism=FIXED, budget=other, ledger=path, when_changed="record")
    path = tmp_path / "l.db"
    Releases(PROBLEM, STILL, mechanism=FIXED, budget=DAY, ledger=path)
    for changed in ({"delta": 1e-2}, {"within": 2.0}, {"within": None}, {"epsilon": 3.5}, {"every": 60.0}):
        terms = {"epsilon": 3.0, "delta": 1e-3, "within": 1.0, "every": 86_400.0} | changed
        name = pg.Releases(PROBLEM, STILL, mechanism=FIXED, budget=DAY).accounts[1].name
        with pytest.raises(
            pg.InvalidProblem, match=r"epsilon 3\.0 with delta 0.001 between secrets at most 1 km apart"
        ):
            Releases(PROBLEM, STILL, mechanism=FIXED, budget=Budget(**terms, name=name), ledger=path)


def test_ledgers_without_a_delta_are_written_as_before(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    Releases(PROBLEM, STILL, mechanism=FIXED, budget=[Budget(2.0), Budget(1.0, every=60.0)], ledger=path)
    (report,) = sqlite3.connect(path).execute("SELECT report FROM events").fetchone()
    keys = {"name", "limit", "every", "subject", "largest", "any_two", "measure", "unit"}
    assert [set(each) for each in json.loads(report)["accounts"]] == [keys, keys]


def test_terms_that_promise_more_than_their_limit_keeps_are_refused() -> None:
    guarantee = ApproximateGuarantee(Decimal(4), 1e-6, 1.0, 8.0)
    terms = AccountTerms("b", str(guarantee.limit), None, "", None, all_distances_one=False, approximate=guarantee)
    stored = json.loads(json.dumps(terms.to_dict()))
    assert AccountTerms.from_dict(stored) == terms
    inner = stored["approximate"]
    for wrong in (
        {"limit": str(guarantee.limit + Decimal("1e-12"))},
        {"limit": None},
        {"approximate": None},
        {"approximate": inner | {"epsilon": "3.9"}},
        {"approximate": inner | {"epsilon": "-4"}},
        {"approximate": inner | {"delta": 1e-7}},
        {"approximate": inner | {"delta": 2.0}},
        {"approximate": inner | {"within": -1.0}},
        {"approximate": inner | {"order": 1.0}},
        {"approximate": inner | {"order": "8"}},
        {"approximate": inner | {"order": None}},
        {"approximate": inner | {"more": 1}},
    ):
        with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
            AccountTerms.from_dict(stored | wrong)


@pytest.mark.parametrize("order", [1.000001, 1.5, 7.3, 400.0, 1e6])
def test_limits_are_rounded_down_and_equal_whatever_the_thread_calculates_with(order: float) -> None:
    from decimal import ROUND_UP, getcontext, localcontext

    before, delta = getcontext().prec, 1e-6
    limit = exact_renyi_limit(Decimal("4.0"), delta, order)
    with localcontext() as context:
        context.prec, context.rounding = 5, ROUND_UP
        assert exact_renyi_limit(Decimal("4.0"), 1e-6, order) == limit
    with localcontext() as context:
        context.prec = 120
        exact = Decimal(order)
        constant = (exact - 1) * (1 - 1 / exact).ln() - exact.ln()
        true = Decimal(4) - (constant - Decimal(delta).ln()) / (exact - 1)
        assert true * (1 - Decimal("1e-13") * (-1 if true < 0 else 1)) <= limit <= true
    assert getcontext().prec == before


def test_memoised_places_count_the_distance_between_their_centres() -> None:
    budget = Budget(8.0, delta=1e-6, within=0.5)
    plain = PointReleases(ON_LINE, budget=budget)
    places = PointReleases(ON_LINE, policy=Memoised(KEY, place=0.25), budget=budget)
    wider = PointReleases(ON_LINE, budget=Budget(8.0, delta=1e-6, within=0.75))
    order = places.accounts[1].approximate
    assert order == ApproximateGuarantee.planned(
        Decimal("8.0"), 1e-6, 0.5, pg.composition.dominating_pair(ON_LINE, 0.75)
    )
    assert wider.accounts[1].limit == places.accounts[1].limit
    assert plain.preview().charges[1] < places.preview().charges[1] == wider.preview().charges[1]
    first, again = places.release(1.30), places.release(1.31)  # the same cell
    assert first.observable == again.observable
    assert again.balances[1].charged == 0.0
    assert again.balances[1].releases_left is None
    assert "with the same returns: epsilon 8.0 with delta 1e-06" in str(places.guarantees())


def test_policies_and_a_delta() -> None:
    both = [Budget(2.0), Budget(6.0, delta=1e-6, within=1.0)]
    spread = Releases(PROBLEM, STILL, policy=EvenSpread(4), budget=both)
    assert spread.release("cell-0").epsilon == 0.5  # of the first budget
    with pytest.raises(pg.InvalidProblem, match="needs a budget of epsilon"):
        Releases(PROBLEM, STILL, policy=EvenSpread(4), budget=DAY).preview(at=0.0)
    tested = Releases(PROBLEM, STILL, mechanism=FIXED, policy=Predictive(test=0.2, within=0.5), budget=both[1])
    first, second = tested.release("cell-0"), tested.release("cell-0")
    assert (second.balances[1].releases_left is None) == (second.source == "kept")
    assert (second.balances[1].charged > first.balances[1].charged) == (second.source == "drawn")
    constant = pg.Mechanism.from_probabilities(PROBLEM, np.full((3, 3), 1 / 3))
    assert Releases(PROBLEM, STILL, mechanism=constant, budget=both).preview().charges == (Decimal(0), Decimal(0))
    design = PointReleases(POINT_PROBLEM, epsilon=0.3, budget=Budget(3.0, delta=1e-6, within=1.0))
    assert design.release(1.5).balances[1].charged > 0


def test_what_all_releases_guarantee_is_stated() -> None:
    releases = Releases(PROBLEM, STILL, mechanism=FIXED, budget=DAY)
    releases.release("cell-0", at=0.0)
    assert releases.guarantees().with_delta == (
        "epsilon 3.0 with delta 0.001 between secrets at most 1 km apart at every release, and only within 24 h, for "
        "any correlation and any adversary",
    )
    assert "whole trace: epsilon 3.0 with delta 0.001" in str(releases.guarantees())
    assert Releases(PROBLEM, STILL, mechanism=FIXED, budget=2.0).guarantees().with_delta == ()


def test_an_output_that_separates_near_secrets_is_not_covered() -> None:
    telling = pg.Mechanism.from_probabilities(
        pg.Problem(PROBLEM.prior, distinguishability=np.where(np.eye(3) > 0, 0.0, np.inf)), np.eye(3)
    )
    with pytest.raises(pg.InvalidProblem, match="separate two secrets"):
        Releases(telling.problem, STILL, mechanism=telling, budget=Budget(3.0, delta=1e-3)).release("cell-0")


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ({"delta": 0.0}, "delta is 0.0"),
        ({"delta": 1.0}, "between 0 and 1"),
        ({"delta": float("nan")}, "between 0 and 1"),
        ({"delta": "1e-6"}, "between 0 and 1"),
        ({"within": 1.0}, "give both"),
        ({"delta": 1e-6, "within": -1.0}, "distance, 0 or more"),
        ({"delta": 1e-6, "within": inf}, "leave it out for any two secrets"),
    ],
)
def test_wrong_budgets(terms: dict[str, Any], message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        Budget(4.0, **terms)


def test_wrong_counts() -> None:
    for arguments, message in [((0.0, 1e-6), "epsilon"), ((1.0, 0.0), "delta"), ((1.0, 1e-6, -1.0), "within")]:
        with pytest.raises(pg.InvalidProblem, match=message):
            releases_within(FIXED, *arguments)


def test_a_ledger_in_a_file_shows_what_is_left(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    with Ledger(path) as ledger:
        releases = Releases(PROBLEM, STILL, mechanism=FIXED, budget=DAY, ledger=ledger, clock_tolerance=None)
        releases.release("cell-0", at=9e9)
    with Ledger.open_existing(path) as ledger:
        total, day = ledger.accounts()
        assert total["approximate"] is None
        assert (day["name"], day["counted"]) == (DAY_NAME, "of the largest loss")
        assert str(day["left_in_words"]).endswith("more releases of this mechanism")
        assert ledger.verify().with_delta == {DAY_NAME: day["limit_in_words"]}
        assert "cell" not in json.dumps(ledger.accounts())


DAY_NAME = "every 24 h within 1 km, delta 0.001"
