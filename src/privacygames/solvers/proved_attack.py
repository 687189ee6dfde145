"""What both min-max attacks return: an attack, and the proof of how good it is."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray

LOWERED = (1e6, 1e10)
"""Errors above these multiples of what is at stake are lowered to them in the first and second attempt of a solver."""

NOISE = 1e-7
"""Probability below which a guess whose error was lowered is taken to be a solver's rounding."""


@dataclass(frozen=True)
class ProvedAttack:
    """An attack and the proof of how good it is.

    Attributes:
        attack: q(ŝ|o), (observables, estimates); every row sums to one.
        weights: how much each secret, or each pair (estimates, secrets), counts: the proof. They sum to one.
        error: the attack's error where it does worst: an upper bound on the least.
        bound: no attack does better where it does worst, proved by the weights.
    """

    attack: FloatArray
    weights: FloatArray
    error: float
    bound: float

    def within(self, gap: float) -> bool:
        """Whether the error is the least one up to an absolute gap."""
        return self.error - self.bound <= gap


def lowered(distance: FloatArray, at_stake: float) -> Iterator[FloatArray]:
    """Distances with those far above what is at stake lowered to a limit: first to a low one, last not at all.

    A guess that errs by 10¹⁵ where others err by 1 is given with a probability near 0, and its error only makes
    rounding worse. With lowered errors no attack errs by more, so what weights prove about them holds for the true
    ones.

    Args:
        distance: d(ŝ,s), (estimates, secrets).
        at_stake: the scale of the errors that decide.
    """
    largest = float(distance.max(initial=0.0))
    yield from (np.minimum(distance, most * at_stake) for most in LOWERED if most * at_stake < largest)
    yield distance


def without_noise(attack: FloatArray, hopeless: NDArray[np.bool_]) -> FloatArray:
    """An attack without guesses of lowered errors that a solver gives with probabilities next to nothing.

    Args:
        attack: q(ŝ|o), (observables, estimates).
        hopeless: whether some error of each guess was lowered, (estimates,).
    """
    cleaned = np.where(hopeless & (attack < NOISE), 0.0, attack)
    return np.asarray(cleaned / cleaned.sum(axis=1, keepdims=True))


def better(one: ProvedAttack | None, other: ProvedAttack) -> ProvedAttack:
    """The better attack and the better proof of two."""
    if one is None:
        return other
    attack = one if one.error <= other.error else other
    proof = one if one.bound >= other.bound else other
    return ProvedAttack(attack.attack, proof.weights, attack.error, proof.bound)


def blind_error(distance: FloatArray) -> float:
    """The worst error of the best guess without an output; the largest error, or 1, where that is 0."""
    return min((each for each in (float(distance.max(axis=1).min()), float(distance.max())) if each > 0), default=1.0)
