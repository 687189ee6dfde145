"""A small complementarity system, for the blocking constraints of a step, solved by a smoothing Newton method.

Along a direction, shifts f of the dual values of a few inequalities change their slacks by R f, linearly. With p and q
the slacks and dual values that the direction leads to and w = dual/slack the weights in the Newton matrix, the system

    s = p + R f,    z = q + f − w (R f),    s z = τ,    s > 0,    z > 0

has one solution, because R is positive semidefinite, and so is what remains of the Newton matrix without these
inequalities. With a = s/σ and b = σ z, the last three are one equation for each inequality,
a + b = √((a − b)² + 4τ) (Chen, Harker, Kanzow and Smale), which is smooth and needs no signs on the way, so that
Newton's steps are seldom cut.
"""

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray
from privacygames.blas_routines import routine
from privacygames.solvers.interior.settings import DEFAULTS, InteriorSettings

_gesv = routine("sgesv", 8)
_getrs = routine("sgetrs", 9)
_PLAIN = b"N"


@np.errstate(over="ignore", invalid="ignore")  # where numbers overflow, there is no solution to return
def solve(
    slack_dual: tuple[FloatArray, FloatArray],
    change: tuple[FloatArray, FloatArray],
    response: FloatArray,
    target: float,
    initial: FloatArray,
    *,
    settings: InteriorSettings | None = None,
) -> FloatArray | None:
    """The shifts under which slacks and dual values end up positive, with products equal to the target.

    Args:
        slack_dual: slacks and dual values before the step.
        change: how a direction changes both.
        response: R, symmetric.
        target: τ.
        initial: shifts to start from.
        settings: accuracy and effort.

    Returns:
        The shifts; None where the iteration did not converge.
    """
    settings = settings or DEFAULTS
    slack, dual = slack_dual
    weight, response_now = dual / slack, response @ initial
    s, z = slack + change[0], dual + change[1]
    scale = np.sqrt((np.abs(s + response_now) + slack) / (np.abs(z + initial - weight * response_now) + dual))
    # In units in which slacks and dual values have the same size, and shifts that of dual values.
    inverse = 1 / scale
    system = _System(s * inverse, z * scale, weight * scale**2, response * inverse * inverse[:, None], settings)
    first = system.at(initial * scale, target)
    if first.solved:
        return initial
    for smoothed in (False, True):  # the second takes up to twice as long, and converges where the first does not
        iterate: _Iterate | None = first
        for _ in range(settings.smoothing_iterations):
            if iterate is None:
                break
            if smoothed:
                iterate = iterate.smooth(target, settings)
            if iterate.solved and iterate.target == target:
                return iterate.shifts * inverse
            iterate = system.step(iterate)
    return None


class _Iterate:
    """Shifts, the slacks a and dual values b they lead to, and the residual of the smoothed equations."""

    def __init__(self, shifts: FloatArray, a: FloatArray, b: FloatArray, target: float, accuracy: float) -> None:
        self.shifts, self.target, self._pair, self._accuracy = shifts, target, (a, b), accuracy
        self._difference, total = a - b, a + b
        self._root = np.sqrt(self._difference * self._difference + 4 * target)
        self.residual: FloatArray = total - self._root
        self.norm = float(self.residual @ self.residual) ** 0.5
        self.solved = bool(np.abs(a * b - target).max() < accuracy * target and total.min() > 0)

    def smooth(self, target: float, settings: InteriorSettings) -> "_Iterate":
        """The same with a larger target, as large as the residual, which is reduced towards the actual one."""
        larger = self.norm**2 / len(self.shifts)
        if self.target > target:
            larger = min(larger, settings.smoothing_reduction * self.target if self.solved else self.target)
        return _Iterate(self.shifts, *self._pair, max(larger, target), self._accuracy)

    @property
    def right(self) -> NDArray[np.float32]:
        """Minus the residual, normalised."""
        normalised: NDArray[np.float32] = (self.residual / -self.norm).astype(np.float32)
        return normalised

    @property
    def derivatives(self) -> tuple[FloatArray, FloatArray]:
        """Derivatives of the residual with respect to a and b: 1 ∓ (a − b)/root."""
        ratio = self._difference / self._root
        return 1 - ratio, 1 + ratio


class _System:
    """The smoothed equations: slacks s + R f, and dual values z + f − w (R f).

    Newton's directions are computed in single precision, residuals in double.
    """

    def __init__(
        self, s: FloatArray, z: FloatArray, weight: FloatArray, response: FloatArray, settings: InteriorSettings
    ) -> None:
        self._s, self._z, self._weight, self._response, self._settings = s, z, weight, response, settings
        self._single_response = response.astype(np.float32)
        self._matrix = np.empty(response.shape, dtype=np.float32)
        # What LAPACK is called with, by address: the number of equations, 1, a place for its error code; row exchanges.
        self._numbers = np.array([len(response), 1, 0], dtype=np.intc)
        self._exchanges = np.empty(len(response), dtype=np.intc)
        start, width = self._numbers.ctypes.data, self._numbers.itemsize
        self._size, self._one, self._info = start, start + width, start + 2 * width
        self._factors = self._matrix.ctypes.data, self._size, self._exchanges.ctypes.data

    def at(self, shifts: FloatArray, target: float) -> _Iterate:
        """The iterate with these shifts."""
        response = self._response @ shifts
        dual = self._z + shifts - self._weight * response
        return _Iterate(shifts, self._s + response, dual, target, self._settings.smoothing_accuracy)

    def step(self, iterate: _Iterate) -> _Iterate | None:
        """Newton's step, and more with the same factorisation; None where no step length reduces the residual."""
        settings = self._settings
        by_a, by_b = iterate.derivatives
        matrix = self._matrix
        np.multiply(self._single_response, (by_a - by_b * self._weight).astype(np.float32), out=matrix)
        matrix.reshape(-1)[:: len(matrix) + 1] += by_b.astype(np.float32)
        direction = self._factor_and_solve(iterate.right)
        if direction is None:
            return None
        for halving in range(settings.smoothing_halvings):
            step = 0.5**halving
            trial = self.at(iterate.shifts + step * iterate.norm * direction, iterate.target)
            if trial.norm <= (1 - settings.smoothing_decrease * step) * iterate.norm:
                break
        else:
            return None
        for _ in range(0 if halving else settings.smoothing_reuses):
            before = trial
            if before.solved:
                break
            trial = self.at(before.shifts + before.norm * self._solve(before.right), before.target)
            if not trial.norm < before.norm:
                return before
            if trial.norm > settings.smoothing_reuse_reduction * before.norm:
                break
        return trial

    def _factor_and_solve(self, right: NDArray[np.float32]) -> NDArray[np.float32] | None:
        """Replace the matrix by its LU factors, as LAPACK reads it, and solve in place; None where it is singular."""
        _gesv(self._size, self._one, *self._factors, right.ctypes.data, self._size, self._info)
        return None if self._numbers[2] else right

    def _solve(self, right: NDArray[np.float32]) -> NDArray[np.float32]:
        """Solve in place with the factors of the matrix."""
        _getrs(_PLAIN, self._size, self._one, *self._factors, right.ctypes.data, self._size, self._info)
        return right
