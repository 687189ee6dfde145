"""A small complementarity system: the few inequalities that limit a step, solved for as they are, not linearised.

Along a direction, a system of linear equations answers to forces f on a few inequalities with changes R f of their
slacks. With p and q the slacks and dual values that the direction leads to, w the weights dual/slack in the matrix,

    s = p + R f,    z = q + f − w (R f),    s z = τ,    s > 0,    z > 0

has one solution, because R is positive semidefinite and what the matrix would be without these inequalities is, too.
With a = s/σ and b = σ z, the last three are one equation for each, a + b = √((a − b)² + 4τ) (Chen, Harker, Kanzow and
Smale), which is smooth and asks for no signs on the way: Newton's steps towards it are seldom cut.
"""

import numpy as np
from scipy.linalg import lapack

from privacygames.arrays import FloatArray

MOST_ITERATIONS = 30
ACCURATE = 1e-2
"""Products are found when they are within this share of the target."""

HALVINGS, PROGRESS = 8, 1e-4
"""A step is halved so often at most, until it takes this share of its length off what is missed."""

AGAIN, WORTHWHILE = 3, 0.5
"""Each factorisation serves so many steps more, while what is missed is at least halved."""


def forces(
    now: tuple[FloatArray, FloatArray],
    change: tuple[FloatArray, FloatArray],
    response: FloatArray,
    target: float,
    started: FloatArray,
) -> FloatArray | None:
    """The forces under which slacks and dual values end up positive, with products that are the target.

    Args:
        now: slacks and dual values before the step.
        change: how a direction changes both.
        response: R, symmetric.
        target: τ.
        started: forces to start from.

    Returns:
        The forces; None where they were not found.
    """
    slack, dual = now
    weight, matrix = dual / slack, np.empty(response.shape)
    s, z = slack + change[0], dual + change[1]
    answer = response @ started
    scale = np.sqrt((np.abs(s + answer) + slack) / (np.abs(z + started - weight * answer) + dual))
    s, z, stiff = s / scale, z * scale, weight * scale

    def at(force: FloatArray, answer: FloatArray) -> _Reached:
        return _Reached(force, answer, s + answer / scale, z + force * scale - stiff * answer, target)

    point = at(started, answer)
    for _ in range(MOST_ITERATIONS):
        if point.solved:
            return point.force
        by_a, by_b = point.slopes
        np.multiply(response, by_a / scale - by_b * stiff, out=matrix)  # transposed, as LAPACK takes it
        matrix.reshape(-1)[:: len(s) + 1] += by_b * scale
        factors, pivots, more, failed = lapack.dgesv(matrix.T, -point.missed, overwrite_a=1, overwrite_b=1)
        if failed:
            return None
        moved = response @ more
        for halving in range(HALVINGS):
            step = 0.5**halving
            found = at(point.force + step * more, point.answer + step * moved)
            if found.size <= (1 - PROGRESS * step) * point.size:
                break
        else:
            return None
        point = found
        for _ in range(0 if halving else AGAIN):
            more, _ = lapack.dgetrs(factors, pivots, -point.missed)
            found = at(point.force + more, point.answer + response @ more)
            if not found.size < point.size:
                break
            point, before = found, point.size
            if point.solved or point.size > WORTHWHILE * before:
                break
    return None


class _Reached:
    """Forces, how slacks answer, both sides of each inequality in their own units, and what these miss."""

    def __init__(self, force: FloatArray, answer: FloatArray, a: FloatArray, b: FloatArray, target: float) -> None:
        self.force, self.answer, self._target = force, answer, target
        self._apart, product, total = a - b, a * b - target, a + b
        self._root = np.hypot(self._apart, 2 * target**0.5)
        # (a + b)² − r² = 4 (a b − τ): where both have the same size, a + b − r would be all rounding.
        self.missed = np.where(total > 0, 4 * product / (np.abs(total) + self._root), total - self._root)
        self.size = float(self.missed @ self.missed) ** 0.5
        self.solved = bool((total > 0).all() and np.abs(product).max() < ACCURATE * target)

    @property
    def slopes(self) -> tuple[FloatArray, FloatArray]:
        """How what is missed grows with a, and with b: 1 ∓ (a − b)/r."""
        smaller = 4 * self._target / (self._root * (self._root + np.abs(self._apart)))
        larger, which = 2 - smaller, self._apart > 0
        return np.where(which, smaller, larger), np.where(which, larger, smaller)
