"""Solution with the Schur complement that couples the blocks: one dense symmetric positive definite system."""

from math import inf

from privacygames.arrays import FloatArray
from privacygames.solvers.linalg.backend import Backend, FactorisationFailed

REGULARISATIONS = (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10)
"""Values added to the unit diagonal of the scaled matrix: the first that lets it be factorised is used."""

REFINEMENTS, REFINEMENTS_REGULARISED = 1, 2
"""Steps of iterative refinement, without and with regularisation."""


class Schur:
    """A symmetric positive definite matrix S, factorised on its backend, on the host or on a device.

    With D the scaling of S to a unit diagonal and L Cholesky's factor of D S D, it keeps M = L⁻¹ D and solves by two
    products, S⁻¹ r = Mᵀ(M r), which run in parallel, unlike substitutions. One product with MᵀM would lose twice as
    many digits where S is nearly singular.

    Raises:
        FactorisationFailed: S is not positive definite, even when regularised.
    """

    def __init__(self, matrix: FloatArray, backend: Backend) -> None:
        self._matrix, self._backend = matrix, backend
        diagonal = matrix.diagonal()
        smallest, largest = backend.to_floats([diagonal.min(), diagonal.max()])
        if not 0 < smallest <= largest < inf:
            raise FactorisationFailed
        scale = diagonal**-0.5
        across, size = scale * scale[:, None], len(scale)
        for regularisation in REGULARISATIONS:
            scaled = matrix * across
            scaled.reshape(-1)[:: size + 1] = 1.0 + regularisation
            inverse = backend.inverse_cholesky_factor(scaled)
            if inverse is not None:
                self._inverse_factor = inverse * scale
                self._refinements = REFINEMENTS_REGULARISED if regularisation else REFINEMENTS
                return
        raise FactorisationFailed

    def solve(self, right: FloatArray) -> FloatArray:
        """S⁻¹ r by iterative refinement."""
        gemm, transposed = self._backend.gemm, self._inverse_factor.T
        solution = transposed @ (self._inverse_factor @ right)
        for _ in range(self._refinements):
            residual = gemm(-1.0, self._matrix, solution, right)
            solution = gemm(1.0, transposed, self._inverse_factor @ residual, solution)
        return solution

    def solve_rows(self, right: FloatArray) -> FloatArray:
        """S⁻¹ r for every row r of ``right``, together."""
        return self.solve(right.T).T
