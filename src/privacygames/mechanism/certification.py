"""From a table of probabilities to exact integer weights with every guarantee verified: the work behind ``certify``."""

from dataclasses import dataclass, replace
from math import inf, isfinite

import numpy as np

from privacygames.arrays import (
    SMALLEST_POSITIVE,
    FloatArray,
    IntArray,
    freeze,
    loss_matmul,
    loss_per_secret,
    require_nonnegative,
)
from privacygames.certificates import (
    BITS,
    DualSolution,
    Provenance,
    Statement,
    Verification,
    check,
    distortion_below,
    probabilities,
    realised_epsilon,
    repair,
    to_weights,
)
from privacygames.errors import GuaranteeViolated, InvalidProblem
from privacygames.mechanism.mechanism_content import MechanismContent
from privacygames.problem import Bounds, Problem
from privacygames.version import VERSION

SUM_TOLERANCE = 1e-6
"""How far from 1 the rows of a given table may sum: solvers and files of text leave that much."""

MAX_ORIGIN_LENGTH = 200
"""Number of characters of the origin that are kept: as many as a text in a file may have."""

SMALLEST_EPSILON = 1e-12
"""The ε certified for constant outputs, which keep every ε > 0, while a bound must be positive."""

FIRST_EPSILON_MARGIN = 1e-14
"""Relative margin first added to the realised ε, which is computed in floating point; it grows until ε verifies."""

NO_WEIGHTS: IntArray = np.zeros((0, 0), dtype=np.int64)


@dataclass(frozen=True)
class RealisedBounds:
    """Stands for the tightest bounds that a mechanism turns out to keep, in place of bounds asked for.

    Attributes:
        within: determine ε in the threshold form, between secrets at most this far apart.
        max_epsilon: an ε that is known to hold. Rounding makes the ε determined a few last digits larger than the
            exact one; this caps it.
    """

    within: float | None = None
    max_epsilon: float = inf


def certify_content(
    problem: Problem,
    bounds: Bounds | RealisedBounds,
    table: FloatArray | IntArray,
    dual_solution: DualSolution | None,
    *,
    origin: str,
    cheapest: IntArray | None,
    unrepaired: FloatArray | None,
) -> tuple[MechanismContent, Verification]:
    """The content of a mechanism near a table, and its verification: see :func:`privacygames.mechanism.certify`."""
    draft = Statement(
        weights=NO_WEIGHTS,
        bits=BITS,
        prior=problem.prior.probabilities,
        cost=problem.cost,
        distance=problem.distance,
        distinguishability=problem.distinguishability,
        bounds=Bounds(distortion=0.0) if isinstance(bounds, RealisedBounds) else bounds,
        dual_solution=dual_solution,
    )
    repair_cost = 0.0
    if isinstance(bounds, RealisedBounds):
        exact = replace(draft, weights=_exact_weights(problem, table))
        if (exact.weights[~exact.allowed] > 0).any():
            raise InvalidProblem(
                "this mechanism gives outputs to secrets that they are never allowed for (infinite cost)"
            )
        statement, verification = _certify_realised(exact, bounds)
    else:
        statement, verification = _repair(draft, table, cheapest)
        cost_before = cost_of(problem, bounds, _as_probabilities(table) if unrepaired is None else unrepaired)
        if isfinite(cost_before):  # otherwise the repair removed forbidden outputs, and the cost fell
            repair_cost = cost_of(problem, bounds, probabilities(statement)) - cost_before
    provenance = Provenance(origin[:MAX_ORIGIN_LENGTH], VERSION, repair_cost)
    return MechanismContent(statement, problem.space, problem.observables, provenance), verification


def cost_of(problem: Problem, bounds: Bounds, table: FloatArray) -> float:
    """The cost that the bounds minimise, of any table of probabilities: the worst secret's, or the average."""
    per_secret = loss_per_secret(table, problem.cost)
    if bounds.worst_case:
        return float(per_secret.max())
    return float(loss_matmul(per_secret[None], problem.prior.probabilities)[0])


def _exact_weights(problem: Problem, table: FloatArray | IntArray) -> IntArray:
    """Weights as they are, or the weights nearest to probabilities."""
    if table.dtype == np.int64:
        if table.shape != problem.shape:
            raise InvalidProblem(f"the weights must be 64-bit integers of shape {problem.shape}")
        return freeze(table.astype(np.int64))
    positive = np.where((table > 0) & (table < SMALLEST_POSITIVE), 0.0, table)  # smaller than half a unit of weight
    given = require_nonnegative(positive, what="the mechanism", shape=problem.shape, meaning="(secrets, observables)")
    sums = given.sum(axis=1, keepdims=True)
    if (abs(sums - 1) > SUM_TOLERANCE).any():
        raise InvalidProblem("every row of the mechanism must sum to 1: p(·|s) is a distribution")
    return to_weights(given / sums, BITS)


def _as_probabilities(table: FloatArray | IntArray) -> FloatArray:
    return np.ldexp(table.astype(np.float64), -BITS) if table.dtype == np.int64 else np.asarray(table, dtype=np.float64)


def _repair(
    draft: Statement, table: FloatArray | IntArray, cheapest: IntArray | None
) -> tuple[Statement, Verification]:
    if table.dtype == np.int64:
        statement = replace(draft, weights=freeze(table.astype(np.int64)))
        return statement, check(statement)
    try:
        return repair(draft, _as_probabilities(table), None if cheapest is None else _as_probabilities(cheapest))
    except GuaranteeViolated:
        if cheapest is None:
            raise
        statement = replace(draft, weights=cheapest)  # the cost allowed may be exactly that of the cheapest mechanism
        return statement, check(statement)


def _certify_realised(statement: Statement, realised: RealisedBounds) -> tuple[Statement, Verification]:
    """The statement with the tightest bounds that verify: the largest distortion and the smallest ε."""
    distortion = distortion_below(statement)
    epsilon = realised_epsilon(statement.weights, statement.distinguishability, realised.within)
    margin = FIRST_EPSILON_MARGIN
    while np.isfinite(epsilon) and margin < 1:
        stated = min(max(epsilon * (1 + margin), SMALLEST_EPSILON), realised.max_epsilon)
        bounds = Bounds(epsilon=stated, within=realised.within, distortion=distortion)
        try:
            return replace(statement, bounds=bounds), check(replace(statement, bounds=bounds))
        except GuaranteeViolated:
            margin *= 8
    without_epsilon = replace(statement, bounds=Bounds(distortion=distortion))
    return without_epsilon, check(without_epsilon)
