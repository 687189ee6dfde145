"""The solver boundary: a solver from elsewhere plugs in, fallbacks are declared, and outcomes are an enum."""

from dataclasses import dataclass

import numpy as np
import pytest

import privacygames as pg
from privacygames.certificates import DualSolution, RatioDuals
from support import two_secrets


@dataclass(frozen=True)
class Strangers:
    """A solver as somebody else would write it: it knows the answer for two secrets by heart."""

    fallbacks: tuple[pg.Solver, ...] = ()
    off_by: float = 0.0

    def solve(self, problem: pg.Problem, bounds: pg.Bounds, *, options: pg.SolveOptions) -> pg.Solution:
        if problem.shape != (2, 2) or bounds.epsilon is None or bounds.distortion:
            raise pg.InvalidProblem("this solver takes two secrets and a plain epsilon")
        assert options.tolerance > 0
        gamma = float(np.exp(bounds.epsilon * problem.distinguishability[0, 1]))
        truth = gamma / (1 + gamma)
        table = np.array([[truth, 1 - truth], [1 - truth, truth]]) + self.off_by * np.array([[1, -1], [-1, 1]])
        share = 0.5 / (1 + gamma)  # the optimum's dual, by hand: each ratio binds once
        which = np.array([0, 1], dtype=np.int32)
        ratios = RatioDuals(which, which, which[::-1].copy(), np.full(2, share))
        dual_solution = DualSolution(ratios=ratios, output_rows=np.arange(2))
        return pg.Solution(table, dual_solution, pg.Status.OPTIMAL, "by heart")


def test_a_strangers_solver_plugs_in() -> None:
    mechanism = pg.design(two_secrets(), epsilon=1.0, solver=Strangers())
    certificate = mechanism.certificate
    assert certificate.provenance.solver == "by heart"
    assert certificate.cost == pytest.approx(1 / (1 + np.e), rel=1e-9)
    assert certificate.gap == pytest.approx(0.0, abs=1e-9)


def test_what_a_strangers_solver_gets_wrong_is_repaired_or_refused() -> None:
    slightly = pg.design(two_secrets(), epsilon=1.0, solver=Strangers(off_by=1e-9)).certificate
    assert slightly.verification.largest_ratio <= 1
    with pytest.raises(pg.SolveFailed, match="the gap to the best possible is") as caught:
        pg.design(two_secrets(), epsilon=1.0, solver=Strangers(off_by=-0.1))
    assert caught.value.status is pg.Status.NUMERICAL


def test_declared_fallbacks_are_tried_in_order() -> None:
    found = pg.design(two_secrets(), epsilon=1.0, solver=Strangers((pg.Highs(),), off_by=-0.1)).certificate
    assert "HiGHS" in found.provenance.solver
    with pytest.raises(pg.InvalidProblem, match="takes two secrets"):
        pg.design(two_secrets(), distortion=0.1, solver=Strangers((pg.Highs(),)))


def test_the_fallbacks_of_our_own() -> None:
    assert pg.Highs("ipm").fallbacks == (pg.Highs("simplex"),)
    assert pg.Interior().fallbacks == (pg.Highs("ipm"), pg.Highs("simplex"))


@pytest.mark.parametrize("given", ["simplex", None, object(), pg.Highs])
def test_what_is_no_solver_is_refused(given: object) -> None:
    with pytest.raises((pg.InvalidProblem, TypeError)):
        pg.design(two_secrets(), epsilon=1.0, solver=given)  # type: ignore[call-overload]


def test_every_error_has_a_status_and_one_form() -> None:
    errors = [
        pg.InvalidProblem("a"),
        pg.UnknownLabel("b"),
        pg.Infeasible("c", limit=2.0),
        pg.SolveFailed("d", status=pg.Status.TIME_LIMIT),
        pg.Cancelled("e"),
        pg.GuaranteeViolated("f"),
        pg.InvalidFile("g"),
        pg.TooLarge("h"),
    ]
    for error in errors:
        form = error.to_dict()
        assert form["kind"] == type(error).__name__
        assert form["status"] == error.status.name
        assert form["message"] == str(error)
        assert error.status.advice
    assert errors[2].to_dict()["limit"] == 2.0
    assert errors[3].status is pg.Status.TIME_LIMIT


@pytest.mark.parametrize("solver", [pg.Highs(), pg.Interior()], ids=repr)
def test_a_design_can_be_cancelled(solver: pg.Solver) -> None:
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(8, 8)), cost="euclidean")
    switch = pg.Cancellation()
    seen: list[pg.Progress] = []

    def watch(now: pg.Progress) -> None:
        seen.append(now)
        switch.cancel()

    with pytest.raises(pg.Cancelled, match="was cancelled"):
        pg.design(problem, epsilon=1.0, solver=solver, progress=switch.callback(watch))
    assert switch.cancelled
    assert len(seen) == 1
