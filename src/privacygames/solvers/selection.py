"""Which solver for which problem."""

from dataclasses import dataclass

from privacygames.problem import Bounds, Problem
from privacygames.solvers.highs import Highs
from privacygames.solvers.interior import Interior
from privacygames.solvers.protocol import Solution, SolveOptions, Solver

SMALL = 8_000
"""Up to this n²m HiGHS on the program written out is the faster one."""


@dataclass(frozen=True)
class WithFallbacks:
    """A solver with other fallbacks than its own."""

    solver: Solver
    fallbacks: tuple[Solver, ...]

    def solve(self, problem: Problem, bounds: Bounds, *, options: SolveOptions) -> Solution:
        """By the solver itself."""
        return self.solver.solve(problem, bounds, options=options)


def choose(problem: Problem, bounds: Bounds) -> Solver:
    """HiGHS where it is faster or the only one that can; the block interior-point method elsewhere."""
    n, m = problem.shape
    blocks, written_out = Interior(), Highs()
    if n * n * m <= SMALL or not blocks.can_solve(problem, bounds):
        return WithFallbacks(written_out, (*written_out.fallbacks, blocks))
    return blocks
