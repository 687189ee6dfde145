"""What is asked of a mechanism, and what its certificate will promise."""

from dataclasses import dataclass
from math import inf

import numpy as np

from privacygames.arguments import is_number
from privacygames.arrays import LARGEST, SMALLEST, FloatArray
from privacygames.errors import InvalidProblem


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The promises asked for; any may be left out, but not all.

    Attributes:
        epsilon: ε_m. Metric form (eq:constraint:privacy:diff:mult): p(o|s) ≤ exp(ε·d^ε(s,s')) p(o|s').
        within: d^ε_m. Threshold form (eq:constraint:privacy:diff:mult2): exp(ε) between secrets at most this
            far apart, nothing between others.
        distortion: d_m, the least distortion privacy against the optimal attack.
        cost_at_most: turns the problem round: most distortion privacy for at most this cost.
        worst_case: count the cost of the worst secret (eq:utility:maxmetric) instead of the average.
    """

    epsilon: float | None = None
    within: float | None = None
    distortion: float | None = None
    cost_at_most: float | None = None
    worst_case: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.worst_case, bool):
            raise InvalidProblem("worst_case must be True or False")
        for name in ("epsilon", "within", "distortion", "cost_at_most"):  # NumPy's numbers become plain floats
            object.__setattr__(self, name, _number(name, getattr(self, name)))
        if self.epsilon == 0:
            raise InvalidProblem("epsilon is 0.0; it must be a positive number, or None for no such bound")
        if self.within is not None and self.epsilon is None:
            raise InvalidProblem("within says which secrets epsilon holds between; give epsilon too")
        if self.distortion is not None and self.cost_at_most is not None:
            raise InvalidProblem(
                "give distortion (and get the least cost) or cost_at_most (and get the most distortion)"
            )
        if self.epsilon is None and self.distortion is None and self.cost_at_most is None:
            raise InvalidProblem("nothing is promised: give epsilon, distortion or cost_at_most")

    @property
    def reverse(self) -> bool:
        """Whether the cost is bounded and distortion privacy is maximised, rather than the other way round."""
        return self.cost_at_most is not None

    def exponents(self, distinguishability: FloatArray) -> FloatArray:
        """The bound on ln p(o|s) − ln p(o|s') for every ordered pair (s, s'); ∞ where nothing is asked."""
        if self.epsilon is None:
            return np.full_like(distinguishability, inf)
        if self.within is None:
            exponents = self.epsilon * distinguishability
        else:
            exponents = np.where(distinguishability <= self.within, self.epsilon, inf)
        np.fill_diagonal(exponents, inf)
        return exponents


def _number(name: str, value: object) -> float | None:
    """A bound as a float, or an error that says what it may be."""
    if value is None:
        return None
    if is_number(value):
        try:
            plain = float(value)  # type: ignore[arg-type]
        except OverflowError:
            plain = inf
        if plain == 0 or SMALLEST <= plain <= LARGEST:
            return plain
        value = plain
    kind = "a positive number" if name == "epsilon" else "a finite number, 0 or more"
    raise InvalidProblem(f"{name} is {repr(value)[:40]}; it must be {kind}, no larger than {LARGEST:g}")
