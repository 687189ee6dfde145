"""Drawing an output: the only module that draws with the secret, or computes its keyed mark."""

import hmac
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Generic, TypeVar

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.canonical import encode
from privacygames.mechanism import Mechanism
from privacygames.points import PointSampleable
from privacygames.releases.decimal_epsilon import total
from privacygames.releases.policies import KEEP, Choice
from privacygames.releases.release import Source

WORD_BITS = 64
"""Bits of a keyed hash that select an output; certified weights have at most as many."""


@dataclass(frozen=True, eq=False)
class DrawnOutput:
    """An output before it is returned, and its charges.

    Attributes:
        output_index: its index.
        source: where it comes from.
        mechanism: the digest of the mechanism that drew it; None if the secret was not used.
        likelihood: ln p(outcome | s) for every secret; None if that is not known.
        charges: by account.
        secret_mark: the keyed mark of the secret, for memoised outputs only.
    """

    output_index: int
    source: Source
    mechanism: str | None
    likelihood: FloatArray | None
    charges: tuple[Decimal, ...]
    secret_mark: str | None = None


def draw_output(
    choice: Choice,
    secret_index: int,
    charges: tuple[Decimal, ...],
    test_charges: tuple[Decimal, ...] | None,
    generator: np.random.Generator | None,
) -> DrawnOutput:
    """Run the test, if there is one, and then the mechanism if the test failed.

    Args:
        choice: the mechanism and the test.
        secret_index: the index of the secret.
        charges: of the mechanism, by account.
        test_charges: of the test; None without one. Both are charged if both were run.
        generator: for reproducible experiments; None: the operating system's randomness.
    """
    likelihood = np.zeros(len(choice.mechanism.secrets))
    if choice.test is not None and test_charges is not None and choice.prediction is not None:
        outcome = _draw(choice.test, secret_index, generator)
        likelihood = likelihood + _log_likelihood(choice.test, outcome)
        if outcome == KEEP:
            return DrawnOutput(choice.prediction, "kept", choice.test.digest, likelihood, test_charges)
        charges = tuple(total(pair) for pair in zip(charges, test_charges, strict=True))
    output_index = _draw(choice.mechanism, secret_index, generator)
    likelihood = likelihood + _log_likelihood(choice.mechanism, output_index)
    return DrawnOutput(output_index, "drawn", choice.mechanism.digest, likelihood, charges)


def draw_point_output(
    mechanism: PointSampleable, point: FloatArray, charges: tuple[Decimal, ...], generator: np.random.Generator | None
) -> DrawnOutput:
    """One output of a mechanism for points.

    Args:
        mechanism: the mechanism.
        point: the secret in the region's coordinates, (1, axes).
        charges: by account.
        generator: for reproducible experiments; None: the operating system's randomness.
    """
    return DrawnOutput(int(mechanism.draw(point, generator)[0]), "drawn", mechanism.digest, None, charges)


def draw_tested_point_output(
    test: PointSampleable,
    distance: float,
    prediction: int,
    test_charges: tuple[Decimal, ...],
    drawn: Callable[[], DrawnOutput],
    *,
    generator: np.random.Generator | None,
) -> DrawnOutput:
    """The prediction if it passes its test; otherwise another output. What was run is charged.

    Args:
        test: a mechanism for distances, whose first output keeps the prediction.
        distance: of the secret from the prediction.
        prediction: the index of the predicted output.
        test_charges: of the test, by account.
        drawn: draws another output.
        generator: as in :func:`draw_point_output`.
    """
    if int(test.draw(np.array([distance]), generator)[0]) == KEEP:
        return DrawnOutput(prediction, "kept", test.digest, None, test_charges)
    other = drawn()
    return replace(other, charges=tuple(total(pair) for pair in zip(other.charges, test_charges, strict=True)))


Secret = TypeVar("Secret")


class KeyedFunction(ABC, Generic[Secret]):
    """A deterministic function from secrets to outputs, pseudo-randomly drawn from a mechanism by a key."""

    key: bytes
    """Random bytes that only the user has."""

    @property
    @abstractmethod
    def content(self) -> tuple[object, ...]:
        """What makes this another function than that of the same key for another mechanism."""

    @property
    def name(self) -> str:
        """Identifies the function in a ledger without revealing the key."""
        return "memoised " + hmac.digest(self.key, encode(("memoised name", *self.content)), "sha256").hex()

    @abstractmethod
    def output(self, secret: Secret) -> int:
        """The index of the output for a secret."""

    def likelihood(self, output_index: int) -> FloatArray | None:  # noqa: ARG002 - of subclasses
        """The values ln p(o|s) for every secret; None where there are infinitely many."""
        return None

    def mark(self, secret: Secret) -> str:
        """A mark by which a ledger recognises a secret; without the key it reveals nothing else."""
        return self._keyed_hash("memoised place", secret).hex()

    def _keyed_word(self, *values: object) -> int:
        return int.from_bytes(self._keyed_hash("memoised answer", *values)[: WORD_BITS // 8], "big")

    def _keyed_hash(self, purpose: str, *values: object) -> bytes:
        return hmac.digest(self.key, encode((purpose, *self.content, *values)), "sha256")


@dataclass(frozen=True, eq=False)
class MemoisedFunction(KeyedFunction[int]):
    """A memoised function of finitely many secrets, which are given by their indices.

    Attributes:
        mechanism: the distribution of the outputs.
        key: random bytes that only the user has.
    """

    mechanism: Mechanism
    key: bytes = field(repr=False)

    @property
    def content(self) -> tuple[object, ...]:
        """The mechanism."""
        return (self.mechanism.digest,)

    def output(self, secret: int) -> int:
        """The index of the output for the index of a secret."""
        uniform = self._keyed_word(secret) >> (WORD_BITS - self.mechanism.bits)
        return int(np.searchsorted(np.cumsum(self.mechanism.weights[secret]), uniform, side="right"))

    def likelihood(self, output_index: int) -> FloatArray:
        """The values ln p(o|s) for every secret."""
        return _log_likelihood(self.mechanism, output_index)


Cell = tuple[int, ...]
"""The position of a cell along each axis, counted from the region's lower ends."""


class PointFunction(KeyedFunction[Cell]):
    """A memoised function of points, which are replaced by their cell or the frequent place they are at first."""

    @abstractmethod
    def cell(self, point: FloatArray) -> Cell | None:
        """What a point in the region's coordinates, (1, axes), is replaced by; None if it has no memoised output."""


@dataclass(frozen=True, eq=False)
class MemoisedPlaces(PointFunction):
    """A memoised function of the cells of a region: every point of a cell has the output of the cell's centre.

    Attributes:
        mechanism: the distribution of the outputs.
        key: random bytes that only the user has.
        side: the side of the cells, in the unit of distances.
    """

    mechanism: PointSampleable
    key: bytes = field(repr=False)
    side: float

    @property
    def content(self) -> tuple[object, ...]:
        """The mechanism and the cells."""
        return self.mechanism.digest, self.side

    def cell(self, point: FloatArray) -> Cell:
        """The cell of a point in the region's coordinates, (1, axes)."""
        region = self.mechanism.secrets
        last = np.ceil(np.array(region.lengths) / self.side) - 1
        return tuple(np.minimum(region.clamp(point)[0] // self.side, last).astype(np.int64).tolist())

    def output(self, secret: Cell) -> int:
        """The index of the output for a cell."""
        centre = np.minimum((np.array([secret]) + 0.5) * self.side, self.mechanism.secrets.lengths)
        words = lambda number: np.array([self._keyed_word(secret, number)], dtype=np.uint64)  # noqa: E731
        return int(self.mechanism.row_sampler().draw(self.mechanism.encode_places(centre), words)[0])


@dataclass(frozen=True, eq=False)
class MemoisedFrequentPlaces(PointFunction):
    """A memoised function of frequent places: every point near one has the output of the place itself.

    Attributes:
        mechanism: the distribution of the outputs.
        key: random bytes that only the user has.
        places: the coordinates of the places, (places,) or (places, axes).
        radius: how far from a place a point may be, in the unit of distances.
    """

    mechanism: PointSampleable
    key: bytes = field(repr=False)
    places: FloatArray = field(repr=False)
    radius: float

    @property
    def content(self) -> tuple[object, ...]:
        """The mechanism; not the places, so that adding one changes no output."""
        return self.mechanism.digest, "frequent places"

    def cell(self, point: FloatArray) -> Cell | None:
        """The nearest place within the radius, as the mesh encodes it."""
        places = self.mechanism.secrets.clamp(self.places)
        distances = np.linalg.norm(places - self.mechanism.secrets.clamp(point), axis=1)
        nearest = int(distances.argmin())
        if distances[nearest] > self.radius:
            return None
        return (int(self.mechanism.encode_places(places[[nearest]])[0]),)

    def output(self, secret: Cell) -> int:
        """The index of the output for a place."""
        words = lambda number: np.array([self._keyed_word(*secret, number)], dtype=np.uint64)  # noqa: E731
        return int(self.mechanism.row_sampler().draw(np.array(secret), words)[0])


def memoised_output(function: KeyedFunction[Secret], secret: Secret, charges: tuple[Decimal, ...]) -> DrawnOutput:
    """The memoised output of a secret, with the charges of its first release."""
    output_index = function.output(secret)
    likelihood, secret_mark = function.likelihood(output_index), function.mark(secret)
    return DrawnOutput(output_index, "memoised", function.name, likelihood, charges, secret_mark)


def _draw(mechanism: Mechanism, secret_index: int, generator: np.random.Generator | None) -> int:
    return int(mechanism.sampler(generator).draw(np.array([secret_index]))[0])


def _log_likelihood(mechanism: Mechanism, output_index: int) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(mechanism.probabilities[:, output_index]))
