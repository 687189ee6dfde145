"""What the method returns."""

from dataclasses import dataclass

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.lower_bound import Proof
from privacygames.solvers.interior.program import DualPoint


@dataclass
class Outcome:
    """A mechanism, and the proof of a bound on the optimum.

    ``secrets`` are those in the program at the end, and ``ratios`` how many it has between them.
    """

    probabilities: FloatArray
    proof: Proof
    value: float
    iterations: int
    secrets: IntArray
    ratios: int
    finished: bool = False
    out_of_time: bool = False

    @property
    def bound(self) -> float:
        """What the minimum is at least."""
        return self.proof.bound

    @property
    def dual(self) -> DualPoint:
        """The dual values that prove it."""
        return self.proof.point
