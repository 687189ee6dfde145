"""A small complementarity system: the few inequalities that limit a step, solved for as they are, not linearised.

Along a direction, a system of linear equations answers to forces f on a few inequalities with changes R f of their
slacks. With p and q the slacks and dual values that the direction leads to, w the weights dual/slack in the matrix,

    s = p + R f,    z = q + f − w (R f),    s z = τ,    s > 0,    z > 0

has one solution, because R is positive semidefinite and what the matrix would be without these inequalities is, too.
Newton's steps towards it solve with diag(s) + diag(z − s w) R.
"""

import numpy as np
from scipy.linalg import lapack

from privacygames.arrays import FloatArray

MOST_ITERATIONS = 30
ACCURATE = 1e-2
BACK_OFF = 0.95
SHARE, SOLVED = 0.1, 0.9
"""Slacks and dual values start at no less than the first share of what they were before the step, but where products
are within the second of the target."""


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
    p, q, weight = slack + change[0], dual + change[1], dual / slack
    force, answer, matrix = started, response @ started, np.empty(response.shape)
    s, z = p + answer, q + force - weight * answer
    solved = (s > 0) & (np.abs(s * z - target) < SOLVED * target)
    s, z = np.where(solved, s, np.maximum(s, SHARE * slack)), np.where(solved, z, np.maximum(z, SHARE * dual))
    for _ in range(MOST_ITERATIONS):
        lacks, misses, wanted = p + answer - s, q + force - weight * answer - z, target - s * z
        if max(np.abs(wanted).max() / target, np.abs(lacks / s).max(), np.abs(misses / z).max()) < ACCURATE:
            return force
        np.multiply(response, z - s * weight, out=matrix)  # transposed, as LAPACK takes it
        matrix.reshape(-1)[:: len(s) + 1] += s
        _, _, more, failed = lapack.dgesv(matrix.T, wanted - s * misses - z * lacks, overwrite_a=1, overwrite_b=1)
        if failed:
            return None
        moved = response @ more
        ds, dz = moved + lacks, more - weight * moved + misses
        fastest = max(float((-ds / s).max()), float((-dz / z).max()))
        if not np.isfinite(fastest):
            return None
        step = min(1.0, BACK_OFF / max(fastest, BACK_OFF))
        s, z, force, answer = s + step * ds, z + step * dz, force + step * more, answer + step * moved
    return None
