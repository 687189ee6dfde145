"""A small complementarity system: the few inequalities that limit a step, solved for as they are, not linearised.

Along a direction, a system of linear equations answers to forces f on a few inequalities with changes R f of their
slacks. With p and q the slacks and dual values that the direction leads to, w the weights dual/slack in the matrix,

    s = p + R f,    z = q + f − w (R f),    s z = τ,    s > 0,    z > 0

has one solution, because R is positive semidefinite and what the matrix would be without these inequalities is, too.
"""

import numpy as np

from privacygames.arrays import FloatArray

MOST_ITERATIONS = 30
ACCURATE = 1e-2
BACK_OFF = 0.95
SHARE = 0.1
"""Slacks and dual values start at no less than this share of what they were before the step."""


def forces(
    slack: FloatArray,
    dual: FloatArray,
    change: tuple[FloatArray, FloatArray],
    response: FloatArray,
    target: float,
) -> FloatArray | None:
    """The forces under which slacks and dual values end up positive, with products that are the target.

    Args:
        slack: the slacks before the step.
        dual: the dual values before the step.
        change: how a direction changes both.
        response: R.
        target: τ.

    Returns:
        The forces; None where they were not found.
    """
    p, q, weight = slack + change[0], dual + change[1], dual / slack
    s, z, force = np.maximum(p, SHARE * slack), np.maximum(q, SHARE * dual), np.zeros(len(slack))
    without = np.eye(len(slack)) - weight[:, None] * response
    for _ in range(MOST_ITERATIONS):
        answer = response @ force
        lacks, misses, wanted = p + answer - s, q + force - weight * answer - z, target - s * z
        if max(np.abs(wanted).max() / target, np.abs(lacks / s).max(), np.abs(misses / z).max()) < ACCURATE:
            return force
        try:
            more = np.linalg.solve(s[:, None] * without + z[:, None] * response, wanted - s * misses - z * lacks)
        except np.linalg.LinAlgError:
            return None
        answer = response @ more
        ds, dz = answer + lacks, more - weight * answer + misses
        fastest = max(float((-ds / s).max()), float((-dz / z).max()))
        if not np.isfinite(fastest):
            return None
        step = min(1.0, BACK_OFF / max(fastest, BACK_OFF))
        s, z, force = s + step * ds, z + step * dz, force + step * more
    return None
