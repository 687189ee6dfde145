"""Upper and lower bounds on the least possible largest error over pairs, from an attack and from weights on pairs."""

from privacygames.arrays import FloatArray


def largest_error(mechanism: FloatArray, distance: FloatArray, attack: FloatArray) -> float:
    """The largest error over pairs, max d(ŝ,s) Σ_o p(o|s) q(ŝ|o)."""
    return float((distance * (mechanism @ attack).T).max())


def least_error_bound(mechanism: FloatArray, distance: FloatArray, weights: FloatArray) -> float:
    """A lower bound on the largest error of every attack, from weights w ≥ 0 on pairs (ŝ,s) that sum to one.

    The largest of the errors is at least their average under w, which is least when every observable gets its
    best estimate: Σ_o min_ŝ Σ_s w(ŝ,s) d(ŝ,s) p(o|s).
    """
    return float(((weights * distance) @ mechanism).min(axis=0).sum())
