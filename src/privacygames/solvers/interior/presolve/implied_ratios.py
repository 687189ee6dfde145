"""Implied ratio bounds: one that follows from two others over a third secret can be left out."""

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray
from privacygames.solvers.linalg import HOST, Backend

SUM_TOLERANCE = 1e-12
"""Relative rounding error up to which the sum of two exponents counts as no larger than a third; the repair restores
what it may lose."""


def implied_pairs(exponents: FloatArray, backend: Backend = HOST) -> NDArray[np.bool_]:
    """The mask of the ordered pairs (i, j) with e(i,k) + e(k,j) ≤ e(i,j) for some k, whose bound is thus implied.

    Implications are never circular, because both exponents are positive and smaller than their sum: pairs with exponent
    0 are neither used nor left out.

    Args:
        exponents: logarithms of the ratio bounds, ∞ where there is none.
        backend: where to compare: n³ sums.

    >>> from privacygames.solvers import implied_pairs
    >>> line = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    >>> implied_pairs(line).astype(int)  # from one end to the other over the middle
    array([[0, 0, 1],
           [0, 0, 0],
           [1, 0, 0]])
    """
    finite = np.isfinite(exponents) & (exponents > 0)
    steps = backend.to_device(np.where(finite, exponents, np.inf))
    limit = backend.to_device(np.where(finite, exponents * (1 + SUM_TOLERANCE), -np.inf))
    implied = backend.mask_to_device(np.zeros(exponents.shape, dtype=bool))
    chunk = max(1, backend.chunk_entries // max(exponents.size, 1))
    for start in range(0, len(exponents), chunk):
        middle = slice(start, start + chunk)
        implied |= (steps[:, middle, None] + steps[None, middle, :] <= limit[:, None, :]).any(axis=1)
    return backend.mask_to_numpy(implied)
