"""Weights stored in three bytes each: 17 significant bits and an exponent.

Weights have up to 62 significant bits, so storing 17 of them is lossy. A fleet's mechanisms are therefore designed for
slightly tighter bounds, rounded to 17 bits such that each row still sums to 2^62, and verified *after* rounding. What
is packed is exactly what is unpacked, verified and sampled.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import IntArray

SIGNIFICANT_BITS = 17
"""Significant bits of a packed weight: the leading one is implied, the other sixteen are stored."""

UNSHIFTED = 255
"""The exponent that marks a weight below 2^16, which is stored as it is."""

LEADING_BIT = np.int64(1) << np.int64(SIGNIFICANT_BITS - 1)


@dataclass(frozen=True)
class PackedWeights:
    """A table of weights in three bytes each.

    Attributes:
        exponents: for each weight, by how much its bits are shifted to the left; ``UNSHIFTED`` for small weights.
        digits: for each weight, the sixteen bits after the leading one.
        last_column: for each row, the column that takes the remainder of rounding, so that the row sums to 2^62.
        last_weight: for each row, the weight in that column, with all its bits.
    """

    exponents: NDArray[np.uint8]
    digits: NDArray[np.uint16]
    last_column: NDArray[np.uint32]
    last_weight: IntArray

    def unpack(self) -> IntArray:
        """The weights."""
        unshifted = self.exponents == UNSHIFTED
        digits = self.digits.astype(np.int64)
        shifts = np.where(unshifted, 0, self.exponents).astype(np.int64)
        weights = np.where(unshifted, digits, (digits | LEADING_BIT) << shifts)
        weights[np.arange(len(weights)), self.last_column] = self.last_weight
        return weights


def round_weights(weights: IntArray) -> IntArray:
    """The weights rounded to 17 significant bits, except for the largest of each row; row sums stay the same.

    In each row, weights are rounded in ascending order, each after adding the rounding errors of the smaller ones. So
    the error carried over is always small relative to the weight that it is added to. Equal rows stay equal.
    """
    order = np.argsort(weights, axis=1, kind="stable")
    ascending = np.take_along_axis(weights, order, axis=1)
    carry = np.zeros(len(weights), dtype=np.int64)
    for column in range(weights.shape[1] - 1):
        exact = np.where(ascending[:, column] > 0, ascending[:, column] + carry, 0)  # a weight of 0 stays 0
        nearest = _round_to_significant_bits(np.maximum(exact, 0))
        carry += ascending[:, column] - nearest
        ascending[:, column] = nearest
    ascending[:, -1] += carry
    rounded = np.empty_like(weights)
    np.put_along_axis(rounded, order, ascending, axis=1)
    return rounded


def pack_weights(weights: IntArray) -> PackedWeights | None:
    """The weights in three bytes each; None if any but the largest of a row has more than 17 significant bits."""
    rows, last_column = np.arange(len(weights)), weights.argmax(axis=1)
    others = weights.copy()
    others[rows, last_column] = 0
    exponents = _exponents(others)
    if ((others >> exponents) << exponents != others).any():
        return None
    unshifted = others < LEADING_BIT
    digits = np.where(unshifted, others, (others >> exponents) & (LEADING_BIT - 1))
    return PackedWeights(
        np.where(unshifted, UNSHIFTED, exponents).astype(np.uint8),
        digits.astype(np.uint16),
        last_column.astype(np.uint32),
        weights[rows, last_column],
    )


def _round_to_significant_bits(values: IntArray) -> IntArray:
    """The nearest integers with 17 significant bits."""
    exponents = _exponents(values)
    half = np.where(exponents > 0, np.int64(1) << np.maximum(exponents - 1, 0), 0)
    return np.asarray(((values + half) >> exponents) << exponents)


def _exponents(values: IntArray) -> IntArray:
    """The shift to the right that leaves 17 bits; 0 for values that have no more."""
    upper = (values >> 31).astype(np.float64)
    lower = (values & (2**31 - 1)).astype(np.float64)
    bit_lengths = np.where(upper > 0, np.frexp(upper)[1] + 31, np.frexp(lower)[1])  # both halves are exact as floats
    return np.asarray(np.maximum(bit_lengths - SIGNIFICANT_BITS, 0), dtype=np.int64)
