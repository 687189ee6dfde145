"""Implied ratios: a bound on p(o|s)/p(o|s') that follows from two others over a third secret can be left out."""

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray
from privacygames.solvers.linalg import HOST, Backend

CHAIN_TOLERANCE = 1e-12
"""Relative rounding error up to which two exponents count as adding up to a third."""


def implied_pairs(exponents: FloatArray, backend: Backend = HOST) -> NDArray[np.bool_]:
    """Which ordered pairs (i, j) follow from (i, k) and (k, j) for some k: their exponents add up to (i, j)'s.

    A pair counts as chained when e(i,k) + e(k,j) ≤ e(i,j)·(1 + 10⁻¹²); what rounding may lose by that, the
    repair restores. Chains never run in circles, because every exponent on the way is smaller and positive:
    pairs with exponent 0 are never used or removed.

    Args:
        exponents: the logarithms of the ratios' bounds, ∞ where there is none.
        backend: where to compare: n³ sums.
    """
    finite = np.isfinite(exponents) & (exponents > 0)
    steps = backend.to_device(np.where(finite, exponents, np.inf))
    limit = backend.to_device(np.where(finite, exponents * (1 + CHAIN_TOLERANCE), -np.inf))
    chained = backend.mask_to_device(np.zeros(exponents.shape, dtype=bool))
    several = max(1, backend.chunk_entries // max(exponents.size, 1))
    for start in range(0, len(exponents), several):
        middle = slice(start, start + several)
        chained |= (steps[:, middle, None] + steps[None, middle, :] <= limit[:, None, :]).any(axis=1)
    return backend.mask_to_numpy(chained)
