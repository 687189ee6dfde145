"""Privacy filters: whether a budget has room for one more release, whatever the choice of its mechanism depended on.

Each filter keeps one theorem of docs/theory/composition.md: for any two sequences of secrets that differ, at every
release, by no more than the pairs were computed for, everything that is released before the filter refuses is
(ε, δ)-private. Charge first, release afterwards.

A filter that composes the privacy-loss distributions of whatever was chosen so far, and goes on as long as the result
is within (ε, δ), is **not** valid for adaptive choices: tests/composition holds a counterexample.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from fractions import Fraction
from math import inf

from privacygames.composition.compositions import Composition
from privacygames.composition.dominating_pairs import DominatingPair
from privacygames.composition.renyi import best_order, renyi_divergence, renyi_limit
from privacygames.errors import BudgetExceeded, Field, InvalidProblem
from privacygames.validation import is_number, require_instance


class PrivacyFilter(ABC):
    """A budget for releases whose mechanisms are chosen one after the other.

    >>> budget: pg.composition.PrivacyFilter = pg.composition.PureFilter(1.0)
    >>> coin = pg.composition.randomised_response_pair(0.4)
    >>> while budget.fits(coin):
    ...     budget.charge(coin)
    >>> budget.releases
    2

    Attributes:
        releases: how many were charged.
    """

    def __init__(self) -> None:
        self.releases = 0

    @abstractmethod
    def fits(self, pair: DominatingPair) -> bool:
        """Whether a release from a mechanism that this pair dominates is within the budget."""

    def charge(self, pair: DominatingPair) -> None:
        """Charge a release; to be called before anything of it can be seen.

        Raises:
            BudgetExceeded: the budget has no room for it; nothing was charged.
        """
        require_instance(pair, DominatingPair, "pair")
        if not self.fits(pair):
            raise BudgetExceeded("the budget has no room for this release; nothing was charged")
        self._add(pair)
        self.releases += 1

    @abstractmethod
    def _add(self, pair: DominatingPair) -> None:
        """Add what a release costs."""


class PureFilter(PrivacyFilter):
    """A sum of pure ε, whose δ is 0.

    >>> pg.composition.PureFilter(1.0).fits(pg.composition.randomised_response_pair(1.5))
    False

    Args:
        epsilon: the budget.
    """

    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self.epsilon = _positive(epsilon, "epsilon")
        self._spent = Fraction(0)

    def fits(self, pair: DominatingPair) -> bool:
        """Whether the sum stays within the budget."""
        divergence = _pure_epsilon(pair)
        return divergence < inf and self._spent + Fraction(divergence) <= Fraction(self.epsilon)

    def _add(self, pair: DominatingPair) -> None:
        self._spent += Fraction(_pure_epsilon(pair))


class RenyiFilter(PrivacyFilter):
    """A sum of Rényi divergences of one or several orders, for mechanisms chosen freely from what was seen before.

    >>> budget = pg.composition.RenyiFilter(1.0, 1e-6)
    >>> coin = pg.composition.randomised_response_pair(0.02)
    >>> while budget.fits(coin):
    ...     budget.charge(coin)
    >>> budget.releases  # by pure epsilon it would be 50
    125

    Args:
        epsilon: the budget.
        delta: the probability that it may fail.
        orders: of the divergences; by default ∞, which is pure ε, and the one that admits most small releases. A
            release fits if any order has room; finite orders share δ equally.
    """

    def __init__(self, epsilon: float, delta: float, *, orders: Iterable[float] | None = None) -> None:
        super().__init__()
        self.epsilon = _positive(epsilon, "epsilon")
        self.delta = _positive(delta, "delta")
        if self.delta >= 1:
            raise InvalidProblem(Field("delta"), f" is {delta!r}; it must lie between 0 and 1")
        given = [best_order(self.epsilon, self.delta), inf] if orders is None else [float(each) for each in orders]
        share = self.delta / max(sum(order < inf for order in given), 1)  # order ∞ never fails
        shares = [renyi_limit(self.epsilon, share, order) for order in given]
        self._limits = {order: Fraction(limit) for order, limit in zip(given, shares, strict=True) if limit > 0}
        self._spent = dict.fromkeys(self._limits, Fraction(0))

    @property
    def left(self) -> dict[float, float]:
        """The divergence that is left, by order."""
        return {order: float(max(limit - self._spent[order], Fraction(0))) for order, limit in self._limits.items()}

    def fits(self, pair: DominatingPair) -> bool:
        """Whether some order has room."""
        return any(self._with(pair, order) <= limit for order, limit in self._limits.items())

    def _with(self, pair: DominatingPair, order: float) -> Fraction | float:
        divergence = renyi_divergence(pair, order)
        return inf if divergence == inf else self._spent[order] + Fraction(divergence)

    def _add(self, pair: DominatingPair) -> None:
        for order in list(self._limits):
            spent = self._with(pair, order)
            if isinstance(spent, Fraction):
                self._spent[order] = spent
            else:  # an order that a release exhausts for good
                del self._limits[order], self._spent[order]


class DeclaredFilter(PrivacyFilter):
    """Pairs declared beforehand, each for one release that it dominates, in any order.

    The privacy losses of the declared pairs are composed exactly, which admits most releases; what is chosen adaptively
    is only the mechanism of each, among those that an unused pair dominates.

    >>> coin, weak = (pg.composition.randomised_response_pair(epsilon) for epsilon in (0.02, 0.01))
    >>> budget = pg.composition.DeclaredFilter([(coin, 120)], 1.0, 1e-6)
    >>> budget.charge(weak)
    >>> budget.left
    119

    Args:
        counts: pairs with the number of releases for each. A release is charged to the first that dominates it.
        epsilon: the budget.
        delta: the probability that it may fail.

    Raises:
        BudgetExceeded: the declared pairs together exceed it.
    """

    def __init__(self, counts: Iterable[tuple[DominatingPair, int]], epsilon: float, delta: float) -> None:
        super().__init__()
        composition = Composition(counts)
        bound = composition.delta(_positive(epsilon, "epsilon")).upper
        if not bound <= delta:
            raise BudgetExceeded(
                f"the declared releases together are only shown to have a delta of {bound:.3g} at epsilon {epsilon:g}, "
                f"above {delta:g}: declare fewer or weaker ones"
            )
        self.composition = composition
        self._left = [count for _, count in composition.counts]

    @property
    def left(self) -> int:
        """The number of releases that are left."""
        return sum(self._left)

    def fits(self, pair: DominatingPair) -> bool:
        """Whether an unused pair dominates this one."""
        return self._position(pair) is not None

    def _position(self, pair: DominatingPair) -> int | None:
        declared = zip(self.composition.counts, self._left, strict=True)
        return next((at for at, ((each, _), left) in enumerate(declared) if left and each.dominates(pair)), None)

    def _add(self, pair: DominatingPair) -> None:
        at = self._position(pair)
        if at is not None:
            self._left[at] -= 1


def _pure_epsilon(pair: DominatingPair) -> float:
    return renyi_divergence(pair, inf)


def _positive(value: object, name: str) -> float:
    if is_number(value) and 0 < value < inf:  # type: ignore[operator]
        return float(value)  # type: ignore[arg-type]
    raise InvalidProblem(Field(name), f" is {repr(value)[:40]}; it must be a positive number")
