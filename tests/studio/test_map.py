"""The map in Debian's Chromium: square cells, a true scale, true coordinates, and nothing asked from another host."""

from collections.abc import Iterator
from math import cos, degrees, log, pi, radians
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from privacygames.studio.surroundings import Surroundings
from studio_page import IN_CHROMIUM, PICTURES, Visit, chromium
from studio_server import command

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [
    *IN_CHROMIUM,
    pytest.mark.skipif(
        "leaflet.js" not in Surroundings().present, reason="the map's files are not here: python tools/vendor_page.py"
    ),
]
EARTH_RADIUS_KM = 6371.0  # as in the library

SIDE, COLUMNS, ROWS = 0.5, 8, 6
"""Kilometres of a cell's side, and the cells of the grids below."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with command() as (url, _):
        yield url


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    with chromium() as made:
        yield made


def squares(latitude: float) -> tuple[float, float, float, float]:
    """A box of square cells, its middle at a latitude."""
    high = degrees(SIDE * ROWS / EARTH_RADIUS_KM)
    wide = degrees(SIDE * COLUMNS / EARTH_RADIUS_KM / cos(radians(latitude)))
    return 10.0, latitude - high / 2, 10.0 + wide, latitude + high / 2


def problem_file(folder: Path, box: tuple[float, float, float, float]) -> Path:
    counts = [1 + n % 7 for n in range(COLUMNS * ROWS)]
    file = folder / "squares.toml"
    file.write_text(
        f'[space]\nkind = "grid"\ncolumns = {COLUMNS}\nrows = {ROWS}\nbox = {list(box)}\n[prior]\ncounts = {counts}\n'
        '[problem]\ncost = "euclidean"\ndistance = "euclidean"\n[bounds]\nepsilon = 1.0\n'
    )
    return file


def on_squares(browser: "Browser", address: str, folder: Path, latitude: float, **look: Any) -> Visit:
    """A visit that shows the squares at a latitude."""
    visit = Visit(browser, address, **look).opened("auto=0&source=file", ready="#source-note:has-text('Choose a file')")
    visit.page.set_input_files("#document", problem_file(folder, squares(latitude)))
    visit.says("#picture .cell", count=COLUMNS * ROWS)
    return visit


def rectangle(visit: Visit, cell: int) -> dict[str, float]:
    """The pixels of a cell."""
    found: dict[str, float] = visit.page.evaluate(
        """(id) => { const {x, y, width, height} = document.getElementById(id).getBoundingClientRect();
            return {x, y, width, height}; }""",
        f"cell-at-{cell}",
    )
    return found


def scale(visit: Visit) -> float:
    """Kilometres of a pixel, by the scale bar."""
    reading = (
        "() => { const bar = document.querySelector('#picture .scale'); return bar.dataset.km / bar.getBBox().width; }"
    )
    return float(visit.page.evaluate(reading))


@pytest.mark.parametrize("latitude", [-65.0, 0.0, 47.0, 70.0])
def test_square_cells_are_square_and_the_scale_is_true(
    browser: "Browser", address: str, tmp_path: Path, latitude: float
) -> None:
    visit = on_squares(browser, address, tmp_path, latitude)
    first = rectangle(visit, 0)
    assert first["width"] == pytest.approx(first["height"], rel=0.005)
    last = rectangle(visit, COLUMNS * ROWS - 1)
    whole = last["x"] + last["width"] - first["x"]
    assert whole == pytest.approx(COLUMNS * first["width"], rel=0.005)
    assert scale(visit) == pytest.approx(SIDE * COLUMNS / whole, rel=0.01)
    visit.says("#picture .frame", text="cells 500 × 500\u00a0m")
    visit.page.click("#map-in")
    closer = rectangle(visit, 20)
    assert closer["width"] == pytest.approx(2 * first["width"], rel=0.005)
    assert scale(visit) == pytest.approx(SIDE / closer["width"], rel=0.01)
    visit.page.click("#map-fit")
    assert rectangle(visit, 0)["width"] == pytest.approx(first["width"], rel=0.001)
    visit.done()


LISTEN = (
    "async () => { const {onMapClick} = await import('/page/map.js'); onMapClick((at) => { window.clicked = at; }); }"
)


@pytest.mark.parametrize("look", [{}, {"viewport": {"width": 360, "height": 740}, "has_touch": True}])
def test_a_click_is_where_it_seems(browser: "Browser", address: str, tmp_path: Path, look: dict[str, Any]) -> None:
    visit = on_squares(browser, address, tmp_path, 47.0, **look)
    visit.design(1)
    visit.page.evaluate(LISTEN)
    west, south, east, north = squares(47.0)
    for cell in (0, 13, 34, COLUMNS * ROWS - 1):
        visit.page.locator(f"#cell-at-{cell}").click()
        visit.says("#picture-text", text=f"The outputs for cell-{cell};")
        at = visit.page.evaluate("() => window.clicked")
        column, row = cell % COLUMNS, cell // COLUMNS
        across, up = (east - west) / COLUMNS, (north - south) / ROWS
        assert at["longitude"] == pytest.approx(west + (column + 0.5) * across, abs=across / 20)
        assert at["latitude"] == pytest.approx(south + (row + 0.5) * up, abs=up / 20)
    visit.done()


def test_a_map_moves_without_choosing(browser: "Browser", address: str, tmp_path: Path) -> None:
    visit = on_squares(browser, address, tmp_path, 47.0)
    visit.design(1)
    said = visit.page.text_content("#picture-text")
    visit.page.locator("#picture").scroll_into_view_if_needed()
    before = rectangle(visit, 0)
    mouse = visit.page.mouse
    middle = rectangle(visit, 20)
    mouse.move(middle["x"] + 5, middle["y"] + 5)
    mouse.down()
    mouse.move(middle["x"] + 65, middle["y"] - 25, steps=4)
    mouse.up()
    after = rectangle(visit, 0)
    assert after["x"] - before["x"] == pytest.approx(60, abs=6)
    assert after["y"] - before["y"] == pytest.approx(-30, abs=6)
    assert visit.page.text_content("#picture-text") == said
    visit.done()


def test_arrows_and_enter_choose_a_cell(browser: "Browser", address: str, tmp_path: Path) -> None:
    visit = on_squares(browser, address, tmp_path, 47.0)
    visit.design(1)
    visit.page.focus("#picture")
    for key in ("Home", "ArrowRight", "ArrowUp"):
        visit.page.keyboard.press(key)
    assert visit.page.get_attribute("#picture", "aria-activedescendant") == f"cell-at-{COLUMNS + 1}"
    visit.page.keyboard.press("Enter")
    visit.says("#picture-text", text=f"outputs for cell-{COLUMNS + 1};")
    visit.done()


def test_coordinates_stand_at_the_edges(browser: "Browser", address: str, tmp_path: Path) -> None:
    """Each label of a longitude is where that longitude is."""
    visit = on_squares(browser, address, tmp_path, -65.0)
    labels = visit.page.evaluate(
        """() => [...document.querySelectorAll("#picture .frame text")].map((each) => {
            const box = each.getBoundingClientRect(); return [each.textContent, box.x + box.width / 2]; })"""
    )
    west, _, east, _ = squares(-65.0)
    first, last = rectangle(visit, 0), rectangle(visit, COLUMNS - 1)
    perdegree = (last["x"] + last["width"] - first["x"]) / (east - west)
    longitudes = [(float(text.split("°")[0]), x) for text, x in labels if text.endswith("E")]
    assert len(longitudes) > 1
    for longitude, x in longitudes:
        assert x == pytest.approx(first["x"] + (longitude - west) * perdegree, abs=1)
    assert any(text.endswith("S") for text, _ in labels)
    assert any(text == "N" for text, _ in labels)
    visit.done()


NOTHING = {
    "present": [],
    "missing": ["leaflet.js", "places.npz", "outlines.npz"],
    "credits": [],
    "tiles": None,
    "origin": "",
}


def test_without_its_files_the_map_stands_still(browser: "Browser", address: str, tmp_path: Path) -> None:
    visit = Visit(browser, address)
    visit.page.route("**/api/map", lambda route: route.fulfill(json=NOTHING))
    visit.opened("auto=0&source=file", ready="#source-note:has-text('Choose a file')")
    visit.page.set_input_files("#document", problem_file(tmp_path, squares(47.0)))
    visit.says("#map-missing", text="cannot be moved.*no names.*no coasts")
    visit.design(1)
    visit.page.evaluate(LISTEN)
    visit.page.click("#cell-at-13")
    visit.says("#picture-text", text="The outputs for cell-13;")
    west, _, east, _ = squares(47.0)
    wide = (east - west) / COLUMNS
    assert visit.page.evaluate("() => window.clicked.longitude") == pytest.approx(west + 5.5 * wide, abs=wide / 20)
    cell = rectangle(visit, 0)
    assert cell["width"] == pytest.approx(cell["height"], rel=0.005)
    assert scale(visit) == pytest.approx(SIDE / cell["width"], rel=0.02)  # the picture may be scaled to the page
    assert visit.page.is_hidden("#map-buttons")
    visit.page.click("#map-more summary")
    assert visit.page.is_hidden("#map-template")
    visit.page.fill("#map-name", "home")
    visit.page.keyboard.press("Enter")
    visit.says("#picture .names", text="home")
    visit.picture("map-without-files")
    visit.done()


def test_an_exported_map_explains_itself(browser: "Browser", address: str, tmp_path: Path) -> None:
    visit = on_squares(browser, address, tmp_path, 47.0)
    visit.design(1)
    visit.page.click("#cell-at-9")
    visit.says("#picture-text", text="The outputs for cell-9;")
    picture = visit.taken("svg", tmp_path).read_text()
    for part in (
        "The outputs for cell-9",
        "500 × 500",
        "10.0",
        "°\u00a0E",
        "47.",
        "°\u00a0N",
        ">N<",
        "the secret",
        "url(#colours)",
    ):
        assert part in picture, part
    assert "http" not in picture.replace("http://www.w3.org/", "")
    visit.done()


def test_points_are_a_density_with_exact_numbers_beside_it(browser: "Browser", address: str) -> None:
    visit = Visit(browser, address).opened("auto=0&secrets=points&columns=6&rows=4", "#picture .dot")
    visit.design(1)
    visit.page.locator("#picture .ground").click(position={"x": 250, "y": 140}, force=True)
    visit.says("#picture-text", text=r"The outputs for the point 52\.\d{4}°\sN, 5\.\d{4}°\sE")
    visit.says("#picture .dot", count=24)
    assert visit.page.locator("#picture .band").count() > 4
    visit.says(".legend", text="per km², smoothed over")
    visit.page.click("#values-box summary")
    visit.says("#values tbody tr:first-child", text="%")
    cells = visit.page.locator("#values tbody td:nth-child(2)").all_text_contents()
    shares = [float(text.removesuffix("\u00a0%").removeprefix("<")) for text in cells]
    assert shares == sorted(shares, reverse=True)
    assert 99 < sum(shares) < 101.5
    names = visit.page.locator("#picture .dot title").all_text_contents()
    assert sum(name.endswith(f": {cells[0]}") for name in names) >= 1
    visit.done()


NODE = 12 / 72  # kilometres between the nodes of the density below

NESTED = """async () => {
    const {contours} = await import("/page/contours.js");
    const area = (ring) => Math.abs(ring.reduce((sum, [x, y], i) => {
        const [u, v] = ring[(i + 1) % ring.length]; return sum + x * v - u * y; }, 0)) / 2;
    const dots = [...Array(96).keys()].map((i) => [(i % 12) + 0.5, Math.floor(i / 12) + 0.5]);
    const shares = dots.map((_, i) => Number(i === 40));
    const {bands, perSquareKilometre, deviation} = contours(dots, shares, {width: 12, height: 8});
    return {areas: bands.map(({rings}) => rings.map(area)), shares: bands.map(({share}) => share),
        points: bands.flatMap(({rings}) => rings.flat()), perSquareKilometre, deviation};
}"""


def test_the_density_of_one_output_is_a_bell(browser: "Browser", address: str) -> None:
    """Rings of equal density around one point are circles, whose areas follow from the normal density."""
    visit = Visit(browser, address).opened()
    density = visit.page.evaluate(NESTED)
    deviation = density["deviation"]
    assert density["perSquareKilometre"] == pytest.approx(1 / (2 * pi * deviation**2), rel=0.02)
    for number, areas in enumerate(density["areas"][1:], start=2):
        level = ((number - 0.5) / len(density["areas"])) ** 2
        assert areas == [pytest.approx(2 * pi * deviation**2 * log(1 / level), rel=0.03, abs=2 * NODE**2)]
    assert density["shares"] == sorted(density["shares"])
    assert all(0 <= x <= 12 and 0 <= y <= 8 for x, y in density["points"])
    visit.done()


def test_names_and_outlines_come_from_this_machine(browser: "Browser", address: str, tmp_path: Path) -> None:
    missing = [name for name in ("places.npz", "outlines.npz") if name not in Surroundings().present]
    if missing:
        pytest.skip(f"not here: {', '.join(missing)}")
    box = (4.2, 51.9, 4.4, 52.15)  # The Hague, with its coast
    visit = Visit(browser, address).opened("auto=0&source=file", ready="#source-note:has-text('Choose a file')")
    visit.page.set_input_files("#document", problem_file(tmp_path, box))
    visit.says("#picture .names", text="The Hague")
    assert visit.page.locator("#picture .coast").count() == 1
    visit.says("#map-credits", text="GeoNames.*CC BY.*Natural Earth")
    boxes = visit.page.evaluate(
        """() => [...document.querySelectorAll("#picture .names text")].map((each) => {
            const {left, right, top, bottom} = each.getBoundingClientRect();
            return [left, right, top + 2, bottom - 2]; })"""
    )
    assert 2 <= len(boxes) <= 14
    for n, (left, right, top, bottom) in enumerate(boxes):
        for other in boxes[:n]:
            assert right <= other[0] or left >= other[1] or bottom <= other[2] or top >= other[3], "names overlap"
    visit.picture("map-coast")
    visit.done()


def test_a_picture_waits_for_what_it_draws(browser: "Browser", address: str) -> None:
    """Names of places and another theme may arrive while the server is asked for probabilities."""
    visit = Visit(browser, address).opened("auto=0&columns=6&rows=4")
    visit.design(1)
    page = visit.page
    held: list[Any] = []
    page.route("**/answers", lambda route: held.append(route), times=1)  # noqa: PLW0108 - a builtin is no handler
    with page.expect_request("**/answers"):
        page.click("#cell-at-5")
    page.click("#theme")
    held[0].continue_()
    visit.says("#picture-text", text="The outputs for cell-5;")
    visit.done()


@pytest.mark.parametrize("secrets", ["cells", "points"])
def test_the_pictures_of_the_documentation(browser: "Browser", address: str, secrets: str) -> None:
    """With ``PRIVACYGAMES_PICTURES`` they are made anew: docs/how-to/studio.png and studio-points.png."""
    visit = Visit(browser, address, viewport={"width": 1240, "height": 960})
    visit.opened(f"auto=0&secrets={secrets}&columns=12&rows=8&cost=apart", "#picture .dot, #picture .cell")
    visit.design(1)
    if secrets == "points":
        visit.page.locator("#picture .ground").click(position={"x": 330, "y": 190}, force=True)
    else:
        visit.page.click("#cell-at-53")
    visit.says("#picture-text", text="The outputs for .* from ")
    visit.page.click("#sample")
    visit.says("#picture .sample", count=50)
    visit.page.mouse.move(0, 0)
    visit.page.evaluate("() => { document.activeElement.blur(); scrollTo(0, 0); }")
    if PICTURES:
        name = "studio" if secrets == "cells" else "studio-points"
        visit.page.screenshot(path=Path(PICTURES) / f"{name}.png")
    visit.done()
