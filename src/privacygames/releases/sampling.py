"""Drawing an output: the only module that draws with the secret, or computes its keyed mark."""

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

    def output(self, secret_index: int) -> int:
        """The index of the output for the index of a secret."""
        word = int.from_bytes(self._keyed_hash("memoised answer", secret_index)[: WORD_BITS // 8], "big")
        uniform = word >> (WORD_BITS - self.mechanism.bits)
        return int(np.searchsorted(np.cumsum(self.mechanism.weights[secret_index]), uniform, side="right"))

    def mark(self, secret_index: int) -> str:
        """A mark by which a ledger recognises a secret; without the key it reveals nothing else."""
        return self._keyed_hash("memoised place", secret_index).hex()

    def _keyed_hash(self, purpose: str, secret_index: int) -> bytes:
        return hmac.digest(self.key, encode((purpose, self.mechanism.digest, secret_index)), "sha256")


def memoised_output(function: MemoisedFunction, secret_index: int, charges: tuple[Decimal, ...]) -> DrawnOutput:
    """The memoised output of a secret, with the charges of its first release."""
    output_index = function.output(secret_index)
    likelihood, secret_mark = _log_likelihood(function.mechanism, output_index), function.mark(secret_index)
    return DrawnOutput(output_index, "memoised", function.name, likelihood, charges, secret_mark)


def _draw(mechanism: Mechanism, secret_index: int, generator: np.random.Generator | None) -> int:
    return int(mechanism.sampler(generator).draw(np.array([secret_index]))[0])


def _log_likelihood(mechanism: Mechanism, output_index: int) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(mechanism.probabilities[:, output_index]))
