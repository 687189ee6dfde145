"""The ``Solver`` protocol: what a solver is given and what it returns.

A solver of your own, in your own package, needs no more than this file: two members, ``fallbacks`` and ``solve``. Pass
an instance as ``design(…, solver=…)``. Nothing that it returns is trusted: probabilities are repaired and verified, and
dual values only decide how tight the proved bound is (docs/how-to/own-solver.md).
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
    """Accuracy and limits of a solve.

    Attributes:
        tolerance: largest relative gap to the optimum that is good enough.
        time_limit: seconds after which to stop; None for no limit.
        progress: called with a :class:`privacygames.Progress` now and then; an exception that it raises stops the
            solve.
        start: where the cost is limited, a mechanism (secrets, observables) that satisfies the ratio bounds and costs
            less.
        enough: where any mechanism is needed that costs less than this, with room to spare; a solver may then stop at
            one, and call it optimal. None where the cheapest is needed.

    >>> pg.SolveOptions(tolerance=1e-4, time_limit=60.0).tolerance
    0.0001
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
    """A solver's output before it is repaired and certified.

    Attributes:
        probabilities: (secrets, observables); may miss the bounds by the solver's tolerance.
        dual_solution: dual values that prove a bound on the optimum; may be slightly off as well.
        status: how the solve ended: OPTIMAL, TIME_LIMIT (the best so far) or NUMERICAL (as far as it got).
        solver: a description of the solver, for the certificate.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Numbers(range(3))), cost="absolute")
    >>> solution = pg.Highs().solve(problem, pg.Bounds(epsilon=1.0), options=pg.SolveOptions())
    >>> solution.probabilities.shape, solution.status.name
    ((3, 3), 'OPTIMAL')
    """

    probabilities: FloatArray
    dual_solution: DualSolution
    status: Status
    solver: str


@runtime_checkable
class Solver(Protocol):
    """Solves design programs.

    >>> isinstance(pg.Interior(), pg.Solver), isinstance(pg.Highs(), pg.Solver)
    (True, True)
    """

    @property
    def fallbacks(self) -> "tuple[Solver, ...]":
        """Solvers to try, in this order, where this one fails for numerical reasons; empty for none."""
        ...

    def solve(self, problem: Problem, bounds: Bounds, *, options: SolveOptions) -> Solution:
        """The best mechanism under the bounds.

        Raises:
            SolveFailed: with a status: where that is NUMERICAL, the fallbacks are tried.
            InvalidProblem: the problem is of a kind this solver does not take.
        """
        ...
