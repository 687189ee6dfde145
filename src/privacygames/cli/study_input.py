"""The people and settings that the options of ``privacygames study`` and ``replay`` describe."""

import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from privacygames.errors import InvalidProblem

if TYPE_CHECKING:
    from typer import Context

    from privacygames.progress import ProgressCallback
    from privacygames.spaces import Grid
    from privacygames.traces import Visits
    from privacygames_study import Person, Settings

GRID, QUICK_GRID = (20, 15), (8, 6)
"""Columns and rows of the grid, by default and with ``--quick``."""

USERS, QUICK_USERS = 10, 3
"""Number of users, by default and with ``--quick``."""

SIZE = (15.0, 8.0)
"""Width and height in km of the area of counts, by default: the paper's."""

AROUND = 0.04
"""Margin in degrees around the places of habits, on the public lattice: a map must reach some km beyond a home."""

SLOT, CELLS = 600, 10
"""Seconds per time slot, and the least number of cells a person must have visited, by default."""


@dataclass(frozen=True)
class Input:
    """The options of the command line that describe the people."""

    data: Path | None
    format: str | None
    window: tuple[float, ...] | None
    size: tuple[float | None, float | None]
    users: str | None
    cells: int | None
    grid: tuple[int | None, int | None]
    slot: int | None
    timezone: str | None
    fields: str | None
    dates: str | None
    name: str | None
    quick: bool
    habits: Path | None = None

    @cached_property
    def kind(self) -> str:
        """The format of the data: the one in ``--format``, or the one detected from the files."""
        from privacygames import traces

        if self.data is None:
            return "synthetic"
        return self.format or traces.detect_format(self.data)

    @property
    def data_name(self) -> str:
        """The name of the data in captions."""
        return self.name or ("synthetic city" if self.data is None else self.data.name.split(".")[0])


def visits_from(
    source: Input, notify: Callable[[str], None], show: "ProgressCallback"
) -> "tuple[Visits, Grid, int | list[str]]":
    """The visits, read or synthetic, with the grid, and the number or the names of the people to take."""
    from privacygames import traces

    _check(source)
    if source.habits is not None:
        visits = traces.read_habits(source.habits)
        west, south, east, north = visits.public_box()
        around = (west - AROUND, south - AROUND, east + AROUND, north + AROUND)
        grid = _grid(replace(source, window=source.window or around))
        if not visits.counts(grid, visits.users[0]).any():
            raise InvalidProblem("neither home nor habits are inside --window WEST,SOUTH,EAST,NORTH")
        return visits, grid, list(visits.users)
    wanted, grid = _users(source), _grid(source)
    if source.data is None:
        if not isinstance(wanted, int):
            raise InvalidProblem("--users must be a number for synthetic people; names go with --data")
        return traces.synthetic(wanted, window=grid.box or traces.SYNTHETIC_WINDOW), grid, wanted
    if source.window is None:
        raise InvalidProblem("--data needs --window WEST,SOUTH,EAST,NORTH, the area to study")
    visits = traces.read(
        source.data,
        format=source.kind,
        window=grid.box,
        slot=SLOT if source.slot is None else source.slot or None,
        timezone=source.timezone or "UTC",
        columns=None if source.fields is None else _pairs(source.fields),
        dates=source.dates,  # type: ignore[arg-type]  # read checks it
        users=None if isinstance(wanted, int) else wanted,
        progress=show,
    )
    notify(f"Read {visits}.")
    return visits, grid, wanted


def people_from(source: Input, notify: Callable[[str], None], show: "ProgressCallback") -> "list[Person]":
    """The people, read or synthetic; ``notify`` gets a sentence on what was read and skipped."""
    from privacygames import traces
    from privacygames_study import select_people

    cells = CELLS if source.cells is None else source.cells
    if source.data is not None and source.kind == "counts":
        _check(source)
        return select_people(traces.read_counts(source.data), _grid(source), _users(source), cells=cells)
    visits, grid, wanted = visits_from(source, notify, show)
    return select_people(visits, grid, wanted, cells=1 if source.data is None else cells)


def settings_from(only: str | None, epsilons: str | None, *, quick: bool) -> "Settings":
    """The paper's settings, or the coarse ones, with the options applied."""
    from privacygames_study import PARTS, QUICK, Settings

    settings = QUICK if quick else Settings()
    if epsilons is not None:
        settings = replace(settings, epsilons=numbers("--epsilons", epsilons))
    if only is not None:
        selected = _listed(only)
        unknown = [part for part in selected if part not in PARTS]
        if unknown or not selected:
            raise InvalidProblem(f"--only takes {', '.join(PARTS)}, separated by commas; got {only!r}")
        settings = replace(settings, parts=tuple(part for part in PARTS if part in selected))
    return settings


def command_line(context: "Context") -> str:
    """The command line as a manifest records it, with placeholders for people, files and addresses."""
    hidden = {"data": "DATA", "out": "OUT", "scheduler": "ADDRESS"}
    options = []
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[option.name or ""]
        text = hidden.get(option.name or "", str(value))
        if option.name == "users" and not text.strip().isdecimal():
            text = ",".join(["NAME"] * len(_listed(text)))
        options.append(option.opts[0] if value is True else f"{option.opts[0]} {shlex.quote(text)}")
    return " ".join(["privacygames", str(context.info_name), *options])


def numbers(option: str, text: str) -> tuple[float, ...]:
    """Numbers separated by commas."""
    try:
        return tuple(float(each) for each in _listed(text))
    except ValueError:
        raise InvalidProblem(f"{option} takes numbers separated by commas; got {text!r}") from None


def _check(source: Input) -> None:
    """Refuse options that would have no effect, because the user expects one."""
    if source.habits is not None and (source.data is not None or source.users is not None):
        other = "--data" if source.data is not None else "--users"
        raise InvalidProblem(f"--habits describes one person, whose days are invented: leave {other} out")
    if source.data is None and source.format is not None:
        raise InvalidProblem("--format says how to read --data, which is missing; without both, people are synthetic")
    if source.size != (None, None) and (source.kind != "counts" or source.window is not None):
        raise InvalidProblem("--width and --height are for counts without --window; a window has a size of its own")
    for option, value in (("fields", source.fields), ("dates", source.dates)):
        if value is not None and source.kind != "table":
            raise InvalidProblem(f"--{option} goes with --format table")
    timed = [name for name, value in (("slot", source.slot), ("timezone", source.timezone)) if value is not None]
    if timed and source.habits is not None:
        raise InvalidProblem(f"--{timed[0]} is for traces; the hours of habits are local ones: leave it out")
    if timed and source.kind in ("synthetic", "counts"):
        raise InvalidProblem(f"--{timed[0]} says how times are read, and this data has none: leave it out")
    if source.cells is not None and (source.data is None or not isinstance(_users(source), int)):
        raise InvalidProblem(
            "--cells selects among the busiest people of --data: it needs --data, and no names in --users"
        )


def _pairs(text: str) -> dict[str, str]:
    pairs = [each.partition("=") for each in _listed(text)]
    if not all(role and equals and name for role, equals, name in pairs):
        raise InvalidProblem(
            f"--fields takes user=NAME,time=NAME,latitude=NAME,longitude=NAME, or some of these; got {text!r}"
        )
    return {role.strip(): name.strip() for role, _, name in pairs}


def _grid(source: Input) -> "Grid":
    from privacygames import traces
    from privacygames.spaces import Grid

    default = QUICK_GRID if source.quick else GRID
    columns, rows = (default[axis] if value is None else value for axis, value in enumerate(source.grid))
    if columns * rows == 1:
        raise InvalidProblem(
            "a grid with one column and one row has one cell, and nothing to hide: raise --columns or --rows"
        )
    if source.kind == "counts" and source.window is None:
        width, height = (SIZE[axis] if value is None else value for axis, value in enumerate(source.size))
        return Grid(columns=columns, rows=rows, width=width, height=height)
    window = traces.SYNTHETIC_WINDOW if source.window is None else source.window
    if len(window) != 4:
        raise InvalidProblem(f"--window takes four numbers, WEST,SOUTH,EAST,NORTH; got {len(window)}")
    west, south, east, north = window
    return Grid.over((west, south, east, north), columns=columns, rows=rows)


def _users(source: Input) -> int | list[str]:
    """The number of users, or their names. A single name that is a number is written with a comma after it."""
    if source.users is None:
        return QUICK_USERS if source.quick else USERS
    wanted = int(source.users) if source.users.strip().isdecimal() else _listed(source.users)
    if not wanted:
        raise InvalidProblem("--users must be 1 or more, or names separated by commas")
    return wanted


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]
