"""Weak duality: what multipliers prove about every mechanism with the same promises."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from privacygames.arrays import LARGEST_FINITE, SMALLEST_POSITIVE, FloatArray
from privacygames.certificates.dual_solution import DualSolution, RatioDuals
from privacygames.certificates.exact_sums import exact_products, exact_sums
from privacygames.certificates.statement import Statement
from privacygames.errors import GuaranteeViolated
from privacygames.threads import available_processors

ULP: float = 2.0**-52

TERMS_AT_ONCE = 60_000
"""About so many multipliers are summed up at a time."""


def optimum(statement: Statement, evidence: DualSolution, above: FloatArray) -> float:
    """No mechanism with these promises costs less than this (or has more distortion, when the cost is limited).

    Write v_o for p(o|·), K for the mechanisms with the promised ratios, x_k(o) for the error of adversary k's best
    guess, d_k for what is promised against her and W for the limit on every secret's cost. For dual values κ, α_k, z, ν
    ≥ 0, weights λ on secrets and any guesses q_k(·|o) that sum to one, every mechanism in K has

        κ·cost + Σ_s ν(s)·cost(s) − Σ_k α_k·Σ_o x_k(o) ≥ Σ_s min_o r_o(s),    r_o the residual
        κ λ∘c_o + ν∘c_o − Σ_k α_k π_k∘Σ_g q_k(g|o) E_k(g,·) + Σ z (e_s − γ e_s')

    because its cost is at least the λ-average, x_k(o) at most the q_k-average, z·(v_o(s) − γ v_o(s')) at most 0, and
    Σ_o v_o = 1; the minimum is over the outputs that s may give, for v_o(s) = 0 for others. On the left cost(s) ≤ W and
    Σ_o x_k(o) ≥ d_k (or, for the first, what is maximised, with α = 1).
    Nothing depends on where they come from. λ and q below are the computed quotients, divided once more, exactly, by
    their sum: that changes them by a relative 2N·2^-53, N terms each, which ``doubt`` covers. Any row of multipliers
    will do for any observable, so ``like`` may point anywhere.

    Args:
        statement: what is promised, about what (of the right form: see ``check_form``).
        evidence: the multipliers.
        above: floats just above γ(s, s'), ∞ where no ratio is promised.
    """
    bounds, adversaries = statement.bounds, statement.adversaries
    secrets, observables = statement.weights.shape
    terms = max([secrets, *(len(adversary.errors) for adversary in adversaries)])
    doubt = float((2 * terms + observables + len(adversaries) + 32) * ULP)
    cost_dual = _counted(evidence.cost_dual) if bounds.maximises_distortion else 1.0
    weights = _distributions(evidence.secret_weights) if bounds.worst_case else statement.prior
    limited = _limit_weights(statement, evidence)
    allowed = statement.allowed.T
    gain = (statement.cost if allowed.all() else np.where(allowed, statement.cost, 0.0)) * (
        cost_dual * weights + limited
    )
    loss = np.zeros((len(evidence.attack), secrets))
    held = 0.0
    for place, (adversary, (dual, attack)) in enumerate(zip(adversaries, _against(statement, evidence), strict=True)):
        maximised = bounds.maximises_distortion and place == 0
        price = 1.0 if maximised else dual
        loss += price * (_distributions(attack) @ adversary.errors) * adversary.prior
        held += 0.0 if maximised else price * (adversary.distortion or 0.0)
    ratios, unsure = _ratio_terms(evidence, above)
    minus = loss[evidence.like]
    residual = gain - minus + ratios[evidence.like]
    residual -= doubt * (gain + minus) + (unsure + 4 * ULP * np.abs(ratios))[evidence.like]
    least = residual.min(axis=0, where=allowed, initial=np.inf)
    total = float(least.sum() - doubt * np.abs(least).sum())
    spent = cost_dual * (bounds.cost_at_most or 0.0) + float(limited.sum()) * (bounds.worst_cost_at_most or 0.0)
    slack = doubt * (abs(total) + held + spent)
    if not bounds.maximises_distortion:
        return max(total + held - spent - slack, 0.0)
    return min(
        spent - held - total + slack, adversaries[0].max_distortion * (1 + doubt)
    )  # nothing beats revealing nothing


def _against(statement: Statement, evidence: DualSolution) -> list[tuple[float, FloatArray]]:
    """For each adversary that something is promised against, the dual value and the guesses that speak of her."""
    if statement.bounds.against:
        return [(_counted(each.dual), each.attack) for each in evidence.against]
    return [(_counted(evidence.distortion_dual), evidence.attack)][: len(statement.adversaries)]


def _limit_weights(statement: Statement, evidence: DualSolution) -> FloatArray:
    """ν, the prices of the limit on every secret's cost: 0 without such a limit."""
    given = evidence.limit_weights
    if statement.bounds.worst_cost_at_most is None or given is None:
        return np.zeros(len(statement.prior))
    return np.where(given >= SMALLEST_POSITIVE, given, 0.0)


def _counted(dual: float) -> float:
    """A dual value, or 0 where it is too small to be computed with."""
    return dual if dual >= SMALLEST_POSITIVE else 0.0


def _distributions(values: FloatArray | None) -> FloatArray:
    """Rows scaled to sum to one, but for rounding; entries too small to matter become 0."""
    if values is None:
        raise GuaranteeViolated("the multipliers say nothing about secrets, which the worst case needs")
    sums = values.sum(axis=-1, keepdims=True)
    if not (sums >= SMALLEST_POSITIVE).all():
        raise GuaranteeViolated("a row of the multipliers has no positive entry")
    scaled = values / sums
    return np.where(scaled >= SMALLEST_POSITIVE, scaled, 0.0)


def _ratio_terms(evidence: DualSolution, above: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Σ z e_s − Σ z γ e_s' for each row, γ rounded up, and by how much it may be off.

    Each row has multipliers of its own, so some rows at a time are summed up, by several threads.
    """
    rows = len(evidence.attack)
    ratios = evidence.ratios
    if (np.diff(ratios.observable) < 0).any():
        ratios = ratios.at(np.argsort(ratios.observable, kind="stable"))
    parts = min(rows, 1 + len(ratios.value) // TERMS_AT_ONCE)
    edges = [rows * part // parts for part in range(parts + 1)]
    starts = np.searchsorted(ratios.observable, edges)

    def summed(part: int) -> tuple[FloatArray, FloatArray]:
        own = ratios.at(slice(starts[part], starts[part + 1]))
        return _summed(own, edges[part], (edges[part + 1] - edges[part], len(above)), above)

    with ThreadPoolExecutor(available_processors()) as pool:
        found = list(pool.map(summed, range(parts)))
    return np.concatenate([each for each, _ in found]), np.concatenate([unsure for _, unsure in found])


def _summed(ratios: RatioDuals, first: int, shape: tuple[int, int], above: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The same for some rows from the first on. Large multipliers may cancel, so all is exact until the last step."""
    factor = above[ratios.secret, ratios.other]
    used = (factor <= LARGEST_FINITE) & (ratios.value >= SMALLEST_POSITIVE)  # leaving one out is choosing it to be 0
    value, row = ratios.value[used], ratios.observable[used] - first
    left = np.ravel_multi_index((row, ratios.secret[used]), shape)
    right = np.ravel_multi_index((row, ratios.other[used]), shape)
    high, low = exact_products(value, factor[used])
    places, terms = np.concatenate([left, right, right]), np.concatenate([value, -high, -low])
    found, unsure = exact_sums(places, terms, shape[0] * shape[1])
    return found.reshape(shape), unsure.reshape(shape)
