"""Where the method starts: central dual values of a mechanism that is given, reveals nothing, or is exponential."""

from math import inf

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.formulation import Formulation
from privacygames.solvers.interior.presolve import margins, widest_margins
from privacygames.solvers.interior.program import BlockProgram
from privacygames.solvers.interior.state import SlackDual, State

START, INFORMED_START, REVERSE_START = 0.25, 0.1, 0.03
"""The products at the start add up to this share of what the program costs where nothing is revealed; to the second of
what an exponential mechanism costs; and to the third of the privacy of the mechanism to start from, where that is
maximised."""

SHARPNESS, MOST_USED = 0.4, 0.9
"""An exponential mechanism uses up twice this share of every exponent, where they are distances, and no more than the
other share where they are not."""

WORTHWHILE = 0.99
"""It has to cost less than this share of what revealing nothing does."""

FARTHEST = 1000.0
"""Exponents beyond are as good as this one: what is likelier by its exponential is all there is."""

LEAST_SUITED = 0.9
"""So many of the observables have to suit a secret of their own: with costs that have nothing to do with the exponents
an exponential mechanism is a worse start (random costs: twice the iterations)."""

NO_MARGIN = 0.05
"""Absent secrets with no more than this are there from the start."""

MIXTURES = 4
"""So often half of it is replaced by one that reveals nothing, where distortion privacy asks for that."""

LEAST_PRODUCT = 2e-3
"""Products at the start are at least this share of the largest entry of the dual residual times its unknown: prices
much smaller than what they have to make up for would keep the first steps short."""

LEAST_WORTH = 1e-3
"""What is left of a limit is worth at least this share of all products at the start."""

ROUGH_SEARCH, ROUGH_PRICE = 20, 1e-2
ROUGH_STEPS, ROUGH = 20, 1e-3
"""Enough for a start, which need not be exactly central."""


def first_present(program: BlockProgram) -> IntArray:
    """The secrets to start with: all but the absent ones to which a constant mechanism leaves a margin.

    Those that someone has come first: they are the ones that guesses err on.
    """
    held, others = np.flatnonzero(~program.absent), np.flatnonzero(program.absent)
    return np.append(held, others[widest_margins(program.exponents, held, others) <= NO_MARGIN])


def first_state(formulation: Formulation, scale: float) -> State:
    """A point strictly inside, with equal products but for limits; ``scale`` is what counts as next to nothing."""
    program, n = formulation.program, formulation.size
    u = np.zeros((len(program.objective), formulation.coupling.width))
    u[:, :n] = _constant_weights(program.objective.sum(axis=1))[:, None] if program.start is None else program.start
    size = START * float(formulation.whole.objective.sum(axis=1).mean())
    if program.minimises_worst:
        size += START * float(-formulation.coupling.gather(u)[-len(program.whose) :].min())
    if program.reverse:
        size = REVERSE_START * program.least_error(program.adversaries - 1, u[:, :n])
    informed = _exponential(formulation, u[:, :n])
    if informed is not None:
        u[:, :n] = informed
        size = INFORMED_START * program.cost(informed)
    count = sum(len(each) for each in formulation.slacks(u)) + formulation.coupling.rows - n
    size = max(size, scale)
    limits = size if not program.reverse or program.limit != "average" else _worth_of_room(formulation, u, size)
    state = _central(formulation, u, size / count, limits)
    residual = formulation.dual_residual(state.coupling_dual, state.duals)[:, :n]
    needed = LEAST_PRODUCT * float(np.abs(residual * u[:, :n]).max())
    return _central(formulation, u, needed, limits) if needed * count > size else state


def _worth_of_room(formulation: Formulation, u: FloatArray, size: float) -> float:
    """What is left of a limit on the cost, times the privacy that a unit of cost buys on the way to revealing nothing.

    That is the limit's price, or near it; a price a hundred times as high takes a dozen iterations to come down. It is
    never next to nothing beside the size of all products.
    """
    program, column = formulation.program, u[:, : formulation.size]
    gain = float(program.sought.sum(axis=1).min()) - program.least_error(program.adversaries - 1, column)
    dearer = float(program.limited.sum(axis=1).min()) - float((program.limited * column).sum())
    left = float(formulation.coupling_slack(u, 0.0)[-1])
    bought = gain * left / max(dearer, left) if left > 0 else 0.0
    return max(bought, LEAST_WORTH * size)


def _exponential(formulation: Formulation, constant: FloatArray) -> FloatArray | None:
    """An exponential mechanism, (observables, secrets), where it is inside everything and costs less than a constant.

    Each observable is likeliest for the secret that it suits best, and less likely for others, exponentially in the
    exponents to them: all alike but for that, or as often as in the constant one.
    """
    program = formulation.program
    if formulation.ratios is None or formulation.ratios.thin or program.start is not None or program.limit != "none":
        return None
    if program.reverse or program.preferred is not None:
        return None
    exponents = formulation.whole.exponents[np.ix_(formulation.present, formulation.present)]
    # There is none between those that are far apart.
    exponents = np.minimum(exponents, min(exponents[np.isfinite(exponents)].max(), FARTHEST))
    np.fill_diagonal(exponents, 0.0)
    usual = program.objective.mean(axis=0)
    suits = np.divide(program.objective, usual, out=np.full(constant.shape, inf), where=usual > 0).argmin(axis=1)
    if len(np.unique(suits)) < LEAST_SUITED * len(suits):
        return None
    near = np.exp(-SHARPNESS * exponents[suits])
    mixed = [_private(program, each / each.sum(axis=0), constant) for each in (near, near * constant)]
    found = min(mixed, key=program.cost)
    if program.cost(found) >= WORTHWHILE * program.cost(constant):
        return None
    sharper = found ** (1 / MOST_USED)
    pairs = ((batch, sharper[batch.blocks]) for batch in formulation.batches)
    inside = all(batch.followed(column, column, settle=False)[0] == inf for batch, column in pairs)
    left_out = formulation.whole.exponents, found, formulation.present, formulation.absent
    return found if inside and (margins(*left_out, formulation.batches[0].backend) > 0).all() else None


def _private(program: BlockProgram, column: FloatArray, constant: FloatArray) -> FloatArray:
    """A mechanism with as much of a constant one in it as leaves half of what that leaves above every distortion."""
    for adversary, distortion in enumerate(program.distortion.tolist()):
        half = (program.least_error(adversary, constant) - distortion) / 2
        for _ in range(MIXTURES):
            if program.least_error(adversary, column) - distortion >= half:
                break
            column = (column + constant) / 2
        else:
            return constant
    return column


def _central(formulation: Formulation, u: FloatArray, target: float, limits: float) -> State:
    """The point of this mechanism at which every product is the target, but for those of limits on costs.

    The prices of guesses add up, in each block, to the price of the distortion, and those of the worst case to one: x
    and y are chosen so that they do, for otherwise the first steps would run far away to make up for it. Limits on
    costs have products that add up to ``limits``: at such a small target as the others', one secret alone would bear
    the price of the worst case.
    """
    program, n, coupling = formulation.program, formulation.size, formulation.coupling
    first, worst = n + coupling.totals, 0.0
    limited = limits / max(coupling.rows - first, 1)
    if program.minimises_worst:
        costs = -coupling.gather(u)[-len(program.whose) :]
        worst = -float(_below(-costs[None, :], limited, 1.0)[0][0])
    u = u.copy()
    asked = [*program.distortion.tolist(), *[None] * program.reverse]
    for adversary, distortion in enumerate(asked):
        errors = u[:, :n] @ program.errors_of(adversary).T
        u[:, n + adversary] = _central_guesses(errors, distortion, target)
    inside = tuple(SlackDual(each, target / each) for each in formulation.slacks(u))
    coupling_slack = formulation.coupling_slack(u, worst)
    coupling_dual = np.zeros(coupling.rows)
    coupling_dual[n:] = target / coupling_slack
    coupling_dual[first:] = limited / coupling_slack[coupling.totals :]
    coupling_dual[:n] = formulation.dual_residual(coupling_dual, [each.duals for each in inside])[:, :n].mean(axis=0)
    return State(u, formulation.batches[0].backend.to_device(u), inside, coupling_slack, coupling_dual, worst)


def _central_guesses(errors: FloatArray, distortion: float | None, target: float) -> FloatArray:
    """X of each block: Σ_guesses target/(error − x) is the price of the distortion in all of them.

    Where the distortion is maximised its price is 1; where it is bounded, the price times what is left of the bound
    is the target, too.
    """
    if distortion is None:
        return _below(errors, target, 1.0)[0]
    # Price·(Σx − bound) is nearly linear in the price: x is a target/price below the least error for each guess that is
    # not much worse, which is one in each block at least, and all of them at most.
    blocks, guesses = errors.shape
    room = max(float(errors.min(axis=1).sum()) - distortion, 1e-300)
    low, high = target * (1 + blocks) / room, target * (1 + blocks * guesses) / room
    price = low
    for _ in range(ROUGH_SEARCH):
        x, speed = _below(errors, target, price)
        left = float(x.sum()) - distortion
        lacks = target * (1 + ROUGH_PRICE / 2) - price * left  # a little more than the target: something is left
        low, high = (price, high) if lacks > 0 else (low, price)
        if abs(lacks) <= ROUGH_PRICE / 2 * target:
            return x
        wanted = price + lacks / (left + price * float(speed.sum()))
        price = wanted if low < wanted < high else (low * high) ** 0.5
    return _below(errors, target, high)[0]


def _below(values: FloatArray, target: float, price: float) -> tuple[FloatArray, FloatArray]:
    """For each row, the x below all its values at which Σ target/(value − x) is the price; and how fast it grows.

    One over that sum is concave in how far below x is, and nearly linear: Newton's steps come from one side, and fast.
    """
    least = values.min(axis=1)
    apart = values - least[:, None]
    below = np.full(len(values), target / price)
    for _ in range(ROUGH_STEPS):
        shares = apart + below[:, None]
        np.divide(target, shares, out=shares)
        total, squares = shares.sum(axis=1), np.einsum("ij,ij->i", shares, shares)
        more = (total / price - 1.0) * total * target / squares
        below += more
        if (more <= ROUGH * below).all():
            break
    return least - below, target / squares


def _constant_weights(cost: FloatArray) -> FloatArray:
    """How often each observable is sent by the mechanism that reveals nothing, at the start.

    Among those mechanisms, w_o = κ/(cost_o − λ) is where cost and barrier balance; κ is the products' share of each.
    """
    share = START * float(cost.mean()) / len(cost)
    if share <= 0:
        return np.full(len(cost), 1.0 / len(cost))
    weights = share / (cost - _below(cost[None, :], share, 1.0)[0][0])
    return np.asarray(weights / weights.sum())
