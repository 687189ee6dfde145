"""``Interior``: exact reductions, then the block interior-point method."""

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from time import monotonic

import numpy as np

from privacygames.certificates import NEGLIGIBLE, objective_scale
from privacygames.errors import InvalidProblem, SolveFailed, Status
from privacygames.problem import Bounds, Problem
from privacygames.progress import Progress
from privacygames.solvers.highs import Highs
from privacygames.solvers.interior.main_loop import Outcome, minimise
from privacygames.solvers.interior.presolve import Presolve, ReducedProblem, SecretClasses, reduced_adversaries
from privacygames.solvers.linalg import BlockAlgebra, device_algebra, host_algebra, torch_with
from privacygames.solvers.protocol import Solution, SolveOptions, Solver
from privacygames.solvers.solve_estimate import SMALL, SolveEstimate
from privacygames.validation import is_integer

LEAST_EXPONENT = 1e-8
NEAR_THE_TOP = 1e-6
AIM, NEARLY = 0.3, 0.6
"""The gap to aim for, as a share of the tolerance, which leaves room for repair; and the one that needs no second run,
where rounding ends the first before it gets there."""

WORTH_TELLING = 2_000_000
"""Blocks with fewer entries than this, together, take a few seconds."""


@dataclass(frozen=True)
class Interior:
    """A block interior-point method on the reduced program: exact for the full one, at hundreds of secrets.

    It takes every kind of design; :meth:`can_solve` says which corner cases it leaves to HiGHS.

    Attributes:
        merge_dominated: leave out observables (and guesses) that others dominate.
        drop_implied: leave out ratios that shorter ones imply.
        defer_zero_prior: leave out secrets nobody has until they limit the mechanism.
        threads: how many threads to work with; None for one a processor that this process may use, or fewer where
            there is little to do.
        device: "host" for those threads; or one of PyTorch's devices, such as "cuda" for a GPU (extra ``gpu``).
        alike: take secrets together that this much of an exponent, or less, ties together: 0 for those that are equal.
    """

    merge_dominated: bool = True
    drop_implied: bool = True
    defer_zero_prior: bool = True
    alike: float = 1e-7
    threads: int | None = None
    device: str = "host"

    def __post_init__(self) -> None:
        if self.device != "host":
            torch_with(self.device)
        if self.threads is not None and not (is_integer(self.threads) and self.threads >= 1):
            raise InvalidProblem(f"threads is {self.threads!r}; it must be a whole number of at least 1, or None")

    @property
    def fallbacks(self) -> tuple[Solver, ...]:
        """HiGHS, by both its methods."""
        return (Highs("ipm"), Highs("simplex"))

    def can_solve(self, problem: Problem, bounds: Bounds) -> bool:
        """Whether the program is of the kind this method is for."""
        if np.isinf(problem.cost).any():
            return False
        exponents = bounds.log_ratio_bounds(problem.distinguishability)
        if (SecretClasses.where(exponents, self.alike).between < LEAST_EXPONENT).any():
            return False  # a constant mechanism is hardly inside
        for each in reduced_adversaries(problem, bounds, merge_dominated=True):
            least = float(each.blind.min())
            if each.part == "sought" and not least > NEAR_THE_TOP * float(each.adversary.errors.max()):
                return False
            if each.part == "top" and (each.blind <= least * (1 + NEAR_THE_TOP)).sum() > 1:
                return False  # without one best guess there is no inside
        return True

    def estimate(self, problem: Problem, bounds: Bounds) -> SolveEstimate:
        """What a design is going to take on this machine."""
        kept = ReducedProblem.of(problem, bounds, merge_dominated=self.merge_dominated, alike=self.alike)
        return kept.estimate(self.threads, self.device)

    def solve(self, problem: Problem, bounds: Bounds, *, options: SolveOptions) -> Solution:
        """Solve the design program for these bounds."""
        if not self.can_solve(problem, bounds):
            raise InvalidProblem(
                "Interior() needs finite costs, one best guess without an output where the largest distortion is asked "
                'for, and secrets that are not too nearly the same; use solver="auto" or Highs()'
            )
        started = monotonic()
        reduced, outcome = self._minimised(problem, bounds, options)
        near = NEARLY * options.tolerance
        if not (outcome.finished or outcome.out_of_time or outcome.gap <= near):
            # With everyone there, and the other kind of steps.
            left = None if options.time_limit is None else max(options.time_limit - (monotonic() - started), 1e-3)
            whole = replace(self, defer_zero_prior=False)
            second = whole._minimised(problem, bounds, replace(options, time_limit=left), another=True)
            if second[1].finished or second[1].gap < outcome.gap:
                reduced, outcome = second
        if not np.isfinite(outcome.bound):
            raise SolveFailed("the block interior-point method lost its numbers", status=Status.NUMERICAL)
        where = "" if self.device == "host" else f", on {self.device}"
        stopped = Status.TIME_LIMIT if outcome.out_of_time else Status.NUMERICAL
        return Solution(
            reduced.expand(outcome.probabilities),
            reduced.dual_solution(outcome.dual, outcome.probabilities),
            Status.OPTIMAL if outcome.finished or outcome.gap <= near else stopped,
            f"blocks: {reduced.describe(len(outcome.secrets), outcome.ratios)}, {outcome.iterations} iterations{where}",
        )

    def _algebra(self, estimate: SolveEstimate) -> AbstractContextManager[BlockAlgebra]:
        if self.device == "host":
            return host_algebra(estimate.workers, compiled=estimate.loops != "none")
        return device_algebra(self.device, threads=self.threads)

    def _minimised(
        self, problem: Problem, bounds: Bounds, options: SolveOptions, *, another: bool = False
    ) -> tuple[Presolve, Outcome]:
        reduced = Presolve(
            problem,
            bounds,
            merge_dominated=self.merge_dominated,
            drop_implied=self.drop_implied,
            defer_zero_prior=self.defer_zero_prior,
            alike=self.alike,
            start=options.start,
            threads=self.threads,
            device=self.device,
        )
        _tell(reduced.estimate, options)
        unit = objective_scale(bounds, problem.cost, problem.prior.probabilities, bounds.adversaries(problem))
        # Where rounding wins, the iterates are not numbers; the bound is looked at before anything is returned.
        with self._algebra(reduced.estimate) as algebra, np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            outcome = minimise(
                reduced.program,
                algebra,
                tolerance=AIM * options.tolerance,
                scale=NEGLIGIBLE * unit,
                time_limit=options.time_limit,
                progress=options.progress,
                enough=options.enough,
                careful=(reduced.estimate.entries < SMALL) != another,
            )
        return reduced, outcome


def _tell(estimate: SolveEstimate, options: SolveOptions) -> None:
    """Say what is to be expected of a long design before it starts."""
    if options.progress is None or estimate.entries < WORTH_TELLING:
        return
    message = f"expected: {estimate}"
    if estimate.on_host and estimate.loops == "to compile":
        message += "; before that, loops are compiled, once on a machine, which takes half a minute"
    if options.time_limit is not None and estimate.on_host and estimate.seconds > options.time_limit:
        message += "; it will probably be stopped by the time limit, and say its gap"
    options.progress(Progress(job="design", done=0, message=message))
