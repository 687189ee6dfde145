"""``privacygames sample``: draw answers."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from privacygames.cli.output import Json, print_json


def sample(
    file: Annotated[Path, typer.Argument(help="A mechanism file.")],
    secret: Annotated[
        str | None,
        typer.Argument(help="The secret. Other users can see it in the process list: prefer standard input."),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Answers per secret.")] = 1,
    as_json: Json = False,
) -> None:
    """Draw a random answer for a secret, with randomness from the operating system.

    Without SECRET, secrets are read from standard input, one a line. Each answer drawn for the same secret tells
    an observer more: the promises hold for one.
    """
    from privacygames.cli.problem_file import find_label
    from privacygames.mechanism.mechanism import load
    from privacygames.spaces import shown

    mechanism = load(file)
    given = [secret] if secret is not None else [line.rstrip("\r\n") for line in sys.stdin]
    secrets = [find_label(mechanism.secrets, text) for text in given if text]
    answers = mechanism.sample([label for label in secrets for _ in range(count)])
    if as_json:
        print_json({"answers": answers})
    else:
        typer.echo("\n".join(shown(answer) for answer in answers))
