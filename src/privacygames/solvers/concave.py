"""A small dense primal-dual interior-point method for a smooth concave objective over a linear program's rows.

For the second objective among optimal mechanisms, which is no linear program. Dense: meant for a few thousand
variables. Nothing it returns is trusted: callers bound the maximum themselves.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.programs import LinearProgram
from privacygames.solvers.predictor_corrector import back_off, centring_parameter, max_step

MOST_ITERATIONS = 150
REGULARISE = 1e-12
ROW_TOLERANCE = 1e-9
LEAST_SLACK, FIRST_PRODUCT = 1e-3, 1e-2


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
        program: the rows; variables with a lower bound keep strictly above it.
        start: within the lower bounds, strictly; rows may be missed.
        tolerance: the total complementarity to stop at: about how much the maximum is missed by.
    """
    point = _Point(program, start)
    iterates = [start]
    while len(iterates) <= MOST_ITERATIONS and not point.finished(tolerance):
        gradient = -objective.gradient(point.values)
        try:
            factor = point.factorise(objective.curvature(point.values))
        except np.linalg.LinAlgError:  # as far as the numbers go
            break
        aimed = point.direction(factor, gradient, 0.0, None)
        share = point.max_step(aimed)
        reached = float(((point.slack + share * aimed.slack) * (point.dual + share * aimed.dual)).mean())
        step = point.direction(factor, gradient, centring_parameter(reached / point.mean) * point.mean, aimed)
        point.move(step, back_off(point.max_step(step)))
        if not np.isfinite(point.values).all():
            break
        iterates.append(point.values.copy())
    return iterates


@dataclass(frozen=True)
class _Step:
    values: FloatArray
    sums: FloatArray
    slack: FloatArray
    dual: FloatArray


class _Point:
    """An iterate: values z, multipliers of the equations, slacks and duals of Gz + slack = h."""

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
        rows = len(slack) - int(bounded.sum())
        slack[:rows] = np.maximum(
            slack[:rows], 1e-3 * (1 + np.abs(self.limits[:rows]))
        )  # bounds start exact, and stay so
        self.slack = slack
        self.dual = FIRST_PRODUCT / slack
        self.sums = np.zeros(len(self.right))

    @property
    def mean(self) -> float:
        return float((self.slack * self.dual).mean())

    def finished(self, tolerance: float) -> bool:
        return self.mean * len(self.slack) <= tolerance and float(np.abs(self._missed_rows()).max()) <= ROW_TOLERANCE

    def _missed_rows(self) -> FloatArray:
        return np.asarray(self.rows @ self.values + self.slack - self.limits)

    def _missed_sums(self) -> FloatArray:
        return np.asarray(self.equations @ self.values - self.right)

    def _dual(self, gradient: FloatArray) -> FloatArray:
        return np.asarray(gradient + self.equations.T @ self.sums + self.rows.T @ self.dual)

    def factorise(self, curvature: FloatArray) -> tuple[Any, Any, FloatArray]:
        from scipy.linalg import cho_factor, cho_solve
        from scipy.sparse import diags_array

        weighted = diags_array(self.dual / self.slack) @ self.rows
        hessian = curvature + (self.rows.T @ weighted).toarray()
        hessian[np.diag_indices_from(hessian)] *= 1 + REGULARISE
        factor = cho_factor(hessian)
        across = cho_solve(factor, self.equations.T.toarray())
        return factor, cho_factor(self.equations @ across), across

    def direction(
        self, factored: tuple[Any, Any, FloatArray], gradient: FloatArray, target: float, aimed: "_Step | None"
    ) -> _Step:
        from scipy.linalg import cho_solve

        factor, schur, across = factored
        missed = self._missed_rows()
        products = self.slack * self.dual - target
        if aimed is not None:
            products = products + aimed.slack * aimed.dual
        weight = self.dual / self.slack
        right = -self._dual(gradient) - self.rows.T @ (weight * missed - products / self.slack)
        sums = cho_solve(schur, self.equations @ cho_solve(factor, right) + self._missed_sums())
        values = cho_solve(factor, right) - across @ sums
        slack = -missed - self.rows @ values
        dual = -(products + self.dual * slack) / self.slack
        return _Step(values, sums, slack, dual)

    def max_step(self, step: _Step) -> float:
        return min(max_step(self.slack, step.slack), max_step(self.dual, step.dual))

    def move(self, step: _Step, share: float) -> None:
        self.values += share * step.values
        self.sums += share * step.sums
        self.slack += share * step.slack
        self.dual += share * step.dual
