"""Cost and privacy metrics of a mechanism, measured independently of how it was designed."""

import numpy as np

from privacygames.arrays import FloatArray, loss_matmul, loss_per_secret
from privacygames.attacks import Attack
from privacygames.beliefs import Prior, conditional_entropy, information
from privacygames.certificates import realised_epsilon
from privacygames.errors import Field, InvalidProblem
from privacygames.mechanism import Mechanism, require_fit, require_secrets
from privacygames.problem import Adversary, Problem

__all__ = [
    "accuracy",
    "adversary_error",
    "cost_per_secret",
    "distortion",
    "distortion_per_secret",
    "epsilon",
    "expected_cost",
    "mutual_information",
    "posterior_entropy",
    "vulnerability",
    "worst_cost",
]


def __dir__() -> list[str]:
    return __all__


def cost_per_secret(mechanism: Mechanism, problem: Problem) -> FloatArray:
    """Expected cost given each secret, Σ_o p(o|s) c(o,s).

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> pg.metrics.cost_per_secret(pg.baselines.constant(problem), problem).tolist()
    [1.0, 1.0, 0.0]
    """
    require_fit(mechanism, problem)
    return loss_per_secret(mechanism.probabilities, problem.cost)


def expected_cost(mechanism: Mechanism, problem: Problem) -> float:
    """Expected cost under the prior (eq:utility:avgmetric).

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> pg.metrics.expected_cost(pg.baselines.constant(problem), problem)
    0.5
    """
    return float(loss_matmul(cost_per_secret(mechanism, problem)[None], problem.prior.probabilities)[0])


def worst_cost(mechanism: Mechanism, problem: Problem) -> float:
    """Largest expected cost given any one secret (eq:utility:maxmetric).

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> pg.metrics.worst_cost(pg.baselines.constant(problem), problem)
    1.0
    """
    return float(cost_per_secret(mechanism, problem).max())


def distortion_per_secret(mechanism: Mechanism, problem: Problem, attack: Attack) -> FloatArray:
    """Expected error of an attack given each secret, Σ_o p(o|s) Σ_ŝ q(ŝ|o) d(ŝ,s) (eq:privacy:bayesian:persecret).

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> mechanism = pg.baselines.constant(problem)
    >>> pg.metrics.distortion_per_secret(mechanism, problem, pg.attacks.optimal(mechanism, problem)).tolist()
    [1.0, 1.0, 0.0]
    """
    _require_estimates(mechanism, problem, attack)
    return np.asarray((mechanism.probabilities.T * (attack.matrix @ problem.distance)).sum(axis=0))


def distortion(mechanism: Mechanism, problem: Problem, attack: Attack, truth: Prior | None = None) -> float:
    """Distortion privacy: expected error of an attack under the prior (eq:privacy:bayesian:average) or ``truth``.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> mechanism = pg.baselines.constant(problem)
    >>> pg.metrics.distortion(mechanism, problem, pg.attacks.optimal(mechanism, problem))
    0.5
    """
    belief = problem.prior if truth is None else truth
    return float(belief.probabilities @ distortion_per_secret(mechanism, problem, attack))


def accuracy(mechanism: Mechanism, problem: Problem, attack: Attack, truth: Prior | None = None) -> float:
    """Probability that an attack's estimate is the secret, Σ_{s,o} π(s) p(o|s) q(s|o).

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> mechanism = pg.baselines.identity(problem)
    >>> pg.metrics.accuracy(mechanism, problem, pg.attacks.optimal(mechanism, problem))
    1.0
    """
    _require_estimates(mechanism, problem, attack)
    belief = problem.prior if truth is None else truth
    return float(belief.probabilities @ (mechanism.probabilities * attack.matrix.T).sum(axis=1))


def adversary_error(mechanism: Mechanism, problem: Problem, adversary: Adversary) -> float:
    """Least expected error of an adversary, by their own prior and errors: Σ_o min_g Σ_s π_k(s) p(o|s) E_k(g,s).

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> uninformed = pg.Adversary("uninformed", prior=pg.Prior.uniform(illnesses))
    >>> round(pg.metrics.adversary_error(pg.baselines.constant(problem), problem, uninformed), 4)
    0.6667
    """
    require_fit(mechanism, problem)
    arrays = adversary.arrays(problem)
    return float((arrays.joint_errors @ mechanism.probabilities).min(axis=0).sum())


def _require_estimates(mechanism: Mechanism, problem: Problem, attack: Attack) -> None:
    require_fit(mechanism, problem)
    if attack.estimates != problem.space:
        raise InvalidProblem("this attack does not guess the secret: what it errs by is attack.error")


def epsilon(mechanism: Mechanism, problem: Problem, *, within: float | None = None) -> float:
    """Realised ε: the smallest ε that holds, in the metric form or (``within``) the threshold form; ∞ if none does.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> round(pg.metrics.epsilon(pg.baselines.randomised_response(problem, 1.0), problem), 6)
    1.0
    >>> pg.metrics.epsilon(pg.baselines.identity(problem), problem)
    inf
    """
    require_fit(mechanism, problem)
    if within is not None and not (isinstance(within, int | float) and within >= 0):
        raise InvalidProblem(Field("within"), f" is {within!r}; it must be a number, 0 or more")
    return realised_epsilon(mechanism.weights, problem.distinguishability, within)


def posterior_entropy(mechanism: Mechanism, prior: Prior) -> float:
    """Expected entropy of the secret after an observation, H(S|O), in bits.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> pg.metrics.posterior_entropy(pg.baselines.identity(problem), problem.prior)
    0.0
    """
    require_secrets(mechanism, prior)
    return conditional_entropy(mechanism.probabilities.T * prior.probabilities)


def mutual_information(mechanism: Mechanism, prior: Prior) -> float:
    """Expected information that an output gives about the secret, H(S) − H(S|O), in bits.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> pg.metrics.mutual_information(pg.baselines.constant(problem), problem.prior)
    0.0
    """
    require_secrets(mechanism, prior)
    return information(prior.probabilities, mechanism.probabilities)


def vulnerability(mechanism: Mechanism, prior: Prior, truth: Prior | None = None) -> float:
    """Bayes vulnerability: probability that the adversary's likeliest guess is the secret.

    Σ_o max_s π(s) p(o|s) where the adversary's prior is the truth; otherwise the probability, under ``truth``, that
    what they guess is the secret.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> pg.metrics.vulnerability(pg.baselines.constant(problem), problem.prior)
    0.5
    """
    require_secrets(mechanism, prior)
    real = prior if truth is None else truth
    guesses = (mechanism.probabilities.T * prior.probabilities).argmax(axis=1)
    columns = np.arange(len(guesses))
    return float((mechanism.probabilities[guesses, columns] * real.probabilities[guesses]).sum())
