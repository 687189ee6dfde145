"""The guard in front of the application: whose requests are served, how large they may be, and response headers."""

import asyncio
import hmac
import json
import sys
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from privacygames.studio.http_errors import Refused, error_body
from privacygames.studio.limits import Limits
from privacygames.studio.token_throttle import TokenThrottle, is_loopback

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
FILE_ROUTES = ("/api/traces", "/api/files", "/api/verify")
"""Routes whose bodies are files, not JSON."""

MOST_BODIES = 4
"""Bodies of the largest size that may arrive at a time: this bounds the memory they take."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:{images}; connect-src 'self'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)
"""The content-security policy, with a place for the one tile server that a user has allowed."""

HEADERS = {
    "content-security-policy": POLICY.format(images=""),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "geolocation=(self), camera=(), microphone=()",
    "cache-control": "no-store",
}


class Guard:
    """Refuses requests from other sites' pages, under a rebound host name or without the token; bounds the others.

    Args:
        app: the application.
        hosts: the names this server may be called by, without the port.
        token: the token that requests to the API need, if any.
        limits: limits of the size and duration of bodies.
        image_source: the origin of a tile server whose images the page may show; empty for none.
    """

    def __init__(
        self,
        app: Asgi,
        *,
        hosts: frozenset[str],
        token: str | None,
        limits: Limits,
        image_source: Callable[[], str] = str,
    ) -> None:
        self.app, self.hosts, self.token, self.limits = app, hosts, token, limits
        self._image_source = image_source
        self._reserved_bytes = 0
        self._throttle = TokenThrottle()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                images = self._image_source()
                policy = POLICY.format(images=f" {images}" if images else "")
                headers = HEADERS | {"content-security-policy": policy}
                own = [(name.encode(), value.encode()) for name, value in headers.items()]
                others = [pair for pair in message.get("headers", []) if pair[0].decode().lower() not in HEADERS]
                message["headers"] = [*others, *own]
            await send(message)

        reserved = 0
        try:
            self._admit(scope)
            reserved = self._reserve(scope)
            body = await self._body(receive)
            if body is not None:
                if scope["path"] not in FILE_ROUTES:
                    self._check_values(body)
                await self.app(scope, _replayed(body, receive), send_with_headers)
        except Refused as refusal:
            if not started:
                await _refuse(send_with_headers, refusal)
        except Exception as error:  # its text may contain what was sent, so only its place is noted
            _note(error)
            if not started:
                await _refuse(send_with_headers, Refused(500, "INTERNAL", "an unforeseen error happened"))
        finally:
            self._reserved_bytes -= reserved

    def _admit(self, scope: Scope) -> None:
        hosts = _all(scope, b"host")
        name = hosts[0].lower() if len(hosts) == 1 else ""
        if _without_port(name) not in self.hosts:
            raise Refused(421, "HOST", "this server does not have that name: use the address it printed")
        origins = _all(scope, b"origin")
        if origins and origins != [f"{scope.get('scheme', 'http')}://{name}"]:
            raise Refused(403, "ORIGIN", "pages from elsewhere may not use this server")
        site = _all(scope, b"sec-fetch-site")
        navigation = scope["path"] == "/" and _all(scope, b"sec-fetch-mode") == ["navigate"]
        if site and site[0] not in ("same-origin", "none") and not navigation:
            raise Refused(403, "ORIGIN", "pages from elsewhere may not use this server")
        self.authorise(scope, local=_without_port(name) in LOOPBACK)

    def authorise(self, scope: Scope, *, local: bool) -> None:
        """Refuse a request to the API without the token, where there is one."""
        if self.token is not None and scope["path"].startswith("/api"):
            expected = f"Bearer {self.token}".encode()
            self.check_token(lambda sent: hmac.compare_digest(sent, expected), scope, local=local)

    def check_token(self, is_right: Callable[[bytes], bool], scope: Scope, *, local: bool) -> None:
        """Refuse a wrong token, and after several of them every token of that address for a while.

        All users of this machine share its address. So requests from it under a name of loopback are refused for wrong
        tokens only: nobody can lock out the owner.

        Args:
            is_right: whether a value of the header Authorization is right.
            scope: the request.
            local: whether the server is called by a name of loopback.
        """
        sent = _all(scope, b"authorization")
        right = len(sent) == 1 and is_right(sent[0].encode("latin-1"))
        address = str((scope.get("client") or ("", 0))[0])
        if right and local and is_loopback(address):
            return
        wait = self._throttle.wait(address)
        if wait:
            message = f"too many wrong tokens came from this address: try again in {wait} seconds"
            raise Refused(429, "TOKEN_WAIT", message, retry_after=wait)
        if not right:
            if sent:  # a browser without a token has not guessed
                self._throttle.count(address)
            raise Refused(401, "TOKEN", "a token is needed: the header Authorization: Bearer …")

    def _reserve(self, scope: Scope) -> int:
        """Reserve the announced size of the body, or the largest size where none is announced; returns it."""
        lengths = _all(scope, b"content-length")
        if not lengths and not _all(scope, b"transfer-encoding"):
            return 0
        announced = int(lengths[0]) if lengths and lengths[0].isdecimal() and len(lengths[0]) < 16 else None
        if announced is not None and announced > self.limits.body:
            raise self._too_large()
        size = self.limits.body if announced is None else announced
        if self._reserved_bytes + size > MOST_BODIES * self.limits.body:
            raise Refused(503, "BUSY", "too much is being sent at once: try again in a while")
        self._reserved_bytes += size
        return size

    async def _body(self, receive: Receive) -> bytes | None:
        """The whole body; None if the client has disconnected."""
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                return await self._collected(receive)
        except TimeoutError:
            seconds = f"{self.limits.body_seconds:g}"
            raise Refused(408, "SLOW", f"the request took longer than {seconds} seconds to arrive") from None

    async def _collected(self, receive: Receive) -> bytes | None:
        parts: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.limits.body:
                raise self._too_large()
            if not message.get("more_body"):
                return b"".join(parts)

    def _check_values(self, body: bytes) -> None:
        """Refuse JSON that would take too much memory once it is parsed."""
        if len(body) > self.limits.document:
            raise Refused(413, "TOO_LARGE", f"a request in JSON may have at most {self.limits.document} bytes")
        if sum(body.count(sign) for sign in (b",", b"[", b"{")) > self.limits.values:
            raise Refused(413, "TOO_LARGE", f"a request in JSON may have at most {self.limits.values} values")

    def _too_large(self) -> Refused:
        return Refused(413, "TOO_LARGE", f"a request may have at most {self.limits.body} bytes")


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A receive function that returns a body that was read already."""
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


def _all(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdecimal() else host


async def _refuse(send: Send, refusal: Refused) -> None:
    body = json.dumps(error_body(refusal)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(b"connection", b"close")]  # the rest of the body is not read
    if refusal.code == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if refusal.code in (429, 503):
        headers.append((b"retry-after", str(refusal.retry_after).encode()))
    await send({"type": "http.response.start", "status": refusal.code, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def response_bytes(refusal: Refused) -> bytes:
    """A refusal as the bytes of an HTTP response, for what never becomes a request."""
    body = json.dumps(error_body(refusal)).encode()
    headers = {"content-type": "application/json", "content-length": str(len(body)), "connection": "close"} | HEADERS
    lines = [f"HTTP/1.1 {refusal.code} {HTTPStatus(refusal.code).phrase}", *(f"{k}: {v}" for k, v in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _note(error: Exception) -> None:
    """Print the place of an unforeseen error, without its text."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "an unknown place"
    print(f"privacygames: {type(error).__name__} at {place}", file=sys.stderr)
