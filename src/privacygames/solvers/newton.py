"""The Newton system of the interior-point method, solved block by block.

Each block o has a Hessian H_o; the blocks meet in the rows J of ``coupling.py``. Eliminating the blocks leaves the
Schur complement S = Σ_o J_o H_o⁻¹ J_oᵀ + diag(0, slack/price), and with a free variable y one column more.
"""

from collections.abc import Callable
from concurrent.futures import Executor

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.solvers.coupling import Coupling
from privacygames.solvers.factors import Factors, Schur
from privacygames.solvers.families import Guesses, Positive, Ratios


class Newton:
    """Factors of one Newton system, ready to solve for several right-hand sides."""

    def __init__(
        self,
        u: FloatArray,
        ratios: Ratios | None,
        guesses: Guesses | None,
        positive: Positive | None,
        *,
        coupling: Coupling,
        softness: FloatArray,
        pool: Executor,
    ) -> None:
        self._blocks = Factors(u, _assembler(u, ratios, guesses, positive), pool)
        schur = self._blocks.factorise(coupling.project)
        inequalities = np.arange(coupling.size, coupling.rows)
        schur[inequalities, inequalities] += softness
        self._schur = Schur(schur)
        self.solve_blocks, self.solve_schur = self._blocks.solve, self._schur.solve


def _assembler(
    u: FloatArray, ratios: Ratios | None, guesses: Guesses | None, positive: Positive | None
) -> Callable[[int, FloatArray], None]:
    """A function that writes block o's Hessian, in the variables relative to u, into an array."""
    blocks, width = u.shape
    diagonals = np.zeros((blocks, width))
    if positive is not None:
        diagonals[:, positive.secrets] += positive.price / positive.slack * u[:, positive.secrets] ** 2
    if ratios is not None:
        size = ratios.size
        v = u[:, :size].ravel()
        left, right = -v[ratios.at_i] / ratios.gamma_root, ratios.gamma_root * v[ratios.at_j]
        stiffness = ratios.price / ratios.slack
        both = np.bincount(ratios.at_i, stiffness * left * left, blocks * size)
        both += np.bincount(ratios.at_j, stiffness * right * right, blocks * size)
        diagonals[:, :size] += both.reshape(blocks, size)
        crossed = stiffness * left * right
        upper, lower = ratios.i * width + ratios.j, ratios.j * width + ratios.i
    on_diagonal = np.arange(width) * (width + 1)

    def assemble(o: int, hessian: FloatArray) -> None:
        hessian[:] = 0.0
        flat = hessian.reshape(-1)
        if ratios is not None:
            part = slice(ratios.starts[o], ratios.starts[o + 1])
            flat[upper[part]] = crossed[part]
            flat[lower[part]] += crossed[part]
        flat[on_diagonal] += diagonals[o]
        if guesses is not None:
            weight = guesses.price[o] / guesses.slack[o]
            rows = guesses.compact * u[o, guesses.support]
            weighted = weight[:, None] * rows
            hessian[np.ix_(guesses.support, guesses.support)] += rows.T @ weighted
            edge = -u[o, -1] * weighted.sum(axis=0)
            hessian[-1, guesses.support] += edge
            hessian[guesses.support, -1] += edge
            hessian[-1, -1] += u[o, -1] ** 2 * weight.sum()

    return assemble
