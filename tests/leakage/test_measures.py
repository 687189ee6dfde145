"""Leakage against brute force, against libqif's published values, and what must hold for every channel."""

from fractions import Fraction
from itertools import combinations, permutations
from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privacygames as pg
from leakage_channels import channel_of, channels, priors
from privacygames import leakage
from privacygames.leakage import Channel, Gain

HALF = Fraction(1, 2)
C1 = channel_of([[Fraction(8, 10), Fraction(2, 10)], [Fraction(3, 10), Fraction(7, 10)]])
"""The channel c1 of libqif's tests."""

ID_10 = channel_of(np.eye(10, dtype=int).tolist())
NOTHING_10 = channel_of([[1]] * 10)
UNIFORM_10 = [Fraction(1, 10)] * 10
PI_2 = [Fraction(2, 10), Fraction(8, 10), *[Fraction(0)] * 8]
PI_3, PI_4 = [Fraction(1, 4), Fraction(3, 4)], [Fraction(3, 4), Fraction(1, 4)]


def test_published_values_of_libqif() -> None:
    """The exact values of libqif's own tests of Bayes and g-vulnerability, guessing entropy and capacities."""
    assert leakage.prior_vulnerability.exact([Fraction(2, 10), Fraction(8, 10)]) == Fraction(8, 10)
    for gain in ("identity", np.eye(10)):
        assert leakage.posterior_vulnerability.exact(ID_10, UNIFORM_10, gain) == 1
        assert leakage.posterior_vulnerability.exact(NOTHING_10, UNIFORM_10, gain) == Fraction(1, 10)
        assert leakage.posterior_vulnerability.exact(NOTHING_10, PI_2, gain) == Fraction(8, 10)
    assert leakage.posterior_vulnerability.exact(C1, PI_3) == Fraction(3, 4)
    assert leakage.posterior_vulnerability.exact(C1, PI_4) == Fraction(31, 40)
    assert leakage.bayes_capacity.exact(C1) == Fraction(3, 2)
    assert leakage.bayes_capacity.exact(ID_10) == 10
    assert leakage.min_entropy_leakage(C1, [HALF, HALF]) == pytest.approx(log2(1.5))
    assert leakage.guessing_entropy.exact(UNIFORM_10) == Fraction(55, 10)
    assert leakage.guessing_entropy.exact([Fraction(2, 10), Fraction(8, 10)]) == Fraction(12, 10)
    assert leakage.posterior_guessing_entropy.exact(C1, PI_4) == Fraction(1225, 1000)
    two = channel_of([[1, 0], [0, 1]])
    assert leakage.additive_gain_capacity.exact(two, [HALF, HALF]) == HALF
    assert leakage.additive_vulnerability_capacity.exact(two, [HALF, HALF]) == 1
    assert leakage.additive_gain_capacity.exact(two, [1, 0]) == 0
    assert leakage.additive_vulnerability_capacity.exact(two, [1, 0]) == 0


def test_published_values_of_libqif_in_bits() -> None:
    entropy = -sum(float(p) * log2(p) for p in PI_3)
    assert entropy - leakage.shannon_leakage(C1, PI_3) == pytest.approx(0.669020059980807, abs=1e-12)
    capacity = leakage.shannon_capacity(C1, tolerance=1e-10)
    assert capacity.lower <= 0.19123813831431799 <= capacity.upper
    cyclic = channel_of([[3, 2, 5], [5, 3, 2], [2, 5, 3]])
    row = -sum(p * log2(p) for p in (0.3, 0.2, 0.5))
    assert leakage.shannon_capacity(cyclic).lower == pytest.approx(log2(3) - row, abs=1e-9)
    assert leakage.shannon_capacity(NOTHING_10).upper <= 1e-11


@given(st.data())
def test_vulnerability_is_what_the_best_strategy_gains(data: st.DataObject) -> None:
    """Against the sum over all strategies, term by term in fractions."""
    channel = data.draw(channels(secrets=3, outputs=2))
    prior = data.draw(priors(3))
    gain = data.draw(st.lists(st.lists(st.integers(-5, 9), min_size=3, max_size=3), min_size=1, max_size=3))
    expected = sum(
        max(sum(prior[s] * channel.fractions[s][o] * row[s] for s in range(3)) for row in gain) for o in range(2)
    )
    assert leakage.posterior_vulnerability.exact(channel, prior, gain) == expected
    assert leakage.prior_vulnerability.exact(prior, gain) == max(
        sum(prior[s] * row[s] for s in range(3)) for row in gain
    )


@given(st.data(), st.integers(1, 5))
def test_tries_are_sets_of_guesses(data: st.DataObject, tries: int) -> None:
    channel, prior = data.draw(channels(secrets=4, outputs=3)), data.draw(priors(4))
    sets = [[int(s in chosen) for s in range(4)] for chosen in combinations(range(4), min(tries, 4))]
    written_out = leakage.posterior_vulnerability.exact(channel, prior, sets)
    assert leakage.posterior_vulnerability.exact(channel, prior, Gain.tries(tries)) == written_out
    assert leakage.prior_vulnerability.exact(prior, Gain.tries(tries)) == leakage.prior_vulnerability.exact(prior, sets)


@given(st.data())
def test_guessing_entropy_is_the_best_order_of_guesses(data: st.DataObject) -> None:
    channel, prior = data.draw(channels(secrets=3, outputs=3)), data.draw(priors(3))
    expected = sum(
        min(
            sum(place * prior[s] * channel.fractions[s][o] for place, s in enumerate(order, start=1))
            for order in permutations(range(3))
        )
        for o in range(3)
    )
    assert leakage.posterior_guessing_entropy.exact(channel, prior) == expected


@given(st.data())
def test_no_post_processing_leaks_more(data: st.DataObject) -> None:
    """The data-processing inequality, for every measure."""
    channel, prior = data.draw(channels(secrets=3, outputs=3)), data.draw(priors(3))
    processed = leakage.cascade(channel, data.draw(channels(secrets=3, outputs=4, space=channel.outputs)))
    gain = data.draw(st.lists(st.lists(st.integers(-5, 9), min_size=3, max_size=3), min_size=1, max_size=4))
    for measured in (gain, "identity", Gain.tries(2)):
        less = leakage.additive_leakage.exact(processed, prior, measured)
        assert 0 <= less <= leakage.additive_leakage.exact(channel, prior, measured)
    assert leakage.bayes_capacity.exact(processed) <= leakage.bayes_capacity.exact(channel)
    for capacity in (leakage.additive_gain_capacity, leakage.additive_vulnerability_capacity):
        assert capacity.exact(processed, prior) <= capacity.exact(channel, prior)
    assert leakage.shannon_leakage(processed, prior) <= leakage.shannon_leakage(channel, prior) + 1e-12
    before, after = leakage.guessing_entropy.exact(prior), leakage.posterior_guessing_entropy.exact(channel, prior)
    assert after <= leakage.posterior_guessing_entropy.exact(processed, prior) <= before


@given(st.data())
def test_compositions(data: st.DataObject) -> None:
    """A visible choice leaks the average, for every gain; two releases no less than either of them."""
    first, prior = data.draw(channels(secrets=3, outputs=2)), data.draw(priors(3))
    second = data.draw(channels(secrets=3, outputs=3))
    gain = data.draw(st.lists(st.lists(st.integers(-5, 9), min_size=3, max_size=3), min_size=1, max_size=4))
    share = Fraction(data.draw(st.integers(0, 7)), 7)
    either = leakage.visible_choice(share, first, second)
    one, other = (leakage.posterior_vulnerability.exact(channel, prior, gain) for channel in (first, second))
    assert leakage.posterior_vulnerability.exact(either, prior, gain) == share * one + (1 - share) * other
    both = leakage.parallel(first, second)
    assert leakage.posterior_vulnerability.exact(both, prior, gain) >= max(one, other)
    assert leakage.bayes_capacity.exact(both) <= leakage.bayes_capacity.exact(first) * leakage.bayes_capacity.exact(
        second
    )


@given(st.data())
def test_the_hyper_distribution_has_all_leakage(data: st.DataObject) -> None:
    channel, prior = data.draw(channels(secrets=3, outputs=4)), data.draw(priors(3))
    hyper = leakage.hyper(channel, prior)
    assert sum(hyper.outer) == 1
    assert len(set(hyper.inners)) == len(hyper.inners)
    for secret in range(3):
        mixture = sum(outer * inner[secret] for outer, inner in zip(hyper.outer, hyper.inners, strict=True))
        assert mixture == prior[secret]
    gain = data.draw(st.lists(st.lists(st.integers(-5, 9), min_size=3, max_size=3), min_size=1, max_size=4))
    average = sum(
        outer * leakage.prior_vulnerability.exact(inner, gain)
        for outer, inner in zip(hyper.outer, hyper.inners, strict=True)
    )
    assert average == leakage.posterior_vulnerability.exact(channel, prior, gain)


def test_a_mechanism_is_measured_on_its_weights() -> None:
    """The loss of an adversary is what the rest of the library calls distortion privacy."""
    problem = pg.Problem(pg.Prior.from_counts(pg.Grid(3, 2), [5, 1, 0, 2, 9, 1]), distance="euclidean")
    mechanism = pg.design(problem, epsilon=1.0)
    attack = pg.attacks.optimal(mechanism, problem)
    saved = leakage.posterior_vulnerability(mechanism, problem.prior, Gain.from_loss(problem.distance))
    assert problem.distance.max() - saved == pytest.approx(pg.metrics.distortion(mechanism, problem, attack))
    near = leakage.posterior_vulnerability(mechanism, problem.prior, "euclidean")
    assert near == pytest.approx(saved / problem.distance.max())
    bayes = leakage.posterior_vulnerability(mechanism, problem.prior)
    assert bayes == pytest.approx(pg.metrics.vulnerability(mechanism, problem.prior))
    assert leakage.shannon_leakage(mechanism, problem.prior) == pytest.approx(
        pg.metrics.mutual_information(mechanism, problem.prior), abs=1e-14
    )
    channel = Channel.of(mechanism)
    assert leakage.posterior_vulnerability.exact(pg.PublicMechanism.of(mechanism), problem.prior) == Fraction(
        leakage.posterior_vulnerability.exact(channel, problem.prior)
    )
    assert leakage.prior_vulnerability.exact(problem.prior) == Fraction(1, 2)  # 9 of 18: floats in exact proportion


def test_rounding_never_decides_the_best_guess() -> None:
    """Two guesses that floats cannot tell apart: the exact sum takes the better one."""
    tiny = Fraction(1, 2**80)
    channel = channel_of([[1], [1]])
    prior = [HALF + tiny, HALF - tiny]
    assert leakage.posterior_vulnerability.exact(channel, prior, np.eye(2)) == HALF + tiny


def test_wrong_arguments_are_refused() -> None:
    space = pg.Categories("ab")
    identity = channel_of([[1, 0], [0, 1]], space)
    with pytest.raises(pg.InvalidProblem, match="sum to 1"):
        channel_of([[Fraction(1, 2), Fraction(1, 3)], [0, 1]], space, normalised=True)
    with pytest.raises(pg.InvalidProblem, match="other secrets"):
        leakage.posterior_vulnerability(identity, pg.Prior.uniform(pg.Categories("xy")))
    with pytest.raises(pg.InvalidProblem, match="3 probabilities"):
        leakage.posterior_vulnerability(identity, [HALF, HALF, 0])
    with pytest.raises(pg.InvalidProblem, match="3 secrets"):
        leakage.posterior_vulnerability(identity, [HALF, HALF], [[1, 2, 3]])
    with pytest.raises(pg.InvalidProblem, match="knows no distance"):
        leakage.posterior_vulnerability(identity, [HALF, HALF], "euclidean")
    with pytest.raises(pg.InvalidProblem, match="needs a Prior"):
        leakage.prior_vulnerability([HALF, HALF], "hamming")
    with pytest.raises(pg.InvalidProblem, match="gains nothing before"):
        leakage.multiplicative_leakage(identity, [HALF, HALF], [[0, 0]])
    with pytest.raises(pg.InvalidProblem, match="finite numbers"):
        Gain.from_matrix([[float("nan"), 1.0]])
    with pytest.raises(pg.InvalidProblem, match="these must be equal"):
        leakage.cascade(identity, channel_of([[1], [1]], pg.Categories("xy")))
    with pytest.raises(pg.InvalidProblem, match="different secrets"):
        leakage.parallel(identity, channel_of([[1], [1]], pg.Categories("xy")))
    with pytest.raises(pg.InvalidProblem, match="leakage is measured of"):
        leakage.bayes_capacity("home.pgm")  # type: ignore[arg-type]
