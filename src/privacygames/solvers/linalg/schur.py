"""The Schur complement in which blocks meet: one dense symmetric system."""

from math import inf

from privacygames.arrays import FloatArray
from privacygames.solvers.linalg.backend import HOST, Backend
from privacygames.solvers.linalg.failure import FactorisationFailed

REGULARISATIONS = (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10)
"""What is added to a unit diagonal: as little as lets the matrix be inverted."""

REFINEMENTS = 2


class Schur:
    """A positive definite matrix S, given on and above the diagonal, scaled to a unit diagonal and inverted.

    To solve is then a product or two, which take no turns as substitutions do; refined, it is as accurate.
    """

    def __init__(self, upper: FloatArray, backend: Backend = HOST) -> None:
        matrix = backend.symmetric(upper)
        diagonal = matrix.diagonal()
        if not bool(((diagonal > 0) & (diagonal < inf)).all()):
            raise FactorisationFailed
        self._scale = diagonal**-0.5
        self._scaled = matrix * self._scale * self._scale[:, None]
        for regularisation in REGULARISATIONS:
            self._fill_diagonal(1.0 + regularisation)
            inverse = backend.inverse(self._scaled)
            if inverse is not None:
                self._fill_diagonal(1.0)
                self._inverse = inverse
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
        given = (right * self._scale).T
        found = self._inverse @ given
        for _ in range(REFINEMENTS):
            found = found + self._inverse @ (given - self._scaled @ found)
        return found.T * self._scale
