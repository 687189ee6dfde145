"""The verifier: sides with exact arithmetic, proves bounds from any dual_solution, never looks away."""

from dataclasses import replace
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from exact import exp_enclosure, holds_exactly
from privacygames.certificates.dual_solution import AdversaryDuals, DualSolution, RatioDuals
from privacygames.certificates.repair import to_weights
from privacygames.certificates.statement import Statement
from privacygames.certificates.verifier import check
from support import Case, cases, draft_statement, optimum_by_hand, problem_of, two_secrets


def statement_of(mechanism: pg.Mechanism) -> Statement:
    return mechanism.statement


@given(cases(), st.integers(0, 2**32), st.sampled_from([1, 2**10, 2**40, 2**58]))
@settings(max_examples=200)
def test_what_is_accepted_is_true(case: Case, seed: int, size: int) -> None:
    """Weights pushed about at random: whatever the verifier lets pass holds in exact arithmetic."""
    statement = statement_of(pg.design(case.problem, **case.bounds))
    generator = np.random.default_rng(seed)
    n, m = statement.weights.shape
    weights = statement.weights.copy()
    for _ in range(3):
        row, to, back = generator.integers(n), generator.integers(m), generator.integers(m)
        moved = min(int(generator.integers(0, size + 1)), int(weights[row, back]))
        weights[row, back] -= moved
        weights[row, to] += moved
    pushed = replace(statement, weights=weights)
    try:
        check(pushed)
    except pg.GuaranteeViolated:
        return
    assert holds_exactly(pushed)


@st.composite
def any_dual_solution(draw: st.DrawFn, case: Case) -> DualSolution:
    """Dual values drawn at random."""
    n, m = case.problem.shape
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    pairs = [(s, t) for s in range(n) for t in range(n) if s != t]
    chosen = generator.integers(0, max(len(pairs), 1), 6 if pairs else 0)
    size = draw(st.sampled_from([0.0, 1e-3, 1.0, 100.0]))
    ratios = RatioDuals(
        generator.integers(0, m, len(chosen)).astype(np.int32),
        np.array([pairs[k][0] for k in chosen], dtype=np.int32),
        np.array([pairs[k][1] for k in chosen], dtype=np.int32),
        size * generator.random(len(chosen)),
    )
    weights = generator.dirichlet(np.ones(n)) if case.bounds["worst_case"] else None
    price, other = size * generator.random(2)
    own = AdversaryDuals(other, generator.dirichlet(np.ones(n), m))
    adversaries = (own,) if pg.Bounds(**case.bounds).distortion else ()
    return DualSolution(
        ratios=ratios, output_rows=np.arange(m), adversaries=adversaries, cost_dual=price, secret_weights=weights
    )


@given(st.data(), cases())
@settings(max_examples=200)
def test_no_dual_solution_proves_too_much(data: st.DataObject, case: Case) -> None:
    """Weak duality: whatever the dual values, the bound is a bound."""
    statement = statement_of(pg.design(case.problem, **case.bounds))
    evidence = data.draw(any_dual_solution(case))
    proved = check(replace(statement, dual_solution=evidence)).optimum
    assert proved is not None
    best = optimum_by_hand(case.problem, **case.bounds)
    slack = 1e-8 * max(1.0, abs(best))  # what SciPy's own answer may be off by
    if statement.bounds.maximises_distortion:
        assert proved >= best - slack
    else:
        assert proved <= best + slack


def broken(statement: Statement, **changes: Any) -> None:
    with pytest.raises(pg.GuaranteeViolated):
        check(replace(statement, **changes))


def test_every_kind_of_broken_promise_is_noticed() -> None:
    statement = statement_of(pg.design(two_secrets(0.6), epsilon=1.0, distortion=0.3))
    check(statement)
    identity = np.array([[2**62, 0], [0, 2**62]])
    broken(statement, weights=identity)
    broken(statement, weights=identity, bounds=pg.Bounds(distortion=0.3))
    broken(statement, weights=identity, bounds=pg.Bounds(epsilon=50.0))
    broken(statement, weights=statement.weights + np.array([[1, 0], [0, 0]]))
    broken(statement, weights=np.array([[2**62 + 5, -5], [2**61, 2**61]]))
    broken(statement, weights=np.zeros((2, 0), dtype=np.int64))
    broken(statement, bits=40)
    broken(statement, bits=61)
    broken(statement, bounds=pg.Bounds(epsilon=0.999, distortion=0.3))
    broken(statement, bounds=pg.Bounds(epsilon=1.0, distortion=0.3001))
    broken(statement, bounds=pg.Bounds(epsilon=1.0, cost_at_most=0.2))
    broken(statement, bounds=pg.Bounds(epsilon=1.0, cost_at_most=0.2, worst_case=True))


def test_bad_evidence_is_refused() -> None:
    statement = statement_of(pg.design(two_secrets(0.6), epsilon=1.0, distortion=0.3))
    good = statement.dual_solution
    assert good is not None
    (own,) = good.adversaries
    attack = own.attack

    def changed(**values: Any) -> DualSolution:
        return replace(good, adversaries=(replace(own, **values),))

    one = np.ones(1, dtype=np.int32)
    negative = RatioDuals(0 * one, 0 * one, one, np.array([-1.0]))
    broken(statement, dual_solution=replace(good, ratios=negative))
    broken(statement, dual_solution=changed(attack=-attack))
    broken(statement, dual_solution=changed(attack=np.zeros_like(attack)))
    broken(statement, dual_solution=changed(attack=np.full_like(attack, np.nan)))
    broken(statement, dual_solution=changed(dual=-1.0))
    broken(statement, dual_solution=changed(dual=float("nan")))
    worst = replace(statement, bounds=pg.Bounds(epsilon=1.0, worst_case=True))
    broken(worst, dual_solution=replace(good, secret_weights=None))


def test_repeated_dual_values_prove_nothing_more() -> None:
    """A long list of the same ratio, summed carelessly, once seemed to prove any bound at all."""
    count, base = 1000, 2.0**54
    ratios = RatioDuals(
        np.zeros(count + 2, dtype=np.int32),
        np.array([1, 2] + [0] * count, dtype=np.int32),
        np.array([2, 1] + [1] * count, dtype=np.int32),
        np.array([base, base] + [1.0] * count),
    )
    space = pg.Categories("abc")
    problem = pg.Problem(
        pg.Prior(space, [0.25, 0.25, 0.5]), np.ones((1, 3)), 1 - np.eye(3), np.zeros((3, 3)), pg.Categories("x")
    )
    statement = statement_of(pg.design(problem, epsilon=1.0))
    evidence = DualSolution(ratios=ratios, output_rows=np.arange(1))
    proved = check(replace(statement, dual_solution=evidence)).optimum
    assert proved is not None
    assert proved <= 1.0


def test_numbers_that_could_overflow_or_underflow_are_refused() -> None:
    statement = statement_of(pg.design(two_secrets(0.5), distortion=0.3))
    for name, at, value in (
        ("distance", (0, 1), 1e300),
        ("distance", (0, 1), 5e-324),
        ("cost", (0, 1), np.nan),
        ("cost", (0, 1), 1e-200),
        ("prior", (0,), 0.6),
        ("prior", (0,), np.inf),
        ("distinguishability", (0, 1), -1.0),
        ("distinguishability", (0, 0), 1.0),
    ):
        changed = getattr(statement, name).copy()
        changed[at] = value
        broken(statement, **{name: changed})
    broken(statement, distance=np.zeros((1, 2)))
    broken(statement, weights=statement.weights.astype(np.int32))
    broken(statement, weights=statement.weights[0])


def test_a_limit_met_exactly_is_met() -> None:
    """Hamming costs are at most 1, and a promise of "at most 1" holds although rounding up passes 1."""
    mechanism = pg.design(two_secrets(0.6), cost_at_most=1.0, worst_case=True)
    assert mechanism.certificate.cost <= 1.0
    constant = replace(statement_of(mechanism), weights=np.array([[2**62, 0], [2**62, 0]]))
    assert check(constant).worst_cost == 1.0


def test_columns_may_borrow_dual_values() -> None:
    """An observable that costs more than another everywhere can use the other's dual values."""
    cost = np.array([[0, 1], [1, 0], [2, 2]])
    space, answers = pg.Categories("ab"), pg.Categories("xyz")
    problem = pg.Problem(pg.Prior.uniform(space), cost, observables=answers)
    statement = statement_of(pg.design(problem, epsilon=1.0))
    evidence = statement.dual_solution
    assert evidence is not None
    kept = evidence.ratios.observable < 2
    fields = {name: getattr(evidence.ratios, name)[kept] for name in ("observable", "secret", "other", "value")}
    lent = replace(evidence, ratios=RatioDuals(**fields), output_rows=np.array([0, 1, 0]))
    found = check(replace(statement, dual_solution=lent)).optimum
    assert found == pytest.approx(1 / (1 + np.e), rel=1e-9)


def test_ratios_at_their_bounds_are_decided_exactly() -> None:
    """Weights a relative 3·10⁻¹⁵ below and above their bound: rough numbers cannot tell, sharper ones can."""
    problem = two_secrets()
    gamma = exp_enclosure(Fraction(1))[0]
    theirs = 2**60
    most = int(gamma * theirs)
    total = 2**62
    for mine, fine in ((most - 2**13, True), (most + 2**13, False)):
        weights = np.array([[mine, total - mine], [theirs, total - theirs]])
        broken_or_not = replace(draft_statement(problem, pg.Bounds(epsilon=1.0)), weights=weights)
        if fine:
            assert check(broken_or_not).largest_ratio <= 1
        else:
            broken(broken_or_not)


def test_equal_secrets_need_equal_rows_to_the_last_unit() -> None:
    problem = problem_of([0.5, 0.5], 1 - np.eye(2), 1 - np.eye(2), np.zeros((2, 2)))
    row = [2**61, 2**61]
    same = replace(draft_statement(problem, pg.Bounds(epsilon=1.0)), weights=np.array([row, row]))
    assert check(same).largest_ratio == 1.0
    broken(replace(same, weights=np.array([row, [2**61 + 1, 2**61 - 1]])))


@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 2**32))
def test_ratios_are_the_same_however_many_are_computed_together(secrets: int, outputs: int, seed: int) -> None:
    """Weights of 0 and outputs that are never given, too."""
    from privacygames.certificates import verifier

    generator = np.random.default_rng(seed)
    table = generator.dirichlet(np.ones(outputs), secrets) * (generator.random(outputs) < 0.7)
    table[:, 0] += 1 - table.sum(axis=1)
    apart = generator.choice([1.0, 60.0], (secrets, secrets)) * (1 - np.eye(secrets))
    problem = problem_of(np.full(secrets, 1 / secrets), np.ones((outputs, secrets)), 1 - np.eye(secrets), apart)
    statement = replace(draft_statement(problem, pg.Bounds(epsilon=50.0)), weights=to_weights(table, 62))
    verdicts = []
    for together in (1, 2 * secrets * outputs, verifier.ENTRIES_TOGETHER):
        with mock.patch.object(verifier, "ENTRIES_TOGETHER", together):
            try:
                verdicts.append(check(statement).largest_ratio)
            except pg.GuaranteeViolated:
                verdicts.append(np.inf)
    assert verdicts[0] == verdicts[1] == verdicts[2]


def test_a_file_cannot_keep_the_verifier_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """All ratios at their bounds, all distances different: refused rather than worked on for hours."""
    from privacygames.certificates import verifier

    generator = np.random.default_rng(0)
    table = generator.dirichlet(np.ones(6), 30)
    weights = to_weights(table, 62)
    logs = np.log(weights.astype(float))
    apart = np.maximum((logs[:, None] - logs).max(axis=2), 1e-12)
    np.fill_diagonal(apart, 0.0)
    problem = problem_of(np.full(30, 1 / 30), np.ones((6, 30)), 1 - np.eye(30), apart)
    crafted = replace(draft_statement(problem, pg.Bounds(epsilon=1.0 - 1e-13)), weights=weights)
    monkeypatch.setattr(verifier, "MAX_EXACT_RATIOS", 100)
    with pytest.raises(pg.GuaranteeViolated, match="only exact arithmetic can tell"):
        check(crafted)
