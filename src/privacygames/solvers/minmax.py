"""The min-max attack over secrets, certified: eq:lp:adversary:diff:minmax, by its least favourable prior."""

from itertools import product

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.certificates import NEGLIGIBLE, loss_scale
from privacygames.errors import SolveFailed
from privacygames.programs import least_favourable_program
from privacygames.solvers.highs import Highs
from privacygames.solvers.proved_attack import ProvedAttack, better, lowered, without_noise

TOLERANCE = 1e-6
BETTER = 1e-9
"""A guess is added if it is better by more than this share of the error."""

GUESSES_A_ROUND = 2


def least_worst_error(mechanism: FloatArray, distance: FloatArray, *, tolerance: float = TOLERANCE) -> ProvedAttack:
    """The attack with the least error on its worst secret, proved to within a relative ``tolerance``.

    Whatever the units: distances are divided by what is at stake first.

    Args:
        mechanism: p(o|s), (secrets, observables).
        distance: d(ŝ,s), (estimates, secrets).
        tolerance: how large (error − bound)/error may be, where the error is no less than a millionth of what is at
            stake: the error of a guess without an output.

    Raises:
        SolveFailed: neither method of HiGHS got there.
    """
    scale = loss_scale(distance, np.full(len(mechanism), 1 / len(mechanism)), worst_case=True)
    best: ProvedAttack | None = None
    scaled = distance / scale
    rounds = product((False, True), (Highs("ipm"), Highs("simplex")), lowered(scaled, 1.0))
    for again, method, errors in rounds:
        # HiGHS has absolute tolerances: where the least error is small, the second round measures in units of it.
        unit = max(best.error, NEGLIGIBLE) if again and best is not None else 1.0
        best = better(best, _measured(mechanism, scaled, errors, _solved(mechanism, errors / unit, method)))
        if best.within(tolerance * max(best.error, NEGLIGIBLE)):
            return ProvedAttack(best.attack, best.weights, best.error * scale, best.bound * scale)
    gap = 1.0 if best is None else (best.error - best.bound) / max(best.error, NEGLIGIBLE)
    raise SolveFailed(f"the min-max attack is known only to within {gap:.1e} of its error: rescale the distances")


def _measured(
    mechanism: FloatArray, distance: FloatArray, solved: FloatArray, found: tuple[FloatArray, FloatArray]
) -> ProvedAttack:
    """An attack and a prior that were computed for errors that may be lowered, measured with the true ones."""
    attack, prior = found
    bound = float(((distance * prior) @ mechanism).min(axis=0).sum())

    def worst(tried: FloatArray) -> float:
        return float((mechanism.T * (tried @ distance)).sum(axis=0).max())

    cleaned = without_noise(attack, np.any(solved < distance, axis=1))
    return min(
        (ProvedAttack(each, prior, worst(each), bound) for each in (attack, cleaned)), key=lambda each: each.error
    )


def _solved(mechanism: FloatArray, distance: FloatArray, solver: Highs) -> tuple[FloatArray, FloatArray]:
    """An attack and the least favourable prior.

    Guesses by need: solve with some, add better ones under the prior found, until there are none.
    """
    secrets, observables = mechanism.shape
    errors = distance @ (mechanism / secrets)
    known = np.zeros((observables, len(distance)), dtype=bool)
    known[np.arange(observables), errors.argmin(axis=0)] = True
    while True:
        observable, guess = np.nonzero(known)
        found = solver.solve_program(least_favourable_program(mechanism, distance, observable, guess))
        prior = np.maximum(found.block("prior"), 0.0)
        prior = prior / prior.sum()
        errors = ((distance * prior) @ mechanism).T  # (o, ŝ)
        upper, bound = max(float(found.block("x").sum()), 0.0), float(errors.min(axis=1).sum())
        better = errors < np.where(known, errors, np.inf).min(axis=1, keepdims=True) - BETTER * upper / observables
        if upper - bound <= BETTER * upper or not better.any():
            break
        order = np.argsort(np.where(better, errors, np.inf), axis=1, kind="stable")[:, :GUESSES_A_ROUND]
        rows = np.arange(observables)[:, None]
        known[rows, order] |= better[rows, order]
    duals = found.family("guesses")
    attack = np.zeros((observables, len(distance)))
    attack[observable, guess] = np.maximum(np.zeros(0) if duals is None else duals, 0.0)
    attack[attack.sum(axis=1) <= 0, 0] = 1.0
    return attack / attack.sum(axis=1, keepdims=True), prior
