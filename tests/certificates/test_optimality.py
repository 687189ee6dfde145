"""The bound that dual values prove: however its sums are computed, it is one, and hardly depends on how."""

from dataclasses import replace
from fractions import Fraction
from math import inf
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privacygames as pg
from privacygames.certificates import DualSolution, RatioDuals, optimality
from support import draft_statement, problem_of


@pytest.mark.parametrize("at_once", [1, 7, 100])
def test_rows_at_a_time_change_nothing(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(4, 3)), cost="euclidean")
    found = pg.design(problem, epsilon=0.8, solver=pg.Interior(threads=1))
    evidence, whole = found.dual_solution, found.certificate.bound
    assert evidence is not None
    assert whole is not None
    assert len(evidence.ratios) > 100
    monkeypatch.setattr(optimality, "TERMS_PER_TASK", at_once)
    shuffled = evidence.ratios.take(np.random.default_rng(at_once).permutation(len(evidence.ratios)))
    for ratios in (evidence.ratios, shuffled):
        again = pg.mechanism.certify(
            problem, found.certificate.bounds, found.weights, replace(evidence, ratios=ratios), origin="the same"
        )
        assert again.certificate.bound == pytest.approx(whole, rel=1e-12)


def exact_bound(cost: np.ndarray, prior: np.ndarray, ratios: RatioDuals, above: np.ndarray) -> Fraction:
    """Σ_s min_o of the residuals, in exact fractions."""
    residuals = [[Fraction(float(p)) * Fraction(float(c)) for p, c in zip(prior, row, strict=True)] for row in cost]
    for o, s, t, z in zip(*(values.tolist() for values in vars(ratios).values()), strict=True):
        residuals[o][s] += Fraction(z)
        residuals[o][t] -= Fraction(z) * Fraction(float(above[s, t]))
    return sum((min(column) for column in zip(*residuals, strict=True)), Fraction(0))


@given(st.integers(2, 5), st.integers(1, 4), st.sampled_from([1.0, 1e4, 1e9, 1e14]), st.integers(0, 2**32))
@settings(max_examples=300)
def test_rounded_sums_prove_no_more_than_exact_ones(secrets: int, outputs: int, size: float, seed: int) -> None:
    """Dual values of any size, most of which cancel: both ways are safe, and the one chosen is as good as exact."""
    generator = np.random.default_rng(seed)
    prior, cost = generator.dirichlet(np.ones(secrets)), generator.random((outputs, secrets))
    apart = (1e-3 + generator.random((secrets, secrets))) * generator.choice([1.0, 1e-3 / size])
    np.fill_diagonal(apart, 0.0)
    above = np.exp(apart)
    np.fill_diagonal(above, inf)
    # Around a cycle s → t → s what z takes from one residual it gives to the other, but for γ − 1 of it.
    count = int(generator.integers(0, 12))
    o, s = generator.integers(outputs, size=count), generator.integers(secrets, size=count)
    t = (s + 1 + generator.integers(secrets - 1, size=count)) % secrets
    z = generator.random(count) * generator.choice([1.0, size], count)
    both = np.concatenate([s, t]).astype(np.int32), np.concatenate([t, s]).astype(np.int32)
    ratios = RatioDuals(np.tile(o, 2).astype(np.int32), *both, np.tile(z, 2))
    draft = draft_statement(problem_of(prior, cost, 1 - np.eye(secrets), apart), pg.Bounds(epsilon=1.0))
    statement = replace(draft, weights=np.zeros((secrets, outputs), dtype=np.int64))
    duals = DualSolution(ratios=ratios, output_rows=np.arange(outputs))
    true = max(exact_bound(cost, prior, ratios, above), Fraction(0))
    proved = {}
    for name, negligible in (("rounded", inf), ("chosen", optimality.NEGLIGIBLE_ROUNDING), ("exact", -1.0)):
        with mock.patch.object(optimality, "NEGLIGIBLE_ROUNDING", negligible):
            proved[name] = optimality.optimum(statement, duals, above).value
        assert Fraction(proved[name]) <= true
    assert proved["chosen"] >= proved["exact"] * (1 - 2 * optimality.NEGLIGIBLE_ROUNDING)
