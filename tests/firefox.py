"""Debian's Firefox for tests, driven by WebDriver BiDi: a page is watched for other hosts and for complaints."""

import base64
import json
import os
import re
import secrets
import shutil
import socket
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from studio_page import PICTURES
from waiting import GUARD, wait_until

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")

IN_FIREFOX = [
    pytest.mark.slow,
    pytest.mark.skipif(FIREFOX is None, reason="there is no firefox here: apt-get install firefox-esr"),
]
"""The marks of a module whose tests walk through the page in Firefox."""

PREFERENCES = {
    "remote.active-protocols": 1,
    "app.update.enabled": False,
    "browser.download.folderList": 2,
    "browser.download.useDownloadDir": True,
    "browser.download.always_ask_before_handling_new_types": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.homepage_override.mstone": "ignore",
    "datareporting.policy.dataSubmissionEnabled": False,
    "dom.disable_open_during_load": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "permissions.default.geo": 1,
    "toolkit.telemetry.enabled": False,
}
"""What a new profile is told: no updates, no telemetry, downloads without a question."""

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
"""Kinds of frames of a WebSocket."""

VIOLATIONS = """() => { window.addEventListener("securitypolicyviolation",
    (event) => console.error(`refused by the policy: ${event.violatedDirective}`)); }"""

AIM = """(selector) => {
    const node = document.querySelector(selector);
    node.scrollIntoView({block: "center"});
    window.arrived = false;
    node.addEventListener("click", () => { window.arrived = true; }, {once: true, capture: true});
}"""
VISIBLE = """(selector) => [...document.querySelectorAll(selector)].some((each) => each.checkVisibility())"""


class WebSocket:
    """The client's side of a WebSocket on this machine (RFC 6455), for texts."""

    def __init__(self, port: int, path: str) -> None:
        self.connection = socket.create_connection(("127.0.0.1", port), timeout=GUARD)
        key = base64.b64encode(secrets.token_bytes(16)).decode()
        lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Upgrade: websocket", "Connection: Upgrade"]
        lines += [f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13", "", ""]
        self.connection.sendall("\r\n".join(lines).encode())
        self.stream = self.connection.makefile("rb")
        assert b" 101 " in self.stream.readline()
        while self.stream.readline().strip():
            pass

    def send(self, text: str) -> None:
        self.send_frame(TEXT, text.encode())

    def receive(self) -> str:
        """The next text."""
        parts: list[bytes] = []
        while True:
            first, second = self.stream.read(2)
            length = second & 127
            if length > 125:
                kind, size = ("!H", 2) if length == 126 else ("!Q", 8)
                (length,) = struct.unpack(kind, self.stream.read(size))
            payload = self.stream.read(length)
            if first & 15 == PING:
                self.send_frame(PONG, payload)
            elif first & 15 == CLOSE:
                raise ConnectionError("Firefox has closed the connection")
            else:
                parts.append(payload)
                if first & 128:
                    return b"".join(parts).decode()

    def close(self) -> None:
        self.stream.close()
        self.connection.close()

    def send_frame(self, kind: int, payload: bytes) -> None:
        size = len(payload)
        if size < 126:
            length = bytes([128 | size])
        else:
            length = bytes([128 | 126]) + struct.pack("!H", size) if size < 2**16 else b"\xff" + struct.pack("!Q", size)
        mask = secrets.token_bytes(4)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self.connection.sendall(bytes([128 | kind]) + length + mask + masked)


class Firefox:
    """A Firefox without a window, with one page that is watched."""

    def __init__(self, port: int, home: str, downloads: Path) -> None:
        self.connection = WebSocket(port, "/session")
        self.number = 0
        self.home, self.downloads = home, downloads
        self.complaints: list[str] = []
        self.elsewhere: list[str] = []
        self.ask("session.new", capabilities={})
        self.ask("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])
        self.context = self.ask("browsingContext.getTree")["contexts"][0]["context"]
        self.ask("script.addPreloadScript", functionDeclaration=VIOLATIONS)

    def ask(self, method: str, **parameters: Any) -> Any:
        """The result of a command; events that arrive meanwhile are noted."""
        self.number += 1
        self.connection.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.connection.receive())
            if message.get("id") == self.number:
                assert message["type"] == "success", f"{method}: {message.get('message')}"
                return message["result"]
            self.note(message)

    def note(self, message: Any) -> None:
        about = message.get("params", {})
        if message.get("method") == "log.entryAdded" and about["level"] in ("error", "warn"):
            self.complaints.append(str(about["text"]))
        if message.get("method") == "network.beforeRequestSent":
            url = about["request"]["url"]
            if about.get("context") == self.context and not url.startswith(
                (self.home, f"blob:{self.home}", "about:", "data:")
            ):
                self.elsewhere.append(url)

    def open(self, address: str) -> None:
        self.ask("browsingContext.navigate", context=self.context, url=address, wait="complete")

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height}
        self.ask("browsingContext.setViewport", context=self.context, viewport=size)

    def call(self, function: str, *arguments: Any) -> Any:
        """What a function gives in the page, as plain values; arguments are texts and numbers."""
        given = [{"type": "string" if isinstance(each, str) else "number", "value": each} for each in arguments]
        whole = f"async (...given) => JSON.stringify(await ({function})(...given) ?? null)"
        target = {"context": self.context}
        result = self.ask(
            "script.callFunction",
            functionDeclaration=whole,
            arguments=given,
            target=target,
            awaitPromise=True,
            userActivation=True,
        )
        assert result["type"] == "success", result["exceptionDetails"]["text"]
        return json.loads(result["result"]["value"])

    def says(self, selector: str, pattern: str) -> str:
        """Wait until something that can be seen says this; gives its text."""
        reading = """(selector) => { const node = [...document.querySelectorAll(selector)].find((each) =>
            each.checkVisibility()); return node ? node.textContent : null; }"""

        def text() -> str | None:
            read: str | None = self.call(reading, selector)
            return read if read is not None and re.search(pattern, read) else None

        return wait_until(text) or ""

    def click(self, selector: str) -> None:
        """A press of the pointer in the middle of what the selector names, once it can be seen."""
        locator = {"type": "css", "value": selector}

        def pressed() -> bool:
            """Whether the press has arrived: what is pressed may move or be drawn anew while the page gets longer."""
            if not self.call(VISIBLE, selector):
                return False
            node = self.ask("browsingContext.locateNodes", context=self.context, locator=locator)["nodes"][0]
            origin = {"type": "element", "element": {"sharedId": node["sharedId"]}}
            moves = [
                {"type": "pointerMove", "x": 0, "y": 0, "origin": origin},
                {"type": "pointerDown", "button": 0},
                {"type": "pointerUp", "button": 0},
            ]
            self.call(AIM, selector)
            try:
                actions = [{"type": "pointer", "id": "mouse", "actions": moves}]
                self.ask("input.performActions", context=self.context, actions=actions)
            except AssertionError as error:
                if not re.search("out of bounds|not displayed|not found", str(error)):
                    raise
            return bool(self.call("() => window.arrived"))

        wait_until(pressed)

    def type(self, selector: str, text: str) -> None:
        """Type a text into a field, in place of what it holds."""
        self.click(selector)
        self.call("(selector) => { document.querySelector(selector).value = ''; }", selector)
        keys = [{"type": kind, "value": key} for key in text for kind in ("keyDown", "keyUp")]
        actions = [{"type": "key", "id": "keyboard", "actions": keys}]
        self.ask("input.performActions", context=self.context, actions=actions)

    def choose(self, selector: str, value: str) -> None:
        """Choose an option of a list, or a radio button by its value."""
        self.call(
            """(selector, value) => { const node = document.querySelector(selector);
                if (node.type === "radio") node.click();
                else { node.value = value; node.dispatchEvent(new Event("input", {bubbles: true}));
                       node.dispatchEvent(new Event("change", {bubbles: true})); } }""",
            selector,
            value,
        )

    def give_file(self, selector: str, file: Path) -> None:
        locator = {"type": "css", "value": selector}
        node = self.ask("browsingContext.locateNodes", context=self.context, locator=locator)["nodes"][0]
        element = {"sharedId": node["sharedId"]}
        self.ask("input.setFiles", context=self.context, element=element, files=[str(file)])

    def taken(self, selector: str, name: str) -> bytes:
        """What a press downloads under this name."""
        file = self.downloads / name
        self.click(selector)
        wait_until(lambda: file.exists() and file.stat().st_size and not list(self.downloads.glob("*.part")))
        return file.read_bytes()

    def picture(self, name: str) -> None:
        if PICTURES:
            Path(PICTURES).mkdir(parents=True, exist_ok=True)
            shot = self.ask("browsingContext.captureScreenshot", context=self.context, origin="document")
            (Path(PICTURES) / f"{name}.png").write_bytes(base64.b64decode(shot["data"]))

    def done(self, refusals: int = 0) -> None:
        """Nothing was wider than the window, asked of another host, or complained about but for refusals."""
        assert self.call("() => document.documentElement.scrollWidth <= window.innerWidth"), "too wide"
        self.ask("session.status")  # events until now have arrived before its response
        assert self.elsewhere == []
        assert len(self.complaints) <= refusals, self.complaints

    def close(self) -> None:
        self.connection.close()


@contextmanager
def firefox(home: str, *, dark: bool = False) -> Iterator[Firefox]:
    """A Firefox with a new profile, which is removed again."""
    assert FIREFOX is not None
    with tempfile.TemporaryDirectory() as folder:
        profile, downloads = Path(folder) / "profile", Path(folder) / "downloads"
        profile.mkdir()
        downloads.mkdir()
        own = {
            "browser.download.dir": str(downloads),
            "layout.css.prefers-color-scheme.content-override": int(not dark),
        }
        lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in (PREFERENCES | own).items()]
        (profile / "user.js").write_text("\n".join(lines))
        command = [FIREFOX, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"]
        env = os.environ | {"HOME": folder, "MOZ_HEADLESS": "1"}
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
        try:
            port: int | None = wait_until(
                lambda: _port(profile) if process.poll() is None else pytest.skip("Firefox does not start")
            )
            page = Firefox(port or 0, home, downloads)
            try:
                yield page
            finally:
                page.close()
        finally:
            process.terminate()
            try:
                process.wait(GUARD)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _port(profile: Path) -> int | None:
    """The port that Firefox has chosen, once it has."""
    try:
        return int(json.loads((profile / "WebDriverBiDiServer.json").read_text())["ws_port"])
    except (OSError, ValueError, KeyError):
        return None
