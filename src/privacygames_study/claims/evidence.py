"""Evidence for a claim: in how many cases it holds, and what the numbers are."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from privacygames.jobs import Row, Table, Value, number
from privacygames_study.tasks import DONE

MOSTLY = 0.9
"""A claim that holds in at least this share of cases "holds except" in the others; below, it does not hold."""

Triple = dict[str, Row]
"""The rows of the three mechanisms in one setting, by mechanism."""


@dataclass(frozen=True)
class Evidence:
    """The cases looked at.

    Attributes:
        held: for each, whether the claim holds in it.
        numbers: the numbers behind it, in words.
        tolerance: what still counts as equal, in words.
    """

    held: Sequence[bool]
    numbers: str
    tolerance: str

    @property
    def verdict(self) -> str:
        """Holds, holds except in so many cases, does not hold, or was not tested."""
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
    """The settings of a scenario in which all three mechanisms were found."""
    found: dict[tuple[Value, ...], Triple] = {}
    for row in table:
        if row["status"] == DONE:
            found.setdefault((row["user"], row["epsilon"], row["d_m_km"]), {})[str(row["mechanism"])] = row
    return [triple for triple in found.values() if len(triple) == 3]


def curves(rows: Iterable[Row], by: Sequence[str], x: str) -> Iterator[list[Row]]:
    """Rows in groups of the same ``by``, each in the order of ``x``."""
    groups: dict[tuple[Value, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    for group in groups.values():
        yield sorted(group, key=lambda row: number(row, x))


def steps(rows: Iterable[Row], by: Sequence[str], x: str) -> list[tuple[Row, Row]]:
    """Neighbours along ``x``, the lower first."""
    return [pair for curve in curves(rows, by, x) for pair in pairwise(curve)]


def brief(value: float) -> str:
    """Three digits that matter; less than a millionth, a millimetre or the solver's last digits, is none."""
    if np.isinf(value):
        return "infinite"
    return f"{value:.3g}" if abs(value) >= 1e-6 else "0"


def spread(values: Iterable[float], unit: str = "") -> str:
    """Median and range over all cases, in words."""
    given = np.array(list(values), dtype=np.float64)
    if not given.size:
        return "no cases"
    return f"median {brief(float(np.median(given)))}{unit}, between {brief(given.min())} and {brief(given.max())}"
