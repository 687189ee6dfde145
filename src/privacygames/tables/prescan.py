"""The prescan: one pass over the data before anything is drawn, to count rows and people and check the row identity."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacygames.errors import Field, InvalidProblem
from privacygames.people_column import require_user_ids
from privacygames.tables.accounting import ReleaseAccount
from privacygames.tables.kernel import Kernel, RowCounts, distinct
from privacygames.tables.optional_imports import import_optional
from privacygames.tables.release_plan import ReleasePlan

MAX_PARTS = 64
"""Counts of people held before they are added up."""


@dataclass
class PeopleCount:
    """The number of rows of each person. Counts of batches add up.

    Attributes:
        parts: Arrow tables of ``person`` and ``rows``; a person may be in several.
    """

    parts: list[Any] = field(default_factory=list)

    def add(self, column: Any, name: str, start: int | None = None) -> None:
        """Count the people in an Arrow array of the user column.

        Args:
            column: the array.
            name: the column's name, for messages.
            start: position of the first row in its table; None if it is not known.
        """
        pa, pc = import_optional("pyarrow"), import_optional("pyarrow.compute")
        names = pc.cast(column, column.type.value_type) if pa.types.is_dictionary(column.type) else column
        require_user_ids(names, name, start)
        counts = pc.value_counts(names)
        self.parts.append(pa.table({"person": counts.field("values"), "rows": counts.field("counts")}))
        if len(self.parts) >= MAX_PARTS:
            self.parts = [self._sum()]

    def merge(self, other: "PeopleCount") -> None:
        """Add the counts of another part of the table."""
        self.parts += other.parts

    def totals(self) -> tuple[int, int]:
        """The largest number of rows of a person, and the number of people."""
        if not any(part.num_rows for part in self.parts):
            return 0, 0
        total = self._sum()
        return int(import_optional("pyarrow.compute").max(total["rows"]).as_py()), total.num_rows

    def _sum(self) -> Any:
        parts = import_optional("pyarrow").concat_tables(self.parts)
        return parts.group_by("person").aggregate([("rows", "sum")]).rename_columns(["person", "rows"])


@dataclass
class Prescan:
    """What a pass over the data found. Prescans of parts of a table add up.

    Attributes:
        plan: the release.
        counts: rows read, dropped and invalid, where these are counted.
        people: the number of rows of each person; None without a user column.
        tags: half of each row's identity; of each person's, once in a batch, where people are the identity.
        marks: a hash of the identity and secrets of each row that stays, for :meth:`Kernel.expect`.
    """

    plan: ReleasePlan
    counts: RowCounts = field(default_factory=RowCounts)
    people: PeopleCount | None = None
    tags: list[NDArray[np.uint64]] = field(default_factory=list)
    marks: list[NDArray[np.uint64]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.plan.user is not None and self.people is None:
            self.people = PeopleCount()

    def add(
        self, columns: Mapping[str, Any], count: int, kernel: Kernel, *, count_rows: bool, start: int | None
    ) -> None:
        """Scan some rows.

        Args:
            columns: Arrow arrays by name.
            count: number of rows.
            kernel: the kernel for the table.
            count_rows: whether to count rows and mark secrets, for engines that draw later.
            start: position of the first row in its table; None if it is not known.
        """
        if count_rows:
            counts, marks = kernel.scan(columns, count, start)
            self.counts.add(counts)
            self.marks.append(marks)
        if self.people is not None and self.plan.user is not None:
            self.people.add(columns[self.plan.user], self.plan.user, start)
            kernel.require_known_people(columns)
        if not self.plan.identity.by_position:
            tags = np.ascontiguousarray(kernel.tags(columns, count, 0)[:, 0])
            self.tags.append(tags if self.plan.keys_are_unique else distinct(tags))

    def merge(self, other: "Prescan") -> None:
        """Add the prescan of another part of the table."""
        self.counts.add(other.counts)
        if self.people is not None and other.people is not None:
            self.people.merge(other.people)
        self.tags += other.tags
        self.marks += other.marks

    def account(self) -> ReleaseAccount:
        """What the release costs; refuses key columns that do not tell rows apart, and a cost above the limits."""
        totals = None if self.people is None else self.people.totals()
        if self.tags:
            tags = np.concatenate(self.tags)
            total = len(tags) if self.plan.keys_are_unique or totals is None else totals[1]
            self.require_distinct(len(distinct(tags)), total)
        return self.plan.account(totals)

    def require_distinct(self, distinct: int, total: int) -> None:
        """Refuse an identity that two rows, or two people, share: they would share their random bits."""
        shared, names = total - distinct, ", ".join(self.plan.identity.columns)
        if shared <= 0:
            return
        if self.plan.identity.per_secret:
            raise InvalidProblem(
                f"{shared} people in {names} are named as others are by some reader of tables (007 as 7 is): they "
                "would share their outputs; give them names that differ in more than that"
            )
        raise InvalidProblem(
            f"the key columns {names} do not tell {shared} rows from others: such rows would share their random bits. "
            "Texts that some reader takes for one number, such as 007 and 7, are the same key. Add a column, or say ",
            Field("repeat"),
            "='same' if each person's secret is to be drawn once",
        )
