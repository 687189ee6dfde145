"""The problem: secrets with a prior, outputs with costs, and distances between secrets; all validated."""

from functools import cached_property
from typing import Self

import numpy as np

from privacygames.arrays import FloatArray, content_hash, loss_matmul
from privacygames.beliefs import Prior
from privacygames.display import Displayed, ShownTable
from privacygames.errors import InvalidProblem
from privacygames.immutable import Value
from privacygames.problem.measures import Measure, distance_matrix, measure_matrix, require_finite
from privacygames.spaces import Space, Subsets
from privacygames.validation import require_instance

MAX_ENTRIES = 10**8
"""Maximum number of entries of a matrix of a problem: 800 MB as floats, more than any solver can handle."""


class Problem(Value, Displayed):
    """The input of a design, immutable: a prior, costs and distances.

    Args:
        prior: π, the prior over the secrets; it has the space of secrets.
        cost: c(o, s), the cost of output ``o`` to a user whose secret is ``s``; ∞ where it is never allowed.
        distance: d(ŝ, s), the error of the estimate ``ŝ`` where the secret is ``s``; by default the space's.
        distinguishability: d^ε(s, s'), in whose units epsilon is counted; by default the distance. ∞ imposes no bound.
        observables: the possible outputs; by default the secrets. A space, or sets of secrets.

    Each measure is a name the space knows, a matrix or a function of two labels (for observables that are
    sets of secrets the function gets the set of members). Matrices are (observable, secret),
    (estimate, secret) and (secret, secret). Distances are any non-negative numbers with a zero diagonal:
    neither symmetry nor the triangle inequality is assumed anywhere.

    >>> ages = pg.Numbers([20, 30, 40], unit="years")
    >>> problem = pg.Problem(pg.Prior.uniform(ages), cost=lambda output, age: (output - age) ** 2)
    >>> problem.cost[0].tolist(), problem.distance[0].tolist()
    ([0.0, 100.0, 400.0], [0.0, 10.0, 20.0])
    """

    prior: Prior
    observables: Space
    cost: FloatArray
    distance: FloatArray
    distinguishability: FloatArray

    def __init__(
        self,
        prior: Prior,
        cost: Measure = "hamming",
        distance: Measure | None = None,
        distinguishability: Measure | None = None,
        observables: Space | None = None,
    ) -> None:
        if not isinstance(prior, Prior):
            raise InvalidProblem("a Problem starts with a Prior, such as Prior.uniform(space)")
        if observables is not None and not isinstance(observables, Space):
            raise InvalidProblem("observables must be a Space, such as Subsets of the secrets")
        space = prior.space
        outputs = space if observables is None or observables == space else observables
        if len(space) * max(len(space), len(outputs)) > MAX_ENTRIES:
            raise InvalidProblem(
                f"{len(space)} secrets and {len(outputs)} observables are too many: their distances and costs "
                f"would have more than {MAX_ENTRIES} entries"
            )
        if isinstance(outputs, Subsets) and outputs.underlying != space:
            raise InvalidProblem("the observables are subsets of another space than the prior's")
        if distance is None:
            distance = space.default_distance
        distances = require_finite(distance_matrix(distance, "the distance", space), "the distance")
        separations = (
            distances
            if distinguishability is None
            else distance_matrix(distinguishability, "the distinguishability", space)
        )
        self._fill(
            prior=prior,
            observables=outputs,
            cost=_require_allowed_output(measure_matrix(cost, "the cost", space, outputs)),
            distance=distances,
            distinguishability=separations,
        )

    @property
    def space(self) -> Space:
        """The space of secrets."""
        return self.prior.space

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of secrets and of outputs."""
        return len(self.space), len(self.observables)

    @cached_property
    def _content(self) -> tuple[object, ...]:
        matrices = (self.cost, self.distance, self.distinguishability)
        return self.prior, self.observables, *(content_hash(matrix) for matrix in matrices)

    def with_prior(self, prior: Prior) -> Self:
        """The same problem with another prior over the same secrets; costs and distances are shared, not copied."""
        require_instance(prior, Prior, "the prior")
        if prior.space != self.space:
            raise InvalidProblem("the prior is over other secrets than the problem's")
        return self._replace(prior=prior)

    def with_losses(self, *, cost: FloatArray, distance: FloatArray, observables: Space) -> Self:
        """The same secrets, prior and distinguishability with other, already validated costs, distances and outputs."""
        return self._replace(cost=cost, distance=distance, observables=observables)

    def _replace(self, **attributes: object) -> Self:
        copy = object.__new__(type(self))
        names = ("prior", "observables", "cost", "distance", "distinguishability")
        copy._fill(**({name: getattr(self, name) for name in names} | attributes))
        return copy

    def shown(self) -> ShownTable:
        """The table that people see."""
        secrets, observables = self.shape
        possible = int(np.count_nonzero(self.prior.probabilities))
        rows = [
            ("secrets", f"{secrets}, {type(self.space).__name__.lower()}; {possible} with a prior above 0"),
            ("outputs", f"{observables}, {type(self.observables).__name__.lower()}"),
            ("prior", f"{self.prior.entropy():.3g} bits"),
            ("largest cost", f"{self.cost.max():.4g}"),
            ("largest distance", f"{self.distance.max():.4g}"),
        ]
        return ShownTable("Problem", ("", ""), rows, texts=(1,))

    def __repr__(self) -> str:
        secrets, observables = self.shape
        return f"Problem({secrets} secrets, {observables} observables, prior of {self.prior.entropy():.3g} bits)"


def distortion_rounding(problem: Problem) -> float:
    """Largest relative amount by which the verifier rounds distortion privacy down."""
    return (sum(problem.shape) + 16) * float(np.finfo(np.float64).eps)


def _require_allowed_output(cost: FloatArray) -> FloatArray:
    """Return the cost, or raise if some secret has no output of finite cost."""
    unserved = int(np.isinf(cost).all(axis=0).sum())
    if unserved:
        raise InvalidProblem(
            f"the cost is infinite for every output of {unserved} secrets: an infinite cost means that an output is "
            "never allowed for a secret, and every secret needs an allowed one"
        )
    return cost


def cheapest_constant(problem: Problem, *, worst_case: bool = False) -> int:
    """The index of the output with the lowest cost where every secret gives the same one.

    Args:
        problem: the problem.
        worst_case: minimise the worst secret's cost instead of the average.

    Raises:
        InvalidProblem: no output is allowed for all secrets.
    """
    worst = problem.cost.max(axis=1)
    if not np.isfinite(worst).any():
        raise InvalidProblem("every output has an infinite cost for some secret: no output is allowed for all secrets")
    objective = worst if worst_case else loss_matmul(problem.cost, problem.prior.probabilities)
    return int(np.where(np.isfinite(worst), objective, np.inf).argmin())
