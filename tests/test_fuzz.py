"""The fuzzer's reference is right where the answer is known, finds planted faults, and finds none in some problems."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import privacygames as pg
from fuzz.case import Case
from fuzz.exact_check import measure
from fuzz.exact_program import exact_program, exponents
from fuzz.generator import generate
from fuzz.judge import WRONG, judge
from fuzz.reference import Reference
from fuzz.run import run
from fuzz.shrinking import smaller

SEEDS = range(100, 159)
"""Fixed problems; `make fuzz` runs thousands."""


def binary(**bounds: float) -> Case:
    """Two equally likely secrets, answered with themselves: Hamming cost and distance."""
    wrong = 1.0 - np.eye(2)
    return Case(1, (), np.array([0.5, 0.5]), wrong, wrong, wrong, bounds=bounds)


def test_no_result_is_wrong() -> None:
    """In processes of their own, which are ended if one hangs; always the same seeds: `make fuzz` draws new ones."""
    wrong = [each for each in run(SEEDS, processes=2) if each.outcome.name in (*WRONG, "raw error")]
    told = [f"make fuzz SEED={each.seed} COUNT=1: {each.outcome.name}: {each.outcome.detail}" for each in wrong]
    assert not wrong, "\n".join(told)


def test_reference_knows_randomised_response() -> None:
    best = Reference(binary(epsilon=1.0)).optimum
    assert best is not None
    assert best.converged
    assert float(best.value) == pytest.approx(1 / (1 + np.e), rel=1e-12)
    assert best.lower <= best.value


def test_reference_knows_the_game_by_hand() -> None:
    best = Reference(binary(distortion=0.3)).optimum
    assert best is not None
    assert abs(best.value - Fraction(0.3)) < Fraction(1, 10**15)  # every unit of error costs one of cost


def test_reference_resolves_a_sentinel_cost() -> None:
    """The optimum does not depend on what a forbidden output costs, and is as accurate with 10¹² as with 10²."""
    found = []
    for sentinel in (1e2, 1e12):
        cost = np.array([[0.0, 1.0], [1.0, 0.0], [sentinel, 0.5]])
        best = Reference(replace(binary(distortion=0.2), cost=cost)).optimum
        assert best is not None
        assert best.converged
        found.append(float(best.value))
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_reference_proves_that_a_limit_cannot_be_kept() -> None:
    assert Reference(binary(epsilon=1.0, cost_at_most=0.26)).possible == "no"
    assert Reference(binary(epsilon=1.0, cost_at_most=0.28)).possible == "yes"
    assert Reference(binary(distortion=0.5001)).possible == "no"
    assert Reference(binary(distortion=0.5)).possible == "borderline"


def test_any_dual_values_prove_a_true_bound() -> None:
    case = binary(epsilon=1.0)
    program = exact_program(case, "cost")
    random = np.random.default_rng(3)
    for _ in range(20):
        duals = np.array([int(each * 2.0**40) << 470 for each in random.normal(size=len(program.right))], dtype=object)
        assert program.lower_bound(duals) <= Fraction(1 / (1 + np.e)) + Fraction(1, 10**15)


def test_exact_check_sees_the_last_unit_of_a_ratio() -> None:
    case = binary(epsilon=1.0)
    mechanism = pg.design(case.problem(), epsilon=1.0)
    weights = mechanism.weights.astype(object)
    assert not measure(case, weights, mechanism.bits).broken
    assert len(exponents(case)) == 2
    most = int(weights.max())
    broken = np.array([[most + 2**40, 2**62 - most - 2**40], [2**62 - most, most]], dtype=object)
    assert measure(case, broken, mechanism.bits).broken


def test_judge_finds_a_planted_suboptimal_mechanism(monkeypatch: pytest.MonkeyPatch) -> None:
    case = binary(epsilon=1.0)
    problem = case.problem()
    best = pg.design(problem, epsilon=1.0)
    worse = pg.design(problem, epsilon=0.9)  # valid for ε = 1, too, and 4 % dearer
    monkeypatch.setattr(pg, "design", lambda *_, **__: worse)
    assert judge(case, time_limit=60).name in WRONG
    monkeypatch.setattr(pg, "design", lambda *_, **__: best)
    assert judge(case, time_limit=60).name == "agree"


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (ZeroDivisionError(), "raw error"),
        (pg.Infeasible("none", limit=0.5), "wrong infeasible"),
        (pg.SolveFailed("no"), "solve failed"),
    ],
)
def test_judge_names_what_goes_wrong(monkeypatch: pytest.MonkeyPatch, error: Exception, name: str) -> None:
    def design(*_: object, **__: object) -> pg.Mechanism:
        raise error

    monkeypatch.setattr(pg, "design", design)
    assert judge(binary(epsilon=1.0), time_limit=60).name == name


def test_judge_finds_a_limit_named_wrongly(monkeypatch: pytest.MonkeyPatch) -> None:
    def design(*_: object, **__: object) -> pg.Mechanism:
        raise pg.Infeasible("none", limit=0.3, bound="cost_at_most")

    monkeypatch.setattr(pg, "design", design)
    assert judge(binary(epsilon=1.0, cost_at_most=0.2), time_limit=60).name == "wrong limit"


def test_a_seed_is_always_the_same_case() -> None:
    for seed in range(20):
        first, second = generate(seed), generate(seed)
        assert first.script() == second.script()


def test_simpler_cases_are_proper_problems() -> None:
    for other in smaller(generate(7)):
        other.problem()
