"""Families of linear inequalities within a block: positivity, guesses, and guesses at the largest distortion.

A block is one observable: its column v of the mechanism and, under distortion privacy, an x for every adversary. All
blocks' unknowns are one array u of shape (m, k): k = n, or more with the x last. A family is a linear operator A:
``forward`` gives the slacks A u, ``adjoint`` the product Aᵀ z, and ``add_hessian`` adds Aᵀ W A to the blocks' Hessians.
The bounds on ratios are a family, too (``working_set.py``). Slacks and dual values themselves belong to the state.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.linalg import Backend, Gram, OffDiagonal


@dataclass
class HessianParts:
    """Σ_families Aᵀ W A of every block, in parts: diagonal, single off-diagonal entries, and Gram matrices."""

    diagonal: FloatArray
    off_diagonal: OffDiagonal | None = None
    grams: tuple[Gram, ...] = ()


class Family(Protocol):
    """Inequalities A u ≥ 0."""

    def shape(self, blocks: int) -> tuple[int, ...]:
        """Shape of the slacks of that many blocks."""
        ...

    def forward(self, u: FloatArray) -> FloatArray:
        """A u: the slacks of u, or their change along a direction u."""
        ...

    def adjoint(self, values: FloatArray) -> FloatArray:
        """Aᵀ values, of shape (m, k), or (m, n) where x plays no part."""
        ...

    def add_hessian(self, parts: HessianParts, weights: FloatArray) -> None:
        """Add Aᵀ diag(weights) A."""
        ...

    def rows(self, indices: IntArray, width: int) -> tuple[IntArray, FloatArray]:
        """Block and row of A, (…, width), of the inequalities with these indices (pairs: keys), on the host."""
        ...


@dataclass(frozen=True)
class PositivityRows:
    """v ≥ 0, for the secrets whose positivity no ratio implies."""

    secrets: IntArray
    width: int
    backend: Backend

    def shape(self, blocks: int) -> tuple[int, ...]:
        """One per block and secret."""
        return blocks, len(self.secrets)

    def forward(self, u: FloatArray) -> FloatArray:
        """The entries of v themselves."""
        return u[:, self.secrets]

    def adjoint(self, values: FloatArray) -> FloatArray:
        """Values at the columns of their secrets."""
        result = self.backend.zeros((len(values), self.width))
        result[:, self.secrets] = values
        return result

    def add_hessian(self, parts: HessianParts, weights: FloatArray) -> None:
        """On the diagonal."""
        parts.diagonal[:, self.secrets] += weights

    def rows(self, indices: IntArray, width: int) -> tuple[IntArray, FloatArray]:
        """One entry each."""
        secrets = self.backend.indices_to_numpy(self.secrets)
        block, which = np.divmod(indices, len(secrets))
        rows = np.zeros((len(indices), width))
        rows[np.arange(len(indices)), secrets[which]] = 1.0
        return block, rows


@dataclass(frozen=True)
class MaxDistortionRows:
    """No guess g is better than the best blind guess g*: Σ_s π_k(s) (E_k(g,s) − E_k(g*,s)) v(s) ≥ 0."""

    excess: FloatArray
    columns: IntArray
    backend: Backend

    def shape(self, blocks: int) -> tuple[int, ...]:
        """One per block and other guess."""
        return blocks, len(self.excess)

    def forward(self, u: FloatArray) -> FloatArray:
        """The error of each other guess in excess of the best blind guess's."""
        return self.backend.matmul(u[:, : self.excess.shape[1]], self.excess.T)

    def adjoint(self, values: FloatArray) -> FloatArray:
        """The rows weighted by values."""
        return self.backend.matmul(values, self.excess)

    def add_hessian(self, parts: HessianParts, weights: FloatArray) -> None:
        """As a Gram matrix."""
        parts.grams = (*parts.grams, Gram(self.excess, self.columns, weights))

    def rows(self, indices: IntArray, width: int) -> tuple[IntArray, FloatArray]:
        """The rows of the guesses, padded with zeros."""
        excess = self.backend.to_numpy(self.excess)
        block, which = np.divmod(indices, len(excess))
        return block, np.pad(excess[which], ((0, 0), (0, width - excess.shape[1])))


@dataclass(frozen=True)
class GuessRows:
    """Every adversary's x is at most the error of each of their guesses: Σ_s π_k(s) E_k(g,s) v(s) − x_k ≥ 0.

    Attributes:
        errors: π_k(s) E_k(g,s), (guesses, secrets), the guesses of all adversaries stacked.
        owner: the adversary of each guess.
        backend: where u is.
    """

    errors: FloatArray
    owner: IntArray
    backend: Backend

    @cached_property
    def adversary_count(self) -> int:
        """Number of adversaries."""
        return int(self.owner.max()) + 1

    @cached_property
    def _support(self) -> IntArray:
        """The secrets on which some guess errs."""
        return np.flatnonzero(self.errors.any(axis=0))

    @cached_property
    def _device_support(self) -> IntArray:
        return self.backend.indices_to_device(self._support)

    @cached_property
    def _support_errors(self) -> FloatArray:
        """The errors on the support, where u is."""
        return self.backend.to_device(np.ascontiguousarray(self.errors[:, self._support]))

    @cached_property
    def _indicator(self) -> FloatArray:
        """(guesses, adversaries): 1 for the adversary of a guess."""
        return self.backend.to_device(np.eye(self.adversary_count)[self.owner])

    @cached_property
    def _device_owner(self) -> IntArray:
        return self.backend.indices_to_device(self.owner)

    @cached_property
    def _gram_rows(self) -> FloatArray:
        support = slice(None) if self.backend.prefer_fused_operations else self._support
        rows = np.column_stack([self.errors[:, support], -np.eye(self.adversary_count)[self.owner]])
        return self.backend.to_device(rows)

    @cached_property
    def _gram_columns(self) -> IntArray:
        size = self.errors.shape[1]
        support = np.arange(size) if self.backend.prefer_fused_operations else self._support
        columns = np.append(support, np.arange(size, size + self.adversary_count))
        return self.backend.indices_to_device(columns)

    def shape(self, blocks: int) -> tuple[int, ...]:
        """One per block and guess."""
        return blocks, len(self.errors)

    def forward(self, u: FloatArray) -> FloatArray:
        """The error of each guess less x."""
        if self.backend.prefer_fused_operations:
            return u @ self._gram_rows.T
        size = self.errors.shape[1]
        x = u[:, size:] if self.adversary_count == 1 else u[:, size + self._device_owner]
        return self.backend.matmul(u[:, self._device_support], self._support_errors.T) - x

    def adjoint(self, values: FloatArray) -> FloatArray:
        """Errors weighted by values, and minus the values' sum for each x."""
        if self.backend.prefer_fused_operations:
            return values @ self._gram_rows
        size = self.errors.shape[1]
        result = self.backend.zeros((len(values), size + self.adversary_count))
        result[:, self._device_support] = self.backend.matmul(values, self._support_errors)
        result[:, size:] = -self.sum_by_adversary(values)
        return result

    def sum_by_adversary(self, values: FloatArray) -> FloatArray:
        """Values of guesses added up to (blocks, adversaries)."""
        return values.sum(axis=1, keepdims=True) if self.adversary_count == 1 else values @ self._indicator

    def normalise(self, values: FloatArray) -> FloatArray:
        """Values of guesses divided by their adversary's sum: an attack, from dual values."""
        sums = self.sum_by_adversary(values)
        return values / (sums if self.adversary_count == 1 else sums[:, self._device_owner])

    def add_hessian(self, parts: HessianParts, weights: FloatArray) -> None:
        """As a Gram matrix."""
        parts.grams = (*parts.grams, Gram(self._gram_rows, self._gram_columns, weights))

    def rows(self, indices: IntArray, width: int) -> tuple[IntArray, FloatArray]:
        """The errors of the guesses, and −1 for x."""
        block, which = np.divmod(indices, len(self.errors))
        rows = np.zeros((len(indices), width))
        rows[:, : self.errors.shape[1]] = self.errors[which]
        rows[np.arange(len(indices)), self.errors.shape[1] + self.owner[which]] = -1.0
        return block, rows
