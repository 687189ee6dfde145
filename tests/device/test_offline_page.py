"""The offline page in Debian's Chromium: a position is shown once it is paid for, and the page needs no network."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import privacygames as pg
from privacygames.cli.app import app
from privacygames.device.offline_page import ASSETS, write_page
from waiting import GUARD, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
TRUE = {"latitude": 48.208176, "longitude": 16.373819}
BOX = (16.2, 48.1, 16.5, 48.3)

needs_page = pytest.mark.skipif(not ASSETS.is_dir(), reason="the offline page is not built: make device")
needs_browser = [
    needs_page,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here: apt-get install chromium"),
]


@pytest.fixture(scope="module")
def mechanism(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mechanism for cells of a city."""
    file = tmp_path_factory.mktemp("mechanism") / "vienna.pgm"
    pg.baselines.exponential(pg.Problem(pg.Prior.uniform(pg.Grid(6, 6, box=BOX))), epsilon=2.0).save(file)
    return file


@needs_page
def test_the_folder_has_all_that_the_page_asks_for(mechanism: Path, tmp_path: Path) -> None:
    target = tmp_path / "folder"
    outcome = CliRunner().invoke(
        app, ["device", "page", str(mechanism), "--out", str(target), "--answers", "3", "--json"]
    )
    assert outcome.exit_code == 0, outcome.output
    written = json.loads(outcome.stdout)
    worker = (target / "service-worker.js").read_text()
    assert worker.startswith(f'const VERSION = "{written["version"]}";')
    files = {path.name for path in target.iterdir()}
    assert written["files"] == len(files)
    assert all(f'"{name}"' in worker for name in files - {"service-worker.js"})
    assert json.loads((target / "settings.json").read_text()) == {
        "name": "vienna",
        "answersPerDay": 3,
        "repeatMinutes": 60,
    }
    assert "http" not in worker
    again = write_page(target, mechanism, name="vienna", answers=4)
    assert again.version != written["version"]  # so that phones fetch the new rules


@needs_page
def test_a_folder_with_other_files_is_left_alone(mechanism: Path, tmp_path: Path) -> None:
    (tmp_path / "diary.txt").write_text("mine")
    with pytest.raises(pg.InvalidProblem, match="other files"):
        write_page(tmp_path, mechanism)
    assert [path.name for path in tmp_path.iterdir()] == ["diary.txt"]


@needs_page
def test_a_mechanism_that_is_not_for_positions_is_refused(tmp_path: Path) -> None:
    pg.baselines.exponential(pg.Problem(pg.Prior.uniform(pg.Numbers([1, 2, 3]))), epsilon=2.0).save(
        tmp_path / "ages.pgm"
    )
    with pytest.raises(pg.InvalidProblem, match="for positions"):
        write_page(tmp_path / "folder", tmp_path / "ages.pgm")
    assert not (tmp_path / "folder").exists()


def test_where_the_page_is_not_built_the_command_says_how_to_get_it(
    mechanism: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privacygames.device.offline_page.ASSETS", tmp_path / "absent")
    outcome = CliRunner().invoke(app, ["device", "page", str(mechanism), "--out", str(tmp_path / "folder")])
    assert outcome.exit_code == 3
    assert "make device" in outcome.output


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Nothing is logged."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        yield playwright


class Phone:
    """A phone that has the page open."""

    def __init__(self, driver: Any, folder: Path, url: str, **options: Any) -> None:
        self.url, self.elsewhere, self.complaints = url, list[str](), list[str]()
        self.context: BrowserContext = driver.chromium.launch_persistent_context(
            folder,
            executable_path=CHROMIUM,
            args=["--no-sandbox"],
            geolocation=TRUE,
            permissions=["geolocation", "clipboard-read", "clipboard-write"],
            **{"viewport": {"width": 360, "height": 740}, **options},
        )
        self.context.set_default_timeout(1000 * GUARD)
        self.context.on("request", self.note)

    def note(self, request: Any) -> None:
        if not request.url.startswith(self.url):
            self.elsewhere.append(request.url)

    def open(self) -> "Page":
        page = self.context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(self.url)
        page.wait_for_selector("#draw:enabled")
        return page

    def draw(self, page: "Page") -> str:
        page.click("#draw")
        page.wait_for_selector("#result:not([hidden])")
        page.wait_for_selector("#draw:enabled")
        return page.inner_text("#position")

    def trouble(self, page: "Page") -> str:
        page.click("#draw")
        page.wait_for_selector("#trouble:not([hidden])")
        assert page.is_hidden("#result")
        return page.inner_text("#trouble")


@pytest.fixture
def phone(driver: Any, mechanism: Path, tmp_path: Path) -> Iterator[Phone]:
    write_page(tmp_path / "folder", mechanism, name="Vienna", answers=3)
    with served(tmp_path / "folder") as url:
        made = Phone(driver, tmp_path / "profile", url)
        yield made
        made.context.close()
    assert made.elsewhere == []
    assert made.complaints == []


def entries(page: "Page") -> list[str]:
    """The positions that the ledger holds, as the page shows them."""
    return [row.split("\n")[0] for row in page.locator("#told li").all_inner_texts()]


class TestInTheBrowser:
    pytestmark = needs_browser

    def test_a_position_is_drawn_once_shown_copied_and_repeated(self, phone: Phone) -> None:
        page = phone.open()
        assert "verified on this phone" in page.inner_text("#mechanism")
        position = phone.draw(page)
        assert position != f"{TRUE['latitude']:.4f}, {TRUE['longitude']:.4f}"
        assert str(page.get_attribute("#open", "href")).startswith(f"geo:{position.split(',')[0]}")
        page.click("#copy")
        page.wait_for_selector("#note:has-text('Copied.')")
        assert page.evaluate("navigator.clipboard.readText()") == position
        assert [phone.draw(page), phone.draw(phone.open())] == [position, position]
        assert entries(page) == [position]
        assert str(TRUE["latitude"]) not in page.content()

    def test_it_works_without_its_server(self, phone: Phone, tmp_path: Path) -> None:
        page = phone.open()
        page.evaluate("navigator.serviceWorker.ready.then(() => undefined)")
        position = phone.draw(page)
        phone.context.set_offline(True)
        again = phone.open()
        assert phone.draw(again) == position

    def test_three_positions_in_a_day_and_then_the_last(self, phone: Phone) -> None:
        page = phone.open()
        page.evaluate("() => { window.shift = 0; const now = Date.now; Date.now = () => now() + shift; }")
        for _ in range(6):
            phone.draw(page)
            page.evaluate("shift += 3_700_000")
        assert len(entries(page)) == 3
        assert page.inner_text("#position") == entries(page)[0]

    @pytest.mark.parametrize(
        "fault",
        [
            "IDBObjectStore.prototype.put = () => { throw new DOMException('full', 'QuotaExceededError'); }",
            """const put = IDBObjectStore.prototype.put;
              IDBObjectStore.prototype.put = function (...values) {
                const request = put.apply(this, values);
                request.addEventListener("success", () => { try { this.transaction.abort(); } catch {} });
                return request;
              };""",
            """const put = IDBObjectStore.prototype.put;
              IDBObjectStore.prototype.put = function (...values) {
                const request = put.apply(this, values);
                queueMicrotask(() => { try { this.transaction.abort(); } catch {} });
                return request;
              };""",
            "IDBDatabase.prototype.transaction = () => { throw new DOMException('closing', 'InvalidStateError'); }",
        ],
        ids=["quota", "aborted after the write", "aborted before the write", "closed database"],
    )
    def test_nothing_unpaid_is_shown_when_the_database_fails(self, phone: Phone, fault: str) -> None:
        page = phone.open()
        page.evaluate(f"() => {{ {fault} }}")
        assert "nothing was drawn" in phone.trouble(page)
        whole = phone.open()
        assert entries(whole) == []
        assert phone.draw(whole) == entries(whole)[0]

    def test_a_tab_that_is_closed_in_mid_charge_has_shown_nothing_that_is_not_in_the_ledger(self, phone: Phone) -> None:
        page = phone.open()
        page.evaluate(
            """() => {
              window.shown = [];
              new MutationObserver(() => shown.push(document.getElementById("position").textContent))
                .observe(document.getElementById("position"), { childList: true });
              const put = IDBObjectStore.prototype.put;
              IDBObjectStore.prototype.put = function (...values) {
                const request = put.apply(this, values);
                request.addEventListener("success", () => localStorage.setItem("charging", String(shown.length)));
                return request;
              };
            }"""
        )
        other = phone.open()
        page.evaluate("document.getElementById('draw').click()")
        wait_until(lambda: other.evaluate("localStorage.getItem('charging')"))
        page.close()
        assert other.evaluate("localStorage.getItem('charging')") == "0"  # nothing was on the page before the commit
        other.reload()
        other.wait_for_selector("#draw:enabled")
        charged = entries(other)
        assert [phone.draw(other)] == entries(other) == (charged or entries(other))

    def test_a_changed_mechanism_file_is_refused(self, driver: Any, mechanism: Path, tmp_path: Path) -> None:
        folder = tmp_path / "folder"
        write_page(folder, mechanism)
        content = bytearray((folder / "mechanism.pgd").read_bytes())
        content[len(content) // 2] ^= 1
        (folder / "mechanism.pgd").write_bytes(content)
        with served(folder) as url:
            made = Phone(driver, tmp_path / "profile", url)
            page = made.context.new_page()
            page.goto(url)
            page.wait_for_selector("#trouble:not([hidden])")
            assert page.is_disabled("#draw")
            made.context.close()
