"""``privacygames replay``: release people's days under several strategies, and compare attacks on the outputs."""

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
    from privacygames.policy_comparison import PolicyComparison
    from privacygames_study.replays import ReplayResult

GRID, QUICK_GRID = (10, 8), (5, 4)
"""Columns and rows of the grid, by default and with ``--quick``."""

BUDGET = 20.0
"""ε per km in every 24 hours, by default."""

REPEATS = 5
"""Number of repetitions with ``--choose``, by default."""

LEFT = "What it leaves: present place named, homes found (≤ 200 m: at most), stays recalled, by the best attacks"
COSTS, LEAVES = (0, 1, 2, 9, 10), (0, 3, 8, 4, 5, 6, 7)
"""Columns of a comparison of policies, in two tables that fit a terminal."""

SHARE_FORMATTED = "answered"
"""The column that is printed as a percentage: the share of requests that got a new output."""

SHOWN = (
    ("way", "strategy"),
    (SHARE_FORMATTED, "new outputs"),
    ("spent_a_day", "ε a day"),
    ("cost", "cost"),
    ("now", "now"),
    ("past", "past"),
    ("home", "home"),
    ("blind", "blind guess"),
)
"""Columns of ``ways.csv`` that are printed, with their headings."""


def replay(
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write to; a replay in it is resumed.")],
    data: Data = None,
    habits: Annotated[
        Path | None,
        typer.Option(help="A TOML file with a home and habits instead of traces: days are invented from it."),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--format", help="geolife, checkins, gpx or table.", show_default="detected"),
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
        int | None,
        typer.Option(min=1, help="Seconds per slot; the first fix in each is a request.", show_default="600"),
    ] = None,
    timezone: Annotated[
        str | None, typer.Option(help="Time zone of days, hours, and times without an offset.", show_default="UTC")
    ] = None,
    fields: Fields = None,
    dates: Dates = None,
    budget: Annotated[float, typer.Option(help="ε per km in every 24 hours, the same for every strategy.")] = BUDGET,
    strategies: Annotated[
        str | None,
        typer.Option(help="noise, independent, adaptive, predictive, memoised; by commas.", show_default="all"),
    ] = None,
    when_spent: Annotated[str, typer.Option(help="repeat, belief or refuse.")] = "repeat",
    learn: Annotated[float, typer.Option(help="Share of each person's days that the model is learned from.")] = 0.5,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, help="Number of repetitions with other random draws.", show_default=f"1; with --choose: {REPEATS}"
        ),
    ] = None,
    choose: Annotated[
        str | None,
        typer.Option(
            help="trips, presence or home: what matters. Compares the policies for weeks of sharing instead, on the "
            "coordinates themselves, attacks home, too, and recommends the cheapest policy that keeps it.",
        ),
    ] = None,
    jobs: Jobs = None,
    scheduler: Scheduler = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few people and large cells.")] = False,
    as_json: Json = False,
) -> None:
    """Release people's days under several strategies at the same daily budget, and attack the outputs.

    With --choose trips, presence or home, which policy to share weeks with: policies.json, policies.csv and a figure.

    Prior and mobility are learned from each person's earlier days; the later ones are released. Writes tables (CSV) and
    figures of spending, cost and the attacks' errors over a day. After an interruption, the same command resumes.
    """
    from privacygames.jobs import executor_for
    from privacygames.policy_comparison import compare_policies
    from privacygames.presentation import needed
    from privacygames_study.replays import STRATEGIES, learn_days, plots
    from privacygames_study.replays import replay as run

    needed("matplotlib", what="a replay's figures")  # checked before the work, which may take an hour
    check_writable(out / "ways.csv")
    if choose is not None:
        _check_choice(choose, {"--strategies": strategies, "--jobs": jobs, "--scheduler": scheduler}, when_spent)
    usual = QUICK_GRID if quick else GRID
    source = Input(
        data=data,
        format=kind,
        window=None if window is None else numbers("--window", window),
        size=(None, None),
        users=users,
        cells=None,
        grid=(columns or usual[0], rows or usual[1]),
        slot=slot,
        timezone=None if data is None and habits is None else timezone,
        fields=fields,
        dates=dates,
        name=None,
        quick=quick,
        habits=habits,
    )
    if data is not None and habits is None and source.kind == "counts":
        raise InvalidProblem("a replay needs visits with times, and counts have none")
    with working("reading …") as show:
        visits, grid, wanted = visits_from(source, lambda message: typer.echo(message, err=True), show)
        if choose is None:
            people = learn_days(visits, grid, wanted, learn=learn, timezone=timezone or "UTC")
    if choose is not None:
        with progress_bar("comparing policies") as tick:
            compared = compare_policies(
                visits,
                grid,
                wanted,
                budget=budget,
                matters=choose,  # type: ignore[arg-type]  # compare_policies checks it
                learn=learn,
                timezone=timezone or "UTC",
                repeats=seeds or REPEATS,
                progress=tick,
            )
        _write_policies(compared, out, as_json)
        return
    out.mkdir(parents=True, exist_ok=True)
    chosen = tuple(STRATEGIES) if strategies is None else tuple(name.strip() for name in strategies.split(","))
    try:
        with progress_bar("replaying") as tick:
            result = run(
                people,
                budget=budget,
                strategies=chosen,
                when_spent=when_spent,  # type: ignore[arg-type]  # replay checks it
                seeds=seeds or 1,
                folder=out,
                workers=executor_for(jobs, scheduler),
                progress=tick,
            )
    except KeyboardInterrupt:
        typer.echo(f"Finished work is stored in {out}; run the same command again to resume.", err=True)
        raise
    result.write(out)
    if result.strategies:
        write_figure(plots.day(result), out / "day.png")
    if result.homes:
        write_figure(plots.homes(result), out / "home.png")
    else:
        (out / "home.png").unlink(missing_ok=True)  # left by an earlier replay
        typer.echo(
            "Nobody has enough requests at night for the averaging attack: no figure of homes was drawn.", err=True
        )
    _print(result, out, as_json)


def _check_choice(matters: str, unused: dict[str, object], when_spent: str) -> None:
    """Refuse a wrong choice before anything is read, and options that would have no effect."""
    from privacygames.policy_comparison import MATTERS

    if matters not in MATTERS:
        raise InvalidProblem(f"--choose takes {', '.join(MATTERS)}; got {matters[:40]!r}")
    if when_spent != "repeat":
        raise InvalidProblem("--choose repeats the last output where the budget is spent: leave --when-spent out")
    given = [option for option, value in unused.items() if value is not None]
    if given:
        raise InvalidProblem(f"{given[0]} goes with replays of strategies; --choose compares all policies, in seconds")


def _write_policies(compared: "PolicyComparison", out: Path, as_json: bool) -> None:
    """Write the comparison of policies, and print it. There are no positions in it, no times and no names."""
    import json

    from privacygames import plots
    from privacygames.atomic_io import open_atomic
    from privacygames.immutable import to_json_value
    from privacygames.jobs import write_table
    from privacygames.policy_comparison import REPLAYED_NOISE

    out.mkdir(parents=True, exist_ok=True)
    values = compared.to_dict()
    with open_atomic(out / "policies.json") as file:
        file.write((json.dumps(to_json_value(values), indent=1, ensure_ascii=False) + "\n").encode())
    records = [{**row, **{name: " ".join(row[name]) for name in ("keeps", "undecided")}} for row in values["rows"]]
    write_table(out / "policies.csv", records, tuple(records[0]))
    write_figure(plots.policies(compared), out / "policies.png")
    if as_json:
        print_json(values)
        return
    table = [compared.headings, *compared.cells()]
    for title, columns in (
        (f"What it costs: means over people. Tables and a figure are in {out}", COSTS),
        (LEFT, LEAVES),
    ):
        headings, *rows = [tuple(row[column] for column in columns) for row in table]
        print_rows(title, rows, headings)
    known = f"the present place named {compared.habits_known:.0%} of the time"
    typer.echo(f"Without any output: {compared.habits_error:.0f} m off, {known}.\n{REPLAYED_NOISE}\n{compared.reason}")


def _print(result: "ReplayResult", out: Path, as_json: bool) -> None:
    if as_json:
        print_json(result.to_dict())
        return
    if not result.strategies:
        raise InvalidProblem(f"all {result.failed} replays failed")
    headings = tuple(heading for _, heading in SHOWN)
    title = f"Means over people; cost and errors of attacks in km. Tables and figures are in {out}"
    print_rows(title, [tuple(_cell(row, name) for name, _ in SHOWN) for row in result.strategies], headings)
    if result.failed:
        typer.echo(f"warning: {result.failed} replays failed", err=True)


def _cell(row: "Row", name: str) -> str:
    value = row[name]
    if name == SHARE_FORMATTED and isinstance(value, float):
        return f"{value:.0%}"
    return "" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)
