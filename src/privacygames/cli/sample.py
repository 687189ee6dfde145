"""``privacygames sample``: draw answers."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from privacygames.cli.output import Json, print_json


def sample(
    file: Annotated[Path, typer.Argument(help="A mechanism file.")],
    secret: Annotated[
        list[str] | None,
        typer.Argument(help="The secret. Other users can see it in the process list: prefer standard input."),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Answers per secret.")] = 1,
    as_json: Json = False,
) -> None:
    """Draw a random answer for a secret, with randomness from the operating system.

    Without SECRET, secrets are read from standard input, one a line, and answered line by line. Each answer drawn
    for the same secret tells an observer more: the promises hold for one.
    """
    from privacygames.errors import UnknownLabel
    from privacygames.mechanism import load
    from privacygames.spaces import find_label, shown

    mechanism = load(file)
    secrets = []
    for number, text in enumerate(secret or (line.rstrip("\r\n") for line in sys.stdin), start=1):
        try:
            secrets.append(find_label(mechanism.secrets, text))
        except UnknownLabel as error:
            raise UnknownLabel(f"secret {number}: {error}") from None
    answers = mechanism.sample([label for label in secrets for _ in range(count)])
    if as_json:
        print_json({"answers": answers})
    for answer in () if as_json else answers:
        typer.echo(shown(answer))
