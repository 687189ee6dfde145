"""A problem straight from somebody's positions: the cells of a grid over them, and how often each was visited."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from privacygames.cli.study_input import GRID, numbers
from privacygames.errors import InvalidProblem

if TYPE_CHECKING:
    from privacygames.problem import Problem
    from privacygames.spaces import Box


def refuse_without_traces(traces: Path | None, asked: dict[str, Any]) -> None:
    """Refuse options that a problem file leaves without effect."""
    if traces is not None:
        raise InvalidProblem("give a problem file or --traces, not both")
    for name, value in asked.items():
        if value is not None:
            raise InvalidProblem(f"--{name} goes with --traces; a problem file says it itself")


def problem_from_traces(path: Path | None, asked: dict[str, Any]) -> "Problem":
    """The problem of one person: prior from visits, Euclidean distance in kilometres."""
    from privacygames import traces
    from privacygames.problem import Problem
    from privacygames.spaces import Grid

    if path is None:
        raise InvalidProblem("give a problem file, or positions with --traces")
    wanted = None if asked["user"] is None else [asked["user"]]
    box = None if asked["window"] is None else _box(numbers("--window", asked["window"]))
    visits = traces.read(path, window=box, users=wanted)
    typer.echo(f"Read {visits}.", err=True)
    if len(visits.users) > 1:
        raise InvalidProblem(f"there are {len(visits.users)} people in {path.name}: say whose mechanism with --user")
    columns, rows = (
        GRID[axis] if asked[name] is None else asked[name] for axis, name in enumerate(("columns", "rows"))
    )
    user = visits.users[0]
    grid = Grid.over(box or visits.public_box(user), columns=columns, rows=rows)
    if len(grid) == 1:
        raise InvalidProblem("with one column and one row there is one cell, and nothing to hide: give more of them")
    outside = len(visits) - int(visits.counts(grid, user).sum())
    if outside:
        typer.echo(f"{outside} visits far away from the others are outside the grid, and left out.", err=True)
    prior = visits.prior(grid, user)
    return Problem(prior, cost=asked["cost"] or "hamming", distance="euclidean")


def _box(edges: tuple[float, ...]) -> "Box":
    from privacygames.spaces import checked_box

    return checked_box(edges, what="window")  # type: ignore[arg-type]  # it says itself how many there must be
