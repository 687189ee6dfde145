"""The min-max attack over pairs of secret and estimate (eq:lp:adversary:diff:minmax2), with a proof of its error.

    min y   s.t.   d(ŝ,s) Σ_o p(o|s) q(ŝ|o) ≤ y  for all ŝ, s;   Σ_ŝ q(ŝ|o) = 1,  q ≥ 0

Presolve fixes the estimate for observables on which some estimate has no error, and merges proportional observables.
Small programs go to HiGHS, others to the block interior-point method (``interior_point.py``). Whatever they return is
evaluated on the whole program: the attack gives an upper bound, weights on the pairs a lower one.
docs/theory/minmax-pairs.md derives the method.
"""

from collections.abc import Callable
from itertools import product

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.errors import SolveFailed, Status
from privacygames.programs import minmax_pairs_attack_program
from privacygames.solvers.highs import Highs
from privacygames.solvers.memory import require_memory
from privacygames.solvers.minmax_pairs.bounds import largest_error, least_error_bound
from privacygames.solvers.minmax_pairs.interior_point import solve_by_blocks
from privacygames.solvers.proved_attack import ProvedAttack, blind_error, combine_best, lower_distances, remove_noise

TOLERANCE = 1e-6
"""Default relative gap between an attack's error and the proved bound."""

MAX_HIGHS_FIRST_SIZE = 15_000
"""Size n²m up to which HiGHS is tried first: it is faster there, and ends at a vertex."""

MAX_HIGHS_SIZE = 2_000_000
"""Size n²m up to which HiGHS is tried where the block method fails; larger programs take it too long."""

NEGLIGIBLE_ERROR_FRACTION = 1e-9
"""Smallest error to resolve, as a fraction of that of the best guess without an output; smaller ones count as this."""

PROPORTIONAL_DIGITS = 12
"""Decimals to which normalised columns that count as proportional agree; the gap includes any loss from this."""


def minmax_pairs_attack(mechanism: FloatArray, distance: FloatArray, *, tolerance: float = TOLERANCE) -> ProvedAttack:
    """The attack with the least largest error over pairs, proved to within a relative ``tolerance``.

    Args:
        mechanism: p(o|s), (secrets, observables).
        distance: d(ŝ,s), (estimates, secrets).
        tolerance: largest (error − bound)/error.

    Raises:
        InvalidProblem: the program would not fit into this machine's memory.
        SolveFailed: no method reached the tolerance.
    """
    reduced = _ReducedPairs(mechanism, distance)
    if not reduced.mechanism.size:
        return _prove(mechanism, distance, reduced.expand(np.zeros((0, len(distance)))), np.ones_like(distance))
    best: ProvedAttack | None = None
    blind = blind_error(distance)
    for solve, errors in product(_methods(reduced.mechanism), lower_distances(distance, blind)):
        attack, weights = solve(reduced.mechanism, errors, tolerance)
        expanded = reduced.expand(attack)
        for candidate in (expanded, remove_noise(expanded, np.any(errors < distance, axis=1))):
            best = combine_best(best, _prove(mechanism, distance, candidate, weights))
        if best is not None and best.within(tolerance * max(best.error, NEGLIGIBLE_ERROR_FRACTION * blind)):
            return best
    gap = 0.0 if best is None else best.error - best.bound
    raise SolveFailed(
        f"the min-max attack over pairs is known only to within {gap:.1e}: {Status.NUMERICAL.advice}, "
        "or use the min-max attack over secrets"
    )


class _ReducedPairs:
    """The presolved program, and the map from its attacks to attacks on the whole mechanism.

    An observable for which some estimate has no error on any secret that may release it gets that estimate, which adds
    to no error. Proportional columns reveal the same and get the same estimates: replacing their rows of the attack by
    the average, weighted by the columns' sums, changes no error.
    """

    def __init__(self, mechanism: FloatArray, distance: FloatArray) -> None:
        errors = distance @ mechanism  # (ŝ, o)
        self.best_estimates = errors.argmin(axis=0)
        self.remaining_observables = np.flatnonzero(errors.min(axis=0) > 0)
        columns = mechanism[:, self.remaining_observables]
        normalised = np.round(columns / columns.sum(axis=0), PROPORTIONAL_DIGITS)
        distinct, inverse = np.unique(normalised, axis=1, return_inverse=True)
        self.column_classes = inverse.reshape(-1)
        self.mechanism = np.zeros(distinct.shape)
        np.add.at(self.mechanism.T, self.column_classes, columns.T)

    def expand(self, attack: FloatArray) -> FloatArray:
        """The attack on every observable; rows sum to one up to rounding."""
        estimates = attack.shape[1]
        full = np.eye(estimates)[self.best_estimates]
        full[self.remaining_observables] = np.maximum(attack, 0.0)[self.column_classes]
        return np.asarray(full / full.sum(axis=1, keepdims=True))


_Method = Callable[[FloatArray, FloatArray, float], tuple[FloatArray, FloatArray]]


def _methods(mechanism: FloatArray) -> list[_Method]:
    n, m = mechanism.shape
    if n * n * m <= MAX_HIGHS_FIRST_SIZE:
        return [_solve_by_highs, _solve_by_interior_point]
    return [_solve_by_interior_point, _solve_by_highs] if n * n * m <= MAX_HIGHS_SIZE else [_solve_by_interior_point]


def _solve_by_interior_point(
    mechanism: FloatArray, distance: FloatArray, tolerance: float
) -> tuple[FloatArray, FloatArray]:
    n, m = mechanism.shape
    float_count = (n + 20) * m * m + 60 * n * max(n, m)  # factors of the blocks, parts of S, and states
    require_memory(float_count * 8 / 2**30, n, m, "the min-max attack over pairs")
    return solve_by_blocks(mechanism, distance, tolerance=tolerance / 2)


def _solve_by_highs(mechanism: FloatArray, distance: FloatArray, tolerance: float) -> tuple[FloatArray, FloatArray]:
    del tolerance  # HiGHS's own tolerances are tighter
    n, m = mechanism.shape
    scale = min(largest_error(mechanism, distance, np.full((m, n), 1 / n)), blind_error(distance))  # y is at most 1
    solution = Highs().solve_program(minmax_pairs_attack_program(mechanism, distance / scale))
    duals = solution.family("errors")
    weights = np.ones((n, n)) if duals is None else np.maximum(-duals.reshape(n, n).T, 0.0)
    return solution.block("q").reshape(m, n), weights


def _prove(mechanism: FloatArray, distance: FloatArray, attack: FloatArray, weights: FloatArray) -> ProvedAttack:
    total = float(weights.sum())
    weights = weights / total if total > 0 else np.full(weights.shape, 1 / weights.size)
    error = largest_error(mechanism, distance, attack)
    return ProvedAttack(attack, weights, error, least_error_bound(mechanism, distance, weights))
