"""Mechanisms for points that tests of all pairs, of samples and of costs share: line and plane, regular and refined."""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

import privacygames as pg
from privacygames import Area, Interval, PointMechanism, PointPrior, PointProblem
from privacygames.points import Mesh, design

Array = NDArray[np.float64]

SQUARE = Area(3.0, 3.0)
FIVE = np.array([(0.63, 0.71), (1.02, 2.17), (1.94, 1.33), (2.41, 0.52), (2.55, 2.38)])
"""Visited places of the square at odd positions."""
FIVE_WEIGHTS = np.array([0.35, 0.25, 0.2, 0.12, 0.08])
BEIJING = (116.273035, 39.932113, 116.44905, 40.004058)


def refined_towards(mesh: Mesh, places: Array, times: int) -> Mesh:
    """The mesh with the cells that contain places halved, again and again."""
    for _ in range(times):
        low, high = mesh.bounds
        inside = np.all((low[:, None] <= places) & (places < high[:, None]), axis=2)
        mesh = mesh.refined(np.flatnonzero(np.any(inside, axis=1)))
    return mesh


def in_the_square(mesh: Mesh, *, epsilon: float = 1.0, distortion: float | None = None) -> PointMechanism:
    """The mechanism of five places and 21 outputs."""
    outputs = np.concatenate([SQUARE.lattice((4, 4)), FIVE])
    problem = PointProblem(PointPrior(SQUARE, FIVE, FIVE_WEIGHTS), outputs, mesh=mesh)
    return design(problem, epsilon=epsilon, distortion=distortion, prove_bound=False)


def on_the_line(mesh: Mesh) -> PointMechanism:
    """The mechanism of five places of a line and 41 outputs."""
    prior = PointPrior(mesh.region, [0.7, 2.3, 4.9, 6.1, 8.8], [1, 2, 3, 4, 5])
    return design(PointProblem(prior, np.linspace(0.0, 10.0, 41), mesh=mesh), epsilon=1.0, prove_bound=False)


def over_degrees() -> PointMechanism:
    """A mechanism over a box of degrees with uneven lines, refined, at ε = 0.6 per km."""
    area = Area.over(BEIJING)
    places = np.array([(116.31, 39.95), (116.333, 39.981), (116.42, 39.97)])
    lines = [2.1, 4.0, 6.5, 9.0, 12.0], [1.9, 4.2, 6.0]
    mesh = refined_towards(Mesh.from_lines(area, *lines, degree=2), area.project(places), 1)
    outputs = area.coordinates(area.lattice((5, 3)))
    return design(PointProblem(PointPrior(area, places), outputs, mesh=mesh), epsilon=0.6, prove_bound=False)


MAKERS: dict[str, Callable[[], PointMechanism]] = {
    "line": lambda: on_the_line(Mesh(Interval(0.0, 10.0), 10)),
    "line, refined": lambda: on_the_line(refined_towards(Mesh(Interval(0.0, 10.0), 8), np.array([[2.3], [8.8]]), 3)),
    "square": lambda: in_the_square(Mesh(SQUARE, 3, 3)),
    "square, refined": lambda: in_the_square(refined_towards(Mesh(SQUARE, 3, 3), FIVE[:3], 2)),
    "square, refined, joint": lambda: in_the_square(
        refined_towards(Mesh(SQUARE, 2, 2, degree=2), FIVE[:2], 2), distortion=0.72
    ),
    "degrees, refined": over_degrees,
}


@cache
def example(name: str) -> PointMechanism:
    """One of the mechanisms, designed once."""
    return MAKERS[name]()


def snapped_grid() -> pg.Mechanism:
    """A grid of 3 × 3 cells over the square with the same ε, counted between the centres of cells."""
    return pg.design(pg.Problem(pg.Prior.uniform(pg.Grid(3, 3, 3.0, 3.0)), cost="euclidean"), epsilon=1.0)
