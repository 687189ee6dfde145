r"""Dominating pairs: two distributions that are at least as easy to tell apart as what they stand for.

:math:`H_\alpha(P \| Q) = \sum_o \max(P(o) - \alpha Q(o), 0)` is the hockey-stick divergence; a mechanism is
:math:`(\varepsilon, \delta)`-private for two secrets if it is at most δ at :math:`\alpha = e^\varepsilon`, both ways.
(P, Q) dominates a mechanism within a distance if :math:`H_\alpha(P \| Q)` is at least that of every two secrets no
further apart, for every :math:`\alpha \ge 0` (docs/theory/composition.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, inf

import numpy as np

from privacygames.arrays import FloatArray, IntArray, content_hash, freeze
from privacygames.canonical import digest_of
from privacygames.certificates import BITS
from privacygames.composition.error_curves import best_tests, concave_hull
from privacygames.composition.exponential import exponential_below
from privacygames.errors import Field, InvalidProblem
from privacygames.mechanism import Mechanism, PublicMechanism, RegionMechanism, is_region_mechanism
from privacygames.problem import Measure, distance_matrix
from privacygames.spaces import Label
from privacygames.validation import is_number, require_instance

SAME_DISTANCE = 1 + 1e-9
"""Secrets further apart than the distance asked for, by less than this factor, are covered too: rounding decides."""

FEWEST = 2**30
"""Smallest weight of the output of randomised response that misleads: its ratio is then exact to nine digits."""


@dataclass(frozen=True, eq=False)
class DominatingPair:
    """Two distributions as exact integers, by whose privacy losses releases are accounted for.

    The privacy loss of an output is ln(first/second); outputs are in decreasing order of it.

    Attributes:
        first: weights of the distribution P, with the sum ``2**bits``.
        second: weights of Q, with the same sum.
        bits: the power of two.

    >>> coin = pg.composition.randomised_response_pair(1.0)
    >>> coin.losses.round(4).tolist(), coin.delta(0.5).__round__(4)
    ([1.0, -1.0], 0.2876)
    """

    first: IntArray
    second: IntArray
    bits: int

    def __post_init__(self) -> None:
        for name in ("first", "second"):
            object.__setattr__(self, name, freeze(np.asarray(getattr(self, name), dtype=np.int64)))
        shapes = self.first.ndim == 1 and self.first.shape == self.second.shape
        total = 2**self.bits if 1 <= self.bits <= BITS else -1
        for each in (self.first, self.second):
            if not shapes or (each < 0).any() or sum(each.tolist()) != total:
                raise InvalidProblem(
                    "a pair is two rows of weights, 0 or more, that sum to one power of two up to 2^62"
                )
        alarms, detections = best_tests(self.first, self.second[None])
        first, second = _steps(*concave_hull(alarms.ravel(), detections.ravel(), total))
        used = (first > 0) | (second > 0)
        object.__setattr__(self, "first", freeze(first[used]))
        object.__setattr__(self, "second", freeze(second[used]))

    @cached_property
    def losses(self) -> FloatArray:
        """ln(first/second) for every output, to the last digits of a float; ∞ and −∞ where only one has it."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.first.astype(np.float64)) - np.log(self.second.astype(np.float64)))

    @property
    def largest_loss(self) -> float:
        """The largest privacy loss: the pure ε of this pair in one direction; ∞ where only P gives some output."""
        return float(self.losses[0])

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the exact weights, which names the pair in a ledger."""
        return digest_of("dominating pair", content_hash(self.first), content_hash(self.second), self.bits)

    def hockey_stick(self, ratio: Fraction | int) -> Fraction:
        """The divergence Σ max(P − ratio·Q, 0), exactly.

        >>> fair = pg.composition.DominatingPair(np.array([3, 1]), np.array([1, 3]), 2)
        >>> fair.hockey_stick(2)
        Fraction(1, 4)
        """
        pairs = zip(self.first.tolist(), self.second.tolist(), strict=True)
        total = sum((max(p - ratio * q, Fraction(0)) for p, q in pairs), Fraction(0))
        return Fraction(total, 2**self.bits)

    def delta(self, epsilon: float) -> float:
        """The δ of one release for an ε, rounded up."""
        exact = self.hockey_stick(exponential_below(epsilon))
        nearest = float(exact)
        return nearest if nearest >= exact else float(np.nextafter(nearest, inf))

    def dominates(self, other: "DominatingPair") -> bool:
        """Whether the divergences of this pair are at least those of another, for every ratio; decided exactly.

        >>> weak, strong = (pg.composition.randomised_response_pair(epsilon) for epsilon in (0.5, 1.0))
        >>> strong.dominates(weak), weak.dominates(strong)
        (True, False)
        """
        bits = max(self.bits, other.bits)
        alarms, detections = self._curve(bits)
        at = 0
        for b, a in zip(*other._curve(bits), strict=True):
            while alarms[at + 1] < b:
                at += 1
            run, rise = alarms[at + 1] - alarms[at], detections[at + 1] - detections[at]
            if (a - detections[at]) * run > rise * (b - alarms[at]):
                return False
        return True

    def reversed(self) -> "DominatingPair":
        """The pair with its distributions exchanged."""
        return DominatingPair(self.second, self.first, self.bits)

    def __repr__(self) -> str:
        return f"DominatingPair({len(self.first)} outputs, largest loss {self.largest_loss:.4g})"

    def _curve(self, bits: int) -> tuple[list[int], list[int]]:
        """False alarms and detections of the best tests, as integers of another power of two."""
        scale = 2 ** (bits - self.bits)
        alarms, detections = ([0, *np.cumsum(each).tolist()] for each in (self.second, self.first))
        start = 1 if alarms[1] == 0 else 0  # what only P gives is detected without false alarms
        return [scale * each for each in alarms[start:]], [scale * each for each in detections[start:]]


def loss_pair(mechanism: Mechanism, secret: Label, other: Label) -> DominatingPair:
    """The outputs of two secrets as a pair: it dominates itself, so its privacy losses are exact.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Numbers([20, 30, 40])))
    >>> mechanism = pg.baselines.exponential(problem, epsilon=0.1)
    >>> pg.composition.loss_pair(mechanism, 20, 30).losses.round(3).tolist()
    [0.614, -0.386, -0.386]
    """
    require_instance(mechanism, Mechanism, "mechanism")
    rows = [mechanism.weights[mechanism.secrets.index(each)] for each in (secret, other)]
    return DominatingPair(rows[0], rows[1], mechanism.bits)


def dominating_pair(
    mechanism: Mechanism | PublicMechanism | RegionMechanism,
    within: float = inf,
    *,
    distance: Measure | None = None,
) -> DominatingPair:
    """The least pair that dominates a mechanism for every two secrets within a distance, both ways.

    For a mechanism for points it is the least pair for its certified ε, and for a bound on how fast its outputs change.

    >>> city = pg.Grid(5, 1, 5.0, 1.0)
    >>> mechanism = pg.baselines.exponential(pg.Problem(pg.Prior.uniform(city)), epsilon=1.0)
    >>> near, far = (pg.composition.dominating_pair(mechanism, within=r) for r in (1.0, 4.0))
    >>> near.delta(0.3) < far.delta(0.3), far.dominates(near)
    (True, True)

    Args:
        mechanism: a mechanism for labels or for points, with its prior or without it.
        within: the largest distance of two secrets; by default any.
        distance: the distance it counts in, a name, matrix or function of two labels; by default the mechanism's
            distinguishability. Mechanisms for points have Euclidean distance.

    Raises:
        InvalidProblem: a mechanism for points guarantees no ε, or the distance does not fit.
    """
    if not (is_number(within) and within >= 0):
        raise InvalidProblem(Field("within"), f" is {repr(within)[:40]}; it must be a distance, 0 or more")
    if is_region_mechanism(mechanism):
        if distance is not None:
            raise InvalidProblem("the distance of points is Euclidean: leave distance out")
        return _pair_of_points(mechanism, float(within))
    if isinstance(mechanism, PublicMechanism):
        finite: Mechanism | PublicMechanism = mechanism
    else:
        finite = require_instance(mechanism, Mechanism, "mechanism")
    distances = finite.distinguishability
    if distance is not None:
        distances = distance_matrix(distance, "distance", finite.secrets)
    near = np.minimum(distances, distances.T) <= within * SAME_DISTANCE
    weights, total = finite.weights, 2**finite.bits
    alarms, detections = [0, total], [0, total]
    for secret, row in enumerate(weights):
        others = np.flatnonzero(near[secret] & (np.arange(len(weights)) != secret))
        if len(others):
            curves = [each.ravel() for each in best_tests(row, weights[others])]
            alarms, detections = concave_hull(
                np.append(curves[0], alarms).astype(np.int64), np.append(curves[1], detections).astype(np.int64), total
            )
    return DominatingPair(*_steps(alarms, detections), finite.bits)


def randomised_response_pair(epsilon: float) -> DominatingPair:
    """The pair that dominates every pure ε guarantee: a coin that tells the truth with probability e^ε/(1 + e^ε).

    >>> pg.composition.randomised_response_pair(2.0).largest_loss
    2.0
    """
    if not (is_number(epsilon) and epsilon >= 0):
        raise InvalidProblem(Field("epsilon"), f" is {repr(epsilon)[:40]}; it must be a number, 0 or more")
    # A smaller share of lies is easier to tell apart, so that rounding it down is safe.
    lies = 0 if epsilon > BITS else int(2**BITS / (1 + exponential_below(epsilon, above=True)))
    return DominatingPair(np.array([2**BITS - lies, lies]), np.array([lies, 2**BITS - lies]), BITS)


def bounded_variation_pair(epsilon: float, variation: float) -> DominatingPair:
    """The pair that dominates every pure ε guarantee whose total variation is bounded, too.

    It is randomised response that is used with some probability only, and otherwise tells nothing.

    >>> pair = pg.composition.bounded_variation_pair(1.0, 0.2)
    >>> pair.losses.round(3).tolist(), pair.delta(0.0).__round__(6)
    ([1.0, 0.0, -1.0], 0.2)
    """
    if not (is_number(variation) and variation >= 0):
        raise InvalidProblem(Field("variation"), f" is {repr(variation)[:40]}; it must be a number, 0 or more")
    coin = randomised_response_pair(epsilon)
    if not 0 < epsilon <= BITS or variation >= 1:
        return coin
    odds = exponential_below(epsilon, above=True) - 1
    # Odds and difference are at least what they must be, so that divergences are.
    difference = max(ceil(Fraction(variation) * 2**BITS), ceil(odds * FEWEST))
    rare = int(difference / odds)
    if 2 * rare + difference >= 2**BITS:
        return coin
    often, none = rare + difference, 2**BITS - 2 * rare - difference
    return DominatingPair(np.array([often, none, rare]), np.array([rare, none, often]), BITS)


def _steps(alarms: list[int], detections: list[int]) -> tuple[IntArray, IntArray]:
    """The two distributions whose best tests a curve shows: its steps, in detections and in false alarms."""
    first, second = (np.diff(np.array([0, *each], dtype=np.int64)) for each in (detections, alarms))
    return first.astype(np.int64), second.astype(np.int64)


def _pair_of_points(mechanism: RegionMechanism, within: float) -> DominatingPair:
    guarantee = mechanism.epsilon_guarantee
    resolution = getattr(mechanism, "resolution", 0.0)
    of_distance = inf if guarantee.epsilon is None else guarantee.epsilon * (within + 2 * resolution) * SAME_DISTANCE
    exponent = min(of_distance, guarantee.any_pair * SAME_DISTANCE)
    if exponent == inf:
        raise InvalidProblem("this mechanism guarantees no epsilon between points: give a largest distance `within`")
    rate = getattr(mechanism, "variation_rate", inf)
    if inf in (rate, within):
        return randomised_response_pair(exponent)
    return bounded_variation_pair(exponent, rate * (within + 2 * resolution) * SAME_DISTANCE)
