"""``privacygames serve`` and ``privacygames studio``: the HTTP API, and the page that uses it."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

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
Queue = Annotated[int, typer.Option(min=1, max=10_000, help="Jobs that may wait; more are refused.")]
Seconds = Annotated[float, typer.Option("--time-limit", min=1, max=86_400, help="Seconds for one job.")]
Secrets = Annotated[int, typer.Option("--most-secrets", min=2, max=5000, help="Secrets of one problem.")]
Memory = Annotated[int, typer.Option(min=256, help="MiB of memory for one job.")]


def serve(
    port: Port = PORT,
    host: Host = "127.0.0.1",
    name: Names = None,
    workers: WorkerCount = 1,
    queue: Queue = 16,
    time_limit: Seconds = 120.0,
    most_secrets: Secrets = 400,
    memory: Memory = 4096,
) -> None:
    """Serve the HTTP API: design as a job, sample, evaluate, attack, verify, compare.

    Only programs on this machine can reach it, unless --host says otherwise; then every request needs the token in the
    environment variable PRIVACYGAMES_TOKEN, as Authorization: Bearer …. The OpenAPI document is at /api/openapi.json.
    Nothing is logged, and everything is forgotten when it stops (Ctrl-C).
    """
    limits = {"workers": workers, "queue": queue, "job_seconds": time_limit, "secrets": most_secrets}
    _run(host, port, tuple(name or ()), _limits(**limits, memory=memory * 2**20), page=False, browser=False)


def studio(
    port: Port = PORT,
    host: Host = "127.0.0.1",
    name: Names = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
    workers: WorkerCount = 1,
    time_limit: Seconds = 120.0,
    most_secrets: Secrets = 400,
) -> None:
    """Open the studio: a page on this machine to see what a mechanism does, choose one, and export it.

    No request leaves the machine, your files stay in memory, and everything is forgotten when it stops (Ctrl-C).
    """
    limits = _limits(workers=workers, job_seconds=time_limit, secrets=most_secrets)
    _run(host, port, tuple(name or ()), limits, page=True, browser=browser)


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


def _run(host: str, port: int, names: tuple[str, ...], limits: "Limits", *, page: bool, browser: bool) -> None:
    from privacygames.studio import Address, serve

    def ready(address: "Address") -> None:
        what = "The studio is at" if page else "The API is at"
        typer.echo(f"{what} {address.url} (Ctrl-C stops it)")
        if browser and address.is_loopback:
            import webbrowser

            webbrowser.open(address.url)

    serve(Address(host, port, names), token=os.environ.get(TOKEN) or None, limits=limits, page=page, ready=ready)
