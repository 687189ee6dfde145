"""Adversaries made smaller for the block method: the guesses that matter, and what part each plays in the program."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.problem import AdversaryArrays, Bounds, Problem
from privacygames.solvers.interior.presolve.dominance import dominating_observables

AT_THE_TOP = 1e-9
"""A distortion within this share of the largest there is counts as that."""

Part = Literal["none", "bounded", "top", "sought"]
"""What an adversary is to the program: nothing (what is promised against her always holds), a bound on her error, the
largest error there is, or what is maximised."""


@dataclass(frozen=True)
class ReducedAdversary:
    """An adversary with the guesses that no other dominates.

    Attributes:
        adversary: her numbers.
        guesses: the guesses that are left.
        sought: whether her error is what is maximised.
    """

    adversary: AdversaryArrays
    guesses: IntArray
    sought: bool

    @cached_property
    def blind(self) -> FloatArray:
        """What each guess errs by without an answer."""
        return np.asarray(self.adversary.errors[self.guesses] @ self.adversary.prior)

    @property
    def best(self) -> int:
        """The best of the guesses that are left, without an answer."""
        return int(self.blind.argmin())

    @property
    def part(self) -> Part:
        """What she is to the program."""
        if self.sought:
            return "sought"
        if not self.adversary.distortion or len(self.guesses) == 1:
            return "none"  # with one guess to make, her error is the same whatever the mechanism
        return "top" if self.adversary.distortion > float(self.blind.min()) * (1 - AT_THE_TOP) else "bounded"

    def errors(self, secrets: IntArray) -> FloatArray:
        """π_k(s) E_k(g,s) for the guesses that are left and some secrets."""
        return self.adversary.errors[np.ix_(self.guesses, secrets)] * self.adversary.prior[secrets]

    def whole(self, attack: FloatArray) -> FloatArray:
        """An attack on the guesses that are left, as one on all of them."""
        full = np.zeros((len(attack), len(self.adversary.errors)))
        full[:, self.guesses] = attack
        return full


def reduced_adversaries(problem: Problem, bounds: Bounds, *, merge_dominated: bool) -> list[ReducedAdversary]:
    """Everybody something is promised against; a guess goes if another errs no more on any secret she believes in."""
    found = []
    for place, adversary in enumerate(bounds.adversaries(problem)):
        guesses = np.arange(len(adversary.errors))
        if merge_dominated:
            guesses = np.unique(dominating_observables(adversary.errors[:, adversary.prior > 0]))
        found.append(ReducedAdversary(adversary, guesses, bounds.maximises_distortion and place == 0))
    return found
