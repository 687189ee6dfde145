"""A dense primal-dual interior-point method for a smooth concave objective subject to a linear program's rows.

It maximises the second objective among optimal mechanisms, which is not linear. Linear algebra is dense, for up to a
few thousand variables. Callers do not trust what it returns: they bound the maximum themselves.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.programs import LinearProgram
from privacygames.solvers.predictor_corrector import back_off, centring_parameter, max_step

MAX_ITERATIONS = 150
"""Iterations after which the method ends with its last iterate: five times what ordinary problems take."""

REGULARISATION = 1e-12
"""Relative increase of the Hessian's diagonal, for objectives that are flat in some direction."""

ROW_TOLERANCE = 1e-9
"""Largest violation of a row at the end."""

MIN_SLACK, INITIAL_PRODUCT = 1e-3, 1e-2
"""Smallest initial slack of a row, relative to its limit; and the initial value of every product slack·dual."""


class Smooth(Protocol):
    """A smooth concave function of all variables of a program, to be maximised."""

    def gradient(self, values: FloatArray) -> FloatArray:
        """Its gradient."""

    def curvature(self, values: FloatArray) -> FloatArray:
        """Minus its Hessian, dense."""


def maximise(objective: Smooth, program: LinearProgram, start: FloatArray, *, tolerance: float) -> list[FloatArray]:
    """The iterates on the way to the maximum of ``objective`` subject to the rows of ``program``, the best one last.

    The program's own objective is ignored.

    Args:
        objective: smooth wherever the variables that have a lower bound lie above it.
        program: the rows; variables with a lower bound stay strictly above it.
        start: strictly within the lower bounds; rows may be violated.
        tolerance: total complementarity to stop at, about the distance to the maximum.
    """
    point = _Point(program, start)
    iterates = [start]
    while len(iterates) <= MAX_ITERATIONS and not point.converged(tolerance):
        gradient = -objective.gradient(point.values)
        try:
            factors = point.factorise(objective.curvature(point.values))
        except np.linalg.LinAlgError:  # rounding errors exceed what remains to gain
            break
        affine = point.direction(factors, gradient, 0.0, None)
        step = point.max_step(affine)
        remaining = float(((point.slack + step * affine.slack) * (point.dual + step * affine.dual)).mean())
        target = centring_parameter(remaining / point.mean_product) * point.mean_product
        direction = point.direction(factors, gradient, target, affine)
        point.move(direction, back_off(point.max_step(direction)))
        if not np.isfinite(point.values).all():
            break
        iterates.append(point.values.copy())
    return iterates


@dataclass(frozen=True)
class _Direction:
    values: FloatArray
    equation_dual: FloatArray
    slack: FloatArray
    dual: FloatArray


class _Point:
    """An iterate: values, dual values of the equations, and slacks and dual values of rows·values + slack = limits."""

    def __init__(self, program: LinearProgram, start: FloatArray) -> None:
        from scipy.sparse import eye_array, vstack

        lower, upper, matrix = program.row_lower, program.row_upper, program.matrix
        equal, above, below = lower == upper, (lower < upper) & np.isfinite(lower), (lower < upper) & np.isfinite(upper)
        bounded = np.isfinite(program.variable_lower)
        self.equations, self.right = matrix[equal], upper[equal]
        identity = eye_array(len(start), format="csr")
        self.rows: Any = vstack([matrix[below], -matrix[above], -identity[bounded]]).tocsr()
        self.limits = np.concatenate([upper[below], -lower[above], -program.variable_lower[bounded]])
        self.values = start.copy()
        slack = self.limits - self.rows @ start
        rows = len(slack) - int(bounded.sum())  # lower bounds hold at the start without adjustment
        slack[:rows] = np.maximum(slack[:rows], MIN_SLACK * (1 + np.abs(self.limits[:rows])))
        self.slack = slack
        self.dual = INITIAL_PRODUCT / slack
        self.equation_dual = np.zeros(len(self.right))

    @property
    def mean_product(self) -> float:
        return float((self.slack * self.dual).mean())

    def converged(self, tolerance: float) -> bool:
        small = self.mean_product * len(self.slack) <= tolerance
        return small and float(np.abs(self._row_residual()).max()) <= ROW_TOLERANCE

    def _row_residual(self) -> FloatArray:
        return np.asarray(self.rows @ self.values + self.slack - self.limits)

    def _equation_residual(self) -> FloatArray:
        return np.asarray(self.equations @ self.values - self.right)

    def _dual_residual(self, gradient: FloatArray) -> FloatArray:
        return np.asarray(gradient + self.equations.T @ self.equation_dual + self.rows.T @ self.dual)

    def factorise(self, curvature: FloatArray) -> tuple[Any, Any, FloatArray]:
        """Factors of the Hessian H and of the equations' Schur complement, and H⁻¹ times the equations' transpose."""
        from scipy.linalg import cho_factor, cho_solve
        from scipy.sparse import diags_array

        weighted = diags_array(self.dual / self.slack) @ self.rows
        hessian = curvature + (self.rows.T @ weighted).toarray()
        hessian[np.diag_indices_from(hessian)] *= 1 + REGULARISATION
        factors = cho_factor(hessian)
        solved_transpose = cho_solve(factors, self.equations.T.toarray())
        return factors, cho_factor(self.equations @ solved_transpose), solved_transpose

    def direction(
        self, factorised: tuple[Any, Any, FloatArray], gradient: FloatArray, target: float, affine: "_Direction | None"
    ) -> _Direction:
        """Newton's direction towards products equal to the target, with Mehrotra's second-order term of the affine."""
        from scipy.linalg import cho_solve

        factors, schur, solved_transpose = factorised
        row_residual = self._row_residual()
        products = self.slack * self.dual - target
        if affine is not None:
            products = products + affine.slack * affine.dual
        weight = self.dual / self.slack
        rhs = -self._dual_residual(gradient) - self.rows.T @ (weight * row_residual - products / self.slack)
        equation_dual = cho_solve(schur, self.equations @ cho_solve(factors, rhs) + self._equation_residual())
        values = cho_solve(factors, rhs) - solved_transpose @ equation_dual
        slack = -row_residual - self.rows @ values
        dual = -(products + self.dual * slack) / self.slack
        return _Direction(values, equation_dual, slack, dual)

    def max_step(self, direction: _Direction) -> float:
        return min(max_step(self.slack, direction.slack), max_step(self.dual, direction.dual))

    def move(self, direction: _Direction, step: float) -> None:
        self.values += step * direction.values
        self.equation_dual += step * direction.equation_dual
        self.slack += step * direction.slack
        self.dual += step * direction.dual
