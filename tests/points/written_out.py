"""The program for points written out for HiGHS, sharing no code with the library: polygons instead of cones.

With K unit vectors u_k evenly round the circle, u_k·∇f ≤ cos(π/K)·ε·f for all k is sufficient and u_k·∇f ≤ ε·f is
necessary for |∇f| ≤ ε·f, so the two programs bracket the one with cones. On a line ±f' ≤ ε·f is both.
"""

from collections.abc import Sequence
from functools import reduce
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


def value_of(points: Array, cells: Sequence[int], size: Sequence[float], degree: int) -> Array:
    """The basis functions at points, (points, control points), control points of the first axis running fastest."""
    total = np.ones((len(points), 1))
    for axis, (count, length) in reversed(list(enumerate(zip(cells, size, strict=True)))):
        side = length / count
        cell = np.minimum((points[:, axis] / side).astype(int), count - 1)
        t = points[:, axis] / side - cell
        table = np.zeros((len(points), count * degree + 1))
        for i in range(degree + 1):
            table[np.arange(len(points)), cell * degree + i] += comb(degree, i) * t**i * (1 - t) ** (degree - i)
        total = (total[:, :, None] * table[:, None, :]).reshape(len(points), -1)
    return total


def quadrature(cells: Sequence[int], size: Sequence[float], nodes: int) -> tuple[Array, Array]:
    """Points and weights of the uniform density: Gauss-Legendre with some nodes along each axis of each cell."""
    at, share = np.polynomial.legendre.leggauss(nodes)
    axes = [
        (np.arange(count)[:, None] + (at + 1) / 2).ravel() * length / count
        for count, length in zip(cells, size, strict=True)
    ]
    weights = [np.tile(share, count) / (2 * count) for count in cells]
    points = np.stack([each.ravel() for each in np.meshgrid(*axes, indexing="ij")], axis=1)
    return points, np.asarray(reduce(np.multiply.outer, weights)).ravel()


def unit_vectors(axes: int, directions: int) -> Array:
    """Unit vectors evenly round the circle; on a line, the two that there are."""
    if axes == 1:
        return np.array([[1.0], [-1.0]])
    angles = 2 * np.pi * np.arange(directions) / directions
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def optimum(
    costs: Array,
    cells: Sequence[int],
    size: Sequence[float],
    degree: int,
    epsilon: float,
    directions: int = 2,
    factor: float = 1.0,
) -> float:
    """The least Σ costs·p with u_k·∇f ≤ factor·ε·f in every coefficient; ``costs`` is (control points, outputs)."""
    selections, slopes = [], []
    for count, length in zip(cells, size, strict=True):
        pick = np.zeros((count * (degree + 1), count * degree + 1))
        for cell in range(count):
            for i in range(degree + 1):
                pick[cell * (degree + 1) + i, cell * degree + i] = 1
        derivative = np.kron(np.eye(count), raised_derivative(degree)) * count / length
        selections.append(csr_array(pick))
        slopes.append(csr_array(derivative @ pick))
    axes = range(len(selections))
    value = reduce(kron, selections[::-1])
    gradient = [reduce(kron, [(slopes if each == axis else selections)[each] for each in axes[::-1]]) for axis in axes]
    rows = vstack(
        [
            factor * epsilon * value - sum(share * part for share, part in zip(vector, gradient, strict=True))
            for vector in unit_vectors(len(axes), directions).tolist()
        ]
    )
    controls, outputs = costs.shape
    solution = linprog(
        costs.ravel(),
        A_ub=-kron(rows, identity(outputs)).tocsr(),
        b_ub=np.zeros(rows.shape[0] * outputs),
        A_eq=kron(identity(controls), np.ones((1, outputs))).tocsr(),
        b_eq=np.ones(controls),
        method="highs-ipm",
    )
    assert solution.status == 0
    return float(solution.fun)
