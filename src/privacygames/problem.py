"""The problem: who may have which secret, what an answer costs, and what a good guess does. Validated once."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privacygames.arrays import FloatArray, checked
from privacygames.errors import InvalidProblem
from privacygames.prior import Prior
from privacygames.spaces import Space, Subsets

MOST_ENTRIES = 10**8

Measure = str | ArrayLike | Callable[[Any, Any], float]
"""A cost or distance: a name the space knows, a matrix, or a function of two labels."""


class Problem:
    """Everything a mechanism is designed for, frozen.

    Args:
        prior: π, the belief over secrets (it knows the space of secrets).
        cost: c(o, s), what answering ``o`` costs a user whose secret is ``s``.
        distance: d(ŝ, s), how wrong the estimate ``ŝ`` is; by default the space's own distance.
        distinguishability: d^ε(s, s'), in which epsilon is counted; by default the distance. ∞ asks nothing.
        observables: what may be answered; by default the secrets. A space, or sets of secrets.

    Each measure is a name the space knows, a matrix or a function of two labels (for observables that are
    sets of secrets the function gets the set of members). Matrices are (observable, secret),
    (estimate, secret) and (secret, secret). Distances are any non-negative numbers with a zero diagonal:
    neither symmetry nor the triangle inequality is assumed anywhere.
    """

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
        answers = len(prior.space if observables is None else observables)
        if len(prior.space) * max(len(prior.space), answers) > MOST_ENTRIES:
            raise InvalidProblem(
                f"{len(prior.space)} secrets and {answers} observables are too many: their distances and costs "
                f"would have more than {MOST_ENTRIES} entries"
            )
        self.prior = prior
        self.space: Space = prior.space
        self.observables: Space = self.space if observables is None else observables
        if isinstance(self.observables, Subsets) and self.observables.underlying is not self.space:
            raise InvalidProblem("the observables are subsets of another space than the prior's")
        if distance is None:
            distance = self.space.default_distance
        if distinguishability is None:
            distinguishability = distance
        self.cost = finite(matrix_of(cost, "the cost", self.space, self.observables), "the cost")
        self.distance = finite(distance_matrix(distance, "the distance", self.space), "the distance")
        self.distinguishability = distance_matrix(distinguishability, "the distinguishability", self.space)

    @property
    def shape(self) -> tuple[int, int]:
        """How many secrets and how many observables."""
        return len(self.space), len(self.observables)

    def __repr__(self) -> str:
        secrets, observables = self.shape
        return f"Problem({secrets} secrets, {observables} observables, prior of {self.prior.entropy():.3g} bits)"


def matrix_of(measure: Measure, what: str, space: Space, rows: Space | None = None) -> FloatArray:
    """A named, given or computed measure as a matrix (rows, space), checked to be non-negative."""
    other = space if rows is None else rows
    if isinstance(measure, str):
        values: ArrayLike = space.distance(measure, other)
    elif callable(measure):
        values = [[measure(row, secret) for secret in space.elements] for row in other.elements]
    else:
        values = measure
    shape = (len(other), len(space))
    return checked(values, what=what, shape=shape, meaning="(rows, secrets)", infinite=True)


def distance_matrix(measure: Measure, what: str, space: Space) -> FloatArray:
    """A measure between secrets: non-negative, zero on the diagonal."""
    matrix = matrix_of(measure, what, space)
    if np.diagonal(matrix).any():
        raise InvalidProblem(f"{what} must have a zero diagonal: every secret is at distance 0 from itself")
    return matrix


def finite(matrix: FloatArray, what: str) -> FloatArray:
    """The matrix itself, if it has no infinite entry."""
    if np.isinf(matrix).any():
        raise InvalidProblem(
            f"{what} is infinite for some pairs (unconnected places, perhaps); only the distinguishability may be"
        )
    return matrix


def max_distortion(problem: Problem) -> float:
    r"""The most distortion privacy any mechanism has: d_m^max, the error of the best guess from the prior alone.

    .. math:: d_m^{max} = \min_{ŝ} \sum_s π(s)\,d(ŝ,s)

    Rounded down by some units in the last place, so that it can be promised and verified.
    """
    least = float((problem.distance @ problem.prior.probabilities).min())
    return least * (1 - 4 * rounding(problem))


def rounding(problem: Problem) -> float:
    """How much, relatively, the verifier rounds distortion privacy down at most."""
    return (sum(problem.shape) + 16) * float(np.finfo(np.float64).eps)
