"""A problem from one person's positions: the cells of a grid over them, and how often each was visited."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from privacygames.cli.study_input import GRID, numbers
from privacygames.errors import InvalidProblem

if TYPE_CHECKING:
    from privacygames.problem import Problem
    from privacygames.spaces import Box


def refuse_without_traces(traces: Path | None, options: dict[str, Any]) -> None:
    """Raise if options were given that have no effect with a problem file."""
    if traces is not None:
        raise InvalidProblem("give a problem file or --traces, not both")
    for name, value in options.items():
        if value is not None:
            raise InvalidProblem(f"--{name} goes with --traces; a problem file has its own")


def problem_from_traces(path: Path | None, options: dict[str, Any]) -> "Problem":
    """The problem of one person: prior from visits, Euclidean distance in kilometres."""
    from privacygames import traces
    from privacygames.problem import Problem
    from privacygames.spaces import Grid

    if path is None:
        raise InvalidProblem("give a problem file, or positions with --traces")
    users = None if options["user"] is None else [options["user"]]
    box = None if options["window"] is None else _box(numbers("--window", options["window"]))
    visits = traces.read(path, window=box, users=users)
    typer.echo(f"Read {visits}.", err=True)
    if len(visits.users) > 1:
        raise InvalidProblem(f"there are {len(visits.users)} people in {path.name}: say whose mechanism with --user")
    columns, rows = (
        GRID[axis] if options[name] is None else options[name] for axis, name in enumerate(("columns", "rows"))
    )
    user = visits.users[0]
    grid = Grid.over(box or visits.public_box(user), columns=columns, rows=rows)
    if len(grid) == 1:
        raise InvalidProblem(
            "a grid with one column and one row has one cell, and nothing to hide: raise --columns or --rows"
        )
    outside = len(visits) - int(visits.counts(grid, user).sum())
    if outside:
        typer.echo(f"{outside} visits far away from the others are outside the grid and are ignored.", err=True)
    prior = visits.prior(grid, user)
    return Problem(prior, cost=options["cost"] or "hamming", distance="euclidean")


def _box(edges: tuple[float, ...]) -> "Box":
    from privacygames.spaces import checked_box

    return checked_box(edges, what="window")  # type: ignore[arg-type]  # checked there
