"""Weak duality: what the dual values of a state prove about the minimum."""

import numpy as np

from privacygames.solvers.interior.formulation import Formulation
from privacygames.solvers.interior.program import DualPoint
from privacygames.solvers.interior.state import State


def dual_point(formulation: Formulation, state: State, *, thorough: bool) -> DualPoint:
    """The dual values of a state, and the lower bound they prove on what is minimised; a better one if thorough."""
    program, n = formulation.program, formulation.size
    totals = formulation.coupling.totals
    limits = state.coupling_dual[n + totals :]
    prices = np.append(state.coupling_dual[n : n + totals], [1.0] if program.reverse else [])
    if program.minimises_worst:
        limits = limits / limits.sum()
    left = program.objective + (program.charged(limits) if program.limit != "none" else 0.0)
    attack = top = None
    if formulation.guesses is not None:
        attack = formulation.guesses.shares(formulation.part(formulation.guesses, state.duals))
        left = left - formulation.guesses.adjoint(attack * prices[program.owner])[:, :n]
    if formulation.preferred is not None:
        top = formulation.part(formulation.preferred, state.duals)
        left = left - formulation.preferred.adjoint(top)
    where, ratio = (np.zeros(0, dtype=np.int64),) * 3, np.zeros(0)
    pairs = formulation.working_set
    if pairs is not None:
        dual = formulation.part(pairs, state.duals)
        dual = pairs.without_opposites(dual) if thorough else dual
        left = left - pairs.adjoint(dual)
        where = (pairs.block, formulation.present[pairs.i], formulation.present[pairs.j])
        ratio = dual / pairs.root  # undo the balancing by √γ
    bound, estimate = float(left.min(axis=0).sum()), float(state.coupling_dual[:n].sum())
    # Minus what the limits are worth, plus what is promised: for the privacy that is sought, minus that is minimised.
    spent = 0.0 if program.minimises_worst else program.spent(limits)
    fixed = float(prices[:totals] @ program.distortion) - spent
    bound, estimate = bound + fixed, estimate + fixed
    if program.reverse:  # nothing beats revealing nothing
        bound = max(bound, -float(program.sought.sum(axis=1).min()))
    return DualPoint(*where, ratio, attack, top, prices, limits, bound, estimate)
