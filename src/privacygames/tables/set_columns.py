"""Finds sets in Arrow columns of lists, by masks of their members: exact, and without a Python object for each row."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import IntArray
from privacygames.spaces import Label
from privacygames.tables.optional_imports import import_optional

MAX_MASK_WORDS = 16
"""Largest number of 64-bit words of a mask. Sets of more than 1,023 different members are compared one by one."""

WORD_BITS = 64


class SetIndex:
    """The positions of sets of texts among those of a space, for lists in any order, with repetitions or not.

    Every text that is in one of the space's sets has a bit of a mask, and all other values share one, so that two sets
    are equal if and only if their masks are.

    Args:
        sets: the labels of a space of sets.
        unknown: the position of all other sets.
    """

    def __init__(self, sets: Sequence[Label], unknown: int) -> None:
        self._position_of = {frozenset(members): position for position, members in enumerate(map(_members, sets))}
        self._texts = sorted({text for members in self._position_of for text in members})
        self._unknown = unknown
        self._words = len(self._texts) // WORD_BITS + 1

    def positions(self, array: Any) -> IntArray:
        """The position of each list of an Arrow array; that of a null list means nothing."""
        pc = import_optional("pyarrow.compute")
        if self._words > MAX_MASK_WORDS:
            rows = (self._position_of.get(frozenset(row or ()), self._unknown) for row in array.to_pylist())
            return np.fromiter(rows, dtype=np.int64, count=len(array))
        members = self._numbers(array.flatten())  # without what null lists hide
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
        masks = self._masks(members, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))
        positions = pc.index_in(_as_arrow(masks), value_set=self._known_masks)
        return np.asarray(pc.fill_null(positions, self._unknown).to_numpy(zero_copy_only=False), dtype=np.int64)

    @cached_property
    def _known_masks(self) -> Any:
        """The masks of the space's sets, as an Arrow array."""
        number = {text: position for position, text in enumerate(self._texts)}
        members = [number[text] for known in self._position_of for text in known]
        ends = np.cumsum([0, *map(len, self._position_of)])
        return _as_arrow(self._masks(np.array(members, dtype=np.int64), ends))

    @cached_property
    def _bits(self) -> NDArray[np.uint64]:
        """For each word of a mask, the bit that each member sets in it, (words, members)."""
        bits = np.zeros((self._words, len(self._texts) + 1), dtype=np.uint64)
        word, bit = np.divmod(np.arange(len(self._texts) + 1), WORD_BITS)
        bits[word, np.arange(len(self._texts) + 1)] = np.uint64(1) << bit.astype(np.uint64)
        return bits

    def _numbers(self, values: Any) -> NDArray[Any]:
        """The number of each text; one more for every other value."""
        pa, pc = import_optional("pyarrow"), import_optional("pyarrow.compute")
        if pa.types.is_dictionary(values.type):
            other = len(self._texts)
            of_codes = np.append(self._numbers(values.dictionary), other)  # the last one for nulls
            codes = pc.fill_null(values.indices.cast(pa.int64()), len(of_codes) - 1)
            return np.asarray(of_codes[codes.to_numpy(zero_copy_only=False)])
        if pa.types.is_string_view(values.type):
            values = pc.cast(values, pa.large_string())
        if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
            return np.full(len(values), len(self._texts))
        positions = pc.index_in(values, value_set=pa.array(self._texts, values.type))
        return np.asarray(pc.fill_null(positions, len(self._texts)).to_numpy(zero_copy_only=False))

    def _masks(self, members: NDArray[Any], ends: IntArray) -> NDArray[np.uint64]:
        """The mask of each row, (rows, words).

        Args:
            members: the numbers of the members of all rows, one row after the other.
            ends: where each row begins, and where the last one ends.
        """
        masks = self._sums(members, ends)
        # So many powers of two have a sum with as many bits set only if they are distinct: it is their union then.
        repeated = np.bitwise_count(masks).sum(axis=1, dtype=np.int64) != np.diff(ends)
        if repeated.any():
            rows = np.flatnonzero(repeated)
            pairs = np.repeat(np.arange(len(ends) - 1), np.diff(ends)) * (len(self._texts) + 1) + members
            distinct = np.unique(pairs[np.repeat(repeated, np.diff(ends))])
            row, member = np.divmod(distinct, len(self._texts) + 1)
            masks[rows] = self._sums(member, np.append(np.searchsorted(row, rows), len(row)))
        return masks

    def _sums(self, members: NDArray[Any], ends: IntArray) -> NDArray[np.uint64]:
        """The sum of the members' bits in each row, modulo 2⁶⁴ in each word."""
        sums = np.empty((len(ends) - 1, self._words), dtype=np.uint64)
        cumulative = np.zeros(len(members) + 1, dtype=np.uint64)
        for word, bits in enumerate(self._bits):
            np.cumsum(bits[members], out=cumulative[1:])
            np.subtract(cumulative[ends[1:]], cumulative[ends[:-1]], out=sums[:, word])
        return sums


def _members(label: Label) -> frozenset[str]:
    return label if isinstance(label, frozenset) else frozenset()


def _as_arrow(masks: NDArray[np.uint64]) -> Any:
    """Masks as Arrow values that can be looked up: integers or, of several words, bytes."""
    pa = import_optional("pyarrow")
    rows, words = masks.shape
    if words == 1:
        return pa.array(masks[:, 0])
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(8 * words), rows, [None, pa.py_buffer(masks)])
