"""What is at stake: the loss that a gap is measured against where the optimum itself is next to nothing."""

from collections.abc import Sequence

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.problem import Bounds, Opponent

QUARTILE = 0.25
"""Share of a secret's positive entries that a moderate loss is above. A quarter, so that entries that stand for "never"
do not count, unless they are three quarters of all."""

SPREAD = 1e3
"""What is at stake is at most this multiple of the smallest positive entry: where most entries stand for "never", the
others say what losses are worth. Costs that are all meant, such as squared distances on a map, spread about as far."""


def stake(losses: FloatArray, prior: FloatArray, *, worst_case: bool = False) -> float:
    """The loss of revealing nothing, or of a moderately bad row if that is less: single entries do not move it.

    One constant row loses Σ_s π(s) L(r,s), and the best one is what revealing nothing loses: no optimum is above it.
    Where every row has some entry that stands for "never", such as 10¹², that is as large; the lower quartile of each
    secret's positive entries, averaged over the prior, is not; and where most entries stand for "never", a multiple of
    the smallest positive one is not, either. With ``worst_case`` secrets count by their maximum.

    Args:
        losses: costs c(o,s) or errors E(g,s), (rows, secrets), 0 or more; ∞ counts as "never".
        prior: π(s).
        worst_case: whether the worst secret's loss is what counts.

    Returns:
        The smallest of the three where it is positive and finite, else the largest finite entry, else 1.
    """
    counted = losses if worst_case else losses[:, prior > 0]
    weights = prior[prior > 0]
    blind = counted.max(axis=1) if worst_case else counted @ weights
    positive = np.sort(np.where(counted > 0, counted, np.inf), axis=0)
    count = np.isfinite(positive).sum(axis=0)
    place = ((count - 1).clip(min=0) * QUARTILE).astype(np.int64)
    moderate = np.where(count > 0, np.take_along_axis(positive, place[None], axis=0)[0], 0.0)
    typical = float(moderate.max() if worst_case else moderate @ weights)
    smallest = float(positive[0].min(initial=np.inf))
    candidates = [each for each in (float(blind.min()), typical, SPREAD * smallest) if 0 < each < np.inf]
    finite = losses[np.isfinite(losses)]
    return min(candidates, default=float(finite.max(initial=0.0)) or 1.0)


def at_stake(bounds: Bounds, cost: FloatArray, prior: FloatArray, opponents: Sequence[Opponent]) -> float:
    """The stake of what is optimised: of the cost or, with ``cost_at_most``, of the first adversary's error."""
    if bounds.reverse:
        return stake(opponents[0].errors, opponents[0].prior)
    return stake(cost, prior, worst_case=bounds.worst_case)
