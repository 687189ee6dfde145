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

SMOOTHER = 0.01
"""Where products to aim for are larger than the target at first, they are by this less each time they are reached."""

AGAIN, WORTHWHILE = 3, 0.5
"""Each factorisation serves so many steps more, while what is missed is at least halved."""


@np.errstate(over="ignore", invalid="ignore")  # where numbers overflow, nothing is found
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
    # In units in which slacks and dual values are of one size, and forces as dual values are.
    inverse = 1 / scale
    system = _System(s * inverse, z * scale, weight * scale**2, response * inverse * inverse[:, None])
    first = system.at(started * scale, target)
    if first.solved:
        return started
    for smoothed in (False, True):  # the second takes up to twice as long, and finds what the first does not
        reached: _Reached | None = first
        for _ in range(MOST_ITERATIONS):
            if reached is None:
                break
            if smoothed:
                reached = reached.smoothed(target)
            if reached.solved and reached.target == target:
                return reached.force * inverse
            reached = system.step(reached)
    return None


class _Reached:
    """Forces, the slacks a and dual values b they lead to, and what these miss of products that are a target."""

    def __init__(self, force: FloatArray, a: FloatArray, b: FloatArray, target: float) -> None:
        self.force, self.target, self._both = force, target, (a, b)
        self._apart, total = a - b, a + b
        self._root = np.sqrt(self._apart * self._apart + 4 * target)
        self.missed: FloatArray = total - self._root
        self.size = float(self.missed @ self.missed) ** 0.5
        self.solved = bool(np.abs(a * b - target).max() < ACCURATE * target and total.min() > 0)

    def smoothed(self, target: float) -> "_Reached":
        """The same with products to aim for that are as large as what is missed: they come down to the target."""
        larger = self.size**2 / len(self.force)
        if self.target > target:
            larger = min(larger, SMOOTHER * self.target if self.solved else self.target)
        return _Reached(self.force, *self._both, max(larger, target))

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


class _System:
    """What forces lead to: slacks s + R f and dual values z + f − w (R f)."""

    def __init__(self, s: FloatArray, z: FloatArray, weight: FloatArray, response: FloatArray) -> None:
        self._s, self._z, self._weight, self._response = s, z, weight, response
        self._rough = response.astype(np.float32)
        self._matrix = np.empty_like(self._rough)

    def at(self, force: FloatArray, target: float) -> _Reached:
        """Where these forces lead."""
        answer = self._response @ force
        return _Reached(force, self._s + answer, self._z + force - self._weight * answer, target)

    def step(self, reached: _Reached) -> _Reached | None:
        """Newton's step, and others with the same factors; None where it leads nowhere."""
        by_a, by_b = reached.slopes
        matrix = self._matrix
        np.multiply(self._rough, (by_a - by_b * self._weight).astype(np.float32), out=matrix)
        matrix.reshape(-1)[:: len(matrix) + 1] += by_b.astype(np.float32)
        # Transposed, as LAPACK takes it.
        factors, pivots, more, failed = lapack.sgesv(matrix.T, reached.direction, overwrite_a=1, overwrite_b=1)
        if failed:
            return None
        for halving in range(HALVINGS):
            found = self.at(reached.force + 0.5**halving * reached.size * more, reached.target)
            if found.size <= (1 - PROGRESS * 0.5**halving) * reached.size:
                break
        else:
            return None
        for _ in range(0 if halving else AGAIN):
            before = found
            if before.solved:
                break
            more, _ = lapack.sgetrs(factors, pivots, before.direction)
            found = self.at(before.force + before.size * more, before.target)
            if not found.size < before.size:
                return before
            if found.size > WORTHWHILE * before.size:
                break
        return found
