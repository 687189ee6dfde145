"""The min-max attack over pairs of secret and estimate, certified: eq:lp:adversary:diff:minmax2.

    min y   s.t.   d(ŝ,s) Σ_o p(o|s) q(ŝ|o) ≤ y  for all ŝ, s;   Σ_ŝ q(ŝ|o) = 1,  q ≥ 0

Observables that cost nothing are settled and proportional ones merged; what is left goes to HiGHS where that is small
and to the block interior-point method (``pair_engine.py``) elsewhere. Whatever they return is measured against the
whole program: the attack gives an upper bound, weights on the pairs a lower one.
docs/theory/minmax-pairs.md derives it.
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
from privacygames.solvers.proved_attack import ProvedAttack, best_of, blind_error, lower_distances, without_noise

TOLERANCE = 1e-6
SMALL = 15_000
"""Up to this n²m HiGHS is the faster one, and it ends at a vertex."""

LARGEST_WRITTEN_OUT = 2_000_000
"""Up to this n²m HiGHS is worth waiting for where the block method does not get there."""

NEGLIGIBLE = 1e-9
"""Errors are told apart down to this share of what the best guess errs by without an output."""

DIGITS = 12
"""Columns that agree to so many digits are proportional: what that loses, if anything, shows in the gap."""


def least_largest_error(mechanism: FloatArray, distance: FloatArray, *, tolerance: float = TOLERANCE) -> ProvedAttack:
    """The attack with the least largest error over pairs, proved to within a relative ``tolerance``.

    Args:
        mechanism: p(o|s), (secrets, observables).
        distance: d(ŝ,s), (estimates, secrets).
        tolerance: how large (error − bound)/error may be.

    Raises:
        InvalidProblem: it would not fit into this machine's memory.
        SolveFailed: no engine got there.
    """
    reduced = _PairsPresolved(mechanism, distance)
    if not reduced.mechanism.size:
        return _measured(mechanism, distance, reduced.expand(np.zeros((0, len(distance)))), np.ones_like(distance))
    best: ProvedAttack | None = None
    blind = blind_error(distance)
    for solve, errors in product(_engines(reduced.mechanism), lower_distances(distance, blind)):
        attack, weights = solve(reduced.mechanism, errors, tolerance)
        whole = reduced.expand(attack)
        for tried in (whole, without_noise(whole, np.any(errors < distance, axis=1))):
            best = best_of(best, _measured(mechanism, distance, tried, weights))
        if best is not None and best.within(tolerance * max(best.error, NEGLIGIBLE * blind)):
            return best
    gap = 0.0 if best is None else best.error - best.bound
    raise SolveFailed(
        f"the min-max attack over pairs is known only to within {gap:.1e}: {Status.NUMERICAL.advice}, "
        "or use the min-max attack over secrets"
    )


class _PairsPresolved:
    """The program without what can be answered at once, and the way back.

    An observable for which some estimate errs on no secret that sends it (an unseen one, say) gets that estimate:
    it adds to no error. Proportional columns tell the same and get the same answer: replacing their answers by the
    average, weighted by the columns' sums, changes no error.
    """

    def __init__(self, mechanism: FloatArray, distance: FloatArray) -> None:
        errors = distance @ mechanism  # (ŝ, o)
        self.safe = errors.argmin(axis=0)
        self.open = np.flatnonzero(errors.min(axis=0) > 0)
        columns = mechanism[:, self.open]
        shapes = np.round(columns / columns.sum(axis=0), DIGITS)
        kinds, like = np.unique(shapes, axis=1, return_inverse=True)
        self.like = like.reshape(-1)
        self.mechanism = np.zeros(kinds.shape)
        np.add.at(self.mechanism.T, self.like, columns.T)

    def expand(self, attack: FloatArray) -> FloatArray:
        """The attack for every observable, rows summing to one as exactly as floats can."""
        estimates = attack.shape[1]
        full = np.eye(estimates)[self.safe]
        full[self.open] = np.maximum(attack, 0.0)[self.like]
        return np.asarray(full / full.sum(axis=1, keepdims=True))


_Engine = Callable[[FloatArray, FloatArray, float], tuple[FloatArray, FloatArray]]


def _engines(mechanism: FloatArray) -> list[_Engine]:
    n, m = mechanism.shape
    if n * n * m <= SMALL:
        return [_by_highs, _by_blocks]
    return [_by_blocks, _by_highs] if n * n * m <= LARGEST_WRITTEN_OUT else [_by_blocks]


def _by_blocks(mechanism: FloatArray, distance: FloatArray, tolerance: float) -> tuple[FloatArray, FloatArray]:
    n, m = mechanism.shape
    numbers = (n + 20) * m * m + 60 * n * max(n, m)  # factors of the blocks, parts of S, and states
    require_memory(numbers * 8 / 2**30, n, m, "the min-max attack over pairs")
    return solve_by_blocks(mechanism, distance, tolerance=tolerance / 2)


def _by_highs(mechanism: FloatArray, distance: FloatArray, tolerance: float) -> tuple[FloatArray, FloatArray]:
    del tolerance  # HiGHS' own are tighter
    n, m = mechanism.shape
    scale = min(largest_error(mechanism, distance, np.full((m, n), 1 / n)), blind_error(distance))  # y is at most 1
    found = Highs().solve_program(minmax_pairs_attack_program(mechanism, distance / scale))
    duals = found.family("errors")
    weights = np.ones((n, n)) if duals is None else np.maximum(-duals.reshape(n, n).T, 0.0)
    return found.block("q").reshape(m, n), weights


def _measured(mechanism: FloatArray, distance: FloatArray, attack: FloatArray, weights: FloatArray) -> ProvedAttack:
    total = float(weights.sum())
    weights = weights / total if total > 0 else np.full(weights.shape, 1 / weights.size)
    error = largest_error(mechanism, distance, attack)
    return ProvedAttack(attack, weights, error, least_error_bound(mechanism, distance, weights))
