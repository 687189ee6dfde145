"""``privacygames replay``: people's days through several ways of sharing, attacked, side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privacygames.cli.output import Json, check_writable, print_json, print_rows, working, write_figure
from privacygames.cli.study import progress_bar
from privacygames.cli.study_input import Input, numbers, visits_from
from privacygames.cli.trace_options import Data, Dates, Fields, Jobs, Scheduler, Users, Window
from privacygames.errors import InvalidProblem

if TYPE_CHECKING:
    from privacygames.jobs import Row
    from privacygames_study.replays import ReplayResult

GRID, QUICK_GRID = (10, 8), (5, 4)
BUDGET = 20.0
SHOWN = (
    ("way", "way"),
    ("answered", "answered"),
    ("spent_a_day", "ε a day"),
    ("cost", "cost"),
    ("now", "now"),
    ("past", "past"),
    ("home", "home"),
    ("blind", "blind guess"),
)


def replay(
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write to; a replay there is gone on with.")],
    data: Data = None,
    kind: Annotated[
        str | None, typer.Option("--format", help="geolife, checkins, gpx or table.", show_default="as the files tell")
    ] = None,
    window: Window = None,
    users: Users = None,
    columns: Annotated[
        int | None, typer.Option(help="Columns of the grid.", show_default=f"{GRID[0]}; quick: {QUICK_GRID[0]}")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(help="Rows of the grid.", show_default=f"{GRID[1]}; quick: {QUICK_GRID[1]}")
    ] = None,
    slot: Annotated[
        int | None, typer.Option(min=1, help="Seconds of which the first fix is a request.", show_default="600")
    ] = None,
    timezone: Annotated[
        str | None, typer.Option(help="Whose days and hours; what times without an offset are in.", show_default="UTC")
    ] = None,
    fields: Fields = None,
    dates: Dates = None,
    budget: Annotated[float, typer.Option(help="ε per km in every 24 hours, the same for every way.")] = BUDGET,
    ways: Annotated[
        str | None,
        typer.Option(help="noise, independent, adaptive, predictive, memoised; by commas.", show_default="all"),
    ] = None,
    when_spent: Annotated[str, typer.Option(help="repeat, belief or refuse.")] = "repeat",
    learn: Annotated[float, typer.Option(help="The share of each person's days that habits are learned from.")] = 0.5,
    seeds: Annotated[int, typer.Option(min=1, help="How often each is repeated with other draws.")] = 1,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few people and large cells.")] = False,
    as_json: Json = False,
) -> None:
    """Share people's days in several ways at the same daily budget, and attack what came out.

    Habits are learned from each person's earlier days; the later ones are shared. Writes tables (CSV) and figures of
    privacy, spending, cost and the attackers' errors over a day. After an interruption, the same command goes on.
    """
    from privacygames.jobs import executor_for
    from privacygames.presentation import needed
    from privacygames_study.replays import STRATEGIES, learn_days, plots
    from privacygames_study.replays import replay as run

    needed("matplotlib", what="a replay's figures")  # before the work, which may take an hour
    check_writable(out / "ways.csv")
    usual = QUICK_GRID if quick else GRID
    given = Input(
        data=data,
        format=kind,
        window=None if window is None else numbers("--window", window),
        size=(None, None),
        users=users,
        cells=None,
        grid=(columns or usual[0], rows or usual[1]),
        slot=slot,
        timezone=timezone if data is not None else None,
        fields=fields,
        dates=dates,
        name=None,
        quick=quick,
    )
    if data is not None and given.kind == "counts":
        raise InvalidProblem("a replay needs visits with times; counts have none")
    with working("reading …") as show:
        visits, grid, wanted = visits_from(given, lambda message: typer.echo(message, err=True), show)
        people = learn_days(visits, grid, wanted, learn=learn, timezone=timezone or "UTC")
    out.mkdir(parents=True, exist_ok=True)
    chosen = tuple(STRATEGIES) if ways is None else tuple(each.strip() for each in ways.split(","))
    try:
        with progress_bar("replaying") as tick:
            made = run(
                people,
                budget=budget,
                ways=chosen,
                when_spent=when_spent,  # type: ignore[arg-type]  # it says itself what it may be
                seeds=seeds,
                folder=out,
                workers=executor_for(jobs, scheduler),
                progress=tick,
            )
    except KeyboardInterrupt:
        typer.echo(f"What is finished is kept in {out}: the same command goes on from there.", err=True)
        raise
    made.write(out)
    if made.ways:
        write_figure(plots.day(made), out / "day.png")
    if made.homes:
        write_figure(plots.homes(made), out / "home.png")
    else:
        (out / "home.png").unlink(missing_ok=True)  # of an earlier replay
        typer.echo("Nobody has enough requests at night to average: there is no figure of home.", err=True)
    _print(made, out, as_json)


def _print(made: "ReplayResult", out: Path, as_json: bool) -> None:
    if as_json:
        print_json(made.to_dict())
        return
    if not made.ways:
        raise InvalidProblem(f"none of the {made.failed} replays could be done")
    headings = tuple(heading for _, heading in SHOWN)
    title = f"Means over people; cost and attackers' errors in km. Tables and figures are in {out}"
    print_rows(title, [tuple(_cell(row, name) for name, _ in SHOWN) for row in made.ways], headings)
    if made.failed:
        typer.echo(f"warning: {made.failed} replays could not be done", err=True)


def _cell(row: "Row", name: str) -> str:
    value = row[name]
    if name == "answered" and isinstance(value, float):
        return f"{value:.0%}"
    return "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)
