"""What a solver is: the protocol to implement, what it is given and what it returns.

A solver of your own, in your own package, needs no more than this file says: two members, ``fallbacks`` and ``solve``.
Pass an instance as ``design(…, solver=…)``. Nothing it returns is trusted: probabilities are repaired and verified,
and multipliers only decide how tight the proved bound is (docs/how-to/own-solver.md).
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from privacygames.arrays import FloatArray
from privacygames.certificates import DualSolution
from privacygames.errors import Field, InvalidProblem, Status
from privacygames.problem import Bounds, Problem
from privacygames.progress import ProgressCallback


@dataclass(frozen=True, kw_only=True)
class SolveOptions:
    """How to solve.

    Attributes:
        tolerance: the largest relative gap to the best possible that is good enough.
        time_limit: seconds after which to stop; None for as long as it takes.
        progress: called with a :class:`privacygames.Progress` now and then; what it raises stops the solve.
        start: where the cost is limited, a mechanism (secrets, observables) that keeps the ratios and costs less.
        enough: where only a mechanism is needed that costs less than this, with room to spare; a solver may then stop
            at one, and call it optimal. None where the cheapest is needed.
    """

    tolerance: float = 1e-6
    time_limit: float | None = None
    progress: ProgressCallback | None = None
    start: FloatArray | None = None
    enough: float | None = None

    def __post_init__(self) -> None:
        for name in ("tolerance", "time_limit"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and value > 0):
                raise InvalidProblem(Field(name), f" is {value!r}; it must be a positive number")


@dataclass(frozen=True)
class Solution:
    """A solver's answer before it is repaired and certified.

    Attributes:
        probabilities: (secrets, observables); may miss the bounds by the solver's tolerance.
        dual_solution: dual values that prove how good it is; may be slightly off as well.
        status: how the solve ended: OPTIMAL, TIME_LIMIT (the best so far) or NUMERICAL (as far as it got).
        solver: what it was solved with, for the certificate.
    """

    probabilities: FloatArray
    dual_solution: DualSolution
    status: Status
    solver: str


@runtime_checkable
class Solver(Protocol):
    """Solves design programs."""

    @property
    def fallbacks(self) -> "tuple[Solver, ...]":
        """What to try, in this order, where this one fails for numerical reasons; empty for nothing."""
        ...

    def solve(self, problem: Problem, bounds: Bounds, *, options: SolveOptions) -> Solution:
        """The mechanism that is best under the bounds.

        Raises:
            SolveFailed: with a status: where that is NUMERICAL, the fallbacks get their chance.
            InvalidProblem: the problem is of a kind this solver does not take.
        """
        ...
