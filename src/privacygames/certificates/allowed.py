"""Which outputs each secret may give, where infinite costs forbid some."""

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray
from privacygames.problem import Bounds


def allowed_outputs(cost: FloatArray, distinguishability: FloatArray, bounds: Bounds) -> NDArray[np.bool_]:
    """Whether p(o|s) may be positive, (secrets, outputs).

    It must be 0 where c(o,s) = ∞; and, since p(o|s) ≤ γ(s,s') p(o|s'), also where it must be 0 for some s' to which the
    ratio of s is bounded, and so on along chains of such pairs.

    Args:
        cost: c(o,s), (outputs, secrets).
        distinguishability: d^ε(s,s'), (secrets, secrets).
        bounds: which say between which secrets ratios are bounded.
    """
    allowed = np.isfinite(cost.T)
    if allowed.all():
        return allowed
    bounded = np.isfinite(bounds.log_ratio_bounds(distinguishability)).astype(np.float64)
    while True:
        forbidden = (~allowed).astype(np.float64)
        remaining = allowed & (bounded @ forbidden == 0)  # what s' may not give, s may not, where (s, s') is bounded
        if (remaining == allowed).all():
            return allowed
        allowed = remaining
