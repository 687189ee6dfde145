"""The guard in front of the service: the scope that each request needs, bodies of JSON only, counters and logs."""

from time import monotonic

from privacygames.service.logs import log
from privacygames.service.metrics import Metrics
from privacygames.service.tokens import Tokens
from privacygames.studio import Asgi, Guard, Limits, Message, Receive, Refused, Scope, Send

OPEN = frozenset({"/healthz", "/readyz", "/openapi.json"})
"""Addresses that need no token: they say nothing about anybody."""

NEEDED = {
    ("POST", "releases"): ("release", "release"),
    ("GET", "releases"): ("balance", "stored_release"),
    ("POST", "samples"): ("sample", "sample"),
    ("GET", "balance"): ("balance", "balance"),
    ("PUT", ""): ("people", "put_person"),
    ("DELETE", ""): ("people", "erase_person"),
}
"""The scope that a request needs, and what counters call it, by its method and the part after the person."""


def classified(method: str, path: str) -> tuple[str, str]:
    """The scope that a request needs, and what counters call it; a scope that nobody has for unknown addresses."""
    if path in OPEN:
        return "", "operation"
    if path == "/metrics":
        return "metrics", "operation"
    parts = path.split("/")
    if parts[:3] == ["", "v1", "people"] and len(parts) > 3:
        return NEEDED.get((method, parts[4] if len(parts) > 4 else ""), ("release", "other"))
    return "release", "other"


class ServiceGuard(Guard):
    """Refuses requests without the scope they need, and bodies that are not JSON; counts and logs the others.

    Args:
        app: the application.
        hosts: the names this server may be called by, without the port.
        tokens: the tokens that requests may have.
        limits: limits of the size and duration of bodies.
        metrics: the counters.
        log_requests: whether a line is logged for every request.
    """

    def __init__(
        self,
        app: Asgi,
        *,
        hosts: frozenset[str],
        tokens: Tokens,
        limits: Limits,
        metrics: Metrics,
        log_requests: bool,
    ) -> None:
        super().__init__(app, hosts=hosts, token=None, limits=limits)
        self._tokens, self._metrics, self._log_requests = tokens, metrics, log_requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        started, status = monotonic(), 0
        route = classified(scope["method"], scope["path"])[1]

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        await super().__call__(scope, receive, counted)
        seconds = monotonic() - started
        kind = {2: "2xx", 4: "4xx"}.get(status // 100, "5xx")
        self._metrics.count("privacygames_requests_total", route=route, **{"class": kind})
        if route == "release":
            self._metrics.observe("privacygames_release_seconds", seconds)
        if self._log_requests:
            log("request", route=route, status=status, milliseconds=round(1000 * seconds, 3))

    def authorise(self, scope: Scope, *, local: bool) -> None:
        """Refuse a request without a token that has the scope it needs, and a body that is not JSON."""
        needed, _ = classified(scope["method"], scope["path"])
        if needed and self._tokens.are_needed:
            granted: frozenset[str] = frozenset()

            def is_right(sent: bytes) -> bool:
                nonlocal granted
                granted = self._tokens.scopes(sent)
                return bool(granted)

            self.check_token(is_right, scope, local=local)
            if needed not in granted:
                raise Refused(403, "SCOPE", f"this token does not have the scope {needed!r}")
        headers = {key.lower(): value for key, value in scope["headers"]}
        has_body = headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if has_body and kind != b"application/json":
            raise Refused(415, "MEDIA_TYPE", "send the body as JSON: Content-Type: application/json")
