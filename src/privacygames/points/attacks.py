"""The optimal attack on a mechanism for points: the error of an actual attack, and a lower bound on that of all."""

from dataclasses import dataclass

import numpy as np

from privacygames.arrays import FloatArray
from privacygames.beliefs import PointPrior
from privacygames.errors import InvalidProblem
from privacygames.points.guesses import best_guesses
from privacygames.points.measurements import Points, joint_probabilities, probabilities_at
from privacygames.points.mechanism import PointSampleable
from privacygames.points.problem import PointAdversary, PointProblem, adversary_arrays, largest_distortion
from privacygames.points.verification import basis_rounding, error_below
from privacygames.problem import Adversary
from privacygames.validation import require_instance


@dataclass(frozen=True)
class PointAttack:
    """An adversary's best guess after each output, its error, and what no attack can do better.

    Attributes:
        guesses: the guess after each output in the region's coordinates, (outputs, axes); None for an adversary with
            errors of their own.
        error: the expected error of these guesses.
        bound: no attack has a smaller expected error. It is proved for designed mechanisms; for known ones it is as
            accurate as their probabilities.
        without_output: the expected error of the best guess without an output.

    >>> line = pg.Interval(0.0, 4.0)
    >>> problem = pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 3.0])
    >>> attack = pg.points.optimal_attack(pg.points.uniform(problem), problem)
    >>> round(attack.error, 6), round(attack.without_output, 6)
    (1.0, 1.0)
    """

    guesses: FloatArray | None
    error: float
    bound: float
    without_output: float


def optimal_attack(
    mechanism: Points,
    problem: PointProblem,
    *,
    prior: PointPrior | None = None,
    truth: PointPrior | None = None,
    adversary: Adversary | None = None,
) -> PointAttack:
    """The attack of least expected error, whose guesses may be any point.

    Args:
        mechanism: the mechanism that is attacked.
        problem: the distance, and the prior.
        prior: the adversary's belief; by default the problem's prior.
        truth: the actual distribution of points, over which errors are averaged; by default the problem's prior. The
            bound is about all attacks, also of adversaries who know it.
        adversary: instead of both, an adversary; their errors are averaged over their own belief.

    >>> line = pg.Interval(0.0, 4.0)
    >>> problem = pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 2.0, 3.0])
    >>> attack = pg.points.optimal_attack(pg.design(problem, epsilon=0.5), problem)
    >>> attack.bound <= attack.error <= attack.without_output
    True
    """
    require_instance(problem, PointProblem, "the problem")
    if adversary is not None:
        if prior is not None or truth is not None:
            raise InvalidProblem("an adversary has a prior of their own: leave out prior and truth")
        return _attack(mechanism, problem, adversary_arrays(problem, adversary, None))
    belief, real = problem.prior if prior is None else prior, problem.prior if truth is None else truth
    for each in (belief, real):
        if require_instance(each, PointPrior, "the prior").region != problem.region:
            raise InvalidProblem("the prior is over another region than the problem's")
    attack = _attack(mechanism, problem, PointAdversary("truth", real.xy, real.probabilities, None, None))
    if belief == real:
        return attack
    guesses = best_guesses(joint_probabilities(mechanism, belief), belief.xy, problem.distance).guesses
    blind = best_guesses(belief.probabilities[None], belief.xy, problem.distance).guesses
    masses = joint_probabilities(mechanism, real)
    error = float((masses * problem.distances(guesses, real.xy)).sum())
    without = float(problem.distances(blind, real.xy)[0] @ real.probabilities)
    return PointAttack(problem.region.coordinates(guesses), error, attack.bound, without)


def _attack(mechanism: Points, problem: PointProblem, adversary: PointAdversary) -> PointAttack:
    """The attack of an adversary, whose errors are averaged over their own belief."""
    xy, errors = adversary.xy, adversary.errors
    masses = np.ascontiguousarray(probabilities_at(mechanism, xy).T * adversary.probabilities)
    rounding = basis_rounding(mechanism.mesh) if isinstance(mechanism, PointSampleable) else 0
    bound, without = error_below(problem, masses, xy, errors, rounding), largest_distortion(problem, adversary)
    if errors is not None:
        return PointAttack(None, float((masses @ errors.T).min(axis=1).sum()), bound, without)
    best = best_guesses(masses, xy, problem.distance)
    return PointAttack(problem.region.coordinates(best.guesses), best.total_error, bound, without)
