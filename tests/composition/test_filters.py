"""Filters against the worst of all adaptive policies, found by exhaustive search in exact fractions."""

from collections.abc import Callable
from copy import deepcopy
from fractions import Fraction
from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounts import both_rows, close_pairs, enumerated, pairs, worst_policy
from privacygames.composition import (
    Composition,
    DeclaredFilter,
    DominatingPair,
    PrivacyFilter,
    PureFilter,
    RenyiFilter,
    randomised_response_pair,
    renyi_divergence,
    renyi_limit,
)
from privacygames.composition.exponential import exponential_below
from privacygames.errors import BudgetExceeded, InvalidProblem


def coin(odds: int) -> DominatingPair:
    """A coin that tells the truth with odds to 1, for odds that are 1 below a power of two."""
    return DominatingPair(np.array([odds, 1]), np.array([1, odds]), (odds + 1).bit_length() - 1)


WEAK, STRONG, RARE = coin(3), coin(15), DominatingPair(np.array([1, 31, 0]), np.array([0, 31, 1]), 5)
CHOICES = (WEAK, STRONG, RARE)


def lets_pass(budget: PrivacyFilter) -> Callable[[tuple[int, ...]], bool]:
    """Whether copies of a filter let a sequence of choices pass."""

    def fits(chosen: tuple[int, ...]) -> bool:
        copy = deepcopy(budget)
        try:
            for each in chosen:
                copy.charge(CHOICES[each])
        except BudgetExceeded:
            return False
        return True

    return fits


@pytest.mark.parametrize(("epsilon", "delta"), [(2.0, 0.3), (3.0, 0.1), (4.0, 0.02), (6.0, 0.2)])
@pytest.mark.parametrize("orders", [None, [1.5, 3.0, 10.0], [2.0, inf]])
def test_no_policy_gets_more_past_a_renyi_filter(epsilon: float, delta: float, orders: list[float] | None) -> None:
    fits = lets_pass(RenyiFilter(epsilon, delta, orders=orders))
    assert worst_policy(CHOICES, fits, exponential_below(epsilon), 4) <= delta


def test_no_policy_gets_more_past_a_pure_filter() -> None:
    epsilon = 2 * log(3) + log(15) + 1e-9
    assert worst_policy(CHOICES, lets_pass(PureFilter(epsilon)), exponential_below(epsilon), 4) == 0


def test_no_policy_gets_more_past_a_declared_filter() -> None:
    """In whatever order it spends them, and with a weak mechanism where a strong one was declared."""
    declared, epsilon = [(WEAK, 2), (STRONG, 1), (RARE, 1)], 3.0
    delta = Composition(declared).delta(epsilon).upper
    worst = worst_policy(CHOICES, lets_pass(DeclaredFilter(declared, epsilon, delta)), exponential_below(epsilon), 4)
    assert 0.9 * delta < worst <= delta


def test_composing_what_was_chosen_is_no_filter() -> None:
    """To go on as long as the composition of what was chosen so far is within (ε, δ) breaks the guarantee.

    A policy waits for what an output says, and then takes the mechanism that is worst at the ε that is left.
    """
    ratio, delta = Fraction(8), Fraction(1, 16)

    def fits(chosen: tuple[int, ...]) -> bool:
        return enumerated([both_rows(CHOICES[each]) for each in chosen], ratio) <= delta

    assert worst_policy(CHOICES, fits, ratio, 3) > Fraction(6, 5) * delta


@given(close_pairs(), st.sampled_from([1.5, 2.0, 5.0, 40.0]))
def test_renyi_divergences_are_rounded_up(pair: DominatingPair, order: float) -> None:
    p, q = pair.first * 2.0**-pair.bits, pair.second * 2.0**-pair.bits
    direct = log(float((p**order * q ** (1 - order)).sum())) / (order - 1)
    divergence = renyi_divergence(pair, order)
    assert direct - 1e-9 <= divergence <= direct + 1e-9
    if order == 2.0:
        moment = sum(
            Fraction(a, 2**pair.bits) ** 2 / Fraction(b, 2**pair.bits) for a, b in zip(*both_rows(pair), strict=True)
        )
        assert exponential_below(divergence, above=True) >= moment
    assert divergence <= renyi_divergence(pair, inf) + 1e-12


@given(pairs(4), pairs(4), st.sampled_from([1.5, 3.0]))
def test_dominated_pairs_have_smaller_divergences(one: DominatingPair, other: DominatingPair, order: float) -> None:
    if one.dominates(other):
        assert renyi_divergence(one, order) >= renyi_divergence(other, order) - 1e-12


@given(close_pairs(2), st.integers(1, 4), st.sampled_from([1.2, 3.0, 30.0]), st.floats(0.05, 4.0))
@settings(max_examples=50)
def test_a_renyi_divergence_implies_its_delta(pair: DominatingPair, count: int, order: float, epsilon: float) -> None:
    divergence = count * renyi_divergence(pair, order)
    exact = enumerated([both_rows(pair)] * count, exponential_below(epsilon, above=True))
    for delta in (1e-9, 1e-3, 0.2):
        if divergence <= renyi_limit(epsilon, delta, order):
            assert exact <= delta


def test_what_budgets_buy() -> None:
    """Pure < Rényi < declared, in the number of releases."""
    small = randomised_response_pair(0.05)
    counts = []
    for budget in (PureFilter(2.0), RenyiFilter(2.0, 1e-6)):
        while budget.fits(small):
            budget.charge(small)
        counts.append(budget.releases)
    assert counts[0] == 39  # the pair's epsilon is rounded up, and 40 of them are above 2
    assert counts[1] > 1.8 * counts[0]
    declared = DeclaredFilter([(small, int(1.1 * counts[1]))], 2.0, 1e-6)
    assert declared.left > counts[1]


def test_a_refused_release_changes_nothing() -> None:
    budget = RenyiFilter(1.0, 1e-3, orders=[4.0])
    before = budget.left
    with pytest.raises(BudgetExceeded):
        budget.charge(STRONG)
    assert (budget.left, budget.releases) == (before, 0)


def test_an_order_that_a_release_exhausts_leaves_the_others() -> None:
    budget = RenyiFilter(1.0, 1e-3, orders=[4.0, inf])
    assert budget.fits(randomised_response_pair(0.9))  # of order ∞ only
    assert not RenyiFilter(1.0, 1e-3, orders=[4.0]).fits(RARE)
    assert not budget.fits(RARE)


def test_declared_pairs_beyond_the_budget_are_refused() -> None:
    with pytest.raises(BudgetExceeded, match="declare fewer"):
        DeclaredFilter([(STRONG, 3)], 1.0, 1e-6)
    budget = DeclaredFilter([(WEAK, 1)], 2.0, 1e-6)
    assert not budget.fits(STRONG)
    budget.charge(WEAK)
    with pytest.raises(BudgetExceeded):
        budget.charge(WEAK)


def test_wrong_arguments() -> None:
    for order in (1.0, 0.5, float("nan"), 1e7):
        with pytest.raises(InvalidProblem, match="order"):
            renyi_divergence(WEAK, order)
    with pytest.raises(InvalidProblem, match="delta"):
        RenyiFilter(1.0, 1.0)
    with pytest.raises(InvalidProblem, match="epsilon"):
        PureFilter(0.0)


@pytest.mark.slow
def test_accounts_are_never_below_the_enumeration() -> None:
    """A thousand random sequences of up to six releases: composition, and the divergences of a filter."""
    generator = np.random.default_rng(11)
    for _ in range(1000):
        releases = []
        for _ in range(int(generator.integers(1, 7))):
            table = np.floor(generator.dirichlet(np.full(int(generator.integers(2, 5)), 2.0), size=2) * 2**16)
            rows = table.astype(np.int64) + 1
            rows[:, 0] += 2**17 - rows.sum(axis=1)
            releases.append(DominatingPair(rows[0], rows[1], 17))
        epsilon = float(generator.uniform(0, 3))
        exact = enumerated([both_rows(each) for each in releases], exponential_below(epsilon))
        assert Composition([(each, 1) for each in releases], step=2.0**-11).delta(epsilon).upper >= exact
        order = float(generator.uniform(1.2, 20))
        divergence = sum(renyi_divergence(each, order) for each in releases)
        implied = exp((order - 1) * (divergence - epsilon)) * (1 - 1 / order) ** (order - 1) / order
        assert implied >= exact
