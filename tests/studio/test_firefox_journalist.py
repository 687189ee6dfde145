"""A journalist's recording of a week of walks (GPX), to one answer about where they are now, in both browsers."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from firefox import IN_FIREFOX, firefox
from studio_page import IN_CHROMIUM, Visit, chromium
from studio_server import command

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SMALL = "auto=0&source=own&columns=6&rows=5"
FLAT, OFFICE = (47.3686, 8.5392), (47.3905, 8.5161)
"""Two places of a week in one town."""


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A file as a telephone exports it: a track for each day, half an hour between points."""
    points = []
    for day in range(1, 6):
        points.append("<trk><trkseg>")
        for slot in range(20):
            latitude, longitude = FLAT if slot < 4 or slot > 15 else OFFICE
            shift = 0.0001 * ((7 * slot + day) % 5)
            time = f"2024-05-{day:02}T{6 + slot // 2:02}:{30 * (slot % 2):02}:00Z"
            points.append(f'<trkpt lat="{latitude + shift}" lon="{longitude - shift}"><time>{time}</time></trkpt>')
        points.append("</trkseg></trk>")
    head = '<?xml version="1.0"?><gpx version="1.1" creator="walks" xmlns="http://www.topografix.com/GPX/1/1">'
    file = tmp_path / "walks of May.gpx"
    file.write_text(f"{head}{''.join(points)}</gpx>")
    return file


@pytest.fixture
def address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with command() as (url, _):
        yield url


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with chromium() as made:
        yield made


@IN_CHROMIUM[1]
@IN_CHROMIUM[0]
def test_in_chromium(browser: "Browser", address: str, recording: Path) -> None:
    visit = Visit(browser, address).opened(SMALL, "#source-note")
    visit.page.set_input_files("#traces", recording)
    visit.says("#source-note", text="secrets")
    visit.design(1)
    visit.page.fill("#truth-position", f"https://www.openstreetmap.org/#map=17/{OFFICE[0]}/{OFFICE[1]}")
    visit.page.click("#use-answer")
    visit.says("#answer-text", text=r"47\.\d+, 8\.\d+")
    visit.says("#answer-means", text="still .* off on average")
    visit.picture("journalist")
    assert "47.3" not in visit.page.url
    visit.done()


@IN_FIREFOX[1]
@IN_FIREFOX[0]
def test_in_firefox(address: str, recording: Path) -> None:
    with firefox(address) as page:
        page.open(f"{address}#{SMALL}")
        page.says("#source-note", "Choose a file")
        page.give_file("#traces", recording)
        page.says("#source-note", "secrets")
        page.click("#design")
        page.says("#explanation", "best guess")
        page.type("#truth-position", f"{OFFICE[0]}, {OFFICE[1]}")
        page.click("#use-answer")
        page.says("#answer-text", r"47\.\d+, 8\.\d+")
        page.says("#answer-means", "still .* off on average")
        page.picture("firefox-journalist")
        assert "47.3" not in page.call("() => location.href")
        page.done()
