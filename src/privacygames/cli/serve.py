"""``privacygames serve`` and ``privacygames studio``: the HTTP API, and the page that uses it."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privacygames.cli.budget_text import BUDGET_FORMS, parse_budget
from privacygames.errors import InvalidProblem

if TYPE_CHECKING:
    from privacygames.studio import Address, Limits

TOKEN = "PRIVACYGAMES_TOKEN"  # noqa: S105 - the name of the variable
PORT = 8642
BYTES_OF_PAIR = 200
"""Memory of a mechanism, its problem and its dual values for each pair of secrets, rounded up."""

Port = Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 finds a free one.")]
Host = Annotated[str, typer.Option(help="The address to listen on; any but loopback needs a token.")]
Names = Annotated[list[str] | None, typer.Option("--name", help="Another name of the server. Repeatable.")]
WorkerCount = Annotated[int, typer.Option(min=1, max=64, help="Designs at a time, each in its own process.")]
ServerCount = Annotated[
    int, typer.Option(min=1, max=64, help="Designs at a time, each in its own process; with --fleet, such that serve.")
]
Queue = Annotated[int, typer.Option(min=1, max=10_000, help="Jobs that may wait; more are refused.")]
Seconds = Annotated[float, typer.Option("--time-limit", min=1, max=86_400, help="Seconds for one job.")]
Secrets = Annotated[int, typer.Option("--most-secrets", min=2, max=5000, help="Secrets of one problem.")]
Memory = Annotated[int, typer.Option(min=256, help="MiB of memory for one job.")]


def serve(
    port: Port = PORT,
    host: Host = "127.0.0.1",
    name: Names = None,
    workers: ServerCount = 1,
    queue: Queue = 16,
    time_limit: Seconds = 120.0,
    most_secrets: Secrets = 400,
    memory: Memory = 4096,
    fleet: Annotated[Path | None, typer.Option(help="Release for the people of this fleet, a folder.")] = None,
    store: Annotated[
        str | None, typer.Option(help="With --fleet: their ledgers, an SQLite file or postgresql://user@host/database.")
    ] = None,
    budget: Annotated[
        list[str] | None, typer.Option(help=f"With --fleet: of each person. {BUDGET_FORMS} Repeatable.")
    ] = None,
    tokens: Annotated[
        Path | None, typer.Option(help="With --fleet: a file of tokens with scopes, of `privacygames store token`.")
    ] = None,
    memo_key: Annotated[
        Path | None,
        typer.Option(help="With --fleet: each secret gets one output, drawn with the key in this file, and keeps it."),
    ] = None,
    place: Annotated[
        float | None, typer.Option(help="With --memo-key and points: the side of the cells that share an output.")
    ] = None,
    when_spent: Annotated[
        str, typer.Option(help="With --fleet and the budget spent: refuse, or repeat the last output.")
    ] = "refuse",
    key_days: Annotated[
        float, typer.Option(min=0.01, help="With --fleet: days that an Idempotency-Key is kept.")
    ] = 7.0,
    log_requests: Annotated[
        bool, typer.Option("--log-requests", help="With --fleet: a line of JSON for each request.")
    ] = False,
) -> None:
    """Serve the HTTP API: design as a job, sample, evaluate, attack, verify, compare; or release for many people.

    Only programs on this machine can reach it, unless --host says otherwise; then every request needs the token in the
    environment variable PRIVACYGAMES_TOKEN, as Authorization: Bearer …. The OpenAPI document is at /api/openapi.json.
    Nothing is logged, and everything is forgotten when it stops (Ctrl-C).

    With --fleet and --store, it releases outputs of the fleet's mechanisms within each person's budgets, with --workers
    processes; the OpenAPI document is at /openapi.json, and SIGTERM ends it once all requests are answered.
    """
    if fleet is not None or store is not None:
        if fleet is None or store is None:
            raise InvalidProblem("--fleet and --store go together: the mechanisms of people, and their ledgers")
        from privacygames.validation import require_choice  # with NumPy, which other commands do not need

        require_choice(when_spent, ("refuse", "repeat"), "--when-spent")
        settings = {
            "fleet": str(fleet),
            "store": store,
            "budgets": tuple(parse_budget(text) for text in budget or ()),
            "memo_key_file": None if memo_key is None else str(memo_key),
            "place": place,
            "when_spent": when_spent,
            "key_seconds": 86_400.0 * key_days,
        }
        _serve_people(settings, (host, port, tuple(name or ())), workers, tokens, log_requests=log_requests)
        return
    if any(each is not None for each in (budget, tokens, memo_key, place)):
        raise InvalidProblem("--budget, --tokens, --memo-key and --place are for a service with --fleet and --store")
    limits = {"workers": workers, "queue": queue, "job_seconds": time_limit, "secrets": most_secrets}
    _run(host, port, tuple(name or ()), _limits(**limits, memory=memory * 2**20), page=False, browser=False)


def studio(
    port: Port = PORT,
    host: Host = "127.0.0.1",
    name: Names = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
    desktop: Annotated[
        bool | None,
        typer.Option(
            "--desktop/--no-desktop",
            help="Only add the studio to the menu of applications, or take it out.",
            show_default=False,
        ),
    ] = None,
    workers: WorkerCount = 1,
    time_limit: Seconds = 120.0,
    most_secrets: Secrets = 400,
) -> None:
    """Open the studio: a page on this machine to see what a mechanism does, choose one, and export it.

    No request leaves the machine, your files stay in memory, and all but the ledgers that you make is forgotten when it
    stops (Ctrl-C).
    """
    if desktop is not None:
        _change_menu(add=desktop)
        return
    limits = _limits(workers=workers, job_seconds=time_limit, secrets=most_secrets)
    _run(host, port, tuple(name or ()), limits, page=True, browser=browser)


def _change_menu(*, add: bool) -> None:
    _studio()
    from privacygames.studio import data_directory, install_entry, remove_entry

    if add:
        typer.echo(f"The studio is in the menu of applications: {install_entry(data_directory())}")
    else:
        removed = remove_entry(data_directory())
        typer.echo("The studio is no longer in the menu." if removed else "The studio was not in the menu.")


def _limits(**changed: float) -> "Limits":
    limits = _studio().Limits  # type: ignore[attr-defined]
    stored_bytes = int(max(limits.kept_bytes, BYTES_OF_PAIR * changed["secrets"] ** 2))  # at least one mechanism fits
    return limits(kept_bytes=stored_bytes, **changed)  # type: ignore[no-any-return]


def _studio() -> object:
    try:
        from privacygames import studio as package
    except ModuleNotFoundError as error:
        raise InvalidProblem(f"the studio needs the library {error.name}: pip install 'privacygames[studio]'") from None
    return package


def _serve_people(
    settings: dict[str, Any],
    listen: tuple[str, int, tuple[str, ...]],
    workers: int,
    tokens: Path | None,
    *,
    log_requests: bool,
) -> None:
    _studio()
    from privacygames.service import ServiceSettings, serve_fleet
    from privacygames.studio import Address

    serve_fleet(
        ServiceSettings(**settings),
        Address(*listen),
        token=os.environ.get(TOKEN) or None,
        tokens_file=None if tokens is None else str(tokens),
        workers=workers,
        log_requests=log_requests,
        ready=lambda address: typer.echo(f"The service is at {address.url} (Ctrl-C stops it)"),
    )


def _run(host: str, port: int, names: tuple[str, ...], limits: "Limits", *, page: bool, browser: bool) -> None:
    from privacygames.studio import Address, default_folder, serve

    def ready(address: "Address") -> None:
        what = "The studio is at" if page else "The API is at"
        typer.echo(f"{what} {address.url} (Ctrl-C stops it)")
        if browser and address.is_loopback:
            import webbrowser

            webbrowser.open(address.url)

    ledgers = default_folder() if page else None
    token = os.environ.get(TOKEN) or None
    serve(Address(host, port, names), token=token, limits=limits, page=page, ledgers=ledgers, ready=ready)
