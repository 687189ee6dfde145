"""``Channel``: a table of exact probabilities p(o|s), and priors in the same arithmetic."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import cached_property
from math import gcd, inf, lcm
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, freeze_floats
from privacygames.beliefs import Prior
from privacygames.errors import InvalidProblem
from privacygames.immutable import Value
from privacygames.mechanism import Mechanism, PublicMechanism
from privacygames.spaces import Space
from privacygames.validation import as_ordered_list, require_instance

SUM_TOLERANCE = 1e-9
"""Largest deviation from 1 of the sum of a row or prior that is given: more than rounding explains is an error."""

Integers = NDArray[np.object_]
"""An array of Python integers: of any size, so that nothing is rounded."""

Number = Fraction | int | float
"""A number that is taken exactly: a float is the fraction that it stores."""


class Channel(Value):
    """Exact probabilities p(o|s) of every output given every secret.

    Every function of :mod:`privacygames.leakage` takes a mechanism or a channel. A mechanism's integer weights are a
    channel already; compositions and textbook examples are not, since their rows need not sum to a power of two.

    Args:
        secrets: what the rows mean.
        outputs: what the columns mean.
        rows: p(o|s), (secrets, outputs): fractions, integers or floats, each taken exactly. Every row must sum to 1
            within 1e-9 and is divided by its exact sum.

    >>> from fractions import Fraction
    >>> answers = pg.Categories(["yes", "no"])
    >>> noisy = pg.leakage.Channel(answers, answers, [[Fraction(2, 3), Fraction(1, 3)], [0, 1]])
    >>> noisy.fractions[0]
    (Fraction(2, 3), Fraction(1, 3))
    """

    secrets: Space
    outputs: Space
    numerators: tuple[tuple[int, ...], ...]
    denominator: int

    def __init__(self, secrets: Space, outputs: Space, rows: Iterable[Iterable[Number]]) -> None:
        require_instance(secrets, Space, "secrets")
        require_instance(outputs, Space, "outputs")
        listed = [as_ordered_list(row, "each row of a channel") for row in as_ordered_list(rows, "the rows")]
        if len(listed) != len(secrets) or any(len(row) != len(outputs) for row in listed):
            raise InvalidProblem(
                f"a channel of {len(secrets)} secrets and {len(outputs)} outputs needs {len(secrets)} rows of "
                f"{len(outputs)} probabilities"
            )
        weighted = [normalise(row, "every row of a channel") for row in listed]
        denominator = lcm(*(total for _, total in weighted))
        numerators = tuple(tuple(number * (denominator // total) for number in row) for row, total in weighted)
        self._fill(secrets=secrets, outputs=outputs, numerators=numerators, denominator=denominator)

    @classmethod
    def of(cls, mechanism: "Mechanism | PublicMechanism | Channel") -> "Channel":
        """The channel of a mechanism: its integer weights over 2^bits.

        >>> mechanism = pg.baselines.identity(pg.Problem(pg.Prior.uniform(pg.Categories(["yes", "no"]))))
        >>> pg.leakage.Channel.of(mechanism).numerators
        ((1, 0), (0, 1))
        """
        if isinstance(mechanism, Channel):
            return mechanism
        if not isinstance(mechanism, Mechanism | PublicMechanism):
            raise InvalidProblem("leakage is measured of a Mechanism or a leakage.Channel, with finitely many secrets")
        numerators = [[int(weight) for weight in row] for row in mechanism.weights]
        return cls.from_integers(mechanism.secrets, mechanism.observables, numerators, 2**mechanism.bits)

    @classmethod
    def from_integers(cls, secrets: Space, outputs: Space, numerators: Any, denominator: int) -> "Channel":
        """The channel whose probabilities are integers over one denominator; every row sums to it.

        >>> answers = pg.Categories(["yes", "no"])
        >>> pg.leakage.Channel.from_integers(answers, answers, [[2, 1], [0, 3]], 3).fractions[1]
        (Fraction(0, 1), Fraction(1, 1))
        """
        rows = [[int(number) for number in row] for row in numerators]
        if len(rows) != len(secrets) or any(
            len(row) != len(outputs) or sum(row) != denominator or min(row) < 0 for row in rows
        ):
            raise InvalidProblem(
                "every row of a channel must have an integer, 0 or more, for each output, and sum to 1"
            )
        common = gcd(denominator, *(number for row in rows for number in row))
        channel = cls.__new__(cls)
        reduced = tuple(tuple(number // common for number in row) for row in rows)
        channel._fill(secrets=secrets, outputs=outputs, numerators=reduced, denominator=denominator // common)
        return channel

    @cached_property
    def _content(self) -> tuple[object, ...]:
        return self.secrets, self.outputs, self.numerators, self.denominator

    @cached_property
    def integers(self) -> Integers:
        """The numerators as an array (secrets, outputs) of Python integers."""
        return np.array(self.numerators, dtype=object)

    @cached_property
    def fractions(self) -> tuple[tuple[Fraction, ...], ...]:
        """p(o|s) as fractions, a tuple for each secret."""
        return tuple(tuple(Fraction(number, self.denominator) for number in row) for row in self.numerators)

    @cached_property
    def probabilities(self) -> FloatArray:
        """p(o|s) as floats, each the nearest one."""
        return divide(self.integers, self.denominator)

    def __repr__(self) -> str:
        return f"Channel({len(self.secrets)} secrets, {len(self.outputs)} outputs)"


Disclosing = Mechanism | PublicMechanism | Channel
"""Whatever leakage is measured of."""

Belief = Prior | Sequence[Number]
"""A prior, whose floats are divided by their exact sum; or exact probabilities in the order of the secrets."""


def normalise(values: Sequence[Number], what: str) -> tuple[tuple[int, ...], int]:
    """Integer weights and their sum, in exactly the proportion of the given probabilities."""
    fractions = [as_fraction(value, what) for value in values]
    total = sum(fractions, Fraction(0))
    if min(fractions, default=0) < 0 or abs(total - 1) > SUM_TOLERANCE:
        raise InvalidProblem(f"{what} must consist of probabilities, 0 or more, that sum to 1")
    scale = lcm(*(fraction.denominator for fraction in fractions))
    weights = [int(fraction * scale) for fraction in fractions]
    common = gcd(*weights)
    reduced = tuple(weight // common for weight in weights)
    return reduced, sum(reduced)


def as_fraction(value: object, what: str) -> Fraction:
    """A finite number as the fraction that it is."""
    if isinstance(value, Fraction):
        return value
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return Fraction(int(value))
    if isinstance(value, float | np.floating) and -inf < float(value) < inf:
        return Fraction(float(value))
    raise InvalidProblem(f"{what} must consist of finite numbers")


def prior_weights(prior: Belief, size: int) -> tuple[tuple[int, ...], int]:
    """A prior as integer weights and their sum.

    Args:
        prior: a prior, or exact probabilities.
        size: number of secrets.
    """
    values = prior.probabilities.tolist() if isinstance(prior, Prior) else as_ordered_list(prior, "the prior")
    if len(values) != size:
        raise InvalidProblem(f"the prior has {len(values)} probabilities, but there are {size} secrets")
    return normalise(values, "the prior")


def joint_weights(mechanism: Disclosing, prior: Belief) -> tuple[Integers, int]:
    """The joint probabilities π(s) p(o|s) as integers (secrets, outputs) over one denominator."""
    channel = Channel.of(mechanism)
    if isinstance(prior, Prior) and prior.space != channel.secrets:
        raise InvalidProblem(
            f"the prior is over other secrets than the mechanism's: {prior.space!r}, not {channel.secrets!r}"
        )
    weights, total = prior_weights(prior, len(channel.secrets))
    return np.array(weights, dtype=object)[:, None] * channel.integers, total * channel.denominator


def divide(integers: Integers, denominator: int) -> FloatArray:
    """Integers of any size over one denominator, each as the nearest float."""
    return freeze_floats([[number / denominator for number in row] for row in integers])
