r"""The privacy cost of a release: ε for each row, and composed over a person's rows and columns.

Given the secrets, draws of different rows and columns are independent, so that log-ratios add up: for two histories
x, x' of a person's secrets,

.. math:: \ln p(\text{outputs}\mid x) - \ln p(\text{outputs}\mid x')
          \le \sum_{\text{rows, columns}} \varepsilon\, d^\varepsilon(x, x').

- In the metric form ε is per unit of the column's distance: per kilometre, per year. Epsilons of one unit add up, those
  of different units do not.
- The largest log-ratio between any two secrets has no unit. It adds up over all rows and columns.
- In the threshold form nothing is guaranteed beyond the threshold, before and after composition.
- Without a column that says whose row it is, nothing is claimed of people: costs are those of a row.
- Distortion privacy is about one output: it does not compose, and is claimed for one row of one column only.
- With ``repeat="same"`` a secret is drawn once, however often it occurs: the cost adds up over *distinct* secrets. The
  guarantee is against adversaries who may know which of a person's rows share a secret: that pattern is visible.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from privacygames.errors import Field, InvalidProblem
from privacygames.problem import ANY_PAIR, format_epsilon
from privacygames.tables.rules import ColumnRule
from privacygames.validation import is_number


@dataclass(frozen=True)
class Charge:
    """The privacy cost of one rule, for one row.

    Attributes:
        columns: the columns of the rule, as messages name them.
        epsilon: the guaranteed ε; ∞ if there is no such guarantee.
        per: what ε is counted for: ``"per km"``, ``"per year"``, ``"between secrets at most 2 km apart"``.
        unit: the unit of distinguishability; empty if other columns share none.
        any_pair: the largest log-ratio between any two secrets, however far apart; ∞ if an output rules one out.
        secrets: the number of secrets; None where every point of a region is one.
    """

    columns: str
    epsilon: float
    per: str
    unit: str
    any_pair: float
    secrets: int | None

    @property
    def form(self) -> str:
        """What ε is counted for, or that there is no guarantee."""
        return "no differential privacy is guaranteed" if self.epsilon == inf else self.per

    def __str__(self) -> str:
        if self.epsilon == inf:
            return f"{self.form}; {self.any_pair:.6g} {ANY_PAIR}"
        return format_epsilon(f"{self.epsilon:.6g}", self.per, self.any_pair)


@dataclass(frozen=True)
class Cost:
    """The privacy cost of several draws together.

    Attributes:
        epsilons: ε by what it is counted for (``"per km"``), summed over the columns of one unit.
        any_pair: the largest log-ratio between any two values of all these secrets, summed over all columns.
    """

    epsilons: Mapping[str, float]
    any_pair: float

    def __str__(self) -> str:
        by_unit = [f"{epsilon:.6g} {per}" for per, epsilon in self.epsilons.items()]
        return f"ε = {', '.join(by_unit)}; {self.any_pair:.6g} {ANY_PAIR}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for the manifest."""
        return {
            "epsilon": [{"counted": per, "epsilon": finite_or_text(epsilon)} for per, epsilon in self.epsilons.items()],
            "between_any_two_secrets": finite_or_text(self.any_pair),
        }


@dataclass(frozen=True)
class CostLimits:
    """Limits of a release's cost, over a person's rows and columns (over columns, without a user column).

    Attributes:
        any_pair: limit of the largest log-ratio between any two secrets, which has no unit.
        per_unit: limit of ε: one number if all columns have one unit, else by what ε is counted for (``"per km"``).
    """

    any_pair: float | None = None
    per_unit: float | Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        listed = dict(self.per_unit) if isinstance(self.per_unit, Mapping) else {"": self.per_unit}
        for name, limit in [("any_pair_limit", self.any_pair), *(("per_unit_limit", each) for each in listed.values())]:
            if limit is not None and not (is_number(limit) and 0 < limit < inf):
                raise InvalidProblem(Field(name), f" is {repr(limit)[:40]}; it must be a positive number")

    def require(self, cost: Cost, whose: str) -> None:
        """Refuse a cost above the limits; ``whose`` says whose cost it is."""
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


def refuse_epsilon_limit(value: object) -> None:
    """Refuse the limit of former versions, which added up epsilons of different units."""
    if value is not None:
        raise InvalidProblem(
            Field("epsilon_limit"),
            " does not say what it limits: give ",
            Field("any_pair_limit"),
            " for the largest log-ratio between any two secrets, which has no unit and adds up over rows and columns, "
            "or ",
            Field("per_unit_limit"),
            " for ε in its own unit, such as per km",
        )


def charge_of(rule: ColumnRule) -> Charge:
    """The privacy cost of a rule for one row."""
    guarantee = rule.rule.mechanism.epsilon_guarantee
    return Charge(
        columns=rule.name,
        epsilon=inf if guarantee.epsilon is None else guarantee.epsilon,
        per=guarantee.per,
        unit=guarantee.unit,
        any_pair=guarantee.any_pair,
        secrets=rule.reader.secret_count,
    )


@dataclass(frozen=True)
class ReleaseAccount:
    """The privacy cost of a release.

    Attributes:
        charges: the cost of each rule for one row.
        rows: the largest number of rows of a person; None without a user column.
        people: the number of people; None without a user column.
        repeat: ``"fresh"`` or ``"same"``.
    """

    charges: tuple[Charge, ...]
    rows: int | None
    people: int | None
    repeat: str

    @property
    def per_row(self) -> Cost:
        """The cost of one row, over all columns."""
        return self._cost([1] * len(self.charges))

    @property
    def per_user(self) -> Cost | None:
        """The cost for the person with most rows, over rows and columns; None without a user column."""
        return None if self.rows is None else self._cost([self.draws(charge) for charge in self.charges])

    def _cost(self, draws: Sequence[int]) -> Cost:
        drawn = [(count, charge) for count, charge in zip(draws, self.charges, strict=True) if count]  # not 0·∞
        epsilons = dict.fromkeys((charge.per for charge in self.charges), 0.0)
        for count, charge in drawn:
            epsilons[charge.per] += count * charge.epsilon
        return Cost(epsilons, float(sum(count * charge.any_pair for count, charge in drawn)))

    def draws(self, charge: Charge) -> int:
        """The largest number of draws of a person's secrets by one rule, or of a row's without a user column.

        With ``repeat="same"`` each distinct secret is drawn once. Points are counted as if all were distinct.
        """
        rows = 1 if self.rows is None else self.rows
        return min(rows, charge.secrets) if self.repeat == "same" and charge.secrets is not None else rows

    def require(self, limits: CostLimits) -> None:
        """Refuse a cost above the limits."""
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
                        "columns": charge.columns,
                        "epsilon": finite_or_text(charge.epsilon),
                        "form": charge.form,
                        "between_any_two_secrets": finite_or_text(charge.any_pair),
                    }
                    for charge in self.charges
                ],
            },
            "per_user": None
            if self.per_user is None
            else {"people": self.people, "most_rows": self.rows, **self.per_user.to_dict()},
            "claims": self.claims(),
        }

    def claims(self) -> list[str]:
        """What the numbers guarantee, in words."""
        claims = [
            "Log-ratios of independent draws add up over rows and columns. An epsilon bounds them per unit of its "
            "column's distance: epsilons of different units are not added. Between any two secrets there is no unit."
        ]
        if self.rows is None:
            claims.append("It was not said whose rows are whose: nothing is claimed of people, only of rows.")
        if self.repeat == "same":
            claims.append(
                "Each secret of a person was drawn once and its output repeated, so distinct secrets add up, not rows; "
                "which of their rows share an output, and so likely a secret, is visible: epsilon does not cover that."
            )
        if self.rows is None or self.rows > 1 or len(self.charges) > 1:
            claims.append("Distortion privacy is about a single output: it is not claimed for several about a person.")
        claims.append("Columns that were left as they are, the number of rows and their order are not protected.")
        return claims


def finite_or_text(value: float | None) -> float | str | None:
    """A number for JSON, which has none for ∞."""
    return "inf" if value == inf else value
