"""Weak duality: what the dual values of a state prove about the minimum."""

import numpy as np

from privacygames.solvers.interior.formulation import Formulation
from privacygames.solvers.interior.program import DualPoint
from privacygames.solvers.interior.state import State


def dual_point(formulation: Formulation, state: State, *, thorough: bool) -> DualPoint:
    """The dual values of a state, and the lower bound they prove on what is minimised; a better one if thorough."""
    program, n = formulation.program, formulation.size
    limits = state.coupling_dual[n + int(formulation.coupling.total) :]
    distortion = 1.0 if program.reverse else float(state.coupling_dual[n]) if formulation.coupling.total else 0.0
    if program.minimises_worst:
        limits = limits / limits.sum()
    left = program.objective + (program.charged(limits) if program.limit != "none" else 0.0)
    attack = None
    if formulation.guesses is not None:
        guessed = formulation.part(formulation.guesses, state.duals)
        attack = guessed / guessed.sum(axis=1, keepdims=True)
        left = left - distortion * formulation.guesses.adjoint(attack)[:, :n]
    if formulation.preferred is not None:
        attack = formulation.part(formulation.preferred, state.duals)
        left = left - formulation.preferred.adjoint(attack)
    where, ratio = (np.zeros(0, dtype=np.int64),) * 3, np.zeros(0)
    pairs = formulation.working_set
    if pairs is not None:
        dual = formulation.part(pairs, state.duals)
        dual = pairs.without_opposites(dual) if thorough else dual
        left = left - pairs.adjoint(dual)
        where = (pairs.block, formulation.present[pairs.i], formulation.present[pairs.j])
        ratio = dual / pairs.root  # undo the balancing by √γ
    bound, estimate = float(left.min(axis=0).sum()), float(state.coupling_dual[:n].sum())
    if program.reverse:  # Σ x ≤ dual·limit − bound, so minus that bounds what is minimised
        fixed = -float(limits.sum()) * (program.cost_at_most or 0.0)
    else:
        fixed = distortion * (program.distortion or 0.0)
    bound, estimate = bound + fixed, estimate + fixed
    if program.reverse and program.errors is not None:  # nothing beats revealing nothing
        bound = max(bound, -float(program.errors.sum(axis=1).min()))
    return DualPoint(*where, ratio, attack, distortion, limits, bound, estimate)
