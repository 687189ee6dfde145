"""Debian's Chromium with the unpacked extension, a device whose position a test chooses, and sites that ask for it."""

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from waiting import GUARD, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page, Worker

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
EXTENSION = Path(__file__).parents[1] / "device" / "extension" / "dist" / "chromium"
PICTURES = os.environ.get("PRIVACYGAMES_PICTURES")
"""A folder for pictures of every state, where somebody wants to look at them."""

TRUE = {"latitude": 48.208176, "longitude": 16.373819}
"""Where the device is. No page may ever see this."""

SECOND_HOST = "--host-resolver-rules=MAP insecure.test 127.0.0.1"
"""Names below ``localhost`` are secure; this one is not."""

Position = tuple[float, float]

FAKE_DEVICE = """
{
  const device = () => JSON.parse(localStorage.getItem("device"));
  navigator.geolocation.getCurrentPosition = (success, failure) => {
    localStorage.setItem("asked", String(Number(localStorage.getItem("asked") ?? 0) + 1));
    const answer = () => {
      if (device().held) return void setTimeout(answer, 10);
      device().fails ? failure({ code: 2 }) : success({ coords: device() });
    };
    answer();
  };
}
"""
"""Stands for the receiver of the device, in the offscreen document; the rest of the extension is as it is built."""


class Site(BaseHTTPRequestHandler):
    """Every address is a page; ``pages`` has those that are not empty, with headers of their own."""

    pages: dict[str, tuple[str, dict[str, str]]]
    requested: list[tuple[str, str]]

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        body, headers = self.pages.get(path, ("<!doctype html><title>site</title><body>site</body>", {}))
        self.requested.append((self.headers["Host"], self.path))
        self.send_response(200)
        for name, value in {"Content-Type": "text/html; charset=utf-8", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: Any) -> None:
        """Nothing is logged."""


@contextmanager
def sites(pages: dict[str, tuple[str, dict[str, str]]] | None = None) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """A server for every host below ``localhost``; gives its port and the list of what was requested."""
    handler = type("Pages", (Site,), {"pages": pages or {}, "requested": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port, handler.requested  # type: ignore[attr-defined]
    finally:
        server.shutdown()
        server.server_close()


def with_fake_device(target: Path, extension: Path = EXTENSION) -> Path:
    """A copy of the extension whose device is :data:`FAKE_DEVICE`."""
    shutil.copytree(extension, target)
    (target / "fake-device.js").write_text(FAKE_DEVICE)
    page = target / "offscreen.html"
    page.write_text(page.read_text().replace("<script", '<script src="fake-device.js"></script>\n<script', 1))
    return target


class Browser:
    """A profile whose sites already have the browser's permission, so that whatever asks the browser itself is told.

    Args:
        playwright: the running driver.
        folder: an empty folder for the profile.
        port: of the sites.
        hosts: names of hosts that have the permission.
        extension: the unpacked extension; None for a browser without it.
        options: for the context.
    """

    def __init__(
        self, playwright: Any, folder: Path, port: int, hosts: tuple[str, ...], extension: Path | None, **options: Any
    ) -> None:
        self.port = port
        allowed = {f"http://{host}:{port},*": {"setting": 1} for host in hosts}
        preferences = {"profile": {"content_settings": {"exceptions": {"geolocation": allowed}}}}
        (folder / "Default").mkdir(parents=True)
        (folder / "Default" / "Preferences").write_text(json.dumps(preferences))
        switches = [
            f"--{switch}={extension}" for switch in ("disable-extensions-except", "load-extension") if extension
        ]
        self.context: BrowserContext = playwright.chromium.launch_persistent_context(
            folder,
            executable_path=CHROMIUM,
            headless=False,
            args=["--headless=new", "--no-sandbox", "--disable-popup-blocking", SECOND_HOST, *switches],
            geolocation=TRUE,
            **options,
        )
        self.context.set_default_timeout(1000 * GUARD)
        self.panel: Page | None = None
        if extension is not None:
            address = f"chrome-extension://{self.worker.url.split('/')[2]}"
            self.panel = self.open(f"{address}/options.html")
            self.panel.wait_for_selector("#mechanisms .mechanism")
            self.place(**TRUE)
            wait_until(self.is_withheld)

    @property
    def worker(self) -> "Worker":
        """The extension's service worker, as soon as it runs."""
        return wait_until(
            lambda: next(iter(self.context.service_workers), None) or self.context.wait_for_event("serviceworker")
        )

    def is_withheld(self) -> bool:
        """Whether the extension has taken the browser's permission from sites."""
        details = {"primaryUrl": f"http://a.localhost:{self.port}/"}
        return bool(self.run("details => chrome.contentSettings.location.get(details)", details)["setting"] == "block")

    def run(self, script: str, argument: Any = None) -> Any:
        """Runs a function in a page of the extension."""
        assert self.panel is not None
        return self.panel.evaluate(script, argument)

    def place(self, **device: Any) -> None:
        """Sets where the device is; ``fails`` if it has no position, ``held`` if it does not answer for now."""
        self.run("device => localStorage.setItem('device', JSON.stringify(device))", {**TRUE, **device})

    def asked(self) -> int:
        """How often the device was asked for its position."""
        return int(self.run("() => Number(localStorage.getItem('asked') ?? 0)"))

    def command(self, **command: Any) -> Any:
        """A command of the popup or the options page."""
        return self.run("command => chrome.runtime.sendMessage(command)", command)

    def told(self, host: str) -> list[Position]:
        """What the ledger says that a site was told, the latest first."""
        return [(entry["latitude"], entry["longitude"]) for entry in self.command(command="site", host=host)["told"]]

    def open(self, address: str) -> "Page":
        """A new tab."""
        page = self.context.new_page()
        page.goto(address)
        return page

    def visit(self, host: str, path: str = "/") -> "Page":
        """A new tab of a site."""
        return self.open(f"http://{host}:{self.port}{path}")

    def close(self) -> None:
        self.context.close()


ASK = """
(options = {}) => new Promise((resolve) => navigator.geolocation.getCurrentPosition(
  ({ coords }) => resolve([coords.latitude, coords.longitude]), ({ code }) => resolve(code), options))
"""
"""Asks once; gives the position, or the code of the error."""


def ask(page: "Page", **options: Any) -> Any:
    """What a page is told: a position, or the code of an error."""
    answer = page.evaluate(ASK, options)
    return tuple(answer) if isinstance(answer, list) else answer


def protected(playwright: Any, folder: Path, port: int, hosts: tuple[str, ...], **options: Any) -> Browser:
    """A browser with the extension."""
    return Browser(playwright, folder / "profile", port, hosts, with_fake_device(folder / "extension"), **options)
