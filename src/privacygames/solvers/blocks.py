"""The block engine: a primal-dual interior-point method with one dense block per observable.

Mehrotra's predictor-corrector with Gondzio's centrality correctors on

    min Σ_o ⟨c_o, v_o⟩   s.t.   Σ_o v_o = 1,  Σ_o x_o ≥ d_m,  and in each block ratios, guesses, v ≥ 0,

started from a mechanism that reveals nothing, which is strictly feasible. The Newton matrix sees a working set of
ratios and of secrets that changes as the method goes on; steps are cut so that *every* ratio holds and every secret
left out can still have a row, so each iterate is a valid mechanism and stopping early is safe.
docs/theory/solver.md derives it; ``run.py`` is one iterate and how it moves.
"""

from collections.abc import Callable
from math import inf
from time import monotonic

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.absent import fill_in
from privacygames.solvers.factors import Breakdown, threads
from privacygames.solvers.game import Game, Outcome
from privacygames.solvers.run import Run
from privacygames.solvers.solution import Progress

MOST_ITERATIONS = 300
PATIENCE = 40
"""After so many iterations without a tenth off the gap, rounding has won."""


def play(
    game: Game,
    *,
    tolerance: float,
    scale: float,
    time_limit: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Solve a game until value − bound ≤ tolerance·max(|bound or value|, scale), or time or accuracy runs out.

    The value is the cost, or minus the distortion privacy where that is maximised; it counts only once the
    iterate keeps its limits.
    """
    started = monotonic()
    with threads() as pool:
        run = Run(game, pool, tolerance, scale)
        reached, since = inf, 0
        best = Outcome(run.column.copy(), run.found, run.value, 0, run.inside, run.ratio_total)
        for iteration in range(1, MOST_ITERATIONS + 1):
            size = max(best.value, -best.prices.bound, scale)
            gap = (best.value - best.prices.bound) / size
            seconds = monotonic() - started
            if progress is not None:
                progress(Progress(iteration - 1, abs(best.value), gap, seconds, run.ratio_count))
            if gap < 0.9 * reached:
                reached, since = gap, iteration
            lacking = run.lacking(best.probabilities, best.secrets) if gap <= tolerance else None
            best.finished = lacking is not None and not len(lacking)
            best.out_of_time = not best.finished and time_limit is not None and seconds > time_limit
            if best.finished or best.out_of_time or (lacking is not None and not run.admit(lacking)):
                break
            try:
                moved = run.iterate()
            except Breakdown:
                break
            if run.value < best.value or len(run.inside) > len(best.secrets):
                best.value, best.probabilities = run.value, run.column.copy()
                best.secrets, best.ratios = run.inside, run.ratio_total
            if run.found.bound > best.prices.bound:
                best.prices = run.found
            best.iterations = iteration
            if not moved or iteration > since + PATIENCE:
                break
    best.probabilities = everyone(game, best.probabilities, best.secrets)
    return best


def everyone(game: Game, column: FloatArray, secrets: IntArray) -> FloatArray:
    """The mechanism for every secret of a game, (observables, secrets)."""
    others = np.setdiff1d(np.arange(game.objective.shape[1]), secrets)
    share, mixed = 0.0, column
    while True:
        rows, whose, failed = fill_in(game.exponents, mixed, secrets, others)
        if not len(failed):
            break
        # Only a run that was stopped gets here: a constant mechanism has room for everyone.
        share = min(1.0, 4 * share + 1e-9)
        mixed = (1 - share) * column + share * column.mean(axis=1, keepdims=True)
    full = np.empty(game.objective.shape)
    full[:, secrets], full[:, whose] = mixed, rows
    return full
