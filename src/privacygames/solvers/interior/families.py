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
        return np.asarray(u[:, : self.excess.shape[1]] @ self.excess.T)

    def adjoint(self, values: FloatArray) -> FloatArray:
        """The excess weighted by values."""
        return np.asarray(values @ self.excess)

    def add_to(self, parts: HessianParts, weights: FloatArray) -> None:
        """As a Gram term."""
        parts.grams = (*parts.grams, Gram(self.excess, np.arange(self.excess.shape[1]), weights))


@dataclass(frozen=True)
class Guesses:
    """Every adversary's x is at most the error of each of her guesses: Σ_s π_k(s) E_k(g,s) v(s) − x_k ≥ 0.

    Attributes:
        error: π_k(s) E_k(g,s), (guesses, secrets), the guesses of all adversaries below each other.
        owner: which adversary each guess is one of.
    """

    error: FloatArray
    owner: IntArray

    @cached_property
    def adversaries(self) -> int:
        """How many there are."""
        return int(self.owner.max()) + 1

    @cached_property
    def support(self) -> IntArray:
        """The secrets that any guess errs on."""
        return np.flatnonzero(self.error.any(axis=0))

    @cached_property
    def compact(self) -> FloatArray:
        """The errors on those."""
        return np.ascontiguousarray(self.error[:, self.support])

    @cached_property
    def _whose(self) -> FloatArray:
        """(guesses, adversaries): 1 for the adversary a guess is one of."""
        return np.asarray(np.eye(self.adversaries)[self.owner])

    @cached_property
    def _gram_rows(self) -> FloatArray:
        return np.column_stack([self.compact, -self._whose])

    def forward(self, u: FloatArray) -> FloatArray:
        """The error of each guess less x."""
        size = self.error.shape[1]
        x = u[:, size:] if self.adversaries == 1 else u[:, size + self.owner]
        return np.asarray(u[:, self.support] @ self.compact.T - x)

    def adjoint(self, values: FloatArray) -> FloatArray:
        """Errors weighted by values, and minus their sums for each x."""
        size = self.error.shape[1]
        result = np.zeros((len(values), size + self.adversaries))
        result[:, self.support] = values @ self.compact
        result[:, size:] = -self.sums(values)
        return result

    def sums(self, values: FloatArray) -> FloatArray:
        """Values of guesses added up to (blocks, adversaries)."""
        return values.sum(axis=1, keepdims=True) if self.adversaries == 1 else values @ self._whose

    def shares(self, values: FloatArray) -> FloatArray:
        """Values of guesses as shares of their adversary's sum."""
        sums = self.sums(values)
        return values / (sums if self.adversaries == 1 else sums[:, self.owner])

    def add_to(self, parts: HessianParts, weights: FloatArray) -> None:
        """As a Gram term."""
        size = self.error.shape[1]
        columns = np.append(self.support, np.arange(size, size + self.adversaries))
        parts.grams = (*parts.grams, Gram(self._gram_rows, columns, weights))
