"""Printing of commands: tables for people, JSON for programs, a spinner during long work."""

import errno
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privacygames.errors import InvalidProblem
from privacygames.immutable import to_json_value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from privacygames.presentation import Explanation
    from privacygames.progress import ProgressCallback

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def print_json(values: object) -> None:
    """Print values as JSON; ∞ becomes the text "inf", which JSON has no number for."""
    typer.echo(json.dumps(to_json_value(values), indent=2, ensure_ascii=False))


def explained(explanation: "Explanation") -> dict[str, object]:
    """What a report means, for JSON: every finding with its numbers, and all of their sentences."""
    return {"in_words": str(explanation), "findings": [finding.to_dict() for finding in explanation]}


def print_rows(title: str, rows: Iterable[tuple[str, ...]], headings: tuple[str, ...] = ()) -> None:
    """Print a table; without headings it has names and values."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_header=bool(headings))
    lines = list(rows)
    for heading in headings or ("",) * len(lines[0]):
        table.add_column(heading)
    for row in lines:
        table.add_row(*(Text(cell) for cell in row))  # Text: nothing in a file is read as markup
    typer.echo(title)  # a line of its own: as a table's title it would be broken at the table's width
    Console().print(table)


def warn(warnings: Iterable[object]) -> None:
    """Print warnings to standard error, so that they do not get into anybody's data."""
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)


def check_figure_file(path: Path | None) -> None:
    """Raise if a figure cannot be written: its format, its place, or Matplotlib is missing."""
    if path is None:
        return
    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise InvalidProblem("--figure must name a .png, .pdf or .svg file")
    check_writable(path)
    from privacygames.presentation import needed

    needed("matplotlib", what="--figure")


def check_writable(path: Path | None) -> None:
    """Raise if a file cannot be written, before any work is done; missing folders are created later."""
    if path is None:
        return
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
    parent = next(folder for folder in path.resolve().parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, f"nothing can be written in {parent}", str(path))


def write_figure(figure: "Figure", path: Path) -> None:
    """Write a figure, creating its folder if it is missing."""
    from privacygames.atomic_io import open_atomic

    path.parent.mkdir(parents=True, exist_ok=True)
    with open_atomic(path) as file:
        figure.savefig(file, dpi=150, format=path.suffix[1:].lower())


def check_new_file(path: Path, *, force: bool) -> None:
    """Raise if a file exists already, unless it may be replaced, or cannot be written."""
    if path.exists() and not path.is_dir() and not force:
        raise InvalidProblem(f"{path} exists already; pass --force to replace it")
    if not path.resolve().parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {path.resolve().parent}", str(path))
    check_writable(path)


@contextmanager
def working(message: str) -> "Iterator[ProgressCallback]":
    """Show a spinner on a terminal; yields a progress callback that shows the latest message."""
    from rich.console import Console

    with Console(stderr=True).status(message) as status:
        yield lambda now: status.update(f"{message} {now.message}")
