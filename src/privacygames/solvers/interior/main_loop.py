"""The loop: a primal-dual interior-point method with one dense block per observable.

Mehrotra's predictor-corrector with Gondzio's centrality correctors on

    min Σ_o ⟨c_o, v_o⟩   s.t.   Σ_o v_o = 1,  Σ_o x_o ≥ d_m,  and in each block ratios, guesses, v ≥ 0,

started from a mechanism that reveals nothing, which is strictly feasible. The Newton matrix sees a working set of
ratios and of secrets that changes as the method goes on; steps are cut so that *every* ratio holds and every secret
left out can still have a row, so each iterate is a valid mechanism and stopping early is safe.
docs/theory/solver.md derives it.
"""

from dataclasses import dataclass
from math import inf, isfinite
from time import monotonic

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.progress import Progress, ProgressCallback
from privacygames.solvers.interior.formulation import Formulation
from privacygames.solvers.interior.lower_bound import DualBound
from privacygames.solvers.interior.presolve import Filled, fill_in
from privacygames.solvers.interior.program import BlockProgram, DualPoint
from privacygames.solvers.interior.start import first_present, first_state
from privacygames.solvers.interior.steps import Iterate, Stepper
from privacygames.solvers.linalg import HOST, Backend, BlockAlgebra, FactorisationFailed

MOST_ITERATIONS = 300
PATIENCE, LAST_PATIENCE = 40, 5
"""After so many iterations without a tenth off the gap, proved or estimated, rounding has won; and after so many once
products are as small as they are meant to be."""

ROOM, LEAST_ROOM = 0.3, 1e-3
"""A value is far enough below what is enough when that leaves so much of what may still be gained, and so much of it in
any case: a start from there is more central than from the minimum."""


@dataclass
class Outcome:
    """A mechanism, and the proof of a bound on the optimum.

    ``secrets`` are those in the program at the end, and ``ratios`` how many it has between them; ``scale`` is what
    counts as next to nothing.
    """

    probabilities: FloatArray
    proof: DualBound
    value: float
    iterations: int
    secrets: IntArray
    ratios: int
    scale: float
    finished: bool = False
    out_of_time: bool = False

    @property
    def bound(self) -> float:
        """What the minimum is at least."""
        return self.proof.bound

    @property
    def gap(self) -> float:
        """How much less the minimum may be, as a share of the value; ∞ where nothing is known."""
        left = self.value - self.bound
        return left / max(self.value, -self.bound, self.scale) if isfinite(left) else inf

    @property
    def dual(self) -> DualPoint:
        """The dual values that prove it."""
        return self.proof.point


def minimise(
    program: BlockProgram,
    algebra: BlockAlgebra,
    *,
    tolerance: float,
    scale: float,
    time_limit: float | None = None,
    progress: ProgressCallback | None = None,
    enough: float | None = None,
    careful: bool = False,
) -> Outcome:
    """Solve a program until value − bound ≤ tolerance·max(|bound or value|, scale), or time or accuracy runs out.

    Where some value is ``enough`` it may end well below that.

    The value is the cost, or minus the distortion privacy where that is maximised; it counts only once the
    iterate keeps its limits. ``careful`` steps are shorter, and end what others do not.
    """
    started = monotonic()
    stepper = Stepper(algebra, tolerance, scale)
    blocks, size = program.objective.shape
    formulation = Formulation.of(
        program,
        first_present(program),
        algebra.batches(blocks, width=size + program.adversaries),
        algebra.backend,
    )
    now = stepper.first(formulation, first_state(formulation, scale))
    reached, since = (inf, inf), 0
    best = Outcome(now.column, now.proof, now.value, 0, formulation.present, formulation.ratio_count, scale)
    for iteration in range(1, MOST_ITERATIONS + 1):
        gap = best.gap
        seconds = monotonic() - started
        if progress is not None:
            progress(_told(now, best, iteration - 1, gap, seconds))
        # While multipliers settle the bound may stand still, or below 0: the estimate shows that they do.
        hoped = abs(now.value - now.proof.estimate) if now.value < inf else inf
        if gap < 0.9 * reached[0] or hoped < 0.9 * reached[1]:
            reached, since = (min(gap, reached[0]), min(hoped, reached[1])), iteration
        close = gap <= tolerance or (enough is not None and _is_below(best.value, hoped, enough))
        others = _others(program, best.probabilities, best.secrets, algebra.backend) if close else None
        best.finished = others is not None and not len(others.failed)
        best.out_of_time = not best.finished and time_limit is not None and seconds > time_limit
        if best.finished or best.out_of_time:
            break
        if others is not None:
            admitted = stepper.admit(now, others.failed)
            if admitted is None:
                break
            now = admitted
        try:
            moved = stepper.step(now, careful=careful)
            if moved is None and not careful:  # where a longer step goes nowhere, a plain one may
                moved = stepper.step(now, careful=True)
        except FactorisationFailed:
            break
        if moved is None:
            break
        now = moved
        _keep_best(best, now, iteration)
        waited = iteration - since
        if waited > PATIENCE or (waited > LAST_PATIENCE and stepper.arrived(now)):
            break
    if not best.finished or others is None:
        others = _others(program, best.probabilities, best.secrets, algebra.backend)
    best.probabilities = _everyone(program, best.probabilities, best.secrets, others)
    return best


def _is_below(value: float, hoped: float, enough: float) -> bool:
    """Whether a value, of which so much may still be gained, is well below what is enough."""
    return enough - value >= max(ROOM * hoped, LEAST_ROOM * abs(enough))


def _keep_best(best: Outcome, now: Iterate, iteration: int) -> None:
    """Remember the best mechanism and the best bound so far; what more secrets have agreed to is always better."""
    present = now.formulation.present
    value = now.value
    if value < best.value or len(present) > len(best.secrets):
        best.value, best.probabilities = value, now.column
        best.secrets, best.ratios = present, now.formulation.ratio_count
    if now.proof.bound > best.bound:
        best.proof = now.proof
    best.iterations = iteration


def _told(now: Iterate, best: Outcome, iteration: int, gap: float, seconds: float) -> Progress:
    message = f"iteration {iteration}, gap {gap:.1e}, {now.formulation.working_ratios} ratios in the working set"
    return Progress(job="design", done=iteration, seconds=seconds, value=abs(best.value), gap=gap, message=message)


def _others(program: BlockProgram, column: FloatArray, secrets: IntArray, backend: Backend) -> Filled:
    """What goes with columns of some secrets."""
    left_out = np.setdiff1d(np.arange(program.objective.shape[1]), secrets)
    return fill_in(program.exponents, column, secrets, left_out, backend)


def _everyone(program: BlockProgram, column: FloatArray, secrets: IntArray, others: Filled) -> FloatArray:
    """The mechanism for every secret of a program, (observables, secrets)."""
    share, mixed = 0.0, column
    while len(others.failed):  # only after a run that was stopped: a constant mechanism has a margin for everyone
        share = min(1.0, 4 * share + 1e-9)
        mixed = (1 - share) * column + share * column.mean(axis=1, keepdims=True)
        others = _others(program, mixed, secrets, HOST)
    full = np.empty(program.objective.shape)
    full[:, secrets], full[:, others.whose] = mixed, others.columns
    return full
