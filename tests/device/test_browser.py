"""The bundle in Debian's Chromium: verification in a worker, and a ledger that several tabs use at once."""

import json
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

import privacygames as pg
from device.cases import mechanisms
from device.node import PACKAGE, built_package
from studio_page import IN_CHROMIUM, chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = IN_CHROMIUM

PAGE = """<!doctype html><title>test</title><script type="module">
import * as device from "./index.js";
window.device = device;
window.ledger = async (options) => device.Ledger.open(await device.IndexedDbStore.open(), options);
const mechanism = (id) => ({
  id, kind: "numbers", epsilon: 0.25, box: null, guarantee: "", disclosure: "", accuracyKm: null,
  verify: async () => ({ holds: true, reason: "", checked: 0 }),
  sample: () => ({ index: 0, label: crypto.randomUUID(), position: null, place: null }),
});
window.ask = async (options, site, times, now = 1e12) => {
  const ledger = await window.ledger(options);
  const given = await Promise.allSettled(
    Array.from({ length: times }, (_, at) => ledger.release(site, mechanism(options.id ?? "m"), 0, now + at)));
  return given.map((each) => each.status === "fulfilled" ? each.value.label : `! ${each.reason.name}`);
};
document.title = "ready";
</script>"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and logs nothing."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    built_package()
    folder: Path = tmp_path_factory.mktemp("page")
    (folder / "page.html").write_text(PAGE)
    for name in ("index.js", "worker.js"):
        (folder / name).write_bytes((PACKAGE / "dist" / name).read_bytes())
    for name in ("grid", "points"):
        (folder / f"{name}.pgd").write_bytes(pg.device.encode(mechanisms()[name]))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/page.html"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with chromium() as made:
        yield made


@pytest.fixture
def context(browser: "Browser") -> "Iterator[BrowserContext]":
    made = browser.new_context()
    yield made
    made.close()


def opened(context: "BrowserContext", address: str) -> "Page":
    page = context.new_page()
    page.goto(address)
    page.wait_for_function("document.title === 'ready'")
    return page


def ask(page: "Page", site: str, times: int, now: float = 1e12, **options: Any) -> list[str]:
    given: list[str] = page.evaluate("([options, ...rest]) => ask(options, ...rest)", [options, site, times, now])
    return given


def entries(page: "Page", site: str) -> list[Any]:
    text = page.evaluate("async (site) => JSON.stringify(await (await ledger({budgetPerSite: 1})).history(site))", site)
    listed: list[Any] = json.loads(text)
    return listed


def test_a_worker_verifies_files(context: "BrowserContext", address: str) -> None:
    page = opened(context, address)
    script = """async (name) => {
        const bytes = new Uint8Array(await (await fetch(name)).arrayBuffer());
        const verdict = await device.verifyInWorker(bytes);
        const position = (await device.open(bytes)).sample({latitude: 46.5, longitude: 6.6}).position;
        bytes[100] ^= 1;
        const refused = await device.verifyInWorker(bytes).catch((error) => error.name);
        return [verdict.holds, position.latitude > 46, refused];
    }"""
    for name in ("grid.pgd", "points.pgd"):
        assert page.evaluate(script, name) == [True, True, "InvalidFile"]


def test_tabs_that_ask_at_once_get_one_output(context: "BrowserContext", address: str) -> None:
    first, second = opened(context, address), opened(context, address)
    starting = "([site, times]) => { window.asked = ask({budgetPerSite: 1}, site, times); }"
    for page in (first, second):
        page.evaluate(starting, ["a", 25])
    told = {label for page in (first, second) for label in page.evaluate("window.asked")}
    assert len(told) == 1
    assert [each["output"]["label"] for each in entries(first, "a")] == list(told)


def test_tabs_together_never_exceed_the_budget(context: "BrowserContext", address: str) -> None:
    pages = [opened(context, address) for _ in range(3)]
    for page in pages:
        page.evaluate("() => { window.asked = ask({budgetPerSite: 1, holdMilliseconds: 0}, 'a', 20); }")
    told = {label for page in pages for label in page.evaluate("window.asked")}
    assert len(told) == len(entries(pages[0], "a")) == 4  # of 0.25 each
    assert not any(label.startswith("!") for label in told)


def test_an_output_outlives_the_page(context: "BrowserContext", address: str) -> None:
    first = opened(context, address)
    (told,) = ask(first, "a", 1, budgetPerSite=1)
    first.reload()
    first.wait_for_function("document.title === 'ready'")
    assert ask(first, "a", 2, budgetPerSite=1) == [told, told]
    assert ask(first, "b", 1, budgetPerSite=1, budgetInAll=0.25) == ["! BudgetSpent"]


ABORTED = """() => {
    const put = IDBObjectStore.prototype.put;
    IDBObjectStore.prototype.put = function (...given) {
        const request = put.apply(this, given);
        this.transaction.abort();
        return request;
    };
}"""
QUOTA = """() => {
    IDBObjectStore.prototype.put = function () { throw new DOMException("full", "QuotaExceededError"); };
}"""


@pytest.mark.parametrize("fault", [ABORTED, QUOTA], ids=["aborted", "quota"])
def test_a_store_that_fails_shows_nothing(context: "BrowserContext", address: str, fault: str) -> None:
    page = opened(context, address)
    page.evaluate(fault)
    assert ask(page, "a", 3, budgetPerSite=1) == ["! StoreFailed"] * 3
    page.reload()
    page.wait_for_function("document.title === 'ready'")
    assert entries(page, "a") == []


def test_a_connection_that_was_closed_is_opened_again(context: "BrowserContext", address: str) -> None:
    page = opened(context, address)
    script = """async () => {
        const store = await device.IndexedDbStore.open();
        const own = await device.Ledger.open(store, {budgetPerSite: 1});
        await new Promise((resolve, reject) => {  // closes every connection to it
            const request = indexedDB.deleteDatabase("privacygames-ledger");
            request.onsuccess = resolve;
            request.onerror = reject;
        });
        return (await own.balance("a", 0)).left;
    }"""
    assert page.evaluate(script) == 1


def test_a_tab_closed_in_mid_charge_leaves_a_charge_with_its_output_or_none(
    context: "BrowserContext", address: str
) -> None:
    watching = opened(context, address)
    for number in range(8):
        site = f"site {number}"
        page = opened(context, address)
        page.evaluate("(site) => { ask({budgetPerSite: 1}, site, 1); }", site)
        page.close()
        left = entries(watching, site)
        assert len(left) <= 1
        told = ask(watching, site, 1, budgetPerSite=1)
        if left:
            assert told == [left[0]["output"]["label"]]
        assert len(entries(watching, site)) == 1
