"""The few inequalities that limit a step, not linearised.

A direction of Newton's method takes s z for linear, and where an inequality is about to bind, or to let go, that is
far from true. There are a few such among a hundred thousand, but the steps are as long as the worst of them allows.
A force on an inequality adds to its dual value; how all of the few answer to forces on each is a small matrix, which
costs a solution with one block each. With it their true complementarity is solved (``small_system.py``), the direction
is changed accordingly, and what limits it then joins the few. docs/theory/solver.md has the equations.
"""

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.solvers.interior.newton import Direction, Newton
from privacygames.solvers.interior.sensitivities import Inequalities, Sensitivities
from privacygames.solvers.interior.smoothed_complementarity import forces
from privacygames.solvers.predictor_corrector import MIN_STEP_GAIN

FEW = 80
"""So many more of them are solved for in every round."""

ROUNDS, MOST_ROUNDS, SECRETS_A_ROUND, ENOUGH = 3, 10, 30, 0.5
"""There are so many rounds; and up to so many, one for so many secrets, while a step is shorter than the last: by then
they take as long as the blocks' factors."""

LONG = 0.9
"""Inequalities that allow steps as long as this limit nothing."""


def max_feasible_step(newton: Newton, base: Direction, target: float) -> Direction:
    """A direction with longer steps than a given one, or that."""
    few = _Few(newton, base, target)
    best = base
    rounds = ROUNDS if newton.on_device else max(ROUNDS, newton.size // SECRETS_A_ROUND)
    for at in range(min(rounds, MOST_ROUNDS)):
        if at >= ROUNDS and min(best.primal, best.dual) >= ENOUGH:
            break
        step = few.joined(newton.limiting(few.step, base, 1 / LONG, FEW))
        if step is None:
            break
        if _worth(step) > _worth(best) + MIN_STEP_GAIN:
            best = step
    return best


class _Few:
    """The inequalities that limit a direction, and the direction with forces on them."""

    def __init__(self, newton: Newton, base: Direction, target: float) -> None:
        self._newton, self._base, self._target = newton, base, target
        self._found: tuple[Inequalities, Sensitivities] | None = None
        self._response = np.zeros((0, 0))
        self._force = np.zeros(0)
        self.step = base

    def joined(self, others: Inequalities) -> Direction | None:
        """The direction with forces on others, too; None where none are new, or forces were not found."""
        newton = self._newton
        new = others if self._found is None else self._found[0].new_in(others)
        if not len(new.at):
            return None
        answers = newton.answers(new)
        few, all_answers = new, answers
        if self._found is not None:
            few, all_answers = self._found[0].and_then(new), self._found[1].and_then(answers)
        self._found = few, all_answers
        self._response = _bordered(self._response, answers.to_forces_on(all_answers))
        slack, dual, ds, dz = few.values
        started = np.pad(self._force, (0, len(new.at)))
        force = forces((slack, dual), (ds, dz), self._response, self._target, started)
        if force is None:
            return None
        self._force = force
        self.step = newton.forced(self._base, few, all_answers, force)
        return self.step


def _bordered(before: FloatArray, rows: FloatArray) -> FloatArray:
    """A symmetric matrix with more rows, and the same as columns."""
    old, size = len(before), rows.shape[1]
    found = np.empty((size, size))
    found[:old, :old], found[old:], found[:old, old:] = before, rows, rows[:, :old].T
    found[old:, old:] = (rows[:, old:] + rows[:, old:].T) / 2
    return found


def _worth(step: Direction) -> float:
    """What the lengths of a direction's steps are worth: the shorter counts most, for both have to come along."""
    return min(step.primal, step.dual) + 0.1 * (step.primal + step.dual)
