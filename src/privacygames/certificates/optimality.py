"""Weak duality: what dual values prove about every mechanism with the same guarantees."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import LARGEST_FINITE, SMALLEST_POSITIVE, FloatArray, IntArray
from privacygames.certificates.dual_solution import DualSolution, RatioDuals
from privacygames.certificates.exact_sums import exact_products, exact_sums
from privacygames.certificates.statement import Statement
from privacygames.errors import GuaranteeViolated
from privacygames.threads import map_in_threads

ULP: float = 2.0**-52
"""Distance from 1 to the next float: twice the relative rounding error of one operation."""

TERMS_PER_TASK = 60_000
"""Number of dual values that one thread sums up at a time: some megabytes, which fit the processor's cache."""

ENTRIES_PER_TERM, ENTRIES_PER_EXACT_TERM = 10, 100
"""Array entries that are read for each dual value where sums are rounded, and where they are exact."""

NEGLIGIBLE_ROUNDING = 1e-10
"""Rounding error of the sums of dual values, relative to the bound, up to which they are not computed exactly: a
hundredth of the smallest gap that matters."""


class ProvedBound(NamedTuple):
    """What dual values prove.

    Attributes:
        value: the bound on every mechanism's cost, or its distortion.
        charged: Σ_s max_o Σ z γ, of which a relative error of γ takes at most its share from the bound.
    """

    value: float
    charged: float


def optimum(statement: Statement, duals: DualSolution, above: FloatArray) -> ProvedBound:
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
    minus = loss[duals.output_rows]
    residual = gain - minus - doubt * (gain + minus)
    spent = cost_dual * (bounds.cost_at_most or 0.0) + float(limit_duals.sum()) * (bounds.worst_cost_at_most or 0.0)
    sums = _sum_ratios(duals, above)
    least = _least_residuals(sums, residual, allowed, duals.output_rows)
    rounding = float(sums.unsure.max(axis=0).sum())
    if not rounding <= NEGLIGIBLE_ROUNDING * abs(float(least.sum()) + guaranteed - spent):
        sums = _sum_ratios(duals, above, exact=True)
        least = _least_residuals(sums, residual, allowed, duals.output_rows)
    charged = float(sums.charged.max(axis=0).sum())
    total = float(least.sum() - doubt * np.abs(least).sum())
    slack = doubt * (abs(total) + guaranteed + spent)
    if not bounds.maximises_distortion:
        return ProvedBound(max(total + guaranteed - spent - slack, 0.0), charged)
    nothing_revealed = adversaries[0].max_distortion * (1 + doubt)  # no mechanism has more
    return ProvedBound(min(spent - guaranteed - total + slack, nothing_revealed), charged)


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


class _RatioSums(NamedTuple):
    """Σ z e_s − Σ z γ e_s' for each row of dual values, (rows, secrets).

    Attributes:
        total: these sums.
        unsure: by how much each may be off.
        charged: Σ z γ e_s' alone, roughly.
    """

    total: FloatArray
    unsure: FloatArray
    charged: FloatArray


def _least_residuals(
    sums: _RatioSums, residual: FloatArray, allowed: NDArray[np.bool_], output_rows: IntArray
) -> FloatArray:
    """min_o r_o(s) for each s, rounded down.

    Args:
        sums: the terms of ratios in each row.
        residual: the other terms, for each output, rounded down.
        allowed: which outputs each secret may give, (outputs, secrets).
        output_rows: the row of each output.
    """
    terms = sums.total - (sums.unsure + 4 * ULP * np.abs(sums.total))
    return np.asarray((residual + terms[output_rows]).min(axis=0, where=allowed, initial=np.inf))


def _sum_ratios(duals: DualSolution, above: FloatArray, *, exact: bool = False) -> _RatioSums:
    """The terms of ratios in each row, γ rounded up.

    Each row has dual values of its own, so blocks of rows are summed up by several threads.

    Args:
        duals: the dual values.
        above: floats just above γ(s, s'), ∞ where no ratio is bounded.
        exact: whether nothing but the last step is rounded, for large dual values that cancel.
    """
    rows, ratios = duals.rows, duals.ratios
    if (ratios.observable[1:] < ratios.observable[:-1]).any():
        ratios = ratios.take(np.argsort(ratios.observable, kind="stable"))
    count = len(ratios.value)
    blocks = min(rows, 1 + count // TERMS_PER_TASK)
    edges = [rows * block // blocks for block in range(blocks + 1)]
    starts = np.searchsorted(ratios.observable, edges)

    def sum_block(block: int) -> _RatioSums:
        own = ratios.take(slice(starts[block], starts[block + 1]))
        return _sum_rows(own, (edges[block], edges[block + 1]), above, exact=exact)

    sums = map_in_threads(sum_block, blocks, count * (ENTRIES_PER_EXACT_TERM if exact else ENTRIES_PER_TERM))
    return sums[0] if blocks == 1 else _RatioSums(*(np.concatenate(parts) for parts in zip(*sums, strict=True)))


def _sum_rows(ratios: RatioDuals, rows: tuple[int, int], above: FloatArray, *, exact: bool) -> _RatioSums:
    """The same for a range of rows."""
    secrets, value = len(above), ratios.value
    size = (rows[1] - rows[0]) * secrets
    secret, other = ratios.secret.astype(np.int64), ratios.other.astype(np.int64)
    factor = above.ravel().take(secret * secrets + other)
    first = (ratios.observable.astype(np.int64) - rows[0]) * secrets
    left, right = first + secret, first + other
    used = (factor <= LARGEST_FINITE) & (value >= SMALLEST_POSITIVE)  # leaving one out is choosing it to be 0
    if not used.all():
        factor, value, left, right = factor[used], value[used], left[used], right[used]
    charged = np.asarray(np.bincount(right, value * factor, size), dtype=np.float64)
    if exact:
        high, low = exact_products(value, factor)
        terms = np.concatenate([value, -high, -low])
        total, unsure = exact_sums(np.concatenate([left, right, right]), terms, size)
    else:
        credited = np.bincount(left, value, size)
        total = credited - charged
        # Sums of at most N products that are 0 or more are within a relative N·2^-52; 4 more for what follows.
        most = int(np.diff(np.searchsorted(ratios.observable, np.arange(rows[0], rows[1] + 1))).max(initial=0))
        unsure = ((most + 4) * ULP) * (credited + charged)
    shape = -1, secrets
    return _RatioSums(total.reshape(shape), unsure.reshape(shape), charged.reshape(shape))
