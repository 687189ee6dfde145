"""The card "Use it", walked through in Chromium: one answer, and every day on a ledger."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from studio_page import IN_CHROMIUM, Visit, chromium
from studio_server import command

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = IN_CHROMIUM

SMALL = "auto=0&columns=6&rows=4"
WINDOW = (52.09, 5.12)
"""A position on the map of the synthetic city."""

LOOKS = [
    {},
    {"color_scheme": "dark"},
    {"viewport": {"width": 360, "height": 740}, "has_touch": True},
    {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"},
]
LOOK_NAMES = ["desktop", "dark", "phone", "phone-dark"]


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A studio of its own, whose person has no ledgers yet."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with command() as (url, _):
        yield url


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with chromium() as made:
        yield made


def said(visit: Visit) -> tuple[float, float]:
    """The coordinates of the answer."""
    visit.page.wait_for_selector("#answer", state="visible")
    latitude, longitude = re.findall(r"-?\d+\.\d+", visit.page.text_content("#answer-text") or "")
    return float(latitude), float(longitude)


@pytest.mark.parametrize("look", LOOKS, ids=LOOK_NAMES)
@pytest.mark.parametrize("secrets", ["cells", "points"])
def test_one_answer(browser: "Browser", address: str, secrets: str, look: dict[str, Any]) -> None:
    """Typed, in two ways; chosen in the picture; this computer's own; copied; and refused in the page's words."""
    here = {"latitude": WINDOW[0], "longitude": WINDOW[1]}
    allowed = {"permissions": ["geolocation", "clipboard-read", "clipboard-write"], "geolocation": here}
    ready = "#picture .cell" if secrets == "cells" else "#picture .dot"
    visit = Visit(browser, address, **look, **allowed).opened(f"{SMALL}&secrets={secrets}", ready)
    page = visit.page
    visit.says("#version", text=r"^\d+\.\d+")
    assert page.is_disabled("#use-answer")
    visit.design(1)
    page.click("#use-answer")
    visit.says("#use-error", text="Say where you are first")
    page.fill("#truth-position", "48.1, 11.6")
    page.click("#use-answer")
    visit.says("#use-error", text="outside of the map, which goes from")
    page.fill("#truth-position", f"{WINDOW[1]}, {WINDOW[0]}")
    page.click("#use-answer")
    visit.says("#use-error", text="write the latitude")
    visit.picture(f"use-{secrets}-{LOOK_NAMES[LOOKS.index(look)]}-refused")
    page.fill("#truth-position", "52°05.4′N 5°07′12″E")
    page.click("#use-answer")
    latitude, longitude = said(visit)
    assert 52.0541 < latitude < 52.126
    assert 5.0105 < longitude < 5.2301
    visit.says("#answer-means", text="Whatever somebody knows, this answer shifts their odds")
    assert page.get_attribute("#answer-geo", "href") == f"geo:{latitude:.5f},{longitude:.5f}"
    page.click("#copy-answer")
    visit.says("#answer-copied", text="Copied")
    assert page.evaluate("() => navigator.clipboard.readText()") == (page.text_content("#answer-text") or "")
    visit.picture(f"use-{secrets}-{LOOK_NAMES[LOOKS.index(look)]}-answer")
    page.click("#truth-here")
    visit.says("#truth-note", text="own position")
    assert page.input_value("#truth-position") == "52.09000, 5.12000"
    assert page.is_hidden("#answer")  # it was about another place
    page.locator("#picture .cell, #picture .ground").first.click(position={"x": 15, "y": 15}, force=True)
    visit.says("#truth-note", text="Taken from the map")
    page.click("#use-answer")
    said(visit)
    assert not re.search(r"52\.0|5\.12", page.url), "a position is in the address"
    visit.done()


@pytest.mark.parametrize("what", ["ages", "categories"])
def test_one_answer_about_a_label(browser: "Browser", address: str, what: str) -> None:
    visit = Visit(browser, address).opened(f"{SMALL}&source={what}")
    page = visit.page
    visit.design(1)
    page.click("#use-answer")
    visit.says("#use-error", text="Choose what is true")
    label = {"ages": "22", "categories": "asthma"}[what]
    page.select_option("#truth-label", label=label)
    page.click("#use-answer")
    page.wait_for_selector("#answer", state="visible")
    assert (page.text_content("#answer-text") or "") in page.locator("#truth-label option").all_text_contents()
    assert page.is_hidden("#answer-geo")
    visit.picture(f"use-{what}")
    page.click("#picture #cell-at-3")
    page.wait_for_function("() => document.querySelector('#truth-label').value === '3'")
    assert label not in page.url
    visit.done()


def test_copying_without_the_clipboard(browser: "Browser", address: str) -> None:
    """Where the page may not use it, as over plain HTTP from another machine."""
    visit = Visit(browser, address)
    visit.page.add_init_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    page = visit.opened(f"{SMALL}&source=ages").page
    visit.design(1)
    page.select_option("#truth-label", label="22")
    page.click("#use-answer")
    page.wait_for_selector("#answer", state="visible")
    page.evaluate("() => document.addEventListener('copy', () => { window.copies = getSelection().toString(); })")
    page.click("#copy-answer")
    visit.says("#answer-copied", text="Copied")
    visit.done()


@pytest.mark.parametrize("look", LOOKS, ids=LOOK_NAMES)
def test_every_day(browser: "Browser", address: str, look: dict[str, Any]) -> None:
    """A ledger is made, used up, paused; another tab sees it, and so does the studio after a restart of the page."""
    name = LOOK_NAMES[LOOKS.index(look)]
    visit = Visit(browser, address, **look).opened(f"{SMALL}&secrets=points", "#picture .dot")
    page = visit.page
    page.check("input[name=use][value=daily]", force=True)
    visit.says("#ledger-none", text="Design something above first")
    visit.picture(f"daily-{name}-nothing")
    visit.design(1)
    visit.says("#ledger-room", text="room for 8 outputs")
    page.fill("#ledger-epsilon", "0.0001")
    visit.says("#ledger-room", text="must be at least that")
    visit.picture(f"daily-{name}-new")
    page.click("#create-ledger")
    visit.says("#use-error", text="Give the ledger a name")
    page.fill("#ledger-name", "my phone")
    page.click("#create-ledger")
    visit.says("#use-error", text="costs more than this budget")
    epsilon = page.evaluate(
        "() => Number(document.querySelector('#ledger-room').textContent.match(/ε = ([\\d.]+)/)[1])"
    )
    page.fill("#ledger-epsilon", str(round(2.1 * epsilon, 3)))
    page.click("#create-ledger")
    visit.says("#ledger-left-text", text=r"100\s% left. Room for 2 more outputs")
    visit.says("#ledger-history-none", text="None yet")
    assert page.is_visible("#truth-by-map")  # it is the map that is shown
    page.fill("#truth-position", "52.09, 5.12")
    for number in (1, 2):
        page.click("#release")
        visit.says("#ledger-history tbody tr", count=number)
        said(visit)
    visit.says("#ledger-left-text", text="Used up. There is room again at")
    visit.picture(f"daily-{name}-released")
    page.click("#release")
    visit.says("#use-error", text="used up, and nothing was released")
    page.click("#pause")
    page.wait_for_selector("#ledger-paused", state="visible")
    assert page.is_disabled("#release")
    visit.picture(f"daily-{name}-paused")
    page.reload()
    page.wait_for_selector("#picture .dot")
    page.check("input[name=use][value=daily]", force=True)
    page.wait_for_selector("#ledger-paused", state="visible")  # the only ledger is chosen
    visit.says("#ledger-history tbody tr", count=2)
    page.click("#pause")
    page.wait_for_selector("#ledger-paused", state="hidden")
    assert "phone" not in page.url
    visit.done(refusals=2)


def test_frequent_places(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address).opened(f"{SMALL}&secrets=points", "#picture .dot")
    page = visit.page
    visit.design(1)
    page.check("input[name=use][value=daily]", force=True)
    page.fill("#ledger-name", "weeks")
    page.select_option("#ledger-policy", "places")
    page.click("#create-ledger")
    visit.says("#use-error", text="at least one place")
    page.fill("#ledger-places", "52.09, 5.12\nhome")
    page.click("#create-ledger")
    visit.says("#use-error", text="Line 2: This position cannot be read")
    page.fill("#ledger-places", "52.09, 5.12\n52°06′N 5°06′E")
    visit.picture("daily-places-new")
    page.click("#create-ledger")
    visit.says("#ledger-terms-text", text="2, within 200")
    page.fill("#truth-position", "52.0902, 5.1203")
    for number in (1, 2):
        page.click("#release")
        visit.says("#ledger-history tbody tr", count=number)
    page.fill("#truth-position", "52.06, 5.02")
    page.click("#release")
    visit.says("#ledger-history tbody tr", count=3)
    visit.says("#ledger-history tbody tr:first-child", text="on the way")
    outputs = page.locator("#ledger-history td:nth-child(3)").all_text_contents()
    assert len(set(outputs)) == 1
    visit.picture("daily-places")
    visit.done()


def test_two_tabs_share_a_ledger(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address).opened(f"{SMALL}&source=ages")
    page = visit.page
    visit.design(1)
    page.check("input[name=use][value=daily]", force=True)
    page.fill("#ledger-name", "both")
    page.click("#create-ledger")
    visit.says("#ledger-left-text", text="Room for 8 more")
    other = visit.context.new_page()
    other.goto(f"{address}#{SMALL}")
    other.wait_for_selector("#picture .cell")
    other.check("input[name=use][value=daily]", force=True)
    for number, tab in enumerate((page, other, page, other), 1):
        tab.select_option("#truth-label", label="30")
        tab.click("#release")
        tab.wait_for_function(f"() => document.querySelector('#ledger-history tbody td')?.textContent === '{number}'")
    assert page.evaluate("() => document.querySelectorAll('#ledger-history tbody tr').length") == 3
    other.close()
    visit.done()
