"""Weights in three bytes each: 17 significant bits and an exponent. What is packed is exactly what is unpacked.

Not every table of weights has so few digits, so a mechanism is designed with a little room, its weights are rounded to
17 significant bits *while their rows keep summing to 2^62*, and what comes out is verified like any other mechanism.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import IntArray

DIGITS = 17
"""Significant bits kept: one is implied, sixteen are written."""

SMALL = 255
"""The exponent of a weight below 2^16, which is written as it is."""

HALF = np.int64(1) << np.int64(DIGITS - 1)


@dataclass(frozen=True)
class Packed:
    """A table of weights in few bytes.

    Attributes:
        exponents: for each weight, by how much its digits are shifted; ``SMALL`` where they are all there is.
        digits: for each weight, its sixteen bits after the first.
        last_column: for each row, the entry that takes what rounding leaves over, so that the row sums to 2^bits.
        last_weight: its weight, in full.
    """

    exponents: NDArray[np.uint8]
    digits: NDArray[np.uint16]
    last_column: NDArray[np.uint32]
    last_weight: IntArray

    def unpacked(self) -> IntArray:
        """The weights."""
        return self.some_rows(np.arange(len(self.last_column)))

    def some_rows(self, rows: IntArray) -> IntArray:
        """The weights of some secrets only."""
        exponents, digits = self.exponents[rows], self.digits[rows].astype(np.int64)
        small = exponents == SMALL
        weights = np.where(small, digits, (digits | HALF) << np.where(small, 0, exponents).astype(np.int64))
        weights[np.arange(len(rows)), self.last_column[rows]] = self.last_weight[rows]
        return weights


def rounded(weights: IntArray) -> IntArray:
    """Weights near the given ones with 17 significant bits, but for the largest of each row; rows sum as before.

    From the smallest weight of a row to the largest, each is rounded together with what rounding the ones before left
    over: so the remainder is always small beside the weight that takes it. Equal rows stay equal.
    """
    order = np.argsort(weights, axis=1, kind="stable")
    ascending = np.take_along_axis(weights, order, axis=1)
    carry = np.zeros(len(weights), dtype=np.int64)
    for column in range(weights.shape[1] - 1):
        wanted = np.where(ascending[:, column] > 0, ascending[:, column] + carry, 0)  # what never happens stays so
        given = _to_digits(np.maximum(wanted, 0))
        carry += ascending[:, column] - given
        ascending[:, column] = given
    ascending[:, -1] += carry
    found = np.empty_like(weights)
    np.put_along_axis(found, order, ascending, axis=1)
    return found


def pack(weights: IntArray) -> Packed | None:
    """Weights with 17 significant bits but for the largest of each row; None where others have more."""
    last = weights.argmax(axis=1)
    plain = weights.copy()
    plain[np.arange(len(weights)), last] = 0
    exponents = _exponents(plain)
    if (_shifted(plain, exponents) << exponents != plain).any():
        return None
    small = plain < HALF
    digits = np.where(small, plain, _shifted(plain, exponents) & (HALF - 1))
    return Packed(
        np.where(small, SMALL, exponents).astype(np.uint8),
        digits.astype(np.uint16),
        last.astype(np.uint32),
        weights[np.arange(len(weights)), last],
    )


def _to_digits(values: IntArray) -> IntArray:
    """The nearest integers with 17 significant bits."""
    exponents = _exponents(values)
    half = np.where(exponents > 0, np.int64(1) << np.maximum(exponents - 1, 0), 0)
    return np.asarray(((values + half) >> exponents) << exponents)


def _exponents(values: IntArray) -> IntArray:
    """By how much to shift right to be left with 17 bits; 0 where there are no more."""
    upper = (values >> 31).astype(np.float64)
    lower = (values & (2**31 - 1)).astype(np.float64)
    lengths = np.where(upper > 0, np.frexp(upper)[1] + 31, np.frexp(lower)[1])  # halves are exact as floats
    return np.asarray(np.maximum(lengths - DIGITS, 0), dtype=np.int64)


def _shifted(values: IntArray, exponents: IntArray) -> IntArray:
    return np.asarray(values >> exponents)
