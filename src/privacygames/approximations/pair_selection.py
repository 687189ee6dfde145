"""Selection of the pairs of secrets with ratio constraints, and the ratios they imply for the other pairs.

An exponent matrix e bounds p(o|s) ≤ exp(e(s,s'))·p(o|s'). With constraints on selected pairs only, every other pair is
bounded along paths by the *sum* of their exponents: the guarantee is the shortest path in the graph of selected pairs.
"""

import numpy as np
from numpy.typing import NDArray

from privacygames.arrays import FloatArray
from privacygames.problem import Problem
from privacygames.solvers import implied_pairs

ROUNDING = 1e-12
"""Relative error bound of sums of exponents in floating-point numbers."""

BASIS_DILATION = 2.0
"""Dilation of the spanner that every random selection contains."""

Pairs = NDArray[np.bool_]
"""Mask of ordered pairs of secrets, (secrets, secrets)."""


def nearby_pairs(exponents: FloatArray, separation: FloatArray, radius: float) -> Pairs:
    """The pairs at most ``radius`` apart."""
    return np.isfinite(exponents) & (separation <= radius)


def random_pairs(exponents: FloatArray, fraction: float, generator: np.random.Generator) -> Pairs:
    """A sparse spanner and a random fraction of the other pairs that are not implied, in both directions."""
    basis = greedy_spanner(exponents, BASIS_DILATION)
    candidates = np.isfinite(exponents) & ~implied_pairs(exponents) & ~basis
    first, second = np.nonzero(np.triu(candidates | candidates.T, 1))
    drawn = generator.choice(len(first), size=round(fraction * len(first)), replace=False)
    selected = basis.copy()
    for row, column in ((first, second), (second, first)):
        selected[row[drawn], column[drawn]] = True
    return selected & np.isfinite(exponents)


def greedy_spanner(exponents: FloatArray, dilation: float) -> Pairs:
    """The greedy spanner (Althöfer et al. 1993): pairs by increasing length, each added if the path so far is too long.

    Every pair is then joined by a path at most ``dilation`` times as long as its own exponent.
    """
    selected = np.zeros(exponents.shape, dtype=bool)
    paths = np.full(exponents.shape, np.inf)
    np.fill_diagonal(paths, 0.0)
    for position in np.argsort(exponents, axis=None, kind="stable"):
        first, second = divmod(int(position), len(exponents))
        length = exponents[first, second]
        if not np.isfinite(length):
            break
        if paths[first, second] > dilation * length * (1 + ROUNDING):
            selected[first, second] = True
            np.minimum(paths, paths[:, first, None] + (length + paths[None, second, :]), out=paths)
    return selected


def dilation_of(exponents: FloatArray, selected: Pairs) -> float:
    """The largest ratio of the shortest path between a pair to its exponent; ∞ if a pair has no path."""
    paths = np.where(selected, exponents, np.inf)
    np.fill_diagonal(paths, 0.0)
    for middle in range(len(paths)):
        np.minimum(paths, paths[:, middle, None] + paths[None, middle, :], out=paths)
    bounded = np.isfinite(exponents)
    if (paths[bounded & (exponents == 0)] > 0).any():
        return float("inf")
    bounded &= exponents > 0
    return max(1.0, float((paths[bounded] / exponents[bounded]).max(initial=1.0)))


def restrict_ratios(problem: Problem, selected: Pairs) -> Problem:
    """The problem with ratio constraints between the selected pairs only."""
    separation = np.where(selected, problem.distinguishability, np.inf)
    np.fill_diagonal(separation, 0.0)
    return Problem(problem.prior, problem.cost, problem.distance, separation, problem.observables)
