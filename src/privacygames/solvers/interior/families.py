"""The families of inequalities inside the blocks.

A block is one observable: its column v of the mechanism and, under distortion privacy, its x. All blocks' unknowns
are one array u of shape (m, k): k = n, or n + 1 with x last. A family knows its slacks as a function of u
(``forward``), the transpose of that (``adjoint``), and what it adds to the blocks' Hessians; slacks and duals
themselves are part of the state.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.linalg import Gram, OffDiagonal


@dataclass
class HessianParts:
    """What the families add up to: Σ_families Aᵀ diag(weights) A, block by block."""

    diagonal: FloatArray
    beside: OffDiagonal | None = None
    grams: tuple[Gram, ...] = ()


class Family(Protocol):
    """Inequalities slack(u) ≥ 0, linear in u."""

    def forward(self, u: FloatArray) -> FloatArray:
        """The slacks of u (and their change along it)."""
        ...

    def adjoint(self, values: FloatArray) -> FloatArray:
        """The transpose of ``forward``, of shape (m, k), or (m, n) where x plays no part."""
        ...

    def add_to(self, parts: HessianParts, weights: FloatArray) -> None:
        """Add Aᵀ diag(weights) A."""
        ...


@dataclass(frozen=True)
class Positivity:
    """v ≥ 0, for the secrets whose positivity no ratio implies."""

    secrets: IntArray
    width: int

    def forward(self, u: FloatArray) -> FloatArray:
        """V at the secrets meant."""
        return u[:, self.secrets]

    def adjoint(self, values: FloatArray) -> FloatArray:
        """Values put back at their secrets."""
        result = np.zeros((len(values), self.width))
        result[:, self.secrets] = values
        return result

    def add_to(self, parts: HessianParts, weights: FloatArray) -> None:
        """On the diagonal."""
        parts.diagonal[:, self.secrets] += weights


@dataclass(frozen=True)
class Preferred:
    """No other guess is better than the preferred one: Σ_s π(s) (d(ŝ,s) − d(ŝ*,s)) v(s) ≥ 0."""

    excess: FloatArray

    def forward(self, u: FloatArray) -> FloatArray:
        """By how much each other guess errs more."""
        return np.asarray(u @ self.excess.T)

    def adjoint(self, values: FloatArray) -> FloatArray:
        """The excess weighted by values."""
        return np.asarray(values @ self.excess)

    def add_to(self, parts: HessianParts, weights: FloatArray) -> None:
        """As a Gram term."""
        parts.grams = (*parts.grams, Gram(self.excess, np.arange(self.excess.shape[1]), weights))


@dataclass(frozen=True)
class Guesses:
    """x is at most the error of every guess: Σ_s π(s) d(ŝ,s) v(s) − x ≥ 0."""

    error: FloatArray

    @cached_property
    def support(self) -> IntArray:
        """The secrets that any guess errs on."""
        return np.flatnonzero(self.error.any(axis=0))

    @cached_property
    def compact(self) -> FloatArray:
        """The errors on those."""
        return np.ascontiguousarray(self.error[:, self.support])

    @cached_property
    def _gram_rows(self) -> FloatArray:
        return np.column_stack([self.compact, np.full(len(self.compact), -1.0)])

    def forward(self, u: FloatArray) -> FloatArray:
        """The error of each guess less x."""
        return u[:, self.support] @ self.compact.T - u[:, -1:]

    def adjoint(self, values: FloatArray) -> FloatArray:
        """Errors weighted by values, and minus their sum for x."""
        result = np.zeros((len(values), self.error.shape[1] + 1))
        result[:, self.support] = values @ self.compact
        result[:, -1] = -values.sum(axis=1)
        return result

    def add_to(self, parts: HessianParts, weights: FloatArray) -> None:
        """As a Gram term."""
        columns = np.append(self.support, self.error.shape[1])
        parts.grams = (*parts.grams, Gram(self._gram_rows, columns, weights))
