"""Blocking constraints: the few inequalities that limit a step, whose complementarity is solved without linearisation.

Newton's direction takes s z to be linear, and where an inequality is about to bind, or to let go, that is far from
true. There are a few such inequalities among a hundred thousand, but the step is as long as the worst of them allows.
Shifting the dual value of an inequality changes the direction linearly; how all blocking constraints respond to shifts
of each is a small matrix, which costs a solution with one block each. With it their true complementarity is solved
(``smoothed_complementarity.py``), the direction is changed accordingly, and the inequalities that limit the new
direction join them. docs/theory/solver.md has the equations.
"""

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.solvers.interior import smoothed_complementarity
from privacygames.solvers.interior.newton import Direction, Newton
from privacygames.solvers.interior.sensitivities import SelectedInequalities, Sensitivities
from privacygames.solvers.interior.settings import InteriorSettings


def lengthened_direction(newton: Newton, base: Direction, target: float, settings: InteriorSettings) -> Direction:
    """A direction that allows longer steps than a given one, or that one.

    Args:
        newton: the Newton system.
        base: the direction.
        target: the products that the blocking constraints should reach.
        settings: the number of constraints per round, and of rounds.
    """
    blocking = _BlockingConstraints(newton, base, target, settings)
    best = base
    rounds = settings.blocking_rounds
    if not newton.on_device:
        rounds = max(rounds, newton.secret_count // settings.secrets_per_blocking_round)
    for round_index in range(min(rounds, settings.max_blocking_rounds)):
        if (
            round_index >= settings.blocking_rounds
            and min(best.primal_step, best.dual_step) >= settings.sufficient_step
        ):
            break
        limiting = newton.blocking_inequalities(
            blocking.direction, base, 1 / settings.nonblocking_step, settings.blocking_per_round
        )
        direction = blocking.extend(limiting)
        if direction is None:
            break
        if _merit(direction, settings) > _merit(best, settings) + settings.min_step_gain:
            best = direction
    return best


class _BlockingConstraints:
    """The blocking constraints of a direction, and the direction with shifts of their dual values."""

    def __init__(self, newton: Newton, base: Direction, target: float, settings: InteriorSettings) -> None:
        self._newton, self._base, self._target, self._settings = newton, base, target, settings
        self._selected: tuple[SelectedInequalities, Sensitivities] | None = None
        self._response = np.zeros((0, 0))
        self._shifts = np.zeros(0)
        self.direction = base

    def extend(self, others: SelectedInequalities) -> Direction | None:
        """The direction with more blocking constraints; None if none are new, or no shifts solve their system."""
        newton = self._newton
        new = others if self._selected is None else self._selected[0].difference(others)
        if not len(new.index):
            return None
        new_sensitivities = newton.sensitivities(new)
        selected, sensitivities = new, new_sensitivities
        if self._selected is not None:
            selected = self._selected[0].concatenate(new)
            sensitivities = self._selected[1].concatenate(new_sensitivities)
        self._selected = selected, sensitivities
        self._response = _extend_symmetric(self._response, new_sensitivities.response_to(sensitivities))
        slack, dual, ds, dz = selected.values
        initial = np.pad(self._shifts, (0, len(new.index)))
        shifts = smoothed_complementarity.solve(
            (slack, dual), (ds, dz), self._response, self._target, initial, settings=self._settings
        )
        if shifts is None:
            return None
        self._shifts = shifts
        self.direction = newton.shift_duals(self._base, selected, sensitivities, shifts)
        return self.direction


def _extend_symmetric(matrix: FloatArray, rows: FloatArray) -> FloatArray:
    """A symmetric matrix with more rows, and their transposes as columns."""
    old, size = len(matrix), rows.shape[1]
    extended = np.empty((size, size))
    extended[:old, :old], extended[old:], extended[:old, old:] = matrix, rows, rows[:, :old].T
    extended[old:, old:] = (rows[:, old:] + rows[:, old:].T) / 2
    return extended


def _merit(direction: Direction, settings: InteriorSettings) -> float:
    """The value of a direction's step lengths: the shorter counts most, because both must make progress."""
    primal, dual = direction.primal_step, direction.dual_step
    return min(primal, dual) + settings.step_sum_weight * (primal + dual)
