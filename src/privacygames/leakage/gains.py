"""Gain functions: what an adversary gains by each guess when the secret is s."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb, lcm

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privacygames.arrays import FloatArray, freeze_floats
from privacygames.errors import Field, InvalidProblem, TooLarge
from privacygames.immutable import Value
from privacygames.leakage.channel import Integers, Number, as_fraction, divide
from privacygames.problem import Measure, distance_matrix, require_finite
from privacygames.spaces import Space
from privacygames.validation import is_integer, require_instance

MOST_GUESSES = 5000
"""Largest number of guesses that are written out as the rows of a matrix."""

ROUNDING = 2.0**-52
"""Relative error of one floating-point operation, twice over."""


class Gain(ABC, Value):
    """A gain function g(w, s): the adversary makes one guess w and gains g(w, s) when the secret is s.

    Gains are exact. They may be negative, and there may be more or fewer guesses than secrets.

    >>> prior = pg.Prior(pg.Categories(["flu", "cold", "none"]), [0.5, 0.25, 0.25])
    >>> two_tries = pg.leakage.Gain.tries(2)
    >>> pg.leakage.prior_vulnerability(prior, two_tries)
    0.75
    """

    @staticmethod
    def tries(number: int) -> "Gain":
        """One if the secret is among this many guesses, else zero. One try is the identity gain, Bayes vulnerability.

        >>> prior = pg.Prior.uniform(pg.Categories("abcd"))
        >>> pg.leakage.prior_vulnerability(prior, pg.leakage.Gain.tries(3))
        0.75
        """
        if not is_integer(number):
            raise InvalidProblem(Field("number"), " of tries must be an integer, 1 or more")
        return Tries(int(number))

    @staticmethod
    def from_matrix(gains: ArrayLike | Sequence[Sequence[Number]]) -> "Gain":
        """The gain function with these entries g(w, s), (guesses, secrets).

        >>> safe_guess = pg.leakage.Gain.from_matrix([[1, 0], [0, 1], [0.6, 0.6]])
        >>> pg.leakage.prior_vulnerability(pg.Prior.uniform(pg.Categories("ab")), safe_guess)
        0.6
        """
        return MatrixGain(_exact(gains, "a gain function"))

    @staticmethod
    def from_distance(space: Space, distance: Measure | None = None) -> "Gain":
        """Guesses near the secret gain more: g(w, s) = 1 − d(w, s) / largest d.

        Args:
            space: the secrets.
            distance: a name that the space knows, a matrix (guesses, secrets) or a function of two labels; by default
                the space's own distance.

        >>> ages = pg.Numbers([20, 30, 40])
        >>> near = pg.leakage.Gain.from_distance(ages, "absolute")
        >>> pg.leakage.prior_vulnerability(pg.Prior(ages, [0.5, 0, 0.5]), near)
        0.5
        """
        require_instance(space, Space, "space")
        what = "the distance of a gain function"
        measure = space.default_distance if distance is None else distance
        exact = _exact(require_finite(distance_matrix(measure, what, space), what), what)
        largest = max(value for row in exact for value in row)
        return MatrixGain([[1 - value / largest if largest else Fraction(1) for value in row] for row in exact])

    @staticmethod
    def from_loss(loss: ArrayLike | Sequence[Sequence[Number]]) -> "Gain":
        """What a guess saves of the largest loss: g(w, s) = largest ℓ − ℓ(w, s).

        The vulnerability is the largest loss minus the least expected loss. With the errors of an adversary as the
        loss, that is the largest error minus their distortion privacy.

        >>> problem = pg.Problem(pg.Prior.uniform(pg.Numbers([20, 30, 40])), distance="absolute")
        >>> gain = pg.leakage.Gain.from_loss(problem.distance)
        >>> round(20 - pg.leakage.prior_vulnerability(problem.prior, gain), 4)
        6.6667
        """
        rows = _exact(loss, "a loss")
        largest = max(value for row in rows for value in row)
        return MatrixGain([[largest - value for value in row] for row in rows])

    @abstractmethod
    def best(self, columns: Integers, scale: int) -> Fraction:
        """The sum over columns of the gain of the best guess, times the scale.

        Args:
            columns: (secrets, outputs) integers: joint probabilities times ``scale``.
            scale: what the integers are divided by, to compare guesses in floating point first.
        """

    @abstractmethod
    def choose(self, columns: FloatArray) -> FloatArray:
        """The gains (outputs, secrets) of the best guess for each column, in floating point."""

    @abstractmethod
    def matrix(self, secrets: int) -> FloatArray:
        """All gains, (guesses, secrets), as floats."""

    @abstractmethod
    def require_secrets(self, secrets: int) -> None:
        """Raise unless the gains are of this many secrets."""


class MatrixGain(Gain):
    """A gain function that is written out: integers over one denominator."""

    numerators: tuple[tuple[int, ...], ...]
    denominator: int

    def __init__(self, rows: Sequence[Sequence[Fraction]]) -> None:
        denominator = lcm(*(value.denominator for row in rows for value in row))
        numerators = tuple(tuple(int(value * denominator) for value in row) for row in rows)
        self._fill(numerators=numerators, denominator=denominator)

    @cached_property
    def _content(self) -> tuple[object, ...]:
        return self.numerators, self.denominator

    @property
    def fractions(self) -> tuple[tuple[Fraction, ...], ...]:
        """g(w, s) as fractions, a tuple for each guess."""
        return tuple(tuple(Fraction(number, self.denominator) for number in row) for row in self.numerators)

    @cached_property
    def _integers(self) -> Integers:
        return np.array(self.numerators, dtype=object)

    @cached_property
    def _floats(self) -> FloatArray:
        return divide(self._integers, self.denominator)

    def best(self, columns: Integers, scale: int) -> Fraction:
        """Every guess that may be the best one, given rounding, is compared exactly; the others cannot be the best."""
        self.require_secrets(len(columns))
        joint = divide(columns, scale)
        gains = self._floats @ joint
        errors = (np.abs(self._floats) @ joint) * (len(columns) + 4) * ROUNDING
        possible: NDArray[np.bool_] = gains + errors >= (gains - errors).max(axis=0)
        total = 0
        for output in range(columns.shape[1]):
            total += int((self._integers[possible[:, output]] @ columns[:, output]).max())
        return Fraction(total, self.denominator)

    def choose(self, columns: FloatArray) -> FloatArray:
        """The rows of the best guesses."""
        return np.asarray(self._floats[(self._floats @ columns).argmax(axis=0)])

    def matrix(self, secrets: int) -> FloatArray:
        """The matrix itself."""
        self.require_secrets(secrets)
        return self._floats

    def require_secrets(self, secrets: int) -> None:
        """Raise unless there is a column for every secret."""
        if len(self.numerators[0]) != secrets:
            raise InvalidProblem(
                f"the gain function is about {len(self.numerators[0])} secrets, but there are {secrets}"
            )

    def __repr__(self) -> str:
        return f"Gain({len(self.numerators)} guesses, {len(self.numerators[0])} secrets)"


class Tries(Gain):
    """Some number of guesses, one of which must be right: the sum of that many largest probabilities."""

    number: int

    def __init__(self, number: int) -> None:
        self._fill(number=number)

    @cached_property
    def _content(self) -> tuple[object, ...]:
        return (self.number,)

    def best(self, columns: Integers, scale: int) -> Fraction:  # noqa: ARG002 - nothing is rounded
        """The largest probabilities of every column, added."""
        return Fraction(sum(int(np.sort(column)[-self.number :].sum()) for column in columns.T))

    def choose(self, columns: FloatArray) -> FloatArray:
        """One for the likeliest secrets of each column."""
        chosen = np.zeros(columns.shape)
        likeliest = np.argsort(-columns, axis=0, kind="stable")[: self.number]
        np.put_along_axis(chosen, likeliest, 1.0, axis=0)
        return chosen.T

    def matrix(self, secrets: int) -> FloatArray:
        """A row for every set of as many secrets."""
        tries = min(self.number, secrets)
        if comb(secrets, tries) > MOST_GUESSES:
            raise TooLarge(
                f"{tries} tries among {secrets} secrets are {comb(secrets, tries)} guesses; at most {MOST_GUESSES} "
                "are written out"
            )
        rows = np.zeros((comb(secrets, tries), secrets))
        for row, guesses in enumerate(combinations(range(secrets), tries)):
            rows[row, list(guesses)] = 1.0
        return freeze_floats(rows)

    def require_secrets(self, secrets: int) -> None:
        """Any number of secrets will do."""

    def __repr__(self) -> str:
        return f"Gain.tries({self.number})"


GainArgument = str | Gain | ArrayLike | Sequence[Sequence[Number]]
"""``"identity"`` (Bayes vulnerability), the name of a distance (see ``Gain.from_distance``), a gain or a matrix."""


def as_gain(gain: GainArgument, secrets: Space | None) -> Gain:
    """A gain from what the caller passed.

    Args:
        gain: a name, a gain or a matrix.
        secrets: the space that knows distances by name; None where there is none.
    """
    if isinstance(gain, Gain):
        return gain
    if not isinstance(gain, str):
        return Gain.from_matrix(gain)
    if gain == "identity":
        return Tries(1)
    if secrets is None:
        raise InvalidProblem(Field("gain"), ' by the name of a distance needs a Prior; else give "identity" or a Gain')
    return Gain.from_distance(secrets, gain)


def _exact(values: ArrayLike | Sequence[Sequence[Number]], what: str) -> list[list[Fraction]]:
    try:
        rows = np.array(values, dtype=object)
    except ValueError:
        rows = np.zeros(0, dtype=object)
    if rows.ndim != 2 or not rows.size:
        raise InvalidProblem(f"{what} is a matrix (guesses, secrets): a row for each guess, an entry for each secret")
    return [[as_fraction(value, what) for value in row] for row in rows]
