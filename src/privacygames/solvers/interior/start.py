"""Where the method starts: a mechanism that reveals nothing, or one that is given, and central dual values."""

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.absent import HALVINGS
from privacygames.solvers.interior.formulation import Formulation
from privacygames.solvers.interior.program import BlockProgram
from privacygames.solvers.interior.state import State, dual_residual

START = 0.25
"""The products at the start add up to this share of what the program costs where nothing is revealed."""


def first_present(program: BlockProgram, admit: float) -> IntArray:
    """The secrets to start with: all but the absent ones to which a constant mechanism leaves a margin of ``admit``."""
    held = ~program.absent
    nearest = np.minimum(program.exponents[held].min(axis=0), program.exponents[:, held].min(axis=1))
    out = program.absent & (-np.expm1(-nearest) > admit)
    return np.flatnonzero(~out)


def first_state(formulation: Formulation, scale: float) -> State:
    """A point strictly inside, with equal products; ``scale`` is what counts as next to nothing."""
    program, n = formulation.program, formulation.size
    u = _first_unknowns(formulation)
    worst = 0.0
    if program.minimises_worst:
        worst = 1.1 * float(-formulation.coupling.gather(u)[-n:].min()) + scale
    slacks = formulation.slacks(u)
    coupling_slack = formulation.coupling_slack(u, worst)
    count = sum(slack.size for slack in slacks) + len(coupling_slack)
    size = START * (float(formulation.whole.objective.sum(axis=1).mean()) + worst)
    if program.reverse:
        size = float(u[:, -1].sum())
    target = max(size, scale) / count
    duals = tuple(target / slack for slack in slacks)
    coupling_dual = np.zeros(formulation.coupling.rows)
    coupling_dual[n:] = target / coupling_slack
    coupling_dual[:n] = dual_residual(formulation, coupling_dual, duals)[:, :n].mean(axis=0)
    return State(u, slacks, duals, coupling_slack, coupling_dual, worst)


def _first_unknowns(formulation: Formulation) -> FloatArray:
    """A mechanism that reveals nothing (or the one given), and x halfway to what it allows."""
    program, n = formulation.program, formulation.size
    u = np.empty(formulation.objective.shape)
    u[:, :n] = _constant_weights(program.objective.sum(axis=1))[:, None] if program.start is None else program.start
    if program.errors is not None:
        most = (u[:, :n] @ program.errors.T).min(axis=1)
        asked = (program.distortion or 0.0) / most.sum()
        u[:, -1] = 0.5 * (1 + asked) * most
    return u


def _constant_weights(cost: FloatArray) -> FloatArray:
    """How often each observable is sent by the mechanism that reveals nothing, at the start.

    Among those mechanisms, w_o = κ/(cost_o − λ) is where cost and barrier balance; κ is the products' share of each.
    """
    share = START * float(cost.mean()) / len(cost)
    if share <= 0:
        return np.full(len(cost), 1.0 / len(cost))
    low, high = share, share * len(cost)  # how far λ is below the least cost
    for _ in range(HALVINGS):
        below = (low + high) / 2
        if (share / (cost - cost.min() + below)).sum() > 1:
            low = below
        else:
            high = below
    weights = share / (cost - cost.min() + high)
    return np.asarray(weights / weights.sum())
