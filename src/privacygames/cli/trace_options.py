"""Options shared by the commands that read traces."""

from pathlib import Path
from typing import Annotated

import typer

from privacygames.cli.study_input import QUICK_USERS, USERS

Data = Annotated[Path | None, typer.Option(help="The traces: a file or folder. Without it: synthetic people.")]
Window = Annotated[str | None, typer.Option(help="WEST,SOUTH,EAST,NORTH in degrees.")]
Users = Annotated[
    str | None,
    typer.Option(
        help="How many, the busiest first; or which, separated by commas.",
        show_default=f"{USERS}; quick: {QUICK_USERS}",
    ),
]
Fields = Annotated[
    str | None,
    typer.Option(help="What a table calls its columns: user=NAME,time=NAME,…", show_default="detected by name"),
]
Dates = Annotated[
    str | None, typer.Option(help="day-first or month-first, for dates such as 03/04/2024.", show_default="detected")
]
Jobs = Annotated[int | None, typer.Option(help="Processes.", show_default="one per core")]
Scheduler = Annotated[str | None, typer.Option(help="A Dask scheduler's address: work on its cluster.")]
