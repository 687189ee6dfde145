r"""Rényi divergences of dominating pairs, and what they say of ε and δ.

:math:`D_\lambda(P \| Q) = \frac{1}{\lambda - 1} \ln \sum_o P(o)^\lambda Q(o)^{1-\lambda}`. Divergences of one order add
up over releases, however each mechanism was chosen from what was seen before (docs/theory/composition.md).
"""

from math import exp, inf, log, log1p

import numpy as np
from scipy.optimize import minimize_scalar

from privacygames.composition.dominating_pairs import DominatingPair
from privacygames.errors import Field, InvalidProblem
from privacygames.validation import is_number

UNIT = 2.0**-53
"""Unit roundoff of floating-point numbers."""

LARGEST_ORDER = 1e6
"""The largest finite order: its divergence is the pure ε to within the tightest δ that floats can ask for."""


def renyi_divergence(pair: DominatingPair, order: float) -> float:
    """The Rényi divergence of a pair, rounded up; that of order ∞ is the pure ε.

    It bounds the divergence of every two secrets that the pair stands for.

    >>> coin = pg.composition.randomised_response_pair(0.2)
    >>> [round(pg.composition.renyi_divergence(coin, order), 4) for order in (2, 10, np.inf)]
    [0.0393, 0.136, 0.2]
    """
    require_order(order)
    losses = pair.losses[pair.first > 0]
    if np.isinf(losses).any():
        return inf
    if order == inf:
        return max(float(losses.max()) * (1 + 4 * UNIT), 0.0) + 400 * UNIT
    masses = np.ldexp(pair.first[pair.first > 0].astype(np.float64), -pair.bits)
    # The exponents (order − 1)·loss are exact to 200 roundings of the loss and one of their own.
    moment = float(np.logaddexp.reduce(np.log(masses) + (order - 1) * losses))
    error = (order - 1) * 400 * UNIT + (len(losses) + 64) * 4 * UNIT * (1 + (order - 1) * float(np.abs(losses).max()))
    return max(moment + error, 0.0) / (order - 1) * (1 + 4 * UNIT)


def renyi_limit(epsilon: float, delta: float, order: float) -> float:
    """The largest divergence of an order that implies (ε, δ), rounded down; negative if none does.

    >>> pg.composition.renyi_limit(1.0, 1e-6, 20.0).__round__(4)
    0.4818

    From δ ≤ c·e^((order − 1)(divergence − ε)) with c = (1 − 1/order)^(order − 1) / order (Canonne et al. 2020).
    """
    require_order(order)
    if order == inf:
        return float(epsilon)
    log_constant = (order - 1) * log1p(-1 / order) - log(order)
    excess = (log_constant - log(delta)) / (order - 1)
    return epsilon - excess - 64 * UNIT * (1 + epsilon + (64 + abs(log(delta)) + log(order)) / (order - 1))


def best_order(epsilon: float, delta: float) -> float:
    """The order whose limit admits most small releases: their divergence grows in proportion to the order.

    >>> round(pg.composition.best_order(1.0, 1e-6), 2)
    21.98
    """

    def share(log_excess: float) -> float:
        order = 1 + exp(log_excess)
        return -renyi_limit(epsilon, delta, order) / order

    best = minimize_scalar(share, bounds=(log(1e-3), log(LARGEST_ORDER)), method="bounded")
    return float(1 + exp(float(best.x)))


def require_order(order: object) -> None:
    """Raise unless a number is an order of Rényi divergences: above 1, at most LARGEST_ORDER, or ∞."""
    if not (is_number(order) and (1 + 1e-6 <= order <= LARGEST_ORDER or order == inf)):  # type: ignore[operator]
        allowed = f"it must be above 1 and at most {LARGEST_ORDER:g}, or infinite"
        raise InvalidProblem(Field("order"), f" is {repr(order)[:40]}; {allowed}")
