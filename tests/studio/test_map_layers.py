"""Names, outlines, map files and tile servers of the user: the page asks another host only after two clicks."""

import gzip
import io
import json
import struct
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import matplotlib.image
import numpy as np
import pytest

from privacygames.studio.surroundings import Surroundings
from studio_page import IN_CHROMIUM, Visit, chromium
from studio_server import command

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [
    *IN_CHROMIUM,
    pytest.mark.skipif(
        "leaflet.js" not in Surroundings().present, reason="the map's files are not here: python tools/vendor_page.py"
    ),
]


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with chromium() as made:
        yield made


@pytest.fixture
def address() -> Iterator[str]:
    """Of a studio of its own: what one test allows, another does not inherit."""
    with command() as (url, _):
        yield url


def png() -> bytes:
    file = io.BytesIO()
    matplotlib.image.imsave(file, np.full((256, 256, 3), 0.8), format="png")
    return file.getvalue()


@pytest.fixture
def tiles() -> Iterator[tuple[str, list[str]]]:
    """A tile server on this machine, and what it was asked for."""
    asked: list[str] = []
    picture = png()

    class Tiles(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("content-type", "image/png")
            self.send_header("content-length", str(len(picture)))
            self.end_headers()
            self.wfile.write(picture)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Tiles) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def test_tiles_come_after_two_clicks_from_one_server(
    browser: "Browser", address: str, tiles: tuple[str, list[str]]
) -> None:
    server, asked = tiles
    visit = Visit(browser, address).opened("auto=0&columns=6&rows=4")
    page = visit.page
    page.click("#map-more summary")
    visit.says("#map-more .note", text="tells where you live")
    page.fill("#map-template", "https://tiles.example/no-places.png")
    page.click("#map-allow")
    visit.says("#map-tiles-error", text="looks like https")
    page.fill("#map-template", f"{server}/{{z}}/{{x}}/{{y}}.png")
    with page.expect_navigation():
        page.click("#map-allow")
    page.wait_for_selector("#picture .cell")
    assert asked == []  # allowed, and not asked
    assert visit.elsewhere == []
    page.click("#map-more summary")
    page.check("#map-tiles")
    page.wait_for_selector(".leaflet-tile-loaded")
    visit.says("#map-credits", text="Tiles: 127.0.0.1")
    visit.picture("map-tiles")
    assert asked
    assert all(each.startswith(server) for each in visit.elsewhere)
    page.reload()
    page.wait_for_selector("#picture .cell")
    count = len(asked)
    page.click("#map-in")
    assert not page.is_checked("#map-tiles")
    page.click("#map-more summary")
    with page.expect_navigation():
        page.click("#map-forbid")
    page.wait_for_selector("#picture .cell")
    assert len(asked) == count
    assert page.evaluate("async () => (await (await fetch('/api/map')).json()).origin") == ""
    visit.elsewhere.clear()
    visit.done(refusals=1)


TILE = 310_228
"""The place of tile 9/263/168, which holds the city, on the curve: computed with the format's own library."""

HIKE = {
    "type": "FeatureCollection",
    "features": [
        {"type": "Feature", "geometry": {"type": "LineString", "coordinates": [[5.05, 52.07], [5.15, 52.1, 3.0]]}},
        {
            "type": "Feature",
            "geometry": {
                "type": "MultiPolygon",
                "coordinates": [[[[5.1, 52.08], [5.12, 52.08], [5.12, 52.1], [5.1, 52.08]]]],
            },
        },
        {"type": "Feature", "geometry": {"type": "Point", "coordinates": [5.2, 52.11]}},
        {"type": "Feature", "geometry": None},
    ],
}


def test_names_and_outlines_of_ones_own_stay_in_the_page(browser: "Browser", address: str, tmp_path: Path) -> None:
    visit = Visit(browser, address).opened("auto=0&columns=6&rows=4")
    page = visit.page
    sent: list[str] = []
    visit.context.on("request", lambda each: sent.append(each.post_data or ""))
    visit.design(1)
    page.click("#cell-at-14")
    page.click("#map-more summary")
    page.fill("#map-name", "grandmother")
    page.keyboard.press("Enter")
    visit.says("#picture .names", text="grandmother")
    visit.says("#picture-text", text="The outputs for cell-14")
    page.locator("#cell-at-2").dblclick()
    page.fill("#map-name", "the pond")
    page.click("#map-name-add")
    visit.says("#picture .names", text="the pond")
    (tmp_path / "hike.geojson").write_text(json.dumps(HIKE))
    page.set_input_files("#map-geojson", tmp_path / "hike.geojson")
    visit.says("#map-file-note", text="3 shapes from hike.geojson")
    visit.says("#picture .own", count=2)
    visit.picture("map-own")
    picture = visit.taken("svg", tmp_path).read_text()
    assert "grandmother" in picture
    (tmp_path / "wrong.geojson").write_text('{"type": "Point", "coordinates": [500000, 4000000]}')
    page.set_input_files("#map-geojson", tmp_path / "wrong.geojson")
    visit.says("#map-file-error", text="not longitudes and latitudes")
    page.click("button[aria-label='Remove the name the pond']")
    visit.says("#map-names li", count=1)
    assert "grandmother" not in page.url
    assert not any("grandmother" in each or "5.12" in each for each in sent)
    page.check("input[name=source][value=categories]", force=True)
    page.wait_for_selector("#map-more", state="hidden")
    visit.done()


def pmtiles(zoom: int, tile: int, picture: bytes, kind: int = 2) -> bytes:
    """A PMTiles file with one tile."""

    def varint(value: int) -> bytes:
        parts = []
        while value > 127:
            parts.append(value & 127 | 128)
            value >>= 7
        return bytes([*parts, value])

    directory = gzip.compress(b"".join(varint(value) for value in (1, tile, 1, len(picture), 1)))
    offsets = (127, len(directory), 0, 0, 0, 0, 127 + len(directory), len(picture), 1, 1, 1)
    head = b"PMTiles\x03" + struct.pack("<11Q", *offsets) + bytes([1, 2, 1, kind, zoom, zoom])
    return head.ljust(127, b"\0") + directory + picture


def test_a_map_file_is_read_from_the_disk(browser: "Browser", address: str, tmp_path: Path) -> None:
    (tmp_path / "town.pmtiles").write_bytes(pmtiles(9, TILE, png()))
    (tmp_path / "lines.pmtiles").write_bytes(pmtiles(9, TILE, png(), kind=1))
    (tmp_path / "none.pmtiles").write_bytes(b"no map at all")
    visit = Visit(browser, address).opened("auto=0&columns=6&rows=4")
    page = visit.page
    page.click("#map-more summary")
    for name, complaint in (("lines", "vector"), ("none", "not a PMTiles file")):
        page.set_input_files("#map-pmtiles", tmp_path / f"{name}.pmtiles")
        visit.says("#map-file-error", text=complaint)
    page.set_input_files("#map-pmtiles", tmp_path / "town.pmtiles")
    visit.says("#map-file-note", text="Pictures of zoom 9 to 9")
    page.wait_for_selector(".leaflet-tile-loaded[src^='blob:']")
    visit.picture("map-pmtiles")
    page.click("#map-files-clear")
    visit.says(".leaflet-tile", count=0)
    visit.done()
