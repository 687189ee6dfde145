"""``privacygames study``: the paper's evaluation on any traces, resumable, with claims, figures and a report."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privacygames.cli.device_option import Device, use_device_option
from privacygames.cli.output import Json, check_writable, print_json, print_rows, working
from privacygames.cli.study_input import (
    GRID,
    QUICK_GRID,
    SIZE,
    Input,
    command_line,
    numbers,
    people_from,
    settings_from,
)
from privacygames.cli.trace_options import Data, Dates, Fields, Jobs, Scheduler, Users, Window

if TYPE_CHECKING:
    from privacygames.progress import ProgressCallback
    from privacygames_study import Study

SPEED_WINDOW = 3600.0
"""Seconds over which the speed is averaged to estimate the time left; one design may take many minutes."""


def study(
    context: typer.Context,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write to; a study in it is resumed.")],
    data: Data = None,
    kind: Annotated[
        str | None,
        typer.Option("--format", help="geolife, checkins, gpx, table or counts.", show_default="detected"),
    ] = None,
    window: Window = None,
    width: Annotated[
        float | None, typer.Option(help="In km, for counts with no window.", show_default=f"{SIZE[0]:g}")
    ] = None,
    height: Annotated[
        float | None, typer.Option(help="In km, for counts with no window.", show_default=f"{SIZE[1]:g}")
    ] = None,
    users: Users = None,
    cells: Annotated[
        int | None, typer.Option(min=1, help="Least number of cells a person must have visited.", show_default="10")
    ] = None,
    columns: Annotated[
        int | None, typer.Option(help="Columns of the grid.", show_default=f"{GRID[0]}; quick: {QUICK_GRID[0]}")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="Rows of the grid.", show_default=f"{GRID[1]}; quick: {QUICK_GRID[1]}")
    ] = None,
    slot: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Seconds per slot; the first fix in each is a visit. 0: every row is a visit.",
            show_default="600",
        ),
    ] = None,
    timezone: Annotated[
        str | None, typer.Option(help="Time zone of times without an offset.", show_default="UTC")
    ] = None,
    fields: Fields = None,
    dates: Dates = None,
    epsilons: Annotated[str | None, typer.Option(help="Scenario 1's, per km, separated by commas.")] = None,
    only: Annotated[str | None, typer.Option(help="Parts, separated by commas.", show_default="all")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the data in captions.")] = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    device: Device = None,
    quick: Annotated[bool, typer.Option("--quick", help="Coarse settings: a run of a minute.")] = False,
    as_json: Json = False,
) -> None:
    """Repeat the paper's evaluation: tables, figures, and each claim checked.

    Parts: scenario-1, scenario-2, scenario-3, prior, approximation, robust. Finished designs are stored in the
    folder; after an interruption, run the same command again to resume.
    """
    from privacygames.presentation import needed
    from privacygames_study import data_digest, executor_for, publish, run

    for library in ("matplotlib", "jinja2"):  # checked before the work, which may take an hour
        needed(library, what="a study's report")
    check_writable(out / "report.html")
    use_device_option(device)
    settings = settings_from(only, epsilons, quick=quick)
    source = Input(
        data=data,
        format=kind,
        window=None if window is None else numbers("--window", window),
        size=(width, height),
        users=users,
        cells=cells,
        grid=(columns, rows),
        slot=slot,
        timezone=timezone,
        fields=fields,
        dates=dates,
        name=name,
        quick=quick,
    )
    with working("reading …") as show:
        people = people_from(source, lambda message: typer.echo(message, err=True), show)
    workers = executor_for(jobs, scheduler)
    out.mkdir(parents=True, exist_ok=True)
    try:
        with progress_bar() as tick:
            result = run(
                people,
                settings,
                out,
                data=source.data_name,
                read_as=source.kind,
                quick=quick,
                command=command_line(context),
                digest=None if data is None else data_digest(data),
                workers=workers,
                progress=tick,
            )
    except KeyboardInterrupt:
        typer.echo(f"Finished work is stored in {out}; run the same command again to resume.", err=True)
        raise
    with working("drawing figures …"):
        report = publish(result, out)
    _print(result, report, as_json)


@contextmanager
def progress_bar(doing: str = "designing") -> "Iterator[ProgressCallback]":
    """A progress bar with the time left, on a terminal only; yields a progress callback."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    left = (TextColumn("left"), TimeRemainingColumn())
    columns = (TextColumn(doing), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), *left)
    quiet = not sys.stderr.isatty()
    with Bar(*columns, console=Console(stderr=True), disable=quiet, speed_estimate_period=SPEED_WINDOW) as bar:
        task = bar.add_task(doing, total=None)
        yield lambda now: bar.update(task, completed=now.done, total=now.total)


def _print(result: "Study", report: Path, as_json: bool) -> None:
    manifest = result.manifest
    if as_json:
        print_json({"report": str(report)} | result.to_dict())
        return
    for source, heading in (("paper", "the paper says"), ("ours", "we add")):
        rows = [(str(row["statement"]), str(row["verdict"])) for row in result.claims if row["source"] == source]
        if rows:
            title = f"{manifest.data}: {manifest.users} users, {manifest.columns} × {manifest.rows} cells"
            print_rows(title, rows, headings=(heading, "here it"))
    typer.echo(
        f"{manifest.designs} designs ({result.fresh} of them now, {manifest.failed} failed), "
        f"{manifest.design_seconds:.0f} s of work. "
        f"The report is {report}."
    )
