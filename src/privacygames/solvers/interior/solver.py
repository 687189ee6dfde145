"""``Interior``: exact reductions, then the block interior-point method."""

from dataclasses import dataclass, replace

import numpy as np

from privacygames.errors import InvalidProblem, SolveFailed, Status
from privacygames.problem import Bounds, Problem
from privacygames.solvers.highs import Highs
from privacygames.solvers.interior.alike import Groups
from privacygames.solvers.interior.engine import minimise
from privacygames.solvers.interior.presolve import Presolved
from privacygames.solvers.linalg import host_algebra
from privacygames.solvers.protocol import Solution, SolveOptions, Solver

LEAST_EXPONENT = 1e-8
NEAR_THE_TOP = 1e-6
NEGLIGIBLE = 1e-6


@dataclass(frozen=True)
class Interior:
    """A block interior-point method on the reduced program: exact for the full one, at hundreds of secrets.

    It takes every kind of design; :meth:`can_solve` says which corner cases it leaves to HiGHS.

    Attributes:
        merge_dominated: leave out observables (and guesses) that others dominate.
        drop_chained: leave out ratios that shorter ones imply.
        leave_out_absent: leave out secrets nobody has until they limit the mechanism.
        alike: take secrets together that this much of an exponent, or less, ties together: 0 for those that are equal.
    """

    merge_dominated: bool = True
    drop_chained: bool = True
    leave_out_absent: bool = True
    alike: float = 1e-7

    @property
    def fallbacks(self) -> tuple[Solver, ...]:
        """The same with every secret present; then HiGHS, by both its methods."""
        everyone = (replace(self, leave_out_absent=False),) if self.leave_out_absent else ()
        return (*everyone, Highs("ipm"), Highs("simplex"))

    def can_solve(self, problem: Problem, bounds: Bounds) -> bool:
        """Whether the program is of the kind this method is for."""
        exponents = bounds.exponents(problem.distinguishability)
        if (Groups.where(exponents, self.alike).between < LEAST_EXPONENT).any():
            return False  # a constant mechanism is not inside: one way, but not the other, answers must be the same
        most = float((problem.distance @ problem.prior.probabilities).min())
        if bounds.reverse:
            return most > NEAR_THE_TOP * float(problem.distance.max())
        return not bounds.distortion or bounds.distortion < most * (1 - NEAR_THE_TOP)

    def solve(self, problem: Problem, bounds: Bounds, *, options: SolveOptions) -> Solution:
        """Solve the design program for these bounds."""
        if not self.can_solve(problem, bounds):
            raise InvalidProblem(
                "Interior() needs a distortion below the largest possible and secrets whose answers may differ; "
                'use solver="auto" or Highs()'
            )
        reduced = Presolved(
            problem,
            bounds,
            merge_dominated=self.merge_dominated,
            drop_chained=self.drop_chained,
            leave_out_absent=self.leave_out_absent,
            alike=self.alike,
            start=options.start,
        )
        scale = NEGLIGIBLE * (float((problem.distance if bounds.reverse else problem.cost).max()) or 1 / NEGLIGIBLE)
        with host_algebra() as algebra:
            outcome = minimise(
                reduced.program,
                algebra,
                tolerance=0.3 * options.tolerance,
                scale=scale,
                time_limit=options.time_limit,
                progress=options.progress,
            )
        if not np.isfinite(outcome.dual.bound):
            raise SolveFailed("the block interior-point method lost its numbers", status=Status.NUMERICAL)
        stopped = Status.TIME_LIMIT if outcome.out_of_time else Status.NUMERICAL
        return Solution(
            reduced.expand(outcome),
            reduced.multipliers(outcome),
            Status.OPTIMAL if outcome.finished else stopped,
            f"blocks: {reduced.describe(outcome)}, {outcome.iterations} iterations",
        )
