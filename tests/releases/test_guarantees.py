"""Claim 1 against brute force: every trace, every sequence of answers, every policy, in exact arithmetic."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import privacygames as pg
from exact import exp_enclosure
from privacygames import tracking
from privacygames.releases import EvenSpread, Ledger, Memoised, Predictive, Releases
from privacygames.releases.policies import Choice, Policy, PublicState, prediction_test
from privacygames.releases.sampling import MemoisedFunction, memoised_output
from sharing import PROBLEM, STREET, WALK, two_steps

Make = Callable[[np.random.Generator], Releases]
NEW_FUNCTION = "another key or mechanism than before: every secret gets a new output, charged anew"
TRACES = [(first, second) for first in range(3) for second in range(3)]

FIXED = pg.design(PROBLEM, epsilon=0.7)
THIRDS = pg.Problem(PROBLEM.prior, cost="euclidean", distinguishability=3 * PROBLEM.distance)
"""The same street, measured in thirds: an ε there is three times as much per kilometre."""


class Modest(Policy):
    """Says that it asks for less than its mechanism has."""

    def choose(self, public_state: PublicState) -> Choice:
        return Choice(public_state.mechanism_for(None), Decimal("0.1"))


def used_elsewhere() -> Predictive:
    """A policy that has made its tests for another distinguishability."""
    policy = Predictive(test=0.3, within=0.5)
    there = Releases(THIRDS, WALK, mechanism=FIXED, policy=policy)
    for _ in range(9):
        there.release("cell-1")
        there.preview()
    return policy


POLICIES: dict[str, dict[str, Any]] = {
    "fixed": {"epsilon": 0.5},
    "fixed, with distortion": {"epsilon": 0.9, "distortion": 0.4},
    "one mechanism": {"mechanism": FIXED},
    "one mechanism, certified in thirds": {"mechanism": pg.design(THIRDS, epsilon=0.3)},
    "one mechanism, said to be less": {"mechanism": FIXED, "policy": Modest()},
    "predictive, used elsewhere": {"policy": used_elsewhere(), "mechanism": FIXED},
    "even spread": {"policy": EvenSpread(2), "budget": 1.0},
    "predictive": {"policy": Predictive(0.6, test=0.3, within=0.5)},
    "predictive from the belief": {"policy": Predictive(0.6, test=0.3, within=1.0, prediction="belief")},
    "predictive, one mechanism": {"policy": Predictive(test=0.2, within=0.5), "mechanism": FIXED},
    "spent: repeat": {"epsilon": 0.5, "budget": 0.7, "when_spent": "repeat"},
    "spent: belief": {"epsilon": 0.5, "budget": 0.7, "when_spent": "belief"},
}


def holds(chance: Fraction, other: Fraction, exponent: Fraction) -> bool:
    """Whether chance ≤ exp(exponent)·other, decided without rounding."""
    low, high = exp_enclosure(exponent)
    if chance <= low * other:
        return True
    assert chance > high * other, "the enclosure is too wide to decide"
    return False


@pytest.mark.parametrize("name", POLICIES)
def test_no_answers_tell_two_traces_apart_by_more_than_what_was_charged(name: str) -> None:
    def make(generator: np.random.Generator) -> Releases:
        return Releases(PROBLEM, WALK, generator=generator, **POLICIES[name])

    found = {trace: two_steps(make, trace) for trace in TRACES}
    apart = [[Fraction(float(d)) for d in row] for row in PROBLEM.distinguishability]
    tight = Fraction(0)
    for trace, other in product(TRACES, repeat=2):
        assert sum(chance for chance, _ in found[trace].values()) == 1
        for outcome, (chance, charges) in found[trace].items():
            against, same = found[other].get(outcome, (Fraction(0), charges))
            assert same == charges, "what is charged follows from what is public"
            pairs = zip(charges, trace, other, strict=True)
            exponent = sum((charge * apart[x][y] for charge, x, y in pairs), Fraction(0))
            assert holds(chance, against, exponent)
            if exponent > 0:
                tight = max(tight, chance / against / exp_enclosure(exponent)[0])
    assert tight > Fraction(1, 2), "a bound that is never nearly reached would be a poor test"


def test_half_of_what_was_charged_would_not_do() -> None:
    """The brute force can fail."""
    found = {trace: two_steps(lambda g: Releases(PROBLEM, WALK, epsilon=0.5, generator=g), trace) for trace in TRACES}
    broken = 0
    for outcome, (chance, charges) in found[0, 0].items():
        broken += not holds(chance, found[2, 2][outcome][0], sum(charges, Fraction(0)) * 2 / 2)
    assert broken


def memoised_outcomes(mechanism: pg.Mechanism, trace: tuple[int, int]) -> dict[tuple[int, int], Fraction]:
    """Every function from places to answers, with its probability, and what it answers along a trace."""
    total = 2**mechanism.bits
    found: dict[tuple[int, int], Fraction] = {}
    for function in product(range(mechanism.weights.shape[1]), repeat=3):
        chance = Fraction(1)
        for place, answer in enumerate(function):
            chance *= Fraction(int(mechanism.weights[place, answer]), total)
        answers = function[trace[0]], function[trace[1]]
        found[answers] = found.get(answers, Fraction(0)) + chance
    return found


def test_memoised_answers_count_each_place_once_between_traces_with_the_same_returns() -> None:
    found = {trace: memoised_outcomes(FIXED, trace) for trace in TRACES}
    epsilon = Fraction("0.7")
    apart = [[Fraction(float(d)) for d in row] for row in PROBLEM.distinguishability]
    told = 0
    for trace, other in product(TRACES, repeat=2):
        returns, others = trace[0] == trace[1], other[0] == other[1]
        places = dict(zip(trace, other, strict=True))
        for answers, chance in found[trace].items():
            against = found[other].get(answers, Fraction(0))
            if returns == others:
                assert holds(chance, against, epsilon * sum(apart[x][y] for x, y in places.items()))
            elif chance > 0 and against == 0:
                told += 1  # no ε bounds this: she came back, or she did not
    assert told > 0


def test_memoised_draws_follow_the_mechanism() -> None:
    mechanism, counts = pg.baselines.exponential(PROBLEM, 0.7), np.zeros(3)
    for number in range(3000):
        key = number.to_bytes(16, "big")
        counts[memoised_output(MemoisedFunction(mechanism, key), 1, ()).output_index] += 1
    expected = 3000 * mechanism.probabilities[1]
    assert ((counts - expected) ** 2 / expected).sum() < 20  # χ² with 2 degrees: 20 has probability 5e-5


def test_memoised_answers_never_change_and_are_charged_once() -> None:
    for number in range(5):
        key = number.to_bytes(16, "big")
        releases = Releases(PROBLEM, WALK, mechanism=FIXED, policy=Memoised(key), budget=1.4)
        assert len({releases.release("cell-1").observable for _ in range(5)}) == 1
        releases.release("cell-2")
        assert [each.charges[0] > 0 for each in releases.ledger.records()] == [True, *[False] * 4, True]
        with pytest.raises(pg.BudgetExceeded):  # a third place
            releases.release("cell-0")
        assert releases.release("cell-1").epsilon == 0
        other = Releases(PROBLEM, WALK, mechanism=FIXED, policy=Memoised(b"x" * 16), budget=1.4, ledger=Ledger())
        other.release("cell-0")
        again = Releases(PROBLEM, WALK, mechanism=FIXED, policy=Memoised(key), budget=1.4, ledger=other.ledger)
        release = again.release("cell-0")
        assert (release.epsilon, release.remarks) == (0.7, (NEW_FUNCTION,))


def test_the_test_of_a_prediction_is_certified_whatever_the_distance() -> None:
    """Distances that are no metric, zeros included."""
    odd = np.array([[0.0, 0.0, 9.0], [0.0, 0.0, 0.5], [1.0, 0.1, 0.0]])
    problem = pg.Problem(pg.Prior.uniform(STREET), distinguishability=odd)
    for kept in range(3):
        test = prediction_test(problem, kept, 0.8, 0.3)
        assert test.certificate.bounds.epsilon == 0.8
        assert test.certificate.verification.largest_ratio <= 1
    plain = prediction_test(PROBLEM, 0, 1.0, 0.5)
    assert plain.probabilities[:, 0] == pytest.approx(
        [1 - np.exp(-0.5) / 2, np.exp(-0.5) / 2, np.exp(-1.5) / 2], abs=1e-9
    )


def test_claims_say_what_the_theory_says() -> None:
    mechanism = pg.baselines.exponential(PROBLEM, 0.5)
    releases = Releases(PROBLEM, WALK, mechanism=mechanism)
    empty = releases.guarantees()
    assert (empty.trace_epsilon, empty.moment_exponent, empty.error_now) == (0.0, 0.0, None)
    for secret in ("cell-0", "cell-1", "cell-1"):
        releases.release(secret)
    guarantees = releases.guarantees()
    assert guarantees.trace_epsilon == pytest.approx(3 * pg.metrics.epsilon(mechanism, PROBLEM))
    assert guarantees.moment_exponent == pytest.approx(guarantees.trace_epsilon * 2.0)
    smooth = tracking.smoothing_attack(PROBLEM, WALK, releases.observations())
    assert guarantees.errors_past == pytest.approx(smooth.errors)
    assert guarantees.error_now == pytest.approx(smooth.errors[-1])
    assert guarantees.moment_exponent is not None
    assert guarantees.moment_epsilon_under_chain is not None
    assert (
        0 < guarantees.moment_epsilon_under_chain <= guarantees.moment_exponent
    )  # two places 1 km apart: never above the worst case
    same = Releases(PROBLEM, WALK, mechanism=FIXED, policy=Memoised(b"0123456789abcdef"))
    same.release("cell-0")
    assert "same returns" in str(same.guarantees())
    assert same.guarantees().moment_exponent is None
