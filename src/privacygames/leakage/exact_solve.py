"""Gauss–Jordan elimination in fractions, for small sparse systems of linear equations."""

from collections.abc import Iterable
from fractions import Fraction

Equation = tuple[dict[int, Fraction], Fraction]
"""The non-zero coefficients by unknown, and the right-hand side."""


def solve_exactly(equations: Iterable[Equation], unknowns: int) -> list[Fraction] | None:
    """The values of the unknowns; None if the equations contradict each other or leave some of them undetermined.

    >>> from privacygames.leakage.exact_solve import solve_exactly
    >>> from fractions import Fraction
    >>> third = Fraction(1, 3)
    >>> solve_exactly([({0: third, 1: third}, third), ({1: third}, Fraction(0))], 2)
    [Fraction(1, 1), Fraction(0, 1)]
    """
    pivots: dict[int, Equation] = {}
    for coefficients, right in equations:
        row, value = dict(coefficients), right
        for unknown in sorted(row.keys() & pivots.keys()):
            row, value = _subtract((row, value), pivots[unknown], unknown)
        if not row:
            if value:
                return None
            continue
        unknown = min(row)
        scale = row[unknown]
        pivot = {each: entry / scale for each, entry in row.items()}, value / scale
        for other, equation in pivots.items():
            if unknown in equation[0]:
                pivots[other] = _subtract(equation, pivot, unknown)
        pivots[unknown] = pivot
    if len(pivots) < unknowns:
        return None
    return [pivots[unknown][1] for unknown in range(unknowns)]


def _subtract(equation: Equation, pivot: Equation, unknown: int) -> Equation:
    """An equation without an unknown, by as much of its pivot's equation as that takes."""
    (row, value), (other, right) = equation, pivot
    factor = row[unknown]
    left = dict(row)
    for each, entry in other.items():
        difference = left.get(each, Fraction(0)) - factor * entry
        if difference:
            left[each] = difference
        else:
            left.pop(each, None)
    return left, value - factor * right
