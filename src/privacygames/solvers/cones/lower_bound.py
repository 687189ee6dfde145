"""The bound that any dual point proves, and the objective at any primal point."""

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.solvers.cones.program import ConeProgram
from privacygames.solvers.cones.state import State


def dual_bound(program: ConeProgram, at: State) -> float:
    """A lower bound from any dual point.

    Guesses are scaled to sum to α, and the dual values of points to sum to 1 where the worst cost is minimised.
    Lowering μ by the least missed entry of each unknown makes c_o − μ − … ≥ 0, and v ≥ 0 with Σ_o v_o = 1.
    """
    unknowns, y, w = program.unknowns, at.y.copy(), at.w
    bounded = unknowns + len(program.bounded)
    if program.minimises_worst_cost:
        y[bounded + program.limits.averages :] /= y[bounded + program.limits.averages :].sum()
    if program.errors:
        alpha = np.ones(len(program.errors))
        alpha[program.bounded] = y[unknowns:bounded]
        w = w * np.repeat(alpha / np.add.reduceat(w, program.first_guess, axis=1), program.guess_counts, axis=1)
    paid = program.couple_adjoint(y)[:, :unknowns] + program.adjoint(at.z) + (w @ program.guesses)[:, :unknowns]
    return float(y @ program.required + (program.costs - paid).min(axis=0).sum())


def largest_value(program: ConeProgram) -> float:
    """No v ≥ 0 with Σ_o v_o = 1 has a larger objective."""
    total = float(program.costs.max(axis=0).sum())
    if program.maximises_distortion:
        total -= float(program.errors[0].min(axis=0).sum())
    if program.worst_cost is not None and program.minimises_worst_cost:
        weights = np.maximum(program.worst_cost.costs.max(axis=0), 0.0)
        total += float((np.abs(program.worst_cost.basis).sum(axis=1) * weights).max())
    return total


def magnitude(program: ConeProgram) -> float:
    """The size of the objective's terms for the uniform mechanism; 1 if all are zero."""
    total = float(np.abs(program.costs).sum()) / len(program.costs)
    if program.maximises_distortion:
        total += float(np.abs(program.errors[0]).sum(axis=1).min())
    if program.worst_cost is not None and program.minimises_worst_cost:
        total += float(np.abs(program.worst_cost.costs).mean(axis=0).max())
    return total or 1.0


def objective(program: ConeProgram, v: FloatArray) -> float:
    """The value that is minimised, with the best x and τ for these v."""
    value = float(np.vdot(program.costs, v))
    if program.maximises_distortion:
        value -= float((v @ program.errors[0].T).min(axis=1).sum())
    if program.minimises_worst_cost:
        value -= float(program.limits.apply(v)[program.limits.tau > 0].min())
    return value


def excess(program: ConeProgram, v: FloatArray) -> float:
    """By how much v violates a limit at most, as a fraction of the limit; not positive where it violates none."""
    limits = program.limits
    fixed = limits.tau == 0
    missing = limits.required[fixed] - limits.apply(v)[fixed]
    return float((missing / np.maximum(np.abs(limits.required[fixed]), 1e-300)).max(initial=-np.inf))
