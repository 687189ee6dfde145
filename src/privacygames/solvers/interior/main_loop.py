"""The main loop: a primal-dual interior-point method with one dense block per observable.

Mehrotra's predictor-corrector with Gondzio's centrality correctors on

    min Σ_o ⟨c_o, v_o⟩   s.t.   Σ_o v_o = 1,  Σ_o x_k(o) ≥ d_k,  and in each block ratio bounds, guesses, v ≥ 0,

started from a strictly feasible mechanism. The Newton matrix contains a working set of ratios and of secrets that
changes as the method goes on; steps are cut so that *every* ratio bound holds and the mechanism extends to every
deferred secret, so each iterate is a valid mechanism and stopping early is safe. docs/theory/solver.md derives it.
"""

from dataclasses import dataclass
from math import inf, isfinite
from time import monotonic

import numpy as np

from privacygames.arrays import FloatArray, IntArray, missing_indices
from privacygames.progress import Progress, ProgressCallback
from privacygames.solvers.interior.lower_bound import DualBound
from privacygames.solvers.interior.presolve import Extension, extend_mechanism
from privacygames.solvers.interior.program import BlockProgram, DualPoint
from privacygames.solvers.interior.restricted_program import RestrictedProgram
from privacygames.solvers.interior.settings import InteriorSettings
from privacygames.solvers.interior.start import initial_secrets, initial_state
from privacygames.solvers.interior.steps import Iterate, Stepper
from privacygames.solvers.linalg import HOST, Backend, BlockAlgebra, FactorisationFailed

FIRST_MIXTURE, MIXTURE_GROWTH = 1e-9, 4
"""Fraction of a constant mechanism that is mixed in first where a stopped run does not extend to every secret, and the
factor by which it grows."""


@dataclass
class BlockSolution:
    """The best mechanism of a run so far, and the best bound.

    Attributes:
        probabilities: (observables, secrets): of the secrets in the program, and at the end of all.
        dual_bound: the dual values with the best bound.
        value: the mechanism's value.
        iterations: iterations made.
        secrets: the secrets in the program.
        ratio_count: ratio bounds between them.
        scale: the value that counts as negligible.
        finished: whether the gap is small enough and the mechanism extends to every secret.
        out_of_time: whether the time limit ended the run.
    """

    probabilities: FloatArray
    dual_bound: DualBound
    value: float
    iterations: int
    secrets: IntArray
    ratio_count: int
    scale: float
    finished: bool = False
    out_of_time: bool = False

    @property
    def bound(self) -> float:
        """A lower bound on the minimum."""
        return self.dual_bound.bound

    @property
    def gap(self) -> float:
        """The relative gap; ∞ where there is no mechanism or no bound yet."""
        difference = self.value - self.bound
        return difference / max(self.value, -self.bound, self.scale) if isfinite(difference) else inf

    @property
    def dual_point(self) -> DualPoint:
        """The dual values that prove the bound."""
        return self.dual_bound.point


def minimise(
    program: BlockProgram,
    algebra: BlockAlgebra,
    *,
    tolerance: float,
    scale: float,
    settings: InteriorSettings,
    time_limit: float | None = None,
    progress: ProgressCallback | None = None,
    enough: float | None = None,
    linear_only: bool = False,
) -> BlockSolution:
    """Solve a program until the relative gap is at most the tolerance, or time or accuracy runs out.

    The value is the cost, or minus the distortion where that is maximised; it counts only while the iterate satisfies
    the limits on the cost.

    Args:
        program: the program.
        algebra: the linear algebra of blocks.
        tolerance: relative gap to stop at.
        scale: the value that counts as negligible beside costs.
        settings: the method's settings.
        time_limit: seconds after which to stop.
        progress: called after every iteration.
        enough: the run may end once its value is well below this.
        linear_only: whether to skip the blocking-constraint correction and centre more; slower, but converges in cases
            where the corrected steps stall.
    """
    started = monotonic()
    stepper = Stepper(algebra, tolerance, scale, settings)
    blocks, size = program.objective.shape
    restricted = RestrictedProgram.of(
        program,
        initial_secrets(program, settings),
        algebra.batch_slices(blocks, width=size + program.adversary_count),
        algebra.backend,
        settings,
    )
    iterate = stepper.initial_iterate(restricted, initial_state(restricted, scale, settings))
    lowest_gaps, last_progress = (inf, inf), 0
    best = BlockSolution(
        iterate.columns, iterate.dual_bound, iterate.value, 0, restricted.secrets, restricted.ratio_count, scale
    )
    for iteration in range(1, settings.max_iterations + 1):
        gap = best.gap
        seconds = monotonic() - started
        if progress is not None:
            progress(_progress(iterate, best, iteration - 1, gap, seconds))
        # While dual values settle the bound may stand still, or below 0: the estimate shows that they do.
        estimated_gap = abs(iterate.value - iterate.dual_bound.dual_objective) if iterate.value < inf else inf
        factor = settings.progress_factor
        if gap < factor * lowest_gaps[0] or estimated_gap < factor * lowest_gaps[1]:
            lowest_gaps = min(gap, lowest_gaps[0]), min(estimated_gap, lowest_gaps[1])
            last_progress = iteration
        close = gap <= tolerance or (enough is not None and _is_enough(best.value, estimated_gap, enough, settings))
        extension = _extension(program, best.probabilities, best.secrets, algebra.backend) if close else None
        best.finished = extension is not None and not len(extension.failed)
        best.out_of_time = not best.finished and time_limit is not None and seconds > time_limit
        if best.finished or best.out_of_time:
            break
        if extension is not None:
            admitted = stepper.admit(iterate, extension.failed)
            if admitted is None:
                break
            iterate = admitted
        try:
            next_iterate = stepper.step(iterate, linear_only=linear_only)
            if next_iterate is None and not linear_only:  # a linear step may succeed where a corrected one fails
                next_iterate = stepper.step(iterate, linear_only=True)
        except FactorisationFailed:
            break
        if next_iterate is None:
            break
        iterate = next_iterate
        _update_best(best, iterate, iteration)
        waited = iteration - last_progress
        if waited > settings.patience or (waited > settings.final_patience and stepper.products_converged(iterate)):
            break
    if not best.finished or extension is None:
        extension = _extension(program, best.probabilities, best.secrets, algebra.backend)
    best.probabilities = _all_secrets(program, best.probabilities, best.secrets, extension)
    return best


def _is_enough(value: float, estimated_gap: float, enough: float, settings: InteriorSettings) -> bool:
    """Whether a value is below what is enough by a good part of what may still be gained."""
    return enough - value >= max(settings.enough_gain * estimated_gap, settings.enough_cost * abs(enough))


def _update_best(best: BlockSolution, iterate: Iterate, iteration: int) -> None:
    """Remember the best mechanism and bound so far; a mechanism for more secrets is always better."""
    secrets, value = iterate.restricted.secrets, iterate.value
    if value < best.value or len(secrets) > len(best.secrets):
        best.value, best.probabilities = value, iterate.columns
        best.secrets, best.ratio_count = secrets, iterate.restricted.ratio_count
    if iterate.dual_bound.bound > best.bound:
        best.dual_bound = iterate.dual_bound
    best.iterations = iteration


def _progress(iterate: Iterate, best: BlockSolution, iteration: int, gap: float, seconds: float) -> Progress:
    count = iterate.restricted.working_ratio_count
    message = f"iteration {iteration}, gap {gap:.1e}, {count} ratios in the working set"
    return Progress(job="design", done=iteration, seconds=seconds, value=abs(best.value), gap=gap, message=message)


def _extension(program: BlockProgram, columns: FloatArray, secrets: IntArray, backend: Backend) -> Extension:
    """The columns of some secrets extended to all others."""
    deferred = missing_indices(secrets, program.objective.shape[1])
    return extend_mechanism(program.exponents, columns, secrets, deferred, backend)


def _all_secrets(program: BlockProgram, columns: FloatArray, secrets: IntArray, extension: Extension) -> FloatArray:
    """The mechanism for all secrets of a program, (observables, secrets)."""
    fraction, mixed = 0.0, columns
    while len(extension.failed):  # only after a run that was stopped: a constant mechanism extends to every secret
        fraction = min(1.0, MIXTURE_GROWTH * fraction + FIRST_MIXTURE)
        mixed = (1 - fraction) * columns + fraction * columns.mean(axis=1, keepdims=True)
        extension = _extension(program, mixed, secrets, HOST)
    full = np.empty(program.objective.shape)
    full[:, secrets], full[:, extension.secrets] = mixed, extension.columns
    return full
