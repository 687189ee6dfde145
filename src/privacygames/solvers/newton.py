"""The Newton system of the interior-point method, solved block by block.

Each block o has a Hessian H_o; the blocks meet in the rows J of ``coupling.py``. Eliminating the blocks leaves the
Schur complement S = Σ_o J_o H_o⁻¹ J_oᵀ + diag(0, slack/price), and with a free variable y one column more.
"""

from collections.abc import Callable
from concurrent.futures import Executor

import numpy as np
from scipy.linalg import blas, lapack

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.coupling import Coupling
from privacygames.solvers.families import Guesses, Positive, Ratios

REGULARISATION = 1e-14
STACK = 8
SMALL_TRIANGLE = 80


class Breakdown(Exception):
    """A factorisation failed: the iterate is as accurate as floating point allows."""


class Newton:
    """Factors of one Newton system, ready to solve for several right-hand sides."""

    def __init__(
        self,
        u: FloatArray,
        ratios: Ratios | None,
        guesses: Guesses | None,
        positive: Positive | None,
        *,
        coupling: Coupling,
        softness: FloatArray,
        pool: Executor,
    ) -> None:
        self.blocks, self.width = u.shape
        self._coupling = coupling
        self._factors: list[FloatArray] = [np.empty(0)] * self.blocks
        self._scales = np.empty(u.shape)
        halves = np.array_split(np.arange(self.blocks), 2 * min(self.blocks, 8))
        assemble = _assembler(u, ratios, guesses, positive)
        parts = list(pool.map(lambda half: self._factor(half, assemble, u), halves))
        lower = np.tril(np.sum(parts, axis=0))
        self._schur = lower + np.tril(lower, -1).T
        inequalities = np.arange(coupling.size, coupling.rows)
        self._schur[inequalities, inequalities] += softness
        self._schur_scale = 1 / np.sqrt(self._schur.diagonal())
        scaled = self._schur * self._schur_scale * self._schur_scale[:, None]
        self._schur_factor, info = lapack.dpotrf(scaled, lower=1)
        if info or not np.isfinite(self._schur_scale).all():
            raise Breakdown

    def _factor(self, blocks: IntArray, assemble: "_Assemble", u: FloatArray) -> FloatArray:
        """Factorise some blocks; return their part of the Schur complement."""
        total = np.zeros((self._coupling.rows, self._coupling.rows))
        diagonal = np.arange(self.width)
        stack = np.zeros((STACK * self.width, self.width))  # written below the diagonal only, and used again
        for start in range(0, len(blocks), STACK):
            some = blocks[start : start + STACK]
            roots = [stack[at * self.width : (at + 1) * self.width] for at in range(len(some))]
            for o, root in zip(some, roots, strict=True):
                hessian = assemble(int(o))
                scale = 1 / np.sqrt(hessian[diagonal, diagonal])
                hessian *= scale
                hessian *= scale[:, None]
                hessian[diagonal, diagonal] += REGULARISATION
                factor, info = lapack.dpotrf(hessian.T, lower=1, overwrite_a=1, clean=0)
                if info or not np.isfinite(scale).all():
                    raise Breakdown
                scale *= np.abs(u[o])
                self._factors[o], self._scales[o] = factor, scale
                invert_lower(factor, root)
                np.multiply(root, scale, out=root)  # now its square is H_o⁻¹
            if self._coupling.limit == "none":
                used = stack[: len(some) * self.width, : self._coupling.rows]
                total += used.T @ used
            else:
                for o, root in zip(some, roots, strict=True):
                    total += self._coupling.project(int(o), root.T @ root)
        return total

    def solve_blocks(self, right: FloatArray) -> FloatArray:
        """H_o⁻¹ r_o for every block."""
        scaled = right * self._scales
        for o, factor in enumerate(self._factors):
            scaled[o] = blas.dtrsv(factor, blas.dtrsv(factor, scaled[o], lower=1), lower=1, trans=1)
        scaled *= self._scales
        return scaled

    def solve_schur(self, right: FloatArray) -> FloatArray:
        """S⁻¹ r, refined once."""
        found = np.zeros_like(right)
        for _ in range(2):
            residual = self._schur_scale * (right - self._schur @ found)
            found += self._schur_scale * lapack.dpotrs(self._schur_factor, residual, lower=1)[0]
        return found


def invert_lower(factor: FloatArray, out: FloatArray) -> None:
    """Invert a lower triangle into another, by halves: nearly all is matrix products, which are far faster."""
    size = len(factor)
    if size <= SMALL_TRIANGLE:
        out[:] = np.tril(lapack.dtrtri(factor, lower=1)[0])
        return
    half = size // 2
    first, last = out[:half, :half], out[half:, half:]
    invert_lower(factor[:half, :half], first)
    invert_lower(factor[half:, half:], last)
    np.matmul(last, factor[half:, :half] @ first, out=out[half:, :half])
    np.negative(out[half:, :half], out=out[half:, :half])


_Assemble = Callable[[int], FloatArray]


def _assembler(u: FloatArray, ratios: Ratios | None, guesses: Guesses | None, positive: Positive | None) -> _Assemble:
    """A function that gives block o's Hessian, in the variables relative to u: nothing in it is tiny or huge."""
    blocks, width = u.shape
    diagonals = np.zeros((blocks, width))
    if positive is not None:
        diagonals[:, positive.secrets] += positive.price / positive.slack * u[:, positive.secrets] ** 2
    if ratios is not None:
        size = ratios.size
        v = u[:, :size].ravel()
        left, right = -v[ratios.at_i] / ratios.gamma_root, ratios.gamma_root * v[ratios.at_j]
        stiffness = ratios.price / ratios.slack
        both = np.bincount(ratios.at_i, stiffness * left * left, blocks * size)
        both += np.bincount(ratios.at_j, stiffness * right * right, blocks * size)
        diagonals[:, :size] += both.reshape(blocks, size)
        crossed = stiffness * left * right
        upper, lower = ratios.i * width + ratios.j, ratios.j * width + ratios.i
    on_diagonal = np.arange(width) * (width + 1)

    def assemble(o: int) -> FloatArray:
        flat = np.zeros(width * width)
        if ratios is not None:
            part = slice(ratios.starts[o], ratios.starts[o + 1])
            flat[upper[part]] = crossed[part]
            flat[lower[part]] += crossed[part]
        flat[on_diagonal] += diagonals[o]
        hessian = flat.reshape(width, width)
        if guesses is not None:
            weight = guesses.price[o] / guesses.slack[o]
            rows = guesses.compact * u[o, guesses.support]
            weighted = weight[:, None] * rows
            hessian[np.ix_(guesses.support, guesses.support)] += rows.T @ weighted
            edge = -u[o, -1] * weighted.sum(axis=0)
            hessian[-1, guesses.support] += edge
            hessian[guesses.support, -1] += edge
            hessian[-1, -1] += u[o, -1] ** 2 * weight.sum()
        return hessian

    return assemble
