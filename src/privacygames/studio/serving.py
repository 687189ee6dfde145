"""Serving: one process on this machine's loopback address, unless a token says who may ask from elsewhere."""

import asyncio
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from privacygames.errors import InvalidProblem
from privacygames.studio.http_api import create_app
from privacygames.studio.http_errors import Refused
from privacygames.studio.limits import Limits
from privacygames.studio.security import LOOPBACK, written_out

LONGEST_HEAD = 16 * 1024
SHORTEST_TOKEN, LEAST_VARIED = 16, 8


@dataclass(frozen=True)
class Address:
    """Where a server listens: ``host`` is an address of this machine, ``names`` what else it may be called."""

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
        """What to type into a browser."""
        return f"http://{_bracketed(self.host)}:{self.port}/"

    def allowed(self) -> frozenset[str]:
        """The names in the Host header that are ours."""
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
    ready: Callable[[Address], None] = lambda _: None,
) -> None:
    """Serve until Ctrl-C.

    Args:
        address: where.
        token: what every request to the API has to bring; needed everywhere but on loopback.
        limits: what is done at most.
        page: whether the page is served, too.
        ready: called with the address (port 0 replaced by the one found) once requests are answered.

    Raises:
        InvalidProblem: no token where one is needed, a token that is easily guessed, or a port that is taken.
    """
    import uvicorn

    if token is None and not address.is_loopback:
        raise InvalidProblem(
            f"{address.host} can be reached from other machines: set a token in the environment variable "
            "PRIVACYGAMES_TOKEN, or keep to 127.0.0.1"
        )
    if not address.allowed():
        raise InvalidProblem(
            f"{address.host} is every address of this machine: say what the server is called with --name"
        )
    if token is not None:
        _check_token(token)
    bounded = limits or Limits()
    listener = _listener(address)
    found = Address(address.host, listener.getsockname()[1], address.names)
    app = create_app(limits=bounded, hosts=found.allowed(), token=token, page=page)
    config = uvicorn.Config(
        app,
        http=_patient(bounded.body_seconds, bounded.connections),
        ws="none",
        access_log=False,  # addresses of requests are nobody's business
        log_level="error",  # not what strangers send
        server_header=False,
        h11_max_incomplete_event_size=LONGEST_HEAD,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=3,
    )

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready(found)

    with listener:
        Server(config).run(sockets=[listener])


def _check_token(token: str) -> None:
    """Refuse a token that is easily guessed."""
    if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable():
        raise InvalidProblem(f"the token must be {SHORTEST_TOKEN} or more printable ASCII characters")
    if len(set(token)) < LEAST_VARIED:
        raise InvalidProblem(f"the token must have {LEAST_VARIED} or more different characters: choose it at random")


def _listener(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # With the protocol named, asyncio sends small answers at once instead of waiting for more to send.
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


def _patient(seconds: float, connections: int) -> Any:
    """Uvicorn's protocol, which waits for ever for the head of a request and refuses in plain text.

    This one waits only so long, takes only so many connections, and refuses in the one shape of an error.
    """
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Patient(H11Protocol):
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

        def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words, which say less
            self._refuse(Refused(400, "REFUSED", "what was sent is not a request of HTTP/1.1"))

        def _refuse(self, refusal: Refused) -> None:
            self.transport.write(written_out(refusal))
            self.transport.close()

        def _begin(self) -> None:
            before = self.cycle
            asyncio.get_running_loop().call_later(seconds, self._check, before)

        def _check(self, before: object) -> None:
            if self.cycle is before and not self.transport.is_closing():
                self.transport.close()

    return Patient
