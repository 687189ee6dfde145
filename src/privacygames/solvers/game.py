"""What the block engine is given and what it returns: plain numbers."""

from dataclasses import dataclass
from typing import Literal

from privacygames.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class Game:
    """The numbers of a design after reductions.

    Attributes:
        objective: what the mechanism's entries cost in the objective, (observables, secrets).
        exponents: logarithms of the ratio bounds, ∞ where there is none or it follows from others.
        errors: π(s) d(ŝ,s), (guesses, secrets); None where distortion privacy plays no part.
        distortion: d_m, below what the uniform mechanism has; None where it is not bounded.
        reverse: whether distortion privacy is maximised (and ``objective`` only breaks ties).
        limited: c_o(s) of the cost that is limited or whose worst case is minimised, (observables, secrets).
        limit: "none", the "average" (``limited`` then includes the prior) or "each" secret's.
        cost_at_most: the limit; None where the worst case is minimised.
        start: a mechanism strictly inside all limits and ratios, (observables, secrets); None for the uniform one.
    """

    objective: FloatArray
    exponents: FloatArray
    errors: FloatArray | None
    distortion: float | None
    reverse: bool
    limited: FloatArray
    limit: Literal["none", "average", "each"]
    cost_at_most: float | None
    start: FloatArray | None = None


@dataclass
class Outcome:
    """A mechanism, and the prices behind the bound on the optimum."""

    probabilities: FloatArray
    prices: "Prices"
    value: float
    iterations: int
    finished: bool = False
    out_of_time: bool = False


@dataclass(frozen=True)
class Prices:
    """Multipliers of one iterate: parallel arrays for the ratios, an attack, prices, and what they prove.

    ``limits`` are the prices of the limits on the cost: none, one, or one per secret.
    """

    observable: IntArray
    secret: IntArray
    other: IntArray
    ratio: FloatArray
    attack: FloatArray | None
    distortion: float
    limits: FloatArray
    bound: float
