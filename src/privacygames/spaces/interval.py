"""Intervals: real numbers as secrets, such as incomes, ages in days or times of day."""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, as_floats
from privacygames.errors import InvalidProblem
from privacygames.spaces.numbers import LONGEST_UNIT
from privacygames.spaces.region import Region
from privacygames.validation import is_number


class Interval(Region):
    """The real numbers from ``low`` to ``high``; every one of them may be the secret.

    A number outside is moved to the nearer end, which never increases the distance between two numbers.

    >>> ages = pg.Interval(17.0, 91.0, unit="years")
    >>> ages.clamp([18.5, 120.0]).tolist()
    [[1.5], [74.0]]

    Args:
        low: the smallest number.
        high: the largest number.
        unit: the unit, such as ``"years"``.
    """

    low: float
    high: float

    def __init__(self, low: float, high: float, *, unit: str = "") -> None:
        if not all(is_number(end) and abs(end) < 2**53 for end in (low, high)) or not low < high:
            raise InvalidProblem("an interval needs two finite numbers, the smaller one first")
        if not isinstance(unit, str) or not unit.isprintable() or len(unit) > LONGEST_UNIT:
            raise InvalidProblem(f"unit must be a printable text of at most {LONGEST_UNIT} characters")
        self._fill(low=float(low), high=float(high), _unit=unit)

    @cached_property
    def _content(self) -> tuple[object, ...]:
        return self.low, self.high, self.unit

    @property
    def unit(self) -> str:
        """The unit of the numbers."""
        unit: str = self.__dict__["_unit"]
        return unit

    @property
    def lengths(self) -> tuple[float]:
        """The length of the interval."""
        return (self.high - self.low,)

    @property
    def corners(self) -> tuple[tuple[float], tuple[float]]:
        """The smallest and the largest number."""
        return (self.low,), (self.high,)

    @property
    def distance_names(self) -> tuple[str, ...]:
        """The absolute difference, and its square."""
        return "absolute", "squared"

    def project(self, points: ArrayLike) -> FloatArray:
        """Numbers as an array (numbers, 1), counted from ``low``.

        >>> pg.Interval(10.0, 20.0).project([12.0]).tolist()
        [[2.0]]
        """
        numbers = as_floats(points, "the list of numbers")
        if numbers.ndim == 2 and numbers.shape[1] == 1:
            numbers = numbers[:, 0]
        if numbers.ndim != 1:
            raise InvalidProblem(f"numbers must be a list, an array with one axis; got shape {numbers.shape}")
        invalid = int((~np.isfinite(numbers)).sum())
        if invalid:
            raise InvalidProblem(f"{invalid} of the numbers are not finite")
        return (numbers - self.low)[:, None]

    def coordinates(self, points: FloatArray) -> FloatArray:
        """The numbers themselves, (numbers, 1)."""
        return points + self.low

    def __repr__(self) -> str:
        return f"Interval({self.low:g} to {self.high:g}{f' {self.unit}' if self.unit else ''})"
