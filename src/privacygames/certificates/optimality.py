"""Weak duality: what dual values prove about every mechanism with the same guarantees."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from privacygames.arrays import LARGEST_FINITE, SMALLEST_POSITIVE, FloatArray
from privacygames.certificates.dual_solution import DualSolution, RatioDuals
from privacygames.certificates.exact_sums import exact_products, exact_sums
from privacygames.certificates.statement import Statement
from privacygames.errors import GuaranteeViolated
from privacygames.threads import available_processors

ULP: float = 2.0**-52
"""Distance from 1 to the next float: twice the relative rounding error of one operation."""

TERMS_PER_TASK = 60_000
"""Number of dual values that one thread sums up at a time: some megabytes, which fit the processor's cache."""


def optimum(statement: Statement, duals: DualSolution, above: FloatArray) -> float:
    """No mechanism with these guarantees costs less than this (or has more distortion, when the cost is limited).

    Write v_o for p(o|·), K for the mechanisms with the guaranteed ratios, x_k(o) for the error of adversary k's best
    guess, d_k for the distortion guaranteed against them and W for the limit on every secret's cost. For dual values κ,
    α_k, z, ν ≥ 0, weights λ on secrets and any guesses q_k(·|o) that sum to one, every mechanism in K has

        κ·cost + Σ_s ν(s)·cost(s) − Σ_k α_k·Σ_o x_k(o) ≥ Σ_s min_o r_o(s),    r_o the residual
        κ λ∘c_o + ν∘c_o − Σ_k α_k π_k∘Σ_g q_k(g|o) E_k(g,·) + Σ z (e_s − γ e_s')

    because its cost is at least the λ-average, x_k(o) at most the q_k-average, z·(v_o(s) − γ v_o(s')) at most 0, and
    Σ_o v_o = 1; the minimum is over the outputs that s may give, for v_o(s) = 0 for others. On the left cost(s) ≤ W and
    Σ_o x_k(o) ≥ d_k (or, for the first, what is maximised, with α = 1).
    Nothing depends on where they come from. λ and q below are the computed quotients, divided once more, exactly, by
    their sum: that changes them by a relative 2N·2^-53, N terms each, which ``doubt`` covers. Any row of dual values
    will do for any output, so ``output_rows`` may point anywhere.

    Args:
        statement: what is guaranteed, about what (of the right form: see ``check_form``).
        duals: the dual values.
        above: floats just above γ(s, s'), ∞ where no ratio is bounded.
    """
    bounds, adversaries = statement.bounds, statement.adversaries
    secrets, observables = statement.weights.shape
    terms = max([secrets, *(len(adversary.errors) for adversary in adversaries)])
    doubt = float((2 * terms + observables + len(adversaries) + 32) * ULP)
    cost_dual = _usable(duals.cost_dual) if bounds.maximises_distortion else 1.0
    weights = _distributions(duals.secret_weights) if bounds.worst_case else statement.prior
    limit_duals = _worst_cost_duals(statement, duals)
    allowed = statement.allowed.T
    gain = (statement.cost if allowed.all() else np.where(allowed, statement.cost, 0.0)) * (
        cost_dual * weights + limit_duals
    )
    loss = np.zeros((duals.rows, secrets))
    guaranteed = 0.0
    for position, (adversary, evidence) in enumerate(zip(adversaries, duals.adversaries, strict=True)):
        maximised = bounds.maximises_distortion and position == 0
        dual = 1.0 if maximised else _usable(evidence.dual)
        loss += dual * (_distributions(evidence.attack) @ adversary.errors) * adversary.prior
        guaranteed += 0.0 if maximised else dual * (adversary.distortion or 0.0)
    ratios, unsure = _ratio_terms(duals, above)
    minus = loss[duals.output_rows]
    residual = gain - minus + ratios[duals.output_rows]
    residual -= doubt * (gain + minus) + (unsure + 4 * ULP * np.abs(ratios))[duals.output_rows]
    least = residual.min(axis=0, where=allowed, initial=np.inf)
    total = float(least.sum() - doubt * np.abs(least).sum())
    spent = cost_dual * (bounds.cost_at_most or 0.0) + float(limit_duals.sum()) * (bounds.worst_cost_at_most or 0.0)
    slack = doubt * (abs(total) + guaranteed + spent)
    if not bounds.maximises_distortion:
        return max(total + guaranteed - spent - slack, 0.0)
    nothing_revealed = adversaries[0].max_distortion * (1 + doubt)  # no mechanism has more
    return min(spent - guaranteed - total + slack, nothing_revealed)


def _worst_cost_duals(statement: Statement, duals: DualSolution) -> FloatArray:
    """ν, the dual values of the limit on every secret's cost: 0 without such a limit."""
    values = duals.worst_cost_duals
    if statement.bounds.worst_cost_at_most is None or values is None:
        return np.zeros(len(statement.prior))
    return np.where(values >= SMALLEST_POSITIVE, values, 0.0)


def _usable(dual: float) -> float:
    """A dual value, or 0 where it is too small to be computed with."""
    return dual if dual >= SMALLEST_POSITIVE else 0.0


def _distributions(values: FloatArray | None) -> FloatArray:
    """Rows scaled to sum to one, but for rounding; entries too small to matter become 0."""
    if values is None:
        raise GuaranteeViolated("the dual values have no weights of secrets, which the worst case needs")
    sums = values.sum(axis=-1, keepdims=True)
    if not (sums >= SMALLEST_POSITIVE).all():
        raise GuaranteeViolated("a row of the dual values has no positive entry")
    scaled = values / sums
    return np.where(scaled >= SMALLEST_POSITIVE, scaled, 0.0)


def _ratio_terms(duals: DualSolution, above: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Σ z e_s − Σ z γ e_s' for each row, γ rounded up, and by how much it may be off.

    Each row has dual values of its own, so blocks of rows are summed up by several threads.
    """
    rows, ratios = duals.rows, duals.ratios
    if (np.diff(ratios.observable) < 0).any():
        ratios = ratios.take(np.argsort(ratios.observable, kind="stable"))
    blocks = min(rows, 1 + len(ratios.value) // TERMS_PER_TASK)
    edges = [rows * block // blocks for block in range(blocks + 1)]
    starts = np.searchsorted(ratios.observable, edges)

    def sum_block(block: int) -> tuple[FloatArray, FloatArray]:
        own = ratios.take(slice(starts[block], starts[block + 1]))
        return _sum_rows(own, edges[block], (edges[block + 1] - edges[block], len(above)), above)

    with ThreadPoolExecutor(available_processors()) as pool:
        sums = list(pool.map(sum_block, range(blocks)))
    return np.concatenate([total for total, _ in sums]), np.concatenate([unsure for _, unsure in sums])


def _sum_rows(
    ratios: RatioDuals, first: int, shape: tuple[int, int], above: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same for the rows from ``first`` on. Large dual values may cancel, so all is exact until the last step."""
    factor = above[ratios.secret, ratios.other]
    used = (factor <= LARGEST_FINITE) & (ratios.value >= SMALLEST_POSITIVE)  # leaving one out is choosing it to be 0
    value, row = ratios.value[used], ratios.observable[used] - first
    left = np.ravel_multi_index((row, ratios.secret[used]), shape)
    right = np.ravel_multi_index((row, ratios.other[used]), shape)
    high, low = exact_products(value, factor[used])
    positions, terms = np.concatenate([left, right, right]), np.concatenate([value, -high, -low])
    sums, unsure = exact_sums(positions, terms, shape[0] * shape[1])
    return sums.reshape(shape), unsure.reshape(shape)
