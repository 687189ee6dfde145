"""The Schur complement in which blocks meet: one dense symmetric system."""

from math import inf

from privacygames.arrays import FloatArray
from privacygames.solvers.linalg.backend import HOST, Backend
from privacygames.solvers.linalg.failure import FactorisationFailed

REGULARISATIONS = (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10)
"""What is added to a unit diagonal: as little as lets the matrix be factorised."""

REFINEMENTS = 2


class Schur:
    """A positive definite matrix S, given on and above the diagonal, scaled to a unit diagonal and factorised."""

    def __init__(self, upper: FloatArray, backend: Backend = HOST) -> None:
        self._backend, matrix = backend, backend.symmetric(upper)
        diagonal = matrix.diagonal()
        if not bool(((diagonal > 0) & (diagonal < inf)).all()):
            raise FactorisationFailed
        self._scale = diagonal**-0.5
        self._scaled = matrix * self._scale * self._scale[:, None]
        for regularisation in REGULARISATIONS:
            self._fill_diagonal(1.0 + regularisation)
            factor = backend.factor(self._scaled)
            if factor is not None:
                self._fill_diagonal(1.0)
                self._factor = factor
                return
        raise FactorisationFailed

    def _fill_diagonal(self, value: float) -> None:
        self._scaled.reshape(-1)[:: len(self._scaled) + 1] = value

    def solve(self, right: FloatArray) -> FloatArray:
        """S⁻¹ r, refined, where the matrix is."""
        found: FloatArray = self.solve_rows(right[None, :])[0]
        return found

    def solve_rows(self, right: FloatArray) -> FloatArray:
        """S⁻¹ r for every row of ``right``, refined together, where the matrix is."""
        backend, given = self._backend, (right * self._scale).T
        found = backend.solve_with(self._factor, given)
        for _ in range(REFINEMENTS):
            found = found + backend.solve_with(self._factor, given - self._scaled @ found)
        return found.T * self._scale
