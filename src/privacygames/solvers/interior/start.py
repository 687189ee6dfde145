"""The starting point: central dual values of a mechanism that is given, constant, or exponential."""

from math import inf

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.formulation import Formulation
from privacygames.solvers.interior.presolve import constant_margins, margins
from privacygames.solvers.interior.program import BlockProgram
from privacygames.solvers.interior.settings import InteriorSettings
from privacygames.solvers.interior.state import SlackDual, State


def initial_secrets(program: BlockProgram, settings: InteriorSettings) -> IntArray:
    """The secrets to start with: all but zero-prior ones to which a constant mechanism leaves a margin.

    Secrets with a prior come first: they are those on which guesses err.
    """
    with_prior, zero_prior = np.flatnonzero(~program.zero_prior), np.flatnonzero(program.zero_prior)
    tight = constant_margins(program.exponents, with_prior, zero_prior) <= settings.initial_margin
    return np.append(with_prior, zero_prior[tight])


def initial_state(formulation: Formulation, scale: float, settings: InteriorSettings) -> State:
    """A strictly interior point whose products are equal, but for those of limits on the cost.

    Args:
        formulation: the formulation.
        scale: the value that counts as negligible beside costs.
        settings: the size of the products, and which mechanism.
    """
    program, n = formulation.program, formulation.secret_count
    u = np.zeros((len(program.objective), formulation.coupling.width))
    if program.start is None:
        u[:, :n] = _constant_mechanism(program.objective.sum(axis=1), settings)[:, None]
    else:
        u[:, :n] = program.start
    size = settings.start_complementarity * float(formulation.full_program.objective.sum(axis=1).mean())
    if program.minimises_worst_cost:
        worst = float(-formulation.coupling.matvec(u)[-len(program.cost_secret) :].min())
        size += settings.start_complementarity * worst
    if program.maximises_distortion:
        distortion = program.adversary_error(program.adversary_count - 1, u[:, :n])
        size = settings.start_complementarity_distortion * distortion
    exponential = _exponential_mechanism(formulation, u[:, :n], settings)
    if exponential is not None:
        u[:, :n] = exponential
        size = settings.start_complementarity_exponential * program.cost(exponential)
    count = sum(len(slacks) for slacks in formulation.slacks(u)) + formulation.coupling.row_count - n
    size = max(size, scale)
    limits = size
    if program.maximises_distortion and program.limit == "average":
        limits = _limit_complementarity(formulation, u, size, settings)
    state = _central_state(formulation, u, size / count, limits, settings)
    residual = formulation.dual_residual(state.coupling_dual, state.batch_duals)[:, :n]
    needed = settings.start_min_product * float(np.abs(residual * u[:, :n]).max())
    return _central_state(formulation, u, needed, limits, settings) if needed * count > size else state


def _limit_complementarity(formulation: Formulation, u: FloatArray, size: float, settings: InteriorSettings) -> float:
    """The slack of a limit on the cost, times the distortion that a unit of cost buys towards a constant mechanism.

    The latter is close to the limit's dual value at the optimum; a dual value a hundred times as high takes a dozen
    iterations to come down. The product is never negligible beside all products.
    """
    program, columns = formulation.program, u[:, : formulation.secret_count]
    largest_distortion = float(program.maximised_errors.sum(axis=1).min())
    gain = largest_distortion - program.adversary_error(program.adversary_count - 1, columns)
    dearer = float(program.limited_cost.sum(axis=1).min()) - float((program.limited_cost * columns).sum())
    slack = float(formulation.coupling_slack(u, 0.0)[-1])
    bought = gain * slack / max(dearer, slack) if slack > 0 else 0.0
    return max(bought, settings.start_min_limit * size)


def _exponential_mechanism(
    formulation: Formulation, constant: FloatArray, settings: InteriorSettings
) -> FloatArray | None:
    """An exponential mechanism, (observables, secrets), where it is strictly feasible and costs less than a constant.

    Each observable is most likely for the secret that it suits best, and less likely for others, exponentially in the
    exponents to them; with equal weights of the observables, or with those of the constant mechanism.
    """
    program = formulation.program
    if formulation.ratio_bounds is None or formulation.ratio_bounds.thin_cone:
        return None
    if program.start is not None or program.limit != "none":
        return None
    if program.maximises_distortion or program.max_distortion_rows is not None:
        return None
    exponents = formulation.full_program.exponents[np.ix_(formulation.secrets, formulation.secrets)]
    # Between secrets that are far apart there is no bound.
    exponents = np.minimum(exponents, min(exponents[np.isfinite(exponents)].max(), settings.exponential_max_exponent))
    np.fill_diagonal(exponents, 0.0)
    usual = program.objective.mean(axis=0)
    suits = np.divide(program.objective, usual, out=np.full(constant.shape, inf), where=usual > 0).argmin(axis=1)
    if len(np.unique(suits)) < settings.exponential_min_suited * len(suits):
        return None
    weights = np.exp(-settings.exponential_rate * exponents[suits])
    mechanisms = [
        _mix_for_distortion(program, unnormalised / unnormalised.sum(axis=0), constant, settings)
        for unnormalised in (weights, weights * constant)
    ]
    cheapest = min(mechanisms, key=program.cost)
    if program.cost(cheapest) >= settings.exponential_max_cost * program.cost(constant):
        return None
    sharper = cheapest ** (1 / settings.exponential_max_use)
    pairs = ((batch, sharper[batch.blocks]) for batch in formulation.batches)
    feasible = all(batch.max_feasible_step(columns, columns, keep_all=False)[0] == inf for batch, columns in pairs)
    deferred = formulation.full_program.exponents, cheapest, formulation.secrets, formulation.deferred
    return cheapest if feasible and (margins(*deferred, formulation.batches[0].backend) > 0).all() else None


def _mix_for_distortion(
    program: BlockProgram, columns: FloatArray, constant: FloatArray, settings: InteriorSettings
) -> FloatArray:
    """A mechanism mixed with a constant one so that half of the latter's slack remains in every distortion bound."""
    for adversary, distortion in enumerate(program.distortion.tolist()):
        half = (program.adversary_error(adversary, constant) - distortion) / 2
        for _ in range(settings.distortion_mixtures):
            if program.adversary_error(adversary, columns) - distortion >= half:
                break
            columns = (columns + constant) / 2
        else:
            return constant
    return columns


def _central_state(
    formulation: Formulation, u: FloatArray, target: float, limits: float, settings: InteriorSettings
) -> State:
    """The state of this mechanism in which every product is the target, but for those of limits on the cost.

    The dual values of guesses sum, in each block, to the dual value of the distortion, and those of the worst case to
    one: x and y are chosen so that they do, or the first steps would be spent on making up for it. The products of
    limits on the cost sum to ``limits``: with the others' small target one secret would bear the worst case alone.
    """
    program, n, coupling = formulation.program, formulation.secret_count, formulation.coupling
    first, worst_cost = n + coupling.distortion_count, 0.0
    limit_target = limits / max(coupling.row_count - first, 1)
    if program.minimises_worst_cost:
        costs = -coupling.matvec(u)[-len(program.cost_secret) :]
        worst_cost = -float(_solve_barrier(-costs[None, :], limit_target, 1.0, settings)[0][0])
    u = u.copy()
    bounds = [*program.distortion.tolist(), *[None] * program.maximises_distortion]
    for adversary, distortion in enumerate(bounds):
        errors = u[:, :n] @ program.errors_of(adversary).T
        u[:, n + adversary] = _central_x(errors, distortion, target, settings)
    batches = tuple(SlackDual(slacks, target / slacks) for slacks in formulation.slacks(u))
    coupling_slack = formulation.coupling_slack(u, worst_cost)
    coupling_dual = np.zeros(coupling.row_count)
    coupling_dual[n:] = target / coupling_slack
    coupling_dual[first:] = limit_target / coupling_slack[coupling.distortion_count :]
    residual = formulation.dual_residual(coupling_dual, [batch.duals for batch in batches])
    coupling_dual[:n] = residual[:, :n].mean(axis=0)
    device_u = formulation.batches[0].backend.to_device(u)
    return State(u, device_u, batches, coupling_slack, coupling_dual, worst_cost)


def _central_x(errors: FloatArray, distortion: float | None, target: float, settings: InteriorSettings) -> FloatArray:
    """The x of each block for which Σ_guesses target/(error − x) is the distortion's dual value in all of them.

    Where the distortion is maximised its dual value is 1; where it is bounded, its dual value times the bound's slack
    is the target, too.
    """
    if distortion is None:
        return _solve_barrier(errors, target, 1.0, settings)[0]
    # dual·(Σx − bound) is nearly linear in the dual value: x is target/dual below the least error for each guess that
    # is not much worse, which is one in each block at least, and all of them at most.
    blocks, guesses = errors.shape
    room = max(float(errors.min(axis=1).sum()) - distortion, 1e-300)
    low, high = target * (1 + blocks) / room, target * (1 + blocks * guesses) / room
    dual, accuracy = low, settings.start_search_accuracy
    for _ in range(settings.start_search_iterations):
        x, derivative = _solve_barrier(errors, target, dual, settings)
        slack = float(x.sum()) - distortion
        missing = target * (1 + accuracy / 2) - dual * slack  # a little above the target: some slack remains
        low, high = (dual, high) if missing > 0 else (low, dual)
        if abs(missing) <= accuracy / 2 * target:
            return x
        newton = dual + missing / (slack + dual * float(derivative.sum()))
        dual = newton if low < newton < high else (low * high) ** 0.5
    return _solve_barrier(errors, target, high, settings)[0]


def _solve_barrier(
    values: FloatArray, target: float, dual: float, settings: InteriorSettings
) -> tuple[FloatArray, FloatArray]:
    """For each row, the x below all its values with Σ target/(value − x) = dual; and x's derivative by the dual value.

    One over that sum is concave in the distance of x below the least value, and nearly linear: Newton's steps come
    from one side, and fast.
    """
    least = values.min(axis=1)
    excess = values - least[:, None]
    below = np.full(len(values), target / dual)
    for _ in range(settings.start_newton_iterations):
        terms = excess + below[:, None]
        np.divide(target, terms, out=terms)
        total, squares = terms.sum(axis=1), np.einsum("ij,ij->i", terms, terms)
        step = (total / dual - 1.0) * total * target / squares
        below += step
        if (step <= settings.start_newton_accuracy * below).all():
            break
    return least - below, target / squares


def _constant_mechanism(cost: FloatArray, settings: InteriorSettings) -> FloatArray:
    """The probability of each observable in the constant mechanism to start from.

    Among constant mechanisms, w_o = κ/(cost_o − λ) balances cost and barrier; κ is each observable's product.
    """
    product = settings.start_complementarity * float(cost.mean()) / len(cost)
    if product <= 0:
        return np.full(len(cost), 1.0 / len(cost))
    weights = product / (cost - _solve_barrier(cost[None, :], product, 1.0, settings)[0][0])
    return np.asarray(weights / weights.sum())
