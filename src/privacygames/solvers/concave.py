"""A small dense primal-dual interior-point method: a smooth concave objective over a linear program's rows.

For the second objective among optimal mechanisms, which is no linear program. Dense: meant for a few thousand
variables. Nothing it returns is trusted: callers bound the maximum themselves.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.programs import LinearProgram
from privacygames.solvers.predictor_corrector import back_off, centring_parameter, max_step

MAX_ITERATIONS = 150
"""Iterations after which the method ends with what it has: five times what ordinary problems take."""

REGULARISATION = 1e-12
"""Relative increase of the Hessian's diagonal, for objectives that are flat in some direction."""

ROW_TOLERANCE = 1e-9
"""Largest violation of a row at the end."""

MIN_SLACK, INITIAL_PRODUCT = 1e-3, 1e-2
"""Least slack of a row at the start, relative to its limit; and every product slack·dual there."""


class Smooth(Protocol):
    """A concave function, to be maximised, of all variables of a program."""

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
        except np.linalg.LinAlgError:  # as far as the arithmetic goes
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
        rows = len(slack) - int(bounded.sum())  # lower bounds hold exactly at the start, and stay so
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
        across = cho_solve(factors, self.equations.T.toarray())
        return factors, cho_factor(self.equations @ across), across

    def direction(
        self, factorised: tuple[Any, Any, FloatArray], gradient: FloatArray, target: float, affine: "_Direction | None"
    ) -> _Direction:
        """Newton's direction towards products equal to the target, with Mehrotra's second-order term of the affine."""
        from scipy.linalg import cho_solve

        factors, schur, across = factorised
        residual = self._row_residual()
        products = self.slack * self.dual - target
        if affine is not None:
            products = products + affine.slack * affine.dual
        weight = self.dual / self.slack
        right = -self._dual_residual(gradient) - self.rows.T @ (weight * residual - products / self.slack)
        equation_dual = cho_solve(schur, self.equations @ cho_solve(factors, right) + self._equation_residual())
        values = cho_solve(factors, right) - across @ equation_dual
        slack = -residual - self.rows @ values
        dual = -(products + self.dual * slack) / self.slack
        return _Direction(values, equation_dual, slack, dual)

    def max_step(self, direction: _Direction) -> float:
        return min(max_step(self.slack, direction.slack), max_step(self.dual, direction.dual))

    def move(self, direction: _Direction, step: float) -> None:
        self.values += step * direction.values
        self.equation_dual += step * direction.equation_dual
        self.slack += step * direction.slack
        self.dual += step * direction.dual
