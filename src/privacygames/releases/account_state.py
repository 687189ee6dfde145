"""What an account holds, recomputed from the events of a ledger; stored sums are never read."""

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from decimal import Decimal
from fractions import Fraction
from math import inf, nextafter

from privacygames.releases.budgets import Spent
from privacygames.releases.decimal_epsilon import NOTHING, minus, total

Place = tuple[int, str]
"""A memoised place: the number of the event that fixed the distinguishability, and its keyed mark."""


class AccountState:
    """One account, followed from event to event.

    A release is charged at its time. A memoised place counts once in every window in which it was answered: at the
    first answer, and again once the answer before it is out of the window.

    Args:
        limit: the most that the window, or all time, may hold; None: nothing limits it.
        every: the length of the window; None: all time.
    """

    def __init__(self, limit: Decimal | None, every: float | None) -> None:
        self.limit, self.every = limit, every
        self.charged, self.fullest = NOTHING, NOTHING
        self._times: list[float] = []
        self._sums, self._counts = [NOTHING], [0]
        self._places: OrderedDict[Place, tuple[Decimal, float]] = OrderedDict()

    def due(self, place: Place | None, cost: Decimal, at: float) -> Decimal:
        """What a release at a time is charged: its cost, or nothing where its place is counted already."""
        if place is None or place not in self._places:
            return cost
        known, last = self._places[place]
        return NOTHING if self.every is None or last >= self._start(at) else known

    def add(self, place: Place | None, amount: Decimal, at: float) -> None:
        """Take in a charge."""
        self.charged = total([self.charged, amount])
        if place is None or self.every is None:
            self._times.append(at)
            self._sums.append(total([self._sums[-1], amount]))
            self._counts.append(self._counts[-1] + (amount > 0))
        if place is not None:
            self._places[place] = self._places.get(place, (amount, at))[0], at
            self._places.move_to_end(place)
        self.fullest = max(self.fullest, self.spent(at).amount)

    def spent(self, at: float) -> Spent:
        """What counts at a time that is not before the last charge: everything, or what the window ending then holds.

        Of a window these are the charges in it, and the cost of every distinct place that was answered in it.
        """
        if self.every is None:
            return Spent(self._sums[-1], self._counts[-1])
        start = self._start(at)
        before = bisect_left(self._times, start)
        amounts = [minus(self._sums[-1], self._sums[before])]
        count = self._counts[-1] - self._counts[before]
        for cost, last in reversed(self._places.values()):
            if last < start:
                break
            amounts.append(cost)
            count += cost > 0
        return Spent(total(amounts), count)

    def correct_clock(self, to: float) -> None:
        """Count what was charged at a later time as charged at this one: it stays in windows for the longest."""
        later = bisect_right(self._times, to)
        self._times[later:] = [to] * (len(self._times) - later)
        for place, (cost, last) in self._places.items():
            self._places[place] = cost, min(last, to)

    def _start(self, at: float) -> float:
        """The first float in the window that ends at a time, decided without rounding."""
        start = at - (self.every or inf)
        exact = Fraction(at) - Fraction(self.every or 0)
        return start if Fraction(start) >= exact else nextafter(start, inf)
