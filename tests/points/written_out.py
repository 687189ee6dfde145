"""The program for points written out for HiGHS, sharing no code with the library: polygons instead of cones.

With K unit vectors u_k evenly round the circle, u_k·∇f ≤ cos(π/K)·ε·f for all k is sufficient and u_k·∇f ≤ ε·f is
necessary for |∇f| ≤ ε·f, so the two programs bracket the one with cones.
"""

from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array, identity, kron, vstack

Array = NDArray[np.float64]


def raised_derivative(degree: int) -> Array:
    """The derivative on [0, 1] as coefficients of the same degree: difference, times d, then degree elevation."""
    difference = degree * (np.eye(degree, degree + 1, 1) - np.eye(degree, degree + 1))
    elevation = np.zeros((degree + 1, degree))
    for i in range(degree + 1):
        if i:
            elevation[i, i - 1] = i / degree
        if i < degree:
            elevation[i, i] = 1 - i / degree
    return elevation @ difference


def value_of(points: Array, cells: tuple[int, int], size: tuple[float, float], degree: int) -> Array:
    """The basis functions at points, (points, control points), control points row by row."""
    along = []
    for axis in range(2):
        side = size[axis] / cells[axis]
        cell = np.minimum((points[:, axis] / side).astype(int), cells[axis] - 1)
        t = points[:, axis] / side - cell
        table = np.zeros((len(points), cells[axis] * degree + 1))
        for i in range(degree + 1):
            table[np.arange(len(points)), cell * degree + i] += comb(degree, i) * t**i * (1 - t) ** (degree - i)
        along.append(table)
    return np.asarray(along[1][:, :, None] * along[0][:, None, :]).reshape(len(points), -1)


def optimum(
    costs: Array,
    cells: tuple[int, int],
    size: tuple[float, float],
    degree: int,
    epsilon: float,
    directions: int,
    factor: float,
) -> float:
    """The least Σ costs·p with u_k·∇f ≤ factor·ε·f in every coefficient; ``costs`` is (control points, outputs)."""
    selections, slopes = [], []
    for axis in range(2):
        controls = cells[axis] * degree + 1
        pick = np.zeros((cells[axis] * (degree + 1), controls))
        for cell in range(cells[axis]):
            for i in range(degree + 1):
                pick[cell * (degree + 1) + i, cell * degree + i] = 1
        derivative = np.kron(np.eye(cells[axis]), raised_derivative(degree)) * cells[axis] / size[axis]
        selections.append(csr_array(pick))
        slopes.append(csr_array(derivative @ pick))
    value = kron(selections[1], selections[0])
    gradient = kron(selections[1], slopes[0]), kron(slopes[1], selections[0])
    angles = 2 * np.pi * np.arange(directions) / directions
    rows = vstack([factor * epsilon * value - np.cos(a) * gradient[0] - np.sin(a) * gradient[1] for a in angles])
    controls, outputs = costs.shape
    found = linprog(
        costs.ravel(),
        A_ub=-kron(rows, identity(outputs)).tocsr(),
        b_ub=np.zeros(rows.shape[0] * outputs),
        A_eq=kron(identity(controls), np.ones((1, outputs))).tocsr(),
        b_eq=np.ones(controls),
        method="highs-ipm",
    )
    assert found.status == 0
    return float(found.fun)
