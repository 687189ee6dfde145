"""The commands, their exit status, and how errors become messages."""

import io
import json
import os
import signal
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Annotated, get_type_hints

import typer
from typer.models import OptionInfo

from privacygames.cli import (
    apply,
    attack,
    compare,
    demo,
    design,
    device,
    device_page,
    evaluate,
    find,
    ledger,
    release,
    replay,
    sample,
    serve,
    store,
    study,
    verify,
)
from privacygames.cli.help_text import PlainCommand, PlainGroup
from privacygames.errors import PrivacyGamesError, Status, UselessMechanism
from privacygames.version import BIBTEX, VERSION

INTERRUPTED, BROKEN_PIPE = 130, 141  # as shells report SIGINT and SIGPIPE
EXIT_CODES = {
    Status.OPTIMAL: 0,
    Status.INVALID: 3,
    Status.TOO_LARGE: 3,
    Status.INFEASIBLE: 4,
    Status.NUMERICAL: 5,
    Status.WORKERS_DIED: 5,
    Status.GUARANTEE_VIOLATED: 6,
    Status.INVALID_FILE: 7,
    Status.FILE_TROUBLE: 8,
    Status.TIME_LIMIT: 9,
    Status.UNAVAILABLE: 8,
    Status.SPENT: 10,
    Status.CANCELLED: INTERRUPTED,
}

EPILOG = (
    "Exit status: 0 done, 2 wrong usage, 3 the problem is not valid, 4 no mechanism meets the bounds, "
    "5 the solver failed, 6 a guarantee does not hold, 7 not a readable mechanism file, "
    "8 a file or a database cannot be read or written, 9 stopped by the time limit, 10 the budget is spent, "
    "130 interrupted."
)

app = typer.Typer(
    help="Design random outputs that protect a secret at the least cost to the user, and prove it.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    cls=PlainGroup,
)


def with_exit_status(command: Callable[..., int | None]) -> Callable[..., None]:
    """A command whose errors become a message and an exit status; it may return a status of its own."""

    @wraps(command)
    def run(*arguments: object, **options: object) -> None:
        try:
            _catch_interrupts()
            status = command(*arguments, **options)
            sys.stdout.flush()  # a closed pipe is noticed here, not when the interpreter ends
        except KeyboardInterrupt:
            typer.echo("interrupted", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # the program that read the output has closed it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(BROKEN_PIPE) from None
        except OSError as error:
            message = f"{error.filename or 'a file'} cannot be read or written: {error.strerror}"
            _report({"kind": "OSError", "status": Status.FILE_TROUBLE.name, "message": message})
            raise typer.Exit(EXIT_CODES[Status.FILE_TROUBLE]) from None
        except PrivacyGamesError as error:
            _report(error.to_dict() | {"message": in_options(error, command)})
            raise typer.Exit(EXIT_CODES[error.status]) from None
        if status:
            raise typer.Exit(status)

    return run


def _catch_interrupts() -> None:
    """Turn Ctrl-C into an exception, which :func:`with_exit_status` turns into a message."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def in_options(error: PrivacyGamesError, command: Callable[..., object]) -> str:
    """The message of an error in a command's language: ``--cost-at-most``, not ``cost_at_most``.

    Only parameters that the command has as options are renamed; a field with a location is a key of a file.
    """
    if error.location:
        return str(error)
    names = option_names(command)
    return error.message(lambda field: names.get(field, field))


def option_names(command: Callable[..., object]) -> dict[str, str]:
    """What each parameter of a command is called on the command line."""
    names = {}
    for name, hint in get_type_hints(command, include_extras=True).items():
        for part in getattr(hint, "__metadata__", ()):
            if isinstance(part, OptionInfo):  # in an annotation the first name is where the default used to be
                declared = [text for text in (part.default, *(part.param_decls or ())) if isinstance(text, str)]
                names[name] = declared[0] if declared else f"--{name.replace('_', '-')}"
    return names


COMMANDS = (
    demo.demo,
    design.design,
    find.find,
    compare.compare,
    sample.sample,
    apply.apply,
    attack.attack,
    evaluate.evaluate,
    verify.verify,
    release.release,
    study.study,
    replay.replay,
    serve.serve,
    serve.studio,
)

for command in COMMANDS:
    # An unknown option of these may be a secret, such as "-3", which no message may repeat.
    settings = {"ignore_unknown_options": True} if command in (sample.sample, release.release) else {}
    app.command(epilog=EPILOG, context_settings=settings, cls=PlainCommand)(with_exit_status(command))

ledgers = typer.Typer(
    help="What was released and charged: show it, verify its sums, or plan what a budget buys.",
    epilog=EPILOG,
    no_args_is_help=True,
    cls=PlainGroup,
)
for ledger_command in (ledger.show, ledger.verify, ledger.plan, ledger.correct_clock):
    ledgers.command(epilog=EPILOG, cls=PlainCommand)(with_exit_status(ledger_command))
app.add_typer(ledgers, name="ledger")

devices = typer.Typer(
    help="Files for phones and browsers, which verify and sample them on their own.",
    epilog=EPILOG,
    no_args_is_help=True,
    cls=PlainGroup,
)
for device_command in (device.export, device.verify, device_page.page):
    devices.command(epilog=EPILOG, cls=PlainCommand)(with_exit_status(device_command))
app.add_typer(devices, name="device")

stores = typer.Typer(
    help="The ledgers of many people in one database: show, verify, erase, back up, move.",
    epilog=EPILOG,
    no_args_is_help=True,
    cls=PlainGroup,
)
for store_command in (
    *(store.show, store.verify, store.erase, store.scrub, store.prune, store.backup, store.copy),
    *(store.migrate, store.token, store.key),
):
    stores.command(epilog=EPILOG, cls=PlainCommand)(with_exit_status(store_command))
app.add_typer(stores, name="store")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"privacygames {VERSION}")
        raise typer.Exit


def _print_citation(wanted: bool) -> None:
    if wanted:
        typer.echo(BIBTEX.strip())
        raise typer.Exit


@app.callback()
def options(
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
    show_citation: Annotated[
        bool, typer.Option("--cite", help="Print how to cite, as BibTeX.", callback=_print_citation, is_eager=True)
    ] = False,
) -> None:
    """Design random outputs that protect a secret at the least cost to the user, and prove it."""


def run() -> None:
    """Run the command of the command line."""
    for stream in (sys.stdout, sys.stderr):  # a terminal without Greek letters gets question marks, not a traceback
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if sys.stdout is None:  # closed by the parent process
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    warnings.simplefilter("ignore", UselessMechanism)  # commands print it as a warning
    app()


def _report(error: dict[str, object]) -> None:
    if "--json" in sys.argv:
        typer.echo(json.dumps({"error": error}), err=True)
    else:
        typer.echo(f"error: {error['message']}", err=True)
