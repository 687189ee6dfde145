"""Evidence for a claim: the cases in which it holds, and the numbers behind them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from privacygames.jobs import Row, Table, Value, number
from privacygames_study.tasks import DONE

MOSTLY = 0.9
"""Least share of cases for the verdict "holds except in"; below it, the verdict is "does not hold in"."""

Triple = dict[str, Row]
"""The rows of the three mechanisms in one setting, by mechanism."""


@dataclass(frozen=True)
class Evidence:
    """The cases in which a claim was checked.

    Attributes:
        held: for each case, whether the claim holds.
        numbers: the numbers behind the verdict, as a sentence.
        tolerance: the difference that counts as equality.
    """

    held: Sequence[bool]
    numbers: str
    tolerance: str

    @property
    def verdict(self) -> str:
        """``holds``, ``holds except in …``, ``does not hold in …`` or ``not tested``."""
        cases, holds = len(self.held), sum(self.held)
        if not cases:
            return "not tested"
        if holds == cases:
            return "holds"
        exceptions = f"in {cases - holds} of {cases}"
        return f"holds except {exceptions}" if holds >= MOSTLY * cases else f"does not hold {exceptions}"

    def columns(self) -> dict[str, Value]:
        """As columns of the table of claims."""
        cases, holds = len(self.held), sum(self.held)
        return {
            "holds": holds,
            "cases": cases,
            "share": holds / cases if cases else None,
            "tolerance": self.tolerance,
            "evidence": self.numbers,
            "verdict": self.verdict,
        }


def triples(table: Table) -> list[Triple]:
    """The comparisons of a scenario for which all three mechanisms were designed."""
    by_comparison: dict[tuple[Value, ...], Triple] = {}
    for row in table:
        if row["status"] == DONE:
            by_comparison.setdefault((row["user"], row["epsilon"], row["d_m_km"]), {})[str(row["mechanism"])] = row
    return [triple for triple in by_comparison.values() if len(triple) == 3]


def curves(rows: Iterable[Row], by: Sequence[str], x: str) -> Iterator[list[Row]]:
    """Rows grouped by the columns ``by``, each group sorted by ``x``."""
    groups: dict[tuple[Value, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    for group in groups.values():
        yield sorted(group, key=lambda row: number(row, x))


def steps(rows: Iterable[Row], by: Sequence[str], x: str) -> list[tuple[Row, Row]]:
    """Pairs of adjacent rows along ``x``, the lower first."""
    return [pair for curve in curves(rows, by, x) for pair in pairwise(curve)]


def three_digits(value: float) -> str:
    """Three significant digits; values below a millionth, a solver's rounding errors, become 0."""
    if np.isinf(value):
        return "infinite"
    return f"{value:.3g}" if abs(value) >= 1e-6 else "0"


def summary(values: Iterable[float], unit: str = "") -> str:
    """Median and range over all cases, as text."""
    numbers = np.array(list(values), dtype=np.float64)
    if not numbers.size:
        return "no cases"
    return (
        f"median {three_digits(float(np.median(numbers)))}{unit}, between "
        f"{three_digits(numbers.min())} and {three_digits(numbers.max())}"
    )
