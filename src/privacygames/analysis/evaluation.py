"""``evaluate``: cost, privacy and usefulness of a mechanism in one report."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, cast, overload

from privacygames import attacks
from privacygames import metrics as measures
from privacygames.analysis.adversary_results import adversary_results, adversary_table
from privacygames.analysis.findings import usefulness_warnings
from privacygames.analysis.formatting import format_decimals
from privacygames.analysis.further_metrics import checked_metrics
from privacygames.analysis.point_evaluation import PointMetric, PointReport, evaluate_points
from privacygames.arrays import loss_matmul
from privacygames.beliefs import PointPrior, Prior
from privacygames.certificates import AdversaryResult, Usefulness
from privacygames.display import Displayed, ShownTable
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism, require_fit, require_secrets
from privacygames.points import PointBaseline, PointProblem, PointSampleable
from privacygames.problem import (
    BETWEEN_COORDINATES,
    HAMMING_COST,
    HAMMING_DISTANCE,
    Adversary,
    Measure,
    Problem,
    cost_scale,
    distance_scale,
    distinguishability_scale,
)
from privacygames.spaces import Grid
from privacygames.validation import require_instance

UNBOUNDED = "not bounded by design"

Metric = Callable[[Mechanism, Problem], float]
"""A function that measures a mechanism against a problem."""

KEYS = {
    "epsilon_guaranteed": "epsilon_promised",
    "accuracy": "exact",
    "accuracy_from_prior": "exact_from_prior",
}
"""Keys of a report's JSON and CSV that differ from its attributes: files and the HTTP API keep them."""


@dataclass(frozen=True)
class Report(Displayed):
    """Cost and privacy of a mechanism, measured; prints as a table with warnings first, and converts to a dict.

    Attributes:
        cost: expected cost under the prior.
        worst_cost: expected cost of the worst secret.
        epsilon: realised ε in the metric form (∞ if no ε holds).
        epsilon_within: realised ε in the threshold form, if a threshold was given.
        within: that threshold.
        any_pair: the largest log-ratio between any two secrets, however far apart; ∞ where an output rules one out.
        epsilon_guaranteed: whether the mechanism guarantees an ε. Where it does not, the realised ε is an accident of
            rounding, not a property to rely on.
        distortion: distortion privacy against the optimal attack.
        distortion_bayesian: distortion privacy against the Bayesian attack.
        distortion_from_prior: the adversary's expected error without any observation.
        prior_entropy: entropy of the secret before an observation, in bits, under the adversary's prior.
        posterior_entropy: expected entropy of the secret after an observation, in bits, under the adversary's prior.
        mutual_information: expected information an output gives about the secret, in bits.
        prior_vulnerability: probability that the likeliest guess is the secret before an observation.
        vulnerability: probability that the likeliest guess is the secret after an observation.
        accuracy_from_prior: probability that the guess of least expected error is the secret before an observation.
        accuracy: probability that the optimal attack's guess (of least expected error) is the secret.
        usefulness: how much the outputs depend on the secret, and which secrets never get their best output.
        problem: the problem it was measured against.
        adversary_results: for each adversary, the error guaranteed, realised and possible.
        metrics: values of the further metrics that :func:`evaluate` was given, by name.

    >>> problem = pg.Problem(pg.Prior.uniform(pg.Categories(["yes", "no"])))
    >>> report = pg.evaluate(pg.design(problem, epsilon=1.0), problem)
    >>> f"cost {report.cost:.3f}, attack accuracy {report.accuracy:.3f}"
    'cost 0.269, attack accuracy 0.731'
    """

    cost: float
    worst_cost: float
    epsilon: float
    epsilon_within: float | None
    within: float | None
    any_pair: float
    epsilon_guaranteed: bool
    distortion: float
    distortion_bayesian: float
    distortion_from_prior: float
    prior_entropy: float
    posterior_entropy: float
    mutual_information: float
    prior_vulnerability: float
    vulnerability: float
    accuracy_from_prior: float
    accuracy: float
    usefulness: Usefulness
    problem: Problem = field(repr=False, compare=False)
    adversary_results: tuple[AdversaryResult, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict, hash=False)

    def to_dict(self) -> dict[str, float | str | None]:
        """Plain values by name, one level deep, for JSON and CSV; units where they are known."""
        useful, problem = self.usefulness, self.problem
        values = {KEYS.get(each.name, each.name): getattr(self, each.name) for each in fields(self)}
        for name in ("usefulness", "problem", "adversary_results", "metrics"):
            del values[name]
        usefulness = {
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
        against: dict[str, float | str | None] = {}
        for result in self.adversary_results:
            against[f"promised against {result.adversary}"] = result.guaranteed
            against[f"realised against {result.adversary}"] = result.realised
            against[f"possible against {result.adversary}"] = result.maximum
        return values | usefulness | units | against | dict(self.metrics)

    def rows(self) -> list[tuple[str, str]]:
        """The lines of the table: pairs of a name and a value with its unit."""
        cost, distance = cost_scale(self.problem), distance_scale(self.problem)
        rows = [
            ("cost, average", cost.amount(format_decimals(self.cost), HAMMING_COST)),
            ("cost, worst secret", cost.amount(format_decimals(self.worst_cost), HAMMING_COST)),
            ("distortion, optimal attack", distance.amount(format_decimals(self.distortion), HAMMING_DISTANCE)),
            (
                "distortion, Bayesian attack",
                distance.amount(format_decimals(self.distortion_bayesian), HAMMING_DISTANCE),
            ),
            (
                "distortion, before observing",
                distance.amount(format_decimals(self.distortion_from_prior), HAMMING_DISTANCE),
            ),
            ("realised epsilon", self.format_epsilon()),
            ("entropy before → after", f"{self.prior_entropy:.3f} → {self.posterior_entropy:.3f} bits"),
            ("given away by an output", f"{self.mutual_information:.3f} bits"),
            ("best guess is exact", f"{self.accuracy_from_prior:.1%} → {self.accuracy:.1%}"),
            ("likeliest guess is exact", f"{self.prior_vulnerability:.1%} → {self.vulnerability:.1%}"),
        ]
        if self.epsilon_guaranteed and self.any_pair > 0 and isinstance(self.problem.space, Grid):
            rows.insert(6, BETWEEN_COORDINATES)
        if self.epsilon_within is not None:
            rows.insert(6, ("realised epsilon, within", self.format_epsilon(self.within)))
        return rows + [(name, format_decimals(value)) for name, value in self.metrics.items()]

    def format_epsilon(self, within: float | None = None) -> str:
        """The realised ε with its unit, in the metric form or, given the report's threshold, in the threshold form."""
        if not self.epsilon_guaranteed:
            return UNBOUNDED
        value = self.epsilon if within is None or self.epsilon_within is None else self.epsilon_within
        return distinguishability_scale(self.problem).epsilon(format_decimals(value), self.any_pair, within=within)

    def shown(self) -> ShownTable:
        """The table that people see."""
        return ShownTable("Cost and privacy", ("", ""), self.rows(), texts=(1,))

    def _records(self) -> list[dict[str, float | str | None]]:
        return [self.to_dict()]

    def __str__(self) -> str:
        lines = [f"{name:<30}{value}" for name, value in self.rows()]
        lines += [] if not self.adversary_results else ["", adversary_table(self.adversary_results)]
        return "\n".join([*map(str, usefulness_warnings(self.usefulness, self.problem)), *lines])


@overload
def evaluate(
    mechanism: Mechanism,
    problem: Problem,
    *,
    adversary_prior: Prior | None = None,
    adversary_distance: Measure | None = None,
    truth: Prior | None = None,
    within: float | None = None,
    adversaries: Iterable[Adversary] | None = None,
    metrics: Mapping[str, Metric] | None = None,
) -> Report: ...
@overload
def evaluate(
    mechanism: PointSampleable | PointBaseline,
    problem: PointProblem | None = None,
    *,
    adversary_prior: PointPrior | None = None,
    truth: PointPrior | None = None,
    adversaries: Iterable[Adversary] | None = None,
    metrics: Mapping[str, PointMetric] | None = None,
) -> PointReport: ...
def evaluate(
    mechanism: Mechanism | PointSampleable | PointBaseline,
    problem: Problem | PointProblem | None = None,
    *,
    adversary_prior: Prior | PointPrior | None = None,
    adversary_distance: Measure | None = None,
    truth: Prior | PointPrior | None = None,
    within: float | None = None,
    adversaries: Iterable[Adversary] | None = None,
    metrics: Mapping[str, Any] | None = None,
) -> Report | PointReport:
    """Measure the cost and the privacy of a mechanism against a problem.

    For a mechanism for points, attacks may guess any point; costs and errors are those of the prior's points, and so
    are entropies. See :class:`privacygames.PointReport`.

    Args:
        mechanism: the mechanism to measure.
        problem: costs and distances; for a mechanism for points, by default its own problem.
        adversary_prior: the adversary's belief π̂; by default the problem's prior.
        adversary_distance: the distance that the optimal attack minimises; by default the problem's. Errors are always
            measured in the problem's distance.
        truth: the actual distribution of secrets, over which costs and errors are averaged; by default the problem's
            prior. For an adversary who *knows more*, give the same prior as ``adversary_prior`` and ``truth``.
        within: also report the realised ε of the threshold form.
        adversaries: further adversaries to measure against, each with their own prior and errors; by default those that
            the mechanism has a guarantee against.
        metrics: further metrics by name, each a function of the mechanism and the problem.

    >>> ages = pg.Numbers([20, 30, 40], unit="years")
    >>> problem = pg.Problem(pg.Prior.from_counts(ages, [1, 2, 1]), cost="absolute")
    >>> def distinct_outputs(mechanism, problem):
    ...     return mechanism.weights.any(axis=0).sum()
    >>> report = pg.evaluate(pg.design(problem, epsilon=0.1), problem, metrics={"outputs": distinct_outputs})
    >>> print(f"cost {report.cost:.2f} years, mutual information {report.mutual_information:.2f} bits")
    cost 4.53 years, mutual information 0.27 bits
    >>> report.metrics
    {'outputs': 3.0}
    """
    if isinstance(mechanism, PointSampleable | PointBaseline):
        if adversary_distance is not None or within is not None:
            raise InvalidProblem(
                "adversary_distance and within are for secrets that are cells or labels, not for points"
            )
        return evaluate_points(
            mechanism,
            cast("PointProblem | None", problem),
            adversary_prior=cast("PointPrior | None", adversary_prior),
            truth=cast("PointPrior | None", truth),
            adversaries=adversaries,
            metrics=metrics,
        )
    return _evaluate_finite(
        mechanism,
        require_instance(problem, Problem, "the problem"),
        adversary_prior=cast("Prior | None", adversary_prior),
        adversary_distance=adversary_distance,
        truth=cast("Prior | None", truth),
        within=within,
        adversaries=adversaries,
        metrics=metrics,
    )


def _evaluate_finite(
    mechanism: Mechanism,
    problem: Problem,
    *,
    adversary_prior: Prior | None,
    adversary_distance: Measure | None,
    truth: Prior | None,
    within: float | None,
    adversaries: Iterable[Adversary] | None,
    metrics: Mapping[str, Metric] | None,
) -> Report:
    """The report on a mechanism with finitely many secrets."""
    require_fit(mechanism, problem)
    further = checked_metrics(metrics, {KEYS.get(each.name, each.name) for each in fields(Report)})
    if adversaries is None:
        adversaries = mechanism.certificate.bounds.named_adversaries
    belief = problem.prior if adversary_prior is None else adversary_prior
    real = problem.prior if truth is None else truth
    for prior in (belief, real):
        require_secrets(mechanism, prior)
    best = attacks.optimal(mechanism, problem, prior=belief, distance=adversary_distance)
    bayes = attacks.bayesian(mechanism, problem, prior=belief)
    costs = measures.cost_per_secret(mechanism, problem)
    guess = int((problem.distance @ belief.probabilities).argmin())
    return Report(
        cost=float(loss_matmul(costs[None], real.probabilities)[0]),
        worst_cost=float(costs.max()),
        epsilon=measures.epsilon(mechanism, problem),
        epsilon_within=None if within is None else measures.epsilon(mechanism, problem, within=within),
        within=within,
        any_pair=mechanism.certificate.any_pair,
        epsilon_guaranteed=mechanism.certificate.bounds.epsilon is not None,
        distortion=measures.distortion(mechanism, problem, best, real),
        distortion_bayesian=measures.distortion(mechanism, problem, bayes, real),
        distortion_from_prior=float(problem.distance[guess] @ real.probabilities),
        prior_entropy=belief.entropy(),
        posterior_entropy=measures.posterior_entropy(mechanism, belief),
        mutual_information=measures.mutual_information(mechanism, belief),
        prior_vulnerability=float(real.probabilities[belief.probabilities.argmax()]),
        vulnerability=measures.vulnerability(mechanism, belief, real),
        accuracy_from_prior=float(real.probabilities[guess]),
        accuracy=measures.accuracy(mechanism, problem, best, real),
        usefulness=mechanism.certificate.usefulness,
        problem=problem,
        adversary_results=adversary_results(mechanism, problem, adversaries),
        metrics={name: float(metric(mechanism, problem)) for name, metric in further.items()},
    )
