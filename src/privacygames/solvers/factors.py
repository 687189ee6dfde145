"""Many symmetric blocks factorised at once, and the Schur complement in which they meet."""

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
from scipy.linalg import lapack
from threadpoolctl import threadpool_limits

from privacygames.arrays import FloatArray, IntArray
from privacygames.solvers.unlocked import Square

REGULARISATIONS = (1e-14, 1e-12, 1e-10)
"""What is added to a unit diagonal: as little as lets the block be factorised."""


class Breakdown(Exception):
    """A factorisation failed: the iterate is as accurate as floating point allows."""


THREADS = 2


@contextmanager
def threads() -> Iterator[Executor]:
    """The threads that share the blocks among them; each does its linear algebra alone."""
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(THREADS) as pool:
        yield pool


class Factors:
    """Cholesky's factors of the blocks H_o, found and used by the threads of a pool (``threads``).

    Blocks are written in the variables relative to ``sizes`` and scaled to a unit diagonal: nothing is tiny or huge.
    """

    def __init__(self, sizes: FloatArray, assemble: Callable[[int, FloatArray], None], pool: Executor) -> None:
        """``assemble(o, into)`` writes block o, in the relative variables."""
        self._sizes, self._assemble, self._pool = sizes, assemble, pool
        count, width = sizes.shape
        self._factors = np.empty((count, width, width))
        self._scales = np.empty(sizes.shape)
        self._halves = np.array_split(np.arange(count), THREADS)

    def factorise(self, project: Callable[[int, FloatArray], FloatArray]) -> FloatArray:
        """Σ_o project(o, H_o⁻¹); what is projected, and what comes out of it, is right on and above the diagonal."""
        parts = self._pool.map(lambda half: self._factorise_some(half, project), self._halves)
        upper = np.triu(sum(parts))
        return np.asarray(upper + np.triu(upper, 1).T)

    def _factorise_some(self, blocks: IntArray, project: Callable[[int, FloatArray], FloatArray]) -> FloatArray:
        width = self._factors.shape[1]
        square, diagonal, inverse = Square(width), np.arange(width), np.empty((width, width))
        total: FloatArray = np.zeros(1)
        for o in blocks:
            block = self._factors[o]
            scale = self._factor(int(o), block, square, diagonal)
            scale *= np.abs(self._sizes[o])
            self._scales[o] = scale
            np.copyto(inverse, block)
            square.invert(inverse)
            inverse *= scale
            inverse *= scale[:, None]
            total = total + project(int(o), inverse)
        return total

    def _factor(self, o: int, block: FloatArray, square: Square, diagonal: IntArray) -> FloatArray:
        """Factorise one block; what it was scaled by."""
        for regularisation in REGULARISATIONS:
            self._assemble(o, block)
            scale = 1 / np.sqrt(block[diagonal, diagonal])
            block *= scale
            block *= scale[:, None]
            block[diagonal, diagonal] += regularisation
            if np.isfinite(scale).all() and square.factor(block):
                return np.asarray(scale)
        raise Breakdown

    def solve(self, right: FloatArray) -> FloatArray:
        """H_o⁻¹ r_o for every block."""
        found = right * self._scales

        def solve(blocks: IntArray) -> None:
            square = Square(found.shape[1])
            for o in blocks:
                square.solve(self._factors[o], found[o])

        list(self._pool.map(solve, self._halves))
        found *= self._scales
        return found


class Schur:
    """The complement S, scaled to a unit diagonal and factorised."""

    def __init__(self, matrix: FloatArray) -> None:
        self._matrix = matrix
        self._scale = 1 / np.sqrt(matrix.diagonal())
        self._factor, info = lapack.dpotrf(matrix * self._scale * self._scale[:, None], lower=1)
        if info or not np.isfinite(self._scale).all():
            raise Breakdown

    def solve(self, right: FloatArray) -> FloatArray:
        """S⁻¹ r, refined once."""
        found = np.zeros_like(right)
        for _ in range(2):
            residual = self._scale * (right - self._matrix @ found)
            found += self._scale * lapack.dpotrs(self._factor, residual, lower=1)[0]
        return found
