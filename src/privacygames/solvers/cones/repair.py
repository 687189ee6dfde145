"""Removal of rounding from a mechanism: rows that sum to one, in the cones, with the distortions required."""

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.solvers.cones.program import ConeProgram
from privacygames.solvers.cones.second_order import length

ROUNDING = 1e-13
"""Deviation of Σ_o v_o from 1 that is left as it is."""


def repair(program: ConeProgram, v: FloatArray) -> FloatArray:
    """Normalise, and mix with the uniform mechanism as far as that violates a condition.

    Late directions are solved for in matrices that are nearly singular, and the sums of v drift from 1.
    """
    sums = v.sum(axis=0)
    if float(np.abs(sums - 1).max()) <= ROUNDING:
        return v
    v = np.maximum(v, 0.0) / sums
    uniform = np.full_like(v, 1 / len(v))
    slack, room = _margins(program, v), _margins(program, uniform)
    short = slack < 0
    if not short.any():
        return v
    share = float((-slack[short] / (room[short] - slack[short])).max()) * (1 + 1e-9)
    return np.asarray((1 - share) * v + share * uniform)


def _margins(program: ConeProgram, v: FloatArray) -> FloatArray:
    """What is left of each cone, and of each distortion; all of them are concave in v."""
    cones = program.cone_slacks(v)
    distortions = [
        float((v @ program.errors[adversary].T).min(axis=1).sum()) - required
        for adversary, required in zip(program.bounded, program.distortions, strict=True)
    ]
    return np.concatenate([(cones[0] - length(cones[1:])).ravel(), distortions])
