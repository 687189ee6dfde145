"""Drawing an output: the only module that uses the secret."""

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

WORD_BITS = 64
"""Bits of a keyed hash that select an output; certified weights have at most as many."""


@dataclass(frozen=True, eq=False)
class DrawnOutput:
    """An output before it is returned, and its charges.

    Attributes:
        observable: its index.
        source: where it comes from.
        mechanism: the digest of the mechanism that drew it; None if the secret was not used.
        likelihood: ln p(outcome | s) for every secret; None if that is not known.
        charges: by account.
        place: the keyed mark of the secret, for memoised outputs only.
    """

    observable: int
    source: Source
    mechanism: str | None
    likelihood: FloatArray | None
    charges: tuple[Decimal, ...]
    place: str | None = None


def draw_output(
    choice: Choice,
    position: int,
    charges: tuple[Decimal, ...],
    tests: tuple[Decimal, ...] | None,
    generator: np.random.Generator | None,
) -> DrawnOutput:
    """Run the test, if there is one, and then the mechanism if the test failed.

    Args:
        choice: the mechanism and the test.
        position: the index of the secret.
        charges: of the mechanism, by account.
        tests: of the test; None without one. Both are charged if both were run.
        generator: for reproducible experiments; None: the operating system's randomness.
    """
    likelihood = np.zeros(len(choice.mechanism.secrets))
    if choice.test is not None and tests is not None and choice.prediction is not None:
        outcome = _draw(choice.test, position, generator)
        likelihood = likelihood + _log_likelihood(choice.test, outcome)
        if outcome == KEEP:
            return DrawnOutput(choice.prediction, "kept", choice.test.digest, likelihood, tests)
        charges = tuple(total(pair) for pair in zip(charges, tests, strict=True))
    observable = _draw(choice.mechanism, position, generator)
    likelihood = likelihood + _log_likelihood(choice.mechanism, observable)
    return DrawnOutput(observable, "drawn", choice.mechanism.digest, likelihood, charges)


@dataclass(frozen=True, eq=False)
class MemoisedFunction:
    """A deterministic function from secrets to outputs, pseudo-randomly drawn from a mechanism by a key.

    Attributes:
        mechanism: the distribution of the outputs.
        key: random bytes that only the user has.
    """

    mechanism: Mechanism
    key: bytes = field(repr=False)

    @property
    def name(self) -> str:
        """Identifies the function in a ledger without revealing the key."""
        return "memoised " + hmac.digest(self.key, encode(("memoised name", self.mechanism.digest)), "sha256").hex()

    def output(self, position: int) -> int:
        """The index of the output for the index of a secret."""
        word = int.from_bytes(self._keyed_hash("memoised answer", position)[: WORD_BITS // 8], "big")
        uniform = word >> (WORD_BITS - self.mechanism.bits)
        return int(np.searchsorted(np.cumsum(self.mechanism.weights[position]), uniform, side="right"))

    def mark(self, position: int) -> str:
        """A mark by which a ledger recognises a secret; without the key it reveals nothing else."""
        return self._keyed_hash("memoised place", position).hex()

    def _keyed_hash(self, purpose: str, position: int) -> bytes:
        return hmac.digest(self.key, encode((purpose, self.mechanism.digest, position)), "sha256")


def memoised_output(function: MemoisedFunction, position: int, charges: tuple[Decimal, ...]) -> DrawnOutput:
    """The memoised output of a secret, with the charges of its first release."""
    observable = function.output(position)
    likelihood, place = _log_likelihood(function.mechanism, observable), function.mark(position)
    return DrawnOutput(observable, "memoised", function.name, likelihood, charges, place)


def _draw(mechanism: Mechanism, position: int, generator: np.random.Generator | None) -> int:
    return int(mechanism.sampler(generator).draw(np.array([position]))[0])


def _log_likelihood(mechanism: Mechanism, observable: int) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(mechanism.probabilities[:, observable]))
