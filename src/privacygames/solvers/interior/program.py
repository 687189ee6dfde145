"""``BlockProgram``: the program that the interior-point method solves, as plain arrays, and its dual values."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray

Limit = Literal["none", "average", "each"]
"""Which cost is limited, or minimised at its worst: none, the average, or each secret's."""


@dataclass(frozen=True)
class BlockProgram:
    """A design program after presolve, with one block of unknowns per observable.

    Attributes:
        objective: coefficients of the mechanism's entries in the objective, (observables, secrets).
        exponents: logarithms of the ratio bounds, (secrets, secrets), ∞ where there is none.
        deferrable: mask of the secrets that may be left out until they constrain the others: those without prior
            (``presolve/zero_prior.py``).
        drop_implied: whether ratios that follow from others are left out.
        errors: π_k(s) E_k(g,s), (guesses, secrets), the guesses of all adversaries stacked; None where
            distortion privacy plays no part.
        owner: the adversary of each of these guesses. Each adversary has an unknown x of its own in every block.
        distortion: lower bounds d_k on the adversaries' errors, without the last adversary's where
            ``maximises_distortion``.
        max_distortion_rows: where d_k is the largest possible, no output may make another guess better than the best
            blind guess g*: π_k(s) (E_k(g,s) − E_k(g*,s)), (other guesses, secrets); None otherwise.
        maximises_distortion: whether the last adversary's error is maximised (and ``objective`` only breaks ties).
        limited_cost: c_o(s) of the cost that is limited, or whose worst case is minimised, (observables, secrets); for
            "each" secret's, one column per entry of ``cost_secret``.
        cost_secret: for "each": the secret of this program that each such column is a cost of; merged secrets have
            several.
        limit: which cost is limited; ``limited_cost`` includes the prior where it is the "average".
        cost_at_most: the limit; None where the worst case is minimised.
        average_weights: where the average is limited beside each secret's cost, the prior of each column.
        average_at_most: the limit on the average in that case.
        start: a mechanism strictly inside all limits and ratios, (observables, secrets); None for a constant one.
    """

    objective: FloatArray
    exponents: FloatArray
    deferrable: NDArray[np.bool_]
    drop_implied: bool
    errors: FloatArray | None
    owner: IntArray
    distortion: FloatArray
    maximises_distortion: bool
    limited_cost: FloatArray
    cost_secret: IntArray
    limit: Limit
    cost_at_most: float | None
    start: FloatArray | None = None
    max_distortion_rows: FloatArray | None = None
    average_weights: FloatArray | None = None
    average_at_most: float = 0.0

    @property
    def adversary_count(self) -> int:
        """Number of adversaries with an unknown x of their own."""
        return len(self.distortion) + self.maximises_distortion

    def errors_of(self, adversary: int) -> FloatArray:
        """The errors of one adversary's guesses, weighted by their prior: (guesses, secrets)."""
        if self.errors is None:
            raise ValueError("the program has no distortion guarantee")
        return self.errors[self.owner == adversary] if self.adversary_count > 1 else self.errors

    @property
    def maximised_errors(self) -> FloatArray:
        """The errors of the adversary whose error is maximised."""
        return self.errors_of(self.adversary_count - 1)

    def cost(self, columns: FloatArray) -> float:
        """The objective's value for a mechanism, (observables, secrets)."""
        return float((self.objective * columns).sum())

    def adversary_error(self, adversary: int, columns: FloatArray) -> float:
        """The expected error of one adversary with their best guess after each output of a mechanism."""
        return float((columns @ self.errors_of(adversary).T).min(axis=1).sum())

    def limit_value(self, duals: FloatArray) -> float:
        """The limits on the cost times their dual values, added up."""
        limit = self.cost_at_most or 0.0
        if self.average_weights is None:
            return float(duals.sum()) * limit
        return float(duals[:-1].sum()) * limit + float(duals[-1]) * self.average_at_most

    @property
    def minimises_worst_cost(self) -> bool:
        """Whether the worst secret's cost is a variable y of its own, which is minimised."""
        return self.limit == "each" and self.cost_at_most is None


@dataclass(frozen=True)
class DualPoint:
    """Dual values of one iterate, as plain arrays; those of ratios are parallel arrays.

    Attributes:
        observable: observable of each ratio in the working set.
        secret: its first secret.
        other: its second secret.
        ratio: its dual value.
        attack: q_k(g|o), the guesses of all adversaries concatenated along the columns; None without distortion
            guarantees.
        max_distortion: dual values of the guesses other than the best blind one; None without such rows.
        distortion: dual values of the distortion guarantees, 1 for the distortion that is maximised.
        limits: dual values of the limits on the cost: none, one, or one per secret (and one for the average).
    """

    observable: IntArray
    secret: IntArray
    other: IntArray
    ratio: FloatArray
    attack: FloatArray | None
    max_distortion: FloatArray | None
    distortion: FloatArray
    limits: FloatArray
