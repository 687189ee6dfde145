"""The starting point: central dual values of a mechanism that is given, constant, or exponential."""

from math import inf

import numpy as np

from privacygames.arrays import FloatArray, IntArray, distinct_indices
from privacygames.solvers.interior.presolve import constant_margins, margins
from privacygames.solvers.interior.program import BlockProgram
from privacygames.solvers.interior.restricted_program import RestrictedProgram
from privacygames.solvers.interior.settings import InteriorSettings
from privacygames.solvers.interior.state import SlackDual, State


def initial_secrets(program: BlockProgram, settings: InteriorSettings) -> IntArray:
    """The secrets to start with: all but zero-prior ones to which a constant mechanism leaves a margin.

    Secrets with a prior come first: they are those on which guesses err.
    """
    required, deferrable = np.flatnonzero(~program.deferrable), np.flatnonzero(program.deferrable)
    tight = constant_margins(program.exponents, required, deferrable) <= settings.initial_margin
    return np.append(required, deferrable[tight])


def initial_state(restricted: RestrictedProgram, scale: float, settings: InteriorSettings) -> State:
    """A strictly interior point whose products are equal, but for those of limits on the cost.

    Args:
        restricted: the program, restricted to the secrets to start with.
        scale: the value that counts as negligible beside costs.
        settings: the size of the products, and which mechanism.
    """
    program, n = restricted.program, restricted.secret_count
    u = np.zeros((len(program.objective), restricted.coupling.width))
    if program.start is None:
        u[:, :n] = _constant_mechanism(program.objective.sum(axis=1), settings)[:, None]
    else:
        u[:, :n] = program.start
    complementarity = settings.start_complementarity * float(restricted.full_program.objective.sum(axis=1).mean())
    if program.minimises_worst_cost:
        worst = float(-restricted.coupling.matvec(u)[-len(program.cost_secret) :].min())
        complementarity += settings.start_complementarity * worst
    if program.maximises_distortion:
        distortion = program.adversary_error(program.adversary_count - 1, u[:, :n])
        complementarity = settings.start_complementarity_distortion * distortion
    exponential = _exponential_mechanism(restricted, u[:, :n], settings)
    if exponential is not None:
        u[:, :n] = exponential
        complementarity = settings.start_complementarity_exponential * program.cost(exponential)
    count = sum(len(slacks) for slacks in restricted.slacks(u)) + restricted.coupling.row_count - n
    complementarity = max(complementarity, scale)
    limit_complementarity = complementarity
    if program.maximises_distortion and program.limit == "average":
        limit_complementarity = _limit_complementarity(restricted, u, complementarity, settings)
    state = _central_state(restricted, u, complementarity / count, limit_complementarity, settings)
    residual = restricted.dual_residual(state.coupling_dual, state.block_duals)[:, :n]
    needed = settings.start_min_product * float(np.abs(residual * u[:, :n]).max())
    return (
        _central_state(restricted, u, needed, limit_complementarity, settings)
        if needed * count > complementarity
        else state
    )


def _limit_complementarity(
    restricted: RestrictedProgram, u: FloatArray, complementarity: float, settings: InteriorSettings
) -> float:
    """The slack of a limit on the cost, times the distortion that a unit of cost buys towards a constant mechanism.

    The latter is close to the limit's dual value at the optimum; a dual value a hundred times as high takes a dozen
    iterations to come down. The product is never negligible beside all products.
    """
    program, columns = restricted.program, u[:, : restricted.secret_count]
    largest_distortion = float(program.maximised_errors.sum(axis=1).min())
    gain = largest_distortion - program.adversary_error(program.adversary_count - 1, columns)
    dearer = float(program.limited_cost.sum(axis=1).min()) - float((program.limited_cost * columns).sum())
    slack = float(restricted.coupling_slack(u, 0.0)[-1])
    bought = gain * slack / max(dearer, slack) if slack > 0 else 0.0
    return max(bought, settings.start_min_limit * complementarity)


def _exponential_mechanism(
    restricted: RestrictedProgram, constant: FloatArray, settings: InteriorSettings
) -> FloatArray | None:
    """An exponential mechanism, (observables, secrets), where it is strictly feasible and costs less than a constant.

    Each observable is most likely for the secret that it suits best, and less likely for others, exponentially in the
    exponents to them; with equal weights of the observables, or with those of the constant mechanism.
    """
    program = restricted.program
    if restricted.ratio_bounds is None or restricted.ratio_bounds.thin_cone:
        return None
    if program.start is not None or program.limit != "none":
        return None
    if program.maximises_distortion or program.max_distortion_rows is not None:
        return None
    exponents = restricted.full_program.exponents[np.ix_(restricted.secrets, restricted.secrets)]
    # Between secrets that are far apart there is no bound.
    exponents = np.minimum(exponents, min(exponents[np.isfinite(exponents)].max(), settings.exponential_max_exponent))
    np.fill_diagonal(exponents, 0.0)
    usual = program.objective.mean(axis=0)
    suits = np.divide(program.objective, usual, out=np.full(constant.shape, inf), where=usual > 0).argmin(axis=1)
    if len(distinct_indices(suits, constant.shape[1])) < settings.exponential_min_suited * len(suits):
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
    pairs = ((batch, sharper[batch.blocks]) for batch in restricted.batches)
    feasible = all(batch.max_feasible_step(columns, columns, keep_all=False)[0] == inf for batch, columns in pairs)
    deferred = restricted.full_program.exponents, cheapest, restricted.secrets, restricted.deferred
    return cheapest if feasible and (margins(*deferred, restricted.batches[0].backend) > 0).all() else None


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
    restricted: RestrictedProgram,
    u: FloatArray,
    target: float,
    limit_complementarity: float,
    settings: InteriorSettings,
) -> State:
    """The state of this mechanism in which every product is the target, but for those of limits on the cost.

    The dual values of guesses sum, in each block, to the dual value of the distortion, and those of the worst case to
    one: x and y are chosen so that they do, or the first steps would be spent on making up for it. The products of
    limits on the cost sum to ``limit_complementarity``: with the others' small target one secret would bear the worst
    case alone.
    """
    program, n, coupling = restricted.program, restricted.secret_count, restricted.coupling
    first, worst_cost = n + coupling.distortion_count, 0.0
    limit_target = limit_complementarity / max(coupling.row_count - first, 1)
    if program.minimises_worst_cost:
        costs = -coupling.matvec(u)[-len(program.cost_secret) :]
        worst_cost = -float(_solve_barrier(-costs[None, :], limit_target, 1.0, settings)[0][0])
    u = u.copy()
    bounds = [*program.distortion.tolist(), *[None] * program.maximises_distortion]
    for adversary, distortion in enumerate(bounds):
        errors = u[:, :n] @ program.errors_of(adversary).T
        u[:, n + adversary] = _central_x(errors, distortion, target, settings)
    slack_duals = tuple(SlackDual(slacks, target / slacks) for slacks in restricted.slacks(u))
    coupling_slack = restricted.coupling_slack(u, worst_cost)
    coupling_dual = np.zeros(coupling.row_count)
    coupling_dual[n:] = target / coupling_slack
    coupling_dual[first:] = limit_target / coupling_slack[coupling.distortion_count :]
    residual = restricted.dual_residual(coupling_dual, [slack_dual.duals for slack_dual in slack_duals])
    coupling_dual[:n] = residual[:, :n].mean(axis=0)
    device_u = restricted.batches[0].backend.to_device(u)
    return State(u, device_u, slack_duals, coupling_slack, coupling_dual, worst_cost)


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
