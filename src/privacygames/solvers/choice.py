"""Which engine for which problem."""

from privacygames.bounds import Bounds
from privacygames.problem import Problem
from privacygames.solvers.highs import Highs
from privacygames.solvers.interior import Interior

SMALL = 8_000

Engine = Highs | Interior


def choose(problem: Problem, bounds: Bounds) -> Engine:
    """HiGHS where it is faster or the only one that can; the block interior-point method elsewhere."""
    n, m = problem.shape
    engine = Interior()
    return Highs() if n * n * m <= SMALL or not engine.can_solve(problem, bounds) else engine
