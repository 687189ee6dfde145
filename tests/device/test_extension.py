"""The browser extension in Debian's Chromium: pages that try tricks see outputs of the ledger, and never more.

Every site already has the browser's own permission, and every page's browser knows the true position: whatever passes
by the extension is told it. ``test_the_tricks_find_the_true_position_without_the_extension`` shows that they work.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import privacygames as pg
from extension_browser import (
    ASK,
    CHROMIUM,
    EXTENSION,
    TRUE,
    Browser,
    ask,
    protected,
    sites,
)
from waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium here: apt-get install chromium"),
    pytest.mark.skipif(not EXTENSION.exists(), reason="the extension is not built: make device"),
]

HOSTS = tuple(f"{name}.localhost" for name in ("a", "b", "www.c", "m.c", "d", "e", "f"))
DENIED, UNAVAILABLE, TIMEOUT = 1, 2, 3
HERE = (TRUE["latitude"], TRUE["longitude"])
HOUR = 3_600_000

EARLY = f"<!doctype html><head><script>window.early = ({ASK})()</script></head><body>early</body>"
CAPTURED = """<!doctype html><head><script>
  const { getCurrentPosition } = Geolocation.prototype, { geolocation } = navigator;
  window.captured = () => new Promise((resolve) => Reflect.apply(getCurrentPosition, geolocation,
    [({ coords }) => resolve([coords.latitude, coords.longitude]), ({ code }) => resolve(code)]));
</script></head><body>captured</body>"""
FORBIDDEN = {"Permissions-Policy": "geolocation=()"}
PAGES = {
    "/early": (EARLY, {}),
    "/captured": (CAPTURED, {}),
    "/forbidden": ("<!doctype html><body>forbidden</body>", FORBIDDEN),
    "/strict": ("<!doctype html><body>strict</body>", {"Content-Security-Policy": "default-src 'none'"}),
    "/sandbox": (EARLY, {"Content-Security-Policy": "sandbox allow-scripts"}),
    "/inner": (f"<!doctype html><script>({ASK})().then((answer) => parent.postMessage(answer, '*'))</script>", {}),
}

SCRIPTS = Path(__file__).parent
POISON, RECORDED, SHAPES = ((SCRIPTS / f"{name}.js").read_text() for name in ("poison", "recorded", "shapes"))
PLATFORM_TESTS = (SCRIPTS / "platform_tests.js").read_text()
TRICK_SCRIPT = (SCRIPTS / "tricks.js").read_text()
TRICKS = re.findall(r'^  "(.+)": ', TRICK_SCRIPT, re.MULTILINE)
"""What a page tries; each gives a position, or the code of an error."""


def attempt(page: Any, trick: str) -> Any:
    answer = page.evaluate(f"([ASK, trick]) => {{ {TRICK_SCRIPT}; return TRICKS[trick](); }}", [ASK, trick])
    return tuple(answer) if isinstance(answer, list) else answer


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[int, list[tuple[str, str]]]]:
    with sites(PAGES) as made:
        yield made


@pytest.fixture
def browser(driver: Any, server: tuple[int, Any], tmp_path: Path) -> Iterator[Browser]:
    made = protected(driver, tmp_path, server[0], HOSTS)
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared(driver: Any, server: tuple[int, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One browser for tests that leave nothing behind but what a site was told."""
    made = protected(driver, tmp_path_factory.mktemp("shared"), server[0], HOSTS)
    yield made
    made.close()


def later(browser: Browser, milliseconds: int) -> None:
    """Sets the service worker's clock forward; its timers run at once."""
    browser.worker.evaluate(
        """(shift) => {
          globalThis.shift = (globalThis.shift ?? 0) + shift;
          globalThis.realNow ??= Date.now;
          Date.now = () => realNow() + globalThis.shift;
        }""",
        milliseconds,
    )


def test_the_tricks_find_the_true_position_without_the_extension(
    driver: Any, server: tuple[int, Any], tmp_path: Path
) -> None:
    bare = Browser(driver, tmp_path, server[0], HOSTS, None)
    answers = {trick: attempt(bare.visit("a.localhost"), trick) for trick in TRICKS}
    bare.close()
    assert [trick for trick, answer in answers.items() if answer == HERE] == [
        trick for trick in TRICKS if trick not in NOT_EVEN_WITHOUT
    ]


NOT_EVEN_WITHOUT = {"a data: frame", "a frame of another site without allow", "deleting the override"}
"""Tricks that a browser without the extension refuses as well."""


@pytest.mark.parametrize("trick", TRICKS)
def test_no_trick_finds_more_than_the_one_output(shared: Browser, trick: str) -> None:
    page = shared.visit("a.localhost")
    answer = attempt(page, trick)
    outputs = shared.told("a.localhost")
    assert answer in [*outputs, DENIED, UNAVAILABLE]
    assert len(outputs) <= 1
    assert HERE not in outputs
    assert shared.told("b.localhost") == []  # what a frame asks for is charged to the page
    page.close()


def test_a_flood_two_tabs_and_reloads_are_told_one_output(browser: Browser) -> None:
    first, second = browser.visit("a.localhost"), browser.visit("a.localhost", "/strict")
    flood = f"""async () => {{
      const seen = [];
      const note = ({{ coords }}) => seen.push([coords.latitude, coords.longitude]);
      for (let index = 0; index < 2000; index += 1) navigator.geolocation.watchPosition(note);
      const answers = await Promise.all(Array.from({{ length: 500 }}, () => ({ASK})()));
      return [...new Set([...answers, ...seen].map((answer) => JSON.stringify(answer)))];
    }}"""
    answers = {*first.evaluate(flood), *second.evaluate(flood)}
    first.reload()
    [output] = browser.told("a.localhost")
    assert answers == {json.dumps(output, separators=(",", ":"))}
    assert ask(first) == output != HERE
    assert browser.asked() == 1


def test_hosts_of_one_owner_share_an_account_and_other_sites_have_their_own(browser: Browser) -> None:
    one, other = (ask(browser.visit(host)) for host in ("www.c.localhost", "m.c.localhost"))
    assert [one] == [other] == browser.told("c.localhost")
    assert ask(browser.visit("d.localhost")) == browser.told("d.localhost")[0] != one


def test_an_inline_script_and_captured_functions_are_answered_too(browser: Browser) -> None:
    early = browser.visit("a.localhost", "/early").evaluate("early")
    captured = browser.visit("a.localhost", "/captured").evaluate("captured()")
    assert [tuple(early)] == [tuple(captured)] == browser.told("a.localhost")


def test_coming_back_to_a_page_asks_for_nothing_new(browser: Browser) -> None:
    page = browser.visit("a.localhost", "/captured")
    output = ask(page)
    page.goto(f"http://b.localhost:{browser.port}/")
    page.go_back()
    assert tuple(page.evaluate("captured()")) == ask(page) == output
    assert browser.told("a.localhost") == [output]
    assert browser.told("b.localhost") == []


def test_never_over_budget_and_then_the_last_output_is_repeated(browser: Browser) -> None:
    browser.command(command="change", changes={"answersPerSite": 3, "holdMinutes": 60})
    page = browser.visit("a.localhost")
    answers = []
    for hour in range(10):
        browser.place(latitude=TRUE["latitude"] + hour / 10)
        answers.append(ask(page))
        later(browser, HOUR)
    assert len(browser.told("a.localhost")) == 3 == len(set(answers))
    assert answers[3:] == [answers[2]] * 7  # however far the user has moved
    later(browser, 24 * HOUR)
    assert ask(page) not in answers
    assert ask(browser.visit("b.localhost")) in browser.told("b.localhost")


def test_all_sites_together_have_a_budget_too(browser: Browser) -> None:
    browser.command(command="change", changes={"answersInAll": 2})
    answers = [ask(browser.visit(host)) for host in ("a.localhost", "b.localhost", "d.localhost")]
    assert answers[2] == UNAVAILABLE
    assert browser.told("d.localhost") == []


def test_a_device_without_position_repeats_the_last_output_or_fails(browser: Browser) -> None:
    browser.place(fails=True)
    page = browser.visit("a.localhost")
    assert ask(page) == UNAVAILABLE
    browser.place()
    output = ask(page)
    browser.place(fails=True)
    later(browser, 2 * HOUR)
    assert ask(page) == output
    assert browser.told("a.localhost") == [output]


def stop_worker(browser: Browser) -> None:
    """Stops the service worker as the browser does, whenever it likes."""
    assert browser.panel is not None
    states: list[str] = []
    devtools = browser.context.new_cdp_session(browser.panel)
    devtools.on(
        "ServiceWorker.workerVersionUpdated",
        lambda event: states.extend(each["runningStatus"] for each in event["versions"]),
    )
    devtools.send("ServiceWorker.enable")
    devtools.send("ServiceWorker.stopAllWorkers")
    wait_until(lambda: browser.run("() => true") and "stopped" in states)
    devtools.detach()


def test_a_worker_that_is_stopped_in_mid_request_neither_draws_twice_nor_tells_more(browser: Browser) -> None:
    page = browser.visit("a.localhost")
    browser.place(held=True)
    page.evaluate(f"() => {{ window.answer = ({ASK})() }}")
    wait_until(lambda: browser.asked() == 1)
    stop_worker(browser)
    browser.place()
    answer = tuple(page.evaluate("answer"))
    assert [answer] == browser.told("a.localhost")
    stop_worker(browser)
    assert ask(page) == answer
    assert browser.told("a.localhost") == [answer]


def test_patched_builtins_see_neither_the_true_position_nor_a_message_of_the_bridge(shared: Browser) -> None:
    page = shared.visit("e.localhost")
    page.evaluate(POISON)
    page.evaluate("new Promise((resolve) => setTimeout(resolve, 0, 123.25))")
    page.evaluate(
        """() => new Promise((resolve) => navigator.geolocation.getCurrentPosition((position) => {
          window.before = "";
          for (const number in seen) before += number + " ";
          window.answer = position.coords.latitude;
          resolve();
        }))"""
    )
    [(latitude, _)] = shared.told("e.localhost")
    assert page.evaluate("answer") == latitude
    before = page.evaluate("before").split()
    assert "123.25" in before  # the spies do see what passes them
    assert not {str(latitude), str(TRUE["latitude"])} & {*before}


def test_a_page_that_takes_the_port_may_ask_for_its_own_output_only(shared: Browser) -> None:
    """A frame's window lives on when its first address loads, so the extension's script uses what a page puts there."""
    ask(shared.visit("a.localhost"))
    answers = shared.visit("f.localhost").evaluate(
        """async () => {
          const made = Object.assign(document.createElement("iframe"), { src: "/x" });
          document.body.append(made);
          const { MessageChannel } = made.contentWindow;
          const taken = new Promise((resolve) => {
            made.contentWindow.MessageChannel = function () {
              const channel = new MessageChannel();
              resolve(channel.port1);
              return channel;
            };
          });
          const port = await taken;
          await new Promise((resolve) => { made.onload = resolve; });
          const answers = [];
          return new Promise((resolve) => {
            port.onmessage = ({ data }) => answers.push(data) === 2 && resolve(answers);
            const forged = [3, "position", { host: "a.localhost", origin: "http://a.localhost" }];
            const questions = ["x", null, {}, [1], ["position"], [2, "site"], forged, [4, "mode"]];
            for (const question of questions) port.postMessage(question);
          });
        }"""
    )
    [output] = shared.told("f.localhost")
    assert sorted(answer[:2] for answer in answers) == [[3, "told"], [4, "mode"]]
    assert [tuple(answer[2:4]) for answer in answers if answer[1] == "told"] == [output]
    assert output not in shared.told("a.localhost")


def test_no_page_can_load_or_message_the_extension(shared: Browser) -> None:
    page = shared.visit("f.localhost")
    address = shared.worker.url.removesuffix("background.js")
    outcome = page.evaluate(
        """async (address) => [
          await fetch(address + "manifest.json").then(() => "read", () => "refused"),
          await new Promise((resolve) => Object.assign(document.body.appendChild(document.createElement("script")),
            { src: address + "override.js", onload: () => resolve("ran"), onerror: () => resolve("refused") })),
          typeof globalThis.chrome?.runtime?.sendMessage,
        ]""",
        address,
    )
    assert outcome == ["refused", "refused", "undefined"]


def test_policies_and_choices_are_obeyed(browser: Browser) -> None:
    assert ask(browser.visit("a.localhost", "/forbidden")) == DENIED
    assert browser.visit("a.localhost", "/sandbox").evaluate("early") == DENIED
    assert browser.told("a.localhost") == []
    page = browser.visit("a.localhost")
    state = "navigator.permissions.query({ name: 'geolocation' }).then(({ state }) => state)"
    assert page.evaluate(state) == "granted"
    assert browser.command(command="mode", host="a.localhost", mode="refuse")["mode"] == "refuse"
    assert (ask(page), page.evaluate(state)) == (DENIED, "denied")
    assert browser.command(command="mode", host="a.localhost", mode="exact")["mode"] == "exact"
    assert (ask(page), page.evaluate(state)) == (HERE, "granted")
    assert ask(browser.visit("b.localhost")) != HERE
    assert browser.command(command="mode", host="a.localhost", mode=None)["mode"] == "protected"
    assert attempt(page, "a frame before it loads") == DENIED
    assert ask(page) in browser.told("a.localhost")
    assert browser.command(command="change", changes={"standard": "refuse"})["standard"] == "refuse"
    assert ask(browser.visit("d.localhost")) == DENIED


def test_nothing_is_asked_of_any_host(driver: Any, tmp_path: Path) -> None:
    with sites(PAGES) as (port, requested):
        made = protected(driver, tmp_path, port, HOSTS)
        elsewhere: list[str] = []
        made.context.on("request", lambda request: elsewhere.append(request.url))
        page = made.visit("a.localhost")
        ask(page)
        made.open(f"{made.worker.url.removesuffix('background.js')}popup.html?host=a.localhost").wait_for_selector(
            "#told li"
        )
        made.close()
    assert {host for host, _ in requested} == {f"a.localhost:{port}"}
    assert {url.split("/")[0] for url in elsewhere} <= {"http:", "chrome-extension:"}
    assert {path for _, path in requested} <= {"/", "/favicon.ico"}


def test_shapes_texts_and_errors_are_the_browsers_own(
    driver: Any, server: tuple[int, Any], tmp_path: Path, shared: Browser
) -> None:
    bare = Browser(driver, tmp_path, server[0], HOSTS, None)
    scripts = (SHAPES, RECORDED)
    native = [json.loads(bare.visit("a.localhost").evaluate(script)) for script in scripts]
    bare.close()
    page = shared.visit("a.localhost")
    assert [json.loads(page.evaluate(script)) for script in scripts] == native


CITY = (16.2, 48.1, 16.5, 48.3)


@pytest.fixture(scope="module")
def city_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mechanism for the cells of a city, as a device reads it."""
    file = tmp_path_factory.mktemp("city") / "vienna.pgd"
    problem = pg.Problem(pg.Prior.uniform(pg.Grid(6, 6, box=CITY)))
    pg.device.write(file, pg.baselines.exponential(problem, epsilon=1.0))
    return file


def choose_file(browser: Browser, file: Path) -> None:
    assert browser.panel is not None
    browser.panel.set_input_files("#file", file)


def test_an_imported_mechanism_is_verified_and_used(browser: Browser, city_file: Path) -> None:
    choose_file(browser, city_file)
    assert browser.panel is not None
    browser.panel.wait_for_selector("#progress:has-text('Verified')")
    latitude, longitude = ask(browser.visit("a.localhost"))
    steps = ((longitude - CITY[0]) / 0.05 - 0.5, (latitude - CITY[1]) / (0.2 / 6) - 0.5)
    assert all(abs(step - round(step)) < 1e-6 and 0 <= round(step) < 6 for step in steps)  # the centre of a cell
    browser.place(latitude=-33.9, longitude=151.2)  # outside: the nearest cell is protected, and nobody is told
    assert ask(browser.visit("b.localhost")) in browser.told("b.localhost")


def test_a_damaged_mechanism_is_refused_and_changes_nothing(browser: Browser, city_file: Path, tmp_path: Path) -> None:
    content = bytearray(city_file.read_bytes())
    content[len(content) // 2] ^= 1
    damaged = tmp_path / "damaged.pgd"
    damaged.write_bytes(content)
    choose_file(browser, damaged)
    assert browser.panel is not None
    browser.panel.wait_for_selector("#import-error:not([hidden])")
    assert browser.panel.locator("#mechanisms .mechanism").count() == 1
    assert browser.command(command="overview")["settings"]["active"] is None


def test_a_ledger_that_cannot_be_written_tells_nothing(browser: Browser) -> None:
    page = browser.visit("a.localhost")
    for fault in (
        "() => { IDBObjectStore.prototype.put = () => { throw new DOMException('full', 'QuotaExceededError'); }; }",
        "() => { IDBDatabase.prototype.transaction = () => { throw new DOMException('gone', 'InvalidStateError'); }; }",
        "() => { IDBFactory.prototype.open = () => { throw new DOMException('corrupt', 'UnknownError'); }; }",
    ):
        browser.worker.evaluate(fault)
        assert ask(page) == UNAVAILABLE
        stop_worker(browser)
        assert browser.told("a.localhost") == []
    output = ask(page)
    assert browser.told("a.localhost") == [output]


def test_a_private_window_without_the_extension_is_refused(driver: Any, tmp_path: Path) -> None:
    report = f"<!doctype html><script>({ASK})().then((answer) => fetch(`/told?${{JSON.stringify(answer)}}`))</script>"
    with sites({"/report": (report, {})}) as (port, requested):
        made = protected(driver, tmp_path, port, HOSTS)
        made.run("url => chrome.windows.create({ incognito: true, url })", f"http://a.localhost:{port}/report")
        wait_until(lambda: made.run("() => true") and any(path.startswith("/told") for _, path in requested))
        made.close()
    assert [path for _, path in requested if path.startswith("/told")] == [f"/told?{DENIED}"]


ON_PURPOSE = {"success", "watchPosition-accuracyMode (precise)"}
"""Tests of the W3C that fail because a protected position is not the true one."""


def test_the_tests_of_the_w3c_pass_but_for_the_true_position(shared: Browser) -> None:
    results = shared.visit("d.localhost").evaluate(PLATFORM_TESTS, TRUE)
    assert {name for name, passed in results.items() if passed is not True} == ON_PURPOSE
    assert len(results) == 21


def test_an_insecure_page_is_refused(browser: Browser) -> None:
    page = browser.open(f"http://insecure.test:{browser.port}/")
    assert not page.evaluate("isSecureContext")
    assert ask(page) == DENIED
    assert browser.told("insecure.test") == []


DAYS, MINUTES = 14, 60_000
ASKS = [(day * 1440 + day * 7 + index * 61) * MINUTES for day in range(DAYS) for index in range(14)]
"""Milliseconds from the first question: fourteen a day, a little later every day."""


def paid_for(times: list[int], hold: int, per_day: int) -> list[bool]:
    """Whether each question gets a new draw, by the rule as it is documented."""
    charges: list[int] = []
    for time in times:
        within = [charge for charge in charges if time - charge < 24 * HOUR]
        if (not charges or time - charges[-1] >= hold) and len(within) < per_day:
            charges.append(time)
    return [time in charges for time in times]


def test_a_fortnight_is_attacked_with_the_success_that_the_policy_has_in_python(
    browser: Browser, city_file: Path
) -> None:
    """A home and a work place, asked all day: when draws happen, and what attacks make of them.

    The same mechanism and rule are replayed two hundred times in Python; the extension's outputs lie among the replays.
    """
    choose_file(browser, city_file)
    assert browser.panel is not None
    browser.panel.wait_for_selector("#progress:has-text('Verified')")
    browser.worker.evaluate("() => { globalThis.setTimeout = (run) => queueMicrotask(run); }")
    mechanism, page = pg.device.read(city_file), browser.visit("a.localhost")
    home, work = (16.3738, 48.2082), (16.44, 48.14)
    places = [home if index in range(3) or index > 10 else work for _ in range(DAYS) for index in range(14)]
    expected, now, answers = paid_for(ASKS, HOUR, 6), 0, list[Any]()
    for time, (longitude, latitude) in zip(ASKS, places, strict=True):
        later(browser, time - now)
        now = time
        browser.place(longitude=longitude, latitude=latitude)
        answers.append(ask(page))
    told = browser.told("a.localhost")[::-1]
    drawn = [index for index, is_drawn in enumerate(expected) if is_drawn]
    assert len(told) == len(drawn) == browser.asked()
    assert [answers[index] for index in drawn] == told
    repeats = [told[sum(expected[: index + 1]) - 1] for index in range(len(answers))]
    assert answers == repeats

    def error(outputs: list[tuple[float, float]], attack: Any) -> float:
        """Kilometres between the home and what an attack takes for it."""
        longitude, latitude = attack(np.array(outputs))
        return float(np.hypot((longitude - home[0]) * 74.1, (latitude - home[1]) * 111.2))

    at_home = [index for index in drawn if places[index] == home]
    ours = [told[drawn.index(index)][::-1] for index in at_home]
    for attack in (pg.place_attacks.mean_attack, most_common):
        replays = sorted(error([mechanism.sample(home) for _ in at_home], attack) for _ in range(200))
        assert replays[0] - 0.5 <= error(ours, attack) <= replays[-1] + 0.5


def most_common(outputs: Any) -> Any:
    places, counts = np.unique(outputs.round(6), axis=0, return_counts=True)
    return places[counts.argmax()]
