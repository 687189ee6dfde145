r"""How fast a mechanism for points changes: a proved bound on the total variation between two points.

Along a segment with the unit vector u, the total variation of p(·|x) and p(·|x') is at most the integral of
:math:`N_x(u) = \tfrac12 \sum_o |u \cdot \nabla p(o|x)|`. On a cell the gradients are means, by Bernstein polynomials,
of the coefficients g that ``verification.py`` checks for ε. N is therefore at most the largest
:math:`\tfrac12 \sum_o |u \cdot g(o)|` of any control value. That is a norm of u: on a polygon around the unit circle it
is largest at a corner.
"""

from math import cos, pi

import numpy as np

from privacygames.arrays import IntArray
from privacygames.points import bernstein
from privacygames.points.mesh import Mesh
from privacygames.points.verification import ULP

DIRECTIONS = 32
"""Directions of u that are tried on half a circle; the polygon through them exceeds the circle by 0.1 %."""


def variation_rate(weights: IntArray, bits: int, mesh: Mesh) -> float:
    """The total variation between two points per unit of their distance, at most: rounded up.

    Args:
        weights: (control points, outputs).
        bits: what the rows sum to, as a power of two.
        mesh: the mesh.
    """
    combinations, tables = mesh.shared.weights, bernstein.slopes(mesh.degree, mesh.axes)
    angles = np.arange(DIRECTIONS) * (pi / DIRECTIONS)
    corners = np.array([[1.0]]) if mesh.axes == 1 else np.stack([np.cos(angles), np.sin(angles)], axis=1)
    beyond: float = 1.0 if mesh.axes == 1 else 1 / cos(pi / (2 * DIRECTIONS))
    relative = (8 + mesh.shared.most_terms) * ULP  # of a slope's terms, as in check_epsilon
    total = np.zeros((mesh.cells * (mesh.degree + 1) ** mesh.axes, len(corners)))
    rounding = np.zeros(len(total))
    for column in np.ldexp(weights.astype(np.float64), -bits).T:
        local = (combinations @ column).reshape(mesh.cells, -1)
        slopes = [local @ table.T / mesh.sides[:, axis, None] for axis, table in enumerate(tables)]
        sizes = [local @ np.abs(table).T / mesh.sides[:, axis, None] for axis, table in enumerate(tables)]
        total += np.abs(np.stack(slopes, axis=-1).reshape(-1, mesh.axes) @ corners.T)
        rounding += relative * np.sum(sizes, axis=0).ravel()
    largest = float((total.max(axis=1) + rounding).max())
    return largest / 2 * beyond * (1 + (len(weights[0]) + 16) * ULP)
