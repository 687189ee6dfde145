"""What both min-max attacks return: an attack, and the proof of how good it is."""

from dataclasses import dataclass

from privacygames.arrays import FloatArray


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
