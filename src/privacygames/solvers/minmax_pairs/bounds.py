"""What an attack and what weights on pairs prove about the least largest error over pairs: a bound each."""

from privacygames.arrays import FloatArray


def largest_error(mechanism: FloatArray, distance: FloatArray, attack: FloatArray) -> float:
    """The largest error over pairs, max d(ŝ,s) Σ_o p(o|s) q(ŝ|o)."""
    return float((distance * (mechanism @ attack).T).max())


def least_error_bound(mechanism: FloatArray, distance: FloatArray, weights: FloatArray) -> float:
    """What no attack gets below, by any weights w ≥ 0 on pairs (ŝ,s) that sum to one.

    The largest of the errors is at least their average under w, and that is least when every observable gets the
    estimate that is best for it: Σ_o min_ŝ Σ_s w(ŝ,s) d(ŝ,s) p(o|s).
    """
    return float(((weights * distance) @ mechanism).min(axis=0).sum())
