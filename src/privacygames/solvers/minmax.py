"""The min-max attack over secrets (eq:lp:adversary:diff:minmax), with its least favourable prior as proof."""

from itertools import product

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.certificates import NEGLIGIBLE, loss_scale
from privacygames.errors import SolveFailed
from privacygames.programs import least_favourable_program
from privacygames.solvers.highs import Highs
from privacygames.solvers.proved_attack import ProvedAttack, combine_best, lower_distances, remove_noise

TOLERANCE = 1e-6
"""Default relative gap between an attack's error and the proved bound."""

IMPROVEMENT = 1e-9
"""Fraction of the error by which a guess has to be better to be added."""

GUESSES_PER_ROUND = 2
"""Guesses that are added for each observable in a round."""


def minmax_attack(mechanism: FloatArray, distance: FloatArray, *, tolerance: float = TOLERANCE) -> ProvedAttack:
    """The attack with the least error on its worst secret, proved to within a relative tolerance.

    Distances are divided by their scale first, so units do not matter.

    Args:
        mechanism: p(o|s), (secrets, observables).
        distance: d(ŝ,s), (estimates, secrets).
        tolerance: largest (error − bound)/error, where the error is no less than a millionth of the error of a guess
            without an output.

    Raises:
        SolveFailed: neither method of HiGHS reached the tolerance.

    >>> from privacygames.solvers import minmax_attack
    >>> attack = minmax_attack(np.array([[0.75, 0.25], [0.25, 0.75]]), 1 - np.eye(2))
    >>> round(attack.error, 6)
    0.25
    """
    scale = loss_scale(distance, np.full(len(mechanism), 1 / len(mechanism)), worst_case=True)
    best: ProvedAttack | None = None
    scaled = distance / scale
    attempts = product((False, True), (Highs("ipm"), Highs("simplex")), lower_distances(scaled, 1.0))
    for rescaled, method, errors in attempts:
        # HiGHS has absolute tolerances: where the least error is small, the second round measures in units of it.
        unit = max(best.error, NEGLIGIBLE) if rescaled and best is not None else 1.0
        attack, prior = _solve(mechanism, errors / unit, method)
        best = combine_best(best, _prove(mechanism, scaled, errors, attack, prior))
        if best.within(tolerance * max(best.error, NEGLIGIBLE)):
            return ProvedAttack(best.attack, best.weights, best.error * scale, best.bound * scale)
    gap = 1.0 if best is None else (best.error - best.bound) / max(best.error, NEGLIGIBLE)
    raise SolveFailed(f"the min-max attack is known only to within {gap:.1e} of its error: rescale the distances")


def _prove(
    mechanism: FloatArray, distance: FloatArray, lowered_distance: FloatArray, attack: FloatArray, prior: FloatArray
) -> ProvedAttack:
    """The attack and prior, computed for errors that may have been lowered, evaluated with the true ones."""
    bound = float(((distance * prior) @ mechanism).min(axis=0).sum())

    def worst_error(candidate: FloatArray) -> float:
        return float((mechanism.T * (candidate @ distance)).sum(axis=0).max())

    cleaned = remove_noise(attack, np.any(lowered_distance < distance, axis=1))
    candidates = [ProvedAttack(candidate, prior, worst_error(candidate), bound) for candidate in (attack, cleaned)]
    return min(candidates, key=lambda attack: attack.error)


def _solve(mechanism: FloatArray, distance: FloatArray, solver: Highs) -> tuple[FloatArray, FloatArray]:
    """An attack and the least favourable prior, by constraint generation.

    Solves with some guesses, and adds better ones under the resulting prior until there are none.
    """
    secrets, observables = mechanism.shape
    errors = distance @ (mechanism / secrets)
    included = np.zeros((observables, len(distance)), dtype=bool)
    included[np.arange(observables), errors.argmin(axis=0)] = True
    while True:
        observable, guess = np.nonzero(included)
        solution = solver.solve_program(least_favourable_program(mechanism, distance, observable, guess))
        prior = np.maximum(solution.block("prior"), 0.0)
        prior = prior / prior.sum()
        errors = ((distance * prior) @ mechanism).T  # (o, ŝ)
        upper, bound = max(float(solution.block("x").sum()), 0.0), float(errors.min(axis=1).sum())
        least_included = np.where(included, errors, np.inf).min(axis=1, keepdims=True)
        improves = errors < least_included - IMPROVEMENT * upper / observables
        if upper - bound <= IMPROVEMENT * upper or not improves.any():
            break
        order = np.argsort(np.where(improves, errors, np.inf), axis=1, kind="stable")[:, :GUESSES_PER_ROUND]
        rows = np.arange(observables)[:, None]
        included[rows, order] |= improves[rows, order]
    duals = solution.family("guesses")
    attack = np.zeros((observables, len(distance)))
    attack[observable, guess] = np.maximum(np.zeros(0) if duals is None else duals, 0.0)
    attack[attack.sum(axis=1) <= 0, 0] = 1.0
    return attack / attack.sum(axis=1, keepdims=True), prior
