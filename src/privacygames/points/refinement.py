"""Refinement of a mesh: the cells where ε costs most are halved, until there are enough control points.

The cost falls by Σ_o z₀ s₀ for a relative increase of ε at one control value, where s₀ = ε p(o|·) there and z₀ is the
dual value of its cone. Cells where that is large gain most from being halved: on three people of GeoLife, halving each
of 24 cells alone gains in the same order, while the share of the prior in a cell says little.
"""

from math import ceil, log

import numpy as np

from privacygames.arrays import FloatArray, IntArray
from privacygames.errors import InvalidProblem
from privacygames.points.cell_tree import MOST_LEVELS
from privacygames.points.mesh import Mesh

GROWTH = {1: 8.0, 2: 3.6}
"""Control points of the last mesh for each one of the first, by the number of axes."""

ENOUGH_CONTROLS, MANY_OUTPUTS = 400, 100
"""Control points above which the default adds none, where there are many outputs: the time grows with the cube of the
first number and with the number of outputs in use, which seldom exceeds the second."""

GROWTH_PER_ROUND = 2.2
"""Largest growth of a mesh between two solutions: with 3.6 at once, 0.5 % more cost on GeoLife."""

NEGLIGIBLE_SHARE = 1e-3
"""Share of the largest sensitivity below which a cell is not halved."""


def default_controls(first: Mesh, outputs: int) -> int:
    """The number of control points up to which a mesh is refined by default.

    >>> pg.points.refinement.default_controls(pg.points.Mesh(pg.Area(15.0, 8.0), 4, 2), outputs=300)
    327
    """
    enough = int(ENOUGH_CONTROLS * (MANY_OUTPUTS / min(outputs, MANY_OUTPUTS)) ** (1 / 3))
    return max(first.controls, min(int(first.controls * GROWTH[first.axes]), enough))


def refinement_sizes(first: Mesh, most: int) -> list[int]:
    """The number of control points after each round, at most.

    >>> pg.points.refinement.refinement_sizes(pg.points.Mesh(pg.Area(15.0, 8.0), 4, 2), 327)
    [172, 327]
    """
    growth = most / first.controls
    rounds = ceil(log(growth) / log(GROWTH_PER_ROUND)) if growth > 1 else 0
    return [int(first.controls * growth ** (number / rounds)) for number in range(1, rounds)] + [most] * (rounds > 0)


def refine(mesh: Mesh, sensitivities: FloatArray, most: int) -> Mesh:
    """A mesh with as many cells halved, in the order of their sensitivities, as give at most so many control points.

    >>> pg.points.refinement.refine(pg.points.Mesh(pg.Area(4.0, 4.0), 2, 2), np.array([0.1, 0.5, 2.0, 0.0]), most=80)
    Mesh(7 cells, degree 3, 76 control points)

    Args:
        mesh: the mesh.
        sensitivities: of its cells.
        most: control points of the result.
    """
    order = np.argsort(-sensitivities, kind="stable")
    worth = sensitivities[order] > NEGLIGIBLE_SHARE * sensitivities.max()
    order = order[worth & (mesh.tree.cells[order, 0] < MOST_LEVELS)]
    best, low, high = mesh, 0, len(order)
    while low < high:
        middle = (low + high + 1) // 2
        finer = _refined(mesh, order[:middle], most)
        if finer is None:
            high = middle - 1
        else:
            best, low = finer, middle
    return best


def _refined(mesh: Mesh, cells: IntArray, most: int) -> Mesh | None:
    """The mesh with these cells halved; None where it has too many control points."""
    try:
        finer = mesh.refined(cells)
    except InvalidProblem:
        return None  # more than any mesh may have
    return finer if finer.controls <= most else None
