"""``ProvedAttack``, the result of both min-max methods: an attack and a proof of how near it is to the best."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray

LOSS_LIMITS = (1e6, 1e10)
"""Multiples of the scale of errors to which larger errors are lowered in a solver's first and second attempt."""

NOISE = 1e-7
"""Probability below which a guess whose error was lowered is taken to be a solver's rounding error."""


@dataclass(frozen=True)
class ProvedAttack:
    """An attack, and weights that prove how near its error is to the least possible.

    Attributes:
        attack: q(ŝ|o), (observables, estimates); every row sums to one.
        weights: the proof: the weight of each secret, or of each pair (estimates, secrets). They sum to one.
        error: the attack's error where it is largest: an upper bound on the least.
        bound: a lower bound on the largest error of every attack, proved by the weights.
    """

    attack: FloatArray
    weights: FloatArray
    error: float
    bound: float

    def within(self, gap: float) -> bool:
        """Whether the error is the least possible up to an absolute gap."""
        return self.error - self.bound <= gap


def lower_distances(distance: FloatArray, scale: float) -> Iterator[FloatArray]:
    """Yield the distances with those far above the scale lowered to a limit: first to a low one, last not at all.

    A guess that errs by 10¹⁵ where others err by 1 has a probability near 0, and its error only adds rounding errors.
    With lowered errors no attack errs by more, so what weights prove about them holds for the true ones.

    Args:
        distance: d(ŝ,s), (estimates, secrets).
        scale: the size of typical errors of a good attack.
    """
    largest = float(distance.max(initial=0.0))
    yield from (np.minimum(distance, limit * scale) for limit in LOSS_LIMITS if limit * scale < largest)
    yield distance


def remove_noise(attack: FloatArray, was_lowered: NDArray[np.bool_]) -> FloatArray:
    """The attack without guesses whose errors were lowered and whose probability is negligible.

    Args:
        attack: q(ŝ|o), (observables, estimates).
        was_lowered: whether some error of each guess was lowered, (estimates,).
    """
    cleaned = np.where(was_lowered & (attack < NOISE), 0.0, attack)
    return np.asarray(cleaned / cleaned.sum(axis=1, keepdims=True))


def combine_best(first: ProvedAttack | None, second: ProvedAttack) -> ProvedAttack:
    """The attack with the smaller error and the weights with the larger bound of two results."""
    if first is None:
        return second
    attack = first if first.error <= second.error else second
    proof = first if first.bound >= second.bound else second
    return ProvedAttack(attack.attack, proof.weights, attack.error, proof.bound)


def blind_error(distance: FloatArray) -> float:
    """The largest error of the best guess without an output; the largest distance, or 1, where that is 0."""
    candidates = float(distance.max(axis=1).min()), float(distance.max())
    return min((error for error in candidates if error > 0), default=1.0)
