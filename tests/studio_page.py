"""The studio's page in Debian's Chromium, for tests: it is watched for requests to other hosts and for complaints."""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from waiting import GUARD

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PATIENCE = 1000 * GUARD
PICTURES = os.environ.get("PRIVACYGAMES_PICTURES")
"""A folder for pictures of every state, where somebody wants to look at them."""

IN_CHROMIUM = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here: apt-get install chromium"),
]
"""The marks of a module whose tests walk through the page."""


@contextmanager
def chromium() -> "Iterator[Browser]":
    """A Chromium without a window."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Visit:
    """A page that is watched: what it asks for, and what it complains about."""

    def __init__(self, browser: "Browser", url: str, **options: Any) -> None:
        self.url, self.complaints, self.elsewhere = url, list[str](), list[str]()
        size = {"width": 1280, "height": 900}
        self.context = browser.new_context(**{"viewport": size, "accept_downloads": True, **options})
        self.context.set_default_timeout(PATIENCE)
        self.page: Page = self.context.new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.context.on("request", self.asked)

    def asked(self, request: Any) -> None:
        if not request.url.startswith((self.url, f"blob:{self.url}")):
            self.elsewhere.append(request.url)

    def opened(self, settings: str = "auto=0", ready: str = "#picture .cell") -> "Visit":
        self.page.goto(f"{self.url}#{settings}")
        self.page.wait_for_selector(ready)
        return self

    def design(self, results: int) -> None:
        self.page.click("#design")
        self.says("#history tbody tr", count=results)

    def says(self, selector: str, *, count: int | None = None, text: str | None = None) -> None:
        from playwright.sync_api import expect

        found = expect(self.page.locator(selector))
        if count is not None:
            found.to_have_count(count, timeout=PATIENCE)
        if text is not None:
            found.to_contain_text(re.compile(text), timeout=PATIENCE)

    def view(self, name: str) -> None:
        self.page.check(f"input[name=view][value={name}]", force=True)

    def taken(self, what: str, folder: Path) -> Path:
        with self.page.expect_download() as download:
            self.page.click(f"[data-export={what}]")
        target = folder / download.value.suggested_filename
        download.value.save_as(target)
        return target

    def picture(self, name: str) -> None:
        if PICTURES:
            Path(PICTURES).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page=True)

    def done(self, refusals: int = 0) -> None:
        wide = self.page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth")
        assert wide, "something is wider than the window"
        self.context.close()
        assert self.elsewhere == []
        noted = [each for each in self.complaints if "status of 4" in each]  # a browser notes every refusal
        assert len(noted) == refusals
        assert self.complaints == noted, self.complaints
