"""The ratios that the Newton matrix sees: a working set of pairs of secrets, each block its own, in batches.

    √γ v(j) − v(i)/√γ ≥ 0    for the pairs (i, j) of the set.

Feasibility is looked at for *all* pairs (:meth:`WorkingSet.followed`), so every iterate keeps every ratio. A pair is
near to binding when ln v(i) − ln v(j) uses up most of its exponent.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.constraint_families import HessianParts
from privacygames.solvers.linalg import Backend, OffDiagonal

ENTER, LEAVE = 0.8, 0.5
"""A ratio joins the working set when it is used up to this share of its exponent, and leaves below the other."""

DETOUR, MOST_SPANNING = 1.25, 5
"""Pairs that others stand for, on a way that is so many times as long, need not always be in the set; and no more than
so many are always there for each secret."""

NEIGHBOURS, THIN = 12, 0.03
"""Where the exponents of the fourth nearest are usually so small, every far ratio binds as soon as anything moves: so
many neighbours stand for them, too."""

THINNEST, MOST_THIN = 1e-5, 20
"""Ratios with exponents up to this are always in the set, where they are no more than so many a secret."""

BROKEN = -1e-13
"""A ratio counts as broken once the logarithm of what it leaves is above this."""


@dataclass(frozen=True)
class RatioBounds:
    """The exponents of all ratios, and which of them matter for given columns.

    Attributes:
        exponents: on the host.
        backend: where columns, and everything else here, are.
    """

    exponents: FloatArray
    backend: Backend

    @property
    def size(self) -> int:
        """How many secrets there are."""
        return len(self.exponents)

    @cached_property
    def root(self) -> FloatArray:
        """√γ."""
        return self.backend.to_device(np.exp(np.where(np.isfinite(self.exponents), self.exponents, 0.0) / 2))

    @cached_property
    def onwards(self) -> IntArray:
        """How far j is from i, for every pair."""
        each = np.arange(self.size)
        return self.backend.indices_to_device((each - each[:, None]).ravel())

    @cached_property
    def limits(self) -> FloatArray:
        """The exponents, where columns are."""
        return self.backend.to_device(self.exponents)

    @cached_property
    def enter(self) -> NDArray[np.float32]:
        """How much of its exponent a ratio uses up when it joins the working set."""
        return self.backend.to_float32(ENTER * self.limits)

    @cached_property
    def leave(self) -> NDArray[np.float32]:
        """And when it leaves."""
        return self.backend.to_float32(LEAVE * self.limits)

    @cached_property
    def thin(self) -> bool:
        """Whether the exponents of the fourth nearest are usually very small."""
        fourth = min(4, self.size) - 1
        return float(np.median(np.partition(self.exponents, fourth, axis=1)[:, fourth])) <= THIN

    @cached_property
    def always(self) -> NDArray[np.bool_]:
        """The pairs, both ways, that are always in the set: they tie every block together."""
        size, chosen = self.size, _spanning(self.exponents)
        if self.thin:
            nearest = np.argsort(self.exponents, axis=1, kind="stable")[:, :NEIGHBOURS]
            chosen[np.arange(size)[:, None], nearest] = True
        thin = self.exponents <= THINNEST  # whatever moves, uses these up: they would come and go
        if thin.sum() <= MOST_THIN * size:
            chosen |= thin
        return self.backend.mask_to_device((chosen | chosen.T) & np.isfinite(self.exponents))


def _spanning(exponents: FloatArray) -> NDArray[np.bool_]:
    """Few pairs that stand for all: a way over one of them, and then nearer to the end, is not much longer.

    For each secret i the nearest j that is left is taken, again and again; it stands for every k with
    e(j,k) < e(i,k) and e(i,j) + e(j,k) ≤ 1.25 e(i,k). So what keeps these ratios with a fifth to spare, keeps
    nearly all.
    """
    size = len(exponents)
    every, chosen = np.arange(size), np.zeros((size, size), dtype=bool)
    left = exponents.copy()
    np.fill_diagonal(left, inf)
    for _ in range(min(MOST_SPANNING, size)):
        nearest = left.argmin(axis=1)
        way = left[every, nearest]
        chosen[every, nearest] |= way < inf
        onwards = exponents[nearest]
        stood_for = (way[:, None] + onwards <= DETOUR * exponents) & (onwards < exponents)
        left[stood_for] = inf
        left[every, nearest] = inf
    return chosen


@dataclass(frozen=True)
class WorkingSet:
    """Pairs of secrets of a batch of blocks, as sorted keys (block·n + i)·n + j: a family of inequalities."""

    bounds: RatioBounds
    blocks: int
    keys: IntArray

    @classmethod
    def first(cls, bounds: RatioBounds, blocks: int) -> Self:
        """The pairs that are always there, in every block."""
        pairs = bounds.backend.flatnonzero(bounds.always)
        return cls(bounds, blocks, bounds.backend.tile_indices(pairs, blocks, bounds.size**2))

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def at_i(self) -> IntArray:
        """Where the entry that is bounded is, among those of all blocks."""
        return self.keys // self.bounds.size

    @cached_property
    def at_j(self) -> IntArray:
        """Where the entry it is bounded by is."""
        return self.at_i + self.bounds.backend.take(self.bounds.onwards, self.pair)

    @property
    def block(self) -> IntArray:
        """The block of each pair."""
        return self.at_i // self.bounds.size

    @property
    def i(self) -> IntArray:
        """The secret whose entry is bounded."""
        return self.at_i % self.bounds.size

    @property
    def j(self) -> IntArray:
        """The secret it is bounded by."""
        return self.keys - self.at_i * self.bounds.size

    @cached_property
    def pair(self) -> IntArray:
        """i·n + j of each pair."""
        return self.keys % self.bounds.size**2

    @cached_property
    def root(self) -> FloatArray:
        """√γ of each pair."""
        return self.bounds.backend.take(self.bounds.root.ravel(), self.pair)

    @property
    def starts(self) -> IntArray:
        """Where each block's entries start, among those of all pairs."""
        first: IntArray = np.arange(self.blocks + 1) * self.bounds.size
        return self.bounds.backend.searchsorted(self.at_i, self.bounds.backend.indices_to_device(first))

    def fetched(self) -> tuple[IntArray, IntArray, IntArray]:
        """Block, i and j of each pair, on the host."""
        fetched = self.bounds.backend.indices_to_numpy
        return fetched(self.block), fetched(self.i), fetched(self.j)

    def shape(self, _: int) -> tuple[int, ...]:
        """One for each pair."""
        return (len(self.keys),)

    def forward(self, u: FloatArray) -> FloatArray:
        """The slack of each pair."""
        v, backend = u[:, : self.bounds.size].ravel(), self.bounds.backend
        above = backend.take(v, self.at_j)
        above *= self.root
        return backend.divide_subtract(above, backend.take(v, self.at_i), self.root)

    def adjoint(self, values: FloatArray) -> FloatArray:
        """Values put back at the secrets of their pairs."""
        size, backend = self.blocks * self.bounds.size, self.bounds.backend
        total = backend.scatter_add(self.at_j, self.root * values, size)
        backend.index_subtract(total, self.at_i, values / self.root)
        return total.reshape(self.blocks, self.bounds.size)

    def add_to(self, parts: HessianParts, weights: FloatArray) -> None:
        """On the diagonals, and one entry beside them for each pair."""
        n, backend = self.bounds.size, self.bounds.backend
        square, value = self.root * self.root, -weights
        both = backend.scatter_add(self.at_i, weights / square, self.blocks * n)
        backend.index_subtract(both, self.at_j, value * square)
        diagonal = parts.diagonal[:, :n]
        diagonal += both.reshape(self.blocks, n)
        where = (
            {"starts": self.keys[:0], "block": self.block}
            if backend.prefer_fused_operations
            else {"starts": self.starts}
        )
        parts.beside = OffDiagonal(row=self.i, column=self.j, value=value, **where)

    def rows(self, keys: IntArray, width: int) -> tuple[IntArray, FloatArray]:
        """Two entries each, for pairs given by their keys."""
        place, j = np.divmod(keys, self.bounds.size)
        block, i = np.divmod(place, self.bounds.size)
        root = np.exp(self.bounds.exponents[i, j] / 2)
        rows = np.zeros((len(keys), width))
        rows[np.arange(len(keys)), j] = root
        rows[np.arange(len(keys)), i] = -1 / root
        return block, rows

    def followed(self, before: FloatArray, after: FloatArray, *, settle: bool) -> tuple[float, "WorkingSet"]:
        """How much of the way from some columns to others all pairs allow, in this set or not, and the set at its end.

        ∞ where all hold at the end, too. No pair leaves the set if it is to ``settle``.
        """
        bounds, backend, taken = self.bounds, self.bounds.backend, self.bounds.backend.take
        logs = backend.log(after)
        coarse = backend.to_float32(logs)
        used = coarse[:, :, None] - coarse[:, None, :]
        wanted, old = used > bounds.enter, self.keys
        # Who is to join would stay in any case.
        wanted.ravel()[old] = True if settle else taken(used.ravel(), old) > taken(bounds.leave.ravel(), self.pair)
        wanted |= bounds.always
        near, flat_logs = replace(self, keys=backend.flatnonzero(wanted)), logs.ravel()
        excess = taken(flat_logs, near.at_i) - taken(flat_logs, near.at_j) - taken(bounds.limits.ravel(), near.pair)
        broken = excess > BROKEN
        if broken.any():
            return replace(self, keys=near.keys[broken])._largest_step(before, after), self
        return inf, near

    def _largest_step(self, before: FloatArray, after: FloatArray) -> float:
        """The largest share of the way from some columns to others at which these pairs still hold."""
        start, end = self.forward(before), self.forward(after)
        return min(1.0, float((start / (start - end).clip(min=1e-300)).min()))

    def take_over(self, old: "WorkingSet", dual: FloatArray, slack: FloatArray, target: float) -> FloatArray:
        """The duals of this set: those an older one had, and central ones, target/slack, for pairs that have joined."""
        had = self._looked_up(old.keys, dual, self.keys)
        return self.bounds.backend.where(had > 0, had, target / slack)

    def without_opposites(self, dual: FloatArray) -> FloatArray:
        """Dual values that prove more: what (i, j) and (j, i) have in common only takes from both.

        With z on both, i gains z and loses γz, and so does j. Where entries vanish all that the method's own dual
        values of such pairs are is this.
        """
        plain = dual / self.root
        opposite = self._looked_up(self.keys, plain, self.at_j * self.bounds.size + self.i)
        return (plain - opposite).clip(min=0.0) * self.root

    def _looked_up(self, keys: IntArray, values: FloatArray, wanted: IntArray) -> FloatArray:
        """The values at the keys that are wanted; 0 where there is none."""
        # Mostly untouched, and much faster than a search.
        table = self.bounds.backend.empty(self.blocks * self.bounds.size**2)
        table[wanted] = 0.0
        table[keys] = values
        return self.bounds.backend.take(table, wanted)

    def among(self, bounds: RatioBounds) -> tuple[IntArray, NDArray[np.bool_]]:
        """The keys of this set's pairs among more secrets (its own come first), and which of them are still there."""
        here = bounds.limits[self.i, self.j] < inf
        block, i, j = self.block[here], self.i[here], self.j[here]
        return (block * bounds.size + i) * bounds.size + j, here
