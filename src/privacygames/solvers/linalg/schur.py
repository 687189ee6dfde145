"""The Schur complement in which blocks meet: one dense symmetric system."""

import numpy as np
from scipy.linalg import lapack

from privacygames.arrays import FloatArray
from privacygames.solvers.linalg.blocks import FactorisationFailed


class Schur:
    """A positive definite matrix S, scaled to a unit diagonal and factorised."""

    def __init__(self, matrix: FloatArray) -> None:
        self._matrix = matrix
        self._scale = 1 / np.sqrt(matrix.diagonal())
        self._factor, info = lapack.dpotrf(matrix * self._scale * self._scale[:, None], lower=1)
        if info or not np.isfinite(self._scale).all():
            raise FactorisationFailed

    def solve(self, right: FloatArray) -> FloatArray:
        """S⁻¹ r, refined once."""
        found = np.zeros_like(right)
        for _ in range(2):
            residual = self._scale * (right - self._matrix @ found)
            found += self._scale * lapack.dpotrs(self._factor, residual, lower=1)[0]
        return found
