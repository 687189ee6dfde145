"""Solving an exact program as closely as is wanted: SciPy's HiGHS, refined with exact residuals.

Iterative refinement (Gleixner, Steffy, Wolter: "Iterative refinement for linear programming", INFORMS J. Comput. 2016):
what is missing from a solution is itself a linear program with the same matrix, whose right-hand sides, bounds and
costs are residuals; these are computed exactly, magnified, and solved for in floating point again.
"""

import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeWarning, linprog
from scipy.sparse import csr_array, hstack

from fuzz.case import Array
from fuzz.exact_program import ONE, SHIFT, ExactProgram, Integers

ROUNDS = 14
CLIP = 1e8
"""Larger residuals only say that a bound is far away."""

STEP = 1e4
"""No variable changes by more than this, magnified, in a round after the first: bounds beyond CLIP stay far away."""

MOST_GROWTH = 30
"""A round magnifies by at most 2^this more than the one before."""

LARGEST_MAGNIFICATION = 300
SPREAD = 2.0**-14
"""Rows are divided by the geometric mean of their largest and smallest entry, at least by this part of the largest."""

SMALLEST = Fraction(1, 10**40)
"""At stake at least, where revealing nothing is free."""

SMALLEST_VIOLATION = ONE * (ONE >> 50)
METHODS = (("highs-ds", True), ("highs-ipm", True), ("highs-ds", False))
"""Tried one after the other where one fails; whether with presolve."""


@dataclass(frozen=True)
class Refined:
    """How far refinement came.

    Attributes:
        lower: proved: no solution has a smaller objective.
        value: the objective of the last point, which need not be quite admissible.
        violation: by how much it breaks a row or a sign at most.
        variables: the point, in units of 2^-SHIFT.
        converged: whether ``value`` and ``lower`` are as near to each other as asked for, and ``violation`` is small.
    """

    lower: Fraction
    value: Fraction
    violation: float
    variables: Integers
    converged: bool


@dataclass(frozen=True)
class _Point:
    """Variables and dual values, and what is wrong with them, exactly; all but the first two in units of 2^-2·SHIFT.

    Attributes:
        missing: right-hand sides less left-hand sides.
        reduced: reduced costs of the variables.
        primal: by how much a row or a sign of a variable is broken at most.
        dual: by how much a sign of a reduced cost or a dual value is broken at most.
        complementarity: Σ reduced cost × variable + Σ dual value × slack, of those that have the right signs.
    """

    variables: Integers
    duals: Integers
    missing: Integers
    reduced: Integers
    primal: int
    dual: int
    complementarity: int

    @classmethod
    def of(cls, program: ExactProgram, matrix: "_Scaled", variables: Integers, duals: Integers) -> "_Point":
        """Look at variables and dual values; rows and variables are scaled where they are compared."""
        missing = (program.right << SHIFT) - program.times(variables)
        reduced = np.where(program.forbidden, 0, program.reduced_costs(duals))
        short = _shifted(np.where(program.equal, abs(missing), np.maximum(missing, 0)), matrix.rows)
        below = _shifted(np.maximum(-variables, 0) << SHIFT, 1 / matrix.columns)
        wrong = _shifted(np.maximum(-reduced, 0), matrix.columns)
        signs = _shifted(np.where(program.equal, 0, np.maximum(-duals, 0) << SHIFT), 1 / matrix.rows)
        slack = np.where(program.equal, 0, np.maximum(-missing, 0))
        products = sum(np.maximum(reduced, 0) * np.maximum(variables, 0)) + sum(np.maximum(duals, 0) * slack)
        return cls(
            variables,
            duals,
            missing,
            reduced,
            max(short.max(), below.max()),
            max(wrong.max(), signs.max()),
            int(products) >> SHIFT,
        )


def refine(program: ExactProgram, scale: Fraction, precision: float, seconds: float = 20.0) -> Refined | None:
    """The optimum, to a relative precision of max(|optimum|, a millionth of scale); None if no round succeeded.

    Args:
        program: what to solve.
        scale: the size of the objective: what a solution that is easily found has.
        precision: how near to each other the value and the bound must be.
        seconds: at most so long for each solve in floating point.
    """
    matrix = _Scaled.of(program, scale)
    unit = -_exponent(scale)
    point = _Point.of(program, matrix, np.zeros(len(program.objective), object), np.zeros(len(program.right), object))
    magnified = (0, 0)  # exponents of the magnification of either side
    best: Refined | None = None
    attempt = 0
    for count in range(ROUNDS):
        method, presolve = METHODS[attempt % len(METHODS)]
        step = matrix.solve(
            point, magnified[0], unit + magnified[1], method, seconds, first=best is None, presolve=presolve
        )
        if step is None and attempt > 4:
            break
        if step is None:
            attempt += 1
            if best is not None:
                magnified = (max(magnified[0] - 8, 0), max(magnified[1] - 8, 0))
            continue
        after = _Point.of(program, matrix, point.variables + step[0], point.duals + step[1])
        found = _refined(program, after, best, scale, precision)
        best = (
            found if best is None or found.converged or after.primal <= point.primal else _with_bound(best, found.lower)
        )
        if best.converged:
            break
        point = after
        magnified = _next(magnified, point, unit, count)
    return best


def _refined(
    program: ExactProgram, point: _Point, before: Refined | None, scale: Fraction, precision: float
) -> Refined:
    lower = program.lower_bound(point.duals)
    bound = lower if before is None else max(before.lower, lower)
    value = Fraction(int(sum(program.objective * point.variables)), 1 << (2 * SHIFT))
    stake = max(abs(value), scale / 10**6, SMALLEST)
    near = abs(value - bound) <= Fraction(precision) * stake and point.primal <= SMALLEST_VIOLATION
    return Refined(bound, value, point.primal / (ONE << SHIFT), point.variables, bool(near))


def _with_bound(best: Refined, lower: Fraction) -> Refined:
    return Refined(max(best.lower, lower), best.value, best.violation, best.variables, best.converged)


def _next(magnified: tuple[int, int], point: _Point, unit: int, count: int) -> tuple[int, int]:
    """The exponents of the next round: what makes what is wrong about 1, and products of both sides, too.

    Where products limit them, one side is preferred after the other.
    """
    primal = max(min(_bits(point.primal), magnified[0] + MOST_GROWTH, LARGEST_MAGNIFICATION), 0)
    dual = max(min(_bits(point.dual) - unit, magnified[1] + MOST_GROWTH, LARGEST_MAGNIFICATION), 0)
    together = max(_bits(point.complementarity) - unit + 10, 0)
    if primal + dual > together:
        half = together // 2
        primal, dual = (
            (min(primal, half), min(dual, half)),
            (max(together - dual, 0), min(dual, together)),
            (min(primal, together), max(together - primal, 0)),
        )[count % 3]
    return primal, dual


def _bits(number: int) -> int:
    """How often a number in units of 2^-2·SHIFT is to be doubled to be about 1."""
    return 2 * SHIFT - number.bit_length() if number else LARGEST_MAGNIFICATION


@dataclass(frozen=True)
class _Scaled:
    """The matrix in floating point, its rows and columns scaled by powers of two, and a solver for it."""

    matrix: Any
    rows: Array
    columns: Array
    equal: NDArray[np.bool_]
    forbidden: NDArray[np.bool_]

    @classmethod
    def of(cls, program: ExactProgram, scale: Fraction) -> "_Scaled":
        """Variables in units of what they are at most, rows divided by what lies between their entries."""
        n, m = program.shape
        size = (len(program.right), len(program.objective))
        columns = np.ones(size[1])
        for place in range(n * m, size[1] - 1):
            columns[place] = 2.0 ** _exponent(Fraction(int(program.upper[place]), ONE))
        columns[-1] = 2.0 ** _exponent(scale)
        values = _floats(program.value, SHIFT) * columns[program.column]
        most, least = np.zeros(size[0]), np.full(size[0], np.inf)
        np.maximum.at(most, program.row, abs(values))
        np.minimum.at(least, program.row, np.where(values == 0, np.inf, abs(values)))
        middle = np.maximum(np.sqrt(most * np.where(np.isfinite(least), least, 1.0)), most * SPREAD)
        rows = 2.0 ** -np.rint(np.log2(np.where(middle > 0, middle, 1.0)))
        matrix = csr_array((values * rows[program.row], (program.row, program.column)), shape=size)
        return cls(matrix, rows, columns, program.equal, program.forbidden)

    def solve(
        self, point: _Point, primal: int, dual: int, method: str, seconds: float, *, first: bool, presolve: bool
    ) -> tuple[Integers, Integers] | None:
        """What to add to variables and dual values: the solution of the program of residuals, with slack variables.

        It minimises reduced·v + duals·w subject to rows·v − w = missing, and variables and slacks stay 0 or more.
        """
        slack = np.where(self.equal, 0, np.maximum(-point.missing, 0))
        right = _floats(point.missing + slack, 2 * SHIFT - primal) * self.rows
        least = _floats(-point.variables, SHIFT - primal) / self.columns
        least_slack = _floats(-slack, 2 * SHIFT - primal) * self.rows
        slack_costs = _floats(point.duals, SHIFT - dual) / self.rows
        loose = ~self.equal & (least_slack < -CLIP) & (slack_costs == 0)  # far from binding
        used = np.flatnonzero(~loose)
        slacks = np.flatnonzero(~loose & ~self.equal)
        place = np.searchsorted(used, slacks)
        slack_columns = csr_array((-np.ones(len(slacks)), (place, np.arange(len(slacks)))), (len(used), len(slacks)))
        costs = np.concatenate([_floats(point.reduced, 2 * SHIFT - dual) * self.columns, slack_costs[slacks]])
        limit = np.inf if first else STEP
        low = np.concatenate([np.maximum(least, -limit), np.maximum(least_slack[slacks], -CLIP)])
        high = np.full(len(low), np.inf)
        high[: len(least)] = np.where(self.forbidden, low[: len(least)], np.maximum(limit, low[: len(least)]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OptimizeWarning)
            found = linprog(
                np.clip(costs, -CLIP, CLIP),
                A_eq=hstack([self.matrix[used], slack_columns], format="csc"),
                b_eq=right[used],
                bounds=np.column_stack([low, high]),
                method=method,
                options={
                    "primal_feasibility_tolerance": 1e-9,
                    "dual_feasibility_tolerance": 1e-9,
                    "time_limit": seconds,
                    "presolve": presolve,
                },
            )
        if found.status != 0 or found.x is None:
            return None
        duals = np.zeros(len(right))
        duals[used] = found.eqlin.marginals
        return _fixed_floats(found.x[: len(least)] * self.columns, -primal), _fixed_floats(duals * self.rows, -dual)


def _exponent(number: Fraction) -> int:
    """The power of two next to a positive number; 0 for 0."""
    return number.numerator.bit_length() - number.denominator.bit_length() if number > 0 else 0


def _shifted(values: Integers, powers: Array) -> Integers:
    """Integers times powers of two, rounded down."""
    _, exponents = np.frexp(powers)
    shifts = zip(values, (exponents - 1).tolist(), strict=True)
    return np.array([value << shift if shift >= 0 else value >> -shift for value, shift in shifts] + [None])[:-1]


def _floats(values: Integers, shift: int) -> Array:
    """Integers in units of 2^-shift as floats; what is too large becomes the largest there is."""
    unit = 1 << max(shift, 0)
    return np.array([_quotient(value, unit) for value in values], dtype=float)


def _quotient(value: int, unit: int) -> float:
    if value.bit_length() - unit.bit_length() > 1000:
        return 1e300 if value > 0 else -1e300
    return value / unit


def _fixed_floats(values: Array, exponent: int) -> Integers:
    """values·2^exponent, rounded to units of 2^-SHIFT."""
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values.tolist()):
        numerator, denominator = value.as_integer_ratio()
        shift = SHIFT + exponent - (denominator.bit_length() - 1)
        found[place] = numerator << shift if shift >= 0 else numerator >> -shift
    return found
