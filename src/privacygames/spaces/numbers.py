"""Numbers: ages, incomes, counts, hours; distances are absolute differences."""

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from privacygames.arrays import FloatArray, freeze_floats
from privacygames.errors import InvalidProblem
from privacygames.spaces.space import NamedDistances, Space
from privacygames.spaces.subsets import Aggregation, Subsets, consecutive_groups
from privacygames.validation import is_integer

LONGEST_UNIT = 40


class Numbers(Space):
    """A finite set of numbers, in the order given; each is its own label, and distances are absolute differences.

    Args:
        values: the numbers.
        unit: their unit, such as ``"years"``, for sentences and figures.

    >>> ages = pg.Numbers(range(17, 91), unit="years")
    >>> len(ages), float(ages.distance("absolute")[0, -1])
    (74, 73.0)
    >>> ages.intervals(10).labels[0]
    '17–26'
    """

    unit: str
    default_distance = "absolute"

    def __init__(self, values: Iterable[float], *, unit: str = "") -> None:
        super().__init__(values)
        if not isinstance(unit, str) or not unit.isprintable() or len(unit) > LONGEST_UNIT:
            raise InvalidProblem(f"unit must be a printable text of at most {LONGEST_UNIT} characters")
        self._fill(unit=unit)
        if any(isinstance(label, str | frozenset) for label in self.labels):
            raise InvalidProblem("Numbers takes numbers only; use Categories for texts")

    @property
    def content(self) -> tuple[object, ...]:
        """The numbers and their unit."""
        return self.labels, self.unit

    @cached_property
    def values(self) -> FloatArray:
        """The numbers as floats."""
        return freeze_floats(self.labels)  # type: ignore[arg-type]

    def intervals(self, length: int, *, aggregation: Aggregation = "mean") -> Subsets:
        """Intervals as outputs: runs of ``length`` consecutive values, labelled ``"17–21"`` or ``"-5 to -3"``."""
        if not is_integer(length):
            raise InvalidProblem(f"an interval needs a whole number of values, at least 1; got {repr(length)[:40]}")
        groups = consecutive_groups(sorted(self.labels, key=float), length)  # type: ignore[arg-type]
        dash = "–" if self.values.min() >= 0 else " to "  # "-5–-3" is hard to read
        names = [f"{group[0]}{dash}{group[-1]}" if len(group) > 1 else f"{group[0]}" for group in groups]
        return Subsets(self, groups, labels=names, aggregation=aggregation)

    def distance_unit(self, name: str) -> str:
        """The unit of the numbers, except for the Hamming distance."""
        return "" if name == "hamming" else self.unit

    def named_distances(self) -> NamedDistances:
        """The absolute difference, and Hamming's distance."""
        return {"absolute": self._absolute, **super().named_distances()}

    def _absolute(self, other: Space) -> FloatArray:
        rows = self._needs_same_kind(other, "absolute").values
        return np.abs(rows[:, None] - self.values[None, :])
