"""Reads secrets from columns: coordinates, numbers, categories, lists of texts, or several columns together."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray
from privacygames.errors import InvalidProblem
from privacygames.spaces import Grid, Numbers, Product, Sets, Space
from privacygames.tables.optional_imports import import_optional
from privacygames.tables.set_columns import SetIndex

UNKNOWN, MISSING = -1, -2
"""In place of an index: the row holds a value that is no secret of the mechanism; it holds no value."""

BLOCK = 1 << 14
"""Rows whose numbers or sets are read, or whose outputs are drawn, at a time: their arrays, 128 KB each, fit a
processor's second cache."""

SWAPPED = " (inside with latitude and longitude swapped: the longitude comes first)"
"""A hint about points that lie in a grid or area only with their coordinates swapped."""

Place = str | tuple[str, ...] | tuple["Place", ...]
"""A column, or columns that belong together: ``("lon", "lat")``, ``(("lon", "lat"), "age")``."""


def column_names(place: Any) -> tuple[str, ...]:
    """The columns of a place, in order."""
    if isinstance(place, str):
        return (place,)
    if not isinstance(place, tuple | list) or not place:
        raise InvalidProblem("a mechanism is for a column, or for a tuple of columns that belong together")
    return tuple(name for part in place for name in column_names(part))


class ColumnReader(ABC):
    """Reads the secrets of rows from columns, as numbers of 0 or more that row samplers take.

    Attributes:
        place: the columns that hold the secrets.
    """

    place: Any

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read."""
        return column_names(self.place)

    @property
    @abstractmethod
    def secret_count(self) -> int | None:
        """The number of possible secrets; None where they are the points of a region."""

    @property
    @abstractmethod
    def has_nearest(self) -> bool:
        """Whether a value that is no secret may have a nearest one; of a product, in one of its parts."""

    @property
    @abstractmethod
    def unknown(self) -> str:
        """What rows do that hold a value which is no secret, for messages."""

    @abstractmethod
    def number_columns(self) -> tuple[str, ...]:
        """The columns that hold numbers: coordinates, or numbers themselves."""

    @abstractmethod
    def set_columns(self) -> tuple[str, ...]:
        """The columns that hold sets."""

    @abstractmethod
    def positions(self, columns: Mapping[str, Any], *, nearest: bool = False) -> IntArray:
        """Each row's secret as a number: its index, or an encoded point; or ``UNKNOWN`` or ``MISSING``."""

    @abstractmethod
    def is_far(self, columns: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Whether each row lies outside all secrets by more than one step, in one part at least.

        A step is a cell's width or height, the distance of the outermost number from its neighbour, or a tenth of an
        area's width or height.
        """

    @abstractmethod
    def is_swapped(self, columns: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Whether each row's point lies outside, over degrees, and inside with its coordinates swapped."""

    def hint(self, columns: Mapping[str, Any]) -> str:
        """A hint about points outside, for messages; empty if there is none."""
        swapped = self.is_swapped(columns)
        return SWAPPED if 2 * int(swapped.sum()) > len(swapped) else ""


@dataclass(frozen=True)
class SecretReader(ColumnReader):
    """Finds the index of each row's secret.

    Attributes:
        space: the space of secrets.
        place: the columns that hold them.
    """

    space: Space
    place: Any

    def __post_init__(self) -> None:
        names = column_names(self.place)
        parts = self._parts
        if not parts and len(names) != 1 and not self._by_point:
            raise InvalidProblem(f"columns {names} belong to one secret, but {self.space!r} takes one column")

    @cached_property
    def _parts(self) -> "tuple[SecretReader, ...]":
        if not isinstance(self.space, Product) or isinstance(self.place, str):
            return ()
        if len(self.place) != len(self.space.parts):
            raise InvalidProblem(f"{self.space!r} has {len(self.space.parts)} parts, but {len(self.place)} were given")
        return tuple(SecretReader(part, at) for part, at in zip(self.space.parts, self.place, strict=True))

    @property
    def _by_point(self) -> bool:
        return isinstance(self.space, Grid) and not isinstance(self.place, str) and len(self.place) == 2

    @property
    def secret_count(self) -> int:
        """The number of secrets."""
        return len(self.space)

    @property
    def unknown(self) -> str:
        """What rows do that hold a value which is no secret, for messages."""
        return "hold what is no secret of the mechanism"

    @property
    def has_nearest(self) -> bool:
        """Whether a value that is no secret may have a nearest one; of a product, in one of its parts."""
        if self._parts:
            return any(part.has_nearest for part in self._parts)
        return self._by_point or isinstance(self.space, Numbers)

    @cached_property
    def _numeric(self) -> bool:
        return all(isinstance(label, int | float) for label in self.space.labels)

    def number_columns(self) -> tuple[str, ...]:
        """The columns that hold numbers: coordinates, or numbers themselves."""
        return tuple(name for leaf in self.leaves() if leaf._by_point or leaf._numeric for name in leaf.columns)

    def set_columns(self) -> tuple[str, ...]:
        """The columns that hold sets."""
        return tuple(name for leaf in self.leaves() if isinstance(leaf.space, Sets) for name in leaf.columns)

    def leaves(self) -> "tuple[SecretReader, ...]":
        """The readers of single spaces, one for each part of a product."""
        return tuple(leaf for part in self._parts for leaf in part.leaves()) if self._parts else (self,)

    def positions(self, columns: Mapping[str, Any], *, nearest: bool = False) -> IntArray:
        """The index of each row's secret, or ``UNKNOWN`` or ``MISSING``."""
        if self._parts and isinstance(self.space, Product):
            by_part = [part.positions(columns, nearest=nearest) for part in self._parts]
            worst = np.minimum.reduce(by_part)
            joined = self.space.join([np.maximum(positions, 0) for positions in by_part])
            return np.where(worst < 0, worst, joined)
        if self._by_point:
            return in_blocks(lambda x, y: self._by_points([x, y], nearest=nearest), columns, self.columns)
        (name,) = self.columns
        if self._numeric:
            return in_blocks(lambda array: self._by_number(array, name, nearest=nearest), columns, self.columns)
        if isinstance(self.space, Sets):
            return in_blocks(lambda array: self._by_set(array, name), columns, self.columns)
        return self._by_text(columns[name], name)

    def _by_points(self, axes: list[Any], *, nearest: bool) -> IntArray:
        grid: Any = self.space
        points = np.stack([read_numbers(axis, name) for axis, name in zip(axes, self.columns, strict=True)], axis=1)
        positions = np.asarray(grid.locate(points, outside="drop"))
        if int(positions.min(initial=0)) >= 0:
            return positions
        if nearest:
            finite = np.isfinite(points).all(axis=1)  # a point at infinity has no nearest cell
            positions[finite] = grid.locate(points[finite], outside="nearest")
        positions[np.isnan(points).any(axis=1)] = MISSING
        return positions

    def _by_number(self, array: Any, name: str, *, nearest: bool) -> IntArray:
        if self._consecutive_from is not None and not nearest and _is_plain_integers(array):
            return self._by_offset(array, self._consecutive_from)
        values = read_numbers(array, name)
        order, ordered = self._ordered
        with np.errstate(invalid="ignore", over="ignore"):
            index = self._guess_index(values) if self._step and not nearest else np.searchsorted(ordered, values)
            index = np.minimum(index, len(ordered) - 1)
            is_secret = ordered[index] == values
            if nearest:
                below = np.maximum(index - 1, 0)
                index = np.where(np.abs(values - ordered[below]) <= np.abs(ordered[index] - values), below, index)
                is_secret = np.isfinite(values)  # infinity has no nearest number
        positions = order[index]
        if not is_secret.all():
            positions[~is_secret] = UNKNOWN
            positions[np.isnan(values)] = MISSING
        return positions

    def _by_offset(self, array: Any, smallest: int) -> IntArray:
        """The index of each integer among consecutive ones, found without rounding."""
        index: IntArray = array.to_numpy(zero_copy_only=False).astype(np.int64, copy=False) - smallest
        is_secret = index.view(np.uint64) < len(self.space)  # negative ones are large without their sign
        if not is_secret.all():
            return np.where(is_secret, self._ordered[0][np.where(is_secret, index, 0)], UNKNOWN)
        return index if self._ascending else self._ordered[0][index]

    @cached_property
    def _ascending(self) -> bool:
        return bool((np.diff(self._ordered[0]) > 0).all())

    @cached_property
    def _consecutive_from(self) -> int | None:
        """The smallest of the numbers, if they are consecutive integers in any order."""
        smallest = float(self._ordered[1][0])
        return int(smallest) if self._step == 1 and smallest.is_integer() else None

    def _guess_index(self, values: FloatArray) -> IntArray:
        """The index of each value among numbers at equal steps, if it is one of them: the caller compares."""
        last = len(self.space) - 1
        steps = (values - self._ordered[1][0]) / self._step
        return np.asarray(np.fmax(np.fmin(np.rint(steps), last), 0)).astype(np.int64)

    @cached_property
    def _step(self) -> float:
        """The step between numbers at equal steps; 0 for others."""
        steps = np.diff(self._ordered[1])
        return float(steps[0]) if len(steps) and (steps == steps[0]).all() else 0.0

    @cached_property
    def _ordered(self) -> tuple[IntArray, FloatArray]:
        numbers = np.array(self.space.labels, dtype=np.float64)
        order = np.argsort(numbers, kind="stable").astype(np.int64)
        return order, numbers[order]

    def _by_text(self, array: Any, name: str) -> IntArray:
        pa, pc = import_optional("pyarrow"), import_optional("pyarrow.compute")
        if not all(isinstance(label, str) for label in self.space.labels):
            raise InvalidProblem(
                f"column {name!r}: secrets that are texts and numbers mixed cannot be found in a column"
            )
        kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
            if pa.types.is_null(kind):
                return np.full(len(array), MISSING, dtype=np.int64)
            raise InvalidProblem(
                f"column {name!r} is of type {kind}, but the secrets of the mechanism are texts, "
                f"which look like {self.space.labels[0]!r}: cast it to text"
            )
        labels = pa.array(self.space.labels, pa.string())
        coded = pa.types.is_dictionary(array.type)
        values = pc.cast(array.dictionary if coded else array, pa.string())
        positions = _fill_nulls(pc.index_in(values, value_set=labels), UNKNOWN)
        if coded:
            codes = _fill_nulls(array.indices, MISSING)
            of_codes = np.append(_mark_missing(positions, values), MISSING)  # a dictionary may itself hold a null
            return of_codes[np.where(codes < 0, len(of_codes) - 1, codes)]
        return _mark_missing(positions, array)

    def _by_set(self, array: Any, name: str) -> IntArray:
        pa = import_optional("pyarrow")
        if pa.types.is_null(array.type):
            return np.full(len(array), MISSING, dtype=np.int64)
        if not (
            pa.types.is_list(array.type) or pa.types.is_large_list(array.type) or pa.types.is_list_view(array.type)
        ):
            raise InvalidProblem(
                f"column {name!r} is of type {array.type}, but the secrets are sets: give lists of texts"
            )
        return _mark_missing(self._set_index.positions(array), array)

    @cached_property
    def _set_index(self) -> SetIndex:
        return SetIndex(self.space.labels, UNKNOWN)

    def is_far(self, columns: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Whether each row lies outside all secrets by more than one step, in one part at least."""
        by_part = [leaf._is_far(columns) for leaf in self.leaves() if leaf.has_nearest]
        return np.asarray(np.logical_or.reduce(by_part), dtype=bool)

    def _is_far(self, columns: Mapping[str, Any]) -> NDArray[np.bool_]:
        grid = self.space
        values = np.stack([read_numbers(columns[name], name) for name in self.columns], axis=1)
        if isinstance(grid, Grid):
            west, south, east, north = grid.box or (0.0, 0.0, grid.width, grid.height)
            low, high = np.array([west, south]), np.array([east, north])
            before = after = (high - low) / (grid.columns, grid.rows)
        else:
            ordered = self._ordered[1]
            steps = np.diff(ordered) if len(ordered) > 1 else np.array([inf])
            low, high, before, after = ordered[:1], ordered[-1:], steps[:1], steps[-1:]
        with np.errstate(invalid="ignore"):
            return np.asarray(((values < low - before) | (values > high + after)).any(axis=1))

    def is_swapped(self, columns: Mapping[str, Any]) -> NDArray[np.bool_]:
        """Whether each row's point lies outside a grid over degrees, and inside with its coordinates swapped."""
        swapped = np.zeros(len(columns[self.columns[0]]), dtype=bool)
        for leaf in self.leaves():
            if leaf._by_point and isinstance(leaf.space, Grid) and leaf.space.box is not None:
                x, y = (read_numbers(columns[name], name) for name in leaf.columns)
                inside, inside_swapped = (
                    leaf.space.locate(np.stack(axes, axis=1), outside="drop") >= 0 for axes in ((x, y), (y, x))
                )
                swapped |= inside_swapped & ~inside
        return swapped


def in_blocks(read: Callable[..., IntArray], columns: Mapping[str, Any], names: Sequence[str]) -> IntArray:
    """A secret for each row, read from Arrow arrays of some columns, of :data:`BLOCK` rows at a time."""
    arrays = [columns[name] for name in names]
    count = len(arrays[0])
    if count <= BLOCK:
        return read(*arrays)
    secrets = np.empty(count, dtype=np.int64)
    for start in range(0, count, BLOCK):
        secrets[start : start + BLOCK] = read(*(array.slice(start, BLOCK) for array in arrays))
    return secrets


def read_numbers(array: Any, name: str) -> FloatArray:
    """A column of numbers as floats; NaN for missing ones."""
    pa, pc = import_optional("pyarrow"), import_optional("pyarrow.compute")
    if pa.types.is_dictionary(array.type):
        array = pc.cast(array, array.type.value_type)
    kind = array.type
    if not (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind)
    ):
        raise InvalidProblem(
            f"column {name!r} is of type {kind}, but the secrets of the mechanism need numbers: cast it"
        )
    if pa.types.is_null(kind):
        return np.full(len(array), np.nan)
    if array.null_count == 0 and not pa.types.is_decimal(kind):
        return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)
    return np.asarray(pc.cast(array, pa.float64(), safe=False).to_numpy(zero_copy_only=False), dtype=np.float64)


def _is_plain_integers(array: Any) -> bool:
    """Whether a column holds integers that are 64-bit ones with a sign, or can be, and no nulls."""
    types = import_optional("pyarrow").types
    return bool(types.is_integer(array.type) and not types.is_uint64(array.type) and array.null_count == 0)


def _fill_nulls(array: Any, value: int) -> IntArray:
    pc = import_optional("pyarrow.compute")
    filled = pc.fill_null(array, value) if array.null_count else array
    return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=np.int64).copy()


def _mark_missing(positions: IntArray, array: Any) -> IntArray:
    if array.null_count:
        positions[np.asarray(array.is_null().to_numpy(zero_copy_only=False), dtype=bool)] = MISSING
    return positions
