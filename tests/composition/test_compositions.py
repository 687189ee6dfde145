"""Compositions against the enumeration of all sequences of outputs, in exact fractions."""

from fractions import Fraction
from itertools import permutations
from math import comb, inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from accounts import both_rows, close_pairs, divergence, enumerated, mechanism_of, pairs, rows
from privacygames.composition import Composition, DominatingPair, dominating_pair, loss_pair, randomised_response_pair
from privacygames.composition.exponential import exponential_below
from privacygames.errors import InvalidProblem

EPSILONS = (0.0, 0.05, 0.3, 1.0, 2.0, 5.0)


def assert_brackets(composition: Composition, releases: list[DominatingPair], epsilon: float) -> None:
    """Both bounds hold, rounded exponentials included, and the bracket is not wider than steps allow."""
    rows_of = [both_rows(pair) for pair in releases]
    bounds = composition.delta(epsilon)
    exact = enumerated(rows_of, exponential_below(epsilon))
    assert bounds.lower <= exact
    assert bounds.upper >= enumerated(rows_of, exponential_below(epsilon, above=True))
    assert bounds.upper <= float(exact) + len(releases) * composition.step + 1e-12


@given(st.lists(pairs(), min_size=1, max_size=4), st.sampled_from(EPSILONS))
@settings(max_examples=50)
def test_bounds_enclose_the_enumeration(releases: list[DominatingPair], epsilon: float) -> None:
    assert_brackets(Composition([(pair, 1) for pair in releases]), releases, epsilon)


@given(close_pairs(3), st.integers(1, 5), st.sampled_from(EPSILONS), st.sampled_from([2.0**-3, 2.0**-8, 2.0**-14]))
def test_any_step_gives_bounds(pair: DominatingPair, count: int, epsilon: float, step: float) -> None:
    assert_brackets(Composition([(pair, count)], step=step), [pair] * count, epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_six_releases_of_eight_outputs(epsilon: float) -> None:
    """All 8^6 sequences of outputs, of a mechanism and of one that gives secrets away now and then."""
    generator = np.random.default_rng(3)
    table = generator.dirichlet(np.full(8, 4.0), size=2)
    first, second = (np.floor(row * 2**20).astype(np.int64) for row in table)
    first[0] += 2**20 - first.sum()
    second[0] += 2**20 - second.sum()
    plain = DominatingPair(first, second, 20)
    open_now_and_then = DominatingPair(np.array([1, 8, 7, 0]), np.array([0, 7, 8, 1]), 4)
    assert_brackets(Composition([(plain, 6)]), [plain] * 6, epsilon)
    assert_brackets(
        Composition([(plain, 3), (open_now_and_then, 2)]), [*[plain] * 3, *[open_now_and_then] * 2], epsilon
    )


@given(st.lists(rows(3), min_size=2, max_size=3))
@settings(max_examples=30)
def test_the_dominating_pair_covers_every_two_sequences_of_secrets(weights: list[list[int]]) -> None:
    """Three releases, of any secrets that differ by at most 1 at each of them."""
    upper = Composition([(dominating_pair(mechanism_of(weights), 1.0), 3)])
    steps = [(s, t) for s in range(len(weights)) for t in range(len(weights)) if abs(s - t) <= 1]
    sequences = [(a, b, c) for a in steps for b in steps for c in steps if a <= b <= c]  # order does not matter
    for epsilon in (0.1, 1.0):
        ratio = exponential_below(epsilon, above=True)
        worst = max(enumerated([(weights[s], weights[t]) for s, t in each], ratio) for each in sequences)
        assert upper.delta(epsilon).upper >= worst


def exact_coins(pair: DominatingPair, count: int, ratio: Fraction) -> Fraction:
    """The divergence of many coins, by the binomial distribution."""
    p, q = pair.first.tolist()
    terms = (
        comb(count, k) * max(p**k * q ** (count - k) - ratio * q**k * p ** (count - k), 0) for k in range(count + 1)
    )
    return Fraction(sum(terms, Fraction(0)), 2 ** (pair.bits * count))


@pytest.mark.parametrize(("count", "epsilon"), [(50, 1.0), (50, 4.0), (300, 3.0), (300, 10.0), (300, 15.0)])
def test_many_coins_are_bounded_tightly_far_out_in_the_tail(count: int, epsilon: float) -> None:
    coin = randomised_response_pair(0.1)
    exact = exact_coins(coin, count, exponential_below(epsilon))
    bounds = Composition([(coin, count)]).delta(epsilon)
    assert 0.8 * exact <= bounds.lower <= exact <= bounds.upper <= 1.02 * exact


@given(st.lists(st.tuples(pairs(), st.integers(1, 30)), min_size=1, max_size=3), st.sampled_from([1e-9, 1e-6, 0.01]))
@settings(max_examples=15)
def test_epsilon_is_the_inverse_of_delta(counts: list[tuple[DominatingPair, int]], delta: float) -> None:
    composition = Composition(counts)
    bounds = composition.epsilon(delta)
    assert 0 <= bounds.lower <= bounds.upper
    if bounds.upper < inf:
        assert composition.delta(bounds.upper).upper <= delta * 1.01
    if 0 < bounds.lower < inf:
        assert composition.delta(bounds.lower).lower >= delta * 0.99


def test_epsilon_brackets_the_exact_one() -> None:
    coin = randomised_response_pair(0.2)
    bounds = Composition([(coin, 80)]).epsilon(1e-6)
    assert exact_coins(coin, 80, exponential_below(bounds.upper, above=True)) <= Fraction(1e-6)
    assert exact_coins(coin, 80, exponential_below(bounds.lower)) >= Fraction(1e-6)
    assert bounds.upper - bounds.lower < 0.01


def test_composition_is_never_worse_than_adding_up() -> None:
    coin = randomised_response_pair(0.5)
    for count in (1, 2, 7):
        bounds = Composition([(coin, count)]).epsilon(1e-12)
        assert bounds.lower <= 0.5 * count
        assert bounds.upper <= 0.5 * count + 1e-3


def test_nothing_released_reveals_nothing() -> None:
    for composition in (Composition([]), Composition([(randomised_response_pair(1.0), 0)])):
        assert composition.delta(0.0).upper < 1e-15
        assert composition.epsilon(1e-6).upper == 0.0


def test_an_output_that_gives_secrets_away_allows_no_epsilon() -> None:
    separating = DominatingPair(np.array([4, 0]), np.array([0, 4]), 2)
    bounds = Composition([(separating, 1)]).delta(10.0)
    assert 1 - 1e-8 <= bounds.lower <= bounds.upper == 1.0
    assert Composition([(separating, 1)]).epsilon(0.5).lower == inf
    rarely = DominatingPair(np.array([1, 1023]), np.array([0, 1024]), 10)
    assert Composition([(rarely, 3)]).epsilon(1e-4).lower == inf
    assert Composition([(rarely, 3)]).epsilon(1e-2).upper < 1.0


def test_weights_of_one_unit_are_counted() -> None:
    """The rarest outputs of a mechanism, of one unit in 2^62, do not disturb the bounds."""
    rare = DominatingPair(np.array([2**62 - 2, 1, 1]), np.array([2**62 - 2**40 - 1, 2**40, 1]), 62)
    assert_brackets(Composition([(rare, 4)]), [rare] * 4, 0.0)
    assert_brackets(Composition([(rare.reversed(), 4)]), [rare.reversed()] * 4, 0.5)


def test_rare_and_enormous_losses_fit_into_memory() -> None:
    """The tilt that suits an ε would need a window of all sums, of which most are next to impossible."""
    first, second = [2**61 + 2**40, 2**61 - 2**41, 2**40], [2**61, 2**61 - 1, 1]
    composition = Composition([(DominatingPair(np.array(first), np.array(second), 62), 2000)], step=2.0**-11)
    for epsilon in (1.0, 500.0):
        bounds = composition.delta(epsilon)
        assert 0 <= bounds.lower <= bounds.upper <= 2000 * 2.0**-22
    assert composition.epsilon(0.01).upper < 0.1
    with pytest.raises(InvalidProblem, match="step is too small"):
        Composition([(randomised_response_pair(5.0), 2000)], step=2.0**-25).delta(1.0)


def test_a_thousand_releases_of_a_city() -> None:
    city = pg.Grid(5, 5, 5.0, 1.0)
    mechanism = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(city)), epsilon=0.1)
    near = Composition([(dominating_pair(mechanism, 1.0), 1000)]).epsilon(1e-6)
    one = Composition([(loss_pair(mechanism, "cell-0", "cell-1"), 1000)]).epsilon(1e-6)
    assert one.lower <= near.upper < 0.1 * 1000 / 4
    assert near.upper - near.lower < 0.02 * near.upper


def test_wrong_arguments() -> None:
    coin = randomised_response_pair(1.0)
    with pytest.raises(InvalidProblem, match="counts"):
        Composition([(coin, -1)])
    with pytest.raises(InvalidProblem, match="step"):
        Composition([(coin, 1)], step=0.3)
    for epsilon in (-0.1, inf, float("nan")):
        with pytest.raises(InvalidProblem, match="epsilon"):
            Composition([(coin, 1)]).delta(epsilon)
    for delta in (0.0, 1.0, float("nan")):
        with pytest.raises(InvalidProblem, match="delta"):
            Composition([(coin, 1)]).epsilon(delta)


@pytest.mark.parametrize("count", [1, 20, 200])
def test_google_dp_accounting_agrees(count: int) -> None:
    """Its optimistic and pessimistic estimates, with coarser steps, enclose our bounds."""
    library = pytest.importorskip(
        "dp_accounting.pld.privacy_loss_distribution", reason="Google's dp-accounting is not installed"
    )
    generator = np.random.default_rng(8)
    weights = np.floor(generator.dirichlet(np.full(6, 20.0), size=2) * 2**30).astype(np.int64)
    weights[:, 0] += 2**30 - weights.sum(axis=1)
    pair = DominatingPair(weights[0], weights[1], 30)
    losses = [
        {at: float(np.log(weight) - 30 * np.log(2)) for at, weight in enumerate(row.tolist())} for row in weights[::-1]
    ]
    high, low = (
        library.from_two_probability_mass_functions(
            *losses, pessimistic_estimate=pessimistic, value_discretization_interval=1e-3, symmetric=True
        ).self_compose(count)
        for pessimistic in (True, False)
    )
    composition = Composition([(pair, count)])
    for epsilon in (0.0, 0.2, 1.0, 3.0):
        ours, noise = composition.delta(epsilon), 1e-12  # of its FFT, which it does not count
        assert low.get_delta_for_epsilon(epsilon) - noise <= ours.lower
        assert ours.upper <= high.get_delta_for_epsilon(epsilon) + noise


def test_all_pairs_of_secrets_of_a_mechanism_one_by_one() -> None:
    weights = [[9, 4, 3], [4, 9, 3], [3, 4, 9]]
    mechanism = mechanism_of(weights)
    for s, t in permutations(range(3), 2):
        bounds = Composition([(loss_pair(mechanism, s, t), 1)]).delta(0.4)
        assert bounds.lower <= float(divergence(weights[s], weights[t], exponential_below(0.4))) <= bounds.upper
