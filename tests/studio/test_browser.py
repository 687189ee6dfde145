"""The page, walked through in Debian's Chromium: nothing is asked from another host, and the console stays empty."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import privacygames as pg
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
    with chromium() as opened:
        yield opened


@pytest.mark.parametrize("what", ["places", "ages", "categories"])
def test_the_whole_walk(browser: "Browser", address: str, tmp_path: Path, what: str) -> None:
    visit = Visit(browser, address).opened(f"auto=0&source={what}&columns=6&rows=4")
    page = visit.page
    visit.says("#source-note", text="secrets")
    visit.picture(f"{what}-1-loaded")
    visit.design(1)
    visit.says("#explanation", text="adversary's best guess")
    visit.picture(f"{what}-2-designed")
    page.locator("#error").fill("300")
    page.dispatch_event("#error", "change")
    visit.says("#outdated", text="setting before")
    assert page.is_visible("#explanation .lead")  # the last result stays until the new one is there
    visit.picture(f"{what}-3-old")
    visit.design(2)
    assert page.is_hidden("#outdated")
    page.locator("#presets input").first.check()
    visit.design(3)
    page.click("#picture #cell-at-3")
    visit.says("#picture-text", text="The outputs for")
    page.click("#sample")
    visit.says("#picture .sample", count=50)
    visit.picture(f"{what}-4-samples")
    visit.view("beliefs")
    visit.says("#picture-text", text="Their best guess is")
    visit.says("#adversary option", count=2)
    page.click("#send-2")
    visit.says("#picture-text", text="After 2 outputs")
    visit.picture(f"{what}-5-sent")
    if what == "places":
        page.click("#send-day")
        visit.says("#picture-text", text="After 24 outputs")
    else:
        assert page.is_visible("#matrix")
    page.click("#draw-frontier")
    visit.says("#frontier-status", text=r"^\d+ points\.$")
    page.locator("#frontier .point").first.focus()
    page.keyboard.press("Enter")
    visit.says("#history tbody tr", count=4)
    visit.picture(f"{what}-6-frontier")
    page.locator("#history button").nth(3).click()  # back to the first: the knobs say again what it was asked
    visit.says("#history tr.current", text="ε")
    visit.says("#error-means", text="Without any output")
    assert page.locator("#presets input:checked").count() == 0
    assert page.is_hidden("#outdated")
    took_away(visit, tmp_path)
    assert not re.search(r"cell-|none|cold|HIV", page.url), "a label is in the address"
    visit.done()


def took_away(visit: Visit, folder: Path) -> None:
    """Every export, verified or run."""
    certificate = pg.verify(visit.taken("file", folder))
    (folder / "private-mechanism.pgm").rename(folder / "downloaded.pgm")
    assert visit.taken("toml", folder).name == "private-problem.toml"
    script = visit.taken("python", folder)
    subprocess.run([sys.executable, script.name], cwd=folder, check=True, capture_output=True)
    assert pg.verify(folder / "private-mechanism.pgm").cost == pytest.approx(certificate.cost, rel=1e-5)
    (folder / "private-mechanism.pgm").unlink()
    command_line = visit.page.text_content("#command") or ""
    subprocess.run([sys.executable, "-m", *command_line.split()], cwd=folder, check=True, capture_output=True)
    assert pg.verify(folder / "private-mechanism.pgm").bounds == certificate.bounds
    picture = visit.taken("svg", folder).read_text()
    assert picture.startswith("<svg")
    assert "private: contains the prior" in picture
    assert visit.taken("png", folder).read_bytes().startswith(b"\x89PNG")
    report = visit.taken("report", folder)
    assert "certificate" in report.read_text()
    assert "counts" not in report.read_text()
    visit.page.check("#with-counts")
    assert "counts = [" in visit.taken("report", folder).read_text()
    found = json.loads(visit.taken("certificate", folder).read_text())
    assert found["disclosure"] == "private: computed from the prior"
    assert "verification" in found
    shareable = visit.taken("shareable-toml", folder)
    assert shareable.name == "shareable-problem.toml"
    assert "uniform = true" in shareable.read_text()
    assert "shareable: " in visit.taken("shareable-report", folder).read_text()


def test_cancelling_and_turning_knobs(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address).opened("auto=0&columns=20&rows=20&cost=apart&with-epsilon=1")
    page = visit.page
    page.click("#design")
    visit.says("#progress-text", text=r"\d s")
    page.locator("#epsilon").fill("500")  # the page does not freeze meanwhile
    visit.picture("running")
    page.click("#cancel")
    visit.says("#progress-text", text="Cancelled")
    assert page.is_enabled("#design")
    page.fill("#columns", "5")
    page.fill("#rows", "4")
    page.focus("#design")  # leaving a field says that it has changed
    visit.says("#source-note", text="^20 secrets")
    page.check("#auto")
    started: list[str] = []
    page.on("request", lambda each: started.append(each.url) if each.url.endswith("/api/jobs") else None)
    page.locator("#error").fill("700")
    page.dispatch_event("#error", "change")  # said twice, designed once
    visit.says("#history tbody tr", count=1)
    visit.design(2)
    assert len(started) == 2  # the second one was asked for
    visit.done()


def test_another_secret_while_a_design_starts(browser: "Browser", address: str) -> None:
    """What the design is about is not forgotten before it has started; then it is stopped, for nobody wants it."""
    visit = Visit(browser, address).opened("auto=0&columns=6&rows=4")
    page = visit.page
    held: list[Any] = []
    page.route("**/api/jobs", lambda route: held.append(route), times=1)  # noqa: PLW0108 - a builtin is no handler
    page.click("#design")
    with page.expect_response("**/api/problems"):
        page.select_option("#person", "2")
    page.evaluate("() => fetch('/api/about').then((answer) => answer.text())")  # what came before has been read by then
    with page.expect_request("**/api/forget"):
        held[0].continue_()
    visit.says("#progress-text", text="Cancelled")
    visit.design(1)
    visit.done()


def test_what_cannot_be_is_said_and_mended(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address).opened("auto=0&source=categories&goal=use&cost-limit=20&epsilon=500")
    visit.page.click("#design")
    visit.says("#design-error", text="least possible cost")
    visit.picture("impossible")
    visit.page.click("#use-limit")
    visit.says("#history tbody tr", count=1)
    visit.page.fill("#labels", "only one")
    visit.page.dispatch_event("#labels", "change")
    visit.says("#source-error", text="at least two")
    visit.done()


ASKING = """
[space]
kind = "grid"
columns = 3
rows = 2
width = 3.0
height = 2.0
[prior]
counts = [5, 3, 1, 1, 4, 2]
[problem]
cost = "euclidean"
distance = "euclidean"
[bounds]
epsilon = 0.95123
within = 2.0
distortion = 0.31234
worst_case = true
[[adversary]]
name = "knows home"
distortion = 0.2
sharpened = { strength = 4.0, places = 2 }
"""


def test_a_problem_file_is_designed_as_it_asks(browser: "Browser", address: str, tmp_path: Path) -> None:
    """To the last digit, with its worst case, its distance and its adversary, though no knob stands there."""
    (tmp_path / "asking.toml").write_text(ASKING)
    (tmp_path / "typo.toml").write_text(ASKING.replace("epsilon", "epsilonn"))
    visit = Visit(browser, address).opened("auto=0&source=file", ready="#source-note:has-text('Choose a file')")
    page = visit.page
    assert page.is_disabled("#design")
    page.set_input_files("#document", tmp_path / "asking.toml")
    visit.says("#source-note", text="6 secrets")
    with page.expect_request("**/api/jobs") as asked:
        visit.design(1)
    body = asked.value.post_data_json or {}
    assert body["bounds"] == {"epsilon": 0.95123, "within": 2, "distortion": 0.31234, "worst_case": True}
    assert body["adversaries"] == {"file-1": None}
    assert page.is_hidden("#outdated")
    page.locator("#epsilon").press("ArrowRight")
    visit.says("#outdated", text="setting before")
    page.set_input_files("#document", tmp_path / "typo.toml")
    visit.says("#source-error", text="epsilonn")
    assert page.is_disabled("#design")  # not the problem that was there before
    visit.done(refusals=1)


def test_what_is_asked_wrongly_is_said_in_sentences(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address).opened(
        "auto=0&columns=5&rows=4&cost-case=cap&goal=use&cost-limit=1000&worst-cost=0.05&against=side"
    )
    page = visit.page
    assert page.locator("#presets input:checked").get_attribute("value") == "side"  # from the address
    page.click("#design")
    visit.says("#design-error", text="least possible cost of the worst secret")
    page.click("#use-limit")
    visit.says("#history tbody tr", count=1)
    page.fill("#worst-cost", "")
    page.dispatch_event("#worst-cost", "change")
    page.click("#design")
    visit.says("#design-error", text="must be a number")
    page.fill("#columns", "-3")
    page.dispatch_event("#columns", "change")
    visit.says("#source-error", text="whole numbers from 1 to 60")
    page.check("input[name=source][value=categories]", force=True)
    for wrong in ("a, -5\nb, 3", "a, 1,5\nb", "a, x\nb", "a, 5 %\nb"):
        page.fill("#labels", wrong)
        page.dispatch_event("#labels", "change")
        visit.says("#source-error", text="Line 1: write a name")
    visit.done()


def test_turning_while_it_designs_marks_the_result_old(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address).opened("auto=0&columns=6&rows=4")
    visit.page.click("#design")
    visit.page.locator("#epsilon").press("ArrowRight")
    visit.says("#history tbody tr", count=1)
    visit.says("#outdated", text="setting before")
    visit.done()


def test_sliders_say_what_they_mean(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address).opened("auto=0&columns=6&rows=4&error=1000")
    spoken = visit.page.get_attribute("#error", "aria-valuetext") or ""
    assert re.search(r"\d\skm\. ⚠\sThey learn next to nothing", spoken)
    assert "per km" in (visit.page.get_attribute("#epsilon", "aria-valuetext") or "")
    visit.done()


def test_points_as_asked_lie_on_top(browser: "Browser", address: str) -> None:
    """Where the best with ε and without it are at the same place, a click takes the one that keeps ε."""
    visit = Visit(browser, address).opened("auto=0&source=categories")
    visit.page.click("#draw-frontier")
    visit.says("#frontier-status", text=r"^\d+ points")
    visit.page.wait_for_selector("#cancel-frontier", state="hidden")
    visit.page.locator("#frontier .point[aria-label^='the best possible']").last.click()
    visit.says("#history tr.current", text=r"wrong, ε")
    assert visit.page.is_hidden("#outdated")  # the knobs have taken the point, too
    visit.done()


def test_own_files(browser: "Browser", address: str, tmp_path: Path) -> None:
    hours = "".join(f"ann,2024-05-01T{h:02}:00:00Z,52.{h % 5}1,5.{h % 3}2\n" for h in range(24))
    (tmp_path / "mine.csv").write_text("user,time,lat,lon\n" + hours)
    visit = Visit(browser, address).opened()
    page = visit.page
    page.check("input[name=source][value=own]", force=True)
    page.set_input_files("#traces", tmp_path / "mine.csv")
    visit.says("#traces-note", text="24 rows read")
    visit.design(1)
    visit.picture("own")
    assert "ann" not in page.url
    mechanism = visit.taken("file", tmp_path)
    page.check("input[name=source][value=file]", force=True)
    page.set_input_files("#document", mechanism)
    visit.says("#history tbody tr", text="from a file")
    page.set_input_files("#document", Path(__file__).parents[2] / "examples" / "home.toml")
    visit.says("#epsilon-out", text="0.9")
    visit.design(1)
    page.set_input_files("#document", tmp_path / "mine.csv")
    visit.says("#source-error", text="not valid TOML")
    visit.done(refusals=1)


@pytest.mark.parametrize("look", [{}, {"viewport": {"width": 360, "height": 740}}], ids=["desktop", "phone"])
def test_policies_for_weeks(browser: "Browser", address: str, look: dict[str, Any]) -> None:
    visit = Visit(browser, address, **look).opened("auto=0&policy-budget=60")
    page = visit.page
    page.click("#compare-policies")
    visit.says("#policies tbody tr", count=6)
    visit.says("#policies tr.current", text="frequent places")
    visit.says("#policies-reason", text="cheapest policy that keeps home")
    page.wait_for_function("() => document.querySelector('#policies-figure').naturalWidth > 0")
    page.select_option("#matters", "trips")
    visit.says("#policies-reason", text="cheapest policy that keeps trips")
    visit.picture(f"policies-{len(look)}")
    page.check("input[name=source][value=ages]", force=True)
    page.wait_for_selector("#policies-card", state="hidden")
    visit.done()


EXPORTS = (
    "file",
    "device",
    "certificate",
    "toml",
    "python",
    "report",
    "svg",
    "png",
    "shareable-toml",
    "shareable-report",
)


def test_a_failed_upload_leaves_nothing_of_the_person_before(browser: "Browser", address: str, tmp_path: Path) -> None:
    hours = "".join(f"ann,2024-05-01T{h:02}:00:00Z,52.{h % 5}1,5.{h % 3}2\n" for h in range(24))
    (tmp_path / "ann.csv").write_text("user,time,lat,lon\n" + hours)
    (tmp_path / "ben.csv").write_text("this is no table of positions\n")
    (tmp_path / "ben.toml").write_text("[space]\nkind = 1\n")
    visit = Visit(browser, address).opened()
    page = visit.page
    for source, field, bad in (("own", "#traces", "ben.csv"), ("file", "#document", "ben.toml")):
        page.check("input[name=source][value=own]", force=True)
        page.set_input_files("#traces", tmp_path / "ann.csv")
        visit.says("#traces-note", text="24 rows read")
        with page.expect_response("**/recipe") as recipe:
            visit.design(1)
        mechanism = recipe.value.url.removesuffix("/recipe")
        assert page.is_enabled("[data-export=file]")
        page.check(f"input[name=source][value={source}]", force=True)
        page.set_input_files(field, tmp_path / bad)
        visit.says("#source-error", text=r"\w+")
        for export in EXPORTS:
            assert page.is_disabled(f"[data-export={export}]")
        assert page.is_disabled("#design")
        assert page.is_disabled("#draw-frontier")
        for emptied in ("#picture", "#python", "#command", "#frontier", "#history tbody", "#presets", "#error-out"):
            assert page.text_content(emptied) == ""
        assert "Design something first" in (page.text_content("#explanation") or "")
        if source == "own":
            assert page.text_content("#user") == ""
        visit.picture(f"failed-upload-{source}")
        page.wait_for_function("async (url) => (await fetch(`${url}/file`)).status === 404", arg=mechanism)  # nor there
        page.set_input_files("#traces", [])
    visit.context.close()
    assert visit.elsewhere == []


def test_what_is_asked_has_two_digits(browser: "Browser", address: str) -> None:
    """The ranges of errors and costs are computed from the prior: more digits of them would tell it."""
    visit = Visit(browser, address).opened("auto=0&columns=6&rows=4&error=537")
    with visit.page.expect_request("**/api/jobs") as asked:
        visit.design(1)
    distortion = (asked.value.post_data_json or {})["bounds"]["distortion"]
    assert distortion == float(f"{distortion:.1e}")
    visit.done()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone(browser: "Browser", address: str, scheme: Any) -> None:
    phone = {"width": 390, "height": 844}
    visit = Visit(browser, address, viewport=phone, color_scheme=scheme, has_touch=True).opened(
        "auto=0&columns=6&rows=4"
    )
    visit.design(1)
    assert visit.page.get_attribute("html", "data-theme") == scheme
    visit.picture(f"phone-{scheme}")
    visit.page.click("#theme")
    assert visit.page.get_attribute("html", "data-theme") != scheme
    visit.done()


def test_with_the_keyboard_alone(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address).opened("auto=0&columns=6&rows=4")
    page = visit.page
    page.focus("#design")
    page.keyboard.press("Enter")
    visit.says("#history tbody tr", count=1)
    page.focus("#picture")
    for key in ("Home", "ArrowRight", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    visit.says("#picture-text", text="outputs for cell-7;")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, textarea, [role=button], canvas")]
            .filter((each) => !each.hidden && !(each.textContent.trim() || each.labels?.length
                || each.getAttribute("aria-label"))).map((each) => each.id)"""
    )
    assert nameless == []
    visit.done()


def test_closing_the_page_forgets(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address).opened("auto=0&columns=6&rows=4")
    visit.design(1)
    with visit.page.expect_request("**/api/mechanisms/*/answers") as asked:
        visit.page.click("#picture #cell-at-2")
    held = asked.value.url
    other = visit.context.new_page()
    other.goto(f"{address}#auto=0")
    visit.page.close()
    ask = """async (url) => (await fetch(url, {method: "POST", body: '{"secret": "cell-2"}',
        headers: {"Content-Type": "application/json"}})).status"""
    other.wait_for_function(f"async (url) => (await ({ask})(url)) === 404", arg=held, polling=100)
    visit.context.close()
    assert visit.elsewhere == []


def test_what_the_server_forgot_is_loaded_again(browser: "Browser", address: str) -> None:
    """As after an hour without use."""
    visit = Visit(browser, address)
    with visit.page.expect_response("**/api/problems") as told:
        visit.opened("auto=0&columns=6&rows=4")
    forgotten = """async (id) => (await fetch("/api/forget", {method: "POST", body: JSON.stringify({ids: [id]}),
        headers: {"Content-Type": "application/json"}})).json()"""
    assert visit.page.evaluate(forgotten, told.value.json()["id"]) == {"forgotten": 1}
    visit.page.click("#design")
    visit.says("#source-note", text="was loaded again")
    visit.design(1)
    visit.done(refusals=1)


def test_a_page_with_a_token(browser: "Browser") -> None:
    token = "a-token-of-enough-characters"
    with command(token=token) as (url, _):
        visit = Visit(browser, url)
        visit.page.goto(f"{url}#auto=0")
        visit.page.fill("#token", token)
        visit.page.keyboard.press("Enter")
        visit.page.wait_for_selector("#picture .cell")
        assert token not in visit.page.url
        visit.context.close()
        assert visit.elsewhere == []
        assert all("401" in each for each in visit.complaints)  # the browser notes the first refusal


def test_a_tab_that_is_left_on_does_not_grow(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address).opened("auto=0&source=categories")
    page = visit.page
    session = visit.context.new_cdp_session(page)
    session.send("Performance.enable")

    def held() -> dict[str, float]:
        page.request_gc()
        metrics = session.send("Performance.getMetrics")["metrics"]
        return {each["name"]: each["value"] for each in metrics}

    sizes = []
    for number in range(40):
        page.locator("#epsilon").fill(str(500 + 5 * number))
        visit.design(min(number + 1, 12))
        epsilon = (page.text_content("#epsilon-out") or "").split(";")[0]
        assert epsilon
        visit.says("#history tr.current", text=rf"ε\s{epsilon}")
        page.click(f"#picture #cell-at-{number % 6}")
        if number in (14, 39):
            sizes.append(held())
    early, late = sizes
    assert late["Nodes"] < 1.5 * early["Nodes"]
    assert late["JSHeapUsedSize"] < early["JSHeapUsedSize"] + 2e6
    visit.done()


def test_points(browser: "Browser", address: str, tmp_path: Path) -> None:
    """Between any two points: design, outputs of a clicked point, a guess, samples, exports; the file is read again."""
    visit = Visit(browser, address).opened("auto=0&secrets=points&columns=6&rows=4", "#picture .dot")
    page = visit.page
    visit.says("#source-note", text="Any point of 15")
    visit.says("#epsilon-out", text="between any two points")
    assert page.is_hidden("#cost-label")
    assert page.is_hidden("#within-label")
    assert page.is_hidden("#frontier-card")
    visit.picture("points-1-loaded")
    visit.design(1)
    visit.says("#explanation", text="This holds between any two points")
    visit.says("#history tr.current", text="per km between any two points")
    page.locator("#picture .ground").click(position={"x": 200, "y": 120}, force=True)
    visit.says("#picture-text", text="The outputs for the point")
    visit.says("#picture .dot", count=24)
    page.click("#sample")
    visit.says("#picture .sample", count=50)
    visit.picture("points-2-samples")
    said = page.text_content("#picture-text")
    page.focus("#picture")
    for key in ("ArrowRight", "ArrowUp", "Enter"):
        page.keyboard.press(key)
    visit.says("#picture .sample", count=0)
    assert page.text_content("#picture-text") != said
    visit.view("beliefs")
    visit.says("#picture-text", text="Their best guess is")
    visit.picture("points-3-belief")
    file = visit.taken("file", tmp_path)
    certificate = pg.verify(file)
    assert isinstance(certificate, pg.points.PointCertificate)
    assert visit.taken("toml", tmp_path).name == "private-problem.toml"
    script = visit.taken("python", tmp_path)
    file.rename(tmp_path / "downloaded.pgm")
    subprocess.run([sys.executable, script.name], cwd=tmp_path, check=True, capture_output=True)
    assert pg.verify(file).cost == pytest.approx(certificate.cost, rel=1e-3)
    assert visit.taken("svg", tmp_path).read_text().startswith("<svg")
    assert "between any two points" in visit.taken("report", tmp_path).read_text()
    assert page.is_disabled("[data-export=shareable-toml]")
    assert not re.search(r"\d\.\d{3}", page.url), "a coordinate is in the address"
    page.check("input[name=source][value=file]", force=True)
    page.set_input_files("#document", tmp_path / "downloaded.pgm")
    visit.says("#history tbody tr", text="from a file")
    page.locator("#picture .ground").click(position={"x": 300, "y": 150}, force=True)
    visit.says("#picture-text", text="The outputs for the point")
    page.click("#sample")
    visit.says("#picture .sample", count=50)
    visit.done()


@pytest.mark.parametrize("look", [{"viewport": {"width": 390, "height": 800}}, {"color_scheme": "dark"}])
def test_points_on_a_phone_and_in_the_dark(browser: "Browser", address: str, look: dict[str, Any]) -> None:
    visit = Visit(browser, address, **look).opened("auto=0&secrets=points&columns=6&rows=4", "#picture .dot")
    visit.design(1)
    visit.view("outputs")
    visit.says("#picture-text", text="The outputs for the point")
    visit.picture(f"points-{'dark' if 'color_scheme' in look else 'phone'}")
    visit.done()
