"""What a mechanism costs and how much privacy it gives, measured: independent of how it was designed."""

import numpy as np

from privacygames.arrays import FloatArray, loss_matmul, loss_per_secret
from privacygames.attacks import Attack
from privacygames.beliefs import Prior, entropy
from privacygames.certificates import realised_epsilon
from privacygames.errors import Field, InvalidProblem
from privacygames.mechanism import Mechanism, require_fit, require_secrets
from privacygames.problem import Adversary, Problem

__all__ = [
    "cost_per_secret",
    "distortion",
    "distortion_per_secret",
    "epsilon",
    "exactness",
    "expected_cost",
    "mutual_information",
    "posterior_entropy",
    "privacy",
    "vulnerability",
    "worst_cost",
]


def __dir__() -> list[str]:
    return __all__


def cost_per_secret(mechanism: Mechanism, problem: Problem) -> FloatArray:
    """Σ_o p(o|s) c(o,s) for every secret."""
    require_fit(mechanism, problem)
    return loss_per_secret(mechanism.probabilities, problem.cost)


def expected_cost(mechanism: Mechanism, problem: Problem) -> float:
    """The average cost over the prior (eq:utility:avgmetric)."""
    return float(loss_matmul(cost_per_secret(mechanism, problem)[None], problem.prior.probabilities)[0])


def worst_cost(mechanism: Mechanism, problem: Problem) -> float:
    """The cost of the worst secret (eq:utility:maxmetric)."""
    return float(cost_per_secret(mechanism, problem).max())


def distortion_per_secret(mechanism: Mechanism, problem: Problem, attack: Attack) -> FloatArray:
    """How wrong the attack is when the secret is s: Σ_o p(o|s) Σ_ŝ q(ŝ|o) d(ŝ,s) (eq:privacy:bayesian:persecret)."""
    _require_estimates(mechanism, problem, attack)
    return np.asarray((mechanism.probabilities.T * (attack.matrix @ problem.distance)).sum(axis=0))


def distortion(mechanism: Mechanism, problem: Problem, attack: Attack, truth: Prior | None = None) -> float:
    """Distortion privacy against an attack, averaged over the prior (eq:privacy:bayesian:average) or ``truth``."""
    belief = problem.prior if truth is None else truth
    return float(belief.probabilities @ distortion_per_secret(mechanism, problem, attack))


def exactness(mechanism: Mechanism, problem: Problem, attack: Attack, truth: Prior | None = None) -> float:
    """How often an attack's estimate is the secret itself: Σ_{s,o} π(s) p(o|s) q(s|o)."""
    _require_estimates(mechanism, problem, attack)
    belief = problem.prior if truth is None else truth
    return float(belief.probabilities @ (mechanism.probabilities * attack.matrix.T).sum(axis=1))


def privacy(mechanism: Mechanism, problem: Problem, adversary: Adversary) -> float:
    """What an adversary's best guesses err by, as she sees it: A_k(p) = Σ_o min_g Σ_s π_k(s) p(o|s) E_k(g,s)."""
    require_fit(mechanism, problem)
    arrays = adversary.arrays(problem)
    return float((arrays.weighted @ mechanism.probabilities).min(axis=0).sum())


def _require_estimates(mechanism: Mechanism, problem: Problem, attack: Attack) -> None:
    require_fit(mechanism, problem)
    if attack.secrets != problem.space:
        raise InvalidProblem("this attack does not guess the secret: what it errs by is attack.error")


def epsilon(mechanism: Mechanism, problem: Problem, *, within: float | None = None) -> float:
    """The smallest ε the mechanism keeps, in the metric form or (``within``) the threshold form; ∞ if none."""
    require_fit(mechanism, problem)
    if within is not None and not (isinstance(within, int | float) and within >= 0):
        raise InvalidProblem(Field("within"), f" is {within!r}; it must be a number, 0 or more")
    return realised_epsilon(mechanism.weights, problem.distinguishability, within)


def posterior_entropy(mechanism: Mechanism, prior: Prior) -> float:
    """What the adversary still does not know after an observation, on average, in bits: H(S|O)."""
    require_secrets(mechanism, prior)
    joint = mechanism.probabilities.T * prior.probabilities
    return entropy(joint.ravel()) - entropy(joint.sum(axis=1))


def mutual_information(mechanism: Mechanism, prior: Prior) -> float:
    """What an observation gives away, on average, in bits: H(S) − H(S|O)."""
    return max(prior.entropy() - posterior_entropy(mechanism, prior), 0.0)


def vulnerability(mechanism: Mechanism, prior: Prior, truth: Prior | None = None) -> float:
    """The chance that the adversary's one best guess is exactly right.

    Σ_o max_s π(s) p(o|s) if his prior is the truth; otherwise how often what he guesses is true.
    """
    require_secrets(mechanism, prior)
    real = prior if truth is None else truth
    guesses = (mechanism.probabilities.T * prior.probabilities).argmax(axis=1)
    columns = np.arange(len(guesses))
    return float((mechanism.probabilities[guesses, columns] * real.probabilities[guesses]).sum())
