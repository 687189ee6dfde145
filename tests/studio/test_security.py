"""Attacks on the server: each is refused or survived, and nothing leaks."""

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
from fastapi.testclient import TestClient

from privacygames.errors import InvalidProblem
from privacygames.studio import Address, Limits, serve
from studio_server import AGES, HOME, client, command, described
from waiting import GUARD, wait_until

TOKEN = "a-token-of-enough-characters"


@pytest.fixture(scope="module")
def api() -> Iterator[TestClient]:
    with client(Limits(body=100_000)) as made:
        yield made


def refused(answer: object, code: int, status: str) -> None:
    assert answer.status_code == code, answer.text  # type: ignore[attr-defined]
    assert answer.json()["error"]["status"] == status  # type: ignore[attr-defined]
    assert "default-src 'none'" in answer.headers["content-security-policy"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8642", "127.0.0.1.evil.example", "", "127.0.0.1@evil", "localhost.:80"]
)
def test_names_that_are_not_ours(api: TestClient, host: str) -> None:
    """DNS rebinding: the browser sends the name of the page it was lured to."""
    for path in ("/", "/api/about", "/page/main.js"):
        refused(api.get(path, headers={"host": host}), 421, "HOST")


@pytest.mark.parametrize("host", ["127.0.0.1:8642", "localhost:8642", "[::1]:8642", "LOCALHOST:8642", "localhost"])
def test_names_that_are_ours(api: TestClient, host: str) -> None:
    assert api.get("/api/about", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://127.0.0.1:9999", "https://127.0.0.1:8642", "http://localhost:8642"],
)
def test_pages_from_elsewhere(api: TestClient, origin: str) -> None:
    refused(api.post("/api/problems", json={"document": AGES}, headers={"origin": origin}), 403, "ORIGIN")


def test_our_own_page_may_ask(api: TestClient) -> None:
    headers = {"origin": HOME, "sec-fetch-site": "same-origin"}
    assert api.post("/api/problems", json={"document": AGES}, headers=headers).status_code == 201


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_requests_that_a_foreign_page_makes_without_an_origin(api: TestClient, site: str) -> None:
    """Pictures, scripts and links to us in a page from elsewhere, or from another port of this machine."""
    refused(api.get("/api/about", headers={"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}), 403, "ORIGIN")
    refused(api.get("/api/about", headers={"sec-fetch-site": site, "sec-fetch-mode": "navigate"}), 403, "ORIGIN")
    assert api.get("/", headers={"sec-fetch-site": site, "sec-fetch-mode": "navigate"}).status_code == 200


def test_a_token_is_asked_for_and_not_told() -> None:
    with client(token=TOKEN) as made:
        for headers in (
            {},
            {"authorization": "Bearer wrong"},
            {"authorization": f"Basic {TOKEN}"},
            {"authorization": TOKEN},
        ):
            answer = made.get("/api/about", headers=headers)
            refused(answer, 401, "TOKEN")
            assert TOKEN not in answer.text
        assert made.get("/api/openapi.json").status_code == 401
        assert made.get(f"/api/about?token={TOKEN}").status_code == 401
        assert made.get("/api/about", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert made.get("/").status_code == 200  # the page alone says nothing


def test_other_machines_need_a_token() -> None:
    with pytest.raises(InvalidProblem, match="PRIVACYGAMES_TOKEN"):
        serve(Address("0.0.0.0", 0))
    with pytest.raises(InvalidProblem, match="16 or more"):
        serve(Address("0.0.0.0", 0, ("studio.example",)), token="short")
    with pytest.raises(InvalidProblem, match="--name"):
        serve(Address("0.0.0.0", 0), token=TOKEN)
    assert Address("0.0.0.0", 1, ("studio.example",)).allowed() == {"studio.example"}
    assert not Address("192.168.1.7").is_loopback
    assert Address("::1").is_loopback


def test_huge_bodies(api: TestClient) -> None:
    refused(api.post("/api/problems", content=b"x" * 100_001), 413, "TOO_LARGE")
    refused(api.post("/api/verify", content=(b"x" * 10_000 for _ in range(20))), 413, "TOO_LARGE")  # not announced
    refused(api.request("GET", "/api/about", content=b"x" * 100_001), 413, "TOO_LARGE")
    assert api.get("/api/about").status_code == 200


@pytest.mark.parametrize(
    "body",
    [b"[" * 50_000, b'{"document": ' * 5000, b"\xff\xfe", b"null", b'{"document": {"space": 1e400}}', b"1" * 5000],
)
def test_bodies_that_are_no_request(api: TestClient, body: bytes) -> None:
    answer = api.post("/api/problems", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert set(answer.json()) == {"error"}


def test_a_form_of_another_page_is_no_request(api: TestClient) -> None:
    """What a foreign form can send without asking: no JSON content type."""
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        answer = api.post("/api/problems", content=json.dumps({"document": AGES}), headers={"content-type": kind})
        assert answer.status_code == 422


def test_what_a_browser_is_told(api: TestClient) -> None:
    page = api.get("/")
    policy = page.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "data:" not in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in page.headers


def raw(url: str, sent: bytes) -> bytes:
    """What a server answers to bytes on a socket until it closes; empty where it just closes."""
    where = urlsplit(url)
    found = b""
    with (
        socket.create_connection((where.hostname, where.port), timeout=GUARD) as connection,
        suppress(ConnectionError),
    ):
        connection.sendall(sent)
        while part := connection.recv(65536):
            found += part
    return found


def test_sockets() -> None:
    """Slow heads and bodies, paths with tricks, and two lengths at once, against the real server."""
    with command() as (url, _):
        host = urlsplit(url).netloc
        head = f"POST /api/problems HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
        get = f"\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        for path in (
            "/../../etc/passwd",
            "/page/../../serving.py",
            "/page/..%2f..%2fserving.py",
            "//etc/passwd",
            "/page/%00",
            "/page/main.js%00.html",
        ):
            answer = raw(url, f"GET {path} HTTP/1.1{get}".encode())
            assert b" 404 " in answer.split(b"\r\n")[0] or b" 400 " in answer.split(b"\r\n")[0], path
            assert b"root:" not in answer
            assert b"def serve" not in answer
        nonsense = raw(url, b"this is not HTTP\r\n\r\n")
        assert nonsense.startswith(b"HTTP/1.1 400 ")
        assert b'"status": "REFUSED"' in nonsense
        assert b"default-src 'none'" in nonsense
        both = raw(url, f"{head}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!".encode())
        assert both.startswith(b"HTTP/1.1 400")
        two_hosts = raw(url, f"GET /api/about HTTP/1.1\r\nHost: {host}\r\nHost: evil.example{get[:-2]}\r\n".encode())
        assert b" 400 " in two_hosts.split(b"\r\n")[0] or b" 421 " in two_hosts.split(b"\r\n")[0]
        long = raw(url, b"GET / HTTP/1.1\r\n" + b"X-Long: " + b"y" * 100_000 + b"\r\n\r\n")
        assert b" 200 " not in long.split(b"\r\n")[0]
        connection = http.client.HTTPConnection(host, timeout=GUARD)
        connection.request("GET", "/api/about")
        whole = connection.getresponse()
        assert whole.status == 200
        assert whole.getheader("server") is None
        connection.close()


def listening(limits: Limits) -> str:
    """The address of a server in a thread of its own."""
    import threading

    found: list[Address] = []
    ready = threading.Event()

    def tell(address: Address) -> None:
        found.append(address)
        ready.set()

    threading.Thread(target=lambda: serve(Address(port=0), limits=limits, ready=tell), daemon=True).start()
    assert ready.wait(GUARD)
    return found[0].url


def test_too_many_connections_are_refused_in_the_one_shape() -> None:
    url = listening(Limits(connections=2, body_seconds=GUARD))
    where = urlsplit(url)
    get = f"GET /api/about HTTP/1.1\r\nHost: {where.netloc}\r\nConnection: close\r\n\r\n".encode()
    held = [socket.create_connection((where.hostname, where.port)) for _ in range(2)]
    refusal = raw(url, b"")  # connections are accepted in the order in which they came
    assert refusal.startswith(b"HTTP/1.1 503 ")
    assert json.loads(refusal.partition(b"\r\n\r\n")[2])["error"]["status"] == "BUSY"
    for each in held:
        each.close()
    wait_until(lambda: raw(url, get).startswith(b"HTTP/1.1 200"))  # once the server has noticed


def test_slow_senders_are_cut_off() -> None:
    """With a patience of a second instead of twenty."""
    url = listening(Limits(body_seconds=1.0))
    host = urlsplit(url).netloc
    assert raw(url, b"GET / HTTP/1.1\r\nHost: x") == b""  # a head that never ends
    head = (
        f"POST /api/problems HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    )

    def slow() -> bytes | None:
        """The answer to a body that never ends; none where we are so slow ourselves that the head took a second."""
        return raw(url, head.encode() + b"{") or None

    answer = wait_until(slow) or b""
    assert answer.startswith(b"HTTP/1.1 408")
    assert b'"SLOW"' in answer
    fine = f"GET /api/about HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
    wait_until(lambda: raw(url, fine).startswith(b"HTTP/1.1 200"))  # not at once where we are slow ourselves


def test_names_are_not_guessed(api: TestClient) -> None:
    names = {described(api) for _ in range(20)}
    assert len(names) == 20
    assert all(len(name) >= 16 for name in names)
    assert api.get("/api/problems").status_code == 405  # there is no list of them
