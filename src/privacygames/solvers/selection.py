"""The choice of a solver for a problem, and of the device that it works on."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec

from privacygames.problem import Bounds, Problem
from privacygames.solvers.highs import Highs
from privacygames.solvers.interior import Interior
from privacygames.solvers.memory import DEVICE_SHARE, device_free
from privacygames.solvers.protocol import Solution, SolveOptions, Solver
from privacygames.solvers.solve_estimate import DEVICE_BYTES
from privacygames.threads import DEVICE_VARIABLE

GPU_ENTRIES = 5_000_000
"""n²m from which a GPU is faster than two processors."""

HIGHS_ENTRIES = 300
"""n²m up to which HiGHS solves the program written out: six secrets, in 5 ms where the block method takes 4, exactly
(an optimal vertex, not a gap of 1e-7), as in examples that are worked out by hand. With twenty secrets it takes five to
twenty times as long as the block method."""

NEARLY_EQUAL = 1e-4
"""Exponents below this leave a margin of less than 10⁵ times HiGHS' tolerance: repair may cost more than the gap."""


@dataclass(frozen=True)
class WithFallbacks:
    """A solver with other fallbacks than its own."""

    solver: Solver
    fallbacks: tuple[Solver, ...]

    def solve(self, problem: Problem, bounds: Bounds, *, options: SolveOptions) -> Solution:
        """The solver's own solution."""
        return self.solver.solve(problem, bounds, options=options)


def choose(problem: Problem, bounds: Bounds) -> Solver:
    """HiGHS where it is faster or the only one that can; the block interior-point method elsewhere.

    The latter works on a GPU where there is one with room for it and it is faster, or as ``PRIVACYGAMES_DEVICE`` says.

    >>> from privacygames.solvers import choose
    >>> problem = pg.Problem(pg.Prior.uniform(pg.Grid(6, 6)))
    >>> type(choose(problem, pg.Bounds(epsilon=1.0))).__name__
    'Interior'
    """
    n, m = problem.shape
    device = os.environ.get(DEVICE_VARIABLE, "auto")
    if device == "auto":
        device = "cuda" if n * n * m >= GPU_ENTRIES and gpu_fits(n * n * m) else "host"
    interior, highs = Interior(device=device), Highs()
    small = n * n * m <= HIGHS_ENTRIES and not _nearly_equal(problem, bounds)
    if small or not interior.can_solve(problem, bounds):
        return WithFallbacks(highs, (*highs.fallbacks, interior))
    return interior


def _nearly_equal(problem: Problem, bounds: Bounds) -> bool:
    """Whether some secrets' rows have to be equal up to little more than HiGHS' tolerance."""
    return bool((bounds.log_ratio_bounds(problem.distinguishability) < NEARLY_EQUAL).any())


def use_device(device: str) -> None:
    """Set the device of this process and those it starts, where ``solver="auto"`` chooses the block method.

    Args:
        device: "auto" for a GPU where there is one and it is faster, "host", or one of PyTorch's devices.

    Raises:
        InvalidProblem: there is no such device here.
    """
    if device != "auto":
        Interior(device=device)
    os.environ[DEVICE_VARIABLE] = device


@contextmanager
def temporary_device(device: str | None) -> Iterator[None]:
    """As :func:`use_device`, but only within a ``with`` block; None changes nothing."""
    before = os.environ.get(DEVICE_VARIABLE)
    if device is not None:
        use_device(device)
    try:
        yield
    finally:
        if device is not None:
            os.environ.pop(DEVICE_VARIABLE)
            os.environ.update({} if before is None else {DEVICE_VARIABLE: before})


def gpu_fits(ratios: int) -> bool:
    """Whether PyTorch sees a GPU with room for a program with so many ratios."""
    if find_spec("torch") is None:
        return False
    try:
        import torch

        if not torch.cuda.is_available():
            return False
        free, _ = device_free(torch.device("cuda"))
    except (ImportError, OSError, RuntimeError):  # installed, but it does not work here
        return False
    return ratios * DEVICE_BYTES <= DEVICE_SHARE * free
