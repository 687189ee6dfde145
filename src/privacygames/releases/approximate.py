"""Approximate guarantees: (ε, δ) between secrets within a distance, kept by adding up Rényi divergences.

All releases together are (ε, δ)-private between any two sequences of secrets that differ by at most a distance at every
release, if the divergences of one order add up to no more than a limit, whatever choices depended on (filter 2 of
docs/theory/composition.md). A ledger fixes the order when it is created.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from math import inf
from typing import Any

from privacygames.composition import (
    LARGEST_ORDER,
    SMALLEST_ORDER,
    DominatingPair,
    best_order,
    exact_renyi_limit,
    renyi_divergence,
)
from privacygames.errors import InvalidProblem
from privacygames.problem import Scale
from privacygames.releases.decimal_epsilon import NOTHING, decimal_rounded_up, read_amount

STORED_KEYS = {"epsilon", "delta", "within", "order"}
"""The keys of a guarantee in a ledger."""


@dataclass(frozen=True)
class ApproximateGuarantee:
    """(ε, δ) between secrets within a distance at every release, and the order whose divergences are added up for it.

    Attributes:
        epsilon: ε of all releases together, in all or in a window; of all of the distance, not per unit.
        delta: the probability that it may fail.
        within: the largest distance of two secrets, at every release; None: any.
        order: the order of the divergences; ∞: they are pure ε, and nothing fails.
    """

    epsilon: Decimal
    delta: float
    within: float | None
    order: float

    @classmethod
    def planned(
        cls, epsilon: Decimal, delta: float, within: float | None, pair: DominatingPair | None
    ) -> "ApproximateGuarantee":
        """The guarantee with the order that admits most releases of a pair; without one, most small releases."""
        order = best_order(float(epsilon), delta, pair)
        guarantee = cls(epsilon, delta, within, order)
        return guarantee if guarantee.limit > 0 else replace(guarantee, order=inf)

    @property
    def limit(self) -> Decimal:
        """The largest sum of divergences."""
        return exact_renyi_limit(self.epsilon, self.delta, self.order)

    def charge(self, pair: DominatingPair) -> Decimal:
        """The divergence of a release that a pair dominates, rounded up."""
        divergence = renyi_divergence(pair, self.order)
        if divergence == inf:
            raise InvalidProblem(
                "an output of the mechanism may separate two secrets with certainty, within the distance of a budget "
                f"with delta {self.delta:g}: no such budget covers that"
            )
        return decimal_rounded_up(divergence) if divergence else NOTHING

    @property
    def stated(self) -> tuple[Decimal, float, float | None]:
        """What is guaranteed, whatever order it is kept with."""
        return self.epsilon, self.delta, self.within

    def describe(self, scale: Scale) -> str:
        """The guarantee in words.

        Args:
            scale: of the distance.
        """
        pairs = "between any two secrets" if self.within is None else scale.per(self.within)
        return f"epsilon {self.epsilon} with delta {self.delta:g} {pairs} at every release"

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON, which has no ∞."""
        return {
            "epsilon": str(self.epsilon),
            "delta": self.delta,
            "within": self.within,
            "order": None if self.order == inf else self.order,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "ApproximateGuarantee":
        """The guarantee that a ledger stores; an error of Python's own if it is none."""
        delta, within, order = stored["delta"], stored["within"], stored["order"]
        if set(stored) != STORED_KEYS or not all(each is None or type(each) is float for each in (within, order)):
            raise TypeError
        if not (type(delta) is float and 0 < delta < 1 and (within is None or 0 <= within < inf)):
            raise TypeError
        if order is not None and not SMALLEST_ORDER <= order <= LARGEST_ORDER:
            raise ValueError
        return cls(read_amount(stored["epsilon"]), delta, within, inf if order is None else order)
