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
    """Finite numbers, in the order given; they are their own labels.

    Args:
        values: the numbers.
        unit: what they count, such as ``"years"``: for sentences and figures.
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

    @cached_property
    def _content(self) -> tuple[object, ...]:
        return self.labels, self.unit

    @cached_property
    def values(self) -> FloatArray:
        """The numbers as floats."""
        return freeze_floats(self.labels)  # type: ignore[arg-type]

    def intervals(self, length: int, *, aggregation: Aggregation = "mean") -> Subsets:
        """Intervals as observables: runs of ``length`` consecutive values, labelled ``"17–21"`` or ``"-5 to -3"``."""
        if not is_integer(length):
            raise InvalidProblem(f"an interval needs a whole number of values, at least 1; got {repr(length)[:40]}")
        groups = consecutive_groups(sorted(self.labels, key=float), length)  # type: ignore[arg-type]
        dash = "–" if self.values.min() >= 0 else " to "  # "-5–-3" is hard to read
        names = [f"{group[0]}{dash}{group[-1]}" if len(group) > 1 else f"{group[0]}" for group in groups]
        return Subsets(self, groups, labels=names, aggregation=aggregation)

    def distance_unit(self, name: str) -> str:
        """What the numbers count, except for the Hamming distance."""
        return "" if name == "hamming" else self.unit

    def _named_distances(self) -> NamedDistances:
        return {"absolute": self._absolute, **super()._named_distances()}

    def _absolute(self, other: Space) -> FloatArray:
        rows = self._needs_same_kind(other, "absolute").values
        return np.abs(rows[:, None] - self.values[None, :])
