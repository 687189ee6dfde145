"""What a mechanism costs and how much privacy it gives, measured: independent of how it was designed."""

from dataclasses import asdict, dataclass

import numpy as np

from privacygames import attacks
from privacygames.arrays import FloatArray
from privacygames.attacks import Attack, require_fit
from privacygames.errors import InvalidProblem
from privacygames.mechanism.mechanism import Mechanism
from privacygames.mechanism.ratios import realised_epsilon
from privacygames.prior import Prior, entropy
from privacygames.problem import Measure, Problem


def cost_per_secret(mechanism: Mechanism, problem: Problem) -> FloatArray:
    """Σ_o p(o|s) c(o,s) for every secret."""
    require_fit(mechanism, problem)
    return np.asarray((mechanism.probabilities * problem.cost.T).sum(axis=1))


def expected_cost(mechanism: Mechanism, problem: Problem) -> float:
    """The average cost over the prior (eq:utility:avgmetric)."""
    return float(problem.prior.probabilities @ cost_per_secret(mechanism, problem))


def worst_cost(mechanism: Mechanism, problem: Problem) -> float:
    """The cost of the worst secret (eq:utility:maxmetric)."""
    return float(cost_per_secret(mechanism, problem).max())


def distortion_per_secret(mechanism: Mechanism, problem: Problem, attack: Attack) -> FloatArray:
    """How wrong the attack is when the secret is s: Σ_o p(o|s) Σ_ŝ q(ŝ|o) d(ŝ,s) (eq:privacy:bayesian:persecret)."""
    require_fit(mechanism, problem)
    return np.asarray((mechanism.probabilities.T * (attack.matrix @ problem.distance)).sum(axis=0))


def distortion(mechanism: Mechanism, problem: Problem, attack: Attack, truth: Prior | None = None) -> float:
    """Distortion privacy against an attack, averaged over the prior (eq:privacy:bayesian:average) or ``truth``."""
    belief = problem.prior if truth is None else truth
    return float(belief.probabilities @ distortion_per_secret(mechanism, problem, attack))


def exactness(mechanism: Mechanism, problem: Problem, attack: Attack, truth: Prior | None = None) -> float:
    """How often an attack's estimate is the secret itself: Σ_{s,o} π(s) p(o|s) q(s|o)."""
    require_fit(mechanism, problem)
    belief = problem.prior if truth is None else truth
    return float(belief.probabilities @ (mechanism.probabilities * attack.matrix.T).sum(axis=1))


def epsilon(mechanism: Mechanism, problem: Problem, *, within: float | None = None) -> float:
    """The smallest ε the mechanism keeps, in the metric form or (``within``) the threshold form; ∞ if none."""
    require_fit(mechanism, problem)
    if within is not None and not (isinstance(within, int | float) and within >= 0):
        raise InvalidProblem(f"within is {within!r}; it must be a number, 0 or more")
    return realised_epsilon(mechanism.weights, problem.distinguishability, within)


def posterior_entropy(mechanism: Mechanism, prior: Prior) -> float:
    """What the adversary still does not know after an observation, on average, in bits: H(S|O)."""
    _same_secrets(mechanism, prior)
    joint = mechanism.probabilities.T * prior.probabilities
    return entropy(joint.ravel()) - entropy(joint.sum(axis=1))


def mutual_information(mechanism: Mechanism, prior: Prior) -> float:
    """What an observation gives away, on average, in bits: H(S) − H(S|O)."""
    return max(prior.entropy() - posterior_entropy(mechanism, prior), 0.0)


def vulnerability(mechanism: Mechanism, prior: Prior, truth: Prior | None = None) -> float:
    """The chance that the adversary's one best guess is exactly right.

    Σ_o max_s π(s) p(o|s) if his prior is the truth; otherwise how often what he guesses is true.
    """
    _same_secrets(mechanism, prior)
    real = prior if truth is None else truth
    guesses = (mechanism.probabilities.T * prior.probabilities).argmax(axis=1)
    columns = np.arange(len(guesses))
    return float((mechanism.probabilities[guesses, columns] * real.probabilities[guesses]).sum())


@dataclass(frozen=True)
class Report:
    """A mechanism's cost and privacy; prints as a table and converts to a dict.

    Attributes:
        cost: the average cost.
        worst_cost: the cost of the worst secret.
        epsilon: realised ε in the metric form (∞ if no ε holds).
        epsilon_within: realised ε in the threshold form, if a threshold was given.
        distortion: distortion privacy against the optimal attack.
        distortion_bayesian: distortion privacy against the Bayesian attack.
        distortion_from_prior: what the adversary's error would be without any observation.
        prior_entropy: bits the adversary lacks before an observation, by his own prior.
        posterior_entropy: bits he lacks after one, on average, by his own prior.
        mutual_information: bits an observation gives him, on average.
        prior_vulnerability: the chance of guessing the secret outright before an observation, by the likeliest guess.
        vulnerability: the chance of guessing it outright after one, by the likeliest guess.
        exact_from_prior: how often the guess with the least expected error is exact before an observation.
        exact: how often the optimal attack's guess, the one with the least expected error, is exact.
    """

    cost: float
    worst_cost: float
    epsilon: float
    epsilon_within: float | None
    distortion: float
    distortion_bayesian: float
    distortion_from_prior: float
    prior_entropy: float
    posterior_entropy: float
    mutual_information: float
    prior_vulnerability: float
    vulnerability: float
    exact_from_prior: float
    exact: float

    def to_dict(self) -> dict[str, float | None]:
        """Plain values by name."""
        return asdict(self)

    def rows(self) -> list[tuple[str, str]]:
        """Pairs of name and value, in words."""
        rows = [
            ("cost, average", _number(self.cost)),
            ("cost, worst secret", _number(self.worst_cost)),
            ("distortion, optimal attack", _number(self.distortion)),
            ("distortion, Bayesian attack", _number(self.distortion_bayesian)),
            ("distortion, before observing", _number(self.distortion_from_prior)),
            ("realised epsilon", _number(self.epsilon)),
            ("entropy before → after", f"{self.prior_entropy:.3f} → {self.posterior_entropy:.3f} bits"),
            ("given away by an answer", f"{self.mutual_information:.3f} bits"),
            ("best guess is exact", f"{self.exact_from_prior:.1%} → {self.exact:.1%}"),
            ("likeliest guess is exact", f"{self.prior_vulnerability:.1%} → {self.vulnerability:.1%}"),
        ]
        if self.epsilon_within is not None:
            rows.insert(6, ("realised epsilon, within", _number(self.epsilon_within)))
        return rows

    def __str__(self) -> str:
        return "\n".join(f"{name:<30}{value}" for name, value in self.rows())


def evaluate(
    mechanism: Mechanism,
    problem: Problem,
    *,
    adversary_prior: Prior | None = None,
    adversary_distance: Measure | None = None,
    truth: Prior | None = None,
    within: float | None = None,
) -> Report:
    """Measure a mechanism against a problem.

    Args:
        mechanism: what is released.
        problem: costs and distances.
        adversary_prior: what the adversary believes, π̂; by default the problem's prior.
        adversary_distance: what the optimal attack minimises; by default the problem's distance. Errors are
            always measured in the problem's.
        truth: how likely secrets really are, over which costs and errors are averaged; by default the
            problem's prior. An adversary who *knows more* has ``adversary_prior`` and ``truth`` the same.
        within: also report the realised ε of the threshold form.
    """
    require_fit(mechanism, problem)
    belief = problem.prior if adversary_prior is None else adversary_prior
    real = problem.prior if truth is None else truth
    for prior in (belief, real):
        _same_secrets(mechanism, prior)
    best = attacks.optimal(mechanism, problem, prior=belief, distance=adversary_distance)
    bayes = attacks.bayesian(mechanism, problem, prior=belief)
    costs = cost_per_secret(mechanism, problem)
    guess = int((problem.distance @ belief.probabilities).argmin())
    return Report(
        cost=float(real.probabilities @ costs),
        worst_cost=float(costs.max()),
        epsilon=epsilon(mechanism, problem),
        epsilon_within=None if within is None else epsilon(mechanism, problem, within=within),
        distortion=distortion(mechanism, problem, best, real),
        distortion_bayesian=distortion(mechanism, problem, bayes, real),
        distortion_from_prior=float(problem.distance[guess] @ real.probabilities),
        prior_entropy=belief.entropy(),
        posterior_entropy=posterior_entropy(mechanism, belief),
        mutual_information=mutual_information(mechanism, belief),
        prior_vulnerability=float(real.probabilities[belief.probabilities.argmax()]),
        vulnerability=vulnerability(mechanism, belief, real),
        exact_from_prior=float(real.probabilities[guess]),
        exact=exactness(mechanism, problem, best, real),
    )


def _same_secrets(mechanism: Mechanism, prior: Prior) -> None:
    if prior.space.labels != mechanism.secrets.labels:
        raise InvalidProblem("the prior is over other secrets than the mechanism's")


def _number(value: float) -> str:
    """Four decimals, or four digits where those would be zeros."""
    return f"{value:.4g}" if 0 < abs(value) < 0.001 else f"{value:.4f}"
