"""Inference attacks q(ŝ|o): what an adversary who knows the mechanism infers from an output.

Every attack takes the adversary's own prior π̂ and distance, where they differ from the problem's; or an
:class:`privacygames.Adversary`, whose inference target may be other than the secret. The matrix of an attack has a row
for every output, including those that are never released; for these there is no estimate.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privacygames.arrays import FloatArray, freeze, require_nonnegative
from privacygames.beliefs import Prior
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism, require_fit, require_secrets
from privacygames.problem import Adversary, Measure, Problem, distance_matrix, require_finite
from privacygames.solvers import minmax_attack, minmax_pairs_attack
from privacygames.spaces import Label, Space
from privacygames.validation import require_instance

__all__ = [
    "Attack",
    "bayesian",
    "from_matrix",
    "minmax",
    "minmax_pairs",
    "optimal",
    "uniform",
]


def __dir__() -> list[str]:
    return __all__


SUM_TOLERANCE = 1e-9
"""Largest deviation from 1 of the sum of a row that is given: more than rounding explains is an error."""


@dataclass(frozen=True)
class Attack:
    """An inference attack.

    Attributes:
        name: the name of the attack.
        matrix: q(ŝ|o), (outputs, estimates); every row sums to one.
        estimates: the labels of the estimates: the secrets, or the values of an adversary's own inference target.
        observables: the labels of the rows.
        error: expected error of the attack by its own prior and distance; where it minimises that, the minimum.
        bound: proved lower bound on the error of every attack; None where the attack minimises nothing, or has a
            closed form.
        in_support: for each output, whether the mechanism ever releases it; the rows of others are arbitrary.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> attack = pg.attacks.optimal(pg.baselines.identity(problem), problem)
    >>> attack, attack.estimate("flu")
    (Attack(optimal, error 0), 'flu')
    """

    name: str
    matrix: FloatArray
    estimates: Space
    observables: Space
    error: float
    bound: float | None = None
    in_support: NDArray[np.bool_] | None = None

    def estimate(self, observable: Label) -> Label:
        """The likeliest estimate after an output.

        Raises:
            InvalidProblem: the mechanism never releases this output: there is nothing to infer from it.
        """
        row = self.observables.index(observable)
        if self.in_support is not None and not self.in_support[row]:
            raise InvalidProblem("this output is never given: its probability is 0 for every secret; choose another")
        return self.estimates.labels[int(self.matrix[row].argmax())]

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON: the likeliest estimate after each output that is ever released."""
        outputs = self.observables.labels
        if self.in_support is not None:
            outputs = tuple(output for output, released in zip(outputs, self.in_support, strict=True) if released)
        estimates = [{"answer": output, "estimate": self.estimate(output)} for output in outputs]
        return {"attack": self.name, "error": self.error, "estimates": estimates}

    def __repr__(self) -> str:
        return f"Attack({self.name}, error {self.error:.4g})"


def optimal(
    mechanism: Mechanism,
    problem: Problem,
    *,
    prior: Prior | None = None,
    distance: Measure | None = None,
    adversary: Adversary | None = None,
) -> Attack:
    r"""Attack of least expected error: the single best estimate for every output.

    Paper: eq:lp:adversary:bayesian, solved in closed form by eq:proof:q:
    :math:`ŝ(o) = \operatorname{argmin}_{ŝ} \sum_s π(s)\,p(o|s)\,d(ŝ,s)`. Ties go to the first estimate.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> pg.attacks.optimal(pg.baselines.randomised_response(problem, 1.0), problem).estimate("cold")
    'cold'
    """
    view = _AdversaryView.of(mechanism, problem, prior, distance, adversary)
    matrix, error = _best_estimates(mechanism, view.prior, view.errors)
    return _attack("optimal", matrix, mechanism, error, estimates=view.estimates)


def uniform(
    mechanism: Mechanism, problem: Problem, *, distance: Measure | None = None, adversary: Adversary | None = None
) -> Attack:
    """Attack that minimises the sum of the expected errors of all secrets, each with the same weight.

    Paper: eq:lp:adversary:diff; closed form as for the optimal attack, with weight 1 for every secret.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> pg.attacks.uniform(pg.baselines.constant(problem), problem).error
    2.0
    """
    view = _AdversaryView.of(mechanism, problem, None, distance, adversary)
    matrix, error = _best_estimates(mechanism, np.ones(len(problem.space)), view.errors)
    return _attack("uniform", matrix, mechanism, error, estimates=view.estimates)


def bayesian(
    mechanism: Mechanism,
    problem: Problem,
    *,
    prior: Prior | None = None,
    distance: Measure | None = None,
    adversary: Adversary | None = None,
) -> Attack:
    r"""Attack by Bayes' rule: the estimate is drawn from the posterior, whatever the distance.

    Paper: eq:attack:bayesian, :math:`q(ŝ|o) = π(ŝ)\,p(o|ŝ) / \sum_s π(s)\,p(o|s)`.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> attack = pg.attacks.bayesian(pg.baselines.constant(problem), problem)
    >>> attack.matrix[0].round(3).tolist()
    [0.167, 0.333, 0.5]
    """
    view = _AdversaryView.of(mechanism, problem, prior, distance, adversary)
    if view.estimates != problem.space:
        raise InvalidProblem("Bayes' rule draws secrets; this adversary guesses something else: use attacks.optimal")
    joint = mechanism.probabilities.T * view.prior
    total = joint.sum(axis=1, keepdims=True)
    matrix = np.where(total > 0, np.divide(joint, total, where=total > 0, out=np.zeros_like(joint)), view.prior)
    error = float((joint * (matrix @ view.errors)).sum())
    return _attack("bayesian", matrix, mechanism, error)


def minmax(
    mechanism: Mechanism, problem: Problem, *, distance: Measure | None = None, adversary: Adversary | None = None
) -> Attack:
    """Attack that minimises the expected error of the worst secret (eq:lp:adversary:diff:minmax).

    By duality its error is that of the optimal attack under the *least favourable prior*: a concave maximisation in n
    variables. Estimates are generated as needed: solve with some, find a better estimate for each output under the
    resulting prior, until none is better by more than a relative 10⁻⁹. Every prior proves a lower bound on the error of
    every attack, so the error is proved to be minimal up to a relative 10⁻⁶.

    Raises:
        SolveFailed: minimality was not proved.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> round(pg.attacks.minmax(pg.baselines.constant(problem), problem).error, 4)
    0.6667
    """
    view = _AdversaryView.of(mechanism, problem, None, distance, adversary)
    result = minmax_attack(mechanism.probabilities, view.errors)
    return _attack("minmax", result.attack, mechanism, result.error, result.bound, estimates=view.estimates)


def minmax_pairs(mechanism: Mechanism, problem: Problem, *, distance: Measure | None = None) -> Attack:
    """Attack that minimises the largest error over pairs of a secret and an estimate (eq:lp:adversary:diff:minmax2).

    Its error is proved to be minimal up to a relative 10⁻⁶; 300 secrets and outputs take seconds.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> round(pg.attacks.minmax_pairs(pg.baselines.constant(problem), problem).error, 4)
    0.3333
    """
    require_fit(mechanism, problem)
    result = minmax_pairs_attack(mechanism.probabilities, _distance(problem, distance))
    return _attack("minmax pairs", result.attack, mechanism, result.error, result.bound)


def from_matrix(
    mechanism: Mechanism,
    problem: Problem,
    attack: ArrayLike,
    *,
    name: str = "from_matrix",
    prior: Prior | None = None,
    distance: Measure | None = None,
    adversary: Adversary | None = None,
) -> Attack:
    """The attack with given probabilities q(ŝ|o), to compare with the optimal attack.

    Args:
        mechanism: the mechanism it attacks.
        problem: costs and distances.
        attack: q(ŝ|o), (outputs, estimates); every row sums to one.
        name: the name of the attack.
        prior: the adversary's prior; by default the problem's.
        distance: the adversary's distance; by default the problem's.
        adversary: instead of both, an adversary.

    Returns:
        The attack; its ``error`` is the expected error.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> always_flu = np.tile([1, 0, 0], (3, 1))
    >>> round(pg.attacks.from_matrix(pg.baselines.constant(problem), problem, always_flu).error, 4)
    0.8333
    """
    view = _AdversaryView.of(mechanism, problem, prior, distance, adversary)
    _, observables = problem.shape
    meaning = "(observables, estimates)"
    matrix = require_nonnegative(attack, what="the attack", shape=(observables, len(view.estimates)), meaning=meaning)
    if (np.abs(matrix.sum(axis=1) - 1) > SUM_TOLERANCE).any():
        raise InvalidProblem("every row of the attack must sum to 1: q(·|o) is a distribution")
    joint = mechanism.probabilities.T * view.prior
    error = float((joint * (matrix @ view.errors)).sum())
    return _attack(name, matrix, mechanism, error, estimates=view.estimates)


def _best_estimates(mechanism: Mechanism, weights: FloatArray, distance: FloatArray) -> tuple[FloatArray, float]:
    errors = (distance * weights) @ mechanism.probabilities  # (ŝ, o)
    unseen = errors.max(axis=0) == 0
    errors[:, unseen] = (distance @ weights)[:, None]  # the best estimate by the prior alone
    best = errors.argmin(axis=0)
    seen = ~unseen
    error = float(errors[best[seen], np.flatnonzero(seen)].sum())
    return np.eye(len(distance))[best], error


def _attack(
    name: str,
    matrix: FloatArray,
    mechanism: Mechanism,
    error: float,
    bound: float | None = None,
    *,
    estimates: Space | None = None,
) -> Attack:
    in_support = freeze(np.asarray(mechanism.weights.any(axis=0)))
    return Attack(name, freeze(matrix), estimates or mechanism.secrets, mechanism.observables, error, bound, in_support)


@dataclass(frozen=True)
class _AdversaryView:
    """What an attack is computed from: a prior, errors (estimates, secrets), and the labels of the estimates."""

    prior: FloatArray
    errors: FloatArray
    estimates: Space

    @classmethod
    def of(
        cls,
        mechanism: Mechanism,
        problem: Problem,
        prior: Prior | None,
        distance: Measure | None,
        adversary: Adversary | None,
    ) -> "_AdversaryView":
        require_fit(mechanism, problem)
        if adversary is not None:
            if prior is not None or distance is not None:
                raise InvalidProblem("an adversary has a prior and errors of their own: leave out prior and distance")
            arrays = require_instance(adversary, Adversary, "the adversary").arrays(problem)
            return cls(arrays.prior, arrays.errors, adversary.guess_space(problem.space))
        if prior is not None:
            require_secrets(mechanism, prior)
        known_prior = problem.prior if prior is None else prior
        return cls(known_prior.probabilities, _distance(problem, distance), problem.space)


def _distance(problem: Problem, distance: Measure | None) -> FloatArray:
    if distance is None:
        return problem.distance
    what = "the adversary's distance"
    return require_finite(distance_matrix(distance, what, problem.space), what)
