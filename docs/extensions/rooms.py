"""The picture of the rooms, drawn from the imports that are really there, each time the site is built.

``python docs/extensions/rooms.py OUT.svg`` draws it by hand.
"""

import sys
import tomllib
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGE = "privacygames"
WIDTH, ROW, BOX, HEIGHT, MARGIN = 980, 96, 128, 40, 20
COLOURS = ("#0072b2", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#b8860b", "#7e4e90", "#555555")


def layers() -> list[list[str]]:
    """The layers as import-linter enforces them, the uppermost first."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    listed = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [[room.strip() for room in layer.split(":")] for layer in listed]


def needs() -> dict[str, set[str]]:
    """What each room imports, in whichever of its files."""
    import grimp

    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    found: dict[str, set[str]] = {}
    for importer in graph.modules:
        parts = importer.split(".")
        if len(parts) < 2:
            continue
        for imported in graph.find_modules_directly_imported_by(importer):
            target = imported.split(".")
            if len(target) > 1 and target[1] != parts[1]:
                found.setdefault(parts[1], set()).add(target[1])
    return found


def direct(wanted: dict[str, set[str]]) -> dict[str, set[str]]:
    """Only what does not follow from other arrows: the transitive reduction."""

    def reached(room: str) -> set[str]:
        seen: set[str] = set()
        left = list(wanted.get(room, ()))
        while left:
            now = left.pop()
            if now not in seen:
                seen.add(now)
                left += wanted.get(now, ())
        return seen

    return {
        room: {to for to in targets if not any(to in reached(other) for other in targets if other != to)}
        for room, targets in wanted.items()
    }


def draw() -> str:
    """The picture as SVG."""
    rows = layers()
    wanted = needs()
    places: dict[str, tuple[float, float]] = {}
    bands: list[str] = []
    boxes: list[str] = []
    arrows: list[str] = []
    for depth, layer in enumerate(rows):
        y = MARGIN + depth * ROW
        colour = COLOURS[depth % len(COLOURS)]
        bands.append(
            f'<rect x="4" y="{y - 12}" width="{WIDTH - 8}" height="{HEIGHT + 24}" rx="8" fill="{colour}" '
            f'fill-opacity="0.07"/>'
        )
        step = (WIDTH - 2 * MARGIN) / len(layer)
        for place, room in enumerate(layer):
            x = MARGIN + (place + 0.5) * step
            places[room] = (x, y)
            boxes.append(
                f'<rect x="{x - BOX / 2:.0f}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="6" fill="white" '
                f'stroke="{colour}" stroke-width="1.5"/>'
                f'<text x="{x:.0f}" y="{y + 25}" text-anchor="middle">{escape(room)}</text>'
            )
    for room, targets in sorted(direct(wanted).items()):
        for target in sorted(targets):
            (x0, y0), (x1, y1) = places[room], places[target]
            apart = next(
                (abs(layer.index(room) - layer.index(target)) for layer in rows if {room, target} <= {*layer}), 0
            )
            if apart == 1:  # neighbours
                left, right = (x0 + BOX / 2, x1 - BOX / 2 - 2) if x0 < x1 else (x0 - BOX / 2, x1 + BOX / 2 + 2)
                arrows.append(f"M{left:.0f},{y0 + HEIGHT / 2:.0f} L{right:.0f},{y0 + HEIGHT / 2:.0f}")
            elif apart:  # over the heads of those between
                arrows.append(f"M{x0 + 20:.0f},{y0} C{x0 + 50:.0f},{y0 - 16} {x1 - 50:.0f},{y1 - 16} {x1:.0f},{y1 - 2}")
            else:
                start, end = y0 + HEIGHT, y1 - 2
                arrows.append(f"M{x0:.0f},{start} C{x0:.0f},{start + 30} {x1:.0f},{end - 30} {x1:.0f},{end}")
    height = MARGIN + len(rows) * ROW
    lines = "".join(f'<path d="{path}" marker-end="url(#tip)"/>' for path in arrows)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="Rooms and what they import" font-family="system-ui, sans-serif" font-size="14">'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#666"/></marker></defs>'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>{"".join(bands)}'
        f'<g fill="none" stroke="#666" stroke-width="1.1" stroke-opacity="0.75">{lines}</g>{"".join(boxes)}</svg>\n'
    )


def setup(app: Any) -> dict[str, bool]:
    """Draw it before the pages are read."""
    target = Path(app.srcdir) / "rooms.svg"
    app.connect("builder-inited", lambda _: target.write_text(draw(), encoding="utf-8"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(draw(), encoding="utf-8")
