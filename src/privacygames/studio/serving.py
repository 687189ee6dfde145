"""The server: one process on the loopback address, or on another address with a token."""

import asyncio
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from privacygames.errors import InvalidProblem
from privacygames.studio.http_api import create_app
from privacygames.studio.http_errors import Refused
from privacygames.studio.limits import Limits
from privacygames.studio.security import LOOPBACK, Asgi, response_bytes

if TYPE_CHECKING:
    import uvicorn

LONGEST_HEAD = 16 * 1024
"""Largest bytes of a request's head."""

SHORTEST_TOKEN, LEAST_VARIED = 16, 8
"""Fewest characters, and fewest different characters, of a token that is not easily guessed."""


@dataclass(frozen=True)
class Address:
    """The address of a server.

    Attributes:
        host: an address of this machine.
        port: the port; 0 for a free one.
        names: other names of the server.

    >>> Address("::1", 8642).url
    'http://[::1]:8642/'
    """

    host: str = "127.0.0.1"
    port: int = 8642
    names: tuple[str, ...] = ()

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    @property
    def url(self) -> str:
        """The address for a browser."""
        return f"http://{_bracketed(self.host)}:{self.port}/"

    def allowed(self) -> frozenset[str]:
        """The host names that requests may have."""
        own = set() if self.host in ("0.0.0.0", "::") else {_bracketed(self.host).lower()}  # noqa: S104
        return frozenset(own | {name.lower() for name in self.names} | (LOOPBACK if self.is_loopback else set()))


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def serve(
    address: Address,
    *,
    token: str | None = None,
    limits: Limits | None = None,
    page: bool = True,
    ledgers: Path | None = None,
    ready: Callable[[Address], None] = lambda _: None,
) -> None:
    """Serve until Ctrl-C.

    Args:
        address: the address to listen on.
        token: the token that requests to the API need; required everywhere but on loopback.
        limits: limits of the server.
        page: whether the page is served, too.
        ledgers: the folder of the person's ledgers; None: there are none.
        ready: called with the address (port 0 replaced by the actual one) once requests are served.

    Raises:
        InvalidProblem: no token where one is needed, a token that is easily guessed, or a port in use.
    """
    import uvicorn

    require_safe(address, token, has_tokens=token is not None)
    limits = limits or Limits()
    listener = listener_at(address)
    actual = Address(address.host, listener.getsockname()[1], address.names)
    app = create_app(limits=limits, hosts=actual.allowed(), token=token, page=page, ledgers=ledgers)
    config = server_config(app, limits, keep_alive_seconds=15, grace_seconds=3)

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready(actual)

    with listener:
        Server(config).run(sockets=[listener])


def server_config(
    app: Asgi,
    limits: Limits,
    *,
    keep_alive_seconds: int,
    grace_seconds: int,
    lifespan: Literal["auto", "on"] = "auto",
) -> "uvicorn.Config":
    """The settings of a server that bounds what clients may send and logs nothing of it.

    Args:
        app: the application.
        limits: its limits.
        keep_alive_seconds: how long a connection may stay open without a request.
        grace_seconds: how long requests may go on when it stops.
        lifespan: "on" where the server must not start if the application cannot.
    """
    import uvicorn

    return uvicorn.Config(
        app,
        http=bounded_protocol(limits.body_seconds, limits.connections),
        ws="none",
        access_log=False,  # addresses of clients are private
        log_level="error",  # not what clients send
        server_header=False,
        h11_max_incomplete_event_size=LONGEST_HEAD,
        timeout_keep_alive=keep_alive_seconds,
        timeout_graceful_shutdown=grace_seconds,
        lifespan=lifespan,
    )


def require_safe(address: Address, token: str | None, *, has_tokens: bool) -> None:
    """Refuse to serve other machines without a token, every address without a name, and a token that is guessed.

    Args:
        address: the address to listen on.
        token: the token in the environment, if any.
        has_tokens: whether requests need a token.
    """
    if not has_tokens and not address.is_loopback:
        raise InvalidProblem(
            f"{address.host} can be reached from other machines: set a token in the environment variable "
            "PRIVACYGAMES_TOKEN, or use 127.0.0.1"
        )
    if not address.allowed():
        raise InvalidProblem(f"{address.host} is every address of this machine: give the server's name with --name")
    if token is not None:
        check_token_strength(token)


def check_token_strength(token: str) -> None:
    """Refuse a token that is easily guessed."""
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise InvalidProblem(f"the token must be {SHORTEST_TOKEN} or more printable ASCII characters")
    if len(set(token)) < LEAST_VARIED:
        raise InvalidProblem(f"the token must have {LEAST_VARIED} or more different characters: choose it at random")


def listener_at(address: Address) -> socket.socket:
    """A socket that is bound to an address."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # With the protocol named, asyncio sends small responses at once instead of waiting for more data.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
    except (OSError, OverflowError) as error:
        listener.close()
        reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "not possible"
        raise InvalidProblem(
            f"cannot listen at {address.host} port {address.port} ({reason.lower()}): choose another --port, or 0"
        ) from None
    return listener


def bounded_protocol(seconds: float, connections: int) -> Any:
    """Uvicorn's protocol with limits; the original waits for ever for the head of a request and refuses in plain text.

    This one has a time limit and a limit of connections, and refuses in the one shape of an error.
    """
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class BoundedProtocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._begin()
            if len(self.connections) > connections:
                self._refuse(Refused(503, "BUSY", "too many connections are open: try again in a while"))

        def data_received(self, data: bytes) -> None:
            if self.cycle is not None and self.cycle.response_complete:
                self._begin()
            if not self.transport.is_closing():
                super().data_received(data)

        def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's message says less
            self._refuse(Refused(400, "REFUSED", "what was sent is not a request of HTTP/1.1"))

        def _refuse(self, refusal: Refused) -> None:
            self.transport.write(response_bytes(refusal))
            self.transport.close()

        def _begin(self) -> None:
            before = self.cycle
            asyncio.get_running_loop().call_later(seconds, self._check, before)

        def _check(self, before: object) -> None:
            if self.cycle is before and not self.transport.is_closing():
                self.transport.close()

    return BoundedProtocol
