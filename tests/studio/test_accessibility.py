"""The page for whoever cannot see it well, or uses no mouse: axe-core in every state, forced colours, a script."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from accessibility import axe_source, violations
from studio_page import IN_CHROMIUM, Visit, chromium
from studio_server import command

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = IN_CHROMIUM

SCRIPT = Path(__file__).with_name("screen_reader.md")
PHONE = {"viewport": {"width": 360, "height": 740}}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {},
    "dark": {"color_scheme": "dark"},
    "phone": PHONE,
    "dark-phone": {"color_scheme": "dark", **PHONE},
    "forced-colours": {"forced_colors": "active"},
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with command() as (url, _):
        yield url


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with chromium() as made:
        yield made


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_in_any_state(browser: "Browser", address: str, look: str) -> None:
    source = axe_source()
    visit = Visit(browser, address, reduced_motion="reduce", **LOOKS[look])
    page = visit.page
    found: list[str] = []

    def check(state: str) -> None:
        found.extend(f"{state}: {each}" for each in violations(page, source))
        visit.picture(f"axe-{look}-{state}")

    visit.opened("auto=0&source=categories")
    check("loaded")
    visit.design(1)
    visit.says("#explanation .danger", text="reported as")
    check("designed")
    page.locator("#explanation .term").first.click()
    page.click("#show-around")
    check("toured")
    page.keyboard.press("Escape")
    visit.view("beliefs")
    visit.says("#picture-text", text="Their best guess is")
    page.click("#draw-frontier")
    visit.says("#frontier-status", text=r"points\.|possible")
    check("drawn")
    page.click("#cost-cases summary")
    page.click("#recipe summary")
    page.locator("#epsilon").fill("1000")
    check("red")
    page.fill("#labels", "only one")
    page.dispatch_event("#labels", "change")
    visit.says("#source-error", text="at least two")
    check("wrong")
    page.click("#persona-list button >> nth=1")
    visit.says("#persona-next", text="What to do next")
    check("nothing-chosen")
    page.check("input[name=source][value=places]", force=True)
    page.wait_for_selector("#picture .dot")
    check("points")
    page.check("input[name=secrets][value=cells]", force=True)
    page.wait_for_selector("#picture .cell")
    page.fill("#columns", "5")
    page.fill("#rows", "4")
    page.focus("#design")
    visit.says("#source-note", text="^20 secrets")
    visit.design(1)
    page.click("#send-2")
    page.wait_for_selector("#trace:visible")
    check("sent")
    visit.done()
    assert found == []


def test_axe_is_able_to_find_something(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address).opened()
    visit.page.evaluate("() => document.querySelector('#theme').removeAttribute('aria-label')")
    visit.page.evaluate("() => { document.querySelector('#theme').textContent = ''; }")
    assert any(each.startswith("button-name") for each in violations(visit.page, axe_source()))
    visit.done()


def test_targets_are_24_pixels(browser: "Browser", address: str) -> None:
    """Every button, field and choice, or the label that is pressed in its place."""
    visit = Visit(browser, address, **PHONE).opened("auto=0&source=ages")
    visit.design(1)
    small = visit.page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, textarea, summary")].flatMap((each) => {
            const target = each.closest("label.check") ?? each.closest(".choices label") ?? each;
            const box = target.getBoundingClientRect();
            return box.width && (box.width < 24 || box.height < 24)
                ? [`${each.tagName} ${each.id || each.textContent} ${box.width}x${box.height}`] : [];
        })"""
    )
    assert small == []
    visit.done()


def test_what_scrolls_has_the_focus_and_tables_have_captions(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address, **PHONE).opened("auto=0&source=ages")
    visit.design(1)
    visit.page.click("#recipe summary")
    found = visit.page.evaluate(
        """() => ({
            still: [...document.querySelectorAll("pre, .scroll")].filter((each) => each.tabIndex !== 0).length,
            nameless: [...document.querySelectorAll("table")].filter((each) => !each.caption?.textContent).length,
            scrolled: document.querySelectorAll("pre, .scroll").length,
        })"""
    )
    assert found["scrolled"] >= 2
    assert (found["still"], found["nameless"]) == (0, 0)
    visit.done()


def test_forced_colours_keep_what_is_chosen_apart(browser: "Browser", address: str) -> None:
    """Where a system sets all colours, a chosen pill, what is red and a card still have an outline or a colour."""
    visit = Visit(browser, address, forced_colors="active").opened("auto=0&source=categories")
    visit.design(1)
    style = """(selector) => { const found = getComputedStyle(document.querySelector(selector));
        return [found.backgroundColor, found.borderTopWidth, found.borderTopStyle]; }"""
    chosen = visit.page.evaluate(style, ".choices input:checked + span")
    other = visit.page.evaluate(style, ".choices input:not(:checked) + span")
    assert chosen[0] != other[0]
    assert visit.page.evaluate(style, "#explanation .danger")[1:] == ["2px", "solid"]
    assert visit.page.evaluate(style, ".bar")[1:] == ["1px", "solid"]
    visit.done()


STEPS = ("1 What is secret", "2 What you want", "Results so far", "What it means", "What privacy costs")


def test_a_screen_reader_says_what_is_written(browser: "Browser", address: str) -> None:
    """The accessibility tree of each step, as ages are designed for, beside ``screen_reader.md``."""
    visit = Visit(browser, address).opened("auto=0&source=ages&age-from=10&age-to=15&age-shape=even")
    visit.design(1)
    visit.says("#progress-said", text="^Designed")
    page = visit.page
    heard = {name: page.get_by_role("region", name=name, exact=True).aria_snapshot() for name in STEPS}
    heard["When it is designed"] = page.locator("#progress-said").aria_snapshot()
    page.click("#show-around")
    page.click("#tour-next")
    heard["Show me around"] = page.locator("#tour").aria_snapshot()
    visit.done()
    written = read_script(SCRIPT.read_text())
    assert sorted(heard) == sorted(written)
    for name, spoken in heard.items():
        said = spoken.replace("\u00a0", " ")
        missing = [line for line in written[name] if not contains(said, line)]
        assert missing == [], f"{name}:\n{said}"
        assert in_order(said, written[name]), f"{name} is said in another order:\n{said}"


def read_script(text: str) -> dict[str, list[str]]:
    """The lines of each heading's code block: what has to be said, in this order; ``…`` stands for anything."""
    blocks = re.findall(r"^## (.+?)\n.*?```text\n(.*?)```", text, flags=re.MULTILINE | re.DOTALL)
    return {name: [line.strip() for line in lines.splitlines() if line.strip()] for name, lines in blocks}


def pattern(line: str) -> str:
    return re.escape(line.replace("\u00a0", " ")).replace("…", r"[^\n]*")


def contains(said: str, line: str) -> bool:
    return re.search(pattern(line), said) is not None


def in_order(said: str, lines: list[str]) -> bool:
    return re.search(r"[\s\S]*?".join(pattern(line) for line in lines), said) is not None


def test_the_script_is_one_that_could_fail() -> None:
    written = read_script(SCRIPT.read_text())
    assert all(len(lines) >= 1 for lines in written.values())
    assert not contains(json.dumps(written), "a line that nobody wrote")
    assert in_order("a\nb\nc", ["a", "c"])
    assert not in_order("a\nb\nc", ["c", "a"])
