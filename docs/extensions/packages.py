"""The picture of the packages, drawn from the imports in the source each time the site is built.

A layered drawing (Sugiyama, Tagawa and Toda 1981): every arrow points down, an arrow over several layers keeps a slot
free in each of them, and slots are ordered by the mean position of their neighbours, so that no arrow crosses a box.

``python docs/extensions/packages.py OUT.svg`` draws it by hand.
"""

import sys
import tomllib
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGE = "privacygames"
HIDDEN = {"__main__"}
WIDTH, ROW, BOX, HEIGHT, MARGIN = 980, 84, 118, 36, 24
"""Sizes in pixels: the picture, the distance between layers, a box, and the space at the edges."""
BASE = 84
"""Height of the frame around the modules of the lowest layer, in pixels."""
SLOT = 26
"""Width kept free where an arrow passes through a layer, in pixels."""
SWEEPS = 24
"""Passes of the ordering, down and up in turn; it no longer changes after about ten."""

Node = tuple[str, str]
"""A package, as (name, ""), or the slot of an arrow in a layer that it passes, as (importer, imported)."""


def foundation() -> set[str]:
    """The modules of the lowest layer that import-linter enforces: everything may import them."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    listed = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return {module.strip() for module in listed[-1].split(":")}


def imports() -> dict[str, set[str]]:
    """For each package, the packages that any of its modules imports."""
    import grimp

    graph = grimp.build_graph(PACKAGE, cache_dir=None)
    hidden = HIDDEN | foundation()
    packages: dict[str, set[str]] = {}
    for importer in graph.modules:
        parts = importer.split(".")
        if len(parts) < 2 or parts[1] in hidden:
            continue
        targets = packages.setdefault(parts[1], set())
        for imported in graph.find_modules_directly_imported_by(importer):
            target = imported.split(".")
            if len(target) > 1 and target[1] != parts[1] and target[1] not in hidden:
                targets.add(target[1])
    return packages


def transitive_reduction(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """Only the arrows that do not follow from others."""
    reachable: dict[str, set[str]] = {}

    def visit(package: str) -> set[str]:
        if package not in reachable:
            below = graph.get(package, set())
            reachable[package] = below.union(*(visit(target) for target in below))
        return reachable[package]

    return {
        package: {to for to in targets if not any(to in visit(other) for other in targets - {to})}
        for package, targets in graph.items()
    }


def depths(graph: dict[str, set[str]]) -> dict[str, int]:
    """The layer of each package: one below the lowest of those that import it."""
    importers = {package: {other for other, targets in graph.items() if package in targets} for package in graph}
    depth: dict[str, int] = {}

    def visit(package: str) -> int:
        if package not in depth:
            depth[package] = max((visit(other) + 1 for other in importers[package]), default=0)
        return depth[package]

    for package in graph:
        visit(package)
    return depth


def chains(graph: dict[str, set[str]], depth: dict[str, int]) -> list[list[Node]]:
    """Every arrow as the nodes it visits: its importer, a slot in each layer between, its target."""
    return [
        [(package, ""), *[(package, target)] * (depth[target] - depth[package] - 1), (target, "")]
        for package, targets in sorted(graph.items())
        for target in sorted(targets)
    ]


def order(graph: dict[str, set[str]], depth: dict[str, int]) -> list[list[Node]]:
    """The layers, each from left to right, so that neighbours of different layers lie near each other."""
    layers: list[list[Node]] = [[] for _ in range(max(depth.values()) + 1)]
    for package in sorted(graph):
        layers[depth[package]].append((package, ""))
    above: dict[tuple[int, Node], list[Node]] = {}
    below: dict[tuple[int, Node], list[Node]] = {}
    for chain in chains(graph, depth):
        for number, (upper, lower) in enumerate(pairwise(chain), start=depth[chain[0][0]]):
            below.setdefault((number, upper), []).append(lower)
            above.setdefault((number + 1, lower), []).append(upper)
            if lower[1]:
                layers[number + 1].append(lower)
    for sweep in range(SWEEPS):
        if sweep % 2 == 0:
            for number in range(1, len(layers)):
                sort_by_neighbours(layers[number], layers[number - 1], number, above)
        else:
            for number in range(len(layers) - 2, -1, -1):
                sort_by_neighbours(layers[number], layers[number + 1], number, below)
    return layers


def sort_by_neighbours(
    layer: list[Node], adjacent: list[Node], number: int, neighbours: dict[tuple[int, Node], list[Node]]
) -> None:
    """Sort a layer by the mean position of each node's neighbours in an adjacent layer."""
    own, fixed = positions(layer), positions(adjacent)

    def mean_position(node: Node) -> float:
        near = [fixed[neighbour] for neighbour in neighbours.get((number, node), ())]
        return sum(near) / len(near) if near else own[node]

    layer.sort(key=mean_position)


def positions(layer: list[Node]) -> dict[Node, float]:
    """The horizontal centre of each node of a layer, spread over the whole width."""
    widths = [SLOT if node[1] else BOX for node in layer]
    gap = (WIDTH - 2 * MARGIN - sum(widths)) / (len(layer) + 1)
    x, centres = MARGIN + gap, {}
    for node, width in zip(layer, widths, strict=True):
        centres[node] = x + width / 2
        x += width + gap
    return centres


def draw() -> str:
    """The picture as SVG."""
    graph = transitive_reduction(imports())
    depth = depths(graph)
    layers = order(graph, depth)
    centres = [positions(layer) for layer in layers]
    arrows = "".join(arrow(chain, depth[chain[0][0]], centres) for chain in chains(graph, depth))
    boxes = "".join(
        box(node[0], centres[number][node], MARGIN + number * ROW)
        for number, layer in enumerate(layers)
        for node in layer
        if not node[1]
    )
    bottom = MARGIN + len(layers) * ROW
    height = bottom + BASE + MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="The packages and what they import" font-family="system-ui, sans-serif" font-size="14">'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>'
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>'
        f'<g fill="none" stroke="#555" stroke-width="1.1">{arrows}</g>{boxes}{base(bottom)}</svg>\n'
    )


def arrow(chain: list[Node], top: int, centres: list[dict[Node, float]]) -> str:
    """One arrow, straight through the slots that are free for it."""
    x, y = centres[top][chain[0]], MARGIN + top * ROW + HEIGHT
    path = f"M{x:.0f},{y}"
    for number, node in enumerate(chain[1:], start=top + 1):
        below, end = centres[number][node], MARGIN + number * ROW - (0 if node[1] else 2)
        path += f" C{x:.0f},{y + 26} {below:.0f},{end - 26} {below:.0f},{end}"
        x, y = below, MARGIN + number * ROW + HEIGHT
        path += f" L{x:.0f},{y}" if node[1] else ""
    return f'<path d="{path}" marker-end="url(#tip)"/>'


def box(name: str, x: float, y: float) -> str:
    """A package."""
    return (
        f'<rect x="{x - BOX / 2:.0f}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="6" fill="#fff" stroke="#0072b2" '
        f'stroke-width="1.5"/><text x="{x:.0f}" y="{y + 23}" text-anchor="middle">{escape(name)}</text>'
    )


def base(y: float) -> str:
    """The modules of the lowest layer, in one frame: arrows to them would say nothing."""
    names = sorted(foundation())
    half = (len(names) + 1) // 2
    lines = ("modules that every package may import", "  ·  ".join(names[:half]), "  ·  ".join(names[half:]))
    texts = "".join(
        f'<text x="{WIDTH / 2:.0f}" y="{y + 24 + 21 * place}" text-anchor="middle" '
        f'font-style="{"normal" if place else "italic"}">{escape(line)}</text>'
        for place, line in enumerate(lines)
    )
    return (
        f'<rect x="{MARGIN}" y="{y}" width="{WIDTH - 2 * MARGIN}" height="{BASE}" rx="6" fill="#eaf2f9" '
        f'stroke="#0072b2"/>{texts}'
    )


def setup(app: Any) -> dict[str, bool]:
    """Draw it before the pages are read."""
    target = Path(app.srcdir) / "packages.svg"
    app.connect("builder-inited", lambda _: target.write_text(draw(), encoding="utf-8"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(draw(), encoding="utf-8")
