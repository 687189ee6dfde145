"""The Schur complement in which blocks meet: one dense symmetric system."""

from math import inf, sqrt

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.solvers.linalg.backend import HOST, Backend
from privacygames.solvers.linalg.failure import FactorisationFailed

REGULARISATIONS = (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10)
"""What is added to a unit diagonal: as little as lets the matrix be factorised."""

REFINEMENTS = 3
ACCURATE = 1e-13


class Schur:
    """A positive definite matrix S, given on and above the diagonal, scaled to a unit diagonal and factorised."""

    def __init__(self, upper: FloatArray, backend: Backend = HOST) -> None:
        self._backend, self._matrix = backend, backend.symmetric(upper)
        diagonal = self._matrix.diagonal()
        if not bool(((diagonal > 0) & (diagonal < inf)).all()):
            raise FactorisationFailed
        self._scale = diagonal**-0.5
        scaled = self._matrix * self._scale * self._scale[:, None]
        for regularisation in REGULARISATIONS:
            scaled.reshape(-1)[:: len(scaled) + 1] = 1.0 + regularisation
            factor = backend.factor(scaled)
            if factor is not None:
                self._factor = factor
                return
        raise FactorisationFailed

    def solve(self, right: FloatArray) -> FloatArray:
        """S⁻¹ r, refined: once at least, and as long as it helps; from and to the host."""
        return np.asarray(self.solve_rows(right[None, :])[0])

    def solve_rows(self, right: FloatArray) -> FloatArray:
        """S⁻¹ r for every row of ``right``, refined together; from and to the host."""
        given, scale = self._backend.held(right).T, self._scale[:, None]
        found, size = 0.0 * given, _norm(scale * given)
        before = inf
        for refinement in range(1 + REFINEMENTS):
            residual = scale * (given - self._matrix @ found)
            left = _norm(residual)
            if refinement > 1 and (left <= ACCURATE * size or left > 0.5 * before):
                break
            found = found + scale * self._backend.solve_with(self._factor, residual)
            before = left
        return self._backend.fetched(found.T)


def _norm(columns: FloatArray) -> float:
    return sqrt(float((columns * columns).sum()))
