"""Weak duality: what multipliers prove about every mechanism with the same promises."""

import numpy as np

from privacygames.arrays import LARGEST, SMALLEST, FloatArray
from privacygames.certificates.exact_sums import exact_products, exact_sums
from privacygames.certificates.multipliers import Multipliers
from privacygames.certificates.statement import Statement
from privacygames.errors import BrokenPromise

ULP: float = 2.0**-52


def optimum(statement: Statement, evidence: Multipliers, above: FloatArray) -> float:
    """No mechanism with these promises costs less than this (or has more distortion, when the cost is limited).

    Write v_o for p(o|·), K for the mechanisms with the promised ratios, x_o for the error of the best guess.
    For dual values κ, α, z ≥ 0, weights λ on secrets and any guesses q(·|o) that sum to one, every mechanism in K has

        κ·cost − α·Σ_o x_o ≥ Σ_o ⟨κ λ∘c_o − α π∘Σ_ŝ q(ŝ|o) d(ŝ,·) + Σ z (e_s − γ e_s'), v_o⟩ ≥ Σ_s min_o r_o(s)

    because its cost is at least the λ-average, x_o at most the q-average, z·(v_o(s) − γ v_o(s')) at most 0, and
    Σ_o v_o = 1. Nothing depends on where they come from. λ and q below are the computed quotients, divided
    once more, exactly, by their sum: that changes them by a relative 2n·2^-53, which ``doubt`` covers. Any row of
    multipliers will do for any observable, so ``like`` may point anywhere.

    Args:
        statement: what is promised, about what (of the right form: see ``check_form``).
        evidence: the multipliers.
        above: floats just above γ(s, s'), ∞ where no ratio is promised.
    """
    bounds = statement.bounds
    secrets, observables = statement.weights.shape
    cost_dual = evidence.cost_dual if bounds.reverse else 1.0
    distortion_dual = 1.0 if bounds.reverse else evidence.distortion_dual
    if (bounds.distortion is None and not bounds.reverse) or distortion_dual < SMALLEST:
        distortion_dual = 0.0
    cost_dual = cost_dual if cost_dual >= SMALLEST else 0.0
    weights = _distributions(evidence.secret_weights) if bounds.worst_case else statement.prior
    gain = cost_dual * statement.cost * weights
    loss = distortion_dual * (_distributions(evidence.attack) @ statement.distance) * statement.prior
    ratios, unsure = _ratio_terms(evidence, above)
    doubt = float((2 * secrets + observables + 32) * ULP)
    minus = loss[evidence.like]
    residual = gain - minus + ratios[evidence.like]
    residual -= doubt * (gain + minus) + (unsure + 4 * ULP * np.abs(ratios))[evidence.like]
    least = residual.min(axis=0)
    total = float(least.sum() - doubt * np.abs(least).sum())
    if bounds.cost_at_most is None:
        gained = distortion_dual * (bounds.distortion or 0.0)
        return max(total + gained - 8 * ULP * (abs(total) + gained), 0.0)
    blind = float((statement.distance @ statement.prior).min())  # nothing beats revealing nothing
    spent = cost_dual * bounds.cost_at_most
    return min(spent - total + 8 * ULP * (abs(total) + spent), blind * (1 + doubt))


def _distributions(values: FloatArray | None) -> FloatArray:
    """Rows scaled to sum to one, but for rounding; entries too small to matter become 0."""
    if values is None:
        raise BrokenPromise("the multipliers say nothing about secrets, which the worst case needs")
    sums = values.sum(axis=-1, keepdims=True)
    if not (sums >= SMALLEST).all():
        raise BrokenPromise("a row of the multipliers has no positive entry")
    scaled = values / sums
    return np.where(scaled >= SMALLEST, scaled, 0.0)


def _ratio_terms(evidence: Multipliers, above: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Σ z e_s − Σ z γ e_s' for each row, γ rounded up, and by how much it may be off.

    Large multipliers may cancel, so products and sums are exact until the last step.
    """
    shape = (len(evidence.attack), len(above))
    ratios = evidence.ratios
    factor = above[ratios.secret, ratios.other]
    used = (factor <= LARGEST) & (ratios.value >= SMALLEST)  # leaving one out is choosing it to be 0
    value = ratios.value[used]
    left = np.ravel_multi_index((ratios.observable[used], ratios.secret[used]), shape)
    right = np.ravel_multi_index((ratios.observable[used], ratios.other[used]), shape)
    high, low = exact_products(value, factor[used])
    places, terms = np.concatenate([left, right, right]), np.concatenate([value, -high, -low])
    found, unsure = exact_sums(places, terms, shape[0] * shape[1])
    return found.reshape(shape), unsure.reshape(shape)
