"""Drawing an answer by a choice: the only place where a secret is looked at."""

import hmac
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.mechanism import Mechanism
from privacygames.releases.amounts import total
from privacygames.releases.policies import KEEP, Choice
from privacygames.releases.released import Source

WORD = 64


@dataclass(frozen=True, eq=False)
class Drawn:
    """An answer nobody has seen yet, and what it costs.

    Attributes:
        observable: its position.
        source: where it comes from.
        mechanism: the name of what answered; None where nothing looked.
        likelihood: ln p(what came out | s) for every secret; None where that is not known.
        charges: by account.
    """

    observable: int
    source: Source
    mechanism: str | None
    likelihood: FloatArray | None
    charges: tuple[Decimal, ...]


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


def memoised(choice: Choice, key: bytes, position: int, charges: tuple[Decimal, ...]) -> Drawn:
    """The answer that a secret always gets: drawn with a keyed function of the mechanism and the secret."""
    mechanism = choice.mechanism
    named = f"{mechanism.digest} {mechanism.secrets.labels[position]!r}"
    word = int.from_bytes(hmac.digest(key, f"answer {named}".encode(), "sha256")[: WORD // 8], "big")
    uniform = word >> (WORD - mechanism.bits)
    observable = int(np.searchsorted(np.cumsum(mechanism.weights[position]), uniform, side="right"))
    return Drawn(observable, "memoised", memo_name(key, mechanism), _column(mechanism, observable), charges)


def memo_name(key: bytes, mechanism: Mechanism) -> str:
    """What a ledger calls the function drawn with a key: it tells two functions apart, and nothing about the key."""
    return "memoised " + hmac.new(key, f"name {mechanism.digest}".encode(), "sha256").hexdigest()


def _one(mechanism: Mechanism, position: int, generator: np.random.Generator | None) -> int:
    return int(mechanism.sampler(generator).draw(np.array([position]))[0])


def _column(mechanism: Mechanism, observable: int) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(mechanism.probabilities[:, observable]))
