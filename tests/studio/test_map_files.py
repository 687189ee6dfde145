"""The files of the map: only the pinned ones are used, and what lies around a box is read from them."""

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import vendor_page
from privacygames.studio.surroundings import Surroundings
from studio_server import client
from vendor_page import Mismatch, Source, vendor

OLD, NEW = b"alert('old')", b"alert('new')"


def packaged(content: bytes) -> Callable[[Source, Path], Path]:
    """Something that fetches a package with one file."""

    def fetch(source: Source, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        package = folder / "package.whl"
        with zipfile.ZipFile(package, "w") as wheel:
            wheel.writestr(source.member, content)
        return package

    return fetch


def pinned(content: bytes) -> Source:
    return Source("pip", "map==1", "map/leaflet.js", hashlib.sha256(content).hexdigest())


def test_only_the_pinned_file_is_kept(tmp_path: Path) -> None:
    assert vendor(tmp_path, {"leaflet.js": pinned(OLD)}, packaged(OLD)) == []
    assert (tmp_path / "leaflet.js").read_bytes() == OLD
    with pytest.raises(Mismatch, match="SHA-256"):
        vendor(tmp_path, {"leaflet.js": pinned(NEW)}, packaged(OLD))
    assert not (tmp_path / "leaflet.js").exists()  # neither the old one nor the wrong one


def test_what_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    vendor(tmp_path, {"leaflet.js": pinned(OLD)}, packaged(OLD))

    def fail(*_: object) -> Path:
        raise AssertionError

    assert vendor(tmp_path, {"leaflet.js": pinned(OLD)}, fail) == []


def test_what_cannot_be_fetched_is_said(tmp_path: Path) -> None:
    def offline(*_: object) -> Path:
        raise FileNotFoundError

    assert vendor(tmp_path, {"leaflet.js": pinned(OLD)}, offline) == [
        "leaflet.js is missing: pip cannot fetch map==1 here."
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_file_ends_the_script_with_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vendor_page, "FOLDER", tmp_path)

    def refuse(_: Path) -> list[str]:
        raise Mismatch("wrong")

    monkeypatch.setattr(vendor_page, "vendor", refuse)
    assert vendor_page.main() == 1


ISLANDS = {
    "transform": {"scale": [0.1, 0.1], "translate": [0.0, 50.0]},
    "arcs": [  # two countries on one island: their border, and a coast for each
        [[10, 0], [0, 10]],
        [[10, 10], [-10, 0], [0, -10], [10, 0]],
        [[10, 0], [10, 0], [0, 10], [-10, 0]],
    ],
    "objects": {
        "countries": {
            "geometries": [
                {"type": "Polygon", "arcs": [[0, 1]]},
                {"type": "MultiPolygon", "arcs": [[[2, -1]]]},
            ]
        },
        "land": {"geometries": [{"type": "Polygon", "arcs": [[2, 1]]}]},
    },
}
TOWNS = {
    "1": {"name": "Klein", "latitude": 50.2, "longitude": 0.4, "population": 20},
    "2": {"name": "Gröt", "latitude": 50.7, "longitude": 0.6, "population": 900},
    "3": {"name": "Elders", "latitude": 51.5, "longitude": 3.0, "population": 5000},
}


@pytest.fixture
def world(tmp_path: Path) -> Surroundings:
    (tmp_path / "outlines.npz").write_bytes(vendor_page.outlines(json.dumps(ISLANDS).encode()))
    (tmp_path / "places.npz").write_bytes(vendor_page.places(json.dumps(TOWNS).encode()))
    return Surroundings(tmp_path)


def test_places_in_a_box(world: Surroundings) -> None:
    places = world.around((0.0, 50.0, 1.0, 51.0))["places"]
    assert [(each["name"], each["latitude"], each["longitude"]) for each in places] == [
        ("Gröt", 50.7, 0.6),
        ("Klein", 50.2, 0.4),
    ]


def test_land_is_clipped_and_borders_are_no_coasts(world: Surroundings) -> None:
    around = world.around((-0.5, 50.5, 1.5, 51.5))
    (land,) = np.array(around["land"])
    assert land[:, 0].min() == 0.0
    assert land[:, 0].max() == 1.5
    assert land[:, 1].min() == 50.5
    assert land[:, 1].max() == 51.0
    x, y = land.T
    assert abs(x @ np.roll(y, 1) - y @ np.roll(x, 1)) / 2 == pytest.approx(1.5 * 0.5)
    borders = np.concatenate([np.array(line) for line in world.around((-1.0, 49.0, 3.0, 52.0))["borders"]])
    assert set(borders[:, 0]) == {1.0}


def test_without_files_there_is_nothing_around(tmp_path: Path) -> None:
    nothing = Surroundings(tmp_path)
    assert nothing.present == []
    assert not any(nothing.around((0.0, 50.0, 1.0, 51.0)).values())


def test_the_api_refuses_boxes_that_are_none() -> None:
    with client() as made:
        box = {"west": 1.0, "south": 50.0, "east": 0.0, "north": 51.0}
        assert made.post("/api/map/surroundings", json=box).status_code == 422
        assert made.post("/api/map/surroundings", json=box | {"west": -400.0}).status_code == 422


@pytest.mark.parametrize(
    "template",
    [
        "https://tiles.example/{z}/{x}.png",
        "http://tiles.example/{z}/{x}/{y}.png",
        "https://tiles.example; script-src *//{z}/{x}/{y}.png",
        "https://*/{z}/{x}/{y}.png",
        "https://me@tiles.example/{z}/{x}/{y}.png",
        "https://{s}.tiles.example/{z}/{x}/{y}.png",
        "javascript:alert(1)//{z}/{x}/{y}",
        "https://[/{z}/{x}/{y}.png",
        "",
    ],
)
def test_other_addresses_do_not_widen_the_policy(template: str) -> None:
    with client() as made:
        before = made.get("/").headers["content-security-policy"]
        assert made.post("/api/map/tiles", json={"template": template}).status_code in (400, 422)
        assert made.get("/").headers["content-security-policy"] == before


def test_exactly_one_tile_server_is_allowed_until_it_is_forbidden() -> None:
    template = "https://tiles.example/{z}/{x}/{y}.png?key=1"
    with client() as made:
        before = made.get("/").headers["content-security-policy"]
        assert made.get("/api/map").json()["tiles"] is None
        made.post("/api/map/tiles", json={"template": template})
        assert made.get("/api/map").json()["tiles"] == template
        after = made.get("/").headers["content-security-policy"]
        assert after == before.replace("img-src 'self' blob:", "img-src 'self' blob: https://tiles.example")
        assert after != before
        made.post("/api/map/tiles", json={"template": None})
        assert made.get("/").headers["content-security-policy"] == before
