"""``privacygames verify``: re-check a mechanism file."""

from pathlib import Path
from typing import Annotated

import typer

from privacygames.cli.output import Json, print_json, print_rows


def verify(
    file: Annotated[Path, typer.Argument(help="A mechanism file.")],
    as_json: Json = False,
) -> None:
    """Re-check every promise in a mechanism file from nothing but its content; exit status 0 if all hold."""
    from privacygames.mechanism import verify as check

    certificate = check(file)
    if as_json:
        print_json(certificate.to_dict())
    else:
        print_rows(f"{file.name}: every promise holds", certificate.rows())
