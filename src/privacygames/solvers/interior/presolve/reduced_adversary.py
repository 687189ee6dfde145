"""``ReducedAdversary``: an adversary without dominated guesses, and their role in the program."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from privacygames.arrays import FloatArray, IntArray, distinct_indices
from privacygames.problem import AdversaryArrays, Bounds, Problem
from privacygames.solvers.interior.presolve.dominance import dominating_observables
from privacygames.solvers.interior.settings import InteriorSettings

Role = Literal["none", "bounded", "at_maximum", "maximised"]
"""An adversary's role: none (the guarantee always holds); a bound on their error; a bound at the maximum
of their error; or an error that is maximised."""


@dataclass(frozen=True)
class ReducedAdversary:
    """An adversary with the guesses that no other one dominates.

    Attributes:
        adversary: their arrays.
        guesses: the guesses that are left.
        maximised: whether their error is maximised.
        max_distortion_tolerance: relative distance of the largest possible error within which a bound counts as that.
    """

    adversary: AdversaryArrays
    guesses: IntArray
    maximised: bool
    max_distortion_tolerance: float

    @cached_property
    def blind_errors(self) -> FloatArray:
        """The expected error of each guess without an output."""
        return np.asarray(self.adversary.errors[self.guesses] @ self.adversary.prior)

    @property
    def best_blind_guess(self) -> int:
        """The best of the guesses that are left, without an output."""
        return int(self.blind_errors.argmin())

    @property
    def role(self) -> Role:
        """Their role in the program."""
        if self.maximised:
            return "maximised"
        if not self.adversary.distortion or len(self.guesses) == 1:
            return "none"  # with one guess to make, the error is the same whatever the mechanism
        maximum = float(self.blind_errors.min())
        return "at_maximum" if self.adversary.distortion > maximum * (1 - self.max_distortion_tolerance) else "bounded"

    def weighted_errors(self, secrets: IntArray) -> FloatArray:
        """π_k(s) E_k(g,s) for the guesses that are left and some secrets."""
        return self.adversary.errors[np.ix_(self.guesses, secrets)] * self.adversary.prior[secrets]

    def expand_attack(self, attack: FloatArray) -> FloatArray:
        """An attack on the guesses that are left, as one on all of them."""
        full = np.zeros((len(attack), len(self.adversary.errors)))
        full[:, self.guesses] = attack
        return full


def reduced_adversaries(
    problem: Problem, bounds: Bounds, *, merge_dominated: bool, settings: InteriorSettings
) -> list[ReducedAdversary]:
    """All adversaries with a guarantee; a guess is dominated if another errs no more on any secret they believe in."""
    reduced = []
    for place, adversary in enumerate(bounds.adversaries(problem)):
        guesses = np.arange(len(adversary.errors))
        if merge_dominated:
            dominating = dominating_observables(adversary.errors[:, adversary.prior > 0])
            guesses = distinct_indices(dominating, len(dominating))
        maximised = bounds.maximises_distortion and place == 0
        reduced.append(ReducedAdversary(adversary, guesses, maximised, settings.max_distortion_tolerance))
    return reduced
