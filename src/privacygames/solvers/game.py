"""What the block engine is given and what it returns: plain numbers."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.reductions import chained_pairs


@dataclass(frozen=True)
class Game:
    """The numbers of a design after reductions.

    Attributes:
        objective: what the mechanism's entries cost in the objective, (observables, secrets).
        exponents: logarithms of the ratio bounds, ∞ where there is none.
        absent: which secrets are left out until they limit the game (``absent.py``).
        drop_chained: whether ratios that follow from others are left out.
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
    absent: NDArray[np.bool_]
    drop_chained: bool
    errors: FloatArray | None
    distortion: float | None
    reverse: bool
    limited: FloatArray
    limit: Literal["none", "average", "each"]
    cost_at_most: float | None
    start: FloatArray | None = None

    def only(self, secrets: IntArray) -> "Game":
        """The game with some of its secrets, and the ratios between them that follow from no others."""
        exponents = self.exponents[np.ix_(secrets, secrets)]
        if self.drop_chained:
            exponents[chained_pairs(exponents)] = np.inf
        return replace(
            self,
            objective=self.objective[:, secrets],
            exponents=exponents,
            absent=self.absent[secrets],
            errors=None if self.errors is None else self.errors[:, secrets],
            limited=self.limited[:, secrets],
            start=None if self.start is None else self.start[:, secrets],
        )


@dataclass
class Outcome:
    """A mechanism, and the prices behind the bound on the optimum.

    ``secrets`` are those of the game at the end, and ``ratios`` how many it has between them.
    """

    probabilities: FloatArray
    prices: "Prices"
    value: float
    iterations: int
    secrets: IntArray
    ratios: int
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
