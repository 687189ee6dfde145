"""What a release costs in privacy: ε for each row, and composed over a person's rows and columns.

Only what is true is claimed. Draws of different rows and columns are independent given the secrets, so exponents add:

    ln p(answers | x) − ln p(answers | x') ≤ Σ over a person's rows and columns of ε·d^ε(x, x').

- In the metric form ε counts per unit of that column's distance: per kilometre, per year. Numbers of one unit add up,
  those of different units do not.
- The largest exponent between any two secrets has no unit. It adds up over all rows and columns.
- In the threshold form nothing is promised beyond the threshold, and composition keeps to it.
- Without a column that names people nothing is said of people: the numbers are of rows.
- Distortion privacy is about one answer: it does not compose, and is claimed for one row of one column only.
- With ``repeat="same"`` a secret is drawn once, however often it occurs: what adds up are *distinct* secrets, and only
  for who may know anyway which of a person's rows share a secret: that pattern shows through, whatever ε is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from privacygames.errors import Field, InvalidProblem
from privacygames.people_column import require_user_ids
from privacygames.problem import ANY_PAIR, format_epsilon
from privacygames.tables.optional_imports import import_optional
from privacygames.tables.rules import ColumnRule
from privacygames.validation import is_number

MANY_PARTS = 64
"""So many counts are kept before they are added up."""


@dataclass
class PeopleCount:
    """How many rows each person has; counts of batches add up.

    Attributes:
        parts: Arrow tables of ``person`` and ``rows``; somebody may be in as_list.
    """

    parts: list[Any] = field(default_factory=list)

    def add(self, column: Any, name: str, at: int | None = None) -> None:
        """Count the people in an Arrow array whose first row stands ``at`` this row of the table."""
        pa, pc = import_optional("pyarrow"), import_optional("pyarrow.compute")
        plain = pc.cast(column, column.type.value_type) if pa.types.is_dictionary(column.type) else column
        require_user_ids(plain, name, at)
        found = pc.value_counts(plain)
        self.parts.append(pa.table({"person": found.field("values"), "rows": found.field("counts")}))
        if len(self.parts) >= MANY_PARTS:
            self.parts = [self._whole()]

    def merge(self, other: "PeopleCount") -> None:
        """Count those of another part, too."""
        self.parts += other.parts

    def _whole(self) -> Any:
        pa = import_optional("pyarrow")
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
        return int(import_optional("pyarrow.compute").max(whole["rows"]).as_py()), whole.num_rows


@dataclass(frozen=True)
class Charge:
    """The privacy cost of one rule, for one row.

    Attributes:
        columns: which columns.
        epsilon: promised; ∞ where the mechanism promises none.
        per: what ε is counted for: ``"per km"``, ``"per year"``, ``"between secrets at most 2 km apart"``.
        unit: the unit of the distance in which ε counts; empty where it has none that other columns share.
        any_pair: the largest exponent between any two secrets, however far apart; ∞ where an answer rules one out.
        secrets: how many secrets there are.
    """

    columns: str
    epsilon: float
    per: str
    unit: str
    any_pair: float
    secrets: int

    @property
    def form(self) -> str:
        """How ε is to be read."""
        return "no differential privacy is promised" if self.epsilon == inf else self.per

    def __str__(self) -> str:
        if self.epsilon == inf:
            return f"{self.form}; {self.any_pair:.6g} {ANY_PAIR}"
        return format_epsilon(f"{self.epsilon:.6g}", self.per, self.any_pair)


@dataclass(frozen=True)
class Cost:
    """What several draws cost together.

    Attributes:
        epsilons: ε by what it is counted for (``"per km"``), summed over the columns that count it alike.
        any_pair: the largest exponent between any two values of all these secrets, summed over all columns.
    """

    epsilons: Mapping[str, float]
    any_pair: float

    def __str__(self) -> str:
        of_each = [f"{epsilon:.6g} {per}" for per, epsilon in self.epsilons.items()]
        return f"ε = {', '.join(of_each)}; {self.any_pair:.6g} {ANY_PAIR}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        return {
            "epsilon": [{"counted": per, "epsilon": _plain(epsilon)} for per, epsilon in self.epsilons.items()],
            "between_any_two_secrets": _plain(self.any_pair),
        }


@dataclass(frozen=True)
class CostLimits:
    """Above what nothing is released, over a person's rows and columns (over columns, without a user).

    Attributes:
        any_pair: the largest exponent between any two secrets: it has no unit.
        per_unit: ε: one number where all columns count it alike, else by what it is counted for (``"per km"``).
    """

    any_pair: float | None = None
    per_unit: float | Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        listed = dict(self.per_unit) if isinstance(self.per_unit, Mapping) else {"": self.per_unit}
        for name, limit in [("any_pair_limit", self.any_pair), *(("per_unit_limit", each) for each in listed.values())]:
            if limit is not None and not (is_number(limit) and 0 < limit < inf):
                raise InvalidProblem(Field(name), f" is {repr(limit)[:40]}; it must be a positive number")

    def require(self, cost: Cost, whose: str) -> None:
        """Refuse what costs more."""
        if self.any_pair is not None and not cost.any_pair <= self.any_pair:
            raise _above(whose, f"{cost.any_pair:.6g} {ANY_PAIR}", "any_pair_limit", self.any_pair)
        for per, limit in self._by_unit(cost).items():
            if not cost.epsilons[per] <= limit:
                raise _above(whose, f"ε = {cost.epsilons[per]:.6g} {per}", "per_unit_limit", limit)

    def _by_unit(self, cost: Cost) -> Mapping[str, float]:
        if self.per_unit is None:
            return {}
        counted = ", ".join(f"{per!r}" for per in cost.epsilons)
        if isinstance(self.per_unit, Mapping):
            if unknown := [per for per in self.per_unit if per not in cost.epsilons]:
                raise InvalidProblem(
                    Field("per_unit_limit"), f" names {unknown[0]!r:.60}, but ε of this release counts {counted}"
                )
            return self.per_unit
        if len(cost.epsilons) > 1:
            raise InvalidProblem(
                f"ε of this release counts {counted}, and one number cannot limit them all: give ",
                Field("per_unit_limit"),
                " for each by its name, or ",
                Field("any_pair_limit"),
                " for what lies between any two secrets, which adds up",
            )
        return dict.fromkeys(cost.epsilons, self.per_unit)


def _above(whose: str, costs: str, limit_name: str, limit: float) -> InvalidProblem:
    return InvalidProblem(
        f"the release would cost {whose} {costs}, above ",
        Field(limit_name),
        f"={limit:g}: release fewer rows or columns, design for a smaller epsilon, or raise the limit. "
        "Nothing was written",
    )


def refuse_epsilon_limit(given: object) -> None:
    """Refuse the limit of former versions, which added up numbers of different units."""
    if given is not None:
        raise InvalidProblem(
            Field("epsilon_limit"),
            " does not say what it limits: give ",
            Field("any_pair_limit"),
            " for the largest log-ratio between any two secrets, which has no unit and adds up over rows and columns, "
            "or ",
            Field("per_unit_limit"),
            " for ε in its own unit, such as per km",
        )


def charge(rule: ColumnRule) -> Charge:
    """What a row costs under a rule."""
    guarantee = rule.rule.mechanism.epsilon_guarantee
    return Charge(
        columns=rule.name,
        epsilon=inf if guarantee.epsilon is None else guarantee.epsilon,
        per=guarantee.per,
        unit=guarantee.unit,
        any_pair=guarantee.any_pair,
        secrets=len(rule.rule.mechanism.secrets),
    )


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
    def per_row(self) -> Cost:
        """What one row costs, over all columns."""
        return self._cost([1] * len(self.charges))

    @property
    def per_user(self) -> Cost | None:
        """What the person with most rows pays, over rows and columns; None where it is not known who has which."""
        return None if self.rows is None else self._cost([self.times(each) for each in self.charges])

    def _cost(self, times: Sequence[int]) -> Cost:
        drawn = [(count, each) for count, each in zip(times, self.charges, strict=True) if count]  # 0·∞ is nothing
        epsilons = dict.fromkeys((each.per for each in self.charges), 0.0)
        for count, each in drawn:
            epsilons[each.per] += count * each.epsilon
        return Cost(epsilons, float(sum(count * each.any_pair for count, each in drawn)))

    def times(self, each: Charge) -> int:
        """How often somebody's secret is drawn at most; a secret that is drawn once only is counted once.

        A row is counted once, where nobody said whose it is.
        """
        rows = 1 if self.rows is None else self.rows
        return min(rows, each.secrets) if self.repeat == "same" else rows

    def require(self, limits: CostLimits) -> None:
        """Refuse what costs more than the limits."""
        if self.per_user is None:
            limits.require(self.per_row, "a row")
        else:
            limits.require(self.per_user, f"the person with most rows, who has {self.rows},")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        return {
            "per_row": {
                **self.per_row.to_dict(),
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
            if self.per_user is None
            else {"people": self.people, "most_rows": self.rows, **self.per_user.to_dict()},
            "claims": self.claims(),
        }

    def claims(self) -> list[str]:
        """What the numbers mean, in words."""
        said = [
            "Exponents of independent draws add up over rows and columns. An epsilon bounds them per unit of its "
            "column's distance: epsilons of different units are not added. Between any two secrets there is no unit."
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
