"""Traces that are counted already: the number of visits of each user to each cell."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import MappingProxyType

import numpy as np

from privacygames.arrays import IntArray
from privacygames.csv_reader import CsvFile, expansion_limit
from privacygames.errors import InvalidProblem, UnreadableFile
from privacygames.spaces import Grid, Outside
from privacygames.traces.readers import list_names, require_names
from privacygames.traces.visits import VisitData

MAX_DIGITS = 15
"""Decimal digits of a cell or count: more would not fit 64 bits."""


@dataclass(frozen=True, eq=False, repr=False)
class VisitCounts(VisitData):
    """The number of visits of each user to each cell.

    Attributes:
        by_user: counts by the user's name and the cell's number (along each row from west to east, rows northward).

    >>> counts = pg.traces.VisitCounts({"ann": {0: 3, 1: 1}})
    >>> counts.prior(pg.Grid(2, 1), "ann").probabilities.tolist()
    [0.75, 0.25]
    """

    by_user: Mapping[str, Mapping[int, int]]

    def __post_init__(self) -> None:
        by_user = {user: dict(counts) for user, counts in self.by_user.items()}
        object.__setattr__(self, "by_user", MappingProxyType(by_user))
        object.__setattr__(self, "users", tuple(sorted(self.by_user)))

    def __repr__(self) -> str:
        return f"VisitCounts({len(self.users)} users)"

    def counts(self, grid: Grid, user: str, *, outside: Outside = "drop") -> IntArray:  # noqa: ARG002 - no points here
        """The user's visits to each cell, in the order of the grid's labels; a cell beyond them is an error."""
        by_cell = self.by_user[self.users[self._code(user)]]
        if max(by_cell, default=0) >= len(grid):
            raise InvalidProblem(f"the counts have cells beyond the {len(grid)} of this grid; use the grid they are of")
        counts = np.zeros(len(grid), dtype=np.int64)
        counts[list(by_cell)] = list(by_cell.values())
        return counts


def read_counts(path: str | Path, *, visits: str = "visits") -> VisitCounts:
    r"""Read counts from a CSV file (or .csv.gz) with columns user, cell and visits; other columns are ignored.

    Nothing is skipped, since a line stands for many visits: a broken one is an error that names the line.

    Args:
        path: the file.
        visits: the name of the column of the counts.

    >>> with open("counts.csv", "w") as file:
    ...     _ = file.write("user,cell,visits\nann,0,3\nann,1,1\n")
    >>> pg.traces.read_counts("counts.csv")
    VisitCounts(1 users)
    """
    if not isinstance(path, str | PathLike):
        raise InvalidProblem("read_counts reads a file: give its path; frames of visits go to traces.read")
    file = Path(path)
    if not file.is_file():
        raise UnreadableFile(file, "there is no such file")
    by_user: dict[str, dict[int, int]] = {}
    if file.stat().st_size:
        table = CsvFile(file, max_expanded=expansion_limit(file))
        columns = _columns([name.strip() for name in table.header.names], ("user", "cell", visits), file.name)
        for line, cells in table.rows():
            user, cell, count = (cells[column].strip() for column in columns)
            if not (user and all(text.isdecimal() and len(text) <= MAX_DIGITS for text in (cell, count))):
                raise InvalidProblem(
                    f"{file.name}, line {line}: needs a user, and whole numbers for the cell and the count"
                )
            if int(count):
                by_cell = by_user.setdefault(user, {})
                by_cell[int(cell)] = by_cell.get(int(cell), 0) + int(count)
    if not by_user:
        raise InvalidProblem(f"{file.name} holds no counts")
    return VisitCounts(by_user)


def _columns(names: list[str], wanted: tuple[str, ...], file: str) -> list[int]:
    require_names(names, file)
    for name in wanted:
        if name not in names:
            raise InvalidProblem(f"{file} has no column {name!r}; it has {list_names(names)}")
    return [names.index(name) for name in wanted]
