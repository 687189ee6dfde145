"""Where arrays are: a backend has the few operations that NumPy's arrays and a device's spell differently.

What works on batches of blocks is written once. It uses operators, indexing, and the methods that both kinds of array
have (``sum(axis=…)``, ``clip``, ``ravel``, ``reshape``); for everything else it asks the backend. Annotations say
``FloatArray`` for either kind.
"""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.linalg.lapack import Square

Array = TypeVar("Array", FloatArray, IntArray)
Kind = TypeVar("Kind", bound=np.generic)


class Backend(Protocol):
    """Holds arrays, and operates on them."""

    @property
    def entries_at_once(self) -> int:
        """How many entries a temporary array should have, where that can be chosen."""
        ...

    @property
    def prefer_fused_operations(self) -> bool:
        """Whether few large operations are better than less work in more of them."""
        ...

    @property
    def kernels(self) -> Any:
        """Compiled loops (``kernels/``) for arrays that are here; None where there are none."""
        ...

    def held(self, array: FloatArray) -> FloatArray:
        """An array of floats, wherever it was, where the work is done."""
        ...

    def held_indices(self, array: IntArray) -> IntArray:
        """An array of positions, wherever it was, where the work is done."""
        ...

    def held_mask(self, array: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """An array of truth values, wherever it was, where the work is done."""
        ...

    def fetched(self, array: FloatArray) -> FloatArray:
        """An array, wherever it was, as NumPy's."""
        ...

    def fetched_indices(self, array: IntArray) -> IntArray:
        """Positions, wherever they were, as NumPy's."""
        ...

    def fetched_mask(self, array: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Truth values, wherever they were, as NumPy's."""
        ...

    def numbers(self, parts: Sequence[FloatArray]) -> list[float]:
        """Single numbers, wherever they were, fetched together."""
        ...

    def fetched_rows(self, parts: Sequence[FloatArray | IntArray]) -> FloatArray:
        """Arrays of one shape, wherever they were, fetched together: one above the other."""
        ...

    def fetched_together(self, parts: Sequence[FloatArray]) -> list[FloatArray]:
        """Arrays and single numbers, wherever they were, as NumPy's: fetched together."""
        ...

    def zeros(self, shape: tuple[int, ...]) -> FloatArray:
        """Zeros."""
        ...

    def empty(self, count: int) -> FloatArray:
        """Room for so many numbers, whatever is in it."""
        ...

    def same_rows(self, row: FloatArray, count: int) -> FloatArray:
        """A row so many times, one above the other: to be read only."""
        ...

    def log(self, array: FloatArray) -> FloatArray:
        """Natural logarithms."""
        ...

    def exp(self, array: FloatArray) -> FloatArray:
        """Exponentials."""
        ...

    def single(self, array: FloatArray) -> NDArray[np.float32]:
        """The same in single precision."""
        ...

    def taken(self, array: NDArray[Kind], at: IntArray) -> NDArray[Kind]:
        """What is at some positions of an array, or rows of it."""
        ...

    def where(self, condition: NDArray[np.bool_], first: FloatArray, second: FloatArray) -> FloatArray:
        """The first where the condition holds, and the second elsewhere."""
        ...

    def totals(self, at: IntArray, values: FloatArray, count: int) -> FloatArray:
        """Values, or rows of them, added up at their positions."""
        ...

    def take_totals(self, total: FloatArray, at: IntArray, values: FloatArray) -> None:
        """Take values from a total at their positions, of which several may be the same."""
        ...

    def plus(self, value: FloatArray, step: float, change: FloatArray) -> FloatArray:
        """A value and so much of a change."""
        ...

    def plus_products(self, total: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
        """A total plus the first times the second, entry by entry."""
        ...

    def minus_products(self, total: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
        """A total less the first times the second, entry by entry."""
        ...

    def minus_ratios(self, total: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
        """A total less the first over the second, entry by entry."""
        ...

    def chosen(self, mask: NDArray[np.bool_]) -> IntArray:
        """The positions that a mask chooses, in ascending order."""
        ...

    def largest(self, array: FloatArray, level: float, most: int) -> tuple[FloatArray, IntArray]:
        """The largest entries and where they are, at most so many: all that are above a level, and maybe others."""
        ...

    def largest_values(self, arrays: Sequence[FloatArray], level: float, most: int) -> list[FloatArray]:
        """The largest entries of arrays of one length, at most so many, that are above a level; on the host."""
        ...

    def add_at(self, total: FloatArray, at: IntArray, values: FloatArray) -> None:
        """Add values to a total at a few positions, which differ."""
        ...

    def times(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """The product of two matrices, the first of which has a row for each block."""
        ...

    def positions(self, keys: IntArray, wanted: IntArray) -> IntArray:
        """Where, in sorted keys, the first is that is not smaller than each that is wanted."""
        ...

    def union(self, first: IntArray, second: IntArray) -> IntArray:
        """The union of two sorted arrays, sorted."""
        ...

    def repeated(self, pairs: IntArray, times: int, apart: int) -> IntArray:
        """Positions, then the same so far apart, so many times."""
        ...

    def add_columns(self, total: FloatArray, at: IntArray, columns: FloatArray) -> None:
        """Add columns to those of a total, at their positions, of which several may be the same."""
        ...

    def smaller(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """The smaller of two arrays, entry by entry."""
        ...

    def least(self, array: FloatArray, axis: int = 0) -> FloatArray:
        """The least along an axis."""
        ...

    def most(self, array: FloatArray, axis: int = 0) -> FloatArray:
        """The most along an axis."""
        ...

    def joined(self, parts: Sequence[Array]) -> Array:
        """Arrays one after the other; a single one as it is."""
        ...


class HostBackend:
    """NumPy, and compiled loops where there are any."""

    entries_at_once = 1 << 15  # as many as a processor's cache holds

    prefer_fused_operations = False

    def __init__(self, kernels: Any = None) -> None:
        self.kernels = kernels

    def held(self, array: FloatArray) -> FloatArray:
        """As it is."""
        return array

    def held_indices(self, array: IntArray) -> IntArray:
        """As they are."""
        return array

    def held_mask(self, array: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """As it is."""
        return array

    def fetched(self, array: FloatArray) -> FloatArray:
        """As it is."""
        return array

    def fetched_indices(self, array: IntArray) -> IntArray:
        """As they are."""
        return array

    def fetched_mask(self, array: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """As it is."""
        return array

    def numbers(self, parts: Sequence[FloatArray]) -> list[float]:
        """As they are."""
        return [float(part) for part in parts]

    def fetched_rows(self, parts: Sequence[FloatArray | IntArray]) -> FloatArray:
        """One above the other."""
        return np.stack(parts).astype(np.float64, copy=False)

    def fetched_together(self, parts: Sequence[FloatArray]) -> list[FloatArray]:
        """As they are."""
        return list(parts)

    def zeros(self, shape: tuple[int, ...]) -> FloatArray:
        """Zeros."""
        return np.zeros(shape)

    def empty(self, count: int) -> FloatArray:
        """Room for so many numbers."""
        return np.empty(count)

    def same_rows(self, row: FloatArray, count: int) -> FloatArray:
        """A row so many times, one above the other."""
        return np.tile(row, (count, 1))

    def log(self, array: FloatArray) -> FloatArray:
        """Natural logarithms."""
        return np.asarray(np.log(array))

    def exp(self, array: FloatArray) -> FloatArray:
        """Exponentials."""
        return np.asarray(np.exp(array))

    def single(self, array: FloatArray) -> NDArray[np.float32]:
        """The same in single precision."""
        return array.astype(np.float32)

    def taken(self, array: NDArray[Kind], at: IntArray) -> NDArray[Kind]:
        """What is at some positions of an array."""
        return array[at]

    def where(self, condition: NDArray[np.bool_], first: FloatArray, second: FloatArray) -> FloatArray:
        """The first where the condition holds, and the second elsewhere."""
        return np.where(condition, first, second)

    def totals(self, at: IntArray, values: FloatArray, count: int) -> FloatArray:
        """Values, or rows of them, added up at their positions."""
        if values.ndim == 1:
            return np.asarray(np.bincount(at, values, count), dtype=np.float64)
        width = values.shape[1]
        places = (at[:, None] * width + np.arange(width)).ravel()
        found = np.asarray(np.bincount(places, values.ravel(), count * width), dtype=np.float64)
        return found.reshape(count, width)

    def take_totals(self, total: FloatArray, at: IntArray, values: FloatArray) -> None:
        """Take values from a total at their positions."""
        total -= np.bincount(at, values, len(total))

    def plus(self, value: FloatArray, step: float, change: FloatArray) -> FloatArray:
        """A value and so much of a change."""
        return value + step * change

    def plus_products(self, total: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
        """A total plus the first times the second, entry by entry."""
        return total + first * second

    def minus_products(self, total: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
        """A total less the first times the second, entry by entry."""
        return total - first * second

    def minus_ratios(self, total: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
        """A total less the first over the second, entry by entry."""
        return total - first / second

    def chosen(self, mask: NDArray[np.bool_]) -> IntArray:
        """The positions that a mask chooses."""
        return np.flatnonzero(mask)

    def largest(self, array: FloatArray, level: float, most: int) -> tuple[FloatArray, IntArray]:
        """The entries above a level and where they are: the largest, where there are more than ``most``."""
        at = np.flatnonzero(array > level) if self.kernels is None else self.kernels.above(array, level)
        at = at if len(at) <= most else at[np.argpartition(array[at], -most)[-most:]]
        return array[at], at

    def largest_values(self, arrays: Sequence[FloatArray], level: float, most: int) -> list[FloatArray]:
        """The largest entries of arrays, at most so many, that are above a level."""
        return [self.largest(array, level, most)[0] for array in arrays]

    def add_at(self, total: FloatArray, at: IntArray, values: FloatArray) -> None:
        """Add values to a total at a few positions, which differ."""
        total[at] += values

    def times(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """The product of two matrices."""
        if self.kernels is None:
            return np.asarray(first @ second)
        return np.asarray(self.kernels.times(np.ascontiguousarray(first), np.ascontiguousarray(second)))

    def positions(self, keys: IntArray, wanted: IntArray) -> IntArray:
        """Where, in sorted keys, the first is that is not smaller than each that is wanted."""
        return np.searchsorted(keys, wanted)

    def union(self, first: IntArray, second: IntArray) -> IntArray:
        """The union of two sorted arrays: a stable sort merges them in one go."""
        both = np.sort(np.concatenate([first, second]), kind="stable")
        return np.asarray(both[np.append(True, both[1:] != both[:-1])]) if len(both) else both

    def repeated(self, pairs: IntArray, times: int, apart: int) -> IntArray:
        """Positions, then the same so far apart, so many times."""
        return np.asarray((np.arange(times)[:, None] * apart + pairs).ravel())

    def add_columns(self, total: FloatArray, at: IntArray, columns: FloatArray) -> None:
        """Add columns to those of a total."""
        np.add.at(total.T, at, columns.T)

    def smaller(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """The smaller of two arrays, entry by entry."""
        return np.minimum(first, second)

    def least(self, array: FloatArray, axis: int = 0) -> FloatArray:
        """The least along an axis."""
        return np.asarray(array.min(axis=axis))

    def most(self, array: FloatArray, axis: int = 0) -> FloatArray:
        """The most along an axis."""
        return np.asarray(array.max(axis=axis))

    def joined(self, parts: Sequence[Array]) -> Array:
        """Arrays one after the other; a single one as it is."""
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def symmetric(self, upper: FloatArray) -> FloatArray:
        """The whole of a symmetric matrix that is right on and above the diagonal."""
        matrix = np.triu(upper)
        matrix += np.triu(upper, 1).T
        return matrix

    def inverse_factor(self, matrix: FloatArray) -> FloatArray | None:
        """The inverse of Cholesky's factor."""
        square, found = Square(len(matrix)), np.array(matrix, order="C")
        if not square.factor(found):
            return None
        square.invert_factor(found)
        return np.tril(found.T)


HOST = HostBackend()
