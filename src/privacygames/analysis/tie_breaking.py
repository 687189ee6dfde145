"""Degenerate optima: among the mechanisms of least cost, one that is best by a secondary objective.

Oya, Troncoso and Pérez-González (CCS 2017) showed how far mechanisms of equal cost and equal distortion privacy can
differ in the information that an output gives. The optimisation is lexicographic: the least cost comes first.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from privacygames import metrics
from privacygames.arrays import FloatArray, IntArray
from privacygames.certificates import NEGLIGIBLE, loss_scale
from privacygames.designer import design_bounds
from privacygames.errors import InvalidProblem
from privacygames.mechanism import Mechanism, certify
from privacygames.problem import Bounds, Problem, distortion_rounding
from privacygames.programs import equal_cost_program, largest_entropy_program, least_worst_cost_program
from privacygames.solvers import (
    Highs,
    SolveOptions,
    dominating_observables,
    implied_pairs,
    maximise,
    refuse_too_large,
)
from privacygames.spaces import Space
from privacygames.validation import is_number, require_choice, require_instance

SecondaryObjective = Literal["entropy", "worst_cost"]

MAX_ENTROPY_ENTRIES = 2_500
"""The most n·m for the entropy, whose Newton system is dense."""

LEAST_BELIEF = 1e-9
CLOSE = 1e-5


@dataclass(frozen=True)
class TieBreak:
    """A mechanism of least cost that is best by a secondary objective.

    Attributes:
        mechanism: the mechanism chosen; its certificate proves the primary objective, as a design's does.
        initial: what :func:`privacygames.design` returns.
        by: the secondary objective, ``"entropy"`` (bits, maximised) or ``"worst_cost"`` (minimised).
        value: the secondary objective of ``mechanism``.
        initial_value: the secondary objective of ``initial``.
        bound: no mechanism with the same guarantees and (within ``slack``) the least cost has a better value: proved by
            weak duality, in floating point; not part of the certificate.
        slack: relative excess of the cost over the least that is allowed.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> choice = pg.break_ties(problem, "worst_cost", epsilon=0.5)
    >>> choice.value <= choice.initial_value
    True
    """

    mechanism: Mechanism
    initial: Mechanism
    by: SecondaryObjective
    value: float
    initial_value: float
    bound: float
    slack: float

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {
            "by": self.by,
            "value": self.value,
            "before": self.initial_value,
            "limit": self.bound,
            "slack": self.slack,
            "certificate": self.mechanism.certificate.to_dict(),
        }

    def __str__(self) -> str:
        name = "posterior entropy, bits" if self.by == "entropy" else "cost of the worst secret"
        costs = f"{self.initial.certificate.cost:.6g} → {self.mechanism.certificate.cost:.6g}"
        return f"average cost {costs}\n{name} {self.initial_value:.6g} → {self.value:.6g} (limit {self.bound:.6g})"


def break_ties(
    problem: Problem,
    by: SecondaryObjective,
    *,
    epsilon: float | None = None,
    within: float | None = None,
    distortion: float | None = None,
    slack: float = 1e-6,
    tolerance: float = 1e-6,
) -> TieBreak:
    """Among the mechanisms of least average cost with these guarantees, one that is best by a secondary objective.

    ``"worst_cost"`` is a second linear program. ``"entropy"``, the largest posterior entropy H(S|O), is a concave
    maximisation: an interior-point method finds the mechanism, and the posteriors of its iterates give a linear program
    that bounds the maximum from above. Both are explicit programs for HiGHS, with some 100 secrets and outputs at most;
    the entropy takes at most 2,500 entries p(o|s), some 50 by 50.

    Args:
        problem: secrets, prior, cost and distances.
        by: the secondary objective.
        epsilon: as in :func:`privacygames.design`.
        within: as in :func:`privacygames.design`.
        distortion: as in :func:`privacygames.design`.
        slack: relative excess of the cost over the least that is allowed, which leaves the second solve room to move.
        tolerance: of the first solve.

    Raises:
        InvalidProblem: an argument does not fit, or the problem is too large.
        Infeasible: no mechanism has these guarantees.
        SolveFailed: a solve did not end at an optimum.

    >>> illnesses = pg.Categories(["flu", "cold", "none"])
    >>> problem = pg.Problem(pg.Prior.from_counts(illnesses, [1, 2, 3]))
    >>> choice = pg.break_ties(problem, "entropy", epsilon=0.5)
    >>> choice.initial_value <= choice.value <= choice.bound + 1e-6
    True
    """
    require_instance(problem, Problem, "the problem")
    require_choice(by, get_args(SecondaryObjective), "by")
    if not (is_number(slack) and 0 < slack < 1):
        raise InvalidProblem(f"slack is {slack!r}; it must be above 0 and below 1")
    bounds = Bounds(epsilon=epsilon, within=within, distortion=distortion)
    refuse_too_large(problem, bounds)
    entries = problem.shape[0] * problem.shape[1]
    if by == "entropy" and entries > MAX_ENTROPY_ENTRIES:
        raise InvalidProblem(
            f"the largest entropy takes {entries} entries p(o|s) here and at most {MAX_ENTROPY_ENTRIES} are allowed: "
            "use fewer secrets or observables, or by='worst_cost'"
        )
    initial = design_bounds(problem, bounds, options=SolveOptions(tolerance=tolerance))
    least = initial.certificate.cost
    max_cost = least + slack * max(least, NEGLIGIBLE * loss_scale(problem.cost, problem.prior.probabilities))
    target_bounds = bounds.tightened(distortion=2 * distortion_rounding(problem))
    reduced = _ReducedProblem(problem, bounds)
    table, bound = (_most_entropy if by == "entropy" else _least_worst_cost)(reduced.problem, target_bounds, max_cost)
    origin = f"least cost, then {by.replace('_', ' ')}"
    mechanism = _certify_affordable(problem, bounds, reduced.expand(table), initial, max_cost=max_cost, origin=origin)
    values = [_value(problem, by, each) for each in (initial, mechanism)]
    if not (values[1] > values[0] if by == "entropy" else values[1] < values[0]):
        mechanism, values[1] = initial, values[0]
    return TieBreak(mechanism, initial, by, values[1], values[0], bound, slack)


def _certify_affordable(
    problem: Problem, bounds: Bounds, table: FloatArray, initial: Mechanism, *, max_cost: float, origin: str
) -> Mechanism:
    """The table certified, with the least share of the initial mechanism mixed in that keeps its cost allowed."""
    share = 0.0
    while True:
        mixed = (1 - share) * table + share * initial.probabilities
        mechanism = certify(
            problem, bounds, mixed, initial.dual_solution, origin=origin, unrepaired=initial.probabilities
        )
        if mechanism.certificate.cost <= max_cost:
            return mechanism
        if share >= 1.0:
            return initial
        share = min(1.0, 4 * share + 1e-9)


class _ReducedProblem:
    """The problem without what cannot matter: observables that another never costs more than, chained ratios.

    Merging an observable into one that dominates it is post-processing: no secret's cost rises, and an output tells no
    more. A ratio that two others imply is left out.
    """

    def __init__(self, problem: Problem, bounds: Bounds) -> None:
        self._kept = np.unique(dominating_observables(problem.cost))
        self._shape = problem.shape
        exponents = bounds.log_ratio_bounds(problem.distinguishability)
        apart = np.where(implied_pairs(exponents), np.inf, problem.distinguishability)
        labels = [problem.observables.labels[position] for position in self._kept]
        self.problem = Problem(problem.prior, problem.cost[self._kept], problem.distance, apart, Space(labels))

    def expand(self, table: FloatArray) -> FloatArray:
        """A mechanism for the whole problem."""
        full = np.zeros(self._shape)
        full[:, self._kept] = table
        return full


def _value(problem: Problem, by: SecondaryObjective, mechanism: Mechanism) -> float:
    if by == "entropy":
        return metrics.posterior_entropy(mechanism, problem.prior)
    return metrics.worst_cost(mechanism, problem)


def _least_worst_cost(problem: Problem, bounds: Bounds, cost: float) -> tuple[FloatArray, float]:
    solution = Highs().solve_program(least_worst_cost_program(problem, bounds, cost))
    dearest, farthest = float(problem.cost.max()), float(problem.distance.max())
    boxes = {"p": (0.0, 1.0), "x": (0.0, farthest), "y": (0.0, dearest)}
    bound = solution.bound(boxes)
    return solution.block("p").reshape(problem.shape), bound


def _most_entropy(problem: Problem, bounds: Bounds, cost: float) -> tuple[FloatArray, float]:
    """The table an interior-point method ends at, and the bound from the posteriors of all its iterates."""
    program = equal_cost_program(problem, bounds, cost)
    start = np.full(len(program.objective), 1.0 / problem.shape[1])
    entropy = _PosteriorEntropy(problem, len(start))
    iterates = [entropy.table(each) for each in maximise(entropy, program, start, tolerance=CLOSE)]
    observable, surprise = _beliefs(problem, iterates)
    solution = Highs().solve_program(largest_entropy_program(problem, bounds, cost, observable, surprise))
    boxes = {"p": (0.0, 1.0), "x": (0.0, float(problem.distance.max())), "t": (0.0, float(surprise.max()))}
    bound = -solution.bound(boxes)
    return iterates[-1], bound


def _beliefs(problem: Problem, tables: list[FloatArray]) -> tuple[IntArray, FloatArray]:
    """The posterior after each observable under each table, as surprises; a trace of the prior keeps them finite."""
    prior = problem.prior.probabilities
    joint = np.concatenate([(prior[:, None] * table).T for table in tables])
    beliefs = (1 - LEAST_BELIEF) * joint / joint.sum(axis=1, keepdims=True) + LEAST_BELIEF * prior
    surprise = -np.log2(np.where(prior > 0, beliefs, 1.0))
    return np.tile(np.arange(problem.shape[1]), len(tables)), surprise


class _PosteriorEntropy:
    """H(S|O) in bits as a function of all variables of a program, the mechanism first."""

    def __init__(self, problem: Problem, size: int) -> None:
        self.prior, self.shape, self.size = problem.prior.probabilities, problem.shape, size

    def table(self, values: FloatArray) -> FloatArray:
        """The mechanism among the variables."""
        return values[: self.shape[0] * self.shape[1]].reshape(self.shape)

    def gradient(self, values: FloatArray) -> FloatArray:
        """−π(s) log₂ of the posterior of s given o."""
        joint = self.prior[:, None] * self.table(values)
        posterior = np.where(joint > 0, joint / joint.sum(axis=0), 1.0)
        result = np.zeros(self.size)
        result[: joint.size] = (-self.prior[:, None] * np.log2(posterior)).ravel()
        return result

    def curvature(self, values: FloatArray) -> FloatArray:
        """Minus the Hessian: for each observable diag(π/p) − ππᵀ/P(o), in bits."""
        secrets, observables = self.shape
        table = self.table(values)
        chance = self.prior @ table
        result = np.zeros((self.size, self.size))
        for o in range(observables):
            own = np.arange(secrets) * observables + o
            block = np.diag(self.prior / table[:, o]) - np.outer(self.prior, self.prior) / chance[o]
            result[np.ix_(own, own)] = block / np.log(2)
        return result
