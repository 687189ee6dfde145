"""Exact sampling: each output's probability is exactly its weight / 2^bits; no floating-point number is involved."""

import os
from copy import copy
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import IntArray
from privacygames.errors import UnknownLabel

GUIDE_BITS = 10
"""Leading bits of a draw that the guide table is indexed by: 1024 entries for each secret, a few KB."""

LEADING_BITS = 16
"""Bits of a draw that are read from the operating system for every row; the others only where these decide nothing."""

BLOCK = 1 << 13
"""Draws computed at a time: their arrays, 64 KB each, fit a processor's second cache; larger ones are returned to the
operating system after each step, and getting their pages again takes longer than the draw."""

MAX_DRAWS_WITHOUT_TABLES = 64
"""Up to so many draws, searching the rows directly is faster than building tables for all secrets."""


class Sampler:
    """Draws outputs from integer weights, by inversion of uniform integers from the operating system.

    A draw r is uniform over [0, 2^bits): it consists of so many random bits, and nothing is rejected. The output is the
    first whose cumulative weight exceeds r, which is a comparison of integers. Bits that cannot change the output any
    more are not read.

    >>> from privacygames.mechanism import Sampler
    >>> Sampler(np.array([[2**62, 0], [0, 2**62]]), bits=62).draw(np.array([0, 1, 1]))
    array([0, 1, 1])

    Args:
        weights: (secrets, observables) integers whose rows sum to 2^bits.
        bits: the exponent of that power.
        generator: a seeded NumPy generator for reproducible experiments. Leave it out for anything private.
    """

    def __init__(self, weights: IntArray, bits: int, generator: "np.random.Generator | None" = None) -> None:
        self._weights, self._bits, self._generator = weights, bits, generator
        self._rows = len(weights)

    def using(self, generator: "np.random.Generator | None") -> "Sampler":
        """The same sampler with another source of randomness; the tables are shared."""
        _ = self._cumulative, self._guide
        sampler = copy(self)
        sampler._generator = generator
        return sampler

    @property
    def randomness(self) -> str:
        """Where the random bits come from, for people."""
        if self._generator is None:
            return "the operating system"
        return "a generator passed by the caller: reproducible, so not private"

    def draw(self, secrets: IntArray) -> IntArray:
        """The index of an output for the index of each secret."""
        given = self._require_integers(secrets)
        drawn = np.empty(len(given), dtype=np.int64)
        for start in range(0, len(given), BLOCK):
            block = self._require_indices(given[start : start + BLOCK])
            if self._generator is not None:
                uniform = self._generator.integers(0, 2**self._bits, size=len(block), dtype=np.int64)
                drawn[start : start + BLOCK] = self._select(block, uniform)
            elif self._without_tables(len(given)):
                drawn[start : start + BLOCK] = self._select(block, _system_bits(self._bits, len(block)))
            else:
                drawn[start : start + BLOCK] = self._select_by_leading_bits(block)
        return drawn

    def draw_with(self, secrets: IntArray, words: NDArray[np.uint64]) -> IntArray:
        """The same, with 64 random bits for each secret from elsewhere, such as a keyed pseudo-random function."""
        given = self._require_integers(secrets)
        drawn = np.empty(len(given), dtype=np.int64)
        for start in range(0, len(given), BLOCK):
            block = self._require_indices(given[start : start + BLOCK])
            uniform = words[start : start + BLOCK] >> np.uint64(64 - self._bits)
            drawn[start : start + BLOCK] = self._select(block, uniform.view(np.int64))
        return drawn

    def _require_integers(self, secrets: IntArray) -> IntArray:
        indices = np.asarray(secrets)
        if indices.ndim != 1 or indices.dtype.kind not in "iu":
            raise self._no_indices()
        return indices

    def _require_indices(self, block: IntArray) -> IntArray:
        if len(block) and not 0 <= int(block.min()) <= int(block.max()) < self._rows:
            raise self._no_indices()
        return block.astype(np.int64, copy=False)  # narrower integers would overflow below

    def _no_indices(self) -> UnknownLabel:
        return UnknownLabel(f"positions of secrets must be whole numbers from 0 to {self._rows - 1}")

    def _without_tables(self, draws: int) -> bool:
        return draws <= MAX_DRAWS_WITHOUT_TABLES and "_guide" not in self.__dict__

    def _select(self, secrets: IntArray, uniform: IntArray) -> IntArray:
        """The output for each secret and uniform integer below 2^bits."""
        if self._without_tables(len(secrets)):
            rows = (np.cumsum(self._weights[secret]) for secret in secrets)
            outputs = (np.searchsorted(row, drawn, side="right") for row, drawn in zip(rows, uniform, strict=True))
            return np.fromiter(outputs, dtype=np.int64, count=len(secrets))
        position, first = self._search(secrets, uniform)
        return position - first

    def _select_by_leading_bits(self, secrets: IntArray) -> IntArray:
        """The same with bits from the operating system: few of a draw decide nearly every output."""
        leading = min(LEADING_BITS, self._bits)
        rest = self._bits - leading
        uniform = _system_bits(leading, len(secrets)) << rest
        position, first = self._search(secrets, uniform)
        # All numbers with these leading bits have the same output unless the cumulative weight is among them.
        undecided = np.flatnonzero(self._cumulative.take(position) - uniform < 1 << rest)
        if rest and len(undecided):
            uniform[undecided] |= _system_bits(rest, len(undecided))
            self._step(position, uniform, undecided)
        return position - first

    def _search(self, secrets: IntArray, uniform: IntArray) -> tuple[IntArray, IntArray]:
        """Positions in the cumulative weights of all secrets: of the output of each draw, and of its first output."""
        # The guide gives where the search starts; each step to the right is one integer comparison, and few are needed.
        first = secrets * self._weights.shape[1]
        entry = (secrets << self._guide_bits) + (uniform >> (self._bits - self._guide_bits))
        position = self._guide.take(entry) + first
        self._step(position, uniform, np.flatnonzero(self._cumulative.take(position) <= uniform))
        return position, first

    def _step(self, position: IntArray, uniform: IntArray, pending: IntArray) -> None:
        """Move the pending positions to the first cumulative weight that exceeds the draw, in place."""
        pending = pending[self._cumulative[position[pending]] <= uniform[pending]]
        while len(pending):
            position[pending] += 1
            pending = pending[self._cumulative[position[pending]] <= uniform[pending]]

    @cached_property
    def _guide_bits(self) -> int:
        return min(GUIDE_BITS, self._bits)

    @cached_property
    def _cumulative(self) -> IntArray:
        return np.cumsum(self._weights, axis=1).ravel()

    @cached_property
    def _guide(self) -> NDArray[np.unsignedinteger]:
        """For each secret and leading bits, the first output whose cumulative weight can exceed the draw."""
        starts = np.arange(1 << self._guide_bits, dtype=np.int64) << (self._bits - self._guide_bits)
        rows, kind = self._cumulative.reshape(self._weights.shape), np.min_scalar_type(self._weights.shape[1])
        return np.concatenate([np.searchsorted(row, starts, side="right").astype(kind) for row in rows])


def _system_bits(bits: int, count: int) -> IntArray:
    """Uniform integers below 2^bits from the operating system."""
    if bits <= LEADING_BITS:
        short_words = np.frombuffer(os.urandom(2 * count), dtype=np.uint16)
        return (short_words >> np.uint16(16 - bits)).astype(np.int64)
    words = np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
    return (words >> np.uint64(64 - bits)).astype(np.int64)
