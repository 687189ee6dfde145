"""``Interior``: exact reductions, then the block interior-point method."""

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from time import monotonic

import numpy as np

from privacygames.certificates import NEGLIGIBLE, objective_scale
from privacygames.errors import Field, InvalidProblem, SolveFailed, Status
from privacygames.problem import Bounds, Problem
from privacygames.progress import Progress
from privacygames.solvers.highs import Highs
from privacygames.solvers.interior.main_loop import BlockSolution, minimise
from privacygames.solvers.interior.presolve import Presolve, ReducedProblem, SecretClasses, reduced_adversaries
from privacygames.solvers.interior.settings import DEFAULTS, InteriorSettings
from privacygames.solvers.linalg import BlockAlgebra, device_algebra, host_algebra, require_torch
from privacygames.solvers.protocol import Solution, SolveOptions, Solver
from privacygames.solvers.solve_estimate import SolveEstimate
from privacygames.validation import is_integer, require_instance

ANNOUNCED_ENTRIES = 2_000_000
"""Entries of all blocks from which the expected time is reported before a design starts: below, it takes seconds."""


@dataclass(frozen=True)
class Interior:
    """A block interior-point method on the reduced program: exact for the full one, at hundreds of secrets.

    It takes every kind of design; :meth:`can_solve` says which corner cases it leaves to HiGHS.

    Attributes:
        merge_dominated: leave out observables (and guesses) that others dominate.
        drop_implied: leave out ratio bounds that others imply.
        defer_zero_prior: leave out secrets without prior until they constrain the mechanism.
        merge_exponent: merge secrets whose exponent is at most this; 0 merges only secrets with equal rows.
        threads: number of threads; None for one per processor that this process may use, or fewer where there is
            little to do.
        device: "host" for those threads; or one of PyTorch's devices, such as "cuda" for a GPU (extra ``gpu``).
        settings: numerical choices of the method.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Numbers(range(4))), cost="absolute")
    >>> mechanism = pg.design(problem, epsilon=1.0, solver=pg.Interior(threads=1))
    >>> mechanism.certificate.provenance.solver
    'blocks: 4 of 4 observables, 4 of 4 secrets, 6 of 12 ratios, ... iterations'
    """

    merge_dominated: bool = True
    drop_implied: bool = True
    defer_zero_prior: bool = True
    merge_exponent: float = 1e-7
    threads: int | None = None
    device: str = "host"
    settings: InteriorSettings = DEFAULTS

    def __post_init__(self) -> None:
        if self.device != "host":
            require_torch(self.device)
        if self.threads is not None and not (is_integer(self.threads) and self.threads >= 1):
            raise InvalidProblem(
                Field("threads"), f" is {self.threads!r}; it must be a whole number of at least 1, or None"
            )
        require_instance(self.settings, InteriorSettings, "settings")

    @property
    def fallbacks(self) -> tuple[Solver, ...]:
        """HiGHS, by both its methods."""
        return (Highs("ipm"), Highs("simplex"))

    def can_solve(self, problem: Problem, bounds: Bounds) -> bool:
        """Whether the program is of the kind this method is for.

        >>> problem = pg.Problem(pg.Prior.uniform(pg.Numbers(range(4))), cost="absolute")
        >>> pg.Interior().can_solve(problem, pg.Bounds(epsilon=1.0))
        True
        """
        if np.isinf(problem.cost).any():
            return False
        exponents = bounds.log_ratio_bounds(problem.distinguishability)
        classes = SecretClasses.of(exponents, self.merge_exponent)
        if (classes.class_exponents < self.settings.min_exponent).any():
            return False  # a constant mechanism is barely strictly feasible
        tolerance = self.settings.tie_tolerance
        for adversary in reduced_adversaries(problem, bounds, merge_dominated=True, settings=self.settings):
            least = float(adversary.blind_errors.min())
            if adversary.role == "maximised" and not least > tolerance * float(adversary.adversary.errors.max()):
                return False
            if adversary.role == "at_maximum" and (adversary.blind_errors <= least * (1 + tolerance)).sum() > 1:
                return False  # without a single best guess the cone has no interior
        return True

    def estimate(self, problem: Problem, bounds: Bounds) -> SolveEstimate:
        """The time and memory that a design takes on this machine.

        >>> problem = pg.Problem(pg.Prior.uniform(pg.Numbers(range(4))), cost="absolute")
        >>> pg.Interior().estimate(problem, pg.Bounds(epsilon=1.0)).fits
        True
        """
        reduced = ReducedProblem.of(
            problem,
            bounds,
            merge_dominated=self.merge_dominated,
            merge_exponent=self.merge_exponent,
            settings=self.settings,
        )
        return reduced.estimate(self.threads, self.device)

    def solve(self, problem: Problem, bounds: Bounds, *, options: SolveOptions) -> Solution:
        """Solve the design program for these bounds."""
        if not self.can_solve(problem, bounds):
            raise InvalidProblem(
                "Interior() needs finite costs, one best guess without an output where the largest distortion is asked "
                'for, and secrets that are sufficiently distinguishable; use solver="auto" or Highs()'
            )
        started = monotonic()
        presolve, solution = self._minimise(problem, bounds, options)
        accepted = self.settings.gap_accepted * options.tolerance
        if not (solution.finished or solution.out_of_time or solution.gap <= accepted):
            # With every secret in the program, and the other kind of steps.
            left = None if options.time_limit is None else max(options.time_limit - (monotonic() - started), 1e-3)
            everyone = replace(self, defer_zero_prior=False)
            second = everyone._minimise(problem, bounds, replace(options, time_limit=left), retry=True)
            if second[1].finished or second[1].gap < solution.gap:
                presolve, solution = second
        if not np.isfinite(solution.bound):
            raise SolveFailed("the block interior-point method broke down numerically", status=Status.NUMERICAL)
        size = presolve.describe(len(solution.secrets), solution.ratio_count)
        where = "" if self.device == "host" else f", on {self.device}"
        stopped = Status.TIME_LIMIT if solution.out_of_time else Status.NUMERICAL
        return Solution(
            presolve.expand(solution.probabilities),
            presolve.dual_solution(solution.dual_point, solution.probabilities),
            Status.OPTIMAL if solution.finished or solution.gap <= accepted else stopped,
            f"blocks: {size}, {solution.iterations} iterations{where}",
        )

    def _algebra(self, estimate: SolveEstimate) -> AbstractContextManager[BlockAlgebra]:
        if self.device == "host":
            return host_algebra(estimate.workers)
        return device_algebra(self.device, threads=self.threads)

    def _minimise(
        self, problem: Problem, bounds: Bounds, options: SolveOptions, *, retry: bool = False
    ) -> tuple[Presolve, BlockSolution]:
        """One run of the method; a retry takes linear steps where the first run did not, and vice versa."""
        presolve = Presolve(
            problem,
            bounds,
            merge_dominated=self.merge_dominated,
            drop_implied=self.drop_implied,
            defer_zero_prior=self.defer_zero_prior,
            merge_exponent=self.merge_exponent,
            start=options.start,
            settings=self.settings,
            threads=self.threads,
            device=self.device,
        )
        estimate = presolve.estimate
        _announce(estimate, options)
        unit = objective_scale(bounds, problem.cost, problem.prior.probabilities, bounds.adversaries(problem))
        # Where rounding errors dominate, iterates are not numbers; the bound is checked before anything is returned.
        with self._algebra(estimate) as algebra, np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            solution = minimise(
                presolve.program,
                algebra,
                tolerance=self.settings.gap_target * options.tolerance,
                scale=NEGLIGIBLE * unit,
                settings=self.settings,
                time_limit=options.time_limit,
                progress=options.progress,
                enough=options.enough,
                linear_only=(estimate.entries < self.settings.linear_only_below) != retry,
            )
        return presolve, solution


def _announce(estimate: SolveEstimate, options: SolveOptions) -> None:
    """Report the expected time and memory of a long design before it starts."""
    if options.progress is None or estimate.entries < ANNOUNCED_ENTRIES:
        return
    message = f"expected: {estimate}"
    if options.time_limit is not None and estimate.on_host and estimate.seconds > options.time_limit:
        message += "; it will probably be stopped by the time limit, and report the remaining gap"
    options.progress(Progress(job="design", done=0, message=message))
