"""Dual multipliers: the evidence that no mechanism does better, whatever solver found it."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray


@dataclass(frozen=True)
class RatioDuals:
    """Sparse multipliers z ≥ 0 of p(o|s) − γ(s,s') p(o|s') ≤ 0, as parallel arrays."""

    observable: NDArray[np.int32]
    secret: NDArray[np.int32]
    other: NDArray[np.int32]
    value: FloatArray

    @classmethod
    def none(cls) -> "RatioDuals":
        """No ratio has a multiplier."""
        empty = np.zeros(0, dtype=np.int32)
        return cls(empty, empty, empty, np.zeros(0))

    def __len__(self) -> int:
        return len(self.value)

    def at(self, which: IntArray | slice) -> "RatioDuals":
        """Some of them."""
        return RatioDuals(self.observable[which], self.secret[which], self.other[which], self.value[which])


@dataclass(frozen=True)
class AdversaryDuals:
    """The dual values of what is promised against one of several adversaries.

    Attributes:
        dual: α_k ≥ 0, of her privacy (1 when it is what is maximised).
        attack: q_k(g|o), one distribution over her guesses per row; rows need not be normalised.
    """

    dual: float
    attack: FloatArray


@dataclass(frozen=True)
class DualSolution:
    """Dual values of every family of constraints; any such numbers prove *some* bound, good ones a tight one.

    Attributes:
        cost_dual: κ ≥ 0, the dual value of the cost (1 when the cost is what is minimised).
        distortion_dual: α ≥ 0, the dual value of the distortion privacy (1 when it is what is maximised).
        attack: q(ŝ|o), one distribution over estimates per row; rows need not be normalised.
        ratios: the dual values of the ratios.
        secret_weights: λ(s), how much each secret counts in the worst-case cost; None for the average.
        like: for each observable, the row of ``attack`` and the observable of ``ratios`` it uses: an
            observable that another one dominates borrows its multipliers.
        against: where promises are against several adversaries, those of each, in their order; ``distortion_dual`` and
            ``attack`` then say nothing (``attack`` still has a row for each row there is).
        limit_weights: ν(s) ≥ 0, of the limit on every secret's cost; None where there is none.
    """

    cost_dual: float
    distortion_dual: float
    attack: FloatArray
    ratios: RatioDuals
    secret_weights: FloatArray | None = None
    like: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    against: tuple[AdversaryDuals, ...] = ()
    limit_weights: FloatArray | None = None

    def __post_init__(self) -> None:
        if len(self.like) == 0:
            object.__setattr__(self, "like", np.arange(len(self.attack)))
