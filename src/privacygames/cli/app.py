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
from privacygames.errors import (
    BrokenPromise,
    Infeasible,
    InvalidFile,
    InvalidProblem,
    PrivacyGamesError,
    SolveFailed,
)

INTERRUPTED = 130
FILE_TROUBLE = 8
EXIT_CODES: tuple[tuple[type[PrivacyGamesError], int], ...] = (
    (InvalidFile, 7),
    (InvalidProblem, 3),
    (Infeasible, 4),
    (SolveFailed, 5),
    (BrokenPromise, 6),
)

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
            _report("OSError", f"{error.filename or 'a file'} cannot be read or written: {error.strerror}")
            raise typer.Exit(FILE_TROUBLE) from None
        except PrivacyGamesError as error:
            limit = {"limit": error.limit} if isinstance(error, Infeasible) else {}
            _report(type(error).__name__, str(error), **limit)
            raise typer.Exit(next(code for kind, code in EXIT_CODES if isinstance(error, kind))) from None

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


def _report(kind: str, message: str, **more: float) -> None:
    if "--json" in sys.argv:
        typer.echo(json.dumps({"error": {"kind": kind, "message": message, **more}}), err=True)
    else:
        typer.echo(f"error: {message}", err=True)
