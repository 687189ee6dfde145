"""Exact sampling: the probability of each observable is its weight / 2^bits, with no float on the way."""

import os
from copy import copy
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import IntArray
from privacygames.errors import UnknownLabel

GUIDE_BITS = 10
CHUNK = 1 << 18
FEW = 64
"""So few draws need no tables."""


class Sampler:
    """Draws observables from integer weights with uniform integers from the operating system.

    A draw r is uniform over [0, 2^bits): the top bits of 64 random ones, so there is nothing to reject and no
    modulo. The observable is the first whose cumulative weight exceeds r: an exact integer comparison.

    Args:
        weights: (secrets, observables) integers whose rows sum to 2^bits.
        bits: that power.
        generator: a seeded NumPy generator for reproducible experiments. Leave it out for anything private.
    """

    def __init__(self, weights: IntArray, bits: int, generator: np.random.Generator | None = None) -> None:
        self._weights, self._bits, self._generator = weights, bits, generator
        self._rows = len(weights)

    def using(self, generator: np.random.Generator | None) -> "Sampler":
        """The same with another source of randomness; tables are shared, not built again."""
        _ = self._cumulative, self._guide
        other = copy(self)
        other._generator = generator
        return other

    @property
    def randomness(self) -> str:
        """Where the random bits come from, in words."""
        if self._generator is None:
            return "the operating system"
        return "a generator passed by the caller: reproducible, so not private"

    def draw(self, secrets: IntArray) -> IntArray:
        """One observable's position for each secret's position."""
        secrets = self._checked(secrets)
        drawn = np.empty(len(secrets), dtype=np.int64)
        for start in range(0, len(secrets), CHUNK):
            part = slice(start, start + CHUNK)
            drawn[part] = self._select(secrets[part], self._uniform(len(secrets[part])))
        return drawn

    def draw_with(self, secrets: IntArray, words: NDArray[np.uint64]) -> IntArray:
        """The same with 64 random bits for each secret from elsewhere: a keyed pseudo-random function, say."""
        return self._select(self._checked(secrets), (words >> np.uint64(64 - self._bits)).astype(np.int64))

    def _checked(self, secrets: IntArray) -> IntArray:
        given = np.asarray(secrets)
        whole = given.ndim == 1 and given.dtype.kind in "iu"
        if not whole or (len(given) and not 0 <= int(given.min()) <= int(given.max()) < self._rows):
            raise UnknownLabel(f"positions of secrets must be whole numbers from 0 to {self._rows - 1}")
        return given.astype(np.int64)  # narrower integers would wrap in what follows

    def _select(self, secrets: IntArray, uniform: IntArray) -> IntArray:
        if len(secrets) <= FEW and "_guide" not in self.__dict__:  # quicker than to build the tables
            rows = (np.cumsum(self._weights[secret]) for secret in secrets)
            found = (np.searchsorted(row, drawn, side="right") for row, drawn in zip(rows, uniform, strict=True))
            return np.fromiter(found, dtype=np.int64, count=len(secrets))
        observables = self._weights.shape[1]
        # The guide says where to start looking; each step right is one exact comparison, and few need one.
        bucket = uniform >> (self._bits - self._guide_bits)
        position = self._guide[(secrets << self._guide_bits) + bucket] + secrets * observables
        pending = np.flatnonzero(self._cumulative[position] <= uniform)
        while len(pending):
            position[pending] += 1
            pending = pending[self._cumulative[position[pending]] <= uniform[pending]]
        return np.asarray(position - secrets * observables)

    def _uniform(self, count: int) -> IntArray:
        if self._generator is not None:
            return self._generator.integers(0, 2**self._bits, size=count, dtype=np.int64)
        words = np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
        return (words >> np.uint64(64 - self._bits)).astype(np.int64)

    @cached_property
    def _guide_bits(self) -> int:
        return min(GUIDE_BITS, self._bits)

    @cached_property
    def _cumulative(self) -> IntArray:
        return np.cumsum(self._weights, axis=1).ravel()

    @cached_property
    def _guide(self) -> IntArray:
        """For each secret and leading bits, the first observable whose cumulative weight can exceed the draw."""
        starts = np.arange(1 << self._guide_bits, dtype=np.int64) << (self._bits - self._guide_bits)
        rows = self._cumulative.reshape(self._weights.shape)
        return np.concatenate([np.searchsorted(row, starts, side="right") for row in rows])
