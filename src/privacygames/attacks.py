"""Inference attacks q(ŝ|o): what an adversary who knows the mechanism makes of an observation.

Every attack takes the adversary's own prior π̂ and distance, when they differ from the problem's; or an
:class:`privacygames.Adversary`, who may guess something else than the secret. An observable that is never given has a
row in the attack's matrix, since every row is a distribution, but no estimate.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privacygames.arrays import FloatArray, freeze, require_nonnegative
from privacygames.beliefs import Prior
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism, require_fit, require_secrets
from privacygames.problem import Adversary, Measure, Problem, distance_matrix, finite
from privacygames.solvers import least_largest_error, least_worst_error
from privacygames.spaces import Label, Space
from privacygames.validation import require_instance

__all__ = [
    "Attack",
    "bayesian",
    "given",
    "minmax",
    "minmax_pairs",
    "optimal",
    "uniform",
]


def __dir__() -> list[str]:
    return __all__


SUM_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Attack:
    """An inference attack.

    Attributes:
        name: which one.
        matrix: q(ŝ|o), (observables, estimates); every row sums to one.
        secrets: the labels of the estimates: the secrets, or an adversary's own guesses.
        observables: the labels of the rows.
        error: what the attack minimised, as it sees it (with its own prior and distance).
        bound: proved: no attack gets that below this; None where the attack minimises nothing, or a closed form does.
        possible: for each observable, whether the mechanism ever gives it; rows of others are arbitrary.
    """

    name: str
    matrix: FloatArray
    secrets: Space
    observables: Space
    error: float
    bound: float | None = None
    possible: NDArray[np.bool_] | None = None

    def estimate(self, observable: Label) -> Label:
        """The likeliest estimate after an observation.

        Raises:
            InvalidProblem: the mechanism never gives this observable: there is nothing to estimate from it.
        """
        position = self.observables.index(observable)
        if self.possible is not None and not self.possible[position]:
            raise InvalidProblem("this output is never given: its probability is 0 for every secret; choose another")
        return self.secrets.labels[int(self.matrix[position].argmax())]

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON: the likeliest estimate after each observable that is ever given."""
        listed = self.observables.labels
        given = listed if self.possible is None else [o for o, seen in zip(listed, self.possible, strict=True) if seen]
        estimates = [{"answer": o, "estimate": self.estimate(o)} for o in given]
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
    r"""The attack with the least expected error: for every observable, the single best estimate.

    Paper: eq:lp:adversary:bayesian, solved in closed form by eq:proof:q:
    :math:`ŝ(o) = \operatorname{argmin}_{ŝ} \sum_s π(s)\,p(o|s)\,d(ŝ,s)`. Ties go to the first.
    """
    view = _View.of(mechanism, problem, prior, distance, adversary)
    matrix, error = _best_guesses(mechanism, view.belief, view.errors)
    return _attack("optimal", matrix, mechanism, error, guesses=view.guesses)


def uniform(
    mechanism: Mechanism, problem: Problem, *, distance: Measure | None = None, adversary: Adversary | None = None
) -> Attack:
    r"""The attack that minimises the sum of the errors of all secrets, each counting the same.

    Paper: eq:lp:adversary:diff, the closed form as for the optimal attack with weight 1 on every secret.
    """
    view = _View.of(mechanism, problem, None, distance, adversary)
    matrix, error = _best_guesses(mechanism, np.ones(len(problem.space)), view.errors)
    return _attack("uniform", matrix, mechanism, error, guesses=view.guesses)


def bayesian(
    mechanism: Mechanism,
    problem: Problem,
    *,
    prior: Prior | None = None,
    distance: Measure | None = None,
    adversary: Adversary | None = None,
) -> Attack:
    r"""Bayes' rule: estimates are drawn from the posterior, whatever the distance.

    Paper: eq:attack:bayesian, :math:`q(ŝ|o) = π(ŝ)\,p(o|ŝ) / \sum_s π(s)\,p(o|s)`.
    """
    view = _View.of(mechanism, problem, prior, distance, adversary)
    if view.guesses != problem.space:
        raise InvalidProblem("Bayes' rule draws secrets; this adversary guesses something else: use attacks.optimal")
    belief = view.belief
    joint = mechanism.probabilities.T * belief
    total = joint.sum(axis=1, keepdims=True)
    matrix = np.where(total > 0, np.divide(joint, total, where=total > 0, out=np.zeros_like(joint)), belief)
    error = float((joint * (matrix @ view.errors)).sum())
    return _attack("bayesian", matrix, mechanism, error)


def minmax(
    mechanism: Mechanism, problem: Problem, *, distance: Measure | None = None, adversary: Adversary | None = None
) -> Attack:
    r"""The attack that does least badly on its worst secret (eq:lp:adversary:diff:minmax).

    By duality its error is that of the optimal attack under the *least favourable prior*, an n-variable concave
    maximisation. Guesses are added by need: solve with some, find for each observable a better guess under the
    prior found, until none is better by more than a relative 10⁻⁹. Any prior proves a lower bound on the error of every
    attack, so the error is proved to be the least up to a relative 10⁻⁶.

    Raises:
        SolveFailed: it was not proved.
    """
    view = _View.of(mechanism, problem, None, distance, adversary)
    found = least_worst_error(mechanism.probabilities, view.errors)
    return _attack("minmax", found.attack, mechanism, found.error, found.bound, guesses=view.guesses)


def minmax_pairs(mechanism: Mechanism, problem: Problem, *, distance: Measure | None = None) -> Attack:
    """The attack with the least largest error over pairs of secret and estimate (eq:lp:adversary:diff:minmax2).

    Its error is proved to be the least up to a relative 10⁻⁶; 300 secrets and observables take seconds.
    """
    require_fit(mechanism, problem)
    found = least_largest_error(mechanism.probabilities, _distance(problem, distance))
    return _attack("minmax pairs", found.attack, mechanism, found.error, found.bound)


def given(
    mechanism: Mechanism,
    problem: Problem,
    attack: ArrayLike,
    *,
    name: str = "given",
    prior: Prior | None = None,
    distance: Measure | None = None,
    adversary: Adversary | None = None,
) -> Attack:
    """An attack of your own, from q(ŝ|o); ``error`` is its expected error, to compare with the optimal attack's.

    Args:
        mechanism: what it attacks.
        problem: costs and distances.
        attack: q(ŝ|o), (observables, guesses); every row sums to one.
        name: what to call it.
        prior: what the adversary believes; by default the problem's prior.
        distance: what the adversary minimises; by default the problem's distance.
        adversary: instead of both, an adversary.
    """
    view = _View.of(mechanism, problem, prior, distance, adversary)
    _, observables = problem.shape
    meaning = "(observables, estimates)"
    matrix = require_nonnegative(attack, what="the attack", shape=(observables, len(view.guesses)), meaning=meaning)
    if (np.abs(matrix.sum(axis=1) - 1) > SUM_TOLERANCE).any():
        raise InvalidProblem("every row of the attack must sum to 1: q(·|o) is a distribution")
    joint = mechanism.probabilities.T * view.belief
    error = float((joint * (matrix @ view.errors)).sum())
    return _attack(name, matrix, mechanism, error, guesses=view.guesses)


def _best_guesses(mechanism: Mechanism, weights: FloatArray, distance: FloatArray) -> tuple[FloatArray, float]:
    errors = (distance * weights) @ mechanism.probabilities  # (ŝ, o)
    unseen = errors.max(axis=0) == 0
    errors[:, unseen] = (distance @ weights)[:, None]  # answered from the prior alone
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
    guesses: Space | None = None,
) -> Attack:
    possible = freeze(np.asarray(mechanism.weights.any(axis=0)))
    return Attack(name, freeze(matrix), guesses or mechanism.secrets, mechanism.observables, error, bound, possible)


@dataclass(frozen=True)
class _View:
    """What an attack goes by: a belief, errors (guesses, secrets) and what the guesses are called."""

    belief: FloatArray
    errors: FloatArray
    guesses: Space

    @classmethod
    def of(
        cls,
        mechanism: Mechanism,
        problem: Problem,
        prior: Prior | None,
        distance: Measure | None,
        adversary: Adversary | None,
    ) -> "_View":
        require_fit(mechanism, problem)
        if adversary is not None:
            if prior is not None or distance is not None:
                raise InvalidProblem("an adversary has a prior and errors of her own: leave out prior and distance")
            arrays = require_instance(adversary, Adversary, "the adversary").arrays(problem)
            return cls(arrays.prior, arrays.errors, adversary.guess_space(problem.space))
        if prior is not None:
            require_secrets(mechanism, prior)
        belief = problem.prior if prior is None else prior
        return cls(belief.probabilities, _distance(problem, distance), problem.space)


def _distance(problem: Problem, distance: Measure | None) -> FloatArray:
    if distance is None:
        return problem.distance
    what = "the adversary's distance"
    return finite(distance_matrix(distance, what, problem.space), what)
