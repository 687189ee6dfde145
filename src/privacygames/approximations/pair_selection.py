"""Which pairs of secrets to keep ratios between, and what that does to the rest.

An exponent matrix e says p(o|s) ≤ exp(e(s,s'))·p(o|s'). Keeping only some pairs, every other follows along paths with
the *sum* of their exponents: the kept pairs are a graph, and its shortest paths are what is really promised.
"""

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray
from privacygames.problem import Problem
from privacygames.solvers import implied_pairs

ROUNDING = 1e-12
"""By how much, relatively, sums of exponents in floats may be off."""

BASIS = 2.0
"""The dilation of the spanner that a random draw always contains."""

Pairs = NDArray[np.bool_]
"""Ordered pairs of secrets, (secrets, secrets)."""


def near(exponents: FloatArray, separation: FloatArray, radius: float) -> Pairs:
    """The pairs at most ``radius`` apart."""
    return np.isfinite(exponents) & (separation <= radius)


def drawn(exponents: FloatArray, share: float, generator: np.random.Generator) -> Pairs:
    """A sparse spanner, and a random share of the other pairs that are not implied; each pair in both directions."""
    basis = greedy_spanner(exponents, BASIS)
    needed = np.isfinite(exponents) & ~implied_pairs(exponents) & ~basis
    first, second = np.nonzero(np.triu(needed | needed.T, 1))
    chosen = generator.choice(len(first), size=round(share * len(first)), replace=False)
    kept = basis.copy()
    for one, other in ((first, second), (second, first)):
        kept[one[chosen], other[chosen]] = True
    return kept & np.isfinite(exponents)


def greedy_spanner(exponents: FloatArray, dilation: float) -> Pairs:
    """The greedy spanner (Althöfer et al. 1993): pairs by increasing length, each kept if the path so far is too long.

    Every pair is then joined by a path at most ``dilation`` times as long as its own exponent.
    """
    kept = np.zeros(exponents.shape, dtype=bool)
    paths = np.full(exponents.shape, np.inf)
    np.fill_diagonal(paths, 0.0)
    for position in np.argsort(exponents, axis=None, kind="stable"):
        first, second = divmod(int(position), len(exponents))
        length = exponents[first, second]
        if not np.isfinite(length):
            break
        if paths[first, second] > dilation * length * (1 + ROUNDING):
            kept[first, second] = True
            np.minimum(paths, paths[:, first, None] + (length + paths[None, second, :]), out=paths)
    return kept


def dilation_of(exponents: FloatArray, kept: Pairs) -> float:
    """The largest ratio of the shortest path of a pair to its own exponent; ∞ if a pair has no path."""
    paths = np.where(kept, exponents, np.inf)
    np.fill_diagonal(paths, 0.0)
    for middle in range(len(paths)):
        np.minimum(paths, paths[:, middle, None] + paths[None, middle, :], out=paths)
    asked = np.isfinite(exponents)
    if (paths[asked & (exponents == 0)] > 0).any():
        return float("inf")
    asked &= exponents > 0
    return max(1.0, float((paths[asked] / exponents[asked]).max(initial=1.0)))


def only(problem: Problem, kept: Pairs) -> Problem:
    """The problem with ratio constraints between the kept pairs only."""
    separation = np.where(kept, problem.distinguishability, np.inf)
    np.fill_diagonal(separation, 0.0)
    return Problem(problem.prior, problem.cost, problem.distance, separation, problem.observables)
