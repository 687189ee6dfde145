"""Reads secrets that are points of a region: two columns of coordinates, or a column of numbers of an interval."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray
from privacygames.errors import InvalidProblem
from privacygames.mechanism import RegionMechanism
from privacygames.spaces import Area, Region
from privacygames.tables.secret_columns import MISSING, UNKNOWN, ColumnReader, column_names, in_blocks, read_numbers

STEP_SHARE = 0.1
"""Share of a region's length along an axis: points farther outside count as far. A tenth of a city is no rounding."""


@dataclass(frozen=True)
class PointReader(ColumnReader):
    """Encodes each row's point as the mechanism does.

    Attributes:
        mechanism: the mechanism.
        place: the columns of the coordinates, the longitude or x first; or the column of numbers.
    """

    mechanism: RegionMechanism
    place: Any

    def __post_init__(self) -> None:
        names, axes = self.columns, self.region.dimension
        if len(names) != axes:
            wanted = 'two columns, such as ("lon", "lat")' if axes == 2 else "one column"
            raise InvalidProblem(f"a secret of {self.region!r} takes {wanted}; got {', '.join(map(repr, names))}")

    @property
    def region(self) -> Region:
        """The region of the secrets."""
        return self.mechanism.secrets

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return column_names(self.place)

    @property
    def secret_count(self) -> None:
        """None: every point of the region is a secret."""
        return

    @property
    def has_nearest(self) -> bool:
        """True: every point outside has a nearest one in the region."""
        return True

    @property
    def unknown(self) -> str:
        """What rows do that hold a value which is no secret, for messages."""
        return f"hold what is no point of {self.region!r}"

    def number_columns(self) -> tuple[str, ...]:
        """All columns."""
        return self.columns

    def set_columns(self) -> tuple[str, ...]:
        """None of the columns."""
        return ()

    def positions(self, columns: Mapping[str, Any], *, nearest: bool = False) -> IntArray:
        """Each row's point, encoded by the mechanism; or ``UNKNOWN`` or ``MISSING``."""
        return in_blocks(lambda *axes: self._block_positions(axes, nearest=nearest), columns, self.columns)

    def _block_positions(self, axes: Sequence[Any], *, nearest: bool) -> IntArray:
        points = self._points(axes)
        possible = self.region.can_clamp(points) if nearest else self.region.contains(points)
        if possible.all():
            return self.mechanism.encode(points)
        codes = np.full(len(points), UNKNOWN, dtype=np.int64)
        codes[possible] = self.mechanism.encode(points[possible])
        codes[np.isnan(points).any(axis=1)] = MISSING
        return codes

    def is_far(self, columns: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Whether each row lies outside by more than a tenth of the region's length along an axis."""
        low, high = (np.array(corner) for corner in self.region.corners)
        points, step = self.points(columns), STEP_SHARE * (high - low)
        with np.errstate(invalid="ignore"):
            return np.asarray(((points < low - step) | (points > high + step)).any(axis=1))

    def is_swapped(self, columns: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Whether each row's point lies outside an area over degrees, and inside with its coordinates swapped."""
        points = self.points(columns)
        return self.region.is_swapped(points) if isinstance(self.region, Area) else np.zeros(len(points), dtype=bool)

    def points(self, columns: Mapping[str, Any]) -> FloatArray:
        """The coordinates, (rows, axes); NaN for missing ones."""
        return self._points([columns[name] for name in self.columns])

    def _points(self, axes: Sequence[Any]) -> FloatArray:
        numbers = [read_numbers(axis, name) for axis, name in zip(axes, self.columns, strict=True)]
        return np.stack(numbers, axis=1)
