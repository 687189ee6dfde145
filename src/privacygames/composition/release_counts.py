"""How many releases of one mechanism a budget buys: by adding up ε, by a ledger, and by exact composition."""

from dataclasses import dataclass
from fractions import Fraction
from math import inf

from privacygames.composition.compositions import Composition
from privacygames.composition.dominating_pairs import DominatingPair, dominating_pair
from privacygames.composition.renyi import best_order, renyi_divergence, renyi_limit
from privacygames.errors import Field, InvalidProblem
from privacygames.mechanism import Mechanism, PublicMechanism, RegionMechanism
from privacygames.validation import is_number

MOST_RELEASES = 1_000_000
"""The largest number of releases that is told: a thousand a day for three years."""


@dataclass(frozen=True)
class ReleaseCounts:
    """How many releases of a mechanism are (ε, δ)-private together, between secrets within a distance.

    Attributes:
        added: by adding up pure ε, without any δ.
        ledger: by adding up Rényi divergences, as a ledger does: whatever the mechanisms of later releases depend on.
        composed: by composing privacy losses exactly: if all releases are of this mechanism.
        largest_loss: ε of one release between secrets within the distance.
        order: the order of the divergences.

    >>> pg.composition.ReleaseCounts(10, 12, 13, largest_loss=0.4, order=7.2).gain
    1.2
    """

    added: int
    ledger: int
    composed: int
    largest_loss: float
    order: float

    @property
    def gain(self) -> float:
        """The ledger's number over that of added ε; ∞ where adding allows none."""
        return self.ledger / self.added if self.added else inf


def releases_within(
    mechanism: Mechanism | PublicMechanism | RegionMechanism,
    epsilon: float,
    delta: float = 1e-6,
    within: float | None = None,
) -> ReleaseCounts:
    """How many releases of a mechanism a budget of (ε, δ) buys, between secrets within a distance at every release.

    >>> city = pg.Grid(8, 8, 8.0, 1.0)
    >>> mechanism = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(city)), epsilon=0.2)
    >>> counts = pg.composition.releases_within(mechanism, 4.0, 1e-6, within=1.0)
    >>> counts.added, counts.ledger, counts.composed
    (23, 59, 66)

    Args:
        mechanism: a mechanism for labels or for points, with its prior or without it.
        epsilon: of all releases together.
        delta: the probability that this fails.
        within: the largest distance of two secrets, in the mechanism's distinguishability; None: any two.
    """
    for name, value, most in (("epsilon", epsilon, inf), ("delta", delta, 1)):
        if not (is_number(value) and 0 < value < most):
            allowed = "it must be a positive number" if most == inf else "it must lie between 0 and 1"
            raise InvalidProblem(Field(name), f" is {repr(value)[:40]}; {allowed}")
    pair = dominating_pair(mechanism, inf if within is None else within)
    order = best_order(epsilon, delta, pair)
    added = _room(float(epsilon), renyi_divergence(pair, inf))
    ledger = _room(renyi_limit(epsilon, delta, order), renyi_divergence(pair, order))
    return ReleaseCounts(
        added, ledger, max(_composed(pair, epsilon, delta, ledger), added), max(pair.largest_loss, 0.0), order
    )


def _room(limit: float, charge: float) -> int:
    if limit <= 0 or charge == inf:
        return 0
    return MOST_RELEASES if charge == 0 else min(int(Fraction(limit) // Fraction(charge)), MOST_RELEASES)


def _composed(pair: DominatingPair, epsilon: float, delta: float, known: int) -> int:
    """The largest number of releases whose composition is shown to be within (ε, δ), by doubling and halving.

    Args:
        pair: of each release.
        epsilon: ε.
        delta: δ.
        known: a number that is.
    """

    def holds(count: int) -> bool:
        return Composition([(pair, count)]).delta(epsilon).upper <= delta

    low, high = 0, max(known, 1)
    while high < MOST_RELEASES and holds(high):
        low, high = high, 2 * high
    if high >= MOST_RELEASES:
        return MOST_RELEASES
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
