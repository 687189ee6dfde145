"""What is left of a problem by the reductions that come before any program: who counts, and what can be merged."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.problem import Bounds, Problem
from privacygames.programs import LARGEST_EXPONENT
from privacygames.solvers.interior.presolve.dominance import dominating_observables
from privacygames.solvers.interior.presolve.merge_secrets import SecretClasses
from privacygames.solvers.interior.presolve.reduced_adversary import ReducedAdversary, reduced_adversaries
from privacygames.solvers.solve_estimate import SolveEstimate


@dataclass(frozen=True)
class ReducedProblem:
    """What is left.

    Attributes:
        each: whether every secret's cost counts, rather than the average.
        like: for each observable, the one it is merged into (itself, where it is kept).
        guessers: everybody something is promised against, with the guesses that matter.
        belief: how much anybody believes in each secret: 0 where nobody does.
        secrets: those that constrain something.
        exponents: of the ratios between them, ∞ where there is none.
        groups: those that must look the same.
    """

    each: bool
    like: IntArray
    reduced_adversaries: list[ReducedAdversary]
    belief: FloatArray
    secrets: IntArray
    exponents: FloatArray
    groups: SecretClasses

    @classmethod
    def of(cls, problem: Problem, bounds: Bounds, *, merge_dominated: bool, alike: float) -> "ReducedProblem":
        """What is left of a problem under bounds."""
        n, m = problem.shape
        prior = problem.prior.probabilities
        every = np.arange(n)
        each = bounds.worst_case or bounds.worst_cost_at_most is not None
        counts = every if each else np.flatnonzero(prior > 0)
        # Merging answers is post-processing: it lowers nobody's error, so only the cost decides.
        like = dominating_observables(problem.cost[:, counts]) if merge_dominated else np.arange(m)
        facing = reduced_adversaries(problem, bounds, merge_dominated=merge_dominated)
        belief = prior + sum((each.adversary.prior for each in facing if each.part != "none"), np.zeros(n))
        # Without ratios a secret nobody believes in constrains nothing: it gets any other's row.
        secrets = np.flatnonzero(belief > 0) if bounds.epsilon is None and not each else every
        exponents = bounds.log_ratio_bounds(problem.distinguishability)[np.ix_(secrets, secrets)]
        exponents[exponents > LARGEST_EXPONENT] = np.inf
        return cls(each, like, facing, belief, secrets, exponents, SecretClasses.where(exponents, alike))

    @property
    def active(self) -> list[ReducedAdversary]:
        """Those of the guessers that matter to the program."""
        return [each for each in self.reduced_adversaries if each.part != "none"]

    @cached_property
    def observables(self) -> IntArray:
        """The observables that are kept."""
        return np.unique(self.like)

    def estimate(self, threads: int | None, device: str = "host") -> SolveEstimate:
        """What the design is going to take."""
        guesses = sum(len(each.guesses) for each in self.active)
        return SolveEstimate(self.groups.count, len(self.observables), guesses, self.each, threads, device)
