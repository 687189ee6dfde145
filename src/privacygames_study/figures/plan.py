"""What every figure of a study consists of."""

from collections.abc import Callable
from dataclasses import dataclass

from privacygames.jobs import Table
from privacygames_study.figures.style import Canvas

Tables = dict[str, Table]


@dataclass(frozen=True)
class FigurePlan:
    """One figure: which rows it shows, how they are painted, and what is to be seen in them.

    Attributes:
        name: of its files.
        title: above it in the report.
        table: the table it is made from; without it there is no such figure.
        columns: of the CSV file behind it.
        shows: the caption's first sentence: what is drawn.
        select: the rows behind it; what is painted is what its CSV file holds.
        paint: rows, of which there is at least one, to a figure.
        see: the caption's sentences with numbers, from the same rows.
        own_grid: whether its rows say on which grid they are.
    """

    name: str
    title: str
    table: str
    columns: tuple[str, ...]
    caption: str
    select: Callable[[Tables], Table]
    draw: Callable[[Table], Canvas]
    describe: Callable[[Table], str]
    has_own_grid: bool = False
