"""The families of inequalities inside the blocks.

A block is one observable: its column v of the mechanism and, under distortion privacy, an x for every adversary. All
blocks' unknowns are one array u of shape (m, k): k = n, or more with the x last. A family knows its slacks as a
function of u (``forward``), the transpose of that (``adjoint``), and what it adds to the blocks' Hessians; slacks and
duals themselves are part of the state.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.linalg import Backend, Gram, OffDiagonal


@dataclass
class HessianParts:
    """What the families add up to: Σ_families Aᵀ diag(weights) A, block by block."""

    diagonal: FloatArray
    beside: OffDiagonal | None = None
    grams: tuple[Gram, ...] = ()


class Family(Protocol):
    """Inequalities slack(u) ≥ 0, linear in u."""

    def shape(self, blocks: int) -> tuple[int, ...]:
        """The shape of the slacks of so many blocks."""
        ...

    def forward(self, u: FloatArray) -> FloatArray:
        """The slacks of u (and their change along it)."""
        ...

    def adjoint(self, values: FloatArray) -> FloatArray:
        """The transpose of ``forward``, of shape (m, k), or (m, n) where x plays no part."""
        ...

    def add_to(self, parts: HessianParts, weights: FloatArray) -> None:
        """Add Aᵀ diag(weights) A."""
        ...

    def rows(self, at: IntArray, width: int) -> tuple[IntArray, FloatArray]:
        """The blocks and the rows of A, (…, width), of the inequalities at these positions (or keys), on the host."""
        ...


@dataclass(frozen=True)
class Positivity:
    """v ≥ 0, for the secrets whose positivity no ratio implies."""

    secrets: IntArray
    width: int
    backend: Backend

    def shape(self, blocks: int) -> tuple[int, ...]:
        """One for each block and secret."""
        return blocks, len(self.secrets)

    def forward(self, u: FloatArray) -> FloatArray:
        """V at the secrets meant."""
        return u[:, self.secrets]

    def adjoint(self, values: FloatArray) -> FloatArray:
        """Values put back at their secrets."""
        result = self.backend.zeros((len(values), self.width))
        result[:, self.secrets] = values
        return result

    def add_to(self, parts: HessianParts, weights: FloatArray) -> None:
        """On the diagonal."""
        parts.diagonal[:, self.secrets] += weights

    def rows(self, at: IntArray, width: int) -> tuple[IntArray, FloatArray]:
        """One entry each."""
        secrets = self.backend.indices_to_numpy(self.secrets)
        block, which = np.divmod(at, len(secrets))
        rows = np.zeros((len(at), width))
        rows[np.arange(len(at)), secrets[which]] = 1.0
        return block, rows


@dataclass(frozen=True)
class MaxDistortionRows:
    """No other guess is better than the preferred one: Σ_s π(s) (d(ŝ,s) − d(ŝ*,s)) v(s) ≥ 0."""

    excess: FloatArray
    columns: IntArray
    backend: Backend

    def shape(self, blocks: int) -> tuple[int, ...]:
        """One for each block and other guess."""
        return blocks, len(self.excess)

    def forward(self, u: FloatArray) -> FloatArray:
        """By how much each other guess errs more."""
        return self.backend.matmul(u[:, : self.excess.shape[1]], self.excess.T)

    def adjoint(self, values: FloatArray) -> FloatArray:
        """The excess weighted by values."""
        return self.backend.matmul(values, self.excess)

    def add_to(self, parts: HessianParts, weights: FloatArray) -> None:
        """As a Gram term."""
        parts.grams = (*parts.grams, Gram(self.excess, self.columns, weights))

    def rows(self, at: IntArray, width: int) -> tuple[IntArray, FloatArray]:
        """The excess of the guesses."""
        excess = self.backend.to_numpy(self.excess)
        block, which = np.divmod(at, len(excess))
        return block, np.pad(excess[which], ((0, 0), (0, width - excess.shape[1])))


@dataclass(frozen=True)
class Guesses:
    """Every adversary's x is at most the error of each of her guesses: Σ_s π_k(s) E_k(g,s) v(s) − x_k ≥ 0.

    Attributes:
        error: π_k(s) E_k(g,s), (guesses, secrets), the guesses of all adversaries below each other.
        owner: which adversary each guess is one of.
        backend: where u is.
    """

    error: FloatArray
    owner: IntArray
    backend: Backend

    @cached_property
    def adversaries(self) -> int:
        """How many there are."""
        return int(self.owner.max()) + 1

    @cached_property
    def _counting(self) -> IntArray:
        """The secrets that any guess errs on."""
        return np.flatnonzero(self.error.any(axis=0))

    @cached_property
    def support(self) -> IntArray:
        """The same, where u is."""
        return self.backend.indices_to_device(self._counting)

    @cached_property
    def compact(self) -> FloatArray:
        """The errors on those, where u is."""
        return self.backend.to_device(np.ascontiguousarray(self.error[:, self._counting]))

    @cached_property
    def _whose(self) -> FloatArray:
        """(guesses, adversaries): 1 for the adversary a guess is one of."""
        return self.backend.to_device(np.eye(self.adversaries)[self.owner])

    @cached_property
    def _owner(self) -> IntArray:
        return self.backend.indices_to_device(self.owner)

    @cached_property
    def _gram_rows(self) -> FloatArray:
        counting = slice(None) if self.backend.prefer_fused_operations else self._counting
        rows = np.column_stack([self.error[:, counting], -np.eye(self.adversaries)[self.owner]])
        return self.backend.to_device(rows)

    @cached_property
    def _gram_columns(self) -> IntArray:
        size = self.error.shape[1]
        counting = np.arange(size) if self.backend.prefer_fused_operations else self._counting
        columns = np.append(counting, np.arange(size, size + self.adversaries))
        return self.backend.indices_to_device(columns)

    def shape(self, blocks: int) -> tuple[int, ...]:
        """One for each block and guess."""
        return blocks, len(self.error)

    def forward(self, u: FloatArray) -> FloatArray:
        """The error of each guess less x."""
        if self.backend.prefer_fused_operations:
            return u @ self._gram_rows.T
        size = self.error.shape[1]
        x = u[:, size:] if self.adversaries == 1 else u[:, size + self._owner]
        return self.backend.matmul(u[:, self.support], self.compact.T) - x

    def adjoint(self, values: FloatArray) -> FloatArray:
        """Errors weighted by values, and minus their sums for each x."""
        if self.backend.prefer_fused_operations:
            return values @ self._gram_rows
        size = self.error.shape[1]
        result = self.backend.zeros((len(values), size + self.adversaries))
        result[:, self.support] = self.backend.matmul(values, self.compact)
        result[:, size:] = -self.sums(values)
        return result

    def sums(self, values: FloatArray) -> FloatArray:
        """Values of guesses added up to (blocks, adversaries)."""
        return values.sum(axis=1, keepdims=True) if self.adversaries == 1 else values @ self._whose

    def shares(self, values: FloatArray) -> FloatArray:
        """Values of guesses as shares of their adversary's sum."""
        sums = self.sums(values)
        return values / (sums if self.adversaries == 1 else sums[:, self._owner])

    def add_to(self, parts: HessianParts, weights: FloatArray) -> None:
        """As a Gram term."""
        parts.grams = (*parts.grams, Gram(self._gram_rows, self._gram_columns, weights))

    def rows(self, at: IntArray, width: int) -> tuple[IntArray, FloatArray]:
        """The errors of the guesses, and minus one for x."""
        block, which = np.divmod(at, len(self.error))
        rows = np.zeros((len(at), width))
        rows[:, : self.error.shape[1]] = self.error[which]
        rows[np.arange(len(at)), self.error.shape[1] + self.owner[which]] = -1.0
        return block, rows
