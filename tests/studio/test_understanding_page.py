"""The page for somebody who has never seen it: a tour, jobs to start from, words, typed values, progress, memory."""

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


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with command() as (url, _):
        yield url


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with chromium() as made:
        yield made


def test_a_minute_around_the_page_by_keyboard(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address, reduced_motion="reduce").opened("auto=0&source=ages")
    page = visit.page
    page.focus("#show-around")
    page.keyboard.press("Enter")
    steps = int((re.search(r"of (\d)", page.text_content("#tour-title") or "") or [0, 0])[1])
    assert 5 <= steps <= 7
    words = 0
    for step in range(1, steps + 1):
        visit.says("#tour-title", text=rf"\({step} of {steps}\)")
        assert page.evaluate("() => document.activeElement.id") == "tour-title"
        assert page.locator(".toured").count() == 1
        words += len((page.text_content("#tour-text") or "").split())
        visit.picture(f"tour-{step}")
        page.focus("#tour-next")
        page.keyboard.press("Enter")
    assert words < 240  # what is read in a minute
    assert page.is_hidden("#tour")
    assert page.evaluate("() => document.activeElement.id") == "show-around"
    page.keyboard.press("Enter")
    page.check("input[name=goal][value=use]", force=True)  # the page can be used meanwhile
    assert page.is_visible("#control-cost")
    page.keyboard.press("Escape")
    assert page.is_hidden("#tour")
    assert page.locator(".toured").count() == 0
    visit.done()


JOBS = {
    "Diagnoses in a hospital": ("categories", "privacy"),
    "A journalist's GPS track": ("own", "privacy"),
    "A teacher with ages": ("ages", "privacy"),
    "Visits to shops": ("own", "use"),
}


def test_four_jobs_to_start_from(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address).opened("auto=0&source=places&columns=6&rows=4&goal=use&cost-limit=3&epsilon=990")
    page = visit.page
    for number, (job, (source, goal)) in enumerate(JOBS.items()):
        page.get_by_role("button", name=job).click()
        visit.says("#persona-next li", count=3)
        assert page.locator("input[name=source]:checked").get_attribute("value") == source
        assert page.locator("input[name=goal]:checked").get_attribute("value") == goal
        assert page.get_by_role("button", name=job).get_attribute("aria-pressed") == "true"
        assert f"source={source}" in page.url
        visit.picture(f"job-{number}")
        if source == "own":
            visit.says("#source-note", text="Choose a file")
            continue
        visit.says("#source-note", text="secrets")
        visit.design(1)  # what was impossible before is not what the job starts with
        assert page.locator("#epsilon-means.alarm, #error-means.alarm").count() == 0
    visit.done()


@pytest.mark.parametrize("source", ["places", "ages", "categories"])
def test_usefulness_first_starts_with_something_possible(browser: "Browser", address: str, source: str) -> None:
    visit = Visit(browser, address).opened(f"auto=0&source={source}&columns=6&rows=4")
    visit.page.check("input[name=goal][value=use]", force=True)
    assert visit.page.locator(".alarm:visible").count() == 0
    visit.design(1)
    assert visit.page.is_hidden("#design-error")
    visit.page.click("#cost-cases summary")
    visit.page.check("input[name=goal][value=privacy]", force=True)
    visit.page.check("input[name=cost-case][value=cap]")
    visit.design(2)
    visit.done()


def test_words_are_explained_where_they_stand(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address).opened("auto=0&source=ages")
    visit.design(1)
    page = visit.page
    for word, meaning in (("secret", "do not want to tell"), ("Outputs", "drawn at random"), ("adversary", "attacker")):
        button = page.get_by_role("region", name="2 What you want").get_by_role("button", name=word, exact=True)
        button.focus()
        page.keyboard.press("Enter")
        assert button.get_attribute("aria-expanded") == "true"
        shown = page.locator(f"#{button.get_attribute('aria-controls')}")
        assert meaning in (shown.text_content() or "")
        page.keyboard.press("Escape")
        assert button.get_attribute("aria-expanded") == "false"
        assert shown.is_hidden()
    said = page.locator("button.term").all_text_contents()
    kinds = {each.lower().rstrip("s") for each in said}
    assert {"secret", "output", "prior", "ε", "adversary", "error"} <= kinds
    assert page.locator("[title].term").count() == 0
    visit.done()


def test_what_is_typed_is_taken_to_the_last_digit(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address).opened("auto=0&source=places&columns=6&rows=4")
    page = visit.page
    page.fill("#epsilon-typed", "0.4321")
    page.fill("#error-typed", "1234.5")
    page.focus("#design")
    assert page.text_content("#error-unit") == "m"
    with page.expect_request("**/api/jobs") as asked:
        visit.design(1)
    bounds = (asked.value.post_data_json or {})["bounds"]
    assert (bounds["epsilon"], bounds["distortion"]) == (0.4321, 1.2345)
    page.get_by_role("button", name="1,750 ft").click()
    assert page.input_value("#error-typed") == "533.4"
    with page.expect_request("**/api/jobs") as asked:
        visit.design(2)
    assert (asked.value.post_data_json or {})["bounds"]["distortion"] == 0.5334
    page.click("#legal summary")
    visit.says("#legal-about", text="1798.140")
    page.fill("#error-typed", "99999")
    page.focus("#design")
    visit.says("#error-means", text="Not possible")
    page.click("#design")
    visit.says("#design-error", text="Nobody can be made to err")
    visit.done()


def test_red_is_said_before_anything_is_designed(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address).opened("auto=0&source=ages")
    page = visit.page
    assert page.locator(".alarm:visible").count() == 0
    page.fill("#epsilon-typed", "3")
    page.focus("#design")
    visit.says("#epsilon-means.alarm", text=r"Privacy is gone between the farthest: 49\syears apart")
    page.fill("#error-typed", "0.1")
    page.focus("#design")
    visit.design(1)
    visit.says(
        "#explanation .danger >> nth=0", text="Between the farthest secrets privacy is gone|likeliest guess is exact"
    )
    assert page.locator("#explanation > *").first.get_attribute("class") == "danger"
    visit.picture("red")
    visit.done()


def test_progress_says_how_much_and_how_long(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address).opened("auto=0&columns=14&rows=10")
    page = visit.page
    page.evaluate(
        """() => { window.said = []; new MutationObserver(() => window.said.push(
            [document.querySelector("#progress-text").textContent,
             document.querySelector("#progress .bar").getAttribute("aria-valuenow")]))
            .observe(document.querySelector("#progress-text"), { childList: true }); }"""
    )
    visit.design(1)
    said = page.evaluate("() => window.said")
    texts = " / ".join(text for text, _ in said)
    assert "left" in texts
    assert re.search(r"\d\s% done", texts)
    assert not re.search(r"iteration|gap|e[+-]\d\d", texts)
    shares = [int(share) for _, share in said if share is not None]
    assert shares == sorted(shares)
    assert shares[-1] > shares[0]
    visit.says("#progress-said", text="^Designed. Cost")
    visit.done()


def test_equal_rows_say_what_differs(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address).opened("auto=0&source=categories")
    page = visit.page
    visit.design(1)
    assert page.locator("#history .differs").count() == 0
    visit.design(2)
    visit.says("#history tbody tr:first-child .differs", text="designed again, the same settings and numbers")
    page.fill("#error-typed", "1")  # below what ε does on its own: the same mechanism
    page.focus("#design")
    visit.design(3)
    rows = page.locator("#history tbody tr").all_text_contents()
    assert len(set(rows)) == len(rows)
    visit.done()


def test_a_reload_restores_everything_but_the_data(browser: "Browser", address: str, tmp_path: Path) -> None:
    hours = "".join(f"ann,2024-05-01T{h:02}:00:00Z,52.{h % 5}1,5.{h % 3}2\n" for h in range(24))
    (tmp_path / "my track.csv").write_text("user,time,lat,lon\n" + hours)
    visit = Visit(browser, address).opened("auto=0&columns=6&rows=4")
    page = visit.page
    page.check("input[name=source][value=own]", force=True)
    page.set_input_files("#traces", tmp_path / "my track.csv")
    visit.says("#source-note", text="24 secrets")
    page.fill("#epsilon-typed", "0.2345")
    page.focus("#design")
    page.locator("#presets input").first.check()
    before = page.url
    assert "track" not in before
    page.reload()
    visit.says("#restored", text="Choose the file again: it was called “my track.csv”")
    assert page.is_disabled("#design")
    visit.picture("reloaded")
    page.set_input_files("#traces", tmp_path / "my track.csv")
    visit.says("#source-note", text="24 secrets")
    assert page.is_hidden("#restored")
    assert page.input_value("#epsilon-typed") == "0.2345"
    assert page.locator("#presets input").first.is_checked()
    other = Visit(browser, address)  # who gets the link
    other.page.goto(before)
    other.says("#restored", text=r"never stored\. Choose the file again\.$")
    other.done()
    visit.done()


def test_a_link_restores_what_was_chosen(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address).opened("auto=1&source=ages&age-from=10&age-to=19")
    page = visit.page
    visit.says("#history tbody tr", count=1)
    page.fill("#error-typed", "1.234")
    page.focus("#design")
    visit.says("#history tbody tr", count=2)
    visit.view("outputs")
    link = page.url
    visit.done()
    other = Visit(browser, address)
    other.page.goto(link)
    other.says("#history tbody tr", count=1)
    other.says("#picture-text", text="The outputs for")
    assert other.page.input_value("#error-typed") == "1.234"
    assert other.page.input_value("#age-to") == "19"
    other.done()


def test_a_draw_is_not_called_a_guarantee(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address).opened("auto=0&source=ages")
    visit.design(1)
    visit.page.click("#send-2")
    visit.says("#picture-text", text="one random draw: press again, and the number varies")
    visit.says("#picture-text", text="The guarantee is about one output, averaged over all draws: 4.2")
    visit.done()


def test_pictures_to_take_away_explain_themselves(browser: "Browser", address: str, tmp_path: Path) -> None:
    visit = Visit(browser, address).opened("auto=0&source=ages")
    page = visit.page
    visit.design(1)
    page.click("#draw-frontier")
    visit.says("#frontier-status", text=r"^\d+ points")
    page.wait_for_selector("#cancel-frontier", state="hidden")
    taken: dict[str, Any] = {}
    for button in ("#save-frontier", "#save-matrix", "[data-export=svg]"):
        with page.expect_download() as download:
            page.click(button)
        file = tmp_path / download.value.suggested_filename
        download.value.save_as(file)
        taken[button] = file
    frontier = taken["#save-frontier"].read_text()
    for label in (
        "What privacy costs",
        "how far off the best attack is",
        "the best possible",
        "geometric",
        "private: ",
    ):
        assert label in frontier
    ages = taken["[data-export=svg]"].read_text()
    for label in ("What an adversary believes", "years", "the secret"):
        assert label in ages
    table = taken["#save-matrix"].read_bytes()
    assert table.startswith(b"\x89PNG")
    assert taken["#save-matrix"].name == "private-table.png"
    visit.done()
