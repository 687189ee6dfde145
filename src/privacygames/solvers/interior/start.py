"""Where the method starts: a mechanism that reveals nothing, or one that is given, and central dual values."""

from math import prod

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.formulation import Formulation
from privacygames.solvers.interior.program import BlockProgram
from privacygames.solvers.interior.state import Inside, State

START = 0.25
"""The products at the start add up to this share of what the program costs where nothing is revealed."""

LEAST_PRODUCT = 2e-3
"""Products at the start are at least this share of the largest entry of the dual residual times its unknown: prices
much smaller than what they have to make up for would keep the first steps short."""

ROUGH_HALVINGS, ROUGH_STEPS, ROUGH = 24, 20, 1e-6
"""Enough for a start, which need not be exactly central."""


def first_present(program: BlockProgram, admit: float) -> IntArray:
    """The secrets to start with: all but the absent ones to which a constant mechanism leaves a margin of ``admit``.

    Those that someone has come first: they are the ones that guesses err on.
    """
    held = ~program.absent
    nearest = np.minimum(program.exponents[held].min(axis=0), program.exponents[:, held].min(axis=1))
    needed = program.absent & (-np.expm1(-nearest) <= admit)
    return np.concatenate([np.flatnonzero(held), np.flatnonzero(needed)])


def first_state(formulation: Formulation, scale: float) -> State:
    """A point strictly inside, with equal products but for limits; ``scale`` is what counts as next to nothing."""
    program, n = formulation.program, formulation.size
    column = _constant_weights(program.objective.sum(axis=1))[:, None] if program.start is None else program.start
    u = np.zeros((len(program.objective), formulation.coupling.width))
    u[:, :n] = column
    size = START * float(formulation.whole.objective.sum(axis=1).mean())
    if program.minimises_worst:
        size += START * float(-formulation.coupling.gather(u)[-len(program.whose) :].min())
    if program.reverse:
        size = 0.5 * float((u[:, :n] @ program.sought.T).min(axis=1).sum())
    count = sum(prod(slack.shape) for each in formulation.slacks(u) for slack in each) + formulation.coupling.rows - n
    state = _central(formulation, u, max(size, scale) / count, count)
    residual = formulation.dual_residual(state.coupling_dual, state.duals)[:, :n]
    needed = LEAST_PRODUCT * float(np.abs(residual * u[:, :n]).max())
    return _central(formulation, u, needed, count) if needed * count > size else state


def _central(formulation: Formulation, u: FloatArray, target: float, count: int) -> State:
    """The point of this mechanism at which every product is the target, of ``count``.

    The prices of guesses add up, in each block, to the price of the distortion, and those of the worst case to one: x
    and y are chosen so that they do, for otherwise the first steps would run far away to make up for it. Limits on
    costs have products that add up to as much as all others: at such a small target as theirs, one secret alone would
    bear the price of the worst case.
    """
    program, n, coupling = formulation.program, formulation.size, formulation.coupling
    limits, worst = n + coupling.totals, 0.0
    limited = target * count / max(coupling.rows - limits, 1)
    if program.minimises_worst:
        costs = -coupling.gather(u)[-len(program.whose) :]
        worst = -float(_below(-costs[None, :], limited, 1.0)[0])
    u = u.copy()
    asked = [*program.distortion.tolist(), *[None] * program.reverse]
    for adversary, distortion in enumerate(asked):
        errors = u[:, :n] @ program.errors_of(adversary).T
        u[:, n + adversary] = _central_guesses(errors, distortion, target)
    inside = tuple(Inside(each, tuple(target / slack for slack in each)) for each in formulation.slacks(u))
    coupling_slack = formulation.coupling_slack(u, worst)
    coupling_dual = np.zeros(coupling.rows)
    coupling_dual[n:] = target / coupling_slack
    coupling_dual[limits:] = limited / coupling_slack[coupling.totals :]
    coupling_dual[:n] = formulation.dual_residual(coupling_dual, [each.duals for each in inside])[:, :n].mean(axis=0)
    return State(u, inside, coupling_slack, coupling_dual, worst)


def _central_guesses(errors: FloatArray, distortion: float | None, target: float) -> FloatArray:
    """X of each block: Σ_guesses target/(error − x) is the price of the distortion in all of them.

    Where the distortion is maximised its price is 1; where it is bounded, the price times what is left of the bound
    is the target, too.
    """
    if distortion is None:
        return _below(errors, target, 1.0)
    low, high = -40.0, 40.0  # of the price's logarithm, around the price at which slack and bound are alike
    around = np.log(target / max(float(errors.min(axis=1).sum()) - distortion, 1e-300))
    for _ in range(ROUGH_HALVINGS):
        middle = (low + high) / 2
        price = np.exp(around + middle)
        left = float(_below(errors, target, price).sum()) - distortion
        if price * left < target:
            low = middle
        else:
            high = middle
    return _below(errors, target, float(np.exp(around + high)))


def _below(values: FloatArray, target: float, price: float) -> FloatArray:
    """For each row, the x below all its values at which Σ target/(value − x) is the price.

    One over that sum is concave in how far below x is, and nearly linear: Newton's steps come from one side, and fast.
    """
    least = values.min(axis=1)
    apart = values - least[:, None]
    below = np.full(len(values), target / price)
    for _ in range(ROUGH_STEPS):
        shares = target / (apart + below[:, None])
        total = shares.sum(axis=1)
        more = (total / price - 1.0) * total * target / (shares * shares).sum(axis=1)
        below += more
        if (more <= ROUGH * below).all():
            break
    return np.asarray(least - below)


def _constant_weights(cost: FloatArray) -> FloatArray:
    """How often each observable is sent by the mechanism that reveals nothing, at the start.

    Among those mechanisms, w_o = κ/(cost_o − λ) is where cost and barrier balance; κ is the products' share of each.
    """
    share = START * float(cost.mean()) / len(cost)
    if share <= 0:
        return np.full(len(cost), 1.0 / len(cost))
    weights = share / (cost - _below(cost[None, :], share, 1.0)[0])
    return np.asarray(weights / weights.sum())
