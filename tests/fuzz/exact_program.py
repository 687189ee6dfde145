"""The paper's program for a case, written out in exact arithmetic; shares no code with the library's programs.

Variables, all 0 or more: p(o|s) at s·m + o; then x_k(o) for each adversary k (eq:lp:user:utility-privacy:game); then,
for a worst case or a feasibility problem, one more. Numbers are integers, in units of 2^-SHIFT: every float between
10^-60 and 10^60 is one exactly, and so is every product of two. Only γ = exp(ε·d) is rounded, upwards, which relaxes
the program: what is proved of it holds for the paper's as well.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from exact import exp_enclosure
from fuzz.case import Array, Case

Integers = NDArray[Any]
"""An array of Python's integers, which have no largest value."""

SHIFT = 512
ONE = 1 << SHIFT
LARGEST_EXPONENT = Fraction(60)
"""Ratios above e^60 are left out of the program: they ask for 10^-26 of a probability."""

Objective = Literal["cost", "privacy", "excess"]


@dataclass(frozen=True)
class ExactProgram:
    """min objective·v subject to rows·v ≥ (or =) right, v ≥ 0; v_j = 0 where forbidden.

    Attributes:
        objective: one coefficient a variable.
        row: which row each coefficient of the matrix is in.
        column: which variable it is of.
        value: what it is.
        right: the right-hand sides.
        equal: which rows are equations: the first n, which say that probabilities sum to 1.
        upper: what each variable is at most in some optimal solution.
        forbidden: which variables are 0.
        shape: how many secrets and outputs.
    """

    objective: Integers
    row: NDArray[np.int64]
    column: NDArray[np.int64]
    value: Integers
    right: Integers
    equal: NDArray[np.bool_]
    upper: Integers
    forbidden: NDArray[np.bool_]
    shape: tuple[int, int]

    def times(self, variables: Integers) -> Integers:
        """The left-hand sides, in units of 2^-2·SHIFT, for variables in units of 2^-SHIFT."""
        total = np.zeros(len(self.right), dtype=object)
        np.add.at(total, self.row, self.value * variables[self.column])
        return total

    def reduced_costs(self, duals: Integers) -> Integers:
        """objective − rowsᵀ·duals, in units of 2^-2·SHIFT."""
        total = self.objective << SHIFT
        np.subtract.at(total, self.column, self.value * duals[self.row])
        return total

    def lower_bound(self, duals: Integers) -> Fraction:
        """What weak duality proves with these dual values, made admissible first: no solution is below it."""
        n, m = self.shape
        duals = np.where(self.equal, duals, np.maximum(duals, 0))
        reduced = self.reduced_costs(duals)
        blocked = np.where(self.forbidden, 1 << (8 * SHIFT), reduced)[: n * m].reshape(n, m)
        least = blocked.min(axis=1)  # the best duals of the sums, given the others
        others = np.minimum(reduced[n * m :], 0) * self.upper[n * m :]
        total = (int(sum(duals * self.right)) + int(sum(least))) * ONE + int(sum(others))
        return Fraction(total, 1 << (3 * SHIFT))


def fixed(number: float | Fraction) -> int:
    """A number in units of 2^-SHIFT; exact for floats of a size the library takes, and for products of two."""
    plain = Fraction(number)
    scaled, rest = divmod(plain.numerator << SHIFT, plain.denominator)
    assert not rest, "this number is not a whole multiple of the unit"
    return scaled


def fixed_array(values: Array) -> Integers:
    """An array in units of 2^-SHIFT."""
    flat = [fixed(value) for value in np.asarray(values, dtype=float).ravel().tolist()]
    return np.array([*flat, None], dtype=object)[:-1].reshape(np.shape(values))


def product_array(left: Array, right: Array) -> Integers:
    """Products of floats, exactly, in units of 2^-SHIFT."""
    return (fixed_array(left) * fixed_array(right)) >> SHIFT


@lru_cache(maxsize=1 << 14)
def enclosed_exponential(exponent: Fraction) -> tuple[int, int]:
    """Integers just below and above exp(exponent), in units of 2^-SHIFT."""
    low, high = exp_enclosure(exponent)
    return int(low * ONE), -int(-high * ONE // 1)


def exponents(case: Case) -> dict[tuple[int, int], Fraction]:
    """The exponent of every ordered pair of secrets whose ratio is bounded."""
    epsilon, within = case.bounds.get("epsilon"), case.bounds.get("within")
    if epsilon is None:
        return {}
    apart = case.distinguishability.tolist()
    n, _ = case.shape
    pairs = [(s, t) for s in range(n) for t in range(n) if s != t]
    if within is not None:
        return {(s, t): Fraction(epsilon) for s, t in pairs if apart[s][t] <= within}
    return {(s, t): Fraction(epsilon) * Fraction(apart[s][t]) for s, t in pairs if apart[s][t] < inf}


def allowed_outputs(case: Case) -> NDArray[np.bool_]:
    """Which outputs a secret may give: what one may not give, neither may those whose ratios to it are bounded."""
    allowed = np.isfinite(case.cost).T
    pairs = list(exponents(case))
    before = -1
    while not allowed.all() and allowed.sum() != before:
        before = int(allowed.sum())
        for s, t in pairs:
            allowed[s] &= allowed[t]
    return allowed


def exact_program(case: Case, objective: Objective, *, excess_unit: float = 1.0) -> ExactProgram:
    """The program of a case.

    Args:
        case: problem and bounds.
        objective: the cost (average or, as the bounds say, of the worst secret); the privacy of the first adversary,
            negated; or by how much promises must be missed: more than 1 is impossible, costs in a unit.
        excess_unit: that unit.
    """
    build = _Builder(case)
    build.sums()
    build.ratios()
    opponents = case.opponents()
    for place in range(len(opponents)):
        build.guesses(place)
    for place, (_, _, least) in enumerate(opponents):
        if least is not None and not (objective == "privacy" and place == 0):
            build.distortion(place, least, elastic=objective == "excess")
    limits = {"cost_at_most": bool(case.bounds.get("worst_case")), "worst_cost_at_most": True}
    for name, worst in limits.items():
        if name in case.bounds and objective != "cost":
            build.limit(case.bounds[name], worst=worst, unit=excess_unit if objective == "excess" else None)
        elif name in case.bounds and name == "worst_cost_at_most":
            build.limit(case.bounds[name], worst=worst, unit=None)
    return build.program(objective, excess_unit)


class _Builder:
    """Collects rows."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.n, self.m = case.shape
        self.opponents = case.opponents()
        self.extra = self.n * self.m + len(self.opponents) * self.m
        self.rows: list[NDArray[np.int64]] = []
        self.columns: list[NDArray[np.int64]] = []
        self.values: list[Integers] = []
        self.right: list[int] = []
        allowed = np.isfinite(case.cost)
        self.costs = fixed_array(np.where(allowed, case.cost, 0.0)).T  # (s, o)
        self.forbidden = ~allowed_outputs(case).ravel()
        self.weighted_costs = product_array(
            np.where(allowed, case.cost, 0.0), np.broadcast_to(case.prior, case.cost.shape)
        ).T

    def add(self, columns: NDArray[np.int64], values: Integers, right: int) -> None:
        """One row: Σ values·v[columns] ≥ right."""
        self.rows.append(np.full(len(columns), len(self.right)))
        self.columns.append(columns)
        self.values.append(values)
        self.right.append(right)

    def sums(self) -> None:
        for s in range(self.n):
            self.add(s * self.m + np.arange(self.m), _whole([ONE] * self.m), ONE)

    def ratios(self) -> None:
        outputs = np.arange(self.m)
        for (s, t), exponent in exponents(self.case).items():
            if exponent <= LARGEST_EXPONENT:
                _, above = enclosed_exponential(exponent)
                first = len(self.right)
                self.rows.append(np.repeat(first + outputs, 2))
                self.columns.append(np.column_stack([t * self.m + outputs, s * self.m + outputs]).ravel())
                self.values.append(_whole([above, -ONE] * self.m))
                self.right.extend([0] * self.m)

    def guesses(self, place: int) -> None:
        belief, errors, _ = self.opponents[place]
        for weights in product_array(errors, np.broadcast_to(belief, errors.shape)):
            used = np.flatnonzero(weights)
            for o in range(self.m):
                columns = np.append(used * self.m + o, self.guess_column(place) + o)
                self.add(columns, np.append(weights[used], [-ONE]), 0)

    def distortion(self, place: int, least: float, *, elastic: bool) -> None:
        """Privacy of at least so much; elastic, of so much less what the last variable counts beyond 1."""
        columns = self.guess_column(place) + np.arange(self.m)
        if elastic:
            self.add(np.append(columns, self.extra), _whole([*[ONE] * self.m, fixed(least)]), 2 * fixed(least))
        else:
            self.add(columns, _whole([ONE] * self.m), fixed(least))

    def limit(self, most: float, *, worst: bool, unit: float | None) -> None:
        """Costs of at most so much; with a unit, of so much and what the last variable counts beyond it."""
        step = [] if unit is None else [fixed(unit)]  # most + unit·(v − 1): 1 is just what is allowed
        for costs, columns in self.cost_rows(worst=worst):
            places = columns if unit is None else np.append(columns, self.extra)
            self.add(places, np.append(-costs, _whole(step)), sum(step) - fixed(most))

    def program(self, objective: Objective, excess_unit: float) -> ExactProgram:
        worst = bool(self.case.bounds.get("worst_case"))
        goal = np.zeros(self.extra + 1, dtype=object)
        if objective == "excess" or worst:
            goal[self.extra] = ONE
        if objective == "cost" and worst:
            for costs, columns in self.cost_rows(worst=True):
                self.add(np.append(columns, self.extra), np.append(-costs, [ONE]), 0)
        elif objective == "cost":
            goal[: self.n * self.m] = self.weighted_costs.ravel()
        elif objective == "privacy":
            goal[:] = 0
            goal[self.guess_column(0) + np.arange(self.m)] = -ONE
        upper = np.full(self.extra + 1, int(self.costs.max()), dtype=object)
        if objective == "excess":
            upper[self.extra] = (int(self.costs.max()) << SHIFT) // fixed(excess_unit) + 2 * ONE
        upper[: self.n * self.m] = ONE
        for place, (belief, errors, _) in enumerate(self.opponents):
            blind = product_array(errors, np.broadcast_to(belief, errors.shape)).sum(axis=1).min()
            upper[self.guess_column(place) : self.guess_column(place) + self.m] = int(blind)
        count = len(self.right)
        equal = np.zeros(count, dtype=bool)
        equal[: self.n] = True
        forbidden = np.zeros(self.extra + 1, dtype=bool)
        forbidden[: self.n * self.m] = self.forbidden
        return ExactProgram(
            goal,
            np.concatenate(self.rows),
            np.concatenate(self.columns),
            np.concatenate(self.values),
            _whole(self.right),
            equal,
            upper,
            forbidden,
            (self.n, self.m),
        )

    def guess_column(self, place: int) -> int:
        return self.n * self.m + place * self.m

    def cost_rows(self, *, worst: bool) -> list[tuple[Integers, NDArray[np.int64]]]:
        """Coefficients and variables of the average cost, or of every secret's."""
        if not worst:
            return [(self.weighted_costs.ravel(), np.arange(self.n * self.m))]
        return [(self.costs[s], s * self.m + np.arange(self.m)) for s in range(self.n)]


def _whole(values: list[int]) -> Integers:
    return np.array([*values, None], dtype=object)[:-1]
