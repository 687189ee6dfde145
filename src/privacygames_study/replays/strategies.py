"""The strategies that a replay compares: policies and mechanisms at the same daily budget."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from privacygames.baselines import planar_laplace
from privacygames.beliefs import Mobility
from privacygames.designer import design_bounds
from privacygames.mechanism import Mechanism
from privacygames.policy_comparison import RENEW_SHARES, TEST_SHARE
from privacygames.problem import Bounds, Problem
from privacygames.releases import Budget, Fixed, Memoised, Policy, Predictive, Releases, WhenSpent

DAY = 86_400.0
NEAR = 0.02
"""Total variation up to which two beliefs share a design; its ε does not depend on the belief."""


@dataclass(frozen=True)
class DailyBudget:
    """The budget of a day.

    Attributes:
        budget: ε per unit of distance, in every 24 hours.
        requests: expected number per day.
        places: expected number of distinct places per day.
        when_spent: how requests beyond the budget are treated.
    """

    budget: float
    requests: int
    places: int
    when_spent: WhenSpent = "repeat"

    @property
    def share(self) -> float:
        """An even share of the budget."""
        return self.budget / self.requests


Start = Callable[[Problem, Mobility, DailyBudget, np.random.Generator], Releases]


def noise(problem: Problem, mobility: Mobility, daily: DailyBudget, generator: np.random.Generator) -> Releases:
    """The baseline: independent planar Laplace noise, each time with an even share of the budget."""
    return _releases(problem, mobility, daily, generator, mechanism=planar_laplace(problem, daily.share))


def independent(problem: Problem, mobility: Mobility, daily: DailyBudget, generator: np.random.Generator) -> Releases:
    """Independent draws from one mechanism that is optimal for the prior, each with an even share."""
    return _releases(problem, mobility, daily, generator, mechanism=_optimal(problem, daily.share))


def adaptive(problem: Problem, mobility: Mobility, daily: DailyBudget, generator: np.random.Generator) -> Releases:
    """A mechanism that is optimal for the belief at each time, with an even share."""
    return _releases(problem, mobility, daily, generator, policy=Fixed(daily.share))


def predictive(problem: Problem, mobility: Mobility, daily: DailyBudget, generator: np.random.Generator) -> Releases:
    """The last output while it passes a private test; otherwise a new one with several shares."""
    policy = Predictive(test=TEST_SHARE * daily.share, within=_threshold(problem))
    mechanism = _optimal(problem, RENEW_SHARES * daily.share)
    return _releases(problem, mobility, daily, generator, policy=policy, mechanism=mechanism)


def memoised(problem: Problem, mobility: Mobility, daily: DailyBudget, generator: np.random.Generator) -> Releases:
    """One output per place, with an even share for each *place*; returns are visible and not charged."""
    policy = Memoised(sha256(generator.bytes(32)).digest())
    mechanism = _optimal(problem, daily.budget / daily.places)
    return _releases(problem, mobility, daily, generator, policy=policy, mechanism=mechanism)


STRATEGIES: dict[str, Start] = {
    "noise": noise,
    "independent": independent,
    "adaptive": adaptive,
    "predictive": predictive,
    "memoised": memoised,
}
"""All strategies, by name."""


def _releases(
    problem: Problem,
    mobility: Mobility,
    daily: DailyBudget,
    generator: np.random.Generator,
    *,
    policy: Policy | None = None,
    mechanism: Mechanism | None = None,
) -> Releases:
    return Releases(
        problem,
        mobility,
        policy=policy,
        mechanism=mechanism,
        budget=Budget(daily.budget, every=DAY),
        when_spent=daily.when_spent,
        reuse=NEAR if mechanism is None else 0.0,
        generator=generator,
    )


def _optimal(problem: Problem, epsilon: float) -> Mechanism:
    return design_bounds(problem, Bounds(epsilon=epsilon))


def _threshold(problem: Problem) -> float:
    """The threshold of predictions: the median distance to the nearest other secret."""
    distances = np.where(problem.distinguishability > 0, problem.distinguishability, np.inf)
    return float(np.median(distances.min(axis=1)))
