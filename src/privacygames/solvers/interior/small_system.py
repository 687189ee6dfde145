"""A small complementarity system: the few inequalities that limit a step, solved for as they are, not linearised.

Along a direction, a system of linear equations answers to forces f on a few inequalities with changes R f of their
slacks. With p and q the slacks and dual values that the direction leads to, w the weights dual/slack in the matrix,

    s = p + R f,    z = q + f − w (R f),    s z = τ,    s > 0,    z > 0

has one solution, because R is positive semidefinite and what the matrix would be without these inequalities is, too.
With a = s/σ and b = σ z, the last three are one equation for each, a + b = √((a − b)² + 4τ) (Chen, Harker, Kanzow and
Smale), which is smooth and asks for no signs on the way: Newton's steps towards it are seldom cut.
"""

import numpy as np
from numpy.typing import NDArray
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
    weight, answer = dual / slack, response @ started
    s, z = slack + change[0], dual + change[1]
    scale = np.sqrt((np.abs(s + answer) + slack) / (np.abs(z + started - weight * answer) + dual))
    # From here on in units in which slacks and dual values are of one size, and forces as dual values are.
    s, z, weight, inverse = s / scale, z * scale, weight * scale**2, 1 / scale
    response = response * inverse * inverse[:, None]
    rough, matrix = response.astype(np.float32), np.empty(response.shape, dtype=np.float32)

    def at(force: FloatArray) -> _Reached:
        answer = response @ force
        return _Reached(force, s + answer, z + force - weight * answer, target)

    reached = at(started * scale)
    for _ in range(MOST_ITERATIONS):
        if reached.solved:
            return reached.force * inverse
        by_a, by_b = reached.slopes
        np.multiply(rough, (by_a - by_b * weight).astype(np.float32), out=matrix)  # transposed, as LAPACK takes it
        matrix.reshape(-1)[:: len(s) + 1] += by_b.astype(np.float32)
        factors, pivots, more, failed = lapack.sgesv(matrix.T, reached.direction, overwrite_a=1, overwrite_b=1)
        if failed:
            return None
        for halving in range(HALVINGS):
            found = at(reached.force + 0.5**halving * reached.size * more)
            if found.size <= (1 - PROGRESS * 0.5**halving) * reached.size:
                break
        else:
            return None
        reached = found
        for _ in range(0 if halving else AGAIN):
            more, _ = lapack.sgetrs(factors, pivots, reached.direction)
            found, before = at(reached.force + reached.size * more), reached.size
            if not found.size < before:
                break
            reached = found
            if reached.solved or reached.size > WORTHWHILE * before:
                break
    return None


class _Reached:
    """Forces, the slacks and dual values they lead to, and what these miss."""

    def __init__(self, force: FloatArray, a: FloatArray, b: FloatArray, target: float) -> None:
        self.force, self._target = force, target
        self._apart, total = a - b, a + b
        self._root = np.sqrt(self._apart * self._apart + 4 * target)
        self.missed: FloatArray = total - self._root
        self.size = float(self.missed @ self.missed) ** 0.5
        self.solved = bool(np.abs(a * b - target).max() < ACCURATE * target and total.min() > 0)

    @property
    def direction(self) -> NDArray[np.float32]:
        """Where what is missed vanishes, of length one."""
        found: NDArray[np.float32] = (self.missed / -self.size).astype(np.float32)
        return found

    @property
    def slopes(self) -> tuple[FloatArray, FloatArray]:
        """How what is missed grows with a, and with b: 1 ∓ (a − b)/r."""
        share = self._apart / self._root
        return 1 - share, 1 + share
