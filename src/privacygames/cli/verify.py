"""``privacygames verify``: verify the guarantees of a mechanism file."""

from pathlib import Path
from typing import Annotated

import typer

from privacygames.cli.output import Json, print_json, print_rows, working


def verify(
    file: Annotated[
        Path, typer.Argument(help="A mechanism file, also one without prior and cost; or a fleet's folder.")
    ],
    jobs: Annotated[int, typer.Option(min=1, help="Processes, for a fleet.")] = 1,
    as_json: Json = False,
) -> None:
    """Verify every guarantee of a mechanism file from nothing but its content; exit status 0 if all hold.

    The secrets may be cells, labels or points.
    """
    if file.is_dir():
        _verify_fleet(file, jobs, as_json)
        return
    from privacygames.mechanism_files import load_any

    certificate = load_any(file).certificate
    if as_json:
        print_json(certificate.to_dict())
    else:
        print_rows(f"{file.name}: every guarantee holds", certificate.rows())


def _verify_fleet(folder: Path, jobs: int, as_json: bool) -> None:
    from privacygames.fleet import open_fleet

    fleet = open_fleet(folder)
    with working("verifying …") as show:
        people = fleet.verify(jobs=jobs, progress=show)
    if as_json:
        print_json({"people": people})
    else:
        typer.echo(f"{folder.name}: every guarantee of {people} people's mechanisms holds")
