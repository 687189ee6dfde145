"""Ledgers that release 0.2 wrote (the folder ledgers-0.2): opened where that is safe, else refused with the reason."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privacygames as pg
from privacygames.mechanism import certify
from privacygames.releases import Budget, Ledger, Releases
from sharing import PROBLEM, STREET, WALK

OLDER = Path(__file__).parent / "ledgers-0.2"
WEIGHTS = np.array([[2, 1, 1], [1, 2, 1], [1, 1, 2]], np.int64) << 60
FIXED = certify(PROBLEM, pg.Bounds(epsilon=1.0), WEIGHTS, origin="given")
BUDGETS = [Budget(100.0), Budget(50.0, every=3600.0, distinguishability="hamming")]


@pytest.fixture
def older(tmp_path: Path) -> Path:
    return Path(shutil.copytree(OLDER, tmp_path / "older"))


def test_an_older_ledger_goes_on(older: Path) -> None:
    for opened in range(2):
        with Ledger(older / "fixed.db") as ledger:
            releases = Releases(PROBLEM, WALK, mechanism=FIXED, budget=BUDGETS, ledger=ledger)
            made = releases.release("cell-0", at=10.0 + opened)
            assert made.number == 4 + opened
            assert ledger.verify().releases == 4 + opened
            assert made.balances[0].name == "total"


@pytest.mark.parametrize("problem", [PROBLEM.with_prior(pg.Prior.uniform(STREET)), pg.Problem(PROBLEM.prior)])
def test_an_older_ledger_of_another_case_is_refused(older: Path, problem: pg.Problem) -> None:
    budgets = BUDGETS if problem.distinguishability is PROBLEM.distinguishability else [*BUDGETS[:1], Budget(3.0, 60.0)]
    fixed = certify(problem, pg.Bounds(epsilon=1.0), WEIGHTS, origin="given")
    with pytest.raises(pg.InvalidProblem, match=r"the prior or the mobility differ|was created with different budgets"):
        Releases(problem, WALK, mechanism=fixed, budget=budgets, ledger=older / "fixed.db")


def test_memoised_answers_of_an_older_release_are_refused(older: Path) -> None:
    """They were charged once for all places together."""
    with pytest.raises(pg.InvalidFile, match="charged once for all places"):
        Ledger(older / "memoised.db")


def test_an_older_ledger_of_sets_is_refused_with_the_reason(older: Path) -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Sets([{"a", "b"}, {"c"}])))
    fixed = certify(problem, pg.Bounds(epsilon=2.0), np.array([[3, 1], [1, 3]], np.int64) << 60, origin="given")
    settings: dict[str, Any] = {"mechanism": fixed, "budget": 5.0, "ledger": older / "sets.db"}
    with pytest.raises(pg.InvalidProblem, match=r"identified sets inconsistently.*same-unit"):
        Releases(problem, pg.Mobility.still(problem.space), **settings)
    again = Releases(problem, pg.Mobility.still(problem.space), when_changed="same-unit", **settings)
    assert again.ledger.verify().spent["total"] != "0"  # what was charged is kept
