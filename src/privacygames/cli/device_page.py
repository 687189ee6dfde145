"""``privacygames device page``: a static page for a phone, which draws protected positions offline."""

from pathlib import Path
from typing import Annotated

import typer

from privacygames.cli.output import Json, print_json, print_rows

Source = Annotated[Path, typer.Argument(help="A mechanism file for positions: cells or points over degrees.")]
Out = Annotated[Path, typer.Option("--out", help="The folder to write; new, or one that this command wrote.")]
Name = Annotated[str | None, typer.Option("--name", help="The mechanism's name on the page; the file's by default.")]
Answers = Annotated[int, typer.Option("--answers", min=1, max=960, help="New positions within a day.")]
Repeat = Annotated[int, typer.Option("--repeat", min=1, max=1440, help="Minutes for which it gives the same position.")]


def page(
    file: Source,
    out: Out,
    name: Name = None,
    answers: Answers = 6,
    repeat: Repeat = 60,
    as_json: Json = False,
) -> None:
    """Write a static page that takes a phone's position and gives a protected one to copy or share.

    Put the folder on any web server with https, open it on the phone and add it to the home screen: from then on it
    works offline and asks no host but its own. It verifies the mechanism itself, and charges each position to a budget
    before it shows it. A mechanism that says "private" has weights that show which places are frequent: put such a
    folder where only its owner can read it.
    """
    from privacygames.device import write_page

    written = write_page(out, file, name=name or file.stem, answers=answers, repeat=repeat)
    rows = {"folder": str(out), "files": written.files, "bytes": written.size, "disclosure": written.disclosure.value}
    if as_json:
        print_json(rows | {"version": written.version})
    else:
        print_rows(f"{out.name}: {written.files} files", [(key, str(value)) for key, value in rows.items()][2:])
