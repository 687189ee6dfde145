"""The protocol of everything that outputs can be drawn from: what tables, estimates and tracking need of a mechanism.

:class:`Sampleable` is satisfied by :class:`privacygames.Mechanism`, by :class:`privacygames.PublicMechanism` and, with
a mechanism for each user, by :class:`privacygames.fleet.Fleet`. It says nothing of how secrets are represented: a space
encodes them (as indices, where it is finite), and a mechanism draws from what its space encodes. Where secrets are the
points of a region, the mechanism encodes them itself (:class:`RegionMechanism`).
:class:`FiniteMechanism` adds p(o|s) as an array, for those that have finitely many secrets and outputs.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from inspect import getattr_static
from typing import Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privacygames.arrays import FloatArray, IntArray
from privacygames.certificates import Usefulness
from privacygames.errors import InvalidProblem
from privacygames.problem import Bounds, format_epsilon
from privacygames.spaces import Label, Region, Space

RandomWords = Callable[[int], NDArray[np.uint64]]
"""A source of random bits: called with 0, 1, 2, …, it returns independent 64-bit words, one for each row."""


@dataclass(frozen=True)
class EpsilonGuarantee:
    """The differential-privacy guarantee of one output, with its unit.

    >>> print(EpsilonGuarantee(epsilon=0.6, per="per km", unit="km", any_pair=4.2))
    0.6 per km; 4.2 between any two secrets

    Attributes:
        epsilon: ε; None where none is guaranteed.
        per: what ε is counted for: ``"per km"``, ``"between secrets at most 2 km apart"``.
        unit: the unit of distinguishability; empty where it has none that other mechanisms share.
        any_pair: the largest ln p(o|s)/p(o|s') between any two secrets, however far apart; ∞ where an output rules a
            secret out.
    """

    epsilon: float | None
    per: str
    unit: str
    any_pair: float

    def __str__(self) -> str:
        if self.epsilon is None:
            return format_epsilon("no epsilon", self.per, self.any_pair)
        return format_epsilon(f"{self.epsilon:.6g}", self.per, self.any_pair)


class RowSampler(Protocol):
    """Draws outputs for the rows of one batch.

    Secrets and outputs are arrays with one entry for each row, as the mechanism's spaces encode them: indices of
    labels, where a space is finite.

    >>> mechanism = pg.baselines.identity(pg.Problem(pg.Prior.uniform(pg.Numbers([20, 30, 40]))))
    >>> sampler: pg.RowSampler = mechanism.row_sampler()
    >>> sampler.draw(np.array([2, 0]), lambda number: np.zeros(2, dtype=np.uint64))
    array([2, 0])
    """

    @abstractmethod
    def tweak(self, secrets: NDArray[Any]) -> NDArray[np.int64]:
        """64 bits for each row that differ where the secret or the mechanism does: other draws use other bits."""
        ...

    @abstractmethod
    def draw(self, secrets: NDArray[Any], random_words: RandomWords) -> NDArray[Any]:
        """An output for each row, determined by its secret and its random bits."""
        ...


class Sampleable(Protocol):
    """A mechanism, or one for each user, that outputs can be drawn from.

    Whatever has these members can be given to :func:`privacygames.tables.apply`. Classes that inherit from this one get
    the members that have a default.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Grid(2, 1, 2.0, 1.0)))
    >>> mechanism: pg.Sampleable = pg.baselines.exponential(problem, epsilon=0.5)
    >>> mechanism.per_user, mechanism.epsilon_guarantee.per, mechanism.constant
    (False, 'per km', False)
    """

    @property
    @abstractmethod
    def secrets(self) -> Space | Region:
        """The space of secrets; a region, where every point of it may be the secret."""
        ...

    @property
    @abstractmethod
    def observables(self) -> Space:
        """The space of outputs."""
        ...

    @property
    @abstractmethod
    def bounds(self) -> Bounds:
        """What is guaranteed."""
        ...

    @property
    @abstractmethod
    def epsilon_guarantee(self) -> EpsilonGuarantee:
        """What one output guarantees of differential privacy, with its unit."""
        ...

    @property
    @abstractmethod
    def digest(self) -> str:
        """SHA-256 that names the mechanism in ledgers and manifests; other draws have another digest."""
        ...

    @property
    def per_user(self) -> bool:
        """Whether each user has a mechanism of their own, so that :meth:`row_sampler` needs users."""
        return False

    @property
    def constant(self) -> bool | None:
        """Whether outputs are independent of the secret; None where that is not known."""
        return None

    @property
    def usefulness(self) -> Usefulness | None:
        """How much an output tells about the secret; None where that is not known, as it is without a prior."""
        return None

    @abstractmethod
    def row_sampler(self, users: Any = None) -> RowSampler:
        """The sampler for the rows of a batch.

        Args:
            users: an Arrow array of the user of each row, for mechanisms that are :attr:`per_user`; otherwise None.

        Raises:
            UnknownLabel: there is no mechanism for some of the users.
        """
        ...

    def to_manifest(self) -> dict[str, Any]:
        """What a manifest says of this mechanism in particular, in plain values; nothing of the prior."""
        return {}


class RegionMechanism(Sampleable, Protocol):
    """A mechanism whose secrets are the points of a region.

    >>> problem = pg.PointProblem(pg.PointPrior(pg.Interval(0.0, 4.0), [1.0, 3.0]), [1.0, 3.0])
    >>> mechanism: RegionMechanism = pg.design(problem, epsilon=0.5)
    >>> mechanism.secrets, mechanism.encode([0.5, 0.5, 2.0]).shape
    (Interval(0 to 4), (3,))
    """

    @property
    @abstractmethod
    def secrets(self) -> Region:
        """The region of secrets."""
        ...

    @property
    @abstractmethod
    def outputs(self) -> FloatArray:
        """The outputs in the region's coordinates, (outputs, axes)."""
        ...

    @abstractmethod
    def encode(self, points: ArrayLike) -> IntArray:
        """Points in the region's coordinates as the row sampler takes them: one integer each, 0 or more.

        Points outside are moved to the nearest point of the region.
        """
        ...


class FiniteMechanism(Sampleable, Protocol):
    """A mechanism with finitely many secrets and outputs, whose p(o|s) are an array: what estimation needs.

    >>> mechanism: pg.FiniteMechanism = pg.baselines.identity(pg.Problem(pg.Prior.uniform(pg.Numbers([20, 30]))))
    >>> mechanism.probabilities.tolist(), mechanism.sample(30)
    ([[1.0, 0.0], [0.0, 1.0]], 30)
    """

    @property
    @abstractmethod
    def secrets(self) -> Space:
        """The space of secrets."""
        ...

    @property
    @abstractmethod
    def probabilities(self) -> FloatArray:
        """p(o|s), (secrets, observables)."""
        ...

    @abstractmethod
    def sample(self, secret: Label) -> Label:
        """One output for a secret."""
        ...


_SAMPLEABLE: tuple[str, ...] = (
    *("secrets", "observables", "bounds", "epsilon_guarantee", "digest", "per_user", "constant", "usefulness"),
    *("row_sampler", "to_manifest"),
)
_FINITE = (*_SAMPLEABLE, "probabilities", "sample")
_OF_REGION = (*_SAMPLEABLE, "outputs", "encode")
_MISSING = object()


def is_sampleable(value: object) -> bool:
    """Whether a value has the members of :class:`Sampleable`; none of them is evaluated."""
    return _has(value, _SAMPLEABLE)


def is_region_mechanism(value: object) -> TypeGuard[RegionMechanism]:
    """Whether a value has the members of :class:`RegionMechanism`; none of them is evaluated."""
    return _has(value, _OF_REGION)


def require_finite_mechanism(value: Any, message: str) -> FiniteMechanism:
    """The value itself, if it has the members of :class:`FiniteMechanism`; else :class:`InvalidProblem` is raised."""
    if not _has(value, _FINITE):
        raise InvalidProblem(message)
    if is_region_mechanism(value):
        raise InvalidProblem(
            f"{message}, and one with finitely many secrets: this one's may be any point of {value.secrets!r}. "
            "Between the points of a prior, mechanism.at_points(problem) is such a mechanism"
        )
    mechanism: FiniteMechanism = value
    return mechanism


def _has(value: object, members: tuple[str, ...]) -> bool:
    if isinstance(value, type):
        return False
    # Not isinstance: before Python 3.12 it evaluates every property, and some are expensive.
    return all(getattr_static(value, name, _MISSING) is not _MISSING for name in members)
