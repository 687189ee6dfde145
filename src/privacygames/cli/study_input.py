"""What ``privacygames study`` is given, turned into people and settings."""

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
USERS, QUICK_USERS = 10, 3
SIZE = (15.0, 8.0)
SLOT, CELLS = 600, 10


@dataclass(frozen=True)
class Input:
    """Where people come from, as asked for on the command line."""

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

    @cached_property
    def kind(self) -> str:
        """How the data is read: as asked for, or as the files tell."""
        from privacygames import traces

        if self.data is None:
            return "synthetic"
        return self.format or traces.detect_format(self.data)

    @property
    def called(self) -> str:
        """What captions call the data."""
        return self.name or ("synthetic city" if self.data is None else self.data.name.split(".")[0])


def visits_from(
    given: Input, tell: Callable[[str], None], show: "ProgressCallback"
) -> "tuple[Visits, Grid, int | list[str]]":
    """Read, or invent, the visits asked for; with the grid, and how many or which people are wanted."""
    from privacygames import traces

    _check(given)
    wanted, grid = _users(given), _grid(given)
    if given.data is None:
        if not isinstance(wanted, int):
            raise InvalidProblem("--users must be a number where people are invented: give --data to name some")
        return traces.synthetic(wanted, window=grid.box or traces.SYNTHETIC_WINDOW), grid, wanted
    if given.window is None:
        raise InvalidProblem("--window WEST,SOUTH,EAST,NORTH is needed with --data: the part of the world to study")
    visits = traces.read(
        given.data,
        format=given.kind,
        window=grid.box,
        slot=SLOT if given.slot is None else given.slot or None,
        timezone=given.timezone or "UTC",
        columns=None if given.fields is None else _pairs(given.fields),
        dates=given.dates,  # type: ignore[arg-type]  # it says itself what it may be
        users=None if isinstance(wanted, int) else wanted,
        progress=show,
    )
    tell(f"Read {visits}.")
    return visits, grid, wanted


def people_from(given: Input, tell: Callable[[str], None], show: "ProgressCallback") -> "list[Person]":
    """Read, or invent, the people asked for; shows how far reading is, and tells what was read and skipped."""
    from privacygames import traces
    from privacygames_study import select_people

    cells = CELLS if given.cells is None else given.cells
    if given.data is not None and given.kind == "counts":
        _check(given)
        return select_people(traces.read_counts(given.data), _grid(given), _users(given), cells=cells)
    visits, grid, wanted = visits_from(given, tell, show)
    return select_people(visits, grid, wanted, cells=1 if given.data is None else cells)


def settings_from(only: str | None, epsilons: str | None, *, quick: bool) -> "Settings":
    """The paper's settings, or the coarse ones, with what was asked for."""
    from privacygames_study import PARTS, QUICK, Settings

    settings = QUICK if quick else Settings()
    if epsilons is not None:
        settings = replace(settings, epsilons=numbers("--epsilons", epsilons))
    if only is not None:
        asked = _listed(only)
        unknown = [part for part in asked if part not in PARTS]
        if unknown or not asked:
            raise InvalidProblem(f"--only takes {', '.join(PARTS)}, separated by commas; got {only!r}")
        settings = replace(settings, parts=tuple(part for part in PARTS if part in asked))
    return settings


def command_asked(context: "Context") -> str:
    """The command as it was given, for a manifest: people, files and addresses are placeholders."""
    hidden = {"data": "DATA", "out": "OUT", "scheduler": "ADDRESS"}
    given = []
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[option.name or ""]
        text = hidden.get(option.name or "", str(value))
        if option.name == "users" and not text.strip().isdecimal():
            text = ",".join(["NAME"] * len(_listed(text)))
        given.append(option.opts[0] if value is True else f"{option.opts[0]} {shlex.quote(text)}")
    return " ".join(["privacygames", str(context.info_name), *given])


def numbers(option: str, text: str) -> tuple[float, ...]:
    """Numbers separated by commas."""
    try:
        return tuple(float(each) for each in _listed(text))
    except ValueError:
        raise InvalidProblem(f"{option} takes numbers separated by commas; got {text!r}") from None


def _check(given: Input) -> None:
    """Refuse options that would have no effect: whoever gave them expects something else."""
    if given.data is None and given.format is not None:
        raise InvalidProblem("--format says how to read --data, which is not given; without both, people are invented")
    if given.size != (None, None) and (given.kind != "counts" or given.window is not None):
        raise InvalidProblem("--width and --height are for counts without --window; else the window has its size")
    for option, value in (("fields", given.fields), ("dates", given.dates)):
        if value is not None and given.kind != "table":
            raise InvalidProblem(f"--{option} goes with --format table")
    timed = [name for name, value in (("slot", given.slot), ("timezone", given.timezone)) if value is not None]
    if timed and given.kind in ("synthetic", "counts"):
        raise InvalidProblem(f"--{timed[0]} says how times are read, and there are none to read: leave it out")
    if given.cells is not None and (given.data is None or not isinstance(_users(given), int)):
        raise InvalidProblem("--cells chooses among the busiest people of --data: leave it out")


def _pairs(text: str) -> dict[str, str]:
    pairs = [each.partition("=") for each in _listed(text)]
    if not all(role and equals and name for role, equals, name in pairs):
        raise InvalidProblem(f"--fields takes user=NAME,time=NAME,latitude=NAME,longitude=NAME or some; got {text!r}")
    return {role.strip(): name.strip() for role, _, name in pairs}


def _grid(given: Input) -> "Grid":
    from privacygames import traces
    from privacygames.spaces import Grid

    usual = QUICK_GRID if given.quick else GRID
    columns, rows = (usual[axis] if asked is None else asked for axis, asked in enumerate(given.grid))
    if columns * rows == 1:
        raise InvalidProblem("with one column and one row there is one cell, and nothing to hide: give more of them")
    if given.kind == "counts" and given.window is None:
        width, height = (SIZE[axis] if asked is None else asked for axis, asked in enumerate(given.size))
        return Grid(columns=columns, rows=rows, width=width, height=height)
    window = traces.SYNTHETIC_WINDOW if given.window is None else given.window
    if len(window) != 4:
        raise InvalidProblem(f"--window takes four numbers, WEST,SOUTH,EAST,NORTH; got {len(window)}")
    west, south, east, north = window
    return Grid.over((west, south, east, north), columns=columns, rows=rows)


def _users(given: Input) -> int | list[str]:
    """A number of users, or their names; a single name is written with a comma after it."""
    if given.users is None:
        return QUICK_USERS if given.quick else USERS
    wanted = int(given.users) if given.users.strip().isdecimal() else _listed(given.users)
    if not wanted:
        raise InvalidProblem("--users must be 1 or more, or names separated by commas")
    return wanted


def _listed(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]
