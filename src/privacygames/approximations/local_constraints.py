"""Appendix C's second pruning: only constraints about an observable and secrets near it."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from privacygames.problem import Bounds, Problem
from privacygames.programs import design_program, ratio_pairs, thinned
from privacygames.progress import ProgressCallback
from privacygames.solvers import Highs, Solution, read_dual_solution, refuse_too_large


def solve_local_constraints(
    problem: Problem,
    bounds: Bounds,
    near: NDArray[np.bool_],
    progress: ProgressCallback | None = None,
    *,
    all_estimates: bool = False,
) -> Solution:
    """Solve the program with only the ratios p(o|s) ≤ γp(o|s') and guesses (o, ŝ) whose secrets are near o.

    Each observable then has ratios of its own, which the block engine does not take: HiGHS solves it, written out.

    Args:
        problem: with the pairs of secrets to keep (others at distinguishability ∞).
        bounds: the promises.
        near: (observables, secrets).
        progress: called now and then.
        all_estimates: keep the guesses far from the observable, too: distortion privacy is then promised in full.
    """
    refuse_too_large(problem, bounds)
    program = design_program(problem, bounds)
    secret, other, _ = ratio_pairs(problem, bounds)
    kept = {"ratios": (near[:, secret] & near[:, other]).T.ravel()}
    if not all_estimates:
        kept["guesses"] = near.ravel()
    reduced = thinned(program, kept)
    result = Highs().solve_program(reduced, progress=progress)
    duals = np.zeros(len(program.row_lower))  # the dual value of what was left out is 0
    for family in program.families:
        rows = duals[program.rows[family.name]]
        rows[kept.get(family.name, slice(None))] = result.duals[reduced.rows[family.name]]
    extended = replace(result, program=program, duals=duals)
    return Solution(
        result.block("p").reshape(problem.shape),
        read_dual_solution(extended, problem, bounds),
        result.status,
        result.method,
    )
