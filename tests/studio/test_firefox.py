"""The page in Debian's Firefox: from nothing to an answer, a day of outputs and an export, without a complaint."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import privacygames as pg
from firefox import IN_FIREFOX, firefox
from studio_server import command
from waiting import wait_until

pytestmark = IN_FIREFOX

SIZES = {"desktop": (1280, 900), "phone": (360, 740)}


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with command() as (url, _):
        yield url


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_from_nothing_to_every_day(address: str, tmp_path: Path, size: str, dark: bool) -> None:
    with firefox(address, dark=dark) as page:
        page.resize(*SIZES[size])
        page.open(f"{address}#auto=0&columns=6&rows=4&secrets=points")
        page.says("#source-note", "Any point of 15")
        assert page.call("() => document.documentElement.dataset.theme") == ("dark" if dark else "light")
        page.says("#version", r"\d+\.\d+")
        page.click("#design")
        page.says("#explanation", "This holds between any two points")
        page.type("#truth-position", "52.09, 5.12")
        page.click("#use-answer")
        latitude, longitude = page.says("#answer-text", r"^5\d\.\d+, 5\.\d+$").split(", ")
        assert 52.0541 < float(latitude) < 52.126
        assert 5.0105 < float(longitude) < 5.2301
        page.click("#copy-answer")
        page.says("#answer-copied", "Copied")
        page.picture(f"firefox-{size}-{'dark' if dark else 'light'}-answer")
        page.choose("input[name=use][value=daily]", "daily")
        page.says("#ledger-room", "room for 8 outputs")
        page.type("#ledger-name", "my phone")
        page.click("#create-ledger")
        page.says("#ledger-left-text", "Room for 8 more outputs")
        page.type("#truth-position", "52°05.4′N 5°07′12″E")
        page.click("#release")
        page.says("#ledger-left-text", "Room for 7 more outputs")
        page.says("#ledger-history tbody", r"^1\w")
        page.click("#pause")
        page.says("#ledger-paused", "paused")
        page.picture(f"firefox-{size}-{'dark' if dark else 'light'}-daily")
        mechanism = tmp_path / "taken.pgm"
        mechanism.write_bytes(page.taken("[data-export=file]", "private-mechanism.pgm"))
        assert pg.verify(mechanism).bounds.epsilon is not None
        page.done()


def test_positions_that_are_refused(address: str) -> None:
    with firefox(address) as page:
        page.open(f"{address}#auto=0&columns=6&rows=4")
        page.says("#source-note", "secrets")
        page.click("#design")
        page.says("#explanation", "best guess")
        for text, said in (
            ("48.1, 11.6", "outside of the map"),
            ("5.12, 52.09", "exchanged"),
            ("home", "cannot be read"),
        ):
            page.type("#truth-position", text)
            page.click("#use-answer")
            page.says("#use-error", said)
        assert "52.09" not in page.call("() => location.href")
        page.done()


def test_what_is_chosen_on_the_map_is_used(address: str) -> None:
    with firefox(address) as page:
        page.open(f"{address}#auto=0&columns=6&rows=4")
        page.says("#source-note", "secrets")
        page.click("#design")
        page.says("#explanation", "best guess")
        page.click("#cell-at-9")
        wait_until(lambda: page.call("() => document.querySelector('#truth-position').value"))
        page.click("#use-answer")
        page.says("#answer-text", r"^5\d\.\d+, 5\.\d+$")
        page.done()
