"""The program that the interior-point method solves, in plain numbers, and what it returns."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray

Limit = Literal["none", "average", "each"]


@dataclass(frozen=True)
class BlockProgram:
    """The numbers of a design after reductions.

    Attributes:
        objective: what the mechanism's entries cost in the objective, (observables, secrets).
        exponents: logarithms of the ratio bounds, ∞ where there is none.
        absent: which secrets are left out until they limit the others (``absent.py``).
        drop_implied: whether ratios that follow from others are left out.
        errors: π_k(s) E_k(g,s), (guesses, secrets), the guesses of all adversaries below each other; None where
            distortion privacy plays no part.
        owner: which adversary each of these guesses is one of. Each has an x of her own in every block.
        distortion: d_k, below what the uniform mechanism has, for all of them, but for the last where ``reverse``.
        preferred: where d_k is the largest there is, no answer may make another guess better than the best blind one:
            by how much the others err more, π_k(s) (E_k(g,s) − E_k(g*,s)), (other guesses, secrets); None otherwise.
        reverse: whether distortion privacy, against the last adversary, is maximised (and ``objective`` only breaks
            ties).
        limited: c_o(s) of the cost that is limited or whose worst case is minimised, (observables, secrets); for "each"
            secret's, a column per row of ``whose``.
        whose: for "each": the secret of this program that each such cost is a cost of; several may be one's.
        limit: "none", the "average" (``limited`` then includes the prior) or "each" secret's.
        cost_at_most: the limit; None where the worst case is minimised.
        shares: where both the average and each secret's cost are limited, the prior of each row of ``whose``.
        average_at_most: the limit on the average, then.
        start: a mechanism strictly inside all limits and ratios, (observables, secrets); None for the uniform one.
    """

    objective: FloatArray
    exponents: FloatArray
    absent: NDArray[np.bool_]
    drop_implied: bool
    errors: FloatArray | None
    owner: IntArray
    distortion: FloatArray
    reverse: bool
    limited: FloatArray
    whose: IntArray
    limit: Limit
    cost_at_most: float | None
    start: FloatArray | None = None
    preferred: FloatArray | None = None
    shares: FloatArray | None = None
    average_at_most: float = 0.0

    @property
    def adversaries(self) -> int:
        """How many adversaries have an x of their own."""
        return len(self.distortion) + self.reverse

    def errors_of(self, adversary: int) -> FloatArray:
        """The errors of one of them."""
        if self.errors is None:
            raise ValueError("nothing is promised against anybody")
        return self.errors[self.owner == adversary] if self.adversaries > 1 else self.errors

    def cost(self, column: FloatArray) -> float:
        """What a mechanism, (observables, secrets), costs in the objective."""
        return float((self.objective * column).sum())

    def least_error(self, adversary: int, column: FloatArray) -> float:
        """What one of them errs by after a mechanism's answers, with her best guesses."""
        return float((column @ self.errors_of(adversary).T).min(axis=1).sum())

    @property
    def sought(self) -> FloatArray:
        """The errors of the adversary whose error is maximised."""
        return self.errors_of(self.adversaries - 1)

    def spent(self, prices: FloatArray) -> float:
        """What the limits are worth at these prices of theirs."""
        limit = self.cost_at_most or 0.0
        if self.shares is None:
            return float(prices.sum()) * limit
        return float(prices[:-1].sum()) * limit + float(prices[-1]) * self.average_at_most

    @property
    def minimises_worst(self) -> bool:
        """Whether the worst secret's cost is a variable y of its own, to be minimised."""
        return self.limit == "each" and self.cost_at_most is None


@dataclass(frozen=True)
class DualPoint:
    """Dual values of one iterate: parallel arrays for the ratios, an attack, and prices.

    Attributes:
        observable: of each ratio in the working set.
        secret: its first secret.
        other: its second secret.
        ratio: its dual value.
        attack: q_k(g|o), the guesses of all adversaries beside each other, where distortion privacy plays a part.
        top: where it is the largest there is, the dual values of the guesses that are not the preferred one.
        distortion: the dual values of the total distortions, 1 for the one that is maximised.
        limits: the dual values of the limits on the cost: none, one, or one per secret (and then one for the average).
    """

    observable: IntArray
    secret: IntArray
    other: IntArray
    ratio: FloatArray
    attack: FloatArray | None
    top: FloatArray | None
    distortion: FloatArray
    limits: FloatArray
