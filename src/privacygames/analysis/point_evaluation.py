"""The report on a mechanism for points: cost, the error of attacks that may guess any point, and ε for points."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from math import isinf

import numpy as np

from privacygames.analysis.adversary_results import adversary_table, require_adversaries
from privacygames.analysis.formatting import format_decimals
from privacygames.analysis.further_metrics import checked_metrics
from privacygames.beliefs import PointPrior, conditional_entropy, entropy
from privacygames.certificates import AdversaryResult
from privacygames.display import Displayed, ShownTable
from privacygames.errors import InvalidProblem
from privacygames.points import (
    PointBaseline,
    PointMechanism,
    PointProblem,
    PointSampleable,
    cost_per_point,
    joint_probabilities,
    largest_cost,
    measure_ratios,
    optimal_attack,
    point_pairs,
)
from privacygames.problem import Adversary, Scale
from privacygames.validation import is_integer, require_instance

PAIRS = 2000
"""Pairs of points at which log-ratios are measured by default: a second for 300 outputs."""

MOST_COSTS = 500
"""Points besides the prior's at which the expected cost is computed, to see how large it gets."""

PointMetric = Callable[[PointSampleable | PointBaseline, PointProblem], float]
"""A function that measures a mechanism for points against a problem."""


@dataclass(frozen=True)
class PointReport(Displayed):
    """Cost and privacy of a mechanism for points, measured; prints as a table and converts to a dict.

    Attributes:
        cost: expected cost under the prior.
        worst_cost: the cost at every point is at most this; None where that is not proved.
        worst_cost_seen: the largest cost at a point that was tried.
        epsilon: the guarantee per unit of distance between any two points; ∞ where no number holds, None where none is
            guaranteed.
        epsilon_measured: the largest log-ratio per unit of distance of the pairs that were tried: no smaller ε holds.
        pairs: how many pairs of points were tried.
        any_pair: the log-ratio between any two points, however far apart, is at most this; None where it is not known.
        distortion: no attack has a smaller expected error, whichever points it guesses; None where it is not known.
        attack_error: the expected error of an actual attack that uses the best guess after each output.
        distortion_from_prior: the adversary's expected error without any observation.
        prior_entropy: entropy of the prior's points before an observation, in bits.
        posterior_entropy: expected entropy of the prior's points after an observation, in bits.
        mutual_information: expected information an output gives about which of the prior's points is the secret.
        prior_vulnerability: probability that the likeliest of the prior's points is the secret.
        vulnerability: the same after an observation.
        quadrature_error: an estimate of the largest error of a probability; 0 where they are exact.
        problem: the problem it was measured against.
        adversary_results: for each adversary, the error guaranteed, realised and possible.
        metrics: values of the further metrics that :func:`evaluate` was given, by name.

    >>> line = pg.Interval(0.0, 4.0, unit="hours")
    >>> problem = pg.PointProblem(pg.PointPrior(line, [1.0, 3.0]), [1.0, 3.0])
    >>> report = pg.evaluate(pg.design(problem, epsilon=0.5))
    >>> report.distortion <= report.attack_error <= report.distortion_from_prior
    True
    """

    cost: float
    worst_cost: float | None
    worst_cost_seen: float
    epsilon: float | None
    epsilon_measured: float
    pairs: int
    any_pair: float | None
    distortion: float | None
    attack_error: float
    distortion_from_prior: float
    prior_entropy: float
    posterior_entropy: float
    mutual_information: float
    prior_vulnerability: float
    vulnerability: float
    quadrature_error: float
    problem: PointProblem = field(repr=False, compare=False)
    adversary_results: tuple[AdversaryResult, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict, hash=False)

    @property
    def cost_scale(self) -> Scale:
        """The scale of the cost."""
        return _scale(self.problem.cost.name, self.problem)

    @property
    def distance_scale(self) -> Scale:
        """The scale of the distance, and so of errors."""
        return _scale(self.problem.distance, self.problem)

    @property
    def per(self) -> str:
        """What ε is counted for: ``"per km"``."""
        return _scale("euclidean", self.problem).per()

    def to_dict(self) -> dict[str, float | str | None]:
        """Plain values by name, one level deep, for JSON and CSV; units where they are known."""
        names = {each.name for each in fields(self)} - {"problem", "adversary_results", "metrics"}
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name in names}
        units = {
            "cost_unit": self.cost_scale.unit,
            "distance_unit": self.distance_scale.unit,
            "epsilon_unit": self.problem.region.unit,
            "epsilon_counted": f"{self.per} between any two points",
        }
        against: dict[str, float | str | None] = {}
        for result in self.adversary_results:
            against[f"promised against {result.adversary}"] = result.guaranteed
            against[f"realised against {result.adversary}"] = result.realised
            against[f"possible against {result.adversary}"] = result.maximum
        return values | units | against | dict(self.metrics)

    def rows(self) -> list[tuple[str, str]]:
        """The lines of the table: pairs of a name and a value with its unit."""
        cost, distance = self.cost_scale, self.distance_scale
        if self.worst_cost is None:
            worst = f"{cost.amount(format_decimals(self.worst_cost_seen))}, of the points tried"
        else:
            worst = f"at most {cost.amount(format_decimals(self.worst_cost))}"
        bound = "" if self.distortion is None else f"; none errs by less than {format_decimals(self.distortion)}"
        rows = [
            ("cost, average", cost.amount(format_decimals(self.cost))),
            ("cost, worst point", worst),
            ("distortion, any point guessed", f"{distance.amount(format_decimals(self.attack_error))}{bound}"),
            ("distortion, before observing", distance.amount(format_decimals(self.distortion_from_prior))),
            ("guaranteed epsilon", self.format_epsilon()),
            ("measured log-ratios", self._format_measured()),
            (
                "entropy before → after",
                f"{self.prior_entropy:.3f} → {self.posterior_entropy:.3f} bits (prior's points)",
            ),
            ("given away by an output", f"{self.mutual_information:.3f} bits (prior's points)"),
            ("likeliest point is exact", f"{self.prior_vulnerability:.1%} → {self.vulnerability:.1%}"),
        ]
        if self.quadrature_error:
            rows.append(("probabilities accurate to", f"{self.quadrature_error:.0e} (estimated)"))
        return rows + [(name, format_decimals(value)) for name, value in self.metrics.items()]

    def format_epsilon(self) -> str:
        """The guaranteed ε with its unit."""
        if self.epsilon is None:
            return "none"
        if isinf(self.epsilon):
            return "infinite: no epsilon holds between any two points"
        return f"{self.epsilon:.6g} {self.per} between any two points"

    def _format_measured(self) -> str:
        if isinf(self.epsilon_measured):
            return f"infinite, among {self.pairs} pairs of points"
        return f"up to {self.epsilon_measured:.4g} {self.per}, among {self.pairs} pairs of points"

    def shown(self) -> ShownTable:
        """The table that people see."""
        return ShownTable("Cost and privacy between points", ("", ""), self.rows(), texts=(1,))

    def _records(self) -> list[dict[str, float | str | None]]:
        return [self.to_dict()]

    def __str__(self) -> str:
        lines = [f"{name:<32}{value}" for name, value in self.rows()]
        lines += [] if not self.adversary_results else ["", adversary_table(self.adversary_results)]
        return "\n".join(lines)


def evaluate_points(
    mechanism: PointSampleable | PointBaseline,
    problem: PointProblem | None = None,
    *,
    adversary_prior: PointPrior | None = None,
    truth: PointPrior | None = None,
    adversaries: Iterable[Adversary] | None = None,
    metrics: Mapping[str, PointMetric] | None = None,
    pairs: int = PAIRS,
) -> PointReport:
    """Measure the cost and the privacy of a mechanism for points; see :func:`privacygames.evaluate`."""
    problem = _checked_problem(mechanism, problem)
    if not is_integer(pairs):
        raise InvalidProblem("pairs must be a whole number, 1 or more")
    real = problem.prior if truth is None else truth
    belief = problem.prior if adversary_prior is None else adversary_prior
    attack = optimal_attack(mechanism, problem, prior=belief, truth=real)
    joint = joint_probabilities(mechanism, belief)
    costs = cost_per_point(mechanism, problem.with_prior(real))
    pair = point_pairs([mechanism], pairs)
    measured = measure_ratios(mechanism, pair)
    seen = costs
    if problem.cost.is_convex:
        corners = problem.region.lattice((2,) * problem.region.dimension, edges=True)
        points = problem.region.coordinates(np.concatenate([corners, pair[0][:MOST_COSTS]]))
        seen = np.concatenate([costs, cost_per_point(mechanism, problem, points)])
    prior_entropy, posterior_entropy = entropy(belief.probabilities), conditional_entropy(joint)
    further = checked_metrics(metrics, {each.name for each in fields(PointReport)})
    return PointReport(
        cost=float(costs @ real.probabilities),
        worst_cost=_worst_cost(mechanism, problem),
        worst_cost_seen=float(seen.max()),
        epsilon=mechanism.epsilon if isinstance(mechanism, PointBaseline) else mechanism.bounds.epsilon,
        epsilon_measured=measured.epsilon,
        pairs=len(measured.distances),
        any_pair=mechanism.any_pair if isinstance(mechanism, PointSampleable) else None,
        distortion=attack.bound,
        attack_error=attack.error,
        distortion_from_prior=attack.without_output,
        prior_entropy=prior_entropy,
        posterior_entropy=posterior_entropy,
        mutual_information=max(prior_entropy - posterior_entropy, 0.0),
        prior_vulnerability=float(belief.probabilities.max()),
        vulnerability=float(joint.max(axis=1).sum()),
        quadrature_error=mechanism.quadrature_error if isinstance(mechanism, PointBaseline) else 0.0,
        problem=problem,
        adversary_results=_adversary_results(mechanism, problem, adversaries),
        metrics={name: float(metric(mechanism, problem)) for name, metric in further.items()},
    )


def _checked_problem(mechanism: PointSampleable | PointBaseline, problem: PointProblem | None) -> PointProblem:
    """The problem to measure against: that of the mechanism, where none is given."""
    if problem is None and isinstance(mechanism, PointMechanism):
        return mechanism.problem
    if problem is None:
        raise InvalidProblem("this mechanism has no prior and no cost of its own: give the problem to measure it by")
    if require_instance(problem, PointProblem, "the problem").region != mechanism.secrets:
        raise InvalidProblem("the mechanism and the problem are over different regions")
    return problem


def _worst_cost(mechanism: PointSampleable | PointBaseline, problem: PointProblem) -> float | None:
    """A proved upper bound on the cost at every point; None where there is none."""
    if not isinstance(mechanism, PointSampleable) or not problem.cost.is_convex:
        return None
    if isinstance(mechanism, PointMechanism) and mechanism.problem.cost.name == problem.cost.name:
        return mechanism.certificate.verification.worst_cost
    rows = np.ldexp(mechanism.weights.astype(np.float64), -mechanism.bits)
    outputs = problem.region.project(mechanism.outputs)
    return largest_cost(mechanism.mesh, rows, outputs, problem.cost).upper


def _adversary_results(
    mechanism: PointSampleable | PointBaseline, problem: PointProblem, adversaries: Iterable[Adversary] | None
) -> tuple[AdversaryResult, ...]:
    """For each adversary the error guaranteed, that of their best attack (a lower bound), and the largest possible."""
    guarantees = mechanism.bounds.distortion if isinstance(mechanism, PointSampleable) else ()
    if adversaries is None:
        adversaries = mechanism.bounds.named_adversaries if isinstance(mechanism, PointSampleable) else ()
    results = []
    for each in require_adversaries(adversaries):
        attack = optimal_attack(mechanism, problem, adversary=each)
        same_belief = each.prior is not None or _has_prior(mechanism, problem.prior)
        guaranteed = [guarantee.distortion for guarantee in guarantees if guarantee.adversary == each and same_belief]
        results.append(
            AdversaryResult(each.name, guaranteed[0] if guaranteed else None, attack.bound, attack.without_output)
        )
    return tuple(results)


def _has_prior(mechanism: PointSampleable | PointBaseline, prior: PointPrior) -> bool:
    return isinstance(mechanism, PointMechanism) and mechanism.problem.prior == prior


def _scale(measure: str, problem: PointProblem) -> Scale:
    """The scale of a measure of a problem for points, by its name."""
    unit = problem.region.unit
    if measure == "squared":
        return Scale(measure, f"{unit}²" if unit else "")
    return Scale(measure, unit if measure == "euclidean" else "")
