"""Traces that come counted already: how often each user was in each cell."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import MappingProxyType

import numpy as np

from privacygames.arrays import IntArray
from privacygames.errors import InvalidProblem, UnreadableFile
from privacygames.spaces import Grid, Outside
from privacygames.traces.readers import check_names, header_of, lines_of, shown, split_line
from privacygames.traces.visits import VisitData


@dataclass(frozen=True, eq=False, repr=False)
class VisitCounts(VisitData):
    """How often each user was in each cell, by the cell's number (along each row from west to east, rows northward)."""

    by_user: Mapping[str, Mapping[int, int]]

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_user", MappingProxyType({user: dict(seen) for user, seen in self.by_user.items()}))
        object.__setattr__(self, "users", tuple(sorted(self.by_user)))

    def __repr__(self) -> str:
        return f"VisitCounts({len(self.users)} users)"

    def counts(self, grid: Grid, user: str, *, outside: Outside = "drop") -> IntArray:  # noqa: ARG002 - no points here
        """How often the user was in each cell, in the order of the grid's labels; a cell beyond them is an error."""
        seen = self.by_user[self.users[self._code(user)]]
        if max(seen, default=0) >= len(grid):
            raise InvalidProblem(f"the counts have cells beyond the {len(grid)} of this grid; use the grid they are of")
        counted = np.zeros(len(grid), dtype=np.int64)
        counted[list(seen)] = list(seen.values())
        return counted


def read_counts(path: str | Path, *, visits: str = "visits") -> VisitCounts:
    """Counts from a CSV file (or .csv.gz) with columns user, cell and visits; others are ignored.

    Nothing is skipped here, since a line stands for many visits: a broken one is an error that says where.

    Args:
        path: the file.
        visits: the column of the counts, where it is called something else.
    """
    if not isinstance(path, str | PathLike):
        raise InvalidProblem("read_counts reads a file: give its path; frames of visits go to traces.read")
    file = Path(path)
    if not file.is_file():
        raise UnreadableFile(file, "there is no such file")
    found: dict[str, dict[int, int]] = {}
    header: list[str] = []
    separator = ","
    for lines in lines_of(file):
        body = list(enumerate(lines.texts, start=lines.first))
        if not header:
            header, separator = header_of(lines)
            places = _places(header, ("user", "cell", visits), file.name)
            body = body[1:]
        for number, line in body:
            if line.strip():
                user, cell, seen = _counted(split_line(line, separator), header, places, f"{file.name}, line {number}")
                if seen:
                    mine = found.setdefault(user, {})
                    mine[cell] = mine.get(cell, 0) + seen
    if not found:
        raise InvalidProblem(f"{file.name} holds no counts")
    return VisitCounts(found)


def _places(header: list[str], wanted: tuple[str, ...], file: str) -> list[int]:
    check_names(header, file)
    for name in wanted:
        if name not in header:
            raise InvalidProblem(f"{file} has no column {name!r}; it has {shown(header)}")
    return [header.index(name) for name in wanted]


def _counted(fields: list[str], header: list[str], places: list[int], where: str) -> tuple[str, int, int]:
    if len(fields) != len(header):
        raise InvalidProblem(f"{where}: {len(fields)} fields, but the first line names {len(header)}")
    user, cell, seen = (fields[place].strip() for place in places)
    if not (user and cell.isdecimal() and seen.isdecimal() and len(cell) < 16 and len(seen) < 16):
        raise InvalidProblem(f"{where}: needs a user, and whole numbers for the cell and the count")
    return user, int(cell), int(seen)
