"""``evaluate``: everything about a mechanism in one report."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields

from privacygames import attacks, metrics
from privacygames.analysis.adversary_results import adversary_results, adversary_table
from privacygames.analysis.findings import remarks
from privacygames.arrays import loss_matmul
from privacygames.beliefs import Prior
from privacygames.certificates import AdversaryResult, Usefulness
from privacygames.mechanism import Mechanism, require_fit, require_secrets
from privacygames.problem import (
    UNTRUE,
    WRONG,
    Adversary,
    Measure,
    Problem,
    cost_scale,
    distance_scale,
    distinguishability_scale,
)

UNBOUNDED = "not bounded by design"


@dataclass(frozen=True)
class Report:
    """A mechanism's cost and privacy; prints as a table, remarks first, and converts to a dict.

    Attributes:
        cost: the average cost.
        worst_cost: the cost of the worst secret.
        epsilon: realised ε in the metric form (∞ if no ε holds).
        epsilon_within: realised ε in the threshold form, if a threshold was given.
        within: that threshold.
        any_pair: the largest log-ratio between any two secrets, however far apart; ∞ where an output rules one out.
        epsilon_promised: whether the mechanism promises an ε at all. Where it does not, the realised one is an accident
            of rounding, not a property to rely on.
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
        usefulness: how much an answer says, and whom answers never serve.
        problem: what was measured against.
        against: where each of several adversaries stands: what is promised, realised and possible against her.
    """

    cost: float
    worst_cost: float
    epsilon: float
    epsilon_within: float | None
    within: float | None
    any_pair: float
    epsilon_promised: bool
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
    usefulness: Usefulness
    problem: Problem = field(repr=False, compare=False)
    against: tuple[AdversaryResult, ...] = ()

    def to_dict(self) -> dict[str, float | str | None]:
        """Plain values by name, one level deep; units where they are known."""
        useful, problem = self.usefulness, self.problem
        numbers = {each.name: getattr(self, each.name) for each in fields(self)}
        for name in ("usefulness", "problem", "against"):
            del numbers[name]
        adversary_results: dict[str, float | str | None] = {}
        for stand in self.against:
            adversary_results[f"promised against {stand.adversary}"] = stand.promised
            adversary_results[f"realised against {stand.adversary}"] = stand.realised
            adversary_results[f"possible against {stand.adversary}"] = stand.possible
        remarks = {
            "constant": useful.constant,
            "kinds": useful.kinds,
            "unserved": len(useful.unserved),
            "unserved_share": useful.unserved_share,
        }
        units = {
            "cost_unit": cost_scale(problem).unit,
            "distance_unit": distance_scale(problem).unit,
            "epsilon_unit": distinguishability_scale(problem).unit,
            "epsilon_counted": distinguishability_scale(problem).per(),
        }
        return numbers | remarks | units | adversary_results

    def rows(self) -> list[tuple[str, str]]:
        """Pairs of name and value, in words."""
        cost, distance = cost_scale(self.problem), distance_scale(self.problem)
        rows = [
            ("cost, average", cost.amount(_number(self.cost), UNTRUE)),
            ("cost, worst secret", cost.amount(_number(self.worst_cost), UNTRUE)),
            ("distortion, optimal attack", distance.amount(_number(self.distortion), WRONG)),
            ("distortion, Bayesian attack", distance.amount(_number(self.distortion_bayesian), WRONG)),
            ("distortion, before observing", distance.amount(_number(self.distortion_from_prior), WRONG)),
            ("realised epsilon", self.format_epsilon()),
            ("entropy before → after", f"{self.prior_entropy:.3f} → {self.posterior_entropy:.3f} bits"),
            ("given away by an answer", f"{self.mutual_information:.3f} bits"),
            ("best guess is exact", f"{self.exact_from_prior:.1%} → {self.exact:.1%}"),
            ("likeliest guess is exact", f"{self.prior_vulnerability:.1%} → {self.vulnerability:.1%}"),
        ]
        if self.epsilon_within is not None:
            rows.insert(6, ("realised epsilon, within", self.format_epsilon(self.within)))
        return rows

    def format_epsilon(self, within: float | None = None) -> str:
        """The realised ε as people read it, in the metric form or, with the report's threshold, in that form."""
        if not self.epsilon_promised:
            return UNBOUNDED
        value = self.epsilon if within is None or self.epsilon_within is None else self.epsilon_within
        return distinguishability_scale(self.problem).epsilon(_number(value), self.any_pair, within=within)

    def __str__(self) -> str:
        lines = [f"{name:<30}{value}" for name, value in self.rows()]
        lines += [] if not self.against else ["", adversary_table(self.against)]
        return "\n".join([*map(str, remarks(self.usefulness, self.problem)), *lines])


def evaluate(
    mechanism: Mechanism,
    problem: Problem,
    *,
    adversary_prior: Prior | None = None,
    adversary_distance: Measure | None = None,
    truth: Prior | None = None,
    within: float | None = None,
    adversaries: Iterable[Adversary] | None = None,
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
        adversaries: whom else to measure against, each as she sees it; by default those that the mechanism promises
            something against.
    """
    require_fit(mechanism, problem)
    if adversaries is None:
        adversaries = [promise.adversary for promise in mechanism.certificate.bounds.against]
    belief = problem.prior if adversary_prior is None else adversary_prior
    real = problem.prior if truth is None else truth
    for prior in (belief, real):
        require_secrets(mechanism, prior)
    best = attacks.optimal(mechanism, problem, prior=belief, distance=adversary_distance)
    bayes = attacks.bayesian(mechanism, problem, prior=belief)
    costs = metrics.cost_per_secret(mechanism, problem)
    guess = int((problem.distance @ belief.probabilities).argmin())
    return Report(
        cost=float(loss_matmul(costs[None], real.probabilities)[0]),
        worst_cost=float(costs.max()),
        epsilon=metrics.epsilon(mechanism, problem),
        epsilon_within=None if within is None else metrics.epsilon(mechanism, problem, within=within),
        within=within,
        any_pair=mechanism.certificate.any_pair,
        epsilon_promised=mechanism.certificate.bounds.epsilon is not None,
        distortion=metrics.distortion(mechanism, problem, best, real),
        distortion_bayesian=metrics.distortion(mechanism, problem, bayes, real),
        distortion_from_prior=float(problem.distance[guess] @ real.probabilities),
        prior_entropy=belief.entropy(),
        posterior_entropy=metrics.posterior_entropy(mechanism, belief),
        mutual_information=metrics.mutual_information(mechanism, belief),
        prior_vulnerability=float(real.probabilities[belief.probabilities.argmax()]),
        vulnerability=metrics.vulnerability(mechanism, belief, real),
        exact_from_prior=float(real.probabilities[guess]),
        exact=metrics.exactness(mechanism, problem, best, real),
        usefulness=mechanism.certificate.usefulness,
        problem=problem,
        against=adversary_results(mechanism, problem, adversaries),
    )


def _number(value: float) -> str:
    """Four decimals, or four digits where those would be zeros."""
    return f"{value:.4g}" if 0 < abs(value) < 0.001 else f"{value:.4f}"
