"""Typical losses of a problem: what a gap is relative to where the optimum itself is next to nothing."""

from collections.abc import Sequence

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.problem import AdversaryArrays, Bounds

NEGLIGIBLE = 1e-6
"""Fraction of the loss scale (:func:`loss_scale`) that a gap is relative to where the cost is smaller still."""

QUARTILE = 0.25
"""Moderate losses are above this share of a secret's positive entries, or of secrets: entries that stand for "never" do
not count unless they are three quarters of all, and neither do the next to nothing losses between a few near twins."""

SPREAD = 1e3
"""A moderate loss is at most this multiple of the smallest positive entry of a secret: where most entries stand for
"never", the others say what losses are worth. Costs that are all meant, such as squared distances on a map, spread
about as far."""

STORED = 1e8
"""A gap is relative to no less than what this many units of weight lose on moderate entries: one hundred units, which
storing a mechanism as integers may need, are then a gap of 10⁻⁶."""


def loss_scale(losses: FloatArray, prior: FloatArray, *, worst_case: bool = False) -> float:
    """The loss of revealing nothing, or a moderate one if that is less: single entries do not move it.

    One constant row loses Σ_s π(s) L(r,s), and the best one is what revealing nothing loses: no optimum is above it.
    Where every row has some entry that stands for "never", such as 10¹², that is as large; a moderate loss is not.
    With ``worst_case`` secrets count by their maximum.

    Args:
        losses: costs c(o,s) or errors E(g,s), (rows, secrets), 0 or more; ∞ counts as "never".
        prior: π(s).
        worst_case: whether the worst secret's loss is what counts.

    Returns:
        The smaller of the two where it is positive and finite, else the largest finite entry, else 1.
    """
    return _loss_scale(losses, prior, moderate_loss(losses, prior, worst_case=worst_case), worst_case=worst_case)


def moderate_loss(losses: FloatArray, prior: FloatArray, *, worst_case: bool = False) -> float:
    """The loss of a moderately bad output: neither next to nothing nor "never".

    It is the lower quartile of each secret's positive losses, averaged over the prior (with ``worst_case``: the largest
    of them), but no more than a multiple of the smallest positive loss of a secret (of their lower quartile by prior).

    Returns:
        The loss; 0 or ∞ where no loss is positive and finite.
    """
    counted, weights = _counted(losses, prior, worst_case=worst_case)
    positive = np.where(counted > 0, counted, np.inf)
    positive.sort(axis=0)
    count = np.isfinite(positive).sum(axis=0)
    place = (np.maximum(count - 1, 0) * QUARTILE).astype(np.int64)
    moderate = np.where(count > 0, positive[place, np.arange(len(place))], 0.0)
    typical = float(moderate.max() if worst_case else moderate @ weights)
    order = positive[0].argsort()
    reached = np.searchsorted(weights[order].cumsum(), QUARTILE * weights[count > 0].sum())
    return min(typical, SPREAD * float(positive[0][order][min(int(reached), len(order) - 1)]))


def _counted(losses: FloatArray, prior: FloatArray, *, worst_case: bool) -> tuple[FloatArray, FloatArray]:
    """The losses of the secrets that count, and their weights."""
    if worst_case:
        return losses, np.ones(losses.shape[1])
    occurs = prior > 0
    return (losses, prior) if occurs.all() else (losses[:, occurs], prior[occurs])


def _loss_scale(losses: FloatArray, prior: FloatArray, moderate: float, *, worst_case: bool) -> float:
    """:func:`loss_scale`, given the moderate loss."""
    counted, weights = _counted(losses, prior, worst_case=worst_case)
    constant = float((counted.max(axis=1) if worst_case else counted @ weights).min())
    candidates = [loss for loss in (constant, moderate) if 0 < loss < np.inf]
    return min(candidates) if candidates else float(losses[np.isfinite(losses)].max(initial=0.0)) or 1.0


def objective_scale(
    bounds: Bounds, cost: FloatArray, prior: FloatArray, adversaries: Sequence[AdversaryArrays]
) -> float:
    """The loss scale of what is optimised: the cost or, with ``cost_at_most``, the first adversary's error."""
    losses, weights, worst_case = _objective(bounds, cost, prior, adversaries)
    return loss_scale(losses, weights, worst_case=worst_case)


def _objective(
    bounds: Bounds, cost: FloatArray, prior: FloatArray, adversaries: Sequence[AdversaryArrays]
) -> tuple[FloatArray, FloatArray, bool]:
    """The losses that are optimised, the prior that weights them, and whether the worst secret's counts."""
    if bounds.maximises_distortion:
        return adversaries[0].errors, adversaries[0].prior, False
    return cost, prior, bounds.worst_case


def negligible_loss(
    bounds: Bounds, cost: FloatArray, prior: FloatArray, adversaries: Sequence[AdversaryArrays], bits: int
) -> float:
    """What a gap is relative to where the optimum is smaller: a fraction of the loss scale, or units of weight.

    Args:
        bounds: what is asked.
        cost: c(o,s).
        prior: π(s).
        adversaries: the adversaries the bounds are about.
        bits: every row of weights sums to 2^bits.
    """
    losses, weights, worst_case = _objective(bounds, cost, prior, adversaries)
    moderate = moderate_loss(losses, weights, worst_case=worst_case)
    stored = STORED * float(np.ldexp(moderate, -bits)) if moderate < np.inf else 0.0
    return max(NEGLIGIBLE * _loss_scale(losses, weights, moderate, worst_case=worst_case), stored)
