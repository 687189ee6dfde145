"""The second pruning of appendix C of the paper: only the constraints of an output and secrets near it."""

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
    """Solve the program with only the constraints (ratios and guesses) of an output o whose secrets are near o.

    Every output then has other ratios, which the block method does not support: HiGHS solves the explicit program.

    Args:
        problem: the problem with the selected pairs of secrets (others at distinguishability ∞).
        bounds: the guarantees.
        near: mask of the secrets near each output, (observables, secrets).
        progress: called regularly.
        all_estimates: include the guesses far from the output, so that distortion privacy is guaranteed in full.
    """
    refuse_too_large(problem, bounds)
    program = design_program(problem, bounds)
    secret, other, _ = ratio_pairs(problem, bounds)
    masks = {"ratios": (near[:, secret] & near[:, other]).T.ravel()}
    if not all_estimates:
        masks["guesses"] = near.ravel()
    reduced = thinned(program, masks)
    result = Highs().solve_program(reduced, progress=progress)
    duals = np.zeros(len(program.row_lower))  # the dual values of omitted constraints are 0
    for family in program.families:
        rows = duals[program.rows[family.name]]
        rows[masks.get(family.name, slice(None))] = result.duals[reduced.rows[family.name]]
    extended = replace(result, program=program, duals=duals)
    return Solution(
        result.block("p").reshape(problem.shape),
        read_dual_solution(extended, problem, bounds),
        result.status,
        result.method,
    )
