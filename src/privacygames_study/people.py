"""The people of a study, identified by rank only: no name and no trace is passed on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privacygames.beliefs import Prior
from privacygames.errors import InvalidProblem, UnknownLabel
from privacygames.spaces import Grid
from privacygames.traces import VisitData


@dataclass(frozen=True)
class Person:
    """A person's prior over the cells of a grid.

    Attributes:
        label: "user 1", "user 2", …
        prior: over the cells.
        visits: number of visits it was estimated from.
    """

    label: str
    prior: Prior
    visits: int


def select_people(visited: VisitData, grid: Grid, users: int | Sequence[str], *, cells: int = 1) -> list[Person]:
    """The people of a data set, those with most visits first.

    Args:
        visited: visits or counts.
        grid: the cells.
        users: how many of those with most visits, or which by name.
        cells: leave out people who visited fewer cells than this.

    >>> from privacygames_study import select_people
    >>> city = pg.Grid.over(pg.traces.SYNTHETIC_WINDOW, columns=4, rows=3)
    >>> [person.label for person in select_people(pg.traces.synthetic(2, days=3), city, users=2)]
    ['user 1', 'user 2']
    """
    if isinstance(users, int):
        chosen = visited.busiest(users, grid, cells=cells)
    else:
        unknown = sum(user not in visited.users for user in users)
        if unknown:
            raise UnknownLabel(f"of the {len(users)} users selected, {unknown} have no visit in the data that was read")
        chosen = sorted(dict.fromkeys(users), key=lambda user: -int(visited.counts(grid, user).sum()))
    if not chosen:
        raise InvalidProblem(f"nobody in the data was seen in {cells} cells of the grid or more")
    return [
        Person(f"user {rank}", visited.prior(grid, user), int(visited.counts(grid, user).sum()))
        for rank, user in enumerate(chosen, start=1)
    ]


def coarsen(prior: Prior, *, most: int) -> Prior:
    """A prior over larger cells: blocks of the grid's cells, at most ``most`` of them, as square as possible."""
    grid = prior.space
    if not isinstance(grid, Grid):
        raise InvalidProblem("a coarser prior needs secrets that are the cells of a Grid")
    shapes = [
        (columns, rows)
        for columns in range(1, grid.columns + 1)
        for rows in range(1, grid.rows + 1)
        if grid.columns % columns == 0 and grid.rows % rows == 0 and columns * rows <= most
    ]

    def unfit(shape: tuple[int, int]) -> float:
        elongation = abs(float(np.log(grid.width / shape[0] * shape[1] / grid.height)))
        return elongation - float(np.log(shape[0] * shape[1]))

    columns, rows = min(shapes, key=unfit)
    blocks = prior.probabilities.reshape(rows, grid.rows // rows, columns, grid.columns // columns).sum(axis=(1, 3))
    return Prior(Grid(columns=columns, rows=rows, width=grid.width, height=grid.height), blocks.ravel())


def informed_prior(prior: Prior, strength: float, places: int) -> Prior:
    """The belief of an adversary with more evidence on the most visited places, such as home and work."""
    return prior.sharpen(strength, places=places)
