"""The ratios that the Newton matrix sees: a working set of pairs of secrets, each block its own.

    √γ v(j) − v(i)/√γ ≥ 0    for the pairs (i, j) of the set.

Feasibility is looked at for *all* pairs (:meth:`RatioBounds.violated`), so every iterate keeps every ratio. A pair is
near to binding when ln v(i) − ln v(j) uses up most of its exponent.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.families import HessianParts
from privacygames.solvers.linalg import BlockAlgebra, OffDiagonal

ENTER, LEAVE = 0.8, 0.5
"""A ratio joins the working set when it is used up to this share of its exponent, and leaves below the other."""

NEIGHBOURS = 4
MORE_NEIGHBOURS, THIN = 12, 0.03
"""Where the exponents of neighbours are usually so small, every far ratio binds as soon as anything moves: more
neighbours stand for them."""

THINNEST, MOST_THIN = 1e-5, 20
"""Ratios with exponents up to this are always in the set, where they are no more than so many a secret."""

SCAN_ENTRIES = 2_000_000
BROKEN = -1e-13
"""A ratio counts as broken once the logarithm of what it leaves is above this."""


@dataclass(frozen=True)
class RatioBounds:
    """The exponents of all ratios, and which of them matter for given columns."""

    exponents: FloatArray

    @property
    def size(self) -> int:
        """How many secrets there are."""
        return len(self.exponents)

    @cached_property
    def root(self) -> FloatArray:
        """√γ."""
        return np.exp(np.where(np.isfinite(self.exponents), self.exponents, 0.0) / 2)

    @cached_property
    def _enter(self) -> NDArray[np.float32]:
        return (ENTER * self.exponents).astype(np.float32)

    @cached_property
    def _leave(self) -> NDArray[np.float32]:
        return (LEAVE * self.exponents).astype(np.float32)

    @cached_property
    def nearest(self) -> NDArray[np.bool_]:
        """Each secret's nearest few, both ways: they tie every block together, and are always in the set."""
        size = self.size
        chosen = np.zeros((size, size), dtype=bool)
        order = np.argsort(self.exponents, axis=1, kind="stable")
        usual = float(np.median(self.exponents[np.arange(size), order[:, min(NEIGHBOURS, size) - 1]]))
        order = order[:, : MORE_NEIGHBOURS if usual <= THIN else NEIGHBOURS]
        chosen[np.arange(size)[:, None], order] = True
        thin = self.exponents <= THINNEST  # whatever moves, uses these up: they would come and go
        if thin.sum() <= MOST_THIN * size:
            chosen |= thin
        return (chosen | chosen.T) & np.isfinite(self.exponents)

    def first_set(self, blocks: int) -> "WorkingSet":
        """The nearest pairs, in every block."""
        shape = (blocks, self.size, self.size)
        return WorkingSet(self, blocks, np.flatnonzero(np.broadcast_to(self.nearest, shape)))

    def violated(
        self, column: FloatArray, current: "WorkingSet", algebra: BlockAlgebra, *, settle: bool
    ) -> tuple[IntArray, "WorkingSet"]:
        """All pairs that do not hold, and the next working set (which no pair leaves if it is to ``settle``)."""
        logs = np.log(column)
        coarse = logs.astype(np.float32)
        blocks = len(column)
        most = max(1, min(SCAN_ENTRIES // (self.size * self.size), -(-blocks // 2)))
        found = algebra.map(
            lambda batch: self._scan(coarse, current, batch, settle=settle), algebra.batches(blocks, most=most)
        )
        keys = np.concatenate([candidates for candidates, _ in found])
        block, i, j = self.pairs(keys)
        excess = logs[block, i] - logs[block, j] - self.exponents[i, j]
        return keys[excess > BROKEN], WorkingSet(self, blocks, np.concatenate([near for _, near in found]))

    def _scan(
        self, logs: NDArray[np.float32], current: "WorkingSet", batch: slice, *, settle: bool
    ) -> tuple[IntArray, IntArray]:
        """Pairs of some blocks that are near to binding, and those to work with next."""
        square = self.size * self.size
        start = batch.start * square
        used = logs[batch, :, None] - logs[batch, None, :]
        wanted = used > self._enter
        candidates = np.flatnonzero(wanted)
        old = current.keys[current.starts[batch.start] : current.starts[batch.stop]] - start
        staying = old if settle else old[used.ravel()[old] > self._leave.ravel()[old % square]]
        wanted |= self.nearest
        wanted.ravel()[staying] = True
        return candidates + start, np.flatnonzero(wanted) + start

    def pairs(self, keys: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """The block and the two secrets that keys stand for."""
        block, pair = np.divmod(keys, self.size * self.size)
        return block, *np.divmod(pair, self.size)

    def largest_step(self, keys: IntArray, before: FloatArray, after: FloatArray) -> float:
        """The largest share of the way from one mechanism to another at which these pairs still hold."""
        block, i, j = self.pairs(keys)
        root = self.root[i, j]
        start = root * before[block, j] - before[block, i] / root
        end = root * after[block, j] - after[block, i] / root
        return float((start / np.maximum(start - end, 1e-300)).min(initial=1.0))


@dataclass(frozen=True)
class WorkingSet:
    """Pairs of secrets, block by block, as sorted keys (block·n + i)·n + j: a family of inequalities."""

    bounds: RatioBounds
    blocks: int
    keys: IntArray

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def _pairs(self) -> tuple[IntArray, IntArray, IntArray]:
        return self.bounds.pairs(self.keys)

    @property
    def block(self) -> IntArray:
        """The block of each pair."""
        return self._pairs[0]

    @property
    def i(self) -> IntArray:
        """The secret whose entry is bounded."""
        return self._pairs[1]

    @property
    def j(self) -> IntArray:
        """The secret it is bounded by."""
        return self._pairs[2]

    @cached_property
    def root(self) -> FloatArray:
        """√γ of each pair."""
        return self.bounds.root[self.i, self.j]

    @cached_property
    def _at_i(self) -> IntArray:
        return self.block * self.bounds.size + self.i

    @cached_property
    def _at_j(self) -> IntArray:
        return self.block * self.bounds.size + self.j

    @cached_property
    def starts(self) -> IntArray:
        """Where each block's pairs start."""
        return np.searchsorted(self.block, np.arange(self.blocks + 1))

    def forward(self, u: FloatArray) -> FloatArray:
        """The slack of each pair."""
        v = u[:, : self.bounds.size].ravel()
        return np.asarray(self.root * v[self._at_j] - v[self._at_i] / self.root)

    def adjoint(self, values: FloatArray) -> FloatArray:
        """Values put back at the secrets of their pairs."""
        size = self.blocks * self.bounds.size
        total = np.bincount(self._at_j, self.root * values, size)
        total -= np.bincount(self._at_i, values / self.root, size)
        return np.asarray(total.reshape(self.blocks, self.bounds.size), dtype=np.float64)

    def add_to(self, parts: HessianParts, weights: FloatArray) -> None:
        """On the diagonals, and one entry beside them for each pair."""
        n = self.bounds.size
        square = self.root * self.root
        both = np.bincount(self._at_i, weights / square, self.blocks * n)
        both += np.bincount(self._at_j, weights * square, self.blocks * n)
        parts.diagonal[:, :n] += both.reshape(self.blocks, n)
        parts.beside = OffDiagonal(self.starts, self.i, self.j, -weights)

    def take_over(self, old: "WorkingSet", dual: FloatArray, central: FloatArray) -> FloatArray:
        """The duals of this set: those an older one had, and ``central`` ones for pairs that have joined."""
        duals = central.copy()
        at = np.searchsorted(old.keys, self.keys)
        at[at == len(old.keys)] = 0
        stayed = old.keys[at] == self.keys if len(old.keys) else np.zeros(len(self.keys), dtype=bool)
        duals[stayed] = dual[at[stayed]]
        return duals

    @cached_property
    def _opposite(self) -> tuple[IntArray, IntArray]:
        """Pairs (i, j) whose opposite (j, i) is in the set, too, and where that is."""
        keys = (self.block * self.bounds.size + self.j) * self.bounds.size + self.i
        at = np.searchsorted(self.keys, keys)
        at[at == len(self.keys)] = 0
        there = np.flatnonzero(self.keys[at] == keys)
        return there, at[there]

    def without_opposites(self, dual: FloatArray) -> FloatArray:
        """Dual values that prove more: what (i, j) and (j, i) have in common only takes from both.

        With z on both, i gains z and loses γz, and so does j. Where entries vanish all that the method's own dual
        values of such pairs are is this.
        """
        here, there = self._opposite
        plain = dual / self.root
        cleaned = plain.copy()
        cleaned[here] -= np.minimum(plain[here], plain[there])
        return np.asarray(cleaned * self.root)

    def among(self, bounds: RatioBounds) -> tuple[IntArray, NDArray[np.bool_]]:
        """The keys of this set's pairs among more secrets (its own come first), and which of them are still there."""
        here = np.isfinite(bounds.exponents[self.i, self.j])
        block, i, j = (each[here] for each in self._pairs)
        return (block * bounds.size + i) * bounds.size + j, here
