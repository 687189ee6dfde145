"""The map in Debian's Firefox: square cells, clicks where they seem, and a drag that chooses nothing."""

import pytest

from firefox import IN_FIREFOX, firefox
from privacygames.studio.surroundings import Surroundings
from studio_server import command

pytestmark = [
    *IN_FIREFOX,
    pytest.mark.skipif(
        "leaflet.js" not in Surroundings().present, reason="the map's files are not here: python tools/vendor_page.py"
    ),
]

SIZE = "(id) => { const {width, height} = document.getElementById(id).getBBox(); return [width, height]; }"
LISTEN = (
    "async () => { const {onMapClick} = await import('/page/map.js'); onMapClick((at) => { window.clicked = at; }); }"
)


def test_the_map_in_firefox() -> None:
    with command() as (address, _), firefox(address) as page:
        page.resize(1280, 900)
        page.open(f"{address}#auto=0&columns=15&rows=8")  # cells of one kilometre
        page.says("#picture .frame text", "°")
        width, height = page.call(SIZE, "cell-at-0")
        assert width == pytest.approx(height, rel=0.005)
        page.click("#design")
        page.says("#explanation", "best guess")
        page.call(LISTEN)
        page.click("#cell-at-50")
        page.says("#picture-text", "The outputs for cell-50;")
        clicked = page.call("() => window.clicked")
        assert clicked["longitude"] == pytest.approx(5.0105 + (5.2301 - 5.0105) * 5.5 / 15, abs=0.001)
        assert clicked["latitude"] == pytest.approx(52.0541 + (52.126 - 52.0541) * 3.5 / 8, abs=0.001)
        page.click("#map-in")
        closer, _ = page.call(SIZE, "cell-at-0")
        assert closer == pytest.approx(2 * width, rel=0.005)
        page.picture("firefox-map")
        page.done()
