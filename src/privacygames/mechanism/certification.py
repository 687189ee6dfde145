"""From numbers that may be slightly off to exact weights whose every promise was checked: behind ``certify``."""

from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
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

SUM_TOLERANCE = 1e-6
LONGEST_ORIGIN = 200  # characters that a file may hold
LEAST_EPSILON = 1e-12
NO_WEIGHTS: IntArray = np.zeros((0, 0), dtype=np.int64)


@dataclass(frozen=True)
class RealisedValues:
    """Instead of bounds: promise what the mechanism turns out to keep.

    Attributes:
        within: state ε in the threshold form, between secrets at most this far apart.
        known: an ε that is known to hold. Rounding makes the ε stated a few last digits larger than the realised one;
            this caps it.
    """

    within: float | None = None
    known: float = inf


def certified(
    problem: Problem,
    bounds: Bounds | RealisedValues,
    table: FloatArray | IntArray,
    dual_solution: DualSolution | None,
    *,
    origin: str,
    cheapest: IntArray | None,
    before: FloatArray | None,
) -> tuple[MechanismContent, Verification]:
    """What :func:`privacygames.mechanism.certify` says, as the contents of a mechanism and what was found of them."""
    draft = Statement(
        weights=NO_WEIGHTS,
        bits=BITS,
        prior=problem.prior.probabilities,
        cost=problem.cost,
        distance=problem.distance,
        distinguishability=problem.distinguishability,
        bounds=Bounds(distortion=0.0) if isinstance(bounds, RealisedValues) else bounds,
        dual_solution=dual_solution,
    )
    added = 0.0
    if isinstance(bounds, RealisedValues):
        given = replace(draft, weights=_weights(problem, table))
        if (given.weights[~given.allowed] > 0).any():
            raise InvalidProblem(
                "this mechanism gives outputs to secrets that they are never allowed for (infinite cost)"
            )
        statement, verification = _realised(given, bounds)
    else:
        statement, verification = _repaired(draft, table, cheapest)
        start = _as_probabilities(table) if before is None else before
        before_repair = cost_of(problem, bounds, start)
        if isfinite(before_repair):  # else an output was taken away that is never allowed: nothing got dearer
            added = cost_of(problem, bounds, probabilities(statement)) - before_repair
    return MechanismContent(
        statement, problem.space, problem.observables, Provenance(origin[:LONGEST_ORIGIN], own_version(), added)
    ), verification


def cost_of(problem: Problem, bounds: Bounds, table: FloatArray) -> float:
    """The cost that counts, of any table of probabilities: the worst secret's, or the average."""
    per_secret = loss_per_secret(table, problem.cost)
    if bounds.worst_case:
        return float(per_secret.max())
    return float(loss_matmul(per_secret[None], problem.prior.probabilities)[0])  # of secrets that occur


@cache
def own_version() -> str:
    """This release, as it appears in certificates; "unknown" where the source is run without being installed."""
    try:
        return version("privacygames")
    except PackageNotFoundError:
        return "unknown"


def _weights(problem: Problem, table: FloatArray | IntArray) -> IntArray:
    """Exact weights as they are, or probabilities as the nearest weights."""
    if table.dtype == np.int64:
        if table.shape != problem.shape:
            raise InvalidProblem(f"the weights must be 64-bit integers of shape {problem.shape}")
        return freeze(table.astype(np.int64))
    likely = np.where((table > 0) & (table < SMALLEST_POSITIVE), 0.0, table)  # less than any weight
    given = require_nonnegative(likely, what="the mechanism", shape=problem.shape, meaning="(secrets, observables)")
    sums = given.sum(axis=1, keepdims=True)
    if (abs(sums - 1) > SUM_TOLERANCE).any():
        raise InvalidProblem("every row of the mechanism must sum to 1: p(·|s) is a distribution")
    return to_weights(given / sums, BITS)


def _as_probabilities(table: FloatArray | IntArray) -> FloatArray:
    return np.ldexp(table.astype(np.float64), -BITS) if table.dtype == np.int64 else np.asarray(table, dtype=np.float64)


def _repaired(
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
        statement = replace(draft, weights=cheapest)  # the limit is what the cheapest costs
        return statement, check(statement)


def _realised(statement: Statement, asked: RealisedValues) -> tuple[Statement, Verification]:
    """Promise exactly what the weights keep: the largest distortion and the smallest epsilon that verify."""
    distortion = distortion_below(statement)
    epsilon = realised_epsilon(statement.weights, statement.distinguishability, asked.within)
    margin = 1e-14
    while np.isfinite(epsilon) and margin < 1:
        promised = min(max(epsilon * (1 + margin), LEAST_EPSILON), asked.known)
        bounds = Bounds(epsilon=promised, within=asked.within, distortion=distortion)
        try:
            return replace(statement, bounds=bounds), check(replace(statement, bounds=bounds))
        except GuaranteeViolated:
            margin *= 8
    plain = replace(statement, bounds=Bounds(distortion=distortion))
    return plain, check(plain)
