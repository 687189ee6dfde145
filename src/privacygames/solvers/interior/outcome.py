"""What the method returns."""

from dataclasses import dataclass
from math import inf, isfinite

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.lower_bound import DualBound
from privacygames.solvers.interior.program import DualPoint


@dataclass
class Outcome:
    """A mechanism, and the proof of a bound on the optimum.

    ``secrets`` are those in the program at the end, and ``ratios`` how many it has between them; ``scale`` is what
    counts as next to nothing.
    """

    probabilities: FloatArray
    proof: DualBound
    value: float
    iterations: int
    secrets: IntArray
    ratios: int
    scale: float
    finished: bool = False
    out_of_time: bool = False

    @property
    def bound(self) -> float:
        """What the minimum is at least."""
        return self.proof.bound

    @property
    def gap(self) -> float:
        """How much less the minimum may be, as a share of the value; ∞ where nothing is known."""
        left = self.value - self.bound
        return left / max(self.value, -self.bound, self.scale) if isfinite(left) else inf

    @property
    def dual(self) -> DualPoint:
        """The dual values that prove it."""
        return self.proof.point
