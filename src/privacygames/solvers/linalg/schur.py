"""The Schur complement in which blocks meet: one dense symmetric system."""

from math import inf
from typing import Protocol

from privacygames.arrays import FloatArray
from privacygames.solvers.linalg.backend import HOST
from privacygames.solvers.linalg.failure import FactorisationFailed

REGULARISATIONS = (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10)
"""What is added to a unit diagonal: as little as lets the matrix be factorised."""

REFINEMENTS, REFINEMENTS_REGULARISED = 1, 2
"""So often is a solution refined; and where something had to be added."""


class SchurComplement(Protocol):
    """A positive definite matrix S, ready to solve with."""

    def solve(self, right: FloatArray) -> FloatArray:
        """S⁻¹ r, refined, where the matrix is."""
        ...

    def solve_rows(self, right: FloatArray) -> FloatArray:
        """S⁻¹ r for every row of ``right``, refined together, where the matrix is."""
        ...


class Schur:
    """One on the host: given on and above the diagonal, scaled to a unit diagonal.

    The inverse M of Cholesky's factor is kept, and MᵀM r is two products, which take no turns as substitutions do.
    MᵀM itself would lose twice as many digits where S is nearly singular.
    """

    def __init__(self, upper: FloatArray) -> None:
        matrix = HOST.symmetric_from_upper(upper)
        diagonal = matrix.diagonal()
        if not bool(((diagonal > 0) & (diagonal < inf)).all()):
            raise FactorisationFailed
        self._scale = diagonal**-0.5
        self._scaled = matrix * self._scale * self._scale[:, None]
        for regularisation in REGULARISATIONS:
            self._fill_diagonal(1.0 + regularisation)
            found = HOST.inverse_cholesky_factor(self._scaled)
            if found is not None:
                self._fill_diagonal(1.0)
                self._inverse_factor = found
                self._refinements = REFINEMENTS_REGULARISED if regularisation else REFINEMENTS
                return
        raise FactorisationFailed

    def _fill_diagonal(self, value: float) -> None:
        self._scaled.reshape(-1)[:: len(self._scaled) + 1] = value

    def solve(self, right: FloatArray) -> FloatArray:
        """S⁻¹ r, refined."""
        found: FloatArray = self.solve_rows(right[None, :])[0]
        return found

    def solve_rows(self, right: FloatArray) -> FloatArray:
        """S⁻¹ r for every row of ``right``, refined together."""
        given = (right * self._scale).T
        found = self._roughly(given)
        for _ in range(self._refinements):
            found = found + self._roughly(given - self._scaled @ found)
        return found.T * self._scale

    def _roughly(self, right: FloatArray) -> FloatArray:
        return self._inverse_factor.T @ (self._inverse_factor @ right)
