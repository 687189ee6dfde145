"""Dual values: the evidence that no mechanism does better, whatever solver found it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class RatioDuals:
    """Sparse dual values z ≥ 0 of p(o|s) − γ(s,s') p(o|s') ≤ 0, as parallel arrays.

    Attributes:
        observable: the row of each value (see :attr:`DualSolution.output_rows`).
        secret: s.
        other: s'.
        value: z.

    >>> from privacygames.certificates import RatioDuals
    >>> len(RatioDuals.none())
    0
    """

    observable: NDArray[np.int32]
    secret: NDArray[np.int32]
    other: NDArray[np.int32]
    value: FloatArray

    @classmethod
    def none(cls) -> "RatioDuals":
        """No ratio has a dual value other than 0."""
        empty = np.zeros(0, dtype=np.int32)
        return cls(empty, empty, empty, np.zeros(0))

    def __len__(self) -> int:
        return len(self.value)

    def take(self, which: IntArray | slice) -> "RatioDuals":
        """Those at some positions."""
        return RatioDuals(self.observable[which], self.secret[which], self.other[which], self.value[which])


@dataclass(frozen=True)
class AdversaryDuals:
    """The dual values of the distortion guarantee against one adversary.

    Attributes:
        dual: α_k ≥ 0, of the guarantee itself; it counts as 1 where their error is what is maximised.
        attack: q_k(g|o), one distribution over the adversary's guesses per row; rows need not be normalised.

    >>> pg.AdversaryDuals(dual=1.0, attack=np.eye(2)).attack.shape
    (2, 2)
    """

    dual: float
    attack: FloatArray


@dataclass(frozen=True, kw_only=True)
class DualSolution:
    """Dual values of every family of constraints; any such numbers prove *some* bound, good ones a tight one.

    Attributes:
        ratios: the dual values of the ratios.
        output_rows: for each output, the row of ``attack`` and of ``ratios`` it uses: an output that another one
            dominates borrows its dual values.
        adversaries: the dual values of each distortion guarantee, in the order of the bounds.
        cost_dual: κ ≥ 0, of the limit on the cost; it counts as 1 where the cost is what is minimised.
        secret_weights: λ(s), how much each secret counts in the worst-case cost; None for the average.
        worst_cost_duals: ν(s) ≥ 0, of the limit on every secret's cost; None where there is none.

    >>> from privacygames.certificates import DualSolution, RatioDuals
    >>> DualSolution(ratios=RatioDuals.none(), output_rows=np.arange(3)).rows
    3
    """

    ratios: RatioDuals
    output_rows: IntArray
    adversaries: tuple[AdversaryDuals, ...] = ()
    cost_dual: float = 1.0
    secret_weights: FloatArray | None = None
    worst_cost_duals: FloatArray | None = None

    @property
    def rows(self) -> int:
        """How many rows there are: each has a distribution over every adversary's guesses, and ratios of its own."""
        if self.adversaries:
            return len(self.adversaries[0].attack)
        return 1 + int(max(self.output_rows.max(initial=0), self.ratios.observable.max(initial=0)))
