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

CHUNK = 1 << 18
"""Draws computed at a time, so that intermediate arrays stay in the processor's caches."""

MAX_DRAWS_WITHOUT_TABLES = 64
"""Up to so many draws, searching the rows directly is faster than building tables for all secrets."""


class Sampler:
    """Draws outputs from integer weights, by inversion of uniform integers from the operating system.

    A draw r is uniform over [0, 2^bits): it consists of the leading bits of a random 64-bit word, so nothing is
    rejected. The output is the first whose cumulative weight exceeds r, which is a comparison of integers.

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
        secrets = self._require_indices(secrets)
        drawn = np.empty(len(secrets), dtype=np.int64)
        for start in range(0, len(secrets), CHUNK):
            part = slice(start, start + CHUNK)
            drawn[part] = self._select(secrets[part], self._uniform(len(secrets[part])))
        return drawn

    def draw_with(self, secrets: IntArray, words: NDArray[np.uint64]) -> IntArray:
        """The same, with 64 random bits for each secret from elsewhere, such as a keyed pseudo-random function."""
        return self._select(self._require_indices(secrets), (words >> np.uint64(64 - self._bits)).astype(np.int64))

    def _require_indices(self, secrets: IntArray) -> IntArray:
        indices = np.asarray(secrets)
        integers = indices.ndim == 1 and indices.dtype.kind in "iu"
        if not integers or (len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < self._rows):
            raise UnknownLabel(f"positions of secrets must be whole numbers from 0 to {self._rows - 1}")
        return indices.astype(np.int64)  # narrower integers would overflow below

    def _select(self, secrets: IntArray, uniform: IntArray) -> IntArray:
        if len(secrets) <= MAX_DRAWS_WITHOUT_TABLES and "_guide" not in self.__dict__:
            rows = (np.cumsum(self._weights[secret]) for secret in secrets)
            outputs = (np.searchsorted(row, drawn, side="right") for row, drawn in zip(rows, uniform, strict=True))
            return np.fromiter(outputs, dtype=np.int64, count=len(secrets))
        observables = self._weights.shape[1]
        # The guide gives where the search starts; each step to the right is one integer comparison, and few are needed.
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
        """For each secret and leading bits, the first output whose cumulative weight can exceed the draw."""
        starts = np.arange(1 << self._guide_bits, dtype=np.int64) << (self._bits - self._guide_bits)
        rows = self._cumulative.reshape(self._weights.shape)
        return np.concatenate([np.searchsorted(row, starts, side="right") for row in rows])
