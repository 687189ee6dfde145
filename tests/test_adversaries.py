"""Several adversaries at once: against a program written out here, by hand, and by what must always hold."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import privacygames as pg
from privacygames.arrays import FloatArray

SOLVERS: dict[str, pg.Solver] = {"highs": pg.Highs(), "blocks": pg.Interior()}


def written_out(problem: pg.Problem, bounds: pg.Bounds) -> float | None:
    """The optimum, by SciPy on the program as docs/theory/adversaries.md states it; None where nothing is feasible.

    Row by row, entry by entry, from the definitions: nothing of the library but the numbers.
    """
    (n, m), prior, cost = problem.shape, problem.prior.probabilities, problem.cost
    crowd = [(each.adversary, each.distortion) for each in bounds.against]
    tables = [
        (
            (prior if who.prior is None else who.prior.probabilities),
            (problem.distance if who.errors is None else who.errors),
        )
        for who, _ in crowd
    ]
    p = np.arange(n * m).reshape(n, m)
    x = n * m + np.arange(len(crowd) * m).reshape(len(crowd), m)
    y = n * m + len(crowd) * m
    size = y + 1
    below: list[FloatArray] = []
    limits: list[float] = []

    def at_most(terms: list[tuple[int, float]], limit: float) -> None:
        row = np.zeros(size)
        for place, value in terms:
            row[place] += value
        below.append(row)
        limits.append(limit)

    for k, (belief, errors) in enumerate(tables):
        for o in range(m):
            for g in range(len(errors)):
                at_most([(x[k, o], 1.0), *((p[s, o], -belief[s] * errors[g, s]) for s in range(n))], 0.0)
        least = crowd[k][1]
        if least is not None:
            at_most([(x[k, o], -1.0) for o in range(m)], -least)
    if bounds.epsilon is not None:
        for s in range(n):
            for z in range(n):
                apart = problem.distinguishability[s, z]
                if s != z and (bounds.within is None or apart <= bounds.within):
                    factor = np.exp(bounds.epsilon * (apart if bounds.within is None else 1.0))
                    for o in range(m):
                        at_most([(p[s, o], 1.0), (p[z, o], -factor)], 0.0)
    average = [(p[s, o], prior[s] * cost[o, s]) for s in range(n) for o in range(m)]
    own = [[(p[s, o], cost[o, s]) for o in range(m)] for s in range(n)]
    if bounds.worst_cost_at_most is not None:
        for terms in own:
            at_most(terms, bounds.worst_cost_at_most)
    objective = np.zeros(size)
    if bounds.cost_at_most is not None:
        for terms in own if bounds.worst_case else [average]:
            at_most(terms, bounds.cost_at_most)
        objective[x[0]] = -1.0
    elif bounds.worst_case:
        for terms in own:
            at_most([*terms, (y, -1.0)], 0.0)
        objective[y] = 1.0
    else:
        for place, value in average:
            objective[place] += value
    sums = np.zeros((n, size))
    for s in range(n):
        sums[s, p[s]] = 1.0
    box = [(0, None)] * (n * m) + [(None, None)] * (len(crowd) * m + 1)
    found = linprog(objective, np.array(below), limits, sums, np.ones(n), box, method="highs")
    if found.status == 2:
        return None
    assert found.status == 0
    return float(abs(found.fun))


def belief(generator: np.random.Generator, size: int) -> FloatArray:
    weights = generator.dirichlet(np.full(size, 0.7))
    weights[generator.random(size) < 0.2] = 0.0
    return weights / weights.sum() if weights.sum() else np.full(size, 1.0 / size)


@st.composite
def cases(draw: st.DrawFn) -> tuple[pg.Problem, dict[str, Any]]:
    """A small problem with one to four adversaries, and any kind of bounds on them."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, m, count = draw(st.integers(2, 5)), draw(st.integers(2, 5)), draw(st.integers(1, 4))
    places = generator.random((n, 2))
    apart = np.linalg.norm(places[:, None] - places, axis=2)
    space = pg.Categories([f"s{i}" for i in range(n)])
    problem = pg.Problem(
        pg.Prior(space, belief(generator, n)),
        cost=generator.random((m, n)),
        distance=apart,
        observables=pg.Categories([f"o{i}" for i in range(m)]),
    )
    crowd = []
    for k in range(count):
        prior = pg.Prior(space, belief(generator, n)) if draw(st.booleans()) else None
        guesses = draw(st.integers(1, 2 * n))
        errors = generator.random((guesses, n)) * generator.choice([0.1, 1, 10]) if draw(st.booleans()) else None
        crowd.append(pg.Adversary(f"adversary {k}", prior=prior, errors=errors))
    shares = [draw(st.sampled_from([0.0, 0.3, 0.8, 0.99, 1.0])) for _ in crowd]
    asked: dict[str, Any] = {}
    against: dict[pg.Adversary, float | None] = {
        who: share * pg.max_distortion(problem, who) for who, share in zip(crowd, shares, strict=True)
    }
    if draw(st.booleans()):
        asked["epsilon"] = draw(st.sampled_from([0.3, 1.0, 4.0]))
        if draw(st.booleans()):
            asked["within"] = draw(st.sampled_from([0.4, 2.0]))
    kind = draw(st.sampled_from(["average", "worst", "limited", "reverse", "reverse worst", "reverse both"]))
    dearest = float(problem.cost.max())
    if kind in ("worst", "reverse worst"):
        asked["worst_case"] = True
    if kind in ("limited", "reverse both"):
        asked["worst_cost_at_most"] = draw(st.floats(0.2, 0.9)) * dearest
    if kind.startswith("reverse"):
        asked["cost_at_most"] = draw(st.floats(0.2, 0.8)) * dearest
        against[crowd[0]] = None
    return problem, asked | {"distortion": against}


@pytest.mark.parametrize("engine", SOLVERS)
@settings(max_examples=400, deadline=None)
@given(case=cases())
def test_every_engine_agrees_with_the_program_written_out(engine: str, case: tuple[pg.Problem, dict[str, Any]]) -> None:
    problem, asked = case
    bounds = pg.Bounds.asked(**asked)
    assume(engine != "blocks" or pg.Interior().can_solve(problem, bounds))
    best = written_out(problem, bounds)
    try:
        found = pg.design(problem, **asked, solver=SOLVERS[engine])
    except pg.Infeasible:
        loose = written_out(problem, pg.Bounds.asked(**(asked | _looser(bounds))))
        assert best is None or loose is None or abs(best - loose) > 1e-9  # nothing, or only just
        return
    assert best is not None
    certificate = found.certificate
    value = certificate.achieved if bounds.reverse else certificate.cost
    scale = max(best, 1e-6 * float(bounds.facing(problem)[0].errors.max() if bounds.reverse else problem.cost.max()))
    assert value == pytest.approx(best, abs=3e-6 * scale)
    assert certificate.bound == pytest.approx(best, abs=3e-6 * scale)
    for promise, realised in zip(bounds.against, certificate.findings.against, strict=True):
        assert realised >= (promise.distortion or 0.0)


def _looser(bounds: pg.Bounds) -> dict[str, float]:
    names = ("cost_at_most", "worst_cost_at_most")
    return {name: getattr(bounds, name) * (1 + 1e-7) for name in names if getattr(bounds, name) is not None}
