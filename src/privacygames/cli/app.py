"""The commands, and what their exit status means."""

import io
import json
import sys
from collections.abc import Callable
from functools import wraps
from importlib.metadata import version
from typing import Annotated

import typer

from privacygames.cli import attack, compare, demo, design, evaluate, find, sample, study, verify
from privacygames.errors import PrivacyGamesError, Status

INTERRUPTED = 130
FILE_TROUBLE = 8
EXIT_CODES = {
    Status.INVALID: 3,
    Status.TOO_LARGE: 3,
    Status.INFEASIBLE: 4,
    Status.TIME_LIMIT: 5,
    Status.NUMERICAL: 5,
    Status.WORKERS_DIED: 5,
    Status.BROKEN_PROMISE: 6,
    Status.INVALID_FILE: 7,
    Status.CANCELLED: INTERRUPTED,
}

EPILOG = (
    "Exit status: 0 done, 2 wrong usage, 3 the problem is not valid, 4 no mechanism meets the bounds, "
    "5 the solver failed, 6 a promise is broken, 7 not a readable mechanism file, "
    "8 a file cannot be read or written, 130 interrupted."
)

app = typer.Typer(
    help="Design random answers that protect a secret, at the least cost to the user, and prove it.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def reported(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose errors become one message and an exit status."""

    @wraps(command)
    def run(*given: object, **options: object) -> None:
        try:
            command(*given, **options)
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except OSError as error:
            message = f"{error.filename or 'a file'} cannot be read or written: {error.strerror}"
            _report({"kind": "OSError", "status": "FILE_TROUBLE", "message": message})
            raise typer.Exit(FILE_TROUBLE) from None
        except PrivacyGamesError as error:
            _report(error.to_dict())
            raise typer.Exit(EXIT_CODES[error.status]) from None

    return run


COMMANDS = (
    demo.demo,
    design.design,
    find.find,
    compare.compare,
    sample.sample,
    attack.attack,
    evaluate.evaluate,
    verify.verify,
    study.study,
)

for each in COMMANDS:
    # Unknown options of `sample` are taken for secrets: "-3" is one, and must not be repeated in a message.
    settings = {"ignore_unknown_options": True} if each is sample.sample else {}
    app.command(epilog=EPILOG, context_settings=settings)(reported(each))


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"privacygames {version('privacygames')}")
        raise typer.Exit


@app.callback()
def options(
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Design random answers that protect a secret, at the least cost to the user, and prove it."""


def main() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):  # a terminal that knows no Greek gets question marks, not a traceback
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()


def _report(error: dict[str, object]) -> None:
    if "--json" in sys.argv:
        typer.echo(json.dumps({"error": error}), err=True)
    else:
        typer.echo(f"error: {error['message']}", err=True)
