"""Drawing an answer by a choice: the only place where a secret is looked at."""

import hmac
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.canonical import encode
from privacygames.mechanism import Mechanism
from privacygames.releases.decimal_epsilon import total
from privacygames.releases.policies import KEEP, Choice
from privacygames.releases.release import Source

WORD = 64


@dataclass(frozen=True, eq=False)
class Drawn:
    """An answer nobody has seen yet, and what it costs.

    Attributes:
        observable: its position.
        source: where it comes from.
        mechanism: the name of what answered; None where nothing looked.
        place: the keyed mark of the secret, for memoised answers only.
        likelihood: ln p(what came out | s) for every secret; None where that is not known.
        charges: by account.
    """

    observable: int
    source: Source
    mechanism: str | None
    likelihood: FloatArray | None
    charges: tuple[Decimal, ...]
    place: str | None = None


def drawn(
    choice: Choice,
    position: int,
    charges: tuple[Decimal, ...],
    tests: tuple[Decimal, ...] | None,
    generator: np.random.Generator | None,
) -> Drawn:
    """Ask the test, where there is one, and then the mechanism; what is charged follows from what came out."""
    likelihood = np.zeros(len(choice.mechanism.secrets))
    if choice.test is not None and tests is not None and choice.kept is not None:
        came_out = _one(choice.test, position, generator)
        likelihood = likelihood + _column(choice.test, came_out)
        if came_out == KEEP:
            return Drawn(choice.kept, "kept", choice.test.digest, likelihood, tests)
        charges = tuple(total(pair) for pair in zip(charges, tests, strict=True))
    observable = _one(choice.mechanism, position, generator)
    likelihood = likelihood + _column(choice.mechanism, observable)
    return Drawn(observable, "drawn", choice.mechanism.digest, likelihood, charges)


@dataclass(frozen=True, eq=False)
class MemoisedFunction:
    """The function from secrets to answers that a key and a mechanism determine.

    Attributes:
        mechanism: whose probabilities the answers have.
        key: random bytes that only the user has.
    """

    mechanism: Mechanism
    key: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """What a ledger calls it: tells two functions apart, and says nothing about the key."""
        return "memoised " + hmac.digest(self.key, encode(("memoised name", self.mechanism.digest)), "sha256").hex()

    def answer(self, position: int) -> int:
        """The observable's position that a secret's position always gets."""
        mechanism = self.mechanism
        word = int.from_bytes(self._keyed("memoised answer", position)[: WORD // 8], "big")
        uniform = word >> (WORD - mechanism.bits)
        return int(np.searchsorted(np.cumsum(mechanism.weights[position]), uniform, side="right"))

    def mark(self, position: int) -> str:
        """The mark by which a ledger knows a place again: without the key, it says no more than that."""
        return self._keyed("memoised place", position).hex()

    def _keyed(self, purpose: str, position: int) -> bytes:
        return hmac.digest(self.key, encode((purpose, self.mechanism.digest, position)), "sha256")


def memoised(function: MemoisedFunction, position: int, charges: tuple[Decimal, ...]) -> Drawn:
    """The answer that a secret always gets."""
    observable = function.answer(position)
    likelihood, place = _column(function.mechanism, observable), function.mark(position)
    return Drawn(observable, "memoised", function.name, likelihood, charges, place)


def _one(mechanism: Mechanism, position: int, generator: np.random.Generator | None) -> int:
    return int(mechanism.sampler(generator).draw(np.array([position]))[0])


def _column(mechanism: Mechanism, observable: int) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(mechanism.probabilities[:, observable]))
