r"""Rényi divergences of dominating pairs, and what they say of ε and δ.

:math:`D_\lambda(P \| Q) = \frac{1}{\lambda - 1} \ln \sum_o P(o)^\lambda Q(o)^{1-\lambda}`. Divergences of one order add
up over releases, however each mechanism was chosen from what was seen before (docs/theory/composition.md).
"""

from collections.abc import Callable
from decimal import ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal, InvalidOperation, localcontext
from math import exp, inf, log, nextafter

import numpy as np
from scipy.optimize import minimize_scalar

from privacygames.composition.dominating_pairs import DominatingPair
from privacygames.errors import Field, InvalidProblem
from privacygames.validation import is_number

UNIT = 2.0**-53
"""Unit roundoff of floating-point numbers."""

SMALLEST_ORDER = 1 + 1e-6
"""The smallest order: nearer to 1, the limit of a small δ loses all digits."""

LARGEST_ORDER = 1e6
"""The largest finite order: its divergence is the pure ε to within the tightest δ that floats can ask for."""

SMALLEST_EXCESS = 1e-3
"""The smallest excess over 1 of an order that is searched: below it no limit is positive for a small δ."""

SEARCHED_ORDERS = 64
"""Number of orders that are tried before the search goes on near the best of them."""

PRECISE = Context(prec=60, rounding=ROUND_HALF_EVEN, Emin=-999999, Emax=999999, flags=[], traps=[InvalidOperation])
"""Decimal arithmetic whose results are equal on all machines; logarithms are rounded correctly."""

ERROR = Decimal("1e-40")
"""More than the error of a limit in this arithmetic, whose largest terms are below 1e10."""

ROUND_DOWN = Context(prec=15, rounding=ROUND_FLOOR)
"""Digits of a limit."""


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
    """
    exact = exact_renyi_limit(Decimal(epsilon), delta, order)
    nearest = float(exact)
    return nearest if Decimal(nearest) <= exact else nextafter(nearest, -inf)


def exact_renyi_limit(epsilon: Decimal, delta: float, order: float) -> Decimal:
    """The same as a decimal number, which is equal on all machines: a ledger's limit can be recomputed.

    >>> from decimal import Decimal
    >>> pg.composition.exact_renyi_limit(Decimal("4.0"), 1e-6, 7.5)
    Decimal('2.32762276096036')

    From δ ≤ c·e^((order − 1)(divergence − ε)) with c = (1 − 1/order)^(order − 1) / order (Canonne et al. 2020).

    Args:
        epsilon: ε, exactly.
        delta: δ.
        order: of the divergence.
    """
    require_order(order)
    if order == inf:
        return epsilon
    with localcontext(PRECISE):  # operators take the context of the thread
        exact, excess = Decimal(order), Decimal(order) - 1
        log_constant = excess * (1 - 1 / exact).ln() - exact.ln()
        limit = epsilon - (log_constant - Decimal(delta).ln()) / excess - ERROR
    return ROUND_DOWN.create_decimal(limit)


def best_order(epsilon: float, delta: float, pair: DominatingPair | None = None) -> float:
    """The order whose limit admits most releases of a pair, which may be ∞; without one, most small releases.

    The divergences of small releases grow in proportion to the order.

    >>> round(pg.composition.best_order(1.0, 1e-6), 2)
    21.98
    >>> pg.composition.best_order(1.0, 1e-6, pg.composition.randomised_response_pair(0.8))
    inf

    Args:
        epsilon: the budget.
        delta: the probability that it may fail.
        pair: what each release is dominated by.
    """

    def releases(order: float) -> float:
        limit = renyi_limit(epsilon, delta, order)
        return limit / (order if pair is None else max(renyi_divergence(pair, order), UNIT))

    if pair is None:
        return _largest(releases, log(SMALLEST_EXCESS), log(LARGEST_ORDER))
    searched = np.geomspace(SMALLEST_EXCESS, LARGEST_ORDER - 1, SEARCHED_ORDERS)
    best = int(np.argmax([releases(1 + excess) for excess in searched.tolist()]))
    around = np.log(searched[[max(best - 1, 0), min(best + 1, len(searched) - 1)]]).tolist()
    finite = _largest(releases, *around)
    return inf if int(releases(inf)) >= int(releases(finite)) else finite  # order ∞ never fails


def _largest(value: Callable[[float], float], low: float, high: float) -> float:
    """The order with the largest value, between two logarithms of its excess over 1."""
    best = minimize_scalar(lambda log_excess: -value(1 + exp(log_excess)), bounds=(low, high), method="bounded")
    return float(1 + exp(float(best.x)))


def require_order(order: object) -> None:
    """Raise unless a number is an order of Rényi divergences: above 1, at most LARGEST_ORDER, or ∞."""
    if not (is_number(order) and (SMALLEST_ORDER <= order <= LARGEST_ORDER or order == inf)):  # type: ignore[operator]
        allowed = f"it must be above 1 and at most {LARGEST_ORDER:g}, or infinite"
        raise InvalidProblem(Field("order"), f" is {repr(order)[:40]}; {allowed}")
