"""The bound is summed up some rows at a time: how many, and in which order multipliers come, changes nothing."""

from dataclasses import replace

import numpy as np
import pytest

import privacygames as pg
from privacygames.certificates import optimality


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
