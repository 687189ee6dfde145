"""The Schur complement in which blocks meet: one dense symmetric system."""

import numpy as np
from scipy.linalg import lapack

from privacygames.arrays import FloatArray
from privacygames.solvers.linalg.blocks import FactorisationFailed

REGULARISATIONS = (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10)
"""What is added to a unit diagonal: as little as lets the matrix be factorised."""

REFINEMENTS = 3
ACCURATE = 1e-13


class Schur:
    """A positive definite matrix S, given on and above the diagonal, scaled to a unit diagonal and factorised."""

    def __init__(self, upper: FloatArray) -> None:
        matrix = np.triu(upper)
        matrix += np.triu(upper, 1).T
        self._matrix = matrix
        diagonal = matrix.diagonal()
        if not (np.isfinite(diagonal).all() and (diagonal > 0).all()):
            raise FactorisationFailed
        self._scale = 1 / np.sqrt(diagonal)
        scaled = matrix * self._scale * self._scale[:, None]
        for regularisation in REGULARISATIONS:
            scaled[np.diag_indices(len(scaled))] = 1.0 + regularisation
            self._factor, info = lapack.dpotrf(scaled, lower=1)
            if not info:
                return
        raise FactorisationFailed

    def solve(self, right: FloatArray) -> FloatArray:
        """S⁻¹ r, refined: once at least, and as long as it helps."""
        found, size = np.zeros_like(right), float(np.linalg.norm(self._scale * right))
        before = np.inf
        for refinement in range(1 + REFINEMENTS):
            residual = self._scale * (right - self._matrix @ found)
            left = float(np.linalg.norm(residual))
            if refinement > 1 and (left <= ACCURATE * size or left > 0.5 * before):
                break
            found += self._scale * lapack.dpotrs(self._factor, residual, lower=1)[0]
            before = left
        return found
