"""What fits into a day's budget: sums of ε, or of Rényi divergences where there is a δ."""

from collections import deque
from dataclasses import dataclass
from math import inf

from privacygames.composition import best_order, randomised_response_pair, renyi_divergence, renyi_limit

DAY = 86_400.0
"""The window of a budget in seconds."""

HALVINGS = 50
"""Rounds of bisection for ε: a share of a budget is then exact to rounding."""

ROUNDING = 1e-12
"""Equal shares of a budget may exceed it by rounding, relative to it; a ledger adds decimal numbers exactly."""


@dataclass(frozen=True)
class DayBudget:
    """The budget of every 24 hours.

    Attributes:
        epsilon: ε per km.
        delta: None: every release is charged its ε. Otherwise all releases of 24 hours together are
            (``epsilon`` · ``within``, ``delta``)-private between days that differ by at most ``within`` at each.
        within: in km.
    """

    epsilon: float
    delta: float | None
    within: float

    def limit(self, order: float) -> float:
        """The largest sum of charges in 24 hours; of Rényi divergences where the order is finite."""
        if self.delta is None or order == inf:
            return self.epsilon
        return renyi_limit(self.epsilon * self.within, self.delta, order)

    def charge(self, epsilon: float, order: float) -> float:
        """The charge for a release with ε per km, whatever its mechanism."""
        if self.delta is None or order == inf:
            return epsilon
        return renyi_divergence(randomised_response_pair(epsilon * self.within), order)

    def order(self, epsilon: float) -> float:
        """The order of divergence that admits most releases of ε per km; ∞: ε itself is added up."""
        if self.delta is None:
            return inf
        pair = randomised_response_pair(epsilon * self.within)
        return best_order(self.epsilon * self.within, self.delta, pair)

    def even_share(self, releases: int) -> tuple[float, float]:
        """The largest ε per km of that many releases a day, and the order that admits them."""
        low = self.epsilon / releases
        if self.delta is None:
            return low, inf
        best, high = (low, inf), self.epsilon
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            order = self.order(middle)
            if order < inf and releases * self.charge(middle, order) <= self.limit(order):
                low, best = middle, (middle, order)
            else:
                high = middle
            if high - low <= 1e-4 * high:
                break
        return best


class DayAccount:
    """Charges of the last 24 hours against a budget.

    Args:
        limit: the largest sum.
    """

    def __init__(self, limit: float) -> None:
        self.limit, self._spent = limit, 0.0
        self._charges: deque[tuple[float, float]] = deque()

    def has_room(self, charge: float, time: float) -> bool:
        """Whether a charge at a time fits, after those that are older than a day left the window."""
        while self._charges and self._charges[0][0] <= time - DAY:
            self._charges.popleft()
        self._spent = sum(each for _, each in self._charges)
        return self._spent + charge <= self.limit * (1 + ROUNDING)

    def add(self, charge: float, time: float) -> None:
        """Charge a release."""
        self._charges.append((time, charge))
