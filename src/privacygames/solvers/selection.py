"""Which solver for which problem, and where it works."""

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

VARIABLE = "PRIVACYGAMES_DEVICE"
"""An environment variable that says where this process, and those it starts, solve: "auto", "host", "cuda", …"""

PAYS = 5_000_000
"""From this n²m on a GPU is the faster one."""

SMALL = 8_000
"""Up to this n²m HiGHS on the program written out is the faster one."""


NEARLY_EQUAL = 1e-4
"""Exponents below this leave a margin of less than 10⁵ times HiGHS' tolerance: repair may cost more than the gap."""


@dataclass(frozen=True)
class WithFallbacks:
    """A solver with other fallbacks than its own."""

    solver: Solver
    fallbacks: tuple[Solver, ...]

    def solve(self, problem: Problem, bounds: Bounds, *, options: SolveOptions) -> Solution:
        """By the solver itself."""
        return self.solver.solve(problem, bounds, options=options)


def choose(problem: Problem, bounds: Bounds) -> Solver:
    """HiGHS where it is faster or the only one that can; the block interior-point method elsewhere.

    The latter on a GPU where there is one with room for it and it pays, or as ``PRIVACYGAMES_DEVICE`` says.
    """
    n, m = problem.shape
    told = os.environ.get(VARIABLE, "auto")
    device = ("cuda" if n * n * m >= PAYS and gpu_fits(n * n * m) else "host") if told == "auto" else told
    blocks, written_out = Interior(device=device), Highs()
    small = n * n * m <= SMALL and not _nearly_equal(problem, bounds)
    if small or not blocks.can_solve(problem, bounds):
        return WithFallbacks(written_out, (*written_out.fallbacks, blocks))
    return blocks


def _nearly_equal(problem: Problem, bounds: Bounds) -> bool:
    """Whether some secrets have to be so nearly alike that HiGHS' tolerance is more than what tells them apart."""
    return bool((bounds.log_ratio_bounds(problem.distinguishability) < NEARLY_EQUAL).any())


def use_device(device: str) -> None:
    """From now on, this process and those it starts solve there, where ``solver="auto"`` chooses the block method.

    Args:
        device: "auto" for a GPU where there is one and it pays, "host", or one of PyTorch's devices.

    Raises:
        InvalidProblem: there is no such device here.
    """
    if device != "auto":
        Interior(device=device)
    os.environ[VARIABLE] = device


@contextmanager
def solving_on(device: str | None) -> Iterator[None]:
    """As :func:`use_device`, but only for a while; None changes nothing."""
    before = os.environ.get(VARIABLE)
    if device is not None:
        use_device(device)
    try:
        yield
    finally:
        if device is not None:
            os.environ.pop(VARIABLE)
            os.environ.update({} if before is None else {VARIABLE: before})


def gpu_fits(ratios: int) -> bool:
    """Whether PyTorch sees a GPU with room for a program of so many ratios."""
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
