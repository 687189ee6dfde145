"""Whatever is passed by mistake, the error is ours and says what is wanted: never one from deep inside."""

# ruff: noqa: PLW0108 - every call has the same shape
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import privacygames as pg
from privacygames_study import replays

ODD: list[Any] = [
    None, 5, -1, 2.5, "x", "", b"x", [], [1], [[1, 2]], np.array(3), np.array([[1, 2], [3, 4]]), np.array(["a"]), {},
    {1: 2}, object(), float("nan"), float("inf"), True, (), set(), range(3), "a\0b",
]  # fmt: skip

GRID = pg.Grid(2, 2)
PRIOR = pg.Prior.uniform(GRID)
PROBLEM = pg.Problem(PRIOR)
MECHANISM = pg.baselines.uniform(PROBLEM)
AGES = pg.Numbers([1, 2, 3])
STILL = pg.Mobility.still(GRID)
RELEASES = pg.Releases(PROBLEM, STILL, mechanism=pg.baselines.exponential(PROBLEM, 1.0))

CALLS: dict[str, Callable[[Any], object]] = {
    "Prior": lambda odd: pg.Prior(GRID, odd),
    "Prior space": lambda odd: pg.Prior(odd, [1]),
    "from_counts": lambda odd: pg.Prior.from_counts(GRID, odd),
    "from_visits": lambda odd: pg.Prior.from_visits(GRID, odd),
    "smoothing": lambda odd: pg.Prior.from_counts(GRID, [1, 2, 3, 4], smoothing=odd),
    "Prior.posterior": lambda odd: PRIOR.posterior(odd),
    "Prior[]": lambda odd: PRIOR[odd],
    "Problem": lambda odd: pg.Problem(odd),
    "cost": lambda odd: pg.Problem(PRIOR, cost=odd),
    "distance": lambda odd: pg.Problem(PRIOR, distance=odd),
    "observables": lambda odd: pg.Problem(PRIOR, observables=odd),
    "with_prior": lambda odd: PROBLEM.with_prior(odd),
    "Grid": lambda odd: pg.Grid(odd, 2),
    "Grid width": lambda odd: pg.Grid(2, 2, odd, 1.0),
    "Grid.over": lambda odd: pg.Grid.over(odd, columns=2, rows=2),
    "Grid.cells": lambda odd: GRID.cells(odd),
    "Grid.cell": lambda odd: GRID.cell(odd),
    "Grid.blocks": lambda odd: GRID.blocks(odd, 1),
    "Numbers": lambda odd: pg.Numbers(odd),
    "Numbers.intervals": lambda odd: AGES.intervals(odd),
    "Categories": lambda odd: pg.Categories(odd),
    "Sets": lambda odd: pg.Sets(odd),
    "Graph": lambda odd: pg.Graph(odd),
    "from_distances": lambda odd: pg.Space.from_distances("ab", odd),
    "Subsets": lambda odd: pg.Subsets(GRID, odd),
    "Subsets space": lambda odd: pg.Subsets(odd, [[0]]),
    "Subsets.all": lambda odd: pg.Subsets.all(GRID, at_most=odd),
    "index": lambda odd: GRID.index(odd),
    "indices": lambda odd: GRID.indices(odd),
    "sample": lambda odd: MECHANISM.sample(odd),
    "Mechanism.posterior": lambda odd: MECHANISM.posterior(odd),
    "coordinates": lambda odd: MECHANISM.coordinates(odd),
    "locate": lambda odd: MECHANISM.locate(odd, 1.0),
    "from_probabilities problem": lambda odd: pg.Mechanism.from_probabilities(odd, np.eye(4)),
    "from_weights problem": lambda odd: pg.Mechanism.from_weights(odd, np.eye(4, dtype=np.int64) << 62),
    "from_probabilities": lambda odd: pg.Mechanism.from_probabilities(PROBLEM, odd),
    "evaluate mechanism": lambda odd: pg.evaluate(odd, PROBLEM),
    "evaluate problem": lambda odd: pg.evaluate(MECHANISM, odd),
    "adversary_prior": lambda odd: pg.evaluate(MECHANISM, PROBLEM, adversary_prior=odd),
    "evaluate within": lambda odd: pg.evaluate(MECHANISM, PROBLEM, within=odd),
    "design problem": lambda odd: pg.design(odd, epsilon=1.0),
    "epsilon": lambda odd: pg.design(PROBLEM, epsilon=odd),
    "distortion": lambda odd: pg.design(PROBLEM, distortion=odd),
    "time_limit": lambda odd: pg.design(PROBLEM, epsilon=1.0, time_limit=odd),
    "solver": lambda odd: pg.design(PROBLEM, epsilon=1.0, solver=odd),
    "attacks.from_matrix": lambda odd: pg.attacks.from_matrix(MECHANISM, PROBLEM, odd),
    "attacks.optimal": lambda odd: pg.attacks.optimal(MECHANISM, PROBLEM, prior=odd),
    "attacks mechanism": lambda odd: pg.attacks.bayesian(odd, PROBLEM),
    "calibrated_baselines": lambda odd: pg.calibrated_baselines(PROBLEM, epsilon=1.0, names=odd),
    "compare": lambda odd: pg.compare(PROBLEM, odd),
    "compare one": lambda odd: pg.compare(PROBLEM, {"it": odd}),
    "compare adversaries": lambda odd: pg.compare(PROBLEM, {"it": MECHANISM}, adversaries=odd),
    "find": lambda odd: pg.tightest_bound(PROBLEM, odd, cost_at_most=0.5),
    "break_ties": lambda odd: pg.break_ties(PROBLEM, odd, epsilon=1.0),
    "planar_laplace": lambda odd: pg.baselines.planar_laplace(PROBLEM, odd),
    "exponential": lambda odd: pg.baselines.exponential(PROBLEM, odd),
    "remap": lambda odd: pg.baselines.remap(odd, PROBLEM),
    "remap problem": lambda odd: pg.baselines.remap(MECHANISM, odd),
    "max_distortion": lambda odd: pg.max_distortion(odd),
    "find problem": lambda odd: pg.tightest_bound(odd, "epsilon", cost_at_most=0.5),
    "break_ties problem": lambda odd: pg.break_ties(odd, "entropy", epsilon=1.0),
    "compare problem": lambda odd: pg.compare(odd, {"it": MECHANISM}),
    "calibrated_baselines problem": lambda odd: pg.calibrated_baselines(odd, epsilon=1.0),
    "trade_off problem": lambda odd: pg.trade_off(odd, epsilons=[1.0]),
    "in_words problem": lambda odd: pg.explain(pg.evaluate(MECHANISM, PROBLEM), odd),
    "uniform problem": lambda odd: pg.baselines.uniform(odd),
    "cheapest problem": lambda odd: pg.baselines.cheapest(odd),
    "constant problem": lambda odd: pg.baselines.constant(odd),
    "identity problem": lambda odd: pg.baselines.identity(odd),
    "geometric problem": lambda odd: pg.baselines.geometric(odd, 1.0),
    "staircase problem": lambda odd: pg.baselines.staircase(odd, 1.0),
    "planar_laplace problem": lambda odd: pg.baselines.planar_laplace(odd, 1.0),
    "exponential problem": lambda odd: pg.baselines.exponential(odd, 1.0),
    "randomised_response problem": lambda odd: pg.baselines.randomised_response(odd, 1.0),
    "prune problem": lambda odd: pg.approximations.prune(odd, epsilon=1.0, radius=1.0),
    "spanner problem": lambda odd: pg.approximations.spanner(odd, epsilon=1.0),
    "sampled problem": lambda odd: pg.approximations.sample_pairs(odd, epsilon=1.0, fraction=0.5),
    "early problem": lambda odd: pg.approximations.early_stopping(odd, epsilon=1.0),
    "Mobility": lambda odd: pg.Mobility(GRID, odd),
    "Mobility space": lambda odd: pg.Mobility(odd, np.eye(4)),
    "Mobility step": lambda odd: pg.Mobility(GRID, np.eye(4), step=odd),
    "Mobility timezone": lambda odd: pg.Mobility(GRID, np.eye(4), timezone=odd),
    "Mobility.still": lambda odd: pg.Mobility.still(odd),
    "Mobility.from_visits": lambda odd: pg.Mobility.from_visits(GRID, odd),
    "Mobility toward": lambda odd: pg.Mobility.from_visits(GRID, ["cell-0", "cell-1"], toward=odd),
    "Mobility smoothing": lambda odd: pg.Mobility.from_visits(GRID, ["cell-0", "cell-1"], smoothing=odd),
    "Mobility.moved": lambda odd: STILL.advance(odd),
    "Mobility.moved steps": lambda odd: STILL.advance(PRIOR, odd),
    "Mobility.slot": lambda odd: STILL.slot(odd),
    "Releases problem": lambda odd: pg.Releases(odd, STILL, epsilon=1.0),
    "Releases mobility": lambda odd: pg.Releases(PROBLEM, odd, epsilon=1.0),
    "Releases epsilon": lambda odd: pg.Releases(PROBLEM, STILL, epsilon=odd),
    "Releases mechanism": lambda odd: pg.Releases(PROBLEM, STILL, mechanism=odd),
    "Releases policy": lambda odd: pg.Releases(PROBLEM, STILL, policy=odd),
    "Releases budget": lambda odd: pg.Releases(PROBLEM, STILL, epsilon=1.0, budget=odd),
    "Releases distortion": lambda odd: pg.Releases(PROBLEM, STILL, epsilon=1.0, distortion=odd),
    "Releases adversaries": lambda odd: pg.Releases(PROBLEM, STILL, epsilon=1.0, adversaries=odd),
    "Releases time_limit": lambda odd: pg.Releases(PROBLEM, STILL, epsilon=1.0, time_limit=odd),
    "Releases when_spent": lambda odd: pg.Releases(PROBLEM, STILL, epsilon=1.0, when_spent=odd),
    "release": lambda odd: RELEASES.release(odd),
    "release at": lambda odd: RELEASES.preview(at=odd),
    "release key": lambda odd: pg.Releases(PROBLEM, STILL, epsilon=1.0).release("cell-0", key=odd),
    "Budget": lambda odd: pg.Budget(odd),
    "Budget every": lambda odd: pg.Budget(1.0, every=odd),
    "Budget distinguishability": lambda odd: pg.Releases(
        PROBLEM, STILL, epsilon=1.0, budget=pg.Budget(1.0, distinguishability=odd)
    ),
    "InferenceTarget": lambda odd: pg.InferenceTarget(odd),
    "Pursuit given": lambda odd: pg.Releases(
        PROBLEM, STILL, epsilon=1.0, adversaries=[pg.InferenceTarget("x", given=odd)]
    ),
    "EvenSpread": lambda odd: pg.policies.EvenSpread(odd),
    "Predictive": lambda odd: pg.policies.Predictive(1.0, test=odd, within=1.0),
    "Memoised": lambda odd: pg.policies.Memoised(odd),
    "Observations": lambda odd: pg.tracking.Observations(odd, np.array([0])),
    "Observations.of": lambda odd: pg.tracking.Observations.of(MECHANISM, odd),
    "Observations mechanism": lambda odd: pg.tracking.Observations.of(odd, ["cell-0"]),
    "filtered": lambda odd: pg.tracking.filtering_attack(
        odd, STILL, pg.tracking.Observations.of(MECHANISM, ["cell-0"])
    ),
    "smoothed": lambda odd: pg.tracking.smoothing_attack(PROBLEM, STILL, odd),
    "most_likely_path": lambda odd: pg.tracking.viterbi_attack(PROBLEM, odd, odd),
    "averaged": lambda odd: pg.tracking.averaging_attack(PROBLEM, odd),
    "replay": lambda odd: replays.replay(odd, budget=1.0),
    "learn_days": lambda odd: replays.learn_days(odd, GRID, 1),
    "load": lambda odd: pg.load(odd),
    "traces.read": lambda odd: pg.traces.read(odd),
    "read_counts": lambda odd: pg.traces.read_counts(odd),
    "synthetic": lambda odd: pg.traces.synthetic(odd),
}


@pytest.mark.parametrize("name", CALLS)
def test_what_is_passed_by_mistake_is_refused_with_an_error_of_ours(name: str) -> None:
    """Some of it is acceptable to some calls; what is not raises InvalidProblem (or InvalidFile) and nothing else."""
    refused = 0
    for odd in ODD:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pg.UselessMechanism)
            try:
                CALLS[name](odd)
            except pg.PrivacyGamesError:
                refused += 1
    assert refused >= 8
