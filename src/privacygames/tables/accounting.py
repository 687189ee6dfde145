"""What a release costs in privacy: ε for each row, and composed over a person's rows and columns.

Only what is true is claimed. Draws of different rows and columns are independent given the secrets, so exponents add:

    ln p(answers | x) − ln p(answers | x') ≤ Σ over a person's rows and columns of ε·d^ε(x, x').

- In the metric form ε counts per unit of that column's distance; sums over columns are of numbers per unit each.
- In the threshold form nothing is promised beyond the threshold, and composition keeps to it.
- Without a column that names people nothing is said of people: the numbers are of rows.
- Distortion privacy is about one answer: it does not compose, and is claimed for one row of one column only.
- With ``repeat="same"`` a secret is drawn once, however often it occurs: what adds up are *distinct* secrets, and only
  for who may know anyway which of a person's rows share a secret: that pattern shows through, whatever ε is.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, log
from typing import Any

import numpy as np

from privacygames.errors import InvalidProblem
from privacygames.fleet import Fleet
from privacygames.mechanism import Mechanism
from privacygames.tables.libraries import needed_for_tables
from privacygames.tables.rules import ColumnRule, Mechanisms

MANY_PARTS = 64
"""So many counts are kept before they are added up."""

ROUNDING = 1e-9
"""Relative room for rounding in logarithms: numbers claimed are rounded up by it."""


@dataclass
class PeopleCount:
    """How many rows each person has; counts of batches add up.

    Attributes:
        parts: Arrow tables of ``person`` and ``rows``; somebody may be in several.
    """

    parts: list[Any] = field(default_factory=list)

    def add(self, column: Any, name: str) -> None:
        """Count the people in an Arrow array."""
        pa, pc = needed_for_tables("pyarrow"), needed_for_tables("pyarrow.compute")
        plain = pc.cast(column, column.type.value_type) if pa.types.is_dictionary(column.type) else column
        if empty := plain.null_count + _empty_texts(plain):
            raise InvalidProblem(f"user column {name!r} is empty in {empty} rows: nobody can be charged")
        found = pc.value_counts(plain)
        self.parts.append(pa.table({"person": found.field("values"), "rows": found.field("counts")}))
        if len(self.parts) >= MANY_PARTS:
            self.parts = [self._whole()]

    def merge(self, other: "PeopleCount") -> None:
        """Count those of another part, too."""
        self.parts += other.parts

    def _whole(self) -> Any:
        pa = needed_for_tables("pyarrow")
        return (
            pa.concat_tables(self.parts)
            .group_by("person")
            .aggregate([("rows", "sum")])
            .rename_columns(["person", "rows"])
        )

    def totals(self) -> tuple[int, int]:
        """The most rows that anybody has, and how many people there are."""
        if not any(part.num_rows for part in self.parts):
            return 0, 0
        whole = self._whole()
        return int(needed_for_tables("pyarrow.compute").max(whole["rows"]).as_py()), whole.num_rows


def _empty_texts(column: Any) -> int:
    """How many texts of a column are empty: in CSV files, that is how nothing looks."""
    pa, pc = needed_for_tables("pyarrow"), needed_for_tables("pyarrow.compute")
    if not any(test(column.type) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)):
        return 0
    return pc.sum(pc.equal(column, pa.scalar("", column.type))).as_py() or 0


@dataclass(frozen=True)
class Charge:
    """The privacy cost of one rule, for one row.

    Attributes:
        columns: which columns.
        epsilon: promised; ∞ where the mechanism promises none.
        within: the threshold, in the threshold form.
        unit: what one unit of distance is; empty where it has no name.
        any_pair: the largest exponent between any two secrets, however far apart; ∞ where an answer rules one out.
        secrets: how many secrets there are.
    """

    columns: str
    epsilon: float
    within: float | None
    unit: str
    any_pair: float
    secrets: int

    @property
    def form(self) -> str:
        """How ε is to be read."""
        if self.epsilon == inf:
            return "no differential privacy is promised"
        if self.within is not None:
            return f"between secrets at most {self.within:g}{self.unit and ' ' + self.unit} apart"
        return f"per unit of distance between secrets{self.unit and f' ({self.unit})'}"


def charge(rule: ColumnRule) -> Charge:
    """What a row costs under a rule."""
    mechanism = rule.rule.mechanism
    bounds, space = mechanism.bounds, mechanism.secrets
    return Charge(
        columns=rule.name,
        epsilon=inf if bounds.epsilon is None else bounds.epsilon,
        within=bounds.within,
        unit=_unit(mechanism),
        any_pair=largest_exponent(mechanism),
        secrets=len(space),
    )


def largest_exponent(mechanism: Mechanisms) -> float:
    """Max ln p(o|s)/p(o|s') over all secrets and observables, rounded up: plain local ε. Of fleets, as promised."""
    if isinstance(mechanism, Fleet):
        exponents = mechanism.bounds.exponents(mechanism.distinguishability)
        np.fill_diagonal(exponents, 0.0)
        return float(exponents.max()) * (1 + ROUNDING)
    highest, lowest = mechanism.weights.max(axis=0), mechanism.weights.min(axis=0)
    if ((lowest == 0) & (highest > 0)).any():
        return inf
    used = highest > 0
    return max(log(int(high)) - log(int(low)) for high, low in zip(highest[used], lowest[used], strict=True)) * (
        1 + ROUNDING
    )


def _unit(mechanism: Mechanisms) -> str:
    """The unit of distance, where the distinguishability is the space's own distance."""
    space = mechanism.secrets
    name = space.default_distance
    if isinstance(mechanism, Mechanism | Fleet) and np.array_equal(space.distance(name), mechanism.distinguishability):
        return space.unit(name)
    return ""


@dataclass(frozen=True)
class ReleaseAccount:
    """What a release costs.

    Attributes:
        charges: for each rule.
        rows: the rows of the person who has most; None where nobody said whose rows they are.
        people: how many people there are; None likewise.
        repeat: ``"fresh"`` or ``"same"``.
    """

    charges: tuple[Charge, ...]
    rows: int | None
    people: int | None
    repeat: str

    @property
    def per_row(self) -> float:
        """ε of one row, over all columns: what each promises, added up."""
        return sum(each.epsilon for each in self.charges)

    @property
    def per_user(self) -> float | None:
        """ε of the person who has most rows, over rows and columns; None where it is not known who has which."""
        return None if self.rows is None else self._sum([each.epsilon for each in self.charges])

    @property
    def per_user_any_pair(self) -> float | None:
        """The same between any values whatever: plain local differential privacy of everything about a person."""
        return None if self.rows is None else self._sum([each.any_pair for each in self.charges])

    def _sum(self, exponents: list[float]) -> float:
        times = [self._times(each) for each in self.charges]
        return sum(count * each for count, each in zip(times, exponents, strict=True) if count)  # 0·∞ is nothing

    def _times(self, each: Charge) -> int:
        """How often somebody's secret is drawn at most; a secret that is drawn once only is counted once."""
        rows = self.rows or 0
        return min(rows, each.secrets) if self.repeat == "same" else rows

    def require(self, limit: float | None) -> None:
        """Refuse what costs more than the limit."""
        if limit is None:
            return
        if not (isinstance(limit, int | float) and 0 < limit < inf) or isinstance(limit, bool):
            raise InvalidProblem(f"epsilon_limit is {repr(limit)[:40]}; it must be a positive number")
        total, of = (self.per_row, "a row") if self.per_user is None else (self.per_user, "the person with most rows")
        if not total <= limit:
            most = "" if self.rows is None else f", who has {self.rows},"
            raise InvalidProblem(
                f"the release would cost {of}{most} ε = {total:.6g} over all columns, above the limit of {limit:g}: "
                "release fewer rows or columns, design for a smaller epsilon, or raise the limit. Nothing was written"
            )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        return {
            "per_row": {
                "epsilon": _plain(self.per_row),
                "columns": [
                    {
                        "columns": each.columns,
                        "epsilon": _plain(each.epsilon),
                        "form": each.form,
                        "between_any_two_secrets": _plain(each.any_pair),
                    }
                    for each in self.charges
                ],
            },
            "per_user": None
            if self.rows is None
            else {
                "people": self.people,
                "most_rows": self.rows,
                "epsilon": _plain(self.per_user),
                "between_any_two_secrets": _plain(self.per_user_any_pair),
            },
            "claims": self.claims(),
        }

    def claims(self) -> list[str]:
        """What the numbers mean, in words."""
        said = [
            "Epsilons of independent draws add up over rows and columns; each counts in the form stated for its column."
        ]
        if self.rows is None:
            said.append("It was not said whose rows are whose: nothing is claimed of people, only of rows.")
        if self.repeat == "same":
            said.append(
                "Each secret of a person was drawn once and its answer repeated, so distinct secrets add up, not rows; "
                "which of her rows share an answer, and so likely a secret, shows through: epsilon does not cover that."
            )
        if self.rows is None or self.rows > 1 or len(self.charges) > 1:
            said.append("Distortion privacy is about a single answer: it is not claimed for several about a person.")
        said.append("Columns that were left as they are, the number of rows and their order are not protected.")
        return said


def account(rules: Sequence[ColumnRule], totals: tuple[int, int] | None, repeat: str) -> ReleaseAccount:
    """The account of a release; ``totals`` are the most rows of a person, and how many people there are."""
    rows, people = (None, None) if totals is None else totals
    return ReleaseAccount(tuple(charge(rule) for rule in rules), rows, people, repeat)


def _plain(value: float | None) -> float | str | None:
    """JSON has no number for ∞."""
    return "inf" if value == inf else value
