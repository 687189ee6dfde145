"""The families of inequalities inside the blocks, each with its slacks and prices.

A block is one observable: its column v of the mechanism and, under distortion privacy, its x. All blocks' unknowns
are one array u of shape (m, k): k = n, or n + 1 with x last. A family knows its slacks as a function of u
(``forward``), the transpose of that (``adjoint``), and what it adds to the blocks' Hessians.
"""

from concurrent.futures import Executor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray, IntArray

ENTER, LEAVE = 0.8, 0.5
"""A ratio joins the working set when it is used up to this share of its exponent, and leaves below the other."""

NEIGHBOURS = 4
SCAN_ENTRIES = 2_000_000


class Family(Protocol):
    """Inequalities slack(u) ≥ 0 with prices ≥ 0."""

    slack: FloatArray
    price: FloatArray

    def forward(self, u: FloatArray) -> FloatArray:
        """The change of the slacks along u."""

    def adjoint(self, values: FloatArray) -> FloatArray:
        """The transpose of ``forward``, of shape (m, k), or (m, n) where x plays no part."""


class Positive:
    """v ≥ 0, for the secrets whose positivity no ratio implies."""

    def __init__(self, column: FloatArray, secrets: IntArray, width: int) -> None:
        self.secrets, self.width = secrets, width
        self.slack = column[:, secrets].copy()
        self.price = np.zeros_like(self.slack)

    def forward(self, u: FloatArray) -> FloatArray:
        """V at the secrets meant."""
        return u[:, self.secrets]

    def adjoint(self, values: FloatArray) -> FloatArray:
        """Values put back at their secrets."""
        result = np.zeros((len(values), self.width))
        result[:, self.secrets] = values
        return result


class Guesses:
    """x is at most the error of every guess: Σ_s π(s) d(ŝ,s) v(s) − x ≥ 0."""

    def __init__(self, error: FloatArray, u: FloatArray) -> None:
        self.error = error
        self.support = np.flatnonzero(error.any(axis=0))
        self.compact = np.ascontiguousarray(error[:, self.support])
        self.slack = self.forward(u)
        self.price = np.zeros_like(self.slack)

    def forward(self, u: FloatArray) -> FloatArray:
        """The error of each guess less x."""
        return u[:, self.support] @ self.compact.T - u[:, -1:]

    def adjoint(self, values: FloatArray) -> FloatArray:
        """Errors weighted by values, and minus their sum for x."""
        result = np.zeros((len(values), self.error.shape[1] + 1))
        result[:, self.support] = values @ self.compact
        result[:, -1] = -values.sum(axis=1)
        return result


class Ratios:
    """√γ v(j) − v(i)/√γ ≥ 0 for a working set of pairs (i, j), each block its own.

    The Newton matrix sees only the working set; feasibility is looked at for *all* pairs (``violated``), so every
    iterate keeps every ratio. A pair is near to binding when ln v(i) − ln v(j) uses up most of its exponent.
    """

    def __init__(self, exponents: FloatArray, column: FloatArray) -> None:
        self.blocks, self.size = column.shape
        self.exponents = exponents
        self.root = np.exp(np.where(np.isfinite(exponents), exponents, 0.0) / 2)
        self._enter = (ENTER * exponents).astype(np.float32)
        self._leave = (LEAVE * exponents).astype(np.float32)
        self._always = _nearest(exponents)
        keys = np.flatnonzero(np.broadcast_to(self._always, (self.blocks, self.size, self.size)))
        self._use(keys, column)
        self.price = np.zeros_like(self.slack)

    def _use(self, keys: IntArray, column: FloatArray) -> None:
        self.keys = keys
        self.block, pair = np.divmod(keys, self.size * self.size)
        self.i, self.j = np.divmod(pair, self.size)
        self.gamma_root = self.root[self.i, self.j]
        self.at_i, self.at_j = self.block * self.size + self.i, self.block * self.size + self.j
        self.starts = np.searchsorted(self.block, np.arange(self.blocks + 1))
        self.slack = self.forward(column)

    def forward(self, u: FloatArray) -> FloatArray:
        """The slack of each pair in the working set."""
        v = u[:, : self.size].ravel()
        return np.asarray(self.gamma_root * v[self.at_j] - v[self.at_i] / self.gamma_root)

    def adjoint(self, values: FloatArray) -> FloatArray:
        """Values put back at the secrets of their pairs."""
        size = self.blocks * self.size
        total = np.bincount(self.at_j, self.gamma_root * values, size)
        total -= np.bincount(self.at_i, values / self.gamma_root, size)
        return np.asarray(total.reshape(self.blocks, self.size), dtype=np.float64)

    def violated(self, column: FloatArray, pool: Executor, *, settle: bool) -> tuple[IntArray, IntArray]:
        """All pairs that do not hold, and the next working set (which no pair leaves if it is to ``settle``)."""
        logs = np.log(column)
        coarse = logs.astype(np.float32)
        chunk = max(1, min(SCAN_ENTRIES // (self.size * self.size), -(-self.blocks // 2)))
        starts = range(0, self.blocks, chunk)
        found = list(pool.map(lambda start: self._scan(coarse, start, min(start + chunk, self.blocks), settle), starts))
        keys = np.concatenate([candidates for candidates, _ in found])
        block, pair = np.divmod(keys, self.size * self.size)
        i, j = np.divmod(pair, self.size)
        excess = logs[block, i] - logs[block, j] - self.exponents[i, j]
        return keys[excess > -1e-13], np.concatenate([near for _, near in found])

    def _scan(self, logs: NDArray[np.float32], start: int, stop: int, settle: bool) -> tuple[IntArray, IntArray]:
        """Pairs of some blocks that are near to binding, and those to work with next."""
        square = self.size * self.size
        used = logs[start:stop, :, None] - logs[start:stop, None, :]
        wanted = used > self._enter
        candidates = np.flatnonzero(wanted)
        old = self.keys[self.starts[start] : self.starts[stop]] - start * square
        staying = old if settle else old[used.ravel()[old] > self._leave.ravel()[old % square]]
        wanted |= self._always
        wanted.ravel()[staying] = True
        return candidates + start * square, np.flatnonzero(wanted) + start * square

    def largest_step(self, keys: IntArray, before: FloatArray, after: FloatArray) -> float:
        """The largest share of the way from one mechanism to another at which these pairs still hold."""
        block, pair = np.divmod(keys, self.size * self.size)
        i, j = np.divmod(pair, self.size)
        root = self.root[i, j]
        start = root * before[block, j] - before[block, i] / root
        end = root * after[block, j] - after[block, i] / root
        return float((start / np.maximum(start - end, 1e-300)).min(initial=1.0))

    def renew(self, keys: IntArray, column: FloatArray, target: float) -> None:
        """Change the working set; pairs that join get the price that makes them central."""
        old_keys, old_price = self.keys, self.price
        self._use(keys, column)
        self.price = target / self.slack
        old_positions = np.searchsorted(old_keys, keys)
        old_positions[old_positions == len(old_keys)] = 0
        stayed = old_keys[old_positions] == keys
        self.price[stayed] = old_price[old_positions[stayed]]

    def adopt(self, old: "Ratios", column: FloatArray, target: float) -> None:
        """Take over another's working set and prices, where its pairs are still here; it has fewer secrets."""
        here = np.isfinite(self.exponents[old.i, old.j])
        block, i, j = old.block[here], old.i[here], old.j[here]
        theirs = (block * self.size + i) * self.size + j
        price = old.price[here]
        self.renew(np.union1d(self.keys, theirs), column, target)
        self.price[np.searchsorted(self.keys, theirs)] = price


def _nearest(exponents: FloatArray) -> NDArray[np.bool_]:
    """Each secret's nearest few, both ways: they tie every block together."""
    size = len(exponents)
    nearest = np.argsort(exponents, axis=1, kind="stable")[:, :NEIGHBOURS]
    chosen = np.zeros((size, size), dtype=bool)
    chosen[np.arange(size)[:, None], nearest] = True
    return (chosen | chosen.T) & np.isfinite(exponents)
