"""A statement: a mechanism's exact numbers together with everything needed to re-check what it promises."""

from dataclasses import dataclass

from privacygames.arrays import FloatArray, IntArray
from privacygames.bounds import Bounds
from privacygames.multipliers import Multipliers

BITS = 62
"""Every row of weights sums to 2^62, the most that signed 64-bit integers add up comfortably."""


@dataclass(frozen=True)
class Statement:
    """The numbers a certificate is about; nothing else is consulted when it is checked.

    Attributes:
        weights: (secrets, observables) integers; p(o|s) = weights[s, o] / 2**bits, exactly.
        bits: what the rows sum to, as a power of two.
        prior: π(s).
        cost: c(o, s), (observables, secrets).
        distance: d(ŝ, s), (secrets, secrets).
        distinguishability: d^ε(s, s'), (secrets, secrets).
        bounds: what is promised.
        multipliers: evidence for the bound on the optimum; None if it was left out.
    """

    weights: IntArray
    bits: int
    prior: FloatArray
    cost: FloatArray
    distance: FloatArray
    distinguishability: FloatArray
    bounds: Bounds
    multipliers: Multipliers | None
