"""Small mechanisms of every kind that a file for a device can hold, the same on every machine."""

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

import privacygames as pg
from privacygames.points import Mesh, PointTable, PublicPointMechanism
from privacygames.spaces import Space

BITS = 62
BOX = (6.5, 46.44, 6.74, 46.6)


def integer_rows(rows: int, columns: int, seed: int, spread: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Random rows that sum to 2^62, no entry of which is more than some multiple of another of its column."""
    source = random.Random(seed)
    table = np.empty((rows, columns), dtype=np.int64)
    for row in table:
        parts = [source.randrange(1000, 1000 * spread) for _ in range(columns)]
        scaled = [2**BITS * part // sum(parts) for part in parts]
        scaled[0] += 2**BITS - sum(scaled)
        row[:] = scaled
    return table


def finite(
    secrets: Space, observables: Space, seed: int, *, distance: str, epsilon: float, within: float | None = None
) -> pg.PublicMechanism:
    weights = integer_rows(len(secrets), len(observables), seed, 3)
    bounds = pg.Bounds(epsilon=epsilon, within=within)
    return pg.PublicMechanism(weights, BITS, secrets.distance(distance), bounds, (secrets, observables))


def points(region: Any, observables: Space, mesh: Mesh, seed: int, epsilon: float) -> PublicPointMechanism:
    weights = integer_rows(mesh.controls, len(observables), seed, 2)
    return PublicPointMechanism(PointTable(mesh, observables, weights, BITS), epsilon)


def mechanisms() -> dict[str, Any]:
    """A mechanism of every kind, and of every form of secrets, outputs and distances."""
    grid, plain = pg.Grid.over(BOX, columns=3, rows=2), pg.Grid(2, 2, 3.0, 2.0)
    ages = pg.Numbers([18, 19.5, 30, 41], unit="years")
    texts = pg.Categories(["flu", "cold", "", "Grippe – schwer 🤒"])
    films = pg.Sets([{"Alien", "Brazil"}, {"Alien"}, set(), {"Łódź", "𝔘"}])
    area, plain_area = pg.Area.over(BOX), pg.Area(4.0, 3.0)
    halved = Mesh(area, 2, 2, degree=2).refined([0]).refined([0])
    line = pg.Interval(-2.0, 22.0, unit="hours")
    hours = pg.Numbers([0, 6, 12.5, 18])
    return {
        "grid": finite(grid, grid, 1, distance="euclidean", epsilon=1.0),
        "grid-blocks": finite(plain, plain.blocks(1, 2), 2, distance="euclidean", epsilon=2.5),
        "grid-labels": finite(grid, pg.Categories(["near", "far"]), 3, distance="hamming", epsilon=4.0),
        "numbers": finite(ages, ages, 4, distance="absolute", epsilon=3.0),
        "numbers-within": finite(ages, pg.Categories("ab"), 5, distance="absolute", epsilon=4.0, within=12.0),
        "categories": finite(texts, texts, 6, distance="hamming", epsilon=3.0),
        "sets": finite(films, films, 7, distance="hamming", epsilon=3.5),
        "points": points(area, pg.Grid.over(BOX, columns=3, rows=2), halved, 8, 8.0),
        "points-plain": points(plain_area, pg.Grid(2, 2, 4.0, 3.0), Mesh(plain_area, 2, 1, degree=3), 9, 20.0),
        "points-line": points(line, hours, Mesh(line, 3, degree=3), 10, 5.0),
        "points-line-halved": points(line, hours, Mesh(line, 2, degree=2).refined([1]), 11, 5.0),
    }


def secrets_of(name: str, mechanism: Any) -> Iterator[Any]:
    """Secrets of one of these mechanisms, on borders and outside as well."""
    if name.startswith("points-line"):
        yield from (-2.0, 22.0, -50.0, 100.0, 3.0, 10.0, 5.123456789, 16.0)
    elif name in ("points", "grid", "grid-labels"):
        yield from (
            (6.5, 46.44),
            (6.74, 46.6),
            (6.62, 46.52),
            (6.56, 46.48),
            (6.5300001, 46.4599999),
            (6.1, 47.0),
            (-179.9, -89.0),
            (6.58, 46.44),
        )
    elif name in ("points-plain", "grid-blocks"):
        yield from ((0.0, 0.0), (4.0, 3.0), (2.0, 1.5), (1.5, 1.0), (0.1, 2.9), (-3.0, 99.0), (1.25, 2.0), (3.0, 0.5))
    else:
        yield from mechanism.secrets.labels


def plain_secret(name: str, secret: Any) -> Any:
    """A secret as a device takes it, in JSON."""
    if name in ("points", "grid", "grid-labels"):
        return {"longitude": secret[0], "latitude": secret[1]}
    if name in ("points-plain", "grid-blocks"):
        return {"x": secret[0], "y": secret[1]}
    return sorted(secret) if isinstance(secret, frozenset) else secret


def plain_output(output: pg.device.DeviceOutput) -> Any:
    """An output for comparison with a device's: its number, label and coordinates."""
    label = sorted(output.label) if isinstance(output.label, frozenset) else output.label
    return {"index": output.index, "label": label, "place": None if output.place is None else list(output.place)}
