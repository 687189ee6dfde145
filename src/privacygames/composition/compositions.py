"""Many releases together: δ and ε as proved bounds."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import inf, log2

import numpy as np

from privacygames.composition.dominating_pairs import DominatingPair
from privacygames.composition.grid_losses import drawn_together, spread_up
from privacygames.composition.tilted_sums import LossSum
from privacygames.errors import Field, InvalidProblem
from privacygames.validation import is_integer, is_number

GRID_BITS = 17
"""Binary logarithm of the number of points that the range of likely sums is divided into: milliseconds per FFT."""

FINEST_STEP, COARSEST_STEP = -30, -4
"""Binary logarithms of the smallest and the largest step: a step is a power of two, so that its multiples are exact."""


@dataclass(frozen=True)
class Bracket:
    """A number between two proved bounds.

    >>> pg.composition.Bracket(lower=0.25, upper=0.5).upper
    0.5
    """

    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Composition:
    """Many releases together, each dominated by a pair that is fixed beforehand; pairs may occur many times.

    >>> coin = pg.composition.randomised_response_pair(0.1)
    >>> hundred = pg.composition.Composition([(coin, 100)])
    >>> hundred.epsilon(1e-6).upper < 5.0  # the sum of the epsilons is 10
    True
    >>> exact = pg.composition.Composition([(coin, 1)]).delta(0.05)
    >>> exact.lower <= coin.delta(0.05) <= exact.upper
    True

    Attributes:
        counts: pairs with the number of releases that each dominates.
        step: the step that losses are rounded to, a power of two; by default it follows from their spread. A smaller
            one brings the bounds closer together, and takes longer.
    """

    counts: tuple[tuple[DominatingPair, int], ...]
    step: float

    def __init__(self, counts: Iterable[tuple[DominatingPair, int]], step: float | None = None) -> None:
        given = tuple(counts)
        if not all(isinstance(pair, DominatingPair) and is_integer(count, minimum=0) for pair, count in given):
            raise InvalidProblem("counts must be a list of (DominatingPair, number of releases)")
        object.__setattr__(self, "counts", tuple((pair, int(count)) for pair, count in given if count > 0))
        if step is not None and not (is_number(step) and 0 < step <= 1 and log2(step).is_integer()):
            raise InvalidProblem(Field("step"), f" is {repr(step)[:40]}; it must be a power of two, such as 2**-12")
        object.__setattr__(self, "step", self._default_step() if step is None else float(step))

    @property
    def releases(self) -> int:
        """The number of releases."""
        return sum(count for _, count in self.counts)

    def delta(self, epsilon: float) -> Bracket:
        """Bounds on the δ for an ε."""
        if not (is_number(epsilon) and 0 <= epsilon < inf):
            raise InvalidProblem(Field("epsilon"), f" is {repr(epsilon)[:40]}; it must be a number, 0 or more")
        return Bracket(self._lower.delta(float(epsilon)), self._upper.delta(float(epsilon)))

    def epsilon(self, delta: float) -> Bracket:
        """Bounds on the least ε for a δ; ∞ where an output that gives a secret away is likelier than δ."""
        if not (is_number(delta) and 0 < delta < 1):
            raise InvalidProblem(Field("delta"), f" is {repr(delta)[:40]}; it must lie between 0 and 1")
        return Bracket(self._lower.epsilon(float(delta)), self._upper.epsilon(float(delta)))

    def __repr__(self) -> str:
        return f"Composition({self.releases} releases)"

    @cached_property
    def _upper(self) -> LossSum:
        return LossSum([(spread_up(pair, self.step), count) for pair, count in self.counts], self.step, sign=1)

    @cached_property
    def _lower(self) -> LossSum:
        return LossSum([(drawn_together(pair, self.step), count) for pair, count in self.counts], self.step, sign=-1)

    def _default_step(self) -> float:
        """The power of two that divides twelve standard deviations, and the largest loss, into 2^GRID_BITS steps."""
        variance, largest = 0.0, 0.0
        for pair, count in self.counts:
            finite = np.isfinite(pair.losses)
            masses, losses = pair.first[finite] * 2.0**-pair.bits, pair.losses[finite]
            if masses.any():
                variance += count * float(masses @ losses**2)
                largest = max(largest, float(np.abs(losses).max()))
        spread = min(12 * variance**0.5 + largest, self.releases * largest)
        power = COARSEST_STEP if spread == 0 else int(np.ceil(log2(spread))) - GRID_BITS
        return 2.0 ** min(max(power, FINEST_STEP), COARSEST_STEP)
