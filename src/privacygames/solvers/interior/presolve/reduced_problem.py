"""``ReducedProblem``: what remains of a problem once observables, guesses and secrets are merged or left out."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privacygames.arrays import FloatArray, IntArray, distinct_indices
from privacygames.problem import Bounds, Problem
from privacygames.programs import LARGEST_EXPONENT
from privacygames.solvers.interior.presolve.dominance import dominating_observables
from privacygames.solvers.interior.presolve.merge_secrets import SecretClasses
from privacygames.solvers.interior.presolve.reduced_adversary import ReducedAdversary, reduced_adversaries
from privacygames.solvers.interior.settings import InteriorSettings
from privacygames.solvers.solve_estimate import SolveEstimate


@dataclass(frozen=True)
class ReducedProblem:
    """A problem under bounds, reduced.

    Attributes:
        every_cost_counts: whether every secret's cost counts, rather than the average.
        dominating: for each observable, the one it is merged into (itself, where it is kept).
        adversaries: all adversaries with a guarantee, with the guesses that matter.
        total_prior: the sum of all priors of each secret: 0 where nobody believes in it.
        secrets: those that constrain something.
        exponents: of the ratios between them, ∞ where there is none.
        classes: those with equal rows.
    """

    every_cost_counts: bool
    dominating: IntArray
    adversaries: list[ReducedAdversary]
    total_prior: FloatArray
    secrets: IntArray
    exponents: FloatArray
    classes: SecretClasses

    @classmethod
    def of(
        cls,
        problem: Problem,
        bounds: Bounds,
        *,
        merge_dominated: bool,
        merge_exponent: float,
        settings: InteriorSettings,
    ) -> "ReducedProblem":
        """The reduced problem; see :class:`Interior` for the arguments."""
        n, m = problem.shape
        prior = problem.prior.probabilities
        everyone = np.arange(n)
        every_cost_counts = bounds.worst_case or bounds.worst_cost_at_most is not None
        counting = everyone if every_cost_counts else np.flatnonzero(prior > 0)
        # Merging outputs is post-processing: it lowers nobody's error, so only the cost decides.
        dominating = dominating_observables(problem.cost[:, counting]) if merge_dominated else np.arange(m)
        adversaries = reduced_adversaries(problem, bounds, merge_dominated=merge_dominated, settings=settings)
        active = (reduced.adversary.prior for reduced in adversaries if reduced.role != "none")
        total_prior = prior + sum(active, np.zeros(n))
        # Without ratio bounds a secret that nobody believes in constrains nothing: it gets any other's row.
        secrets = np.flatnonzero(total_prior > 0) if bounds.epsilon is None and not every_cost_counts else everyone
        exponents = bounds.log_ratio_bounds(problem.distinguishability)[np.ix_(secrets, secrets)]
        exponents[exponents > LARGEST_EXPONENT] = np.inf
        classes = SecretClasses.of(exponents, merge_exponent, settings.two_way_exponent)
        return cls(every_cost_counts, dominating, adversaries, total_prior, secrets, exponents, classes)

    @property
    def active_adversaries(self) -> list[ReducedAdversary]:
        """The adversaries with a role in the program."""
        return [adversary for adversary in self.adversaries if adversary.role != "none"]

    @cached_property
    def observables(self) -> IntArray:
        """The observables that are kept."""
        return distinct_indices(self.dominating, len(self.dominating))

    def estimate(self, threads: int | None, device: str = "host") -> SolveEstimate:
        """Time and memory that the design takes."""
        guesses = sum(len(adversary.guesses) for adversary in self.active_adversaries)
        observables = len(self.observables)
        return SolveEstimate(self.classes.count, observables, guesses, self.every_cost_counts, threads, device)
