"""Find the parameter: cases solvable by hand, and proofs that hold for an independent solver."""

import re
from math import log
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import privacygames as pg
from support import optimum_by_hand, problems, two_secrets


@pytest.mark.parametrize("cost", [0.02, 0.3, 0.49])
@pytest.mark.parametrize("size", [2, 5])
def test_the_closed_form_for_equally_likely_categories(size: int, cost: float) -> None:
    """Randomised response is optimal: its cost is (k−1)/(e^ε+k−1), so ε = ln((k−1)(1−c)/c)."""
    problem = pg.Problem(pg.Prior.uniform(pg.Categories("abcde"[:size])))
    exact = log((size - 1) * (1 - cost) / cost)
    found = pg.tightest_bound(problem, "epsilon", cost_at_most=cost)
    assert found.bound < exact <= found.value * (1 + 1e-12)
    assert found.value <= found.bound * 1.0010001
    assert found.mechanism.certificate.cost <= cost
    assert found.mechanism.certificate.bounds.epsilon == found.value
    assert found.solves <= 20


def test_two_secrets_in_other_units_and_in_the_threshold_form() -> None:
    exact = log(0.8 / 0.2)
    apart = pg.tightest_bound(two_secrets(apart=4.0), "epsilon", cost_at_most=0.2)
    assert apart.bound < exact / 4 <= apart.value <= apart.bound * 1.0010001
    within = pg.tightest_bound(two_secrets(apart=4.0), "epsilon", cost_at_most=0.2, within=5.0)
    assert within.bound < exact <= within.value <= within.bound * 1.0010001
    assert within.mechanism.certificate.bounds.within == 5.0


def test_the_precision_asked_for_is_kept() -> None:
    found = pg.tightest_bound(two_secrets(), "epsilon", cost_at_most=0.25, precision=1e-5)
    assert found.bound < log(3) <= found.value <= found.bound * (1 + 1.0001e-5)


def test_the_refutation_is_a_certificate_anyone_can_check(tmp_path: pytest.TempPathFactory) -> None:
    found = pg.tightest_bound(two_secrets(0.4), "epsilon", cost_at_most=0.3)
    assert found.refutation is not None
    found.refutation.save(f"{tmp_path}/no.pgm")
    certificate = pg.verify(f"{tmp_path}/no.pgm")
    assert certificate.bounds.epsilon == found.bound
    assert certificate.bound is not None
    assert certificate.bound > 0.3


@given(
    problem=problems(largest=4),
    epsilon=st.sampled_from([0.3, 1.0, 1.7]),
    share=st.sampled_from([None, 0.0, 0.6]),
    worst=st.booleans(),
)
@settings(max_examples=60)
def test_what_is_found_is_right_by_an_independent_solver(
    problem: pg.Problem, epsilon: float, share: float | None, worst: bool
) -> None:
    distortion = None if share is None else share * pg.max_distortion(problem)
    rest: dict[str, Any] = {"distortion": distortion, "worst_case": worst}
    cost = optimum_by_hand(problem, epsilon=epsilon, **rest) * (1 + 1e-6) + 1e-9
    found = pg.tightest_bound(problem, "epsilon", cost_at_most=cost, precision=0.01, **rest)
    certificate = found.mechanism.certificate
    assert certificate.cost <= cost
    assert distortion is None or certificate.verification.distortion >= distortion
    assert found.value == certificate.bounds.epsilon
    assert found.bound <= epsilon * (1 + 1e-9)  # ε is known to do
    if found.bound > 0:
        assert found.value <= found.bound * 1.0100001
        assert optimum_by_hand(problem, epsilon=found.bound, **rest) >= cost * (1 - 1e-7)


@given(problem=problems(largest=4), share=st.sampled_from([0.3, 0.8]))
@settings(max_examples=30)
def test_the_most_distortion_and_the_least_cost(problem: pg.Problem, share: float) -> None:
    most = pg.baselines.constant(problem).certificate.cost
    assume(most > 1e-3)
    least = optimum_by_hand(problem, epsilon=1.0)
    cost = least + share * (most - least) + 1e-6
    found = pg.tightest_bound(problem, "distortion", cost_at_most=cost, epsilon=1.0)
    expected = optimum_by_hand(problem, cost_at_most=cost, epsilon=1.0)
    assert found.value <= expected * (1 + 1e-7) + 1e-9
    assert found.bound >= expected * (1 - 1e-7) - 1e-9
    assert found.bound - found.value <= 1e-6 * max(found.bound, float(problem.distance.max()))
    cheapest = pg.tightest_bound(problem, "cost", epsilon=1.0)
    assert cheapest.bound - 1e-9 <= least <= cheapest.value + 1e-9


def test_a_cost_that_anything_meets_needs_no_epsilon() -> None:
    found = pg.tightest_bound(two_secrets(0.3), "epsilon", cost_at_most=0.31)
    assert found.value <= 1e-9
    assert found.bound == 0
    assert (found.mechanism.probabilities == found.mechanism.probabilities[0]).all()
    assert found.solves == 0


def test_a_cost_nothing_meets_says_what_the_least_is() -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Numbers(range(5))), cost="absolute")
    distortion = 0.9 * pg.max_distortion(problem)
    with pytest.raises(pg.Infeasible) as caught:
        pg.tightest_bound(problem, "epsilon", cost_at_most=0.5, distortion=distortion)
    assert caught.value.limit == pytest.approx(optimum_by_hand(problem, distortion=distortion), rel=1e-5)
    with pytest.raises(pg.Infeasible, match="finite epsilon"):
        pg.tightest_bound(problem, "epsilon", cost_at_most=0.0)
    dear = pg.Problem(pg.Prior.uniform(pg.Categories("ab")), cost=np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(pg.Infeasible) as caught:
        pg.tightest_bound(dear, "epsilon", cost_at_most=0.9)
    assert caught.value.limit == pytest.approx(1.0)


def test_no_constant_output_is_needed_where_every_one_is_forbidden() -> None:
    """Each output is forbidden for one secret, so no constant output exists; what then is possible decides."""
    cost = np.array([[0.0, 1.0, np.inf], [np.inf, 0.0, 1.0], [1.0, np.inf, 0.0]])
    space = pg.Categories("abc")
    compared = pg.Problem(pg.Prior.uniform(space), cost=cost)
    with pytest.raises(pg.Infeasible, match="no output is left"):
        pg.tightest_bound(compared, "epsilon", cost_at_most=0.5)
    with pytest.raises(pg.Infeasible, match="no output is left"):
        pg.tightest_bound(compared, "epsilon", cost_at_most=0.5, distortion=0.1)
    pairs = pg.Problem(
        pg.Prior.uniform(pg.Categories("abcd")),
        cost=np.array([[0.0, 1.0, np.inf, np.inf], [1.0, 0.0, np.inf, np.inf], [np.inf, np.inf, 0.0, 1.0]]),
        observables=pg.Categories("xyz"),
        distinguishability=np.where(np.kron(np.eye(2), np.ones((2, 2))) > 0, 1 - np.eye(4), np.inf),
    )
    found = pg.tightest_bound(
        pairs, "epsilon", cost_at_most=0.375
    )  # 1/4 for the second pair, and half of randomised response
    exact = log(3)  # 1/(1 + e^ε) = 2 (0.375 − 0.25)
    assert found.bound < exact <= found.value * (1 + 1e-12)
    assert found.value <= found.bound * 1.0010001


def test_the_cheapest_constant_output_for_the_worst_secret() -> None:
    """It is another one than the cheapest on average, and needs no ε at all."""
    prior = pg.Prior(pg.Categories("ab"), [0.9, 0.1])
    problem = pg.Problem(prior, cost=np.array([[0.0, 3.0], [1.0, 1.0]]), observables=pg.Categories("xy"))
    found = pg.tightest_bound(problem, "epsilon", cost_at_most=1.0, worst_case=True)
    assert (found.bound, found.solves) == (0.0, 0)
    assert found.mechanism.certificate.verification.worst_cost == pytest.approx(1.0)


@pytest.mark.parametrize("apart", [0.75, 1.0, 7.0, 1e-6, 1e6])
def test_the_largest_epsilon_is_tried_before_none_is_said_to_do(apart: float) -> None:
    """A sentinel cost needs an exponent of 27, next to the largest of 45: in closed form, and in any unit."""
    never, half = 4.3e10, 0.2821357968713263
    problem = pg.Problem(
        pg.Prior.uniform(pg.Categories("ab")),
        cost=np.array([[0.0, half], [never, 0.0]]),
        distance=np.array([[0.0, 0.75], [0.75, 0.0]]),
        distinguishability=np.array([[0.0, apart], [apart, 0.0]]),
    )
    # Where p(b|a) costs less than ``half``, ratios e^k are attained: 2·cost = (never + half)/(1 + e^k).
    cost = 0.033
    exact = log((never + half) / (2 * cost) - 1) / apart
    found = pg.tightest_bound(problem, "epsilon", cost_at_most=cost)
    assert found.bound <= exact * (1 + 1e-9)
    assert exact * (1 - 1e-9) <= found.value <= found.bound * 1.0010001
    with pytest.raises(pg.Infeasible, match=re.escape(f"with {45 / apart:.4g} per unit of ")) as caught:
        pg.tightest_bound(problem, "epsilon", cost_at_most=0.0)
    assert caught.value.limit <= 1.1 * (never + half) * np.exp(-45) / 2 + never * 2.0**-61


def test_what_was_found_prints_with_its_units() -> None:
    """ε per km of a place and per year of an age are different things; within a threshold it counts up to there."""
    city = pg.Problem(pg.Prior.uniform(pg.Grid(columns=2, rows=2, width=2.0, height=2.0)))
    rows = dict(pg.tightest_bound(city, "epsilon", cost_at_most=0.5).rows())
    assert re.fullmatch(r"[\d.]+ per km; [\d.]+ between any two secrets", rows["smallest epsilon"])
    assert rows["proved"].endswith(" per km or less")
    assert rows["distortion, optimal attack"].endswith(" km")
    years = pg.Problem(pg.Prior.uniform(pg.Numbers([1, 2, 3], unit="years")))
    assert dict(pg.tightest_bound(years, "cost", epsilon=1.0).rows())["realised epsilon"].endswith(
        " per year; 2 between any two secrets"
    )
    near = dict(pg.tightest_bound(years, "epsilon", cost_at_most=0.3, within=1.0).rows())
    assert " between secrets at most 1 years apart; " in near["smallest epsilon"]


def test_what_was_found_prints_with_its_proof_and_in_words() -> None:
    found = pg.tightest_bound(two_secrets(), "epsilon", cost_at_most=0.3)
    printed = str(found)
    assert "smallest epsilon" in printed
    assert "or less" in printed
    assert "An adversary's best guess is wrong in 30 % of cases, and exact in 70 %." in str(
        pg.explain(found.report, two_secrets())
    )
    assert "impossible: above" in str(pg.tightest_bound(two_secrets(), "distortion", cost_at_most=0.3))


def test_progress_narrows() -> None:
    seen: list[pg.Progress] = []
    found = pg.tightest_bound(two_secrets(), "epsilon", cost_at_most=0.3, progress=seen.append)
    assert {now.job for now in seen} == {"find"}
    assert sorted({now.done for now in seen}) == list(range(found.solves))
    assert [now.done for now in seen] == sorted(now.done for now in seen)
    known = [re.fullmatch("(.*) is insufficient, (.*) suffices", now.message) for now in seen]
    lows = [float(each[1].split()[0]) for each in known if each is not None and each[1] != "none yet"]
    highs = [float(each[2].split()[0]) for each in known if each is not None and each[2] != "none yet"]
    assert lows == sorted(lows)
    assert highs == sorted(highs, reverse=True)
    assert all(high >= found.value * (1 - 1e-3) for high in highs)


def test_a_search_can_be_cancelled() -> None:
    switch = pg.Cancellation()

    def watch(now: pg.Progress) -> None:
        if now.done == 2:
            switch.cancel()

    with pytest.raises(pg.Cancelled) as caught:
        pg.tightest_bound(two_secrets(), "epsilon", cost_at_most=0.3, progress=switch.callback(watch))
    assert caught.value.status is pg.Status.CANCELLED


@pytest.mark.parametrize(
    ("what", "given", "message"),
    [
        ("speed", {"cost_at_most": 1.0}, "quantity is 'speed'"),
        ("epsilon", {}, "give cost_at_most"),
        ("distortion", {"epsilon": 1.0}, "give cost_at_most"),
        ("epsilon", {"cost_at_most": 0.3, "epsilon": 1.0}, "epsilon is the quantity to optimise"),
        ("cost", {"cost_at_most": 0.3, "epsilon": 1.0}, "cost_at_most is the quantity to optimise"),
        ("cost", {}, "no guarantee is requested"),
        ("epsilon", {"cost_at_most": -1.0}, "cost_at_most is -1.0"),
        ("epsilon", {"cost_at_most": float("nan")}, "cost_at_most is nan"),
        ("epsilon", {"cost_at_most": 0.3, "precision": 0.0}, "precision is 0.0"),
        ("epsilon", {"cost_at_most": 0.3, "distortion": -2.0}, "distortion is -2.0"),
    ],
)
def test_wrong_questions(what: str, given: dict[str, float], message: str) -> None:
    with pytest.raises(pg.InvalidProblem, match=message):
        pg.tightest_bound(two_secrets(), what, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("most", [1e-10, 1e-12])
def test_a_cost_that_a_large_epsilon_reaches_is_not_called_impossible(most: float) -> None:
    """The search ended up to a factor of three below the largest ε that weights can tell from ∞."""
    problem = pg.Problem(pg.Prior.uniform(pg.Numbers(range(4))))
    assert pg.design(problem, epsilon=40.0).certificate.cost < most
    found = pg.tightest_bound(problem, "epsilon", cost_at_most=most)
    assert found.mechanism.certificate.cost <= most
    assert found.value < 40
