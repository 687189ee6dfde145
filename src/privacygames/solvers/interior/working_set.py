"""The working set: the ratio bounds that the Newton matrix contains, each block's own.

    √γ v(j) − v(i)/√γ ≥ 0    for the pairs (i, j) of the set, with γ = exp(exponent of i and j).

A step is cut so that *all* ratio bounds hold, in the set or not (:meth:`WorkingSet.max_feasible_step`), so every
iterate satisfies every ratio. A pair joins the set when ln v(i) − ln v(j) uses up most of its exponent, and leaves
once it no longer does. A sparse spanner of the exponents always stays in the set.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Self

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.interior.constraint_families import HessianParts
from privacygames.solvers.interior.settings import InteriorSettings
from privacygames.solvers.linalg import Backend, OffDiagonal

VIOLATED = -1e-13
"""A ratio bound counts as violated once ln v(i) − ln v(j) − exponent is above this: rounding errors of logarithms."""


@dataclass(frozen=True)
class RatioBounds:
    """The exponents of all ratio bounds, and which of them belong into the working set.

    Attributes:
        exponents: on the host, ∞ where there is no bound.
        backend: where columns, and everything else here, are.
        settings: when a ratio joins and leaves, and which ones always stay.
    """

    exponents: FloatArray
    backend: Backend
    settings: InteriorSettings = field(default_factory=InteriorSettings)

    @property
    def size(self) -> int:
        """Number of secrets."""
        return len(self.exponents)

    @cached_property
    def root(self) -> FloatArray:
        """√γ of every pair."""
        return self.backend.to_device(np.exp(np.where(np.isfinite(self.exponents), self.exponents, 0.0) / 2))

    @cached_property
    def offsets(self) -> IntArray:
        """The difference j − i for every pair."""
        secrets = np.arange(self.size)
        return self.backend.indices_to_device((secrets - secrets[:, None]).ravel())

    @cached_property
    def device_exponents(self) -> FloatArray:
        """The exponents, where columns are."""
        return self.backend.to_device(self.exponents)

    @cached_property
    def join_threshold(self) -> NDArray[np.float32]:
        """The value of ln v(i) − ln v(j) at which a pair joins the working set."""
        return self.backend.to_float32(self.settings.join_at * self.device_exponents)

    @cached_property
    def leave_threshold(self) -> NDArray[np.float32]:
        """The value of ln v(i) − ln v(j) at which a pair leaves the working set."""
        return self.backend.to_float32(self.settings.leave_at * self.device_exponents)

    @cached_property
    def thin_cone(self) -> bool:
        """Whether the exponents of the fourth nearest secrets are usually very small."""
        fourth = min(4, self.size) - 1
        ascending = np.sort(np.partition(self.exponents, fourth, axis=1)[:, fourth])  # np.median takes a long import
        middle = ascending[(self.size - 1) // 2] + ascending[self.size // 2]
        return bool(middle / 2 <= self.settings.thin_exponent)

    @cached_property
    def permanent(self) -> NDArray[np.bool_]:
        """The pairs, both ways, that are always in the set: they tie every block together."""
        size, settings = self.size, self.settings
        selected = _spanner(self.exponents, settings.spanner_stretch, settings.spanner_degree)
        if self.thin_cone:
            nearest = np.argsort(self.exponents, axis=1, kind="stable")[:, : settings.thin_neighbours]
            selected[np.arange(size)[:, None], nearest] = True
        tiny = self.exponents <= settings.always_exponent
        if tiny.sum() <= settings.always_degree * size:
            selected |= tiny
        return self.backend.mask_to_device((selected | selected.T) & np.isfinite(self.exponents))


def _spanner(exponents: FloatArray, stretch: float, degree: int) -> NDArray[np.bool_]:
    """A sparse spanner: pairs over which a path to any secret is not much longer than the exponent to it.

    For each secret i the nearest j that is left is selected, again and again; it covers every k with
    e(j,k) < e(i,k) and e(i,j) + e(j,k) ≤ stretch · e(i,k).
    """
    size = len(exponents)
    rows, selected = np.arange(size), np.zeros((size, size), dtype=bool)
    remaining = exponents.copy()
    np.fill_diagonal(remaining, inf)
    for _ in range(min(degree, size)):
        nearest = remaining.argmin(axis=1)
        distance = remaining[rows, nearest]
        selected[rows, nearest] |= distance < inf
        onwards = exponents[nearest]
        covered = (distance[:, None] + onwards <= stretch * exponents) & (onwards < exponents)
        remaining[covered] = inf
        remaining[rows, nearest] = inf
    return selected


@dataclass(frozen=True)
class WorkingSet:
    """Pairs of secrets of a batch of blocks, as sorted keys (block·n + i)·n + j: a family of inequalities."""

    bounds: RatioBounds
    blocks: int
    keys: IntArray

    @classmethod
    def initial(cls, bounds: RatioBounds, blocks: int) -> Self:
        """The pairs that are always in the set, in every block."""
        pairs = bounds.backend.flatnonzero(bounds.permanent)
        return cls(bounds, blocks, bounds.backend.tile_indices(pairs, blocks, bounds.size**2))

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def entry_i(self) -> IntArray:
        """Index of v(i) among the entries of all blocks."""
        return self.keys // self.bounds.size

    @cached_property
    def entry_j(self) -> IntArray:
        """Index of v(j) among the entries of all blocks."""
        return self.entry_i + self.bounds.backend.take(self.bounds.offsets, self.pair)

    @property
    def block(self) -> IntArray:
        """The block of each pair."""
        return self.entry_i // self.bounds.size

    @property
    def i(self) -> IntArray:
        """The secret whose entry is bounded."""
        return self.entry_i % self.bounds.size

    @property
    def j(self) -> IntArray:
        """The secret whose entry bounds it."""
        return self.keys - self.entry_i * self.bounds.size

    @cached_property
    def pair(self) -> IntArray:
        """i·n + j of each pair."""
        return self.keys % self.bounds.size**2

    @cached_property
    def root(self) -> FloatArray:
        """√γ of each pair."""
        return self.bounds.backend.take(self.bounds.root.ravel(), self.pair)

    @property
    def block_starts(self) -> IntArray:
        """Index of the first pair of each block, then the number of pairs."""
        first: IntArray = np.arange(self.blocks + 1) * self.bounds.size
        return self.bounds.backend.searchsorted(self.entry_i, self.bounds.backend.indices_to_device(first))

    def to_numpy(self) -> tuple[IntArray, IntArray, IntArray]:
        """Block, i and j of each pair, on the host."""
        to_numpy = self.bounds.backend.indices_to_numpy
        return to_numpy(self.block), to_numpy(self.i), to_numpy(self.j)

    def shape(self, _: int) -> tuple[int, ...]:
        """One per pair."""
        return (len(self.keys),)

    def forward(self, u: FloatArray) -> FloatArray:
        """The slack of each pair."""
        v, backend = u[:, : self.bounds.size].ravel(), self.bounds.backend
        upper = backend.take(v, self.entry_j)
        upper *= self.root
        return backend.divide_subtract(upper, backend.take(v, self.entry_i), self.root)

    def adjoint(self, values: FloatArray) -> FloatArray:
        """The transpose: values scattered to the secrets of their pairs."""
        size, backend = self.blocks * self.bounds.size, self.bounds.backend
        total = backend.scatter_add(self.entry_j, self.root * values, size)
        backend.index_subtract(total, self.entry_i, values / self.root)
        return total.reshape(self.blocks, self.bounds.size)

    def add_hessian(self, parts: HessianParts, weights: FloatArray) -> None:
        """On the diagonals, and one off-diagonal entry for each pair."""
        n, backend = self.bounds.size, self.bounds.backend
        square, value = self.root * self.root, -weights
        total = backend.scatter_add(self.entry_i, weights / square, self.blocks * n)
        backend.index_subtract(total, self.entry_j, value * square)
        diagonal = parts.diagonal[:, :n]
        diagonal += total.reshape(self.blocks, n)
        location = (
            {"starts": self.keys[:0], "block": self.block}
            if backend.prefer_fused_operations
            else {"starts": self.block_starts}
        )
        parts.off_diagonal = OffDiagonal(row=self.i, column=self.j, value=value, **location)

    def rows(self, keys: IntArray, width: int) -> tuple[IntArray, FloatArray]:
        """Two entries each, for pairs given by their keys."""
        entry, j = np.divmod(keys, self.bounds.size)
        block, i = np.divmod(entry, self.bounds.size)
        root = np.exp(self.bounds.exponents[i, j] / 2)
        rows = np.zeros((len(keys), width))
        rows[np.arange(len(keys)), j] = root
        rows[np.arange(len(keys)), i] = -1 / root
        return block, rows

    def max_feasible_step(self, before: FloatArray, after: FloatArray, *, keep_all: bool) -> tuple[float, "WorkingSet"]:
        """The largest feasible fraction of a step, ∞ for the whole step, and the working set at its end.

        All ratio bounds count, in the set or not.

        Args:
            before: columns before the step.
            after: columns after it, positive.
            keep_all: whether no pair leaves the set.
        """
        bounds, backend, take = self.bounds, self.bounds.backend, self.bounds.backend.take
        logs = backend.log(after)
        coarse = backend.to_float32(logs)
        used = coarse[:, :, None] - coarse[:, None, :]
        member, old = used > bounds.join_threshold, self.keys
        # Those that are to join stay in any case.
        member.ravel()[old] = (
            True if keep_all else take(used.ravel(), old) > take(bounds.leave_threshold.ravel(), self.pair)
        )
        member |= bounds.permanent
        updated, flat_logs = replace(self, keys=backend.flatnonzero(member)), logs.ravel()
        difference = take(flat_logs, updated.entry_i) - take(flat_logs, updated.entry_j)
        violated = difference - take(bounds.device_exponents.ravel(), updated.pair) > VIOLATED
        if violated.any():
            return replace(self, keys=updated.keys[violated])._max_step(before, after), self
        return inf, updated

    def _max_step(self, before: FloatArray, after: FloatArray) -> float:
        """The largest fraction of the way from some columns to others at which these pairs still hold."""
        start, end = self.forward(before), self.forward(after)
        return min(1.0, float((start / (start - end).clip(min=1e-300)).min()))

    def inherit_duals(self, old: "WorkingSet", dual: FloatArray, slack: FloatArray, target: float) -> FloatArray:
        """Dual values for this set: those of an older set, and central ones, target/slack, for pairs that joined."""
        inherited = self._lookup(old.keys, dual, self.keys)
        return self.bounds.backend.where(inherited > 0, inherited, target / slack)

    def cancel_opposites(self, dual: FloatArray) -> FloatArray:
        """Dual values that prove a better bound: what (i, j) and (j, i) have in common lowers both residuals.

        A dual value z on both adds z − γz ≤ 0 to the residuals of i and of j. Where entries vanish, the method's own
        dual values of such pairs consist of nothing else.
        """
        unscaled = dual / self.root
        opposite = self._lookup(self.keys, unscaled, self.entry_j * self.bounds.size + self.i)
        return (unscaled - opposite).clip(min=0.0) * self.root

    def _lookup(self, keys: IntArray, values: FloatArray, wanted: IntArray) -> FloatArray:
        """The values at the wanted keys; 0 where there is none."""
        # Mostly untouched memory, and much faster than a search.
        table = self.bounds.backend.empty(self.blocks * self.bounds.size**2)
        table[wanted] = 0.0
        table[keys] = values
        return self.bounds.backend.take(table, wanted)

    def keys_among(self, bounds: RatioBounds) -> tuple[IntArray, NDArray[np.bool_]]:
        """Keys of this set's pairs among more secrets (its own come first), and the mask of those still bounded."""
        bounded = bounds.device_exponents[self.i, self.j] < inf
        block, i, j = self.block[bounded], self.i[bounded], self.j[bounded]
        return (block * bounds.size + i) * bounds.size + j, bounded
